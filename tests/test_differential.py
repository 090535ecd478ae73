"""Law 1: one answer, whatever the engine, the partitioning, the devices and the placement.

Payloads are small integers, so that equality needs no tolerance. Einsums are judged by NumPy over total arrays, SQL
texts by plain DuckDB over the scalar tables, and both by the reference interpreter of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import einsql as es
from einsql.query import Query
from einsql.reference import evaluate
from gpu_exec.batch import to_dense
from planner import relational as rel
from planner.node import postorder
from planner.placement import radices
from planner.program_text import parse_program
from planner.scalar import labels_of
from planner.scalar_text import parse

ENGINES = ("host:1", "host:4", "duckdb")
SMALL = settings(deadline=None)
ALPHABET = "ijkl"

Array = np.ndarray
Rows = list[tuple[Any, ...]]


# --------------------------------------------------------------------------------------------------- what is compared


def rows_of(query: Query) -> Rows:
    """The present cells, sorted; a NULL value is an absent cell."""
    table = query.arrow().to_pydict()
    return sorted(row for row in zip(*table.values(), strict=True) if row[-1] is not None)


def check_host(query: Query) -> None:
    """What a host run counted is what its program predicts, and the program survives its own text."""
    program = query.host.program
    assert parse_program(str(query.explain("program"))) == program
    assert query.stats is not None
    assert f"{program.kernel_calls} kernel call" in str(query.explain())
    counted = (query.stats.moved_bytes, query.stats.kernel_calls, query.stats.peak_bytes)
    assert counted == (query.plan.moved_bytes, query.plan.kernel_calls, query.plan.peak_bytes)


def assert_same(make: Callable[..., Query], variants: Sequence[Mapping[str, Any]]) -> tuple[Rows, Array]:
    """The result of the reference interpreter, after every variant of the query gave exactly the same."""
    wanted = make(engine="reference")
    rows, values = rows_of(wanted), wanted.numpy(fill=_fill(wanted))
    for options in variants:
        query = make(**options)
        assert rows_of(query) == rows, options
        got = query.numpy(fill=_fill(query))
        assert got.dtype == values.dtype and got.shape == values.shape, options
        np.testing.assert_array_equal(got, values, err_msg=str(options))
        if query.engine.name == "host":
            check_host(query)
    return rows, values


def _fill(query: Query) -> int | float | bool | None:
    """SQL results have no fill of their own."""
    return 0 if query.fill is None else None


# -------------------------------------------------------------------------------------------------- generated einsums


@dataclass(frozen=True)
class Operand:
    """One operand: `labels` as subscripts write them, total values, and which cells are stored (None: it is dense)."""

    labels: tuple[str, ...]
    values: Array
    present: Array | None
    fill: int
    parts: dict[str, int]

    @property
    def axes(self) -> list[str]:
        return [f"{axis}{n}" for axis, n in zip("pqr", self.values.shape, strict=False)]

    def create(self, db: es.Session, name: str) -> None:
        axes = [axis[0] for axis in self.axes]
        parts = {axes[i]: n for i, n in enumerate(self.parts.values())}
        if self.present is None:
            db.create(name, self.values, labels=axes, parts=parts, fill=self.fill)
            return
        at = np.argwhere(self.present)
        columns: dict[str, Array] = {axis: at[:, i] for i, axis in enumerate(axes)}
        stated = " ".join(f"{axis}={n}" for axis, n in zip(axes, self.values.shape, strict=True))
        db.create(name, {**columns, "val": self.values[self.present]}, labels=stated, parts=parts, fill=self.fill)


@dataclass(frozen=True)
class EinsumCase:
    operands: tuple[Operand, ...]
    output: str
    reduce: str
    combine: str | None
    requests: tuple[dict[str, Any], ...] = field(default=())

    @property
    def subscripts(self) -> str:
        return f"{','.join(''.join(o.labels) for o in self.operands)}->{self.output}"

    def expected(self) -> Array:
        """The answer of NumPy over total arrays and the whole label space."""
        extents = {label: n for o in self.operands for label, n in zip(o.labels, o.values.shape, strict=True)}
        labels = [*self.output, *(label for label in extents if label not in self.output)]
        shape = tuple(extents[label] for label in labels)
        grid = dict(zip(labels, np.indices(shape), strict=True))
        full = [np.broadcast_to(o.values[tuple(grid[label] for label in o.labels)], shape) for o in self.operands]
        combined = COMBINES[self.combine](full, grid)
        if self.reduce == "any":
            combined = combined != 0
        axes = tuple(range(len(self.output), len(labels)))
        if not axes:
            return combined
        ufunc, start = REDUCES[self.reduce]
        return ufunc.reduce(combined, axis=axes, initial=start)


REDUCES: dict[str, tuple[Any, Any]] = {
    "sum": (np.add, 0),
    "prod": (np.multiply, 1),
    "max": (np.maximum, -(2**63)),
    "min": (np.minimum, 2**63 - 1),
    "any": (np.logical_or, False),
}

Combine = Callable[[list[Array], dict[str, Array]], Array]
COMBINES: dict[str | None, Combine] = {
    None: lambda x, _: reduce(np.multiply, x),
    "add": lambda x, _: reduce(np.add, x),
    "sub": lambda x, _: reduce(np.subtract, x),
    "min": lambda x, _: reduce(np.minimum, x),
    "max": lambda x, _: reduce(np.maximum, x),
    "abs(x0)": lambda x, _: np.abs(x[0]),
    "x0 * x0 + 1": lambda x, _: x[0] * x[0] + 1,
    "case(x0 < 0, i, x0 * 2)": lambda x, g: np.where(x[0] < 0, g["i"], x[0] * 2),
    "abs(x0 - x1)": lambda x, _: np.abs(x[0] - x[1]),
    "2 * x1 * x0": lambda x, _: 2 * x[0] * x[1],
    "(x0 + 1) * x1 * i": lambda x, g: (x[0] + 1) * x[1] * g["i"],
    "case(x1 != 0, x0 // x1, 0)": lambda x, _: np.where(
        x[1] != 0, np.trunc(x[0] / np.where(x[1] != 0, x[1], 1)).astype(int), 0
    ),
    "x0 * x1 - x2": lambda x, _: x[0] * x[1] - x[2],
    "max(x0, x1) + x2": lambda x, _: np.maximum(x[0], x[1]) + x[2],
}
NEEDS = {
    1: ("abs(x0)", "x0 * x0 + 1", "case(x0 < 0, i, x0 * 2)"),
    2: ("abs(x0 - x1)", "2 * x1 * x0", "(x0 + 1) * x1 * i", "case(x1 != 0, x0 // x1, 0)"),
    3: ("x0 * x1 - x2", "max(x0, x1) + x2"),
}


@st.composite
def operands(draw: st.DrawFn, extents: Mapping[str, int], most: int) -> Operand:
    labels = tuple(draw(st.lists(st.sampled_from(ALPHABET), max_size=3)))
    shape = tuple(extents[label] for label in labels)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = rng.integers(-most, most, shape, endpoint=True)
    present, fill = None, draw(st.sampled_from([0, 0, 0, 1]))
    if draw(st.booleans()):
        present = np.asarray(rng.random(shape) < draw(st.sampled_from([0.0, 0.3, 0.8])))
        values = np.asarray(np.where(present, values, fill))
    parts = {}
    if draw(st.booleans()):
        parts = {str(i): draw(st.integers(1, 4)) for i in range(len(shape))}
    return Operand(labels, values, present, fill, parts)


@st.composite
def einsum_cases(draw: st.DrawFn) -> EinsumCase:
    extents = {label: draw(st.sampled_from([0, 1, 2, 3, 4, 5, 7])) for label in ALPHABET}
    how = draw(st.sampled_from(list(REDUCES)))
    count = draw(st.integers(1, 3))
    chosen = tuple(draw(operands(extents, 1 if how == "prod" else 3)) for _ in range(count))
    known = sorted({label for o in chosen for label in o.labels})
    output = "".join(draw(st.permutations(known))[: draw(st.integers(0, len(known)))])
    names: list[str | None] = [None]
    if how != "prod":  # products of larger numbers leave int64
        names += ["add", "sub", "min", "max", *(n for n in NEEDS[count] if labels_of(parse(n)) <= set(known))]
    combine = draw(st.sampled_from(names))
    requests = tuple(draw(placed_requests(known)) for _ in range(2))
    return EinsumCase(chosen, output, how, combine, requests)


@st.composite
def placed_requests(draw: st.DrawFn, known: Sequence[str]) -> dict[str, Any]:
    """An engine with 1 to 4 devices, or DuckDB, and some labels cut by parts or by tile."""
    labels = draw(st.lists(st.sampled_from(known), unique=True)) if known else []
    parts: dict[str, int] = {}
    tile: dict[str, int] = {}
    for label in labels:
        (parts if draw(st.booleans()) else tile)[label] = draw(st.integers(1, 4))
    engine = draw(st.sampled_from(["host:1", "host:2", "host:3", "host:4", *(e for e in ENGINES if "host" not in e)]))
    return {"engine": engine, "parts": parts, "tile": tile}


@SMALL
@given(case=einsum_cases())
def test_einsum_is_numpy_on_every_engine(case: EinsumCase) -> None:
    """Reference = every engine = NumPy over total arrays, under generated cuts and device counts."""
    with es.connect() as db:
        for i, operand in enumerate(case.operands):
            operand.create(db, f"X{i}")
        names = [f"X{i}" for i in range(len(case.operands))]

        def make(**options: Any) -> Query:
            return db.einsum(case.subscripts, *names, reduce=case.reduce, combine=case.combine, **options)

        _, values = assert_same(make, [{"engine": e} for e in ENGINES] + list(case.requests))
        np.testing.assert_array_equal(values, case.expected(), err_msg=case.subscripts)


def test_engines_do_not_change_a_graph_with_repeated_labels_and_no_rows() -> None:
    """A diagonal of a relation without rows, beside a dense one."""
    with es.connect() as db:
        none = np.zeros(0, np.int64)
        db.create("A", {"p": none, "q": none, "val": none}, labels="p=3 q=3", parts={"p": 2, "q": 2})
        db.create("B", np.arange(3))

        def make(**options: Any) -> Query:
            return db.einsum("ii,i->i", "A", "B", reduce="max", combine="add", **options)

        rows, values = assert_same(make, [{"engine": e} for e in ENGINES])
        assert values.tolist() == [0, 1, 2]
        assert len(rows) == 3


# ------------------------------------------------------------------------------------------------------ generated SQL

LABELS = {"A": ("i", "j"), "B": ("j", "k"), "V": ("j",), "S": ()}


@dataclass(frozen=True)
class Tables:
    """The relations of one example, as rows, and how each is stored: {} is scalar storage."""

    extents: dict[str, int]
    rows: dict[str, dict[str, list[int]]]
    parts: dict[str, dict[str, int]]

    def create(self, db: es.Session) -> None:
        for name, labels in LABELS.items():
            stated = " ".join(f"{label}={self.extents[label]}" for label in labels)
            columns = {column: np.asarray(cells, np.int64) for column, cells in self.rows[name].items()}
            db.create(name, columns, labels=stated, parts=self.parts[name])

    def duckdb_rows(self, text: str) -> Rows:
        """What plain DuckDB answers; a row whose value is NULL is an absent cell."""
        with duckdb.connect() as connection:
            for name, columns in self.rows.items():
                cells = list(zip(*columns.values(), strict=True))
                connection.execute(f"CREATE TABLE {name} ({', '.join(f'{column} BIGINT' for column in columns)})")
                if cells:
                    connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", cells)
            return sorted(row for row in connection.execute(text).fetchall() if row[-1] is not None)


@st.composite
def tables(draw: st.DrawFn) -> Tables:
    side = draw(st.sampled_from([0, 1, 2, 3, 5]))
    extents = {"i": side, "j": side, "k": draw(st.sampled_from([0, 1, 3, 4]))}
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows, parts = {}, {}
    for name, labels in LABELS.items():
        shape = tuple(extents[label] for label in labels)
        present = np.asarray(rng.random(shape) < draw(st.sampled_from([0.0, 0.4, 0.8, 1.0])))
        at = np.argwhere(present)
        columns = {label: at[:, n].tolist() for n, label in enumerate(labels)}
        rows[name] = {**columns, "val": rng.integers(-3, 3, len(at), endpoint=True).tolist()}
        cut = draw(st.booleans())
        parts[name] = {label: draw(st.integers(1, 4)) for label in labels} if cut else {}
    return Tables(extents, rows, parts)


@dataclass(frozen=True)
class From:
    """A FROM clause, its label columns (one per label), its value columns, and a condition that belongs to it."""

    text: str
    labels: tuple[str, ...]
    values: tuple[str, ...]
    where: str = ""


FROMS = (
    From("A a", ("a.i", "a.j"), ("a.val",)),
    From("S s", (), ("s.val",)),
    From("A a JOIN B b ON a.j = b.j", ("a.i", "a.j", "b.k"), ("a.val", "b.val")),
    From("A a JOIN B b USING (j)", ("a.i", "j", "b.k"), ("a.val", "b.val")),
    From("A a, B b", ("a.i", "b.j", "k"), ("a.val", "b.val"), "a.j = b.j"),
    From("A a JOIN A c ON a.j = c.i", ("a.i", "c.i", "c.j"), ("a.val", "c.val")),
    From("A a JOIN A c ON a.i = c.j AND a.j = c.i", ("a.i", "a.j"), ("a.val", "c.val")),
    From("A CROSS JOIN S", ("i", "j"), ("A.val", "S.val")),
    From("A a JOIN V v ON a.i = v.j", ("v.j", "a.j"), ("a.val", "v.val")),
    From("A a JOIN B b ON a.j = b.j JOIN V v ON v.j = a.i", ("a.i", "b.j", "b.k"), ("a.val", "b.val", "v.val")),
    From("A a", ("a.i",), ("a.val",), "a.i = a.j"),
    From("(SELECT j, i, val * 2 AS val FROM A) t JOIN V v ON t.j = v.j", ("i", "t.j"), ("t.val", "v.val")),
    From("A a JOIN V v ON v.j = a.j + 1", ("a.i", "a.j", "v.j"), ("a.val", "v.val")),
    From("A a JOIN B b ON a.i - 1 = b.j", ("a.i", "a.j", "b.j", "b.k"), ("a.val", "b.val")),
    From("V v JOIN A a ON v.val = a.i", ("v.j", "a.i", "a.j"), ("v.val", "a.val")),
    From("V v JOIN V w ON v.val < w.val", ("v.j", "w.j"), ("v.val", "w.val")),
)


@st.composite
def predicates(draw: st.DrawFn, source: From, depth: int = 1) -> str:
    """A condition on labels and values."""
    if depth and draw(st.booleans()):
        left, right = draw(predicates(source, depth - 1)), draw(predicates(source, depth - 1))
        return draw(st.sampled_from([f"({left} AND {right})", f"({left} OR {right})", f"NOT ({left})"]))
    x, y, n = source.values[0], source.values[-1], draw(st.integers(0, 4))
    if not source.labels or draw(st.booleans()):
        return draw(st.sampled_from([f"{x} > {n - 2}", f"{x} <> {y}", f"{x} + {y} = {n}", f"{y} BETWEEN -1 AND {n}"]))
    a, b = draw(st.sampled_from(source.labels)), draw(st.sampled_from(source.labels))
    forms = [
        f"{x} = {a}",
        f"{a} < {b}",
        f"{a} <> {n}",
        f"{a} BETWEEN 1 AND {n}",
        f"{a} IN (0, {n})",
        f"{a} % 2 = 0",
        f"{a} + 1 >= {b}",
    ]
    return draw(st.sampled_from(forms))


@st.composite
def values(draw: st.DrawFn, source: From) -> str:
    """A scalar expression over the values, and perhaps the labels, of one FROM."""
    x, y = source.values[0], source.values[-1]
    forms = [
        x,
        f"{x} * {y}",
        f"{x} + 2 * {y}",
        f"ABS({x} - {y})",
        f"GREATEST({x}, {y}, 1)",
        f"CASE WHEN {x} > 0 THEN {y} ELSE -{x} END",
    ]
    if source.labels:
        label, test = draw(st.sampled_from(source.labels)), draw(predicates(source))
        forms += [f"{x} * {label}", f"CASE WHEN {test} THEN {x} ELSE -{y} END", f"CAST({x} AS DOUBLE) * {label} / 4"]
        forms += [f"CASE WHEN {label} <> 0 THEN {x} // {label} ELSE 0 END"]
    return draw(st.sampled_from(forms))


@st.composite
def aggregates(draw: st.DrawFn, source: From) -> str:
    value = draw(values(source))
    forms = [f"SUM({value})", f"MIN({value})", f"MAX({value})", "COUNT(*)", f"COUNT({value})", f"AVG({value})"]
    forms += [
        f"BOOL_OR({value} > 1)",
        f"BOOL_AND({value} > 1)",
        f"SUM({value}) - 2 * MIN({source.values[0]})",
        f"ABS(MAX({value})) + COUNT(*)",
    ]
    if source.labels:
        how = draw(st.sampled_from(["SUM", "COUNT", "MAX"]))
        forms.append(f"{how}(CASE WHEN {draw(predicates(source))} THEN {value} END)")
    return draw(st.sampled_from(forms))


@st.composite
def coordinates(draw: st.DrawFn, label: str, aggregated: bool) -> str:
    """A label, or one computed from it; without an aggregate, one that tells it."""
    forms = [label, label, label, f"{label} + 1", f"{label} * 2"]
    return draw(st.sampled_from([*forms, f"{label} // 2", f"{label} % 3"] if aggregated else forms))


@st.composite
def selects(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A SELECT, and the names of its label columns o0, o1, ..."""
    source = draw(st.sampled_from(FROMS))
    conditions = [source.where] if source.where else []
    if draw(st.booleans()) and source.labels:
        conditions.append(draw(predicates(source)))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    order = draw(st.permutations(source.labels))
    aggregated = draw(st.booleans())
    if aggregated:
        order, value, group = order[: draw(st.integers(0, len(order)))], draw(aggregates(source)), True
    else:
        value, group = draw(values(source)), False
    order = [draw(coordinates(label, aggregated)) for label in order]
    names = [f"o{n}" for n in range(len(order))]
    columns = [f"{label} AS {name}" for label, name in zip(order, names, strict=True)]
    by = f" GROUP BY {', '.join(order)}" if group and order else ""
    return f"SELECT {', '.join([*columns, f'{value} AS val'])} FROM {source.text}{where}{by}", names


@st.composite
def sql_texts(draw: st.DrawFn) -> tuple[str, str]:
    """A SELECT, or a CTE that is read twice; and the same for plain DuckDB, without the rows whose value is NULL."""
    text, names = draw(selects())
    if draw(st.booleans()):
        return text, text
    on = f"JOIN c y ON {' AND '.join(f'x.{name} = y.{name}' for name in names)}" if names else "CROSS JOIN c y"
    if draw(st.booleans()) and names:
        outer = f"SELECT x.{names[0]}, COUNT(*) AS val FROM c x {on} GROUP BY x.{names[0]}"
    else:
        listed = ", ".join([*(f"x.{name}" for name in names), "CASE WHEN x.val = y.val THEN 1 ELSE 0 END AS val"])
        outer = f"SELECT {listed} FROM c x {on}"
    return f"WITH c AS ({text}) {outer}", f"WITH c AS (SELECT * FROM ({text}) WHERE val IS NOT NULL) {outer}"


@SMALL
@given(stored=tables(), texts=sql_texts(), parts=st.dictionaries(st.sampled_from("ij"), st.integers(1, 4)))
def test_sql_is_duckdb_on_every_engine(stored: Tables, texts: tuple[str, str], parts: dict[str, int]) -> None:
    """Reference = every engine, and all of them = plain DuckDB over the scalar tables."""
    text, plain = texts
    with es.connect() as db:
        stored.create(db)
        known = {label for node in postorder(db.sql(text).host.plan) for label in node.type.labels}
        asked = {label: n for label, n in parts.items() if label in known}
        variants: list[dict[str, Any]] = [{"engine": e} for e in ENGINES]
        variants += [{"engine": e, "parts": asked} for e in ENGINES if asked]
        rows, _ = assert_same(lambda **options: db.sql(text, **options), variants)
        assert rows == stored.duckdb_rows(plain)


# --------------------------------------------------------------------------------------------------------- placements


def chain_query(db: es.Session, **options: Any) -> Query:
    """A map, a filter, two joins and an aggregate over blocks, some of them masked."""
    text = """
        WITH half AS (SELECT i, j, val + 1 AS val FROM A WHERE i <> 1),
             c AS (SELECT h.i, b.k, SUM(h.val * b.val) AS val FROM half h JOIN B b ON h.j = b.j GROUP BY h.i, b.k)
        SELECT c.k, MAX(c.val + v.val) AS val FROM c JOIN V v ON c.i = v.i GROUP BY c.k
    """
    return db.sql(text, **options)


def chain_relations(db: es.Session) -> None:
    rng = np.random.default_rng(7)
    at = np.argwhere(rng.random((5, 6)) < 0.6)
    db.create(
        "A",
        {"i": at[:, 0], "j": at[:, 1], "val": rng.integers(-3, 4, len(at))},
        labels="i=5 j=6",
        parts={"i": 3, "j": 2},
    )
    db.create("B", rng.integers(-3, 4, (6, 4)), labels="j k")
    db.create("V", {"i": np.array([0, 2, 3]), "val": np.array([4, -1, 2])}, labels="i=5", parts={"i": 2})


def placeable(query: Query) -> list[rel.Rel]:
    """The nodes that a placement request can name, once each."""
    by_name: dict[str, rel.Rel] = {}
    for node in postorder(query.host.plan):
        if not isinstance(node, rel.Exchange):
            by_name.setdefault(node.name, node)
    return list(by_name.values())


@st.composite
def placement_texts(draw: st.DrawFn, node: rel.Rel, devices: int) -> str:
    """Replicated, digits spread over labels, or any list of holders block by block."""
    if draw(st.booleans()):
        blocks = node.type.possible_rows
        holders = st.sets(st.integers(0, devices - 1), min_size=1).map(lambda held: ",".join(map(str, sorted(held))))
        return f"Listed({'|'.join(draw(st.lists(holders, min_size=blocks, max_size=blocks)))})"
    labels = node.subscripts.labels if isinstance(node, rel.Join) else node.type.labels
    owner = [draw(st.sampled_from(["", *labels])) for _ in radices(devices)]
    cut = [
        f"{label}:{'.'.join(str(d) for d, own in enumerate(owner) if own == label)}"
        for label in labels
        if label in owner
    ]
    return f"Sharded({' '.join(cut)})" if cut else "Replicated"


@SMALL
@given(data=st.data())
def test_any_placement_gives_the_same_answer(data: st.DataObject) -> None:
    """Every node wherever a user wants it, on 2 to 6 devices, under generated cuts."""
    devices = data.draw(st.integers(2, 6), label="devices")
    parts = data.draw(st.dictionaries(st.sampled_from("ijk"), st.integers(1, 4)), label="parts")
    with es.connect() as db:
        chain_relations(db)
        options: dict[str, Any] = {"engine": f"host:{devices}", "parts": parts}
        nodes = placeable(chain_query(db, **options))
        assert {"A", "B", "V", "half", "c"} <= {node.name for node in nodes}
        placement = {
            node.name: data.draw(placement_texts(node, devices), label=node.name)
            for node in nodes
            if data.draw(st.booleans())
        }
        rows, _ = assert_same(lambda **o: chain_query(db, **o), [{**options, "placement": placement}])
        assert len(rows) == 4


def test_a_listed_placement_is_where_the_rows_are() -> None:
    """Block by block: the input on devices 2, 0 and both, the result on device 1 alone."""
    with es.connect() as db:
        db.create("A", np.arange(6).reshape(3, 2), labels="i j", parts={"i": 3})

        def make(**options: Any) -> Query:
            return db.einsum("ij->i", "A", **options)

        name = make().host.plan.name
        query = make(engine="host:3", placement={"A": "Listed(2|0|0,2)", name: "Listed(1|1|1)"})
        assert query.numpy().tolist() == [1, 5, 9]
        assert query.plan.placement["A"] == "Listed(2|0|0,2)"
        result = query.host.structures[query.host.program.result.register]
        assert [rows.tolist() for rows in result.local] == [[], [0, 1, 2], []]
        check_host(query)
        assert query.plan.moved_bytes > 0


@pytest.mark.parametrize(
    ("placement", "message"),
    [
        ({"Z": "Replicated"}, "no node 'Z'"),
        ({"A": "Listed(0|1|2)"}, "block 2 is placed on"),
        ({"A": "Listed(0)"}, "its placement lists 1"),
        ({"A": "Sharded(q)"}, "names label 'q'"),
        ({"A": "Everywhere"}, "cannot read the placement"),
        ({"A": "Partial(sum)"}, "cannot be stored as"),
    ],
)
def test_placements_that_cannot_be(placement: dict[str, str], message: str) -> None:
    """A request that cannot be met is refused while planning, with the reason."""
    with es.connect() as db:
        db.create("A", np.arange(3), parts={"i": 3})
        query = db.einsum("i->", "A", engine="host:2", placement=placement)
        with pytest.raises(es.errors.PlanError, match=message):
            query.numpy()


# ------------------------------------------------------------------------------------------------------------- floats

FLOAT_TEXTS = (
    "SELECT a.i, b.k, SUM(a.val * b.val) AS val FROM A a JOIN B b ON a.j = b.j GROUP BY a.i, b.k",
    "SELECT a.i, SUM(EXP(a.val) / (1 + b.val * b.val)) AS val FROM A a JOIN B b ON a.j = b.j GROUP BY a.i",
    "SELECT a.i, MAX(a.val - b.val) AS val FROM A a JOIN B b ON a.j = b.j GROUP BY a.i",
    "WITH n AS (SELECT i, SQRT(SUM(val * val)) AS val FROM A GROUP BY i)"
    " SELECT a.i, a.j, a.val / n.val AS val FROM A a JOIN n ON a.i = n.i",
    "SELECT i, PRODUCT(val) AS val FROM A GROUP BY i",
)


def float_relations(db: es.Session, dtype: str) -> None:
    rng = np.random.default_rng(11)
    db.create("A", rng.standard_normal((7, 33)).astype(dtype), labels="i j")
    db.create("B", (rng.standard_normal((33, 5)) * 1e3).astype(dtype), labels="j k", tile={"j": 8})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("text", FLOAT_TEXTS)
def test_floats_stay_within_the_bound_of_the_reference(text: str, dtype: str, engine: str) -> None:
    """c * n * eps times the graph on absolute values, computed by the reference interpreter beside every value."""
    with es.connect() as db:
        float_relations(db, dtype)
        for parts in ({}, {"i": 2}, {"j": 5}):
            query = db.sql(text, engine=engine, parts=parts)
            total = evaluate(query.graph, {name: to_dense(r.batch) for name, r in query.relations.items()})
            off, bound = np.abs(query.numpy().astype(float) - total.values), 4 * total.bound
            assert query.numpy().dtype == dtype
            assert np.all(bound > 0) or "MAX" in text
            assert np.all(off <= bound), f"off by {off.max()}, bound {bound[off > bound]}"


@pytest.mark.parametrize("text", FLOAT_TEXTS[:2])
def test_the_same_program_gives_the_same_bits(text: str) -> None:
    """Law 8: twenty runs on two devices, with partial sums that meet in an exchange."""
    with es.connect() as db:
        float_relations(db, "float32")
        query = db.sql(text, engine="host:2", parts={"j": 4}, placement={"e1": "Sharded(j)"})
        assert query.plan.exchanges > 0
        assert len({query.run().numpy().tobytes() for _ in range(20)}) == 1
