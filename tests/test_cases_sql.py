"""Public faults of SQL engines, of Arrow interchange and of dialects, as cases; einsums beside them where they fit."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import einsql as es
from einsql.query import Query
from tests.engines import Run, everywhere


def rows_of(query: Query) -> list[tuple[Any, ...]]:
    return sorted(zip(*query.arrow().to_pydict().values(), strict=True))


# ------------------------------------------------------------------------------------------- names, chains, keys, SQL


@everywhere
def test_g12_labels_that_differ_in_case_only(db: es.Session, run: Run) -> None:
    """Neither merged nor renamed: in einsum strings, in quoted SQL, and as column names of the result."""
    db.create("N", [[1, 2], [3, 4]], labels="i I", **run.cut("i I"))
    by_einsum = db.einsum("iI->I", "N", **run("i I"))
    by_sql = db.sql('SELECT "I", SUM(val) AS val FROM N GROUP BY "I"', **run("i I"))
    for query in (by_einsum, by_sql):
        assert query.numpy().tolist() == [4, 6]
        assert query.arrow().column_names == ["I", "val"]
    assert db.einsum("iI->i", "N", **run("i I")).numpy().tolist() == [3, 7]
    assert db.sql('SELECT "i", SUM(val) AS val FROM N GROUP BY "i"', **run("i I")).numpy().tolist() == [3, 7]
    assert db.einsum("iI->Ii", "N", **run("i I")).numpy().tolist() == [[1, 3], [2, 4]]
    assert db.sql('SELECT "I", "i", val FROM N', **run("i I")).numpy().tolist() == [[1, 3], [2, 4]]
    assert db.einsum("ii->i", "N", **run("i")).numpy().tolist() == [1, 4]


@everywhere
def test_g12_a_join_over_labels_that_differ_in_case_only(db: es.Session, run: Run) -> None:
    """Both labels live in one join, and a third spelling in the answer; words as well as letters."""
    db.create("N", [[1, 2], [3, 4]], labels="i I", **run.cut("i I"))
    db.create("W", [[1, 2], [3, 4]], labels="src SRC", **run.cut("src SRC"))
    text = 'SELECT a."i", b."I", SUM(a.val * b.val) AS val FROM N a JOIN N b ON a."I" = b."i" GROUP BY a."i", b."I"'
    assert db.sql(text, **run("i I")).numpy().tolist() == [[7, 10], [15, 22]]
    assert db.einsum("aA,Ab->ab", "N", "N", **run("a A b")).numpy().tolist() == [[7, 10], [15, 22]]
    query = db.einsum("[src SRC],[SRC Src]->[Src src]", "W", "N", **run("src SRC Src"))
    assert query.numpy().tolist() == [[7, 15], [10, 22]]
    assert query.arrow().column_names == ["Src", "src", "val"]
    assert query.to_table("saved").labels == ("Src", "src")
    saved = db.sql('SELECT "src", SUM(val) AS val FROM saved GROUP BY "src"', **run("src Src"))
    assert saved.numpy().tolist() == [17, 37]


@everywhere
def test_g12_relations_that_differ_in_case_only(db: es.Session, run: Run) -> None:
    """Both are kept, in one query too; an unquoted name that fits both is an error."""
    db.create("T", [1, 2], labels="i", **run.cut("i"))
    db.create("t", [10, 20], labels="i")
    assert db.einsum("i,i->i", "T", "t", **run("i")).numpy().tolist() == [10, 40]
    query = db.sql('SELECT a.i, a.val - b.val AS val FROM "T" a JOIN "t" b ON a.i = b.i', **run("i"))
    assert query.numpy().tolist() == [-9, -18]
    with pytest.raises(es.errors.SqlError, match="quote"):
        db.sql("SELECT i, val FROM T", **run("i"))
    db.create("N", [[1, 2], [3, 4]], labels="i I")
    with pytest.raises(es.errors.SqlError, match="quote"):
        db.sql("SELECT i, SUM(val) AS val FROM N GROUP BY i", **run("i I"))


def chained(times: int, pair: str) -> str:
    """c0 is A, and every following table reads the previous one through `pair`, twice or beside A."""
    text = "WITH c0 AS (SELECT i, j, val FROM A)"
    for n in range(times):
        text += f", c{n + 1} AS (SELECT a.i, b.j, SUM(a.val * b.val) AS val FROM {pair.format(c=f'c{n}')}"
        text += " ON a.j = b.i GROUP BY a.i, b.j)"
    return f"{text} SELECT i, j, val FROM c{times}"


@everywhere
@pytest.mark.parametrize("matrix", [[[1, 1], [0, 1]], [[1, 3], [0, 1]], [[0, 1], [1, 0]]])
def test_g13_twenty_squarings(db: es.Session, run: Run, matrix: list[list[int]]) -> None:
    """Each step reads the previous one twice; work that doubled with every step would not end."""
    power = np.linalg.matrix_power(np.array(matrix), 2**20).tolist()
    db.create("A", matrix, labels="i j", **run.cut("i j"))
    query: Any = "A"
    for _ in range(20):
        query = db.einsum("ij,jk->ik", query, query, **run("i j k"))
    assert query.numpy().tolist() == power
    assert db.sql(chained(20, "{c} a JOIN {c} b"), **run("i j")).numpy().tolist() == power


LONG_RUNS = [
    ("reference", {}),
    ("host:1", {}),
    ("host:4", {"parts": {"x0": 2, "x1": 2, "x450": 2, "i": 2, "j": 2}}),
    ("duckdb", {"tile": {"x0": 1, "x900": 1, "i": 1}}),
]


def only(cut: dict[str, dict[str, int]], labels: str) -> dict[str, dict[str, int]]:
    return {how: {label: n for label, n in cuts.items() if label[0] in labels} for how, cuts in cut.items()}


@pytest.mark.parametrize(("engine", "cut"), LONG_RUNS, ids=str)
def test_g13_a_chain_of_900_products(db: es.Session, engine: str, cut: dict[str, dict[str, int]]) -> None:
    """901 operands in one einsum, some of its 902 labels cut."""
    words = ",".join(f"[x{n} x{n + 1}]" for n in range(901)) + "->[x0 x901]"
    query = db.einsum(words, *[[[1, 1], [0, 1]]] * 901, engine=engine, **only(cut, "x"))
    assert query.numpy().tolist() == [[1, 901], [0, 1]]


def test_g13_a_chain_of_900_products_as_whole_numbers(db: es.Session) -> None:
    """The list form of the same, over a quarter turn: 901 of them are one."""
    turn = [[0, 1], [-1, 0]]
    listed = itertools.chain(*((turn, [n, n + 1]) for n in range(901)))
    assert db.einsum(*listed, [0, 901]).numpy().tolist() == turn


@pytest.mark.parametrize(("engine", "cut"), LONG_RUNS, ids=str)
def test_g13_a_chain_of_900_tables(db: es.Session, engine: str, cut: dict[str, dict[str, int]]) -> None:
    """900 WITH clauses, each reading the one before and A."""
    db.create("A", [[1, 1], [0, 1]], labels="i j")
    query = db.sql(chained(900, "{c} a JOIN A b"), engine=engine, **only(cut, "ij"))
    assert query.numpy().tolist() == [[1, 901], [0, 1]]


@everywhere
def test_g14_a_key_of_several_columns_joins_in_any_order_of_rows(db: es.Session, run: Run) -> None:
    """A key of two numbers is two labels. Three rows self-joined on both match three times, on the first five times."""
    count = "SELECT COUNT(*) AS val FROM K a JOIN K b ON"
    for order in itertools.permutations(range(3)):
        p, q, val = ([column[i] for i in order] for column in ([7, 9, 7], [8, 9, 9], [2, 3, 5]))
        db.create("K", {"p": p, "q": q, "val": val}, labels="p=10 q=10", replace=True, **run.cut("p q"))
        product = "SELECT a.p, a.q, a.val * b.val AS val FROM K a JOIN K b ON a.p = b.p AND a.q = b.q"
        assert rows_of(db.sql(product, **run("p q"))) == [(7, 8, 4), (7, 9, 25), (9, 9, 9)]
        assert db.sql(f"{count} a.p = b.p AND a.q = b.q", **run("p q")).numpy() == 3
        assert db.sql(f"{count} a.p = b.p", **run("p q")).numpy() == 5
        assert db.sql(f"{count} a.p = b.q", **run("p q")).numpy() == 2
        assert db.einsum("pq,pq->", "K", "K", **run("p q")).numpy() == 38


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_g14_a_null_key_is_refused_wherever_it_stands(db: es.Session, order: tuple[int, ...]) -> None:
    """Column and row are named, and nothing is stored. Nothing runs, so there is no engine and no cut."""
    for label, other in (("p", "q"), ("q", "p")):
        rows = {label: [[None, 7, 9][i] for i in order], other: [1, 2, 3], "val": [1, 2, 3]}
        with pytest.raises(es.errors.DataError, match=rf"'{label}'.*NULL.*row {order.index(0)}\b"):
            db.create("K", rows, labels="p q")
    with pytest.raises(es.errors.EinsqlError, match="'key'"):
        db.create("K", {"key": [[None, [7, 8], [9, 9]][i] for i in order], "val": [1, 2, 3]}, labels="key")
    assert db.relations() == []


@everywhere
@pytest.mark.parametrize("rows", [5000, 4096, 2049])
def test_g17_more_rows_than_one_vector_of_duckdb(db: es.Session, run: Run, rows: int) -> None:
    """A map, a product with a constant relation and a sum over blocks, one block a row: chunks of 2,048 and a rest."""
    t = np.arange(float(rows))
    db.create("T", np.stack([t, -t], axis=1), labels="t c", tile={"t": 1})
    db.create("two", np.float64(2), labels="")
    want = rows * (rows - 1.0)
    assert rows != 5000 or want == 24_995_000
    cut = run("t")
    doubled = "WITH d AS (SELECT t, c, val * 2.0 AS val FROM T) SELECT c, SUM(val) AS val FROM d GROUP BY c"
    assert db.sql(doubled, **cut).numpy().tolist() == [want, -want]
    by_relation = "SELECT a.c, SUM(a.val * b.val) AS val FROM T a CROSS JOIN two b GROUP BY a.c"
    assert db.sql(by_relation, **cut).numpy().tolist() == [want, -want]
    each = db.einsum("tc,->tc", "T", "two", **cut).numpy()
    assert each.tolist() == np.stack([2 * t, -2 * t], axis=1).tolist()
    assert db.einsum("tc,tc->c", "T", "T", **cut).numpy().tolist() == [float(t @ t)] * 2


@everywhere
@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.n, a.i, a.val FROM a JOIN g ON a.i = g.i",
        "SELECT a.n, a.i, a.val + 0 * g.val AS val FROM a JOIN g ON a.i = g.i",
        "SELECT n, a.i, a.val * (g.val - g.val + 1) AS val FROM g JOIN a USING (i)",
    ],
)
def test_g18_a_table_still_needed_by_a_join_keeps_its_columns(db: es.Session, run: Run, text: str) -> None:
    """One table read twice, the second time through a group of which only the key is used."""
    db.create("t", {"n": [0, 1, 2], "i": [1, 1, 2], "val": [5, 6, 7]}, labels="n=3 i=3", **run.cut("n i"))
    tables = "WITH a AS (SELECT n, i, val FROM t), g AS (SELECT i, COUNT(*) AS val FROM a GROUP BY i)"
    assert rows_of(db.sql(f"{tables} {text}", **run("n i"))) == [(0, 1, 5), (1, 1, 6), (2, 2, 7)]


@everywhere
@pytest.mark.parametrize("at", [[1], [0], [2, 0, 1, 1, 2], []])
def test_g19_a_look_up_at_an_offset_from_a_column_counts_from_zero(db: es.Session, run: Run, at: list[int]) -> None:
    """A value of one relation is a label of another: a vector, rows of a table, and a weighted sum of rows."""
    db.create("at", np.array(at, np.int64), labels="n", **run.cut("n"))
    db.create("v", [10, 20, 30], labels="i", **run.cut("i"))
    rows = np.array([[1, 2], [3, 4], [5, 6]])
    db.create("table", rows, labels="i d", **run.cut("i d"))
    one = db.sql("SELECT at.n, v.val FROM at JOIN v ON at.val = v.i", **run("n i"))
    assert one.numpy().tolist() == [[10, 20, 30][i] for i in at]
    rows_read = db.sql('SELECT at.n, e.d, e.val FROM at JOIN "table" e ON at.val = e.i', **run("n i d"))
    assert rows_read.numpy().tolist() == rows[at].tolist()
    total = 'SELECT e.d, SUM(e.val) AS val FROM at JOIN "table" e ON at.val = e.i GROUP BY e.d'
    expected = list(enumerate(rows[at].sum(axis=0).tolist())) if at else []
    assert rows_of(db.sql(total, **run("n i d"))) == expected


@everywhere
def test_g19_an_offset_outside_the_table_finds_nothing(db: es.Session, run: Run) -> None:
    """As in a join of plain tables: -1 is not the last row, 3 not the third."""
    db.create("at", [-1, 3, 2], labels="n", **run.cut("n"))
    db.create("v", [10, 20, 30], labels="i", **run.cut("i"))
    assert rows_of(db.sql("SELECT at.n, v.val FROM at JOIN v ON at.val = v.i", **run("n i"))) == [(2, 30)]


# -------------------------------------------------------------------------------------------------------------- Arrow


def tensors(blocks: np.ndarray) -> pa.Array:
    """One tensor per row."""
    return pa.FixedShapeTensorArray.from_numpy_ndarray(np.ascontiguousarray(blocks))


SLICES = {
    "table": lambda table: table.slice(1, 2),
    "record batch": lambda table: table.combine_chunks().to_batches()[0].slice(1, 2),
    "reader of slices": lambda table: pa.RecordBatchReader.from_batches(
        table.schema, [batch.slice(1, 2) for batch in table.combine_chunks().to_batches()]
    ),
    "two chunks": lambda table: pa.concat_tables([table.slice(1, 1), table.slice(2, 1)]),
    "slice of a slice": lambda table: table.slice(1).slice(0, 3).slice(0, 2),
}


@everywhere
@pytest.mark.parametrize("how", SLICES)
def test_g15_a_sliced_table_is_read_from_its_offset(db: es.Session, run: Run, how: str) -> None:
    """Rows 1 and 2 of four, for the labels and for the values; booleans are packed eight to a byte."""
    for values in (
        np.array([1, 2, 3, 4]),
        np.float32([1, 2, 3, 4]),
        np.int8([1, 2, 3, 4]),
        np.array([0, 1, 0, 1], bool),
    ):
        table = pa.table({"i": pa.array([9, 0, 1, 9]), "val": pa.array(values)})
        db.create("S", SLICES[how](table), labels="i=2", replace=True, **run.cut("i"))
        assert db.einsum("i->i", "S", **run("i")).numpy().tolist() == values[1:3].tolist()


@everywhere
@pytest.mark.parametrize("how", SLICES)
def test_g15_a_sliced_column_of_tensors_is_read_from_its_offset(db: es.Session, run: Run, how: str) -> None:
    """Tensors [0, 1], [2, 3], [4, 5], [6, 7] from 1 to 2, and the same as 2 x 1 blocks."""
    for shape, labels in (((2,), "n j"), ((2, 1), "n j k")):
        blocks = tensors(np.arange(8).reshape(4, *shape))
        table = pa.table({"n": pa.array([7, 0, 1, 7]), "val": blocks})
        db.create("S", SLICES[how](table), labels=labels, replace=True)
        assert db.relation("S").numpy().reshape(2, 2).tolist() == [[2, 3], [4, 5]]
        text = "nj->nj" if labels == "n j" else "njk->nj"
        assert db.einsum(text, "S", **run("n j")).numpy().tolist() == [[2, 3], [4, 5]]


def test_g15_a_sliced_array_is_read_from_its_offset(db: es.Session) -> None:
    """A slice of NumPy memory, and of an Arrow array that NumPy views. Nothing runs, so there is nothing to cut."""
    long = np.arange(8).reshape(4, 2)
    assert db.create("a", long[1:3]).numpy().tolist() == [[2, 3], [4, 5]]
    assert db.create("b", pa.array([9, 1, 2, 9]).slice(1, 2).to_numpy()).numpy().tolist() == [1, 2]
    assert db.create(
        "c", {"i": pa.array([5, 0, 1]).slice(1), "val": pa.array([5, 6, 7]).slice(1)}, labels="i"
    ).numpy().tolist() == [6, 7]


TENSORS = np.arange(1, 13).reshape(2, 2, 3)


@everywhere
def test_g16_a_tensor_column_keeps_type_and_shape(db: es.Session, run: Run) -> None:
    """Two 2 x 3 tensors, filtered to one by SQL and transposed; blocks come out as Arrow's own tensor type."""
    table = pa.table({"n": [0, 1], "val": tensors(TENSORS)})
    assert db.create("T", table, labels="n i j").shape == (2, 2, 3)
    assert db.relation("T").numpy().tolist() == TENSORS.tolist()
    first = db.sql("SELECT n, i, j, val FROM T WHERE n = 0", **run("n i j"))
    assert rows_of(first) == [(0, i, j, TENSORS[0, i, j]) for i in range(2) for j in range(3)]
    first.to_table("first")
    turned = db.einsum("nij->ji", "first", **run("n i j"))
    assert turned.numpy().tolist() == [[1, 4], [2, 5], [3, 6]]
    assert db.sql("SELECT j, i, val FROM T WHERE n = 1", **run("n i j")).numpy().tolist() == TENSORS[1].T.tolist()


@pytest.mark.parametrize("engine", ["host:1", "host:4", "duckdb"])
def test_g16_blocks_come_out_as_tensors(db: es.Session, engine: str) -> None:
    """One row per block, of Arrow's tensor type with its shape; filtered by Arrow and stored again it is the same."""
    db.create("T", pa.table({"n": [0, 1], "val": tensors(TENSORS)}), labels="n i j")
    for parts in ({"n": 2, "i": 1, "j": 1}, {"n": 2, "i": 2, "j": 1}, {"n": 2, "i": 1, "j": 3}):
        out = db.einsum("nij->nji", "T", engine=engine, parts=parts).arrow(blocks=True)
        kind = out.schema.field("val").type
        assert isinstance(kind, pa.FixedShapeTensorType)
        assert out.num_rows == np.prod(list(parts.values())) and np.prod(kind.shape) * out.num_rows == 12
        kept = out.filter(pc.equal(out["n"], 0))
        assert kept.schema.field("val").type == kind
        db.create("back", kept, labels="n j i", replace=True)
        assert db.einsum("nji->ij", "back", engine=engine).numpy().tolist() == TENSORS[0].tolist()


@everywhere
@pytest.mark.parametrize("permutation", [[0, 1], [1, 0], [2, 0, 1], [0, 2, 1]], ids=str)
def test_g16_a_permuted_tensor_comes_back_in_logical_order(db: es.Session, run: Run, permutation: list[int]) -> None:
    """Stored with its axes in another order, a tensor is read in the order that the permutation says."""
    logical = np.arange(12 if len(permutation) == 2 else 48).reshape(2, *(2, 3, 4)[: len(permutation)])
    stored = logical.transpose(0, *(1 + np.argsort(permutation)))
    kind = pa.fixed_shape_tensor(pa.int64(), stored.shape[1:], permutation=permutation)
    flat = pa.FixedSizeListArray.from_arrays(pa.array(stored.ravel()), stored[0].size)
    column = pa.ExtensionArray.from_storage(kind, flat)
    if permutation != [2, 0, 1]:  # pyarrow 26 reads beyond its buffer there
        assert column.to_numpy_ndarray().tolist() == logical.tolist()
    labels = "ijk"[: len(permutation)]
    db.create("T", pa.table({"n": [0, 1], "val": column}), labels=f"n {' '.join(labels)}")
    assert db.relation("T").numpy().tolist() == logical.tolist()
    query = db.einsum(f"n{labels}->{labels}n", "T", **run(f"n {' '.join(labels)}"))
    assert query.numpy().tolist() == np.moveaxis(logical, 0, -1).tolist()


def stream(columns: Mapping[str, Any], at: int = 1) -> pa.RecordBatchReader:
    """A reader of two batches that can be read once."""
    table = pa.table(dict(columns))
    return pa.RecordBatchReader.from_batches(
        table.schema, [*table.slice(0, at).to_batches(), *table.slice(at).to_batches()]
    )


@everywhere
@pytest.mark.parametrize(
    ("columns", "square"),
    [
        ({"i": [0, 1], "val": [3, 4]}, 25),
        ({"i": [2, 0, 5], "val": [1.0, -2.0, 0.5]}, 5.25),
        ({"i": [1, 0], "weight": [3, 4]}, 25),
        ({"i": [0, 3]}, 2),
    ],
)
def test_g34_a_one_shot_stream_is_read_once(db: es.Session, run: Run, columns: dict[str, Any], square: float) -> None:
    """Stored under a name, it serves both operands, several queries, and SQL."""
    db.create("R", stream(columns), labels="i", **run.cut("i"))
    for _ in range(2):
        assert db.einsum("i,i->", "R", "R", **run("i")).numpy() == square
        query = db.sql("SELECT SUM(a.val * b.val) AS val FROM R a JOIN R b ON a.i = b.i", **run("i"))
        assert query.numpy() == square


@everywhere
def test_g34_a_stream_as_operand_is_never_empty(db: es.Session, run: Run) -> None:
    """Given twice without a name: 25 or a refusal before running, but neither 0 nor NULL; likewise when spent."""
    reader = stream({"i": [0, 1], "val": [3, 4]})
    try:
        answer = db.einsum("i,i->", reader, reader, **run("i")).numpy()
    except es.errors.EinsqlError as refusal:
        assert str(refusal)
    else:
        assert answer == 25
    spent = stream({"i": [0, 1], "val": [3, 4]})
    spent.read_all()
    with pytest.raises(es.errors.EinsqlError):
        db.create("R", spent, labels="i=2", dense=True)


@everywhere
@pytest.mark.parametrize("extent", [1, 2])
def test_g04_a_join_over_other_extents_is_refused(db: es.Session, run: Run, extent: int) -> None:
    """SQL stretches nothing and never answers 10: the label and both extents are named; stated alike, cells join."""
    db.create("A", [2, 3, 4], labels="i", **run.cut("i"))
    db.create("B", [5, 6][:extent], labels="i", **run.cut("i"))
    text = "SELECT SUM(A.val * B.val) AS val FROM A JOIN B ON A.i = B.i"
    with pytest.raises(es.errors.ShapeError, match=rf"'i' has extent 3 in A but {extent} in B"):
        db.sql(text, **run("i"))
    db.create("B", {"i": [0], "val": [5]}, labels="i=3", replace=True, **run.cut("i"))
    assert db.sql(text, **run("i")).numpy() == 10
