"""Public faults of numbers, of absent cells and of cuts, as cases: types, sums, duplicates, fills, blocks, views."""

from __future__ import annotations

import itertools
import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.sparse

import einsql as es
from einsql.query import Query
from tests.engines import Run, everywhere, on_every_engine

Array = np.ndarray


def rows_of(query: Query) -> list[tuple[Any, ...]]:
    return sorted(zip(*query.arrow().to_pydict().values(), strict=True))


# ------------------------------------------------------------------------------------------------------------ numbers

NARROW = [
    ("int8", [100, 100, 100], [2, 2, 2], 600),
    ("int8", [-128, -128, 127], [127, 127, -128], -48768),
    ("uint8", [255, 255, 1], [255, 2, 0], 65535),
    ("int16", [32767, -32768, 5], [32767, 32767, 1], 5 - 32767),
    ("int32", [2**31 - 1, 2**31 - 1, 0], [4, 4, 4], 8 * (2**31 - 1)),
]


@everywhere
@pytest.mark.parametrize(("dtype", "a", "b", "expected"), NARROW)
def test_g06_small_integers_do_not_wrap(
    db: es.Session, run: Run, dtype: str, a: list[int], b: list[int], expected: int
) -> None:
    """Sums of products and products alone come in int64, of arrays, of tables, of scipy matrices and in SQL."""
    x, y = np.array(a, dtype), np.array(b, dtype)
    total = db.einsum("i,i->", x, y, **run("i")).numpy()
    assert (total.dtype, total) == (np.int64, expected)
    product = db.einsum("i,i->i", x, y, **run("i")).numpy()
    assert (product.dtype, product.tolist()) == (np.int64, [p * q for p, q in zip(a, b, strict=True)])
    db.create("X", {"i": [0, 1, 3], "val": x}, labels="i=4", **run.cut("i"))
    db.create("Y", {"i": [0, 1, 3], "val": y}, labels="i=4")
    assert db.einsum("i,i->", "X", "Y", **run("i")).numpy() == expected
    assert db.sql("SELECT SUM(X.val * Y.val) AS val FROM X JOIN Y ON X.i = Y.i", **run("i")).numpy() == expected
    db.create("S", scipy.sparse.coo_array((x, ([0, 1, 2], [0, 0, 0])), shape=(4, 1)), labels="i j", **run.cut("i"))
    db.create("T", scipy.sparse.coo_array((y, ([0, 1, 2], [0, 0, 0])), shape=(4, 1)), labels="i j")
    assert db.einsum("ij,ij->", "S", "T", **run("i j")).numpy() == expected


@everywhere
def test_g06_a_matrix_of_small_integers(db: es.Session, run: Run) -> None:
    """The same through a matrix product, and a sum of two int8 that int8 does not hold."""
    a = np.full((3, 4), 127, np.int8)
    assert (db.einsum("ij,kj->ik", a, a, **run("i j k")).numpy() == 4 * 127 * 127).all()
    assert (db.einsum("ij,ij->ij", a, a, combine="add", **run("i j")).numpy() == 254).all()
    assert db.einsum("ij->", a, **run("i j")).numpy() == 12 * 127


@everywhere
@pytest.mark.parametrize(
    ("subscripts", "arrays"),
    [("i->", ([2**62, 2**62],)), ("i,i->", ([2**40, 1], [2**40, 1])), ("i,i->i", ([2**40, 1], [2**40, 1]))],
)
def test_g06_past_int64_is_an_error(db: es.Session, run: Run, subscripts: str, arrays: tuple[Any, ...]) -> None:
    """Neither a wrapped number nor a rounded one."""
    with pytest.raises(es.errors.IntegerOverflowError):
        db.einsum(subscripts, *arrays, **run("i")).numpy()


@everywhere
@pytest.mark.parametrize(
    ("rows", "total"),
    [
        ([(0, b"\x00\x42")], 32.0),
        ([(0, b"\x80\x3f"), (1, b"\x00\xc0"), (2, b"\x00\x42")], 31.0),
        ([(0, b"\x80\x43"), (1, b"\x80\x3f")], 257.0),
        ([(0, b"\x01\x00")], 2.0**-133),
        ([(0, b"\x80\x7f"), (1, b"\x00\x42")], math.inf),
    ],
)
def test_g27_bfloat16_is_read_as_bfloat16(
    db: es.Session, run: Run, rows: list[tuple[int, bytes]], total: float
) -> None:
    """Two bytes, little endian; sums are kept in float32, so that 256 + 1 is 257."""
    values = np.frombuffer(b"".join(bits for _, bits in rows), ml_dtypes.bfloat16)
    db.create("w", values, labels="i", **run.cut("i"))
    stored = db.relation("w").numpy()
    assert (stored.dtype, stored.tobytes()) == (values.dtype, values.tobytes())
    for query in (db.einsum("i->", "w", **run("i")), db.sql("SELECT SUM(val) AS val FROM w", **run("i"))):
        assert query.numpy() == total
    assert db.einsum("i->", "w", **run("i")).numpy().dtype == np.float32
    db.create("cells", {"i": [i for i, _ in rows], "val": values}, labels="i=5")
    assert db.einsum("i->", "cells", **run("i")).numpy() == total


@everywhere
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_g27_products_of_half_precision(db: es.Session, run: Run, dtype: Any) -> None:
    """A product in float32 of values that are exact in either half: 3 * 2049 / 2 fits no half."""
    a = np.array([[2048, 1], [3, 0.5]]).astype(dtype)
    got = db.einsum("ij,jk->ik", a, a, **run("i j k")).numpy()
    assert (got.dtype, got.tolist()) == (np.float32, [[2048 * 2048 + 3, 2048.5], [3 * 2048 + 1.5, 3.25]])


@everywhere
@pytest.mark.parametrize("subscripts", ["i,i,i->", "i,j,k->", "i,j,k->ik"])
def test_g27_sums_of_half_precision_do_not_depend_on_the_path(db: es.Session, run: Run, subscripts: str) -> None:
    """300 * 300 fits no float16, but sums are kept in float32: no order of the three makes an infinity."""
    arrays = [np.array([x], np.float16) for x in (300, 300, 0.001)]
    labels = " ".join(sorted(set("ijk") & set(subscripts)))
    for order in itertools.permutations(arrays):
        for path in (None, [(0, 1), (0, 1)], [(1, 2), (0, 1)], [(0, 2), (0, 1)], [(0, 1, 2)]):
            got = db.einsum(subscripts, *order, path=path, **run(labels)).numpy()
            np.testing.assert_allclose(got.ravel().astype(float), [90], rtol=2e-3)


TRUTH = [
    ("ij,jk->ik", [[[1, 1], [0, 1]]] * 2, [[True, True], [False, True]]),
    ("ij,jk->ik", [[[0, 1], [1, 0]], [[1, 1], [0, 0]]], [[False, False], [True, True]]),
    ("ij,jk->", [[[0, 1], [0, 1]], [[1, 1], [0, 0]]], False),
    ("i->", [[1, 1, 1]], True),
    ("i,i->i", [[1, 1, 0], [1, 0, 0]], [True, False, False]),
    ("ii->", [[[0, 1], [1, 1]]], True),
]


@everywhere
@pytest.mark.parametrize(("subscripts", "arrays", "expected"), TRUTH)
def test_g31_booleans_are_or_of_ands(
    db: es.Session, run: Run, subscripts: str, arrays: list[Any], expected: Any
) -> None:
    """The answer is boolean, of arrays and of tables that hold the true cells only."""
    labels = " ".join(sorted(set("ijk") & set(subscripts)))
    tables = [np.array(a, bool) for a in arrays]
    got = db.einsum(subscripts, *tables, **run(labels)).numpy()
    assert (got.dtype, got.tolist()) == (np.bool_, expected)
    for name, table in zip("AB", tables, strict=False):
        at = np.argwhere(table)
        columns = {"pq"[axis]: at[:, axis] for axis in range(table.ndim)}
        stated = " ".join(f"{'pq'[axis]}={n}" for axis, n in enumerate(table.shape))
        db.create(name, {**columns, "val": np.ones(len(at), bool)}, labels=stated)
    got = db.einsum(subscripts, *"AB"[: len(tables)], **run(labels)).numpy()
    assert (got.dtype, got.tolist()) == (np.bool_, expected)


@everywhere
@pytest.mark.parametrize(
    "values",
    [
        [1e16, 1.0, -1e16],
        [0.1] * 10,
        [1e300, 1.0, -1e300, 1e-300],
        [1.0, 1e100, 1.0, -1e100],
        [2.0**53, 1.0, 2.0**-53],
        [-0.5, 0.5],
    ],
)
def test_g32_an_exact_sum_does_not_depend_on_the_order(db: es.Session, run: Run, values: list[float]) -> None:
    """`reduce="fsum"` and SQL's FSUM give the correctly rounded sum, beside another group, in several orders."""
    expected = [math.fsum(values), 2.0]
    for n, order in enumerate(itertools.islice(itertools.permutations(values), 6)):
        group = np.array([order, [2.0] + [0.0] * (len(order) - 1)])
        assert db.einsum("gi->g", group, reduce="fsum", **run("g i")).numpy().tolist() == expected
        db.create(f"X{n}", group, labels="g i", **run.cut("g i"))
        text = f"SELECT g, FSUM(val) AS val FROM X{n} GROUP BY g"
        assert db.sql(text, **run("g i")).numpy().tolist() == expected


@everywhere
def test_g32_an_exact_sum_of_products_and_of_float32(db: es.Session, run: Run) -> None:
    """Each product is rounded, their sum is exact; over 1,000 random magnitudes."""
    rng = np.random.default_rng(5)
    x, y = (rng.standard_normal(1000) * 10.0 ** rng.integers(-8, 9, 1000) for _ in range(2))
    cut = run.by(100)("i")
    assert db.einsum("i,i->", x, y, reduce="fsum", **cut).numpy() == math.fsum((x * y).tolist())
    narrow = x.astype(np.float32)
    got = db.einsum("i->", narrow, reduce="fsum", **cut).numpy()
    assert got == got.dtype.type(math.fsum(narrow.tolist()))


@everywhere
def test_g32_twenty_runs_give_the_same_bits(db: es.Session, run: Run) -> None:
    """The ordinary sum of floats is not exact, but it is the same each time."""
    rng = np.random.default_rng(6)
    db.create("X", rng.standard_normal((3, 50)) * 1e8, labels="g i", **run.cut("g i"))
    for query in (
        db.einsum("gi->g", "X", **run("g i")),
        db.sql("SELECT g, SUM(val) AS val FROM X GROUP BY g", **run("g i")),
    ):
        assert len({query.run().numpy().tobytes() for _ in range(20)}) == 1


def squared(source: str, times: int) -> str:
    """A text that squares the table of `source` over and over."""
    text = f"WITH c0 AS ({source})"
    for n in range(times):
        text += (
            f", c{n + 1} AS (SELECT a.i, b.j, SUM(a.val * b.val) AS val"
            f" FROM c{n} a JOIN c{n} b ON a.j = b.i GROUP BY a.i, b.j)"
        )
    return f"{text} SELECT i, j, val FROM c{times}"


@everywhere
@pytest.mark.parametrize(
    ("literals", "times", "expected"),
    [
        ("CASE WHEN i <= j THEN 1.0 ELSE 0.0 END", 6, [[1, 64], [0, 1]]),
        ("CASE WHEN i < j THEN 0.50 WHEN i = j THEN 1.000 ELSE 0.0 END", 8, [[1, 128], [0, 1]]),
        (
            "CASE WHEN i = j THEN 0.1234567890123456789 ELSE 0.0 END",
            5,
            [[0.1234567890123456789**32, 0], [0, 0.1234567890123456789**32]],
        ),
        (
            "1.0 * 1.00 * 1.000 * 1.0000 * 1.00000 * 1.000000 * 1.0000000 * 1.00000000 * 1.000000000",
            1,
            [[2, 2], [2, 2]],
        ),
    ],
)
def test_g37_decimal_literals_are_doubles(
    db: es.Session, run: Run, literals: str, times: int, expected: list[list[float]]
) -> None:
    """No scale that grows with every product; an einsum with the same literal agrees."""
    db.create("A", np.zeros((2, 2), np.int64), labels="i j", **run.cut("i j"))
    got = db.sql(squared(f"SELECT i, j, {literals} AS val FROM A", times), **run("i j")).numpy()
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, expected, rtol=1e-14)


@everywhere
def test_g37_a_decimal_literal_in_an_einsum(db: es.Session, run: Run) -> None:
    """A combine with literals of many digits, over queries of queries."""
    query = db.einsum("ij->ij", [[1, 1], [0, 1]], combine="x0 * 1.000000000000")
    for _ in range(6):
        query = db.einsum("ij,jk->ik", query, query, combine="x0 * x1 * 1.0000000000", **run("i j k"))
    assert (query.numpy().dtype, query.numpy().tolist()) == (np.float64, [[1, 64], [0, 1]])


# ------------------------------------------------------------------------------------------- duplicates, absent cells

DUPLICATES = [
    ([0, 0], [1.0, 2.0], [3.0]),
    ([1, 0, 1, 0, 1], [1.0, 2.0, 1.0, -2.0, 1.0], [0.0, 3.0]),
    ([0, 0, 0], [5, 5, -9], [1]),
]


@everywhere
@pytest.mark.parametrize(("at", "values", "cells"), DUPLICATES)
def test_g10_duplicates_are_added_before_anything_else(
    db: es.Session, run: Run, at: list[int], values: list[Any], cells: list[Any]
) -> None:
    """`duplicates="sum"`: exp, max and count see one cell per coordinate, a cell whose sum is 0 included."""
    matrix = scipy.sparse.coo_array((values, (at, [0] * len(at))), shape=(len(cells), 1))
    db.create("table", {"i": at, "j": [0] * len(at), "val": values}, labels="i j", duplicates="sum", **run.cut("i j"))
    db.create("matrix", matrix, labels="i j", duplicates="sum", **run.cut("i j"))
    for name in ("table", "matrix"):
        exp = db.sql(f'SELECT i, j, EXP(val) AS val FROM "{name}"', **run("i j"))
        np.testing.assert_allclose(exp.numpy()[:, 0], np.exp(cells), rtol=1e-6)
        total = db.einsum("ij->i", name, combine="exp(x0)", **run("i j"))
        np.testing.assert_allclose(total.numpy(), np.exp(cells), rtol=1e-6)
        assert db.einsum("ij->", name, reduce="max", **run("i j")).numpy() == max(cells)
        assert db.sql(f'SELECT COUNT(*) AS val FROM "{name}"', **run("i j")).numpy() == len(cells)


@pytest.mark.parametrize(("at", "values", "cells"), DUPLICATES)
def test_g10_duplicates_are_refused_unless_asked_for(
    db: es.Session, at: list[int], values: list[Any], cells: list[Any]
) -> None:
    """The default; the message names the first cell, and nothing is stored. Nothing runs, so nothing is cut."""
    with pytest.raises(es.errors.DataError, match=rf"duplicate.*i={min(i for i in at if at.count(i) > 1)}"):
        db.create("x", {"i": at, "val": values}, labels="i")
    with pytest.raises(es.errors.DataError, match="duplicate"):
        db.create("x", scipy.sparse.coo_array((values, (at, [0] * len(at))), shape=(len(cells), 1)))
    assert db.relations() == []


def softmax(db: es.Session, name: str, **options: Any) -> Query:
    """Over j, from einsums of einsums."""
    top = db.einsum("ij->i", name, reduce="max")
    weight = db.einsum("ij,i->ij", name, top, combine="exp(x0 - x1)")
    return db.einsum("ij,i->ij", weight, db.einsum("ij->i", weight), combine="div", **options)


@everywhere
@pytest.mark.parametrize(
    ("cells", "fill", "expected"),
    [
        ({"i": [0], "j": [1], "val": [math.log(3)]}, 0, [[0.25, 0.75]]),
        ({"i": [0], "j": [1], "val": [math.log(3)]}, -math.inf, [[0, 1]]),
        ({"i": [0, 1], "j": [1, 0], "val": [0.0, 0.0]}, -math.inf, [[0, 1], [1, 0]]),
        ({"i": [0, 1], "j": [1, 0], "val": [0.0, 0.0]}, 0, [[0.5, 0.5], [0.5, 0.5]]),
        ({"i": [0], "j": [0], "val": [5.0]}, math.log(2) + 5, [[1 / 3, 2 / 3]]),
    ],
)
def test_g11_the_fill_says_what_absent_cells_of_a_softmax_are_worth(
    db: es.Session, run: Run, cells: dict[str, Any], fill: float, expected: list[list[float]]
) -> None:
    """An einsum reads a total array with the declared fill; SQL sees the stored cells only, whatever the fill."""
    stated = f"i={len(expected)} j=2"
    db.create("x", cells, labels=stated, fill=fill, **run.cut("i j"))
    assert db.relation("x").fill == fill
    np.testing.assert_allclose(softmax(db, "x", **run("i j")).numpy(), expected, rtol=1e-6)
    text = """
        WITH weight AS (SELECT i, j, EXP(val) AS val FROM x),
             total AS (SELECT i, SUM(val) AS val FROM weight GROUP BY i)
        SELECT w.i, w.j, w.val / n.val AS val FROM weight w JOIN total n ON w.i = n.i
    """
    stored = zip(cells["i"], cells["j"], strict=True)
    assert rows_of(db.sql(text, **run("i j"))) == sorted((i, j, 1.0) for i, j in stored)


# ---------------------------------------------------------------------------------------------- cuts, views, averages


@everywhere
@pytest.mark.parametrize("stored", [{}, {"x": 2, "j": 2}, {"x": 3}], ids=str)
def test_g20_uneven_blocks(db: es.Session, run: Run, stored: dict[str, int]) -> None:
    """Rows in blocks of 2 + 1, 3 + 2, 4 + 3, columns in 1 + 1, against cuts that do not match them."""
    db.create("Y", np.eye(2, dtype=int), labels="y j", parts={"j": 2})
    for rows in (3, 5, 7):
        a = np.arange(1, 2 * rows + 1).reshape(rows, 2)
        db.create("X", a, labels="x j", parts=stored, replace=True)
        assert db.einsum("xj,yj->xy", "X", "Y", **run("x y j")).numpy().tolist() == a.tolist()
        gram = db.einsum("xj,yj->xy", "X", "X", engine=run.engine, parts={"x": 2}, tile={"y": 2})
        assert gram.numpy().tolist() == (a @ a.T).tolist()


VECTOR = np.arange(1.0, 5.0)
LONG = np.array([9.0, 1, 2, 3, 4])
ODD = np.frombuffer(b"\x00" + VECTOR.tobytes(), np.uint8)[1:].view(np.float64)
VIEWS = {
    "zero stride": np.lib.stride_tricks.as_strided(VECTOR, (1, 4), (0, 8)),
    "starts at element 1": LONG[1:][None],
    "unaligned": ODD[None],
    "backwards": VECTOR[::-1][None, ::-1],
    "every second": np.repeat(VECTOR, 2)[::2][None],
    "column of a longer matrix": np.stack([VECTOR, -VECTOR], axis=1)[:, :1].T,
    "big endian": VECTOR.astype(">f8")[None],
    "read only": np.broadcast_to(VECTOR, (1, 4)),
}


@everywhere
@pytest.mark.parametrize("view", VIEWS)
def test_g22_views_with_zero_stride_or_odd_alignment(db: es.Session, run: Run, view: str) -> None:
    """The row against ones; a row repeated with stride 0; and as a stored relation."""
    row, ones = VIEWS[view], np.ones((2, 4))
    assert db.einsum("mn,ln->ml", row, ones, **run("m n l")).numpy().tolist() == [[10, 10]]
    repeated = np.broadcast_to(row, (3, 4))
    assert db.einsum("mn,ln->ml", repeated, ones, **run("m n l")).numpy().tolist() == [[10, 10]] * 3
    db.create("V", row, labels="m n", **run.cut("m n"))
    assert db.einsum("mn,ln->ml", "V", ones, **run("m n l")).numpy().tolist() == [[10, 10]]


def test_g22_the_views_are_what_they_are_called() -> None:
    """Otherwise the case above proves nothing."""
    assert not VIEWS["unaligned"].flags.aligned and VIEWS["zero stride"].strides[0] == 0
    assert not VIEWS["column of a longer matrix"].flags.forc and VIEWS["backwards"].strides[1] == 8


@everywhere
@pytest.mark.parametrize("values", [[10, 1, 2, 3], [1, 2, 3, 10], [5, -5, 4, 0], [1.5, 2.5, 3.5, 100]])
def test_g23_a_mean_is_no_mean_of_means(db: es.Session, run: Run, values: list[float]) -> None:
    """AVG over blocks of 1 + 3 cells, 3 + 1 and others, stored and asked for; also within groups."""
    mean = sum(values) / 4
    groups = [(0, (values[0] + values[1] + values[3]) / 3), (1, values[2])]
    for tile in (1, 2, 3, 4):
        db.create("X", np.array(values), labels="i", tile={"i": tile}, replace=True)
        assert db.sql("SELECT AVG(val) AS val FROM X", **run("i")).numpy() == mean
        table = {"g": [0, 0, 1, 0], "i": [0, 1, 2, 3], "val": values}
        db.create("G", table, labels="g=3 i=4", tile={"i": tile}, replace=True)
        by_group = db.sql("SELECT g, AVG(val) AS val FROM G GROUP BY g", **run("g i"))
        np.testing.assert_allclose(rows_of(by_group), groups)


@on_every_engine
def test_g23_the_average_of_uneven_parts_on_devices(db: es.Session, engine: str) -> None:
    """[10] and [1, 2, 3]: five cells and then seven, by any number of parts."""
    for values in ([10, 1, 2, 3, 4], [10, 1, 2, 3, 4, 5, 6]):
        db.create("X", values, labels="i", replace=True)
        for parts in range(1, 8):
            query = db.sql("SELECT AVG(val) AS val FROM X", engine=engine, parts={"i": parts})
            assert query.numpy() == pytest.approx(sum(values) / len(values), rel=1e-15)


# ------------------------------------------------------------------------------------------------------------ devices


@everywhere
@pytest.mark.parametrize(("cells", "value"), [(1_000_000, 7), (99_991, 1 << 40), (5, -3)])
def test_g21_what_one_device_made_is_what_the_next_one_reads(db: es.Session, run: Run, cells: int, value: int) -> None:
    """Fresh buffers and another value in every run: data of the run before would show."""
    run = run.by(cells // 3)
    for turn in range(3):
        db.create("X", np.full(cells, value + turn), labels="i", replace=True)
        doubled = "WITH e1 AS (SELECT i, val * 2 AS val FROM X) SELECT SUM(val) AS val FROM e1"
        assert db.sql(doubled, **run("i")).numpy() == 2 * (value + turn) * cells


@pytest.mark.parametrize("devices", [2, 3, 4])
def test_g21_a_hundred_copies_between_devices(db: es.Session, devices: int) -> None:
    """A million cells are brought to one device, summed on all of them, and the sum is brought to the last one."""
    text = "WITH made AS (SELECT i, val + 7 AS val FROM X) SELECT SUM(val) AS val FROM made"
    for turn in range(100):
        db.create("X", np.full(1_000_000, turn), labels="i", replace=True)
        first, last = "|".join("0" * devices), devices - 1
        where = {"made": f"Listed({first})", "e1": f"Listed({last})"}
        query = db.sql(text, engine=f"host:{devices}", parts={"i": devices}, placement=where)
        assert query.numpy() == (7 + turn) * 1_000_000
        assert query.stats is not None and query.stats.moved_bytes > 2 * 8_000_000 * (devices - 1) // devices
