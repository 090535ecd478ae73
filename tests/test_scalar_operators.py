"""Every scalar operator on numbers that are none too friendly, in every way that an engine has to compute it: as NumPy
on blocks, as SQL on columns of single cells, and independently in the reference interpreter."""

from __future__ import annotations

import math

import numpy as np
import pytest

import einsql as es
from planner.scalar import OPS, ScalarOp

NUMBERS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -2.5,
    3.0,
    1e-12,
    -1e-12,
    1e-300,
    700.0,
    -700.0,
    1e300,
    math.inf,
    -math.inf,
    math.nan,
]
REAL = [op for op in OPS.values() if op.rule not in ("int", "logic")]


def called(op: ScalarOp) -> str:
    """The operator as `combine` reads it, over operands that are numbers."""
    args = ["x0", "x1"][: op.arity] if op.name != "case" else ["x0 < x1", "x0", "x1"]
    return f" {op.infix} ".join(args) if op.infix else f"{op.name}({', '.join(args)})"


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("op", REAL, ids=lambda op: op.name)
def test_an_operator_is_the_same_on_every_engine(db: es.Session, op: ScalarOp, dtype: str) -> None:
    """All pairs of numbers; a relation that lacks a cell is kept as rows of single cells, which DuckDB computes."""
    with np.errstate(over="ignore"):
        first, second = (a.ravel().astype(dtype) for a in np.meshgrid(NUMBERS, NUMBERS, indexing="ij"))
    n = len(first)
    for name, values in (("X", first), ("Y", second)):
        db.create(name, values, labels="i")
        db.create(f"{name}rows", {"i": np.arange(n), "val": values}, labels=f"i={n + 1}", fill=1.0)
    sides = "i,i->i" if op.arity > 1 else "i->i"

    def results(*names: str) -> list[np.ndarray]:
        engines = ("reference", "duckdb", "host:2")
        return [db.einsum(sides, *names[: min(op.arity, 2)], combine=called(op), engine=e).numpy()[:n] for e in engines]

    expected, *others = results("X", "Y") + results("Xrows", "Yrows")
    for got in others:
        assert got.dtype == expected.dtype
        if got.dtype == bool:
            np.testing.assert_array_equal(got, expected)
        else:
            np.testing.assert_allclose(got, expected, rtol=4 * float(np.finfo(dtype).eps), atol=0, equal_nan=True)


GROUPS = [
    [1.0, 2.5, -0.5], [math.inf, 1.0], [-math.inf, 1.0], [math.inf, -math.inf], [math.nan, 1.0], [0.0, math.inf],
    [1e300, 1e300, -1e300], [3e38, 3e38], [-0.0], [1e-320, 1e-320], [math.nan, math.inf, -math.inf], [2.0, math.nan],
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("reduce", ["sum", "prod", "max", "min", "fsum", "any", "all"])
def test_a_reduction_is_the_same_on_every_engine(db: es.Session, reduce: str, dtype: str) -> None:
    """Groups of one to three numbers, the rest of each absent; in one block, cut, and as rows of single cells."""
    rows = [(g, i, x) for g, group in enumerate(GROUPS) for i, x in enumerate(group)]
    with np.errstate(over="ignore"):
        columns = {"g": [r[0] for r in rows], "i": [r[1] for r in rows], "val": np.array([r[2] for r in rows], dtype)}
    db.create("X", columns, labels="g i=4")
    db.create("B", columns, labels="g i=4", tile={"g": 5, "i": 2})
    word = {"any": "BOOL_OR(val <> 0)", "all": "BOOL_AND(val <> 0)", "prod": "PRODUCT(val)"}.get(
        reduce, f"{reduce}(val)"
    )
    results = [
        db.sql(f"SELECT g, {word} AS val FROM {name} GROUP BY g", engine=engine).numpy()
        for engine in ("reference", "duckdb", "host:1", "host:3")
        for name in "XB"
    ]
    for got in results[1:]:
        assert got.dtype == results[0].dtype
        np.testing.assert_allclose(
            got.astype(float), results[0].astype(float), rtol=1e-15 if dtype == "float64" else 1e-6
        )
