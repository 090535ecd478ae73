"""Relations: what `create` takes and refuses, and the ways back out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse

import einsql as es
from gpu_exec.kernels.dtype import numpy_dtype
from planner.dtypes import DTYPES, dtype_named

Array = np.ndarray


@pytest.fixture
def db() -> Iterator[es.Session]:
    with es.connect() as session:
        yield session


def table_of(relation: es.Relation) -> dict[str, list[Any]]:
    return relation.arrow().to_pydict()


# ------------------------------------------------------------------------------------------------------------ create


@pytest.mark.parametrize("dtype", ["bool", "int64", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 0, 2), (1, 2, 1, 2)])
def test_a_dense_array_comes_back(db: es.Session, dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    relation = db.create("A", array)
    assert relation.labels == tuple("ijkl"[: len(shape)])
    assert relation.shape == shape
    back = relation.numpy()
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize(
    ("dtype", "stored"),
    [
        ("int8", "int8"), ("int16", "int16"), ("int32", "int32"), ("int64", "int64"), ("uint8", "uint8"),
        ("uint16", "int32"), ("uint32", "int64"), (">i4", "int32"), (">u2", "int32"),
    ],
)  # fmt: skip
def test_integers_keep_their_dtype_or_one_that_holds_them(db: es.Session, dtype: str, stored: str) -> None:
    limits = np.iinfo(dtype)
    relation = db.create("A", np.array([limits.min, limits.max], dtype))
    assert relation.numpy().dtype == stored
    assert relation.numpy().tolist() == [limits.min, limits.max]


def test_uint64_becomes_int64_where_it_fits(db: es.Session) -> None:
    assert db.create("A", np.array([2**63 - 1], "uint64")).numpy().tolist() == [2**63 - 1]
    with pytest.raises(es.errors.DataError, match=r"B holds 9223372036854775808, which int64 cannot hold"):
        db.create("B", np.array([2**63], "uint64"))
    assert db.relations() == ["A"]


@pytest.mark.parametrize("array", [np.zeros(2, np.longdouble), np.array(["a"]), np.array([None])])
def test_other_dtypes_are_refused(db: es.Session, array: Array) -> None:
    with pytest.raises(es.errors.UnsupportedError, match=rf"A has dtype {array.dtype}; supported are bool, uint8"):
        db.create("A", array)
    assert db.relations() == []


def test_cells_that_a_numpy_mask_hides_are_absent(db: es.Session) -> None:
    array = np.ma.masked_array([[1, 2], [3, 4]], [[False, True], [False, False]])
    relation = db.create("A", array, fill=9)
    assert table_of(relation)["val"] == [1, 3, 4]
    assert relation.numpy().tolist() == [[1, 9], [3, 4]]


def test_another_relation_and_a_query(db: es.Session) -> None:
    """Under other labels and cuts; absent cells stay absent and keep their fill."""
    first = db.create("A", {"i": [1, 2], "val": [5.0, 6.0]}, labels="i=4", fill=-1)
    again = db.create("B", first, labels="t", parts={"t": 2})
    assert (again.labels, again.type.counts) == (("t",), (2,))
    assert again.numpy().tolist() == [-1, 5, 6, -1]
    assert db.create("C", db.einsum("i->i", "A", combine="x0 * 2")).numpy().tolist() == [-2, 10, 12, -2]
    assert db.einsum("i->", first).numpy() == 9
    with pytest.raises(es.errors.ShapeError, match=r"D has 1 axes, shape .4,., but 2 labels"):
        db.create("D", first, labels="t u")


def test_the_database_keeps_its_own_copy(db: es.Session) -> None:
    array = np.arange(6.0).reshape(2, 3)
    relation = db.create("A", array)
    array[0, 0] = 99
    assert relation.numpy()[0, 0] == 0


@pytest.mark.parametrize("parts", [{}, {"i": 2}])
def test_results_cannot_be_written_into_the_database(db: es.Session, parts: dict[str, int]) -> None:
    """An array that comes out may be what the database holds, so it is read-only, however the relation is cut."""
    db.create("A", np.zeros((2, 2)), parts=parts)
    for array in (
        db.relation("A").numpy(),
        db.sql("SELECT i, j, val FROM A").numpy(),
        db.einsum("ij->ij", "A").numpy(),
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1
    assert not db.relation("A").numpy().any()


@pytest.mark.parametrize("kind", [dict, pa.table])
def test_a_table_of_cells(db: es.Session, kind: Any) -> None:
    """Rows in any order; extents are the largest coordinate and one more, unless stated."""
    rows = kind({"dst": [2, 0, 1], "w": [1.5, 2.5, 3.5], "src": [1, 0, 0]})
    relation = db.create("E", rows, labels="src dst=4")
    assert relation.shape == (2, 4)
    assert table_of(relation) == {"src": [0, 0, 1], "dst": [0, 1, 2], "w": [2.5, 3.5, 1.5]}
    np.testing.assert_array_equal(relation.numpy(), [[2.5, 3.5, 0, 0], [0, 0, 1.5, 0]])


def test_a_table_without_values_is_worth_one_per_row(db: es.Session) -> None:
    relation = db.create("E", {"src": [0, 1], "dst": [1, 0]}, labels="src dst")
    assert relation.numpy().tolist() == [[0, 1], [1, 0]]
    assert relation.type.dtype.name == "int64"


def test_booleans_and_floats_from_arrow(db: es.Session) -> None:
    yes = pa.table({"i": [0, 1], "val": [True, False]})
    assert db.create("Y", yes, labels="i=3").numpy().tolist() == [True, False, False]
    single = pa.table({"i": pa.array([1], pa.int32()), "val": pa.array([0.5], pa.float32())})
    assert db.create("S", single, labels="i").numpy().dtype == np.float32


@pytest.mark.parametrize("matrix", [scipy.sparse.coo_array, scipy.sparse.csr_array, scipy.sparse.csc_matrix])
def test_scipy_matrices(db: es.Session, matrix: Any) -> None:
    dense = np.array([[0.0, 2.0, 0.0], [3.0, 0.0, 0.0]])
    relation = db.create("G", matrix(dense), labels="src dst")
    assert len(relation.arrow()) == 2
    np.testing.assert_array_equal(relation.numpy(), dense)
    back = relation.scipy()
    assert back.shape == (2, 3)
    np.testing.assert_array_equal(back.toarray(), dense)


def test_scipy_of_one_label_and_no_other_rank(db: es.Session) -> None:
    assert db.create("V", {"i": [2], "val": [7]}, labels="i=4").scipy().toarray().tolist() == [0, 0, 7, 0]
    with pytest.raises(es.errors.UnsupportedError, match=r"scipy holds 1 or 2 labels, T has 3; take \.arrow\(\)"):
        db.create("T", np.zeros((1, 1, 1))).scipy()


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ("i j", ("i", "j")),
        ("ij", ("i", "j")),
        (["row", "col"], ("row", "col")),
        ("i=2 j=3", ("i", "j")),
        ("i I", ("i", "I")),
    ],
)
def test_ways_to_write_labels(db: es.Session, labels: Any, names: tuple[str, ...]) -> None:
    assert db.create("A", np.zeros((2, 3)), labels=labels).labels == names


# ---------------------------------------------------------------------------------------------------------- refusals

CELLS = {"i": [0, 1, 0, 0], "j": [1, 1, 1, 1], "val": [5, 6, 7, 8]}


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (CELLS, {"labels": "i j"}, r"2 duplicate coordinates in A, the first \(i=0, j=1\) with values 5 and 7"),
        ({"i": [0, None], "val": [1, 2]}, {"labels": "i"}, r"column 'i' of A holds 1 NULL, the first in row 1"),
        ({"i": [0, 1], "val": [None, 2]}, {"labels": "i"}, r"column 'val' of A holds 1 NULL, the first in row 0"),
        ({"i": [0, 5], "val": [1, 2]}, {"labels": "i=3"}, r"label 'i' of A holds 5 in row 1, outside its extent 3"),
        ({"i": [0, -1], "val": [1, 2]}, {"labels": "i=3"}, r"label 'i' of A holds -1 in row 1; coordinates start at 0"),
        (
            {"i": [0, 2], "val": [1, 2]},
            {"labels": "i=3", "dense": True},
            r"declared dense, but 1 of 3 cells are missing, the first \(i=1\)",
        ),
    ],
)
def test_rows_that_are_no_relation(db: es.Session, data: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(es.errors.DataError, match=message):
        db.create("A", data, **options)
    assert db.relations() == []


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (np.zeros((2, 3)), {"labels": "i j k"}, r"A has 2 axes, shape \(2, 3\), but 3 labels: i j k"),
        (np.zeros((2, 3)), {"labels": "i=2 j=4"}, r"label 'j' of A is stated as 4, but the array has 3"),
        (scipy.sparse.eye_array(2), {"labels": "i=3 j"}, r"label 'i' of A is stated as 3, but the matrix has 2"),
        (np.zeros((2, 3)), {"labels": "i i"}, r"labels must be distinct, got i i"),
        (np.zeros(2), {"labels": "val"}, r"a label cannot be called 'val'"),
        (np.zeros(2), {"labels": "i=x"}, r"cannot read the label 'i=x'; written like 'src', 'src=34' or 'src:person'"),
        (np.zeros(2), {"labels": "i:"}, r"cannot read the label 'i:'"),
        (np.zeros(2), {"labels": "i:city"}, r"names the domain 'city', which is not there; tables make them"),
        (np.zeros(2), {"labels": ["a b"]}, r"cannot read the label 'a b'"),
        ({"i": [0]}, {}, r"say which columns of A are labels"),
        ({"i": [0]}, {"labels": "j"}, r"A has no column 'j'; its columns are i"),
        (
            {"source": [0]},
            {"labels": "sorce"},
            r"A has no column 'sorce'; its columns are source; did you mean 'source'",
        ),
        ({"i": [0], "val": [1]}, {"labels": "i", "val": "w"}, r"A has no column 'w'; its columns are i, val"),
        ({"i": [0], "a": [1], "b": [1]}, {"labels": "i"}, r"say which column of A holds the values, as in val='a'"),
        (np.zeros(2), {"parts": {"k": 2}}, r"parts or tile name label 'k'; the relation has i"),
        (np.zeros(2), {"duplicates": "first"}, r"duplicates is 'refuse' or 'sum', got 'first'"),
        (np.zeros(2, int), {"fill": 0.5}, r"A holds int64, which has no value 0.5 for fill"),
        (np.zeros(2, int), {"fill": float("nan")}, r"A holds int64, which has no value nan for fill"),
        (np.zeros(2, bool), {"fill": 2}, r"A holds bool, which has no value 2 for fill"),
    ],
)
def test_shapes_and_names_that_disagree(db: es.Session, data: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(es.errors.ShapeError, match=message):
        db.create("A", data, **options)
    assert db.relations() == []


def test_types_that_label_or_value_nothing(db: es.Session) -> None:
    with pytest.raises(
        es.errors.UnsupportedError, match="label 'i' of A has type double; labels are integers, strings"
    ):
        db.create("A", {"i": [0.5], "val": [1]}, labels="i")
    with pytest.raises(es.errors.UnsupportedError, match="column 'val' of A has type string; values are booleans"):
        db.create("A", {"i": [0], "val": ["x"]}, labels="i")
    assert db.relations() == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"i": [0, 1, 2], "val": [1, 2]}, "the columns of A are of unequal length: i 3, val 2"),
        ({"i": [0, "x"], "val": [1, 2]}, "cannot read column 'i' of A: "),
        ({"i": [2**70], "val": [2]}, "cannot read column 'i' of A: "),
        ({0: [0]}, "the columns of A are called by words, got 0"),
        ({"i": np.array(3)}, "column 'i' of A is a single number"),
        (pa.table([[0], [1], [2]], names=["i", "i", "val"]), "A has two columns 'i'; rename one"),
        (object(), "A has dtype object"),
        ([[1, 2], [3]], "cannot make A from a list: "),
    ],
)
def test_data_that_is_no_table_and_no_array(db: es.Session, data: Any, message: str) -> None:
    with pytest.raises(es.errors.EinsqlError, match=message):
        db.create("A", data, labels="i")
    assert db.relations() == []


def test_duplicates_add_up_when_asked(db: es.Session) -> None:
    relation = db.create("A", CELLS, labels="i j", duplicates="sum")
    assert table_of(relation) == {"i": [0, 1], "j": [1, 1], "val": [20, 6]}
    assert db.create("B", {"i": [0, 0], "val": [True, True]}, labels="i", duplicates="sum").numpy().tolist() == [True]
    with pytest.raises(OverflowError, match="9223372036854775808, which int64 cannot hold"):
        db.create("C", {"i": [0, 0], "val": [2**62, 2**62]}, labels="i", duplicates="sum")
    assert db.relations() == ["A", "B"]


@pytest.mark.parametrize("dtype", [d.name for d in DTYPES if d.name != "bool"])
def test_duplicates_add_up_in_their_dtype(db: es.Session, dtype: str) -> None:
    values = np.array([1, 2, 4, 8], numpy_dtype(dtype_named(dtype)))
    relation = db.create("A", {"i": [1, 0, 1, 1], "val": values}, labels="i", duplicates="sum")
    assert relation.numpy().dtype == values.dtype
    assert relation.numpy().tolist() == [2, 13]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32"])
def test_sums_of_narrow_duplicates_do_not_wrap(db: es.Session, dtype: str) -> None:
    top = int(np.iinfo(dtype).max)
    rows = {"i": [0, 0], "val": np.array([top, 1], dtype)}
    with pytest.raises(OverflowError, match=f"duplicates in A add up to {top + 1}, which {dtype} cannot hold"):
        db.create("A", rows, labels="i", duplicates="sum")
    fits = {"i": [0, 0, 0], "val": np.array([top, -1 if dtype != "uint8" else 0, 0], dtype)}
    assert db.create("B", fits, labels="i", duplicates="sum").numpy().dtype == dtype


def test_a_grid_that_int64_cannot_number(db: es.Session) -> None:
    rows = {label: [2**31 - 1, 0] for label in "abc"}
    with pytest.raises(es.errors.UnsupportedError, match="too large to number"):
        db.create("A", rows, labels="a b c")
    assert db.relations() == []


# ------------------------------------------------------------------------------------------------- storage, presence


@pytest.mark.parametrize(
    "options",
    [{}, {"parts": {"i": 3}}, {"parts": {"i": 3, "j": 2}}, {"tile": {"i": 3}}, {"tile": {"i": 2}, "parts": {"j": 5}}],
)
@pytest.mark.parametrize("density", [0.0, 0.4, 1.0])
def test_ragged_storage_holds_the_same_cells(db: es.Session, density: float, options: dict[str, Any]) -> None:
    """7 x 5 cut in 3 and 2 parts, or tiles of 3 and 2: no padding, and every way out agrees."""
    rng = np.random.default_rng(3)
    array = np.where(rng.random((7, 5)) < density, rng.integers(1, 9, (7, 5)), 0)
    at = np.argwhere(array)
    relation = db.create("A", {"i": at[:, 0], "j": at[:, 1], "val": array[tuple(at.T)]}, labels="i=7 j=5", **options)
    np.testing.assert_array_equal(relation.numpy(), array)
    np.testing.assert_array_equal(relation.scipy().toarray(), array)
    assert list(zip(*table_of(relation).values(), strict=True)) == [(i, j, array[i, j]) for i, j in at.tolist()]
    complete = density == 1.0
    assert (relation.type.presence == "complete") is complete
    if complete or not options:  # anything else stores the blocks that hold a cell, each with its mask
        assert relation.batch.nbytes == len(at) * 8


def test_ragged_parts_and_tiles(db: es.Session) -> None:
    by_parts, by_tile = db.create("P", np.arange(7), parts={"i": 3}), db.create("T", np.arange(7), tile={"i": 3})
    assert [by_parts.batch.block(row).tolist() for row in range(3)] == [[0, 1, 2], [3, 4], [5, 6]]
    assert [by_tile.batch.block(row).tolist() for row in range(3)] == [[0, 1, 2], [3, 4, 5], [6]]


def test_dense_false_keeps_rows_of_cells_that_differ_from_the_fill(db: es.Session) -> None:
    for fill in (0, 5):
        relation = db.create("A", np.array([0, 5, 3]), dense=False, fill=fill, replace=True)
        assert relation.type.storage == "scalar"
        assert len(relation.arrow()) == 2
        assert relation.numpy().tolist() == [0, 5, 3]


def test_a_huge_extent_costs_nothing(db: es.Session) -> None:
    """Rows of single cells are stored and joined by key; no list as long as the extent is made."""
    big = 2 * 10**9
    db.create("E", {"src": [5, 1_999_999_999], "dst": [1_999_999_999, 5], "val": [2, 3]}, labels=f"src={big} dst={big}")
    assert table_of(db.relation("E"))["src"] == [5, 1_999_999_999]
    two_hops = db.sql(
        "SELECT a.src, SUM(a.val * b.val * (b.dst % 2)) AS val FROM E a JOIN E b ON a.dst = b.src GROUP BY a.src"
    )
    assert table_of(two_hops.run()) == {"src": [5, 1_999_999_999], "val": [6, 6]}


def test_numpy_of_an_incomplete_relation(db: es.Session) -> None:
    relation = db.create("V", {"i": [1], "val": [4]}, labels="i=2", fill=3)
    assert relation.numpy().tolist() == [3, 4]
    assert relation.numpy(fill=9).tolist() == [9, 4]


# ------------------------------------------------------------------------------------------------------- the catalog


def test_replace(db: es.Session) -> None:
    db.create("A", np.zeros(2))
    with pytest.raises(es.errors.CatalogError, match="relation 'A' already exists; pass replace=True"):
        db.create("A", np.ones(2))
    assert db.relation("A").numpy().tolist() == [0, 0]
    db.create("A", np.ones(3), replace=True)
    assert db.relation("A").numpy().tolist() == [1, 1, 1]


def test_names_that_are_not_there(db: es.Session) -> None:
    with pytest.raises(es.errors.CatalogError, match="no relation 'A'; there are none"):
        db.relation("A")
    db.create("edges", np.zeros(2))
    with pytest.raises(LookupError, match=r"^no relation 'edge'; did you mean 'edges'\?$"):
        db.einsum("i->", "edge")
    db.drop("edges")
    assert db.relations() == []


def test_to_table_stores_the_result(db: es.Session) -> None:
    db.create("A", np.arange(6).reshape(2, 3))
    stored = db.einsum("ij->i", "A").to_table("row_sums")
    assert stored.labels == ("i",)
    assert db.relations() == ["A", "row_sums"]
    assert db.einsum("i->", "row_sums").numpy() == 15
    with pytest.raises(es.errors.CatalogError, match="'row_sums' already exists"):
        db.einsum("ij->j", "A").to_table("row_sums")
    assert db.einsum("ij->j", "A").to_table("row_sums", replace=True).numpy().tolist() == [3, 5, 7]


def test_to_table_keeps_presence_and_fill(db: es.Session) -> None:
    db.create("V", {"i": [1], "val": [0.0]}, labels="i=3")
    stored = db.einsum("i->i", "V", combine="exp(x0)").to_table("W")
    assert stored.numpy().tolist() == [1.0, 1.0, 1.0]
    assert table_of(stored) == {"i": [1], "val": [1.0]}


def test_create_table_as(db: es.Session) -> None:
    db.create("A", np.arange(6).reshape(2, 3))
    db.sql("CREATE TABLE s AS SELECT j AS col, SUM(val) AS val FROM A GROUP BY j")
    assert table_of(db.relation("s")) == {"col": [0, 1, 2], "val": [3, 5, 7]}
    with pytest.raises(es.errors.CatalogError, match="'s' already exists"):
        db.sql("CREATE TABLE s AS SELECT i, j, val FROM A")
    db.sql("CREATE OR REPLACE TABLE s AS WITH t AS (SELECT i, j, val FROM A) SELECT SUM(val) AS val FROM t")
    assert db.relation("s").numpy() == 15


def test_a_statement_that_fails_leaves_the_catalog_alone(db: es.Session) -> None:
    db.create("A", np.array([2**62, 2**62]))
    with pytest.raises(OverflowError):
        db.sql("CREATE TABLE s AS SELECT SUM(val) AS val FROM A")
    assert db.relations() == ["A"]


# ------------------------------------------------------------------------------------------ operands that share names


def test_an_operand_keeps_its_identity(db: es.Session) -> None:
    """Arrays, queries of another session and replaced relations meet in one query without taking each other's place."""
    db.create("operand1", np.array([1, 2, 3]))
    tens = np.array([10, 10, 10])
    assert db.einsum("i,i->", "operand1", tens).numpy() == 60
    with es.connect() as other:
        assert db.einsum("i,i->", other.einsum("i->i", np.array([1, 2, 3])), tens).numpy() == 60
    older = db.einsum("i->i", "operand1")
    db.create("operand1", tens, replace=True)
    assert db.einsum("i,i->", "operand1", older).numpy() == 60
    assert db.einsum("i,i->", older, "operand1").numpy() == 60


@pytest.mark.parametrize("name", ["", 5, None])
def test_a_relation_is_called_by_a_word(name: Any) -> None:
    with es.connect() as db, pytest.raises(es.errors.CatalogError, match="called by a word"):
        db.create(name, np.zeros(2), labels="i")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parts": {"i": 0}}, "at least 1, a whole number, got 0"),
        ({"parts": {"i": 1.5}}, "a whole number, got 1.5"),
        ({"parts": 2}, "parts is .label: n."),
        ({"parts": {"i": 2}, "tile": {"i": 1}}, "both parts and a tile"),
        ({"fill": "x"}, "is a number, got 'x'"),
    ],
)
def test_storage_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with es.connect() as db, pytest.raises(es.errors.EinsqlError, match=message):
        db.create("A", np.zeros(2), labels="i", **options)


@pytest.mark.parametrize("devices", [2.5, True, 0, "many"])
def test_devices_are_a_whole_number(devices: Any) -> None:
    with pytest.raises(es.errors.PlanError):
        es.connect(devices=devices)


def test_the_devices_of_a_query_win_over_those_of_the_session() -> None:
    with es.connect(engine="host:2") as db:
        query = db.einsum("i->", np.arange(6), devices=3)
        query.run()
        assert query.stats is not None and query.stats.engine == "host:3"


def test_scipy_refuses_absent_cells_that_are_not_zero() -> None:
    with es.connect() as db:
        db.create("G", {"a": [0, 1], "b": [0, 1], "val": [1.0, 2.0]}, labels="a=2 b=2")
        query = db.einsum("ij->ij", "G", combine="x0 + 1")
        np.testing.assert_array_equal(query.numpy(), [[2, 1], [1, 3]])
        with pytest.raises(es.errors.DataError, match=r"worth 1\.0, and scipy's are worth 0"):
            query.scipy()


def test_an_einsum_does_not_guess_what_absent_cells_of_a_sql_result_are_worth() -> None:
    with es.connect() as db:
        db.create("G", {"a": [0, 1], "b": [0, 1], "val": [1.0, 2.0]}, labels="a=2 b=2", fill=np.inf)
        whole = db.sql("SELECT a, b, val FROM G")
        with pytest.raises(es.errors.DataError, match="absent cells of the operand"):
            db.einsum("ij->i", whole, reduce="min")
        np.testing.assert_array_equal(db.einsum("ij->i", "G", reduce="min").numpy(), [1, 2])


# ------------------------------------------------------------------------------------------------ the value column


@pytest.mark.parametrize("engine", ["reference", "duckdb", "host:2"])
def test_the_value_column_keeps_its_name(db: es.Session, engine: str) -> None:
    """In SQL, beside `val`, which always means the value; in tables; in what is stored. An einsum calls it val."""
    db.create("E", {"src": [0, 1], "dst": [1, 0], "weight": [2.0, 3.0]}, labels="src dst")
    for name in ("weight", "val", "E.Weight", "e.val"):
        query = db.sql(f"SELECT src, SUM({name} * 2) AS total FROM E GROUP BY src", engine=engine)
        assert table_of(query) == {"src": [0, 1], "total": [4.0, 6.0]}
    assert query.to_table("T").value == "total"
    assert table_of(db.sql("SELECT * FROM T", engine=engine)) == {"src": [0, 1], "total": [4.0, 6.0]}
    assert table_of(db.sql("SELECT src, total + val AS val FROM T", engine=engine)) == {"src": [0, 1], "val": [8, 12]}
    db.sql('CREATE TABLE U AS SELECT dst, MAX(weight) AS "the top" FROM E GROUP BY dst', engine=engine)
    assert table_of(db.sql('SELECT dst, "the top" AS x FROM U', engine=engine)) == {"dst": [0, 1], "x": [3, 2]}
    assert table_of(db.create("V", db.relation("U"))) == {"dst": [0, 1], "the top": [3, 2]}
    assert table_of(db.einsum("[src dst]->[src]", "E", engine=engine))["val"] == [2, 3]
    with pytest.raises(es.errors.SqlError, match=r"no column 'weigth'.*did you mean 'weight'"):
        db.sql("SELECT src, dst, weigth FROM E", engine=engine)


# --------------------------------------------------------------------------------------------------- kinds of options


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda db: db.create("x", [1], labels=5), "labels are a text such as 'src dst' or a list of words, got 5"),
        (lambda db: db.create("x", {"i": [0], "v": [1]}, labels="i", val=5), "val is the name of a column, got 5"),
        (lambda db: db.create(5, [1]), "a relation is called by a word, got 5"),
        (lambda db: db.create("x", [[1, 2], [3]]), "cannot make x from a list"),
        (lambda db: db.create("x", {"i": [0, 1], "v": [1]}, labels="i"), "unequal length: i 2, v 1"),
        (lambda db: db.sql(None), "a query is a text, got None"),
        (lambda db: db.einsum("i->", [1]).numpy(fill="x"), "a fill is a number, got 'x'"),
        (lambda db: db.einsum("i->", [1]).to_sql("postgers"), "no dialect 'postgers'; did you mean 'postgres'?"),
        (lambda db: db.einsum("i=>", [1]), "written like 'ij,jk->ik'"),
        (lambda db: db.einsum("i->", [1], combine=abs), "combine is a word or an expression"),
        (lambda db: db.einsum("i->", [1], combine="x0 *"), "cannot read the scalar expression 'x0 *'"),
    ],
)  # fmt: skip
def test_options_of_the_wrong_kind_are_refused_in_our_words(db: es.Session, call: Any, words: str) -> None:
    with pytest.raises(es.errors.EinsqlError) as caught:
        call(db)
    assert words in str(caught.value)


def test_a_closed_session_is_closed() -> None:
    """Nothing can be stored or asked; a query from before keeps what it was written over."""
    with es.connect() as db:
        db.create("A", [1, 2])
        query = db.einsum("i->", "A")
    assert query.numpy() == 3
    for call in (lambda: db.create("B", [1]), lambda: db.sql("SELECT i, val FROM A"), lambda: db.einsum("i->", [1])):
        with pytest.raises(es.errors.CatalogError, match="the session is closed"):
            call()


def test_labels_beyond_ascii_in_an_expression(db: es.Session) -> None:
    """Python reads U+00B5 as U+03BC; a label is the letter that was written."""
    assert db.einsum("iµ->i", [[1, 2, 3]], combine="x0 * µ").numpy().tolist() == [8]
