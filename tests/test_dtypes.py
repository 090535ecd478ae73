"""The type table, row by row."""

from __future__ import annotations

import itertools
import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import einsql as es
from gpu_exec.kernels.dtype import numpy_dtype
from gpu_exec.kernels.exact_sum import exact_terms, rounded
from planner.dtypes import BFLOAT16, DTYPES, DType, accumulator, identity, promote, reduce_dtype
from planner.scalar_text import parse
from planner.scalar_types import typed

BY_NAME = {d.name: d for d in DTYPES}
pairs = pytest.mark.parametrize(("a", "b"), list(itertools.combinations_with_replacement(DTYPES, 2)), ids=str)


@pairs
def test_promotion_is_that_of_numpy(a: DType, b: DType) -> None:
    """bfloat16 has no rules in NumPy: an integer of its precision keeps it, anything else takes float32 at least."""
    if BFLOAT16 not in (a, b):
        want = np.promote_types(numpy_dtype(a), numpy_dtype(b)).name
    else:
        other = b if a == BFLOAT16 else a
        small = other == BFLOAT16 or (other.is_exact and other.bits <= 8)
        want = "bfloat16" if small else np.promote_types(np.float32, numpy_dtype(other)).name
    assert promote(a, b).name == promote(b, a).name == want


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_dtype_is_what_numpy_says(dtype: DType) -> None:
    own = numpy_dtype(dtype)
    assert own.itemsize == dtype.itemsize
    if dtype.is_int:
        assert dtype.range == (np.iinfo(own).min, np.iinfo(own).max)
    elif not dtype.is_exact:
        assert dtype.eps == float(ml_dtypes.finfo(own).eps)


@pytest.mark.parametrize(
    ("expression", "dtypes", "result"),
    [
        ("x0 * x1", "int8 int8", "int64"),
        ("x0 * x1", "bool bool", "bool"),
        ("x0 + x1", "bool bool", "int64"),
        ("-x0", "uint8", "int64"),
        ("abs(x0)", "int16", "int64"),
        ("abs(x0)", "complex64", "float32"),
        ("real(x0)", "complex128", "float64"),
        ("conj(x0)", "complex64", "complex64"),
        ("max(x0, x1)", "int8 uint8", "int16"),
        ("max(x0, 300)", "int8", "int64"),
        ("max(x0, 3)", "int8", "int8"),
        ("x0 / x1", "int8 int8", "float64"),
        ("x0 * 2", "float16", "float16"),
        ("x0 * 2.5", "int8", "float64"),
        ("x0 * t", "float16", "float32"),
        ("x0 * t", "float32", "float32"),
        ("x0 * 2j", "float32", "complex64"),
        ("x0 * 2j", "int8", "complex128"),
        ("x0 // x1", "int8 int16", "int64"),
        ("x0 == x1", "complex64 int8", "bool"),
        ("case(x0 > 0, x0, 0)", "int8", "int8"),
        ("exp(x0)", "complex64", "complex64"),
        ("exp(x0)", "bool", "float64"),
    ],
)
def test_the_dtype_of_an_expression(expression: str, dtypes: str, result: str) -> None:
    assert typed(parse(expression), [BY_NAME[name] for name in dtypes.split()])[1].name == result


@pytest.mark.parametrize("expression", ["x0 < x1", "max(x0, x1)", "floor(x0)", "sign(x0)", "x0 % x1", "f32(x0)"])
def test_complex_numbers_have_no_order(expression: str) -> None:
    with pytest.raises(es.errors.ShapeError, match="complex"):
        typed(parse(expression), [BY_NAME["complex64"]] * 2)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_identities_are_neutral(dtype: DType) -> None:
    ones = np.ones(1, numpy_dtype(dtype))
    for reduce, ufunc in (("sum", np.add), ("prod", np.multiply), ("max", np.maximum), ("min", np.minimum)):
        if not (dtype.is_complex and reduce in ("max", "min")):
            wide = numpy_dtype(reduce_dtype(reduce, dtype))
            neutral = np.asarray(identity(reduce, reduce_dtype(reduce, dtype))).astype(wide)
            assert ufunc(neutral, ones.astype(wide)) == ones.astype(wide)
    assert accumulator(accumulator(dtype)) == accumulator(dtype)


# --------------------------------------------------------------------------------------------------------- exact sums

FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(values=st.lists(FLOATS, min_size=1, max_size=30))
def test_an_exact_sum_is_fsum_in_any_order(values: list[float]) -> None:
    """Terms that cancel, subnormals, and sums beyond the largest float on the way."""
    array = np.array(values)
    try:
        want = math.fsum(values)
    except OverflowError:
        want = math.copysign(math.inf, sum(v / 2**60 for v in values))
    for order in (array, array[::-1], np.sort(array)):
        got = rounded(np.asarray(np.add.reduce(exact_terms(order)), object))
        assert got == want


@pytest.mark.parametrize(
    ("values", "want"), [([np.inf, 1e308], np.inf), ([np.inf, -np.inf], np.nan), ([np.nan, 1.0], np.nan), ([], 0.0)]
)
@pytest.mark.parametrize("engine", ["reference", "host:1", "host:3", "duckdb"])
def test_what_is_not_finite_is_summed_as_floats_are(values: list[float], want: float, engine: str) -> None:
    with es.connect(engine=engine) as db:
        got = db.einsum("i->", np.array(values), reduce="fsum", parts={"i": 3}).numpy()
        np.testing.assert_equal(got[()], want)


def test_parts_that_cancel_meet_exactly() -> None:
    """Each device has a part that rounding would lose."""
    values = np.array([1e16, 1.0, -1e16, 2.0**-60] * 3)
    with es.connect() as db:
        for engine in ("host:1", "host:2", "host:4", "duckdb", "reference"):
            query = db.einsum("i->", values, reduce="fsum", engine=engine, parts={"i": 6})
            assert query.numpy() == math.fsum(values)
        rows = {"i": np.arange(12), "val": values}
        db.create("R", rows, labels="i")
        for engine in ("host:1", "host:4", "duckdb"):
            assert db.sql("SELECT FSUM(val) AS val FROM R", engine=engine).numpy() == math.fsum(values)
