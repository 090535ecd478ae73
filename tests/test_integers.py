"""Integers are exact or an error on every engine, in whatever part of an expression they grow, and however stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import einsql as es
from tests.engines import ENGINES

MOST = 2**63 - 1
OVERFLOW = es.errors.IntegerOverflowError


@pytest.fixture(params=["dense", "cut", "rows"])
def filled(request: pytest.FixtureRequest, db: es.Session) -> es.Session:
    """Floats F, integers I, booleans B over t: in one block, in two, and as rows of single cells."""
    relations = {
        "F": np.array([5e18, 5e18, -1.0, 2.0]),
        "I": np.array([5 * 10**18, 5 * 10**18, -1, 2]),
        "B": np.array([True, False, True, False]),
        "ends": np.array([MOST, -MOST - 1, 0, 0]),
    }
    for name, values in relations.items():
        if request.param == "rows":
            db.create(name, {"t": np.arange(4), "val": values}, labels="t=5")
        else:
            db.create(name, values, labels="t", parts={"t": 2} if request.param == "cut" else None)
    return db


@pytest.mark.parametrize("engine", [*ENGINES, "host:3"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT SUM(CAST(val AS BIGINT)) AS val FROM F", OVERFLOW),
        ("SELECT t, CAST(val AS BIGINT) * 2 AS val FROM F", OVERFLOW),
        ("SELECT t, CAST(val AS BIGINT) + 1 AS val FROM F WHERE val < 3", {2: 0, 3: 3}),
        ("SELECT t, val FROM F WHERE CAST(val AS BIGINT) > 1", {0: 5e18, 1: 5e18, 3: 2}),
        (f"SELECT SUM(CASE WHEN val > 0 THEN {MOST} ELSE 0 END) AS val FROM F", OVERFLOW),
        (f"SELECT SUM(CASE WHEN val > 3e18 THEN {MOST // 2} ELSE 0 END) AS val FROM F", {(): MOST - 1}),
        (f"SELECT t, CASE WHEN val > 0 THEN {MOST} ELSE 0 END + 1 AS val FROM I", OVERFLOW),
        (f"SELECT t, val + {MOST} AS val FROM B", OVERFLOW),
        (f"SELECT t, val + {MOST - 1} AS val FROM B", {0: MOST, 1: MOST - 1, 2: MOST, 3: MOST - 1}),
        (f"SELECT SUM(val + {MOST - 1}) AS val FROM B", OVERFLOW),
        ("SELECT MAX(val) - MIN(val) AS val FROM ends", OVERFLOW),
        ("SELECT MAX(val) + MIN(val) AS val FROM ends", {(): -1}),
        ("SELECT MIN(1 + 1) AS val FROM I", {(): 2}),
        ("SELECT t, SIGN(2) * val AS val FROM I", {0: 5 * 10**18, 1: 5 * 10**18, 2: -1, 3: 2}),
        ("SELECT t, 100000 * 100000 * val AS val FROM B", {0: 10**10, 1: 0, 2: 10**10, 3: 0}),
        ("SELECT t, CAST(2.7 AS INTEGER) * CAST(val AS BIGINT) AS val FROM B", {0: 3, 1: 0, 2: 3, 3: 0}),
        ("SELECT t, CAST(1.5 AS BIGINT) - val AS val FROM B", {0: 1, 1: 2, 2: 1, 3: 2}),
    ],
)
def test_integers_inside_an_expression(filled: es.Session, engine: str, text: str, expected: Any) -> None:
    """Literals, casts and booleans bring integers too."""
    if expected is OVERFLOW:
        with pytest.raises(OVERFLOW):
            filled.sql(text, engine=engine).numpy(fill=0)
        return
    table = filled.sql(text, engine=engine).arrow().to_pydict()
    got = dict(zip(table["t"], table["val"], strict=True)) if "t" in table else {(): table["val"][0]}
    assert got == expected


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda db, i, f, g: i.pad(t=(1, 0), fill=True) + i.pad(t=(1, 0), fill=True), [2, 10, 12]),
        (lambda db, i, f, g: i.pad(t=(1, 0), fill=2**62) * 4, OVERFLOW),
        (lambda db, i, f, g: f.pad(t=(1, 0), fill=10**10) * f.pad(t=(1, 0), fill=10**10), [1e20, 25, 36]),
        (lambda db, i, f, g: g.pad(t=(1, 0), fill=0.1) == 0.1, [True, False, False]),
        (lambda db, i, f, g: db.tensor("S") == 0.1, [True, True, True]),
        (lambda db, i, f, g: db.tensor("W") * 4, OVERFLOW),
        (lambda db, i, f, g: db.tensor("W") - 1, [4, 2**62 - 1, 2**62 - 1]),
        (lambda db, i, f, g: db.tensor(np.zeros((2, 0), "i8"), "a b").max("b") - 1, OVERFLOW),
        (lambda db, i, f, g: -(db.tensor("B") * db.tensor(np.array([1, 2, 3]), "t")), [-1, 0, 0]),
    ],
)
def test_what_absent_cells_are_worth_is_computed_in_their_dtype(
    db: es.Session, engine: str, make: Callable[..., es.Tensor], expected: Any
) -> None:
    """Rounded to it, and never wrapped."""
    db.create("S", {"t": [0], "val": np.array([0.1], "f4")}, labels="t=3", fill=0.1)
    db.create("W", {"t": [0], "val": [5]}, labels="t=3", fill=2**62)
    db.create("B", {"t": [0], "val": [True]}, labels="t=3")
    i, f, g = (db.tensor(np.array([5, 6]).astype(dtype), "t") for dtype in ("i8", "f8", "f4"))
    if expected is OVERFLOW:
        with pytest.raises(OVERFLOW):
            make(db, i, f, g).query(engine=engine).numpy()
    else:
        assert make(db, i, f, g).query(engine=engine).numpy().tolist() == expected
