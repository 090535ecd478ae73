"""Blocks in Arrow columns, and results as Arrow: every dtype, in and out, a row per cell or per block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import einsql as es
from gpu_exec.batch import to_dense
from gpu_exec.kernels.dtype import numpy_dtype
from planner.dtypes import DTYPES, dtype_named

Array = np.ndarray
NAMES = [d.name for d in DTYPES]


def of_dtype(name: str, shape: tuple[int, ...]) -> Array:
    """Distinct small values of a dtype; complex ones with an imaginary part."""
    values = np.arange(1, 1 + int(np.prod(shape))).reshape(shape)
    if name == "bool":
        return values % 3 == 0
    return values.astype(numpy_dtype(dtype_named(name))) * (1 + 2j if name.startswith("complex") else 1)


def tensors(
    blocks: Array, names: Sequence[str] | None = None, permutation: Sequence[int] | None = None
) -> pa.ExtensionArray:
    """Blocks [n, *physical shape] as a column of tensors."""
    kind = pa.fixed_shape_tensor(
        pa.from_numpy_dtype(blocks.dtype), blocks.shape[1:], dim_names=names, permutation=permutation
    )
    flat = pa.FixedSizeListArray.from_arrays(pa.array(blocks.reshape(-1)), int(np.prod(blocks.shape[1:])))
    return pa.ExtensionArray.from_storage(kind, flat)


def same(a: es.Relation, b: es.Relation) -> None:
    """Two relations are equal in everything but their names."""
    assert a.type == b.type
    assert a.domains == b.domains
    assert a.fill == b.fill
    for one, other in zip(to_dense(a.batch), to_dense(b.batch), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


# ---------------------------------------------------------------------------------------------------- a row per cell


@pytest.mark.parametrize("name", NAMES)
def test_cells_of_every_dtype_go_out_and_come_back(db: es.Session, name: str) -> None:
    array = of_dtype(name, (2, 3))
    table = db.create("A", array).arrow()
    back = db.create("B", table, labels="i j")
    assert (back.numpy().dtype, table.column_names) == (array.dtype, ["i", "j", "val"])
    np.testing.assert_array_equal(back.numpy(), array)
    sparse = db.create("C", table.slice(1, 3), labels="i=2 j=3")
    expected = np.where(np.arange(6).reshape(2, 3) % 4 % 4 == 0, np.zeros((), array.dtype), array)
    expected[1, 2] = 0
    np.testing.assert_array_equal(sparse.numpy(), expected)
    assert sparse.numpy().dtype == array.dtype
    np.testing.assert_array_equal(db.einsum("ij->ij", "C").numpy(), expected)


@pytest.mark.parametrize(
    ("name", "arrow"),
    [
        ("bool", "bool"), ("uint8", "uint8"), ("int8", "int8"), ("int16", "int16"), ("int64", "int64"),
        ("float16", "halffloat"), ("float32", "float"), ("bfloat16", "float"),
        ("complex64", "fixed_size_list<item: float>[2]"), ("complex128", "fixed_size_list<item: double>[2]"),
    ],
)  # fmt: skip
def test_types_of_value_columns(db: es.Session, name: str, arrow: str) -> None:
    field = db.create("A", of_dtype(name, (2,))).arrow().schema.field("val")
    assert str(field.type) == arrow
    named = {b"einsql.dtype": name.encode()} if name.startswith(("complex", "bfloat")) else None
    assert field.metadata == named


def test_an_absent_scalar_of_every_dtype_is_null(db: es.Session) -> None:
    for name in NAMES:
        db.create("A", {"i": [1], "val": of_dtype(name, (1,))}, labels="i=2", replace=True)
        query = db.sql("SELECT MIN(val) AS val FROM A WHERE i = 0") if name[0] != "c" else None
        if query is not None:
            assert query.arrow()["val"].to_pylist() == [None]


@pytest.mark.parametrize("name", NAMES)
def test_scipy_of_every_dtype(db: es.Session, name: str) -> None:
    array = of_dtype(name, (2, 3))
    back = db.create("A", array, dense=False).scipy()
    assert back.dtype == ("float32" if name in ("float16", "bfloat16") else array.dtype)
    np.testing.assert_array_equal(back.toarray(), array.astype(back.dtype))
    if name not in ("float16", "bfloat16"):
        assert db.create("B", back).numpy().dtype == array.dtype


def test_complex_columns_of_a_mapping(db: es.Session) -> None:
    for values in (np.array([1j, 2.0]), [1j, 2.0], np.array([1j, 2], "c8")):
        assert db.create("A", {"i": [1, 0], "val": values}, labels="i", replace=True).numpy().tolist() == [2, 1j]
    with pytest.raises(es.errors.ShapeError, match="declared complex64, so its last axis holds two floats"):
        field = pa.field("val", pa.float32(), metadata={"einsql.dtype": "complex64"})
        table = pa.table([pa.array([0]), pa.array([1.0], pa.float32())], schema=pa.schema([("i", pa.int64()), field]))
        db.create("B", table, labels="i")


@pytest.mark.parametrize("fill", [2 + 1j, 3, np.float32(0.5)])
def test_fills_of_complex_relations(db: es.Session, fill: Any) -> None:
    relation = db.create("A", {"i": [1], "val": [1j]}, labels="i=2", fill=fill)
    assert relation.numpy().tolist() == [fill, 1j]
    with pytest.raises(es.errors.ShapeError, match=r"B holds float64, which has no value .1.2j. for fill"):
        db.create("B", {"i": [1], "val": [1.0]}, labels="i=2", fill=1 + 2j)


# ---------------------------------------------------------------------------------------------------- blocks go in


def test_blocks_with_a_key_per_label(db: es.Session) -> None:
    """Both labels cut in blocks of 2 x 3; the rows in any order, one block missing."""
    blocks = np.arange(18.0).reshape(3, 2, 3)
    table = pa.table({"j": [1, 0, 0], "i": [0, 1, 0], "val": tensors(blocks)})
    relation = db.create("A", table, labels="i j")
    assert (str(relation.type), relation.shape) == ("f64[i=4/2 j=6/2] blocks", (4, 6))
    expected = np.zeros((4, 6))
    expected[0:2, 3:6], expected[2:4, 0:3], expected[0:2, 0:3] = blocks
    np.testing.assert_array_equal(relation.numpy(), expected)
    assert len(relation.arrow()) == 18
    for engine in ("host", "duckdb", "reference"):
        np.testing.assert_array_equal(db.einsum("ij->ji", "A", engine=engine).numpy(), expected.T)


def test_labels_without_a_column_lie_inside(db: es.Session) -> None:
    """A row per word, a vector in it: the key is cut to single cells, and may be anything that labels."""
    vectors = np.arange(6, dtype="f4").reshape(3, 2)
    table = pa.table({"word": ["b", "c", "a"], "val": tensors(vectors)})
    relation = db.create("A", table, labels="word d")
    assert str(relation.type) == "f32[word=3/3 d=2]"
    assert relation.domain("word").to_pylist() == ["a", "b", "c"]
    np.testing.assert_array_equal(relation.numpy(), vectors[[2, 0, 1]])
    numbered = db.create("B", pa.table({"row": [2, 0], "val": tensors(vectors[:2])}), labels="row=4 d=2")
    np.testing.assert_array_equal(numbered.numpy(), [[2, 3], [0, 0], [0, 1], [0, 0]])


def test_some_labels_both_cut_and_inside(db: es.Session) -> None:
    """i has a column and an axis, d an axis only."""
    blocks = np.arange(12).reshape(2, 2, 3)
    relation = db.create("A", pa.table({"i": [1, 0], "val": tensors(blocks)}), labels="i d")
    assert str(relation.type) == "i64[i=4/2 d=3]"
    np.testing.assert_array_equal(relation.numpy(), np.concatenate([blocks[1], blocks[0]]))


def test_the_names_of_axes_win_over_their_order(db: es.Session) -> None:
    blocks = np.arange(6).reshape(1, 3, 2)
    table = pa.table({"i": [0], "val": tensors(blocks, names=["d", "i"])})
    np.testing.assert_array_equal(db.create("A", table, labels="i d").numpy(), blocks[0].T)
    only = pa.table({"h": [1], "i": [0], "val": tensors(np.arange(2).reshape(1, 2), names=["i"])})
    relation = db.create("B", only, labels="h i")
    assert (str(relation.type), relation.numpy().tolist()) == ("i64[h=2/2 i=2] blocks", [[0, 0], [0, 1]])


def test_a_permuted_tensor_comes_in_its_logical_order(db: es.Session) -> None:
    """G16: physically [3, 2], logically [2, 3]."""
    logical = np.array([[1, 2, 3], [4, 5, 6]], "f4")
    for names in (None, ["j", "i"]):
        table = pa.table({"n": [0], "val": tensors(np.ascontiguousarray(logical.T)[None], names, [1, 0])})
        relation = db.create("A", table, labels="n i j", replace=True)
        np.testing.assert_array_equal(relation.numpy(), logical[None])
        np.testing.assert_array_equal(db.einsum("nij->nji", "A").numpy(), logical.T[None])
    three = np.arange(24).reshape(1, 2, 3, 4)
    table = pa.table({"n": [0], "val": tensors(three, None, [2, 0, 1])})
    np.testing.assert_array_equal(db.create("B", table, labels="n i j k").numpy(), three.transpose(0, 3, 1, 2))


def test_a_filtered_tensor_keeps_its_shape(db: es.Session) -> None:
    """G16: two tensors, one left by SQL, then transposed."""
    blocks = np.arange(1, 13).reshape(2, 2, 3)
    db.create("A", pa.table({"n": [0, 1], "val": tensors(blocks)}), labels="n i j")
    kept = db.sql("SELECT n, i, j, val FROM A WHERE n = 0")
    field = kept.arrow(blocks=True).schema.field("val")
    assert field.type.shape == [1, 2, 3]
    stored = kept.to_table("K")
    assert db.einsum("nij->nji", "K").numpy()[0].tolist() == [[1, 4], [2, 5], [3, 6]]
    assert not stored.numpy()[1].any()


@pytest.mark.parametrize("kind", ["tensor", "fixed", "list"])
def test_a_slice_is_read_at_its_offset(db: es.Session, kind: str) -> None:
    """G15: rows [0, 1], [2, 3], [4, 5], [6, 7], of which the slice holds two."""
    values = np.arange(8).reshape(4, 2)
    column = {
        "tensor": tensors(values),
        "fixed": pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), 2),
        "list": pa.array(values.tolist(), pa.list_(pa.int64())),
    }[kind]
    table = pa.table({"i": range(4), "val": column}).slice(1, 2)
    assert db.create("A", table, labels="i=4 d").numpy().tolist() == [[0, 0], [2, 3], [4, 5], [0, 0]]
    chunks = pa.concat_tables([table, pa.table({"i": range(4), "val": column}).slice(3, 1)])
    assert db.create("B", chunks, labels="i=4 d").numpy().tolist() == [[0, 0], [2, 3], [4, 5], [6, 7]]


def test_lists_with_a_block_shape(db: es.Session) -> None:
    rows = np.arange(12).reshape(2, 6)
    for column in (pa.array(rows.tolist(), pa.list_(pa.int64(), 6)), pa.array(rows.tolist())):
        table = pa.table({"n": [0, 1], "val": column})
        relation = db.create("A", table, labels="n i j", block_shape=(2, 3), replace=True)
        np.testing.assert_array_equal(relation.numpy(), rows.reshape(2, 2, 3))
    nested = pa.array(rows.reshape(2, 2, 3).tolist(), pa.list_(pa.list_(pa.int64(), 3), 2))
    np.testing.assert_array_equal(
        db.create("B", pa.table({"n": [0, 1], "val": nested}), labels="n i j").numpy(), rows.reshape(2, 2, 3)
    )


def test_an_array_with_more_axes_is_a_column_of_blocks(db: es.Session) -> None:
    values = np.arange(6).reshape(3, 2) + 1j
    np.testing.assert_array_equal(
        db.create("A", {"i": [2, 0, 1], "val": values}, labels="i d").numpy(), values[[1, 2, 0]]
    )


@pytest.mark.parametrize("name", ["complex64", "complex128", "bfloat16", "bool", "float16", "int8"])
def test_the_logical_dtype_of_blocks(db: es.Session, name: str) -> None:
    """Complex as a last axis of two, bfloat16 as its bits, bool as bytes; the metadata of the field says so."""
    array = of_dtype(name, (2, 3))
    physical = {
        "complex64": lambda: array.view("f4").reshape(2, 3, 2),
        "complex128": lambda: array.view("f8").reshape(2, 3, 2),
        "bfloat16": lambda: array.view("u2"),
        "bool": lambda: array.view("u1"),
    }.get(name, lambda: array)()
    column = tensors(physical)
    schema = pa.schema([("i", pa.int64()), pa.field("val", column.type, metadata={"einsql.dtype": name})])
    back = db.create("A", pa.table([pa.array([0, 1]), column], schema=schema), labels="i d").numpy()
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)


def test_blocks_under_other_cuts(db: es.Session) -> None:
    table = pa.table({"i": [0, 2], "val": tensors(np.arange(8).reshape(2, 2, 2))})
    relation = db.create("A", table, labels="i j", tile={"i": 3})
    assert str(relation.type) == "i64[i=6/2 j=2] cells"
    assert relation.numpy().tolist() == [[0, 1], [2, 3], [0, 0], [0, 0], [4, 5], [6, 7]]
    cells = db.create("B", table, labels="i j", dense=False)
    assert (cells.type.storage, len(cells.arrow())) == ("scalar", 8)


def test_duplicate_blocks(db: es.Session) -> None:
    table = pa.table({"i": [1, 0, 1], "val": tensors(np.arange(6).reshape(3, 2))})
    with pytest.raises(es.errors.DataError, match=r"1 duplicate coordinates in A, the first \(i=1, d=0\)"):
        db.create("A", table, labels="i d")
    assert db.create("A", table, labels="i d", duplicates="sum").numpy().tolist() == [[2, 3], [4, 6]]


BLOCK = tensors(np.zeros((1, 2, 3)))


@pytest.mark.parametrize(
    ("columns", "options", "error", "message"),
    [
        (
            {"i": [0], "val": BLOCK},
            {"labels": "i j k l"},
            "ShapeError",
            "2 axes, shape .2, 3.: wanted 4, one per label",
        ),
        ({"i": [0], "val": BLOCK}, {"labels": "i=5 j"}, "ShapeError", "stated as 5, no multiple of its blocks' 2"),
        ({"i": [0], "val": BLOCK}, {"labels": "i j=4"}, "ShapeError", "'j' of A is stated as 4, but its blocks have 3"),
        ({"i": [2], "val": BLOCK}, {"labels": "i=4 j"}, "DataError", "'i' of A holds 2 in row 0, outside its extent 2"),
        ({"i": ["x"], "val": BLOCK}, {"labels": "i j"}, "ShapeError", "'i' of A numbers blocks, so its column holds"),
        (
            {"i": [1], "val": BLOCK},
            {"labels": "i j", "dense": True},
            "DataError",
            "1 of 2 blocks are missing, the first",
        ),
        ({"i": [0], "val": [[1, 2]]}, {"labels": "i d", "block_shape": (3,)}, "ShapeError", "no blocks of block_shape"),
        ({"i": [0, 1], "val": [[1, 2], [3]]}, {"labels": "i d"}, "ShapeError", "lists of 1 and of 2 values"),
        ({"i": [0], "val": [[1, None]]}, {"labels": "i d"}, "DataError", "holds 1 NULL inside its blocks"),
        ({"i": [0], "val": [None]}, {"labels": "i"}, "DataError", "holds 1 NULL, the first in row 0"),
    ],
)
def test_blocks_that_are_no_relation(
    db: es.Session, columns: Any, options: dict[str, Any], error: str, message: str
) -> None:
    with pytest.raises(getattr(es.errors, error), match=message):
        db.create("A", pa.table(columns), **options)
    assert db.relations() == []


# ------------------------------------------------------------------------------------------- blocks go out and back


CUTS: list[dict[str, Any]] = [
    {}, {"parts": {"i": 2, "j": 2}}, {"parts": {"i": 3}}, {"tile": {"i": 2, "j": 3}}, {"dense": False},
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("cut", CUTS, ids=str)
def test_a_relation_in_blocks_comes_back_as_it_was(db: es.Session, name: str, cut: dict[str, Any]) -> None:
    """Blocks of one shape and of several, complete or not."""
    array = of_dtype(name, (4, 6))
    whole = db.create("A", array, **cut)
    same(db.create("B", whole.arrow(blocks=True)), whole)
    at = np.argwhere(np.arange(24).reshape(4, 6) % 5 == 1)
    rows = {"i": at[:, 0], "j": at[:, 1], "val": array[tuple(at.T)]}
    sparse = db.create("C", rows, labels="i=4 j=7", **cut, fill=1)
    same(db.create("D", sparse.arrow(blocks=True)), sparse)


def test_blocks_of_one_shape_are_tensors_and_others_lists(db: es.Session) -> None:
    even = db.create("A", np.arange(12).reshape(4, 3), parts={"i": 2}).arrow(blocks=True)
    assert even.schema.field("val").type == pa.fixed_shape_tensor(pa.int64(), (2, 3), dim_names=["i", "j"])
    assert (even["i"].to_pylist(), even["j"].to_pylist()) == ([0, 1], [0, 0])
    np.testing.assert_array_equal(even["val"].combine_chunks().to_numpy_ndarray()[1], [[6, 7, 8], [9, 10, 11]])
    ragged = db.create("B", np.arange(5), parts={"i": 2}).arrow(blocks=True)
    assert ragged["val"].to_pylist() == [[0, 1, 2], [3, 4]]
    assert ragged["val.shape"].to_pylist() == [[3], [2]]


def test_masks_go_along(db: es.Session) -> None:
    table = db.create("A", {"i": [0, 3], "val": [1, 2]}, labels="i=4", parts={"i": 2}).arrow(blocks=True)
    assert table["val.present"].combine_chunks().to_numpy_ndarray().tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (1,)])
def test_blocks_without_axes_or_cells(db: es.Session, shape: tuple[int, ...]) -> None:
    relation = db.create("A", np.ones(shape, "c8"))
    same(db.create("B", relation.arrow(blocks=True)), relation)


def test_dictionaries_and_fills_go_along(db: es.Session) -> None:
    rows = {"city": ["Oslo", "Bern"], "i": [0, 1], "val": [1.0, 2.0]}
    for fill in (0, np.inf, -1.5):
        relation = db.create("A", rows, labels="city i=3", fill=fill, replace=True)
        same(db.create("B", relation.arrow(blocks=True), replace=True), relation)
    assert db.create("C", relation.arrow(blocks=True), fill=7).fill == 7


def test_blocks_through_a_file_and_as_an_operand(db: es.Session, tmp_path: Any) -> None:
    relation = db.create("A", of_dtype("bfloat16", (4, 3)), parts={"i": 2})
    path = tmp_path / "a.parquet"
    pa.parquet.write_table(relation.arrow(blocks=True), path)
    same(db.create("B", path), relation)
    assert db.einsum("ij->", relation.arrow(blocks=True)).numpy() == 78


def test_rows_of_a_block_table_may_be_missing_or_reordered(db: es.Session) -> None:
    table = db.create("A", np.arange(6), parts={"i": 3}).arrow(blocks=True)
    back = db.create("B", table.take([2, 0]))
    assert (str(back.type), back.numpy().tolist()) == ("i64[i=6/3] blocks", [0, 1, 0, 0, 4, 5])
    recut = db.create("C", table, parts={"i": 2})
    assert (str(recut.type), recut.numpy().tolist()) == ("i64[i=6/2]", [0, 1, 2, 3, 4, 5])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda t: t.take([0, 0]), r"1 duplicate blocks in B, the first \(i=0\)"),
        (lambda t: t.drop_columns(["i"]), "so it has one column 'i' without NULL"),
        (lambda t: t.set_column(0, "i", pa.array([0, 7])), r"row 1 of B is block \(i=7\), and i64.i=4/2. has no such"),
        (lambda t: t.set_column(1, "val", pa.array([[1], [2]])), r"blocks \(2,\) of B: .* no blocks of block_shape"),
        (lambda t: t.set_column(1, "val", pa.array([[1.0, 2.0]] * 2)), "holds float64, its type says int64"),
        (lambda t: t.replace_schema_metadata({"einsql.type": "?"}), "cannot read the metadata of B"),
    ],
)
def test_block_tables_that_contradict_themselves(db: es.Session, spoil: Any, message: str) -> None:
    table = db.create("A", np.arange(4), parts={"i": 2}).arrow(blocks=True)
    with pytest.raises(es.errors.DataError, match=message):
        db.create("B", spoil(table))
    assert db.relations() == ["A"]


def test_bits_of_bfloat16_without_metadata_are_integers(db: es.Session) -> None:
    bits = np.array([[1.5]], ml_dtypes.bfloat16).view("u2")
    relation = db.create("A", pa.table({"i": [0], "val": tensors(bits)}), labels="i d")
    assert relation.type.dtype.name == "int32"
