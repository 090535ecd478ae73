"""A lazy query: an einsum graph over relations, planned once and run on demand."""

from __future__ import annotations

import dataclasses
import difflib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from einsql.domains import Domain
from einsql.engine import Engine
from einsql.graph_domains import GraphDomains
from einsql.relation import VALUE, Relation
from gpu_exec.batch import Batch, from_cells, from_dense, to_dense
from planner.cuts import Cut
from planner.einsum import Tensor, TensorType
from planner.errors import PlanError, ShapeError
from planner.memory import check_program, check_whole
from planner.node import postorder
from planner.placement import describe
from planner.relation_type import RelationType
from planner.relational import Join, Rel
from planner.request import Request
from planner.scalar import Value

if TYPE_CHECKING:
    from einsql.host_engine import HostQuery
    from einsql.session import Session


@dataclass(frozen=True)
class Plan:
    """What the planner decided and predicts. Sizes in bytes; a multiply-add is 2 FLOP.

    parts        node -> label -> number of parts
    placement    node -> where its rows live
    peak_bytes   per device
    """

    parts: Mapping[str, Mapping[str, int]]
    placement: Mapping[str, str]
    flops: int
    moved_bytes: int
    peak_bytes: tuple[int, ...]
    kernel_calls: int
    exchanges: int


@dataclass(frozen=True)
class Stats:
    """What a run counted. `engine` says where it ran, `why` for what reason; nothing ever falls back in silence."""

    engine: str
    why: str
    seconds: float
    kernel_calls: int = 0
    moved_bytes: int = 0
    peak_bytes: tuple[int, ...] = ()
    fallbacks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Text:
    """A print-out; `str` is the text, and notebooks show it as it is."""

    text: str

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


@dataclass(eq=False, repr=False)
class Query:
    """A query that has not run yet. Taking a result runs it, once.

    labels   the names of the result's labels, in order
    fill     what an absent cell is worth in the total reading; None when the query came from SQL
    value    what the value column is called in tables
    """

    session: Session
    graph: Tensor
    labels: tuple[str, ...]
    relations: Mapping[str, Relation]
    engine: Engine
    request: Request
    fill: Value | None = None
    value: str = VALUE
    stats: Stats | None = field(default=None, init=False)

    def __repr__(self) -> str:
        t = self.graph.type
        inside = " ".join(f"{label}={extent}" for label, extent in zip(self.labels, t.extents, strict=True))
        state = "not run" if self.stats is None else f"ran on {self.stats.engine} in {self.stats.seconds:.3f} s"
        return f"Query {t.dtype.short}[{inside}] over {', '.join(self.relations)}, {state}"

    # ---------------------------------------------------------------------------------------------------- results

    def numpy(self, fill: Value | None = None) -> np.ndarray:
        """The result as an array over `labels`; `fill` says what absent cells are worth."""
        return self._result.numpy(fill)

    def arrow(self, blocks: bool = False) -> pa.Table:
        """The result with one row per present cell: a column per label, then the value; a data frame by `.to_pandas()`.

        With `blocks=True` one row per block, from which `Session.create` restores the relation: see `Relation.arrow`.
        """
        return self._result.arrow(blocks)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype, copy=copy)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The rows of `arrow()`: polars, pandas and DuckDB read a query as it is."""
        return self.arrow().__arrow_c_stream__(requested_schema)

    def domain(self, label: str) -> pa.Array | range:
        """The values that the coordinates of a label stand for, without running the query."""
        if label not in self.labels:
            raise ShapeError(f"the result has no label {label!r}; it has {', '.join(self.labels) or 'none'}")
        if label in self.domains:
            return self.domains[label].values
        return range(self.graph.type.extents[self.labels.index(label)])

    @cached_property
    def domains(self) -> dict[str, Domain]:
        """The dictionaries of those labels that have one."""
        found = GraphDomains(dict(self.relations)).of(self.graph)
        return {label: domain for label, domain in zip(self.labels, found, strict=True) if domain is not None}

    def scipy(self) -> Any:
        """The present cells as a scipy.sparse.coo_array, of one or two labels."""
        return self._result.scipy()

    def run(self) -> Relation:
        """Run the query again and return its result; `stats` then holds what was counted."""
        start = time.perf_counter()
        try:
            batch = self._execute()
        except MemoryError as error:
            raise PlanError(
                f"no memory for {self!r}: {error}\n  ask for less, or set memory_limit to know before"
            ) from None
        assert self.stats is not None
        self.stats = dataclasses.replace(self.stats, seconds=time.perf_counter() - start)
        result = Relation(
            "", _labelled(batch, self.labels), self.fill, self.domains, self.value, self.session.memory_limit
        )
        self.__dict__["_result"] = result
        return result

    def to_table(self, name: str, replace: bool = False) -> Relation:
        """Store the result as a relation, whole or not at all."""
        result = self._result
        fill = 0 if result.fill is None else result.fill
        return self.session.store(dataclasses.replace(result, name=name, fill=fill), replace)

    @cached_property
    def _result(self) -> Relation:
        return self.run()

    def _execute(self) -> Batch:
        match self.engine.name:
            case "reference":
                return self._run_reference()
            case "duckdb":
                return self._run_duckdb()
        batch, metrics = self.host.run()
        self.stats = Stats(
            str(self.engine), self.engine.why, 0.0, metrics.kernel_calls, metrics.moved_bytes, tuple(metrics.peak_bytes)
        )
        return batch

    def _run_reference(self) -> Batch:
        from einsql.reference import MOST_CELLS, evaluate

        for name, r in self.relations.items():
            if r.type.cells > MOST_CELLS:
                raise PlanError(
                    f"the reference interpreter refuses {name}: {r.type.cells} cells, at most {MOST_CELLS}"
                    "\n  scale the inputs down, or use engine='host'"
                )
        for node in postorder(self.graph):
            self._check_whole(node.name or "a step", node.type, node.type.complete)
        total = evaluate(self.graph, {name: to_dense(r.batch) for name, r in self.relations.items()})
        t = self.graph.type
        values = total.numpy(t.dtype)
        self.stats = Stats("reference", self.engine.why, 0.0)
        cuts = tuple(Cut(e, parts=1) for e in t.extents)
        if t.complete and total.present.all():
            return from_dense(values, RelationType(t.labels, cuts, t.dtype))
        where = np.argwhere(total.present)
        return from_cells(where, values[total.present], RelationType(t.labels, cuts, t.dtype, presence="cells"))

    def _check_whole(self, name: str, type: TensorType | RelationType, complete: bool) -> None:
        limit = self.session.memory_limit
        if limit is not None and complete:
            check_whole(name, str(type), type.cells, type.nbytes, limit)

    def _run_duckdb(self) -> Batch:
        run = self.session.duckdb.run(self.script, self.relations, self.session.memory_limit)
        self.stats = Stats("duckdb", self.engine.why, 0.0, run.kernel_calls, 0, (run.peak_bytes,))
        return run.batch

    # ------------------------------------------------------------------------------------------------------ plans

    @cached_property
    def host(self) -> HostQuery:
        """The query compiled for host devices; its key phase has run."""
        from einsql.host_engine import compile_host

        compiled = compile_host(self.graph, self.relations, self.request)
        if self.session.memory_limit is not None:
            check_program(compiled.program, self.session.memory_limit)
        return compiled

    @cached_property
    def script(self) -> Any:
        """The query as a script of SQL steps."""
        from planner.optimizer import optimize
        from planner.sqlgen import generate_script

        plan = optimize(self.graph, dataclasses.replace(self.request, devices=1, placement={}))
        for node in postorder(plan):
            self._check_whole(node.name, node.type, node.type.presence == "complete")
        return generate_script(plan)

    @property
    def plan(self) -> Plan:
        """What was decided, and what the program predicts."""
        program = self.host.program
        by_name: dict[str, Rel] = {}
        for node in postorder(self.host.plan):
            by_name.setdefault(node.name, node)
        return Plan(
            parts={name: _parts(node) for name, node in by_name.items()},
            placement={
                name: describe(n.placement, n.type.labels) for name, n in by_name.items() if n.placement is not None
            },
            flops=sum(node.flops for node in by_name.values() if isinstance(node, Join)),
            moved_bytes=program.moved_bytes,
            peak_bytes=program.peak_bytes,
            kernel_calls=program.kernel_calls,
            exchanges=program.exchanges,
        )

    def to_sql(self, dialect: str = "duckdb") -> str:
        """The plan as SQL steps, in a dialect of sqlglot."""
        from sqlglot.dialects.dialect import Dialect

        if dialect not in Dialect.classes:
            close = difflib.get_close_matches(str(dialect), Dialect.classes, n=1)
            raise PlanError(f"no dialect {dialect!r}" + (f"; did you mean {close[0]!r}?" if close else ""))
        return str(self.script.sql(dialect))

    def explain(self, form: str = "relational") -> Text:
        """The plan in one of its forms: logical, relational, sql, program."""
        from planner.explain import explain_logical, explain_plan
        from planner.optimizer import optimize_graph
        from planner.program_text import print_program

        match form:
            case "logical":
                return Text(explain_logical(optimize_graph(self.graph)))
            case "relational":
                return Text(explain_plan(self.host.plan, self.host.program))
            case "sql":
                return Text(self.to_sql())
            case "program":
                return Text(print_program(self.host.program))
        raise PlanError(f"no form {form!r}; forms are logical, relational, sql, program")


def _parts(node: Rel) -> dict[str, int]:
    if isinstance(node, Join):
        return {label: cut.count for label, cut in node.label_cuts.items()}
    return dict(zip(node.type.labels, node.type.counts, strict=True))


def _labelled(batch: Batch, labels: tuple[str, ...]) -> Batch:
    return dataclasses.replace(batch, type=batch.type.with_labels(labels))
