"""The builder against plain NumPy, on every engine and under several cuts, and against the other front ends."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.sparse
import scipy.special

import einsql as es
from planner.einsum import Input
from planner.explain import explain_logical
from planner.node import rewrite
from planner.optimizer import optimize_graph
from tests.engines import ENGINES, Run, on_every_engine

Array = np.ndarray
DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
          "complex64", "complex128"]  # fmt: skip
SHAPE = (4, 6)
RUNS = (
    Run("reference"),
    Run("duckdb", "parts", 2),
    Run("duckdb", "tile", 1),
    Run("host:1", "tile", 1),
    Run("host:4"),
    Run("host:4", "parts", 2),
)
everywhere = pytest.mark.parametrize("run", RUNS, ids=str)
in_halves = pytest.mark.parametrize("run", [Run(engine, "parts", 2) for engine in ENGINES], ids=str)


def value(tensor: Any, run: Run, labels: str = "") -> Array:
    """What a tensor is on one engine, with its own labels cut, and others that the test names."""
    result: Array = tensor.query(**run(" ".join([*tensor.labels, *labels.split()]))).numpy()
    assert result.dtype == tensor.dtype and result.shape == tensor.shape
    return result


def whole_numbers(seed: int, shape: tuple[int, ...], dtype: Any = np.int64, low: int = -5) -> Array:
    low = 0 if np.dtype(dtype).kind in "bu" else low
    return np.random.default_rng(seed).integers(low, 6, shape).astype(dtype)


def of_dtype(name: str, shape: tuple[int, ...] = SHAPE) -> Array:
    dtype = ml_dtypes.bfloat16 if name == "bfloat16" else np.dtype(name)
    return whole_numbers(3, shape, dtype)


def close(got: Array, expected: Any, rtol: float = 1e-5) -> None:
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol)


# -------------------------------------------------------------------------------------------------- operators, by label

OPERATORS: tuple[Callable[[Any, Any], Any], ...] = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
)  # fmt: skip


@everywhere
def test_operators_join_by_label(db: es.Session, run: Run) -> None:
    """(t, d) with (d, f): the labels of the left, then the new ones of the right."""
    x, w = whole_numbers(0, (4, 3)), whole_numbers(1, (3, 2))
    w[w == 0] = 4
    a, b = db.tensor(x, "t d"), db.tensor(w, "d f")
    for op in OPERATORS:
        got = op(a, b)
        assert got.labels == ("t", "d", "f")
        expected = op(x[:, :, None], w[None])
        close(value(got, run), expected, 1e-12)
        assert value(got, run).dtype == expected.dtype


@everywhere
def test_operators_take_numbers_on_either_side(db: es.Session, run: Run) -> None:
    x = whole_numbers(0, SHAPE)
    x[x == 0] = 3
    t = db.tensor(x, "t d")
    for op in OPERATORS:
        for number in (3, -3):
            close(value(op(t, number), run), op(x, number), 1e-12)
            close(value(op(number, t), run), op(number, x), 1e-12)
    assert np.array_equal(value(-t, run), -x) and np.array_equal(value(abs(t), run), abs(x))
    assert value(t + np.int8(2), run).tolist() == value(np.float32(2) + t, run).tolist() == (x + 2).tolist()


@on_every_engine
def test_numbers_are_weak(db: es.Session, engine: str) -> None:
    """A literal takes the dtype of the tensor that it meets."""
    for name in ("float16", "float32", "float64"):
        t = db.tensor(np.ones(3, name), "i")
        got = (t * 2.5 + 1).query(engine=engine).numpy()
        assert got.dtype == name and got.tolist() == [3.5] * 3
    assert (db.tensor(np.ones(3, "float32"), "i") * 1j).dtype == np.complex64


@everywhere
def test_conditions(db: es.Session, run: Run) -> None:
    x = whole_numbers(0, SHAPE)
    t = db.tensor(x, "t d")
    got = value(((t > 1) | (t < -2)) & ~(t == 4), run)
    assert got.dtype == bool and np.array_equal(got, ((x > 1) | (x < -2)) & (x != 4))
    assert np.array_equal(value((t > 1) != (t > 2), run), (x > 1) != (x > 2))
    assert np.array_equal(value(es.where(t > 0, t, -t), run), abs(x))


@on_every_engine
def test_powers(db: es.Session, engine: str) -> None:
    x = whole_numbers(0, SHAPE)
    t = db.tensor(x, "t d")
    for n in (0, 1, 2, 5, 20):
        got = (t**n).query(engine=engine).numpy()
        assert got.dtype == np.int64 and np.array_equal(got, x**n)
    f = db.tensor(abs(x) + 0.5, "t d")
    for power in (2, 3, 7, 0.5, -1):
        close((f**power).query(engine=engine).numpy(), (abs(x) + 0.5) ** power, 1e-12)
    close((2**f).query(engine=engine).numpy(), 2 ** (abs(x) + 0.5), 1e-12)


@on_every_engine
def test_label_values(db: es.Session, engine: str) -> None:
    """A label alone, with numbers, in functions and conditions; it takes its extent from what it meets."""
    x = whole_numbers(0, (4, 5))
    t = db.tensor(x, "t s")
    rows, columns = np.indices((4, 5))
    row, column = es.label("t"), es.label("s")
    for got, expected in [
        (t * row, x * rows),
        (t + (column - row) // 2, x + (columns - rows) // 2),
        ((row - column) % 3 + t, (rows - columns) % 3 + x),
        (es.where(column <= row, t, 0), np.where(columns <= rows, x, 0)),
        (t * (row * 2 + 1 > column), x * (rows * 2 + 1 > columns)),
    ]:
        assert np.array_equal(got.query(engine=engine).numpy(), expected)
    got = t.cast("float64") * es.cos(10.0 ** (-2.0 * row / 4) * column)
    close(got.query(engine=engine).numpy(), x * np.cos(10.0 ** (-2.0 * rows / 4) * columns), 1e-12)


# ----------------------------------------------------------------------------------------------------------- functions

FUNCTIONS: list[tuple[Any, Callable[[Array], Array]]] = [
    (es.exp, np.exp),
    (lambda x: es.log(abs(x)), lambda x: np.log(abs(x))),
    (lambda x: es.sqrt(abs(x)), lambda x: np.sqrt(abs(x))),
    (lambda x: es.rsqrt(x * x), lambda x: 1 / abs(x)),
    (es.sin, np.sin),
    (es.cos, np.cos),
    (es.tanh, np.tanh),
    (es.abs, abs),
    (es.sign, np.sign),
    (es.floor, np.floor),
    (es.ceil, np.ceil),
    (es.erf, scipy.special.erf),
    (es.sigmoid, scipy.special.expit),
    (es.silu, lambda x: x * scipy.special.expit(x)),
    (es.gelu, lambda x: x * scipy.special.ndtr(x)),
    (
        lambda x: es.gelu(x, approximate="tanh"),
        lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    ),
    (lambda x: es.maximum(x, 0.5), lambda x: np.maximum(x, 0.5)),
    (lambda x: es.minimum(0.5, x), lambda x: np.minimum(x, 0.5)),
]


@everywhere
def test_functions(db: es.Session, run: Run) -> None:
    x = np.random.default_rng(0).standard_normal(SHAPE)
    for dtype, rtol in (("float64", 1e-12), ("float32", 1e-5)):
        t = db.tensor(x.astype(dtype), "t d")
        for function, expected in FUNCTIONS:
            got = value(function(t), run)
            assert got.dtype == dtype
            close(got, expected(x.astype(dtype)), rtol)


def test_a_function_is_one_node(db: es.Session) -> None:
    x = db.tensor(np.ones(3), "i")
    assert " 0 einsums   1 map " in str(es.gelu(x).explain("logical"))


@on_every_engine
def test_parts_of_complex_numbers(db: es.Session, engine: str) -> None:
    z = whole_numbers(0, SHAPE) + 1j * whole_numbers(1, SHAPE)
    t = db.tensor(z, "t d")
    for got, expected in ((t.real, z.real), (t.imag, z.imag), (t.conj(), z.conj()), (abs(t), abs(z)), (t * t, z * z)):
        close(got.query(engine=engine).numpy(), expected, 1e-12)


@on_every_engine
def test_casts(db: es.Session, engine: str) -> None:
    for name in DTYPES:
        x = db.tensor(of_dtype(name), "t d")
        assert x.dtype.name == name and x.cast(name) is x
        got = x.astype(np.float64) if x.dtype.kind != "c" else x.cast("complex128")
        np.testing.assert_array_equal(got.query(engine=engine).numpy(), of_dtype(name).astype(got.dtype))
    assert db.tensor(np.array([0.5, 1.5, -2.5]), "i").cast(int).query(engine=engine).numpy().tolist() == [0, 2, -2]


# ---------------------------------------------------------------------------------------------------------- reductions


@everywhere
def test_reductions(db: es.Session, run: Run) -> None:
    x = whole_numbers(0, (3, 4, 5))
    t = db.tensor(x, "b t d")
    for name in ["sum", "prod", "max", "min", "any", "all", "mean"]:
        for labels, axes in (("t", 1), ("d b", (0, 2)), (None, None)):
            got = getattr(t, name)(labels)
            close(value(got, run, "b t d"), getattr(x, name)(axis=axes), 1e-12)
    assert t.sum("t").labels == ("b", "d") and t.sum().labels == ()
    close(value(t.cast("float32").fsum("b"), run), x.sum(0), 0)


@on_every_engine
def test_sums_count_booleans_and_widen_narrow_types(db: es.Session, engine: str) -> None:
    flags = whole_numbers(0, SHAPE) > 0
    got = db.tensor(flags, "t d").sum("d").query(engine=engine).numpy()
    assert got.dtype == np.int64 and np.array_equal(got, flags.sum(1))
    close(db.tensor(flags, "t d").mean().query(engine=engine).numpy(), flags.mean(), 1e-12)
    assert db.tensor(np.full(300, 127, "int8"), "i").sum().query(engine=engine).numpy() == 38100
    assert db.tensor(np.full(3000, 1, "float16"), "i").sum().query(engine=engine).numpy() == 3000


@on_every_engine
def test_reductions_over_nothing(db: es.Session, engine: str) -> None:
    empty = db.tensor(np.zeros((2, 0)), "t d")
    for name, expected in {"sum": 0, "prod": 1, "max": -math.inf, "any": False, "all": True, "mean": math.nan}.items():
        np.testing.assert_equal(getattr(empty, name)("d").query(engine=engine).numpy(), [expected] * 2)


# ------------------------------------------------------------------------------------------------------------- labels


@everywhere
def test_labels_are_renamed_and_ordered(db: es.Session, run: Run) -> None:
    x = whole_numbers(0, SHAPE)
    db.create("X", x, labels="i j")
    assert db.tensor("X").labels == ("i", "j") and db.tensor("X", "t=4 d=6").extents == {"t": 4, "d": 6}
    t = db.tensor("X", "t d")
    assert np.array_equal(value(t.transpose("d t"), run), x.T)
    assert np.array_equal(value(t.rename(t="d", d="t").permute("t d") + t.slice(t=(0, 0)).sum(), run), x.T)
    assert np.array_equal(value((t * t.rename(t="s")).sum("d"), run), x @ x.T)
    assert np.array_equal(value(abs(t) * es.label("d"), run), abs(x) * np.arange(6))  # the graph knows i and j only


def test_operands(db: es.Session) -> None:
    """Names, arrays, numbers, queries, tables, sparse matrices; NumPy reads a tensor as an array."""
    x = whole_numbers(0, SHAPE)
    db.create("X", x, labels="t d")
    query = db.sql("SELECT d AS e, t, val FROM X WHERE t >= 0")
    assert query.labels == ("e", "t")
    table = {"t": [0, 1], "val": [5, 7]}
    operands: list[tuple[es.Tensor, Any]] = [
        (db.tensor("X"), x),
        (db.tensor(x.tolist(), "td"), x),
        (db.tensor(2.5), 2.5),
        (db.tensor(db.create("F", {"t": [1], "val": [5]}, labels="t=3", fill=2)), [2, 5, 2]),
        (db.tensor(db.einsum("td->dt", "X"), "a b"), x.T),
        (db.tensor(table, "t=3"), [5, 7, 0]),
        (db.tensor(scipy.sparse.coo_array(np.eye(3)), "a b"), np.eye(3)),
    ]
    for t, expected in operands:
        assert np.array_equal(np.asarray(t), expected)
    with pytest.raises(es.errors.DataError, match="absent cells of the operand"):
        db.tensor(query)


def test_results(db: es.Session) -> None:
    t = db.tensor(whole_numbers(0, SHAPE), "t d") + 1
    query = t.query(engine="host:4", parts={"t": 4})
    assert isinstance(query, es.Query) and query.labels == ("t", "d") and query.plan.parts["e1"] == {"t": 4, "d": 1}
    assert np.array_equal(query.numpy(), t.numpy()) and t.numpy() is not None and t._default is t._default
    assert t.arrow().column_names == ["t", "d", "val"] and t.scipy().shape == SHAPE
    assert db.tensor(t.to_table("Y").name).shape == SHAPE
    assert str(t.explain()).startswith("EXPLAIN") and "SELECT" in str(t.explain("sql"))
    assert str(t) == "Tensor i64[t=4 d=6] over operand1"


def test_equal_operands_are_one(db: es.Session) -> None:
    """A tensor that is used twice is one node; relations of one name stay apart."""
    x, y = whole_numbers(0, SHAPE), whole_numbers(1, SHAPE)
    db.create("X", x, labels="t d")
    old = db.tensor("X")
    assert "e1  := map x0 * x0  X" in str((old * old).explain("logical"))
    assert str(((old + 1) * (db.tensor("X") + 1)).explain("logical")).count(":= input") == 1
    db.create("X", y, labels="t d", replace=True)
    new = db.tensor("X")
    both = old - new
    assert set(both.relations) == {"X", "X_2"}
    assert np.array_equal((both * (new - old) + old).numpy(), (x - y) * (y - x) + x)


@on_every_engine
def test_labels_that_stand_for_values_meet_by_value(db: es.Session, engine: str) -> None:
    """Dictionaries of other extents, or of the same; a label by position meets none of them."""
    db.create("P", {"src": ["a", "b", "c"], "val": [1.0, 2, 3]}, labels="src")
    db.create("Q", {"src": ["b", "c", "d", "e"], "val": [10.0, 20, 30, 40]}, labels="src")
    db.create("R", {"src": ["c", "d", "e"], "d": [0, 0, 0], "val": [7.0, 8, 9]}, labels="src d")
    p, q, r = db.tensor("P"), db.tensor("Q"), db.tensor("R")
    rows = (p + q).query(engine=engine).arrow().to_pydict()
    assert rows == {"src": list("abcde"), "val": [1, 12, 23, 30, 40]}
    assert (p * q).sum().query(engine=engine).numpy() == 2 * 10 + 3 * 20
    assert es.einsum("i,i->", p, q).query(engine=engine).numpy() == 80
    looked_up = r.gather(d=(p * 0).cast("int64")).query(engine=engine).numpy()  # values of c, d, e; none of a and b
    assert looked_up.tolist() == [0, 0, 7, 8, 9]
    assert p.slice(src=(1, 3)).query(engine=engine).arrow().to_pydict() == {"src": [0, 1], "val": [2, 3]}
    with pytest.raises(es.errors.ShapeError, match="stands for values in one operand and for positions in another"):
        p.flip("src") + p
    with pytest.raises(es.errors.ShapeError, match="an expression reads numbers"):
        p * es.label("src")


# ------------------------------------------------------------------------------------------------------ total reading


def sparse(db: es.Session, name: str, fill: float, seed: int = 0, shape: tuple[int, ...] = SHAPE) -> tuple[Any, Array]:
    """A relation with absent cells, and what it is worth as a whole."""
    x = whole_numbers(seed, shape).astype(float)
    x[x < 0] = fill
    db.create(name, x, labels="t d", dense=False, fill=fill)
    return db.tensor(name), x


@everywhere
@pytest.mark.parametrize("fill", [0, 2.5, -math.inf])
def test_absent_cells_have_the_fill(db: es.Session, run: Run, fill: float) -> None:
    a, x = sparse(db, "A", fill)
    b, y = sparse(db, "B", 0, 1)
    for got, expected in [
        (a + 1, x + 1),
        (es.exp(a), np.exp(x)),
        (a.max("t"), x.max(0)),
        (a.sum("d"), x.sum(1)),
        (es.where(es.label("t") > es.label("d"), a, 1), np.where(np.tri(*SHAPE, -1), x, 1)),
        (a.transpose("d t"), x.T),
        (a.shift(t=1), np.vstack([np.zeros((1, 6)), x[:-1]])),
        (a.shift(t=-1, fill=fill), np.vstack([x[1:], np.full((1, 6), fill)])),
        (a.slice(t=(3, 0, -1)), x[3:0:-1]),
        (a.split("d", "p h", h=2), x.reshape(4, 3, 2)),
        (a.merge("t d", "n"), x.ravel()),
        (es.concat([a, b], "t"), np.vstack([x, y])),
        (es.stack([a, b], "n"), np.stack([x, y])),
        (a.gather(t=db.tensor([3, 9], "n")), [x[3], np.zeros(6)]),
        (es.maximum(a, b) + b, np.maximum(x, y) + y),
    ]:
        close(value(got, run), expected, 1e-12)
    if math.isfinite(fill):
        close(value(a * b + b, run), x * y + y, 1e-12)


def test_sparse_operands_stay_sparse(db: es.Session) -> None:
    """Where 0 annihilates, only present cells are computed, as in the graph that SQL gives."""
    a, _ = sparse(db, "A", 0)
    w = db.tensor(whole_numbers(1, (6, 2)), "d f")
    for got in ((a * w).sum("d"), a.shift(t=1), a.slice(t=(1, 3)), a.flip("d"), a.split("d", "p h", h=3)):
        assert "fill" not in str(got.explain("logical"))
        assert not got.whole.node.type.complete
    assert "e1  := map x0 + f64(1)  A" in str((a + 1).explain("logical"))  # an absent cell is worth 1 then


# ------------------------------------------------------------------------------------------------------------ indexing


@everywhere
def test_indexing(db: es.Session, run: Run) -> None:
    x = whole_numbers(0, (5, 6))
    t = db.tensor(x, "t d")
    padded = np.pad(x, ((1, 2), (0, 3)), constant_values=7)
    for got, expected in [
        (t.slice(t=(1, 3)), x[1:3]),
        (t.slice(t=slice(1, None, 2), d=(-2, None)), x[1::2, -2:]),
        (t.slice(t=slice(None, None, -1)), x[::-1]),
        (t.slice(t=(4, 0, -3)), x[4:0:-3]),
        (t.slice(t=(2, 2)), x[2:2]),
        (t.slice(t=(0, 99)), x),
        (t.shift(t=1), np.vstack([x[:1] * 0, x[:-1]])),
        (t.shift(t=-2, fill=9), np.vstack([x[2:], x[:2] * 0 + 9])),
        (t.shift(t=99), x * 0),
        (t.shift(t=1, d=1), np.pad(x, ((1, 0), (1, 0)))[:-1, :-1]),
        (t.pad(t=(1, 2), d=(0, 3), fill=7), padded),
        (t.flip("t d"), x[::-1, ::-1]),
        (t.split("d", "pair half", half=2), x.reshape(5, 3, 2)),
        (t.split("d", "a d", a=2), x.reshape(5, 2, 3)),
        (t.split("d", "a b c", a=1, c=3), x.reshape(5, 1, 2, 3)),
        (t.split("d", "pair half", half=2).merge("pair half", "d"), x),
        (t.merge("d t", "n"), x.T.ravel()),
        (t.split("d", "a b c", b=2, c=3).merge("a b c", "n"), x),
        (es.concat([t, t.rename(d="d").slice(t=(1, 2)), t.slice(t=(0, 0))], "t"), np.vstack([x, x[1:2]])),
        (es.concat([t, t.transpose("d t"), t], "d"), np.hstack([x, x, x])),
        (es.stack([t, -t, t + 1], "n"), np.stack([x, -x, x + 1])),
    ]:
        assert np.array_equal(value(got, run), expected), (got, value(got, run), expected)


@everywhere
def test_look_ups(db: es.Session, run: Run) -> None:
    """Rows of a table, batches of rows, permutations; outside of the table is the fill."""
    table = whole_numbers(0, (5, 3))
    index = np.array([[4, 0], [2, 2], [5, -1]])
    padded = np.vstack([table, table[:1] * 0])
    t, i = db.tensor(table, "v d"), db.tensor(index, "m n")
    assert es.gather(t, i, "v").labels == ("m", "n", "d")
    assert np.array_equal(value(es.gather(t, i, "v"), run), padded[np.where(index < 0, 5, index)])
    filled = np.vstack([table, table[:1] * 0 + 8])
    assert np.array_equal(value(t.gather(v=i, fill=8), run), filled[np.where(index < 0, 5, index)])
    order = np.array([2, 0, 4, 1, 3], "int8")
    assert np.array_equal(value(t.gather(v=db.tensor(order, "v")), run), table[order])
    batch = db.tensor(np.array([1, 0, 4]), "d")  # joined on d: one element per column
    assert np.array_equal(value(t.gather(v=batch), run), table[[1, 0, 4], [0, 1, 2]])
    hot = es.one_hot(i, "v", 5)
    assert hot.dtype == bool and np.array_equal(value(hot, run), index[..., None] == np.arange(5))
    assert np.array_equal(value((hot * t).sum("v"), run), padded[np.where(index < 0, 5, index)])


@in_halves
@pytest.mark.parametrize("name", DTYPES)
def test_indexing_keeps_the_dtype(db: es.Session, run: Run, name: str) -> None:
    x = of_dtype(name)
    t = db.tensor(x, "t d")
    zero = np.zeros((1, 6), x.dtype)
    for got, expected in [
        (t.slice(t=(1, 3)), x[1:3]),
        (t.shift(t=1), np.concatenate([zero, x[:-1]])),
        (t.merge("t d", "n"), x.ravel()),
        (es.concat([t, t], "t"), np.concatenate([x, x])),
        (es.stack([t, t], "n"), np.stack([x, x])),
        (t.gather(t=db.tensor([1, 9], "n")), np.concatenate([x[1:2], zero])),
    ]:
        assert got.dtype == x.dtype and np.array_equal(value(got, run), expected)


@on_every_engine
def test_indexing_keeps_nan_and_infinity(db: es.Session, engine: str) -> None:
    x = np.array([math.nan, -math.inf, math.inf, -0.0])
    t = db.tensor(x, "i")
    for got, expected in ((t.flip("i"), x[::-1]), (es.concat([t, t], "i"), [*x, *x]), (t.shift(i=1), [0, *x[:-1]])):
        np.testing.assert_array_equal(got.query(engine=engine, parts={"i": 2}).numpy(), expected)
    assert np.signbit(t.flip("i").query(engine=engine).numpy()[0])


@on_every_engine
def test_many_are_put_together(db: es.Session, engine: str) -> None:
    x = whole_numbers(0, (11, 3))
    parts = [db.tensor(row, "d") for row in x]
    assert np.array_equal(es.stack(parts, "n").query(engine=engine).numpy(), x)
    assert np.array_equal(es.concat(parts, "d").query(engine=engine).numpy(), x.ravel())
    mixed = es.concat([db.tensor(np.ones(2, "int8"), "i"), db.tensor(np.zeros(0, "float32"), "i")], "i")
    assert mixed.dtype == np.float32 and mixed.query(engine=engine).numpy().tolist() == [1, 1]


# -------------------------------------------------------------------------------------------------------------- layers


def softmax(x: Array, axis: int = -1) -> Array:
    with np.errstate(invalid="ignore"):
        weight = np.exp(x - np.where(np.isinf(x.max(axis, keepdims=True)), 0, x.max(axis, keepdims=True)))
    total = weight.sum(axis, keepdims=True)
    done: Array = weight / np.where(total == 0, 1, total)
    return done


@everywhere
def test_softmax(db: es.Session, run: Run) -> None:
    """Large scores, and a row that is masked wholly: zeros, and minus infinity as a logarithm."""
    x = np.array([[1000.0, 1001, 0], [-math.inf] * 3, [-math.inf, 2, 2], [-1000, -1000, -1001]])
    t = db.tensor(x, "t s")
    expected = softmax(x)
    close(value(es.softmax(t, "s"), run), expected, 1e-12)
    with np.errstate(divide="ignore"):
        close(value(es.logsumexp(t, "s"), run), scipy.special.logsumexp(x, axis=1), 1e-12)
        close(np.exp(value(es.log_softmax(t, "s"), run)), expected, 1e-12)
    assert value(es.log_softmax(t, "s"), run)[0, 2] == -1001 - math.log1p(math.exp(-1))
    close(value(es.softmax(db.tensor(whole_numbers(0, SHAPE), "t d"), "t d"), run).sum(), 1, 1e-12)


@everywhere
def test_norms(db: es.Session, run: Run) -> None:
    rng = np.random.default_rng(0)
    x, w, b = rng.standard_normal((4, 6)), rng.standard_normal(6), rng.standard_normal(6)
    t, weight, bias = db.tensor(x, "t d"), db.tensor(w, "d"), db.tensor(b, "d")
    root = np.sqrt((x * x).mean(1, keepdims=True) + 1e-6)
    close(value(es.rms_norm(t, weight, "d", 1e-6), run), x / root * w, 1e-12)
    close(value(es.rms_norm(t, None, "d", 1e-6), run), x / root, 1e-12)
    normal = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    close(value(es.layer_norm(t, weight, bias, "d"), run), normal * w + b, 1e-12)
    close(value(es.layer_norm(t, None, None, "d"), run), normal, 1e-12)
    close(value(es.layer_norm(t, None, None, "t d"), run), (x - x.mean()) / np.sqrt(x.var() + 1e-5), 1e-12)


@everywhere
def test_attention(db: es.Session, run: Run) -> None:
    """Grouped heads: two groups of three query heads; causal, masked by booleans, by numbers, by an expression."""
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((4, 2, 3, 8)), rng.standard_normal((5, 2, 8)), rng.standard_normal((5, 2, 6))
    seen = np.tri(4, 5, dtype=bool)
    some = rng.random((4, 5)) < 0.5
    some[1] = False
    bias = rng.standard_normal((4, 5))
    scores = np.einsum("tgre,sge->tgrs", q, k) / math.sqrt(8)
    queries, keys, values = db.tensor(q, "t g r e"), db.tensor(k, "s g e"), db.tensor(v, "s g c")

    def expected(scores: Array) -> Array:
        result: Array = np.einsum("tgrs,sgc->tgrc", softmax(scores), v)
        return result

    def masked(mask: Array, scores: Array = scores) -> Array:
        result: Array = np.where(mask[:, None, None], scores, -math.inf)
        return result

    window = abs(np.arange(4)[:, None] - np.arange(5)) < 2
    cases: list[tuple[dict[str, Any], Array]] = [
        ({}, scores),
        ({"causal": True}, masked(seen)),
        ({"mask": db.tensor(some, "t s")}, masked(some)),
        ({"mask": db.tensor(some, "t s"), "causal": True}, masked(seen & some)),
        ({"mask": db.tensor(bias, "t s"), "causal": True}, masked(seen, scores + bias[:, None, None])),
        ({"mask": abs(es.label("t") - es.label("s")) < 2}, masked(window)),
        ({"scale": 2.0}, scores * math.sqrt(8) * 2),
    ]
    for options, want in cases:
        got = es.attention(queries, keys, values, **options)
        assert got.labels == ("t", "g", "r", "c")
        close(value(got, run, "s"), expected(want), 1e-9)
    assert not value(es.attention(queries, keys, values, mask=db.tensor(some, "t s")), run)[1].any()


@everywhere
@pytest.mark.parametrize("style", ["neighbours", "halves"])
def test_rope(db: es.Session, run: Run, style: str) -> None:
    x = np.random.default_rng(0).standard_normal((4, 2, 6))
    first, second = (x[..., ::2], x[..., 1::2]) if style == "neighbours" else (x[..., :3], x[..., 3:])
    positions = np.array([7, 3, 0, 2])
    t = db.tensor(x, "t h e")
    for given, place in (
        ("t", np.arange(4)),
        (db.tensor(positions, "t"), positions),
        (es.label("t") + 17, np.arange(4) + 17),
    ):
        angle = place[:, None, None] * 100.0 ** (-2 * np.arange(3) / 6)
        turned = (first + 1j * second) * np.exp(1j * angle)
        expected = (
            np.stack([turned.real, turned.imag], -1).reshape(x.shape)
            if style == "neighbours"
            else np.concatenate([turned.real, turned.imag], -1)
        )
        close(value(es.rope(t, given, "e", base=100.0, style=style), run), expected, 1e-12)


@on_every_engine
def test_layers_keep_narrow_floats(db: es.Session, engine: str) -> None:
    """float16 and bfloat16 come back as they are; sums in between are float32."""
    x = np.random.default_rng(0).standard_normal(SHAPE)
    for dtype in ("float16", ml_dtypes.bfloat16):
        t = db.tensor(x.astype(dtype), "t d")
        layers = [
            es.softmax(t, "d"),
            es.rms_norm(t, None, "d"),
            es.layer_norm(t, None, None, "d"),
            es.rope(t, "t", "d"),
        ]
        for got in [*layers, es.attention(t, t.rename(t="s"), t.rename(t="s"), features="d")]:
            assert got.dtype == dtype
        close(layers[0].query(engine=engine).numpy().astype(float), softmax(x), 0.05)


# ---------------------------------------------------------------------------------------------------------- einsums


@everywhere
def test_einsum_over_tensors(db: es.Session, run: Run) -> None:
    x, w = whole_numbers(0, (4, 3)), whole_numbers(1, (3, 2))
    a, b = db.tensor(x, "t d"), db.tensor(w, "d f")
    got = es.einsum("ij,jk->ki", a, b)
    assert got.labels == ("k", "i") and np.array_equal(value(got, run), (x @ w).T)
    assert es.einsum("ij,jk->ki", a, b, labels="f t").labels == ("f", "t")
    assert np.array_equal(value(es.einsum(a, [0, 1], b, [1, 2]), run), x @ w)
    least = es.einsum("ij,jk->ik", a, b, combine="add", reduce="min")
    assert np.array_equal(value(least, run), (x[:, :, None] + w).min(1))
    assert np.array_equal(value(es.einsum("...j->...", es.softmax(a, "d") * 0 + a), run), x.sum(1))


# ------------------------------------------------------------------------------------------ the same graph as elsewhere


def logical(query: es.Query) -> str:
    """EXPLAIN LOGICAL with nodes called by position, as the names of common table expressions mean nothing."""
    anonymous = rewrite(query.graph, lambda node: node if isinstance(node, Input) else replace(node, name=""))
    return explain_logical(optimize_graph(anonymous))


def matrices(db: es.Session, dtype: str = "float32") -> None:
    rng = np.random.default_rng(0)
    for name, shape, labels in (("X", (8, 4), "t d"), ("W", (4, 6), "d f"), ("U", (4, 6), "d f"), ("V", (6, 4), "f d")):
        db.create(name, rng.integers(-3, 4, shape).astype(dtype), labels=labels)


@pytest.mark.parametrize("dtype", ["int8", "int64", "float16", "float32", "float64", "complex64"])
def test_a_product_is_the_einsum(db: es.Session, dtype: str) -> None:
    matrices(db, dtype)
    x, w = db.tensor("X"), db.tensor("W")
    built = logical((x * w).sum("d").query())
    text = "SELECT x.t, w.f, SUM(x.val * w.val) AS val FROM X x JOIN W w ON x.d = w.d GROUP BY x.t, w.f"
    assert built == logical(db.sql(text))
    assert built == logical(db.einsum("td,df->tf", "X", "W")) == logical(es.einsum("td,df->tf", x, w).query())


def test_a_product_of_three_is_the_einsum(db: es.Session) -> None:
    matrices(db)
    x, w, v = db.tensor("X"), db.tensor("W"), db.tensor("V").rename(d="c")
    assert logical((x * w * v).sum("d f").query()) == logical(db.einsum("td,df,fc->tc", "X", "W", "V"))


def test_the_mlp_of_a_transformer_is_that_of_sql(db: es.Session) -> None:
    matrices(db)
    x, w, u, v = (db.tensor(name) for name in "XWUV")
    gate, up = (x * w).sum("d"), (x * u).sum("d")
    built = (es.silu(gate) * up * v).sum("f")
    text = """
        WITH gate AS (SELECT x.t, w.f, SUM(x.val * w.val) AS val FROM X x JOIN W w ON x.d = w.d GROUP BY x.t, w.f),
             act AS (SELECT t, f, silu(val) AS val FROM gate),
             up AS (SELECT x.t, u.f, SUM(x.val * u.val) AS val FROM X x JOIN U u ON x.d = u.d GROUP BY x.t, u.f)
        SELECT a.t, v.d, SUM(a.val * u.val * v.val) AS val
        FROM act a JOIN up u ON a.t = u.t AND a.f = u.f JOIN V v ON a.f = v.f GROUP BY a.t, v.d
    """
    assert logical(built.query()) == logical(db.sql(text))
    assert np.array_equal(built.numpy(), db.sql(text).numpy())


def test_causal_scores_are_those_of_sql(db: es.Session) -> None:
    matrices(db)
    q, k = db.tensor("X"), db.tensor("X").rename(t="s")
    scores = (q * k).sum("d")
    built = es.where(es.label("s") <= es.label("t"), scores, -math.inf)
    text = """
        SELECT q.t, k.t AS s,
               CASE WHEN k.t <= q.t THEN SUM(q.val * k.val) ELSE CAST('-infinity' AS FLOAT) END AS val
        FROM X q JOIN X k ON q.d = k.d GROUP BY q.t, k.t
    """
    assert logical(built.query()) == logical(db.sql(text))


def test_a_longer_label_is_that_of_sql(db: es.Session) -> None:
    matrices(db)
    text = "SELECT t + 1 AS t, d, val FROM X"
    assert np.array_equal(db.tensor("X").pad(t=(1, 0)).numpy(), db.sql(text).numpy(fill=0))


# -------------------------------------------------------------------------------------------------------------- errors

SHAPE_ERRORS: list[tuple[Callable[[Any, Any], Any], str]] = [
    (lambda x, w: x + w.rename(f="t"), r"label 't' has extent 4 in Tensor f32\[t=4 d=6\] over X but 2 in Tensor"),
    (lambda x, w: x + w.slice(d=(0, 1)), r"label 'd' has extent 6 in .* but 1 in"),
    (lambda x, w: x.sum("dd"), r"no label 'dd' in Tensor f32\[t=4 d=6\] over X; did you mean 'd'\?"),
    (lambda x, w: x.sum("q"), r"no label 'q' in .*; labels are t, d"),
    (lambda x, w: x * es.label("q"), r"es.label\('q'\) is read where no tensor has it: Tensor f32\[t=4 d=6\]"),
    (lambda x, w: x.rename(q="t"), "no label 'q'"),
    (lambda x, w: x.rename(t="d"), "labels must be distinct"),
    (lambda x, w: x.rename(t="val"), "cannot be called 'val'"),
    (lambda x, w: x.transpose("d"), r"transpose wants every label of .*; d leaves out t"),
    (lambda x, w: x & w, "and wants a condition, got x0 of dtype float32"),
    (lambda x, w: x // 2, "intdiv wants integers, got float32"),
    (lambda x, w: es.where(x, x, x), "case wants a condition"),
    (lambda x, w: (x * 1j) < 0, "lt wants real numbers, got complex64"),
    (lambda x, w: (x * 1j).max(), "wants real numbers, got complex64"),
    (lambda x, w: (x * 1j).cast("float32"), "is complex"),
    (lambda x, w: es.gelu(x, approximate="sigmoid"), "approximate is 'none' or 'tanh'"),
    (lambda x, w: x.slice(q=(0, 1)), "no label 'q'"),
    (lambda x, w: x.slice(t=3), r"a slice of 't' is written like t=\(1, 3\)"),
    (lambda x, w: x.slice(t=(0, 4, 0)), "step 0"),
    (lambda x, w: x.shift(t=0.5), "a shift is a whole number, got 0.5"),
    (lambda x, w: x.pad(t=(-1, 0)), "padding is written like"),
    (lambda x, w: x.split("d", "a b"), "label 'd' of .* has 6 coordinates, which no extents cannot split into a b"),
    (lambda x, w: x.split("d", "a b", b=4), "6 coordinates, which b=4 cannot split"),
    (lambda x, w: x.split("d", "a b", a=2, b=2), "a=2 b=2 cannot split"),
    (lambda x, w: x.split("d", "a b", c=2), "no label 'c' among the new labels"),
    (lambda x, w: x.split("d", "t b", b=2), "labels must be distinct"),
    (lambda x, w: x.merge("", "n"), "merge wants the labels"),
    (lambda x, w: es.concat([x, w], "d"), "differ in labels or extents other than 'd'"),
    (lambda x, w: es.concat([x, x], "q"), "no label 'q'"),
    (lambda x, w: es.concat([], "q"), "nothing to put together"),
    (lambda x, w: es.stack([x, w], "n"), "differ in labels or extents"),
    (lambda x, w: es.stack([x, x], "t"), "stack wants a new label"),
    (lambda x, w: es.gather(x, w, "t"), r"an index into label 't' of .* holds integers, got Tensor f32\[d=6 f=2\]"),
    (lambda x, w: x.gather(q=w), "no label 'q'"),
    (lambda x, w: x.gather(t=w, d=w), "one label at a time, got t, d"),
    (lambda x, w: es.one_hot(x, "v", 3), "a one-hot index holds integers"),
    (lambda x, w: es.rope(x, "t", "d", style="thirds"), "style is 'neighbours' or 'halves'"),
    (lambda x, w: es.rope(x.slice(d=(0, 5)), "t", "d"), "an odd number"),
    (lambda x, w: es.attention(x, x, x, features="d"), "no label 's'"),
    (lambda x, w: es.attention(x, x.rename(t="s"), x, features="d"), "no label 's'"),
    (lambda x, w: es.einsum("td,df->tf", x, w, labels="t"), "has 2 axes"),
    (lambda x, w: es.einsum("td,df->tf", x), "names 2 operands, got 1"),
]


@pytest.mark.parametrize(("wrong", "message"), SHAPE_ERRORS, ids=range(len(SHAPE_ERRORS)))
def test_shape_errors(db: es.Session, wrong: Callable[[Any, Any], Any], message: str) -> None:
    """They name the tensors with their labels and extents, and what there is instead."""
    db.create("X", np.ones((4, 6), "f4"), labels="t d")
    db.create("W", np.ones((6, 2), "f4"), labels="d f")
    with pytest.raises(es.errors.ShapeError, match=message):
        wrong(db.tensor("X"), db.tensor("W"))


def test_other_errors(db: es.Session) -> None:
    x = db.tensor(np.ones((4, 6)), "t d")
    with pytest.raises(es.errors.UnsupportedError, match=r"no truth value before it is run.*\n.*& \| ~"):
        bool(x == x)
    with pytest.raises(es.errors.DataError, match=r"got ndarray: an array has no labels\n.*db.tensor\(array, 't d'\)"):
        np.ones((4, 6)) * x
    with pytest.raises(es.errors.DataError, match="got str"):
        x + "W"
    with pytest.raises(es.errors.DataError, match="one argument is a tensor"):
        es.exp(2.0)  # type: ignore[type-var]
    with pytest.raises(es.errors.DataError, match=r"has no value .* for fill"):
        x.cast("int64").shift(t=1, fill=0.5)
    with pytest.raises(es.errors.DataError, match="is a tensor, got ndarray"):
        es.einsum("td->t", np.ones((4, 6)))
    with pytest.raises(es.errors.DataError, match="a one-hot index is a tensor"):
        es.one_hot(np.ones(3), "v", 3)  # type: ignore[arg-type]
    with pytest.raises(es.errors.IntegerOverflowError):
        x + 2**63
    with pytest.raises(es.errors.CatalogError, match="no relation 'Y'"):
        db.tensor("Y")
    with pytest.raises(es.errors.ShapeError, match="2 axes"):
        db.tensor(db.einsum("td->dt", np.ones((4, 6))), "a b c")
    with pytest.raises(es.errors.PlanError, match="no label 'q'"):
        x.query(parts={"q": 2}).numpy()
    with es.connect() as other, pytest.raises(es.errors.DataError, match="tensors of two sessions"):
        x + other.tensor(np.ones((4, 6)), "t d")
