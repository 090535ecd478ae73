"""The command line: run a query file, or explain its plan.

Exit status 0 on success, 1 on a query error (one message on standard error), 2 on wrong usage.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from textwrap import wrap
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from sqlglot.dialects.dialect import Dialect
from typer.core import TyperGroup

from einsql import __version__
from einsql.query import Query
from einsql.query_file import FORMS, QueryFile, read_query_file
from einsql.relation import Relation
from einsql.session import Session
from einsql.verification import verify
from planner.errors import EinsqlError, ExecutionError, PlanError
from planner.explain import columns, format_bytes, format_flops, plural

EXAMPLES = """\
Examples:
  einsql run queries/llama_block.sql                    run a query file, check the answer
  einsql run queries/matmul.sql --engine duckdb         the same plan as SQL in DuckDB
  einsql explain queries/gcn.sql --devices 8            how it is cut, placed and moved
  einsql explain queries/llama_mlp.sql --form program --devices 4 --parts t=4

"""
SHOWN = 5  # rows of a result
SENTENCE = 88  # columns of running text


class _ExamplesFirst(TyperGroup):
    """Help that begins with examples."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(EXAMPLES)
        super().format_help(ctx, formatter)


app = typer.Typer(
    cls=_ExamplesFirst,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Tensors as relations: run and explain query files. A file's own devices and parts hold unless overridden.",
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"einsql {__version__}")
        raise typer.Exit


File = Annotated[str, typer.Argument(metavar="FILE.sql", help="a query file: header, SQL, golden plans")]
EngineOption = Annotated[str | None, typer.Option("--engine", help="auto, reference, duckdb, host, host:4")]
Devices = Annotated[str | None, typer.Option("--devices", metavar="N", help="how many devices")]
Parts = Annotated[list[str] | None, typer.Option("--parts", metavar="LABEL=N", help="cut a label into N parts")]
Tile = Annotated[list[str] | None, typer.Option("--tile", metavar="LABEL=N", help="cut a label into tiles of N")]
Debug = Annotated[bool, typer.Option("--debug", help="show the traceback of an error")]


@app.callback()
def top(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, help="print the version", callback=_version)
    ] = False,
) -> None:
    """Options of the program itself."""


def main() -> None:
    """Run the program on the arguments of this process."""
    app(prog_name="einsql")


@app.command("run")
def run_command(
    file: File,
    engine: EngineOption = None,
    devices: Devices = None,
    parts: Parts = None,
    tile: Tile = None,
    debug: Debug = False,
) -> None:
    """Run a query file and check its answer against the reference interpreter."""
    options = _options(engine, devices, parts, tile)
    with _one_message(debug), Session() as session:
        query_file = read_query_file(file)
        query_file.make_inputs(session)
        query = query_file.query(session, **options)
        _report(query_file, query, options)


@app.command("explain")
def explain_command(
    file: File,
    form: Annotated[str, typer.Option(help=", ".join(FORMS))] = "relational",
    engine: EngineOption = None,
    devices: Devices = None,
    parts: Parts = None,
    tile: Tile = None,
    dialect: Annotated[str | None, typer.Option(help="of form sql: duckdb, postgres, ...")] = None,
    debug: Debug = False,
) -> None:
    """Print the plan of a query file in one of its forms."""
    options = _options(engine, devices, parts, tile)
    if form not in FORMS:
        raise typer.BadParameter(f"no form {form!r}; forms are {', '.join(FORMS)}", param_hint="--form")
    if dialect is not None and dialect not in Dialect.classes:
        raise typer.BadParameter(f"no dialect {dialect!r}", param_hint="--dialect")
    if dialect is not None and form != "sql":
        raise typer.BadParameter(f"a dialect belongs to --form sql, not to {form}")
    with _one_message(debug), Session() as session:
        query_file = read_query_file(file)
        query_file.make_inputs(session)
        query = query_file.query(session, **options)
        typer.echo(query.to_sql(dialect) if dialect is not None else str(query.explain(form)), nl=False)


# ------------------------------------------------------------------------------------------------------------ arguments


@contextmanager
def _one_message(debug: bool) -> Iterator[None]:
    """Turn a query error into one message and exit status 1."""
    try:
        yield
    except (EinsqlError, OSError) as error:
        if debug or (isinstance(error, OSError) and error.filename is None):  # a closed pipe is no query error
            raise
        message = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) else str(error)
        typer.echo(f"error: {message}", err=True)
        raise typer.Exit(1) from None


def _options(
    engine: str | None, devices: str | None, parts: Sequence[str] | None, tile: Sequence[str] | None
) -> dict[str, Any]:
    """The query options that were given; what was not is left to the file's header."""
    given: dict[str, Any] = {}
    if engine is not None:
        given["engine"] = engine
    if devices is not None:
        given["devices"] = devices
    for name, counts in (("parts", parts), ("tile", tile)):
        if counts:
            given[name] = dict(_count(name, text) for text in counts)
    return given


def _count(name: str, text: str) -> tuple[str, int]:
    label, _, count = text.partition("=")
    if not label or not count.isdecimal():
        raise typer.BadParameter(f"{text!r} is no count for a label; written like t=4", param_hint=f"--{name}")
    return label, int(count)


# -------------------------------------------------------------------------------------------------------------- reports


def _report(query_file: QueryFile, query: Query, options: dict[str, Any]) -> None:
    """Run the query and print what went in, what was planned, and what came out."""
    console = Console(highlight=False, soft_wrap=True, markup=False)
    console.print(Text(query_file.title, "bold"))
    console.print()
    _section(console, "inputs", _inputs(query_file, query))
    start = time.perf_counter()
    planned = _plan(query)
    planning = time.perf_counter() - start
    _section(console, "plan", [planned])
    result = query.run()
    stats = query.stats
    assert stats is not None
    _section(console, "engine", [f"{stats.engine}   {stats.why}"])
    _section(console, "result", _result(result))
    _section(console, "seconds", [f"{planning:.3f} planning   {stats.seconds:.3f} running"])
    _section(console, "verified", wrap(_verified(query_file, query, options), SENTENCE))


def _verified(query_file: QueryFile, query: Query, options: dict[str, Any]) -> str:
    """The sentence of the verification; a wrong answer is an error."""
    if query.engine.name == "reference":
        return "not verified: the reference interpreter itself gave the answer"
    try:
        verification = verify(query_file, query, **options)
    except PlanError as error:
        return f"not verified: {error}"
    if not verification.passed:
        raise ExecutionError(f"the answer is wrong: {verification}")
    return str(verification)


def _section(console: Console, name: str, lines: Sequence[str]) -> None:
    for i, line in enumerate(lines):
        console.print(Text.assemble((("" if i else name).ljust(10), "bold"), line))


def _inputs(query_file: QueryFile, query: Query) -> list[str]:
    rows = []
    for spec in query_file.relations:
        stored = query.session.relation(spec.name).batch
        source = f"networkx {spec.source} {spec.what}".strip() if spec.is_graph else spec.source
        rows.append((spec.name, str(spec), plural(stored.rows, "row"), format_bytes(stored.nbytes), source))
    return columns(rows, frozenset({2, 3}))


def _plan(query: Query) -> str:
    """The totals of what the engine will run."""
    match query.engine.name:
        case "reference":
            return "none: the graph is interpreted node by node"
        case "duckdb":
            return plural(len(query.script.steps), "SQL step")
    plan = query.plan
    totals = [
        plural(plan.kernel_calls, "kernel call"),
        plural(plan.exchanges, "exchange"),
        f"moves {format_bytes(plan.moved_bytes)}",
        f"peak {format_bytes(max(plan.peak_bytes))} per device",
        format_flops(plan.flops),
    ]
    return "   ".join(totals)


def _result(result: Relation) -> list[str]:
    """Type and first cells of a result; the value itself where it has no labels."""
    kind, table = result.type, result.arrow()
    if not result.labels:
        value = table.column(result.value)[0].as_py()
        return [f"{'NULL' if value is None else value}   {kind.dtype.short}"]
    inside = " ".join(f"{label}={extent}" for label, extent in zip(kind.labels, kind.extents, strict=True))
    rows = [tuple(table.column_names)]
    for row in table.slice(0, SHOWN).to_pylist():
        rows.append(tuple(f"{v:.6g}" if isinstance(v, float) else str(v) for v in row.values()))
    lines = columns(rows, frozenset(range(len(table.column_names))))
    more = ["..."] if len(table) > SHOWN else []
    return [f"{kind.dtype.short}[{inside}]   {plural(len(table), 'cell')}", *lines, *more]
