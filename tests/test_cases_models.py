"""Public faults of language models, as cases: rotary pairs, grouped heads, rows that are masked wholly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import einsql as es
from tests.engines import Run, everywhere

Array = np.ndarray

# How a pairing is written: the pair of coordinate d, its other half, and whether d comes first, of `n` coordinates.
PAIRINGS = {
    "neighbours": ("a.d // 2", "a.d + 1 - 2 * (a.d % 2)", "a.d % 2 = 0"),
    "halves": ("a.d % {half}", "(a.d + {half}) % {n}", "a.d < {half}"),
}


def rotary(pairing: str, n: int) -> str:
    """SQL that turns every pair of Q's n coordinates by its angle at position t."""
    pair, other, first = (part.format(n=n, half=n // 2) for part in PAIRINGS[pairing])
    angle = f"a.t * POWER(10000.0, -2.0 * ({pair}) / {n})"
    return f"""
        SELECT a.t, a.d, a.val * COS({angle}) + CASE WHEN {first} THEN -b.val ELSE b.val END * SIN({angle}) AS val
        FROM Q a JOIN Q b ON a.t = b.t AND b.d = {other}
    """


def turned(q: Array, pairing: str) -> Array:
    """The same through complex numbers."""
    n = q.shape[1]
    first, second = (q[:, ::2], q[:, 1::2]) if pairing == "neighbours" else (q[:, : n // 2], q[:, n // 2 :])
    angle = np.arange(len(q))[:, None] * 10000.0 ** (-2 * np.arange(n // 2) / n)
    z = (first + 1j * second) * np.exp(1j * angle)
    if pairing == "halves":
        return np.concatenate([z.real, z.imag], axis=1)
    return np.stack([z.real, z.imag], axis=2).reshape(q.shape)


@everywhere
@pytest.mark.parametrize(
    ("pairing", "expected"),
    [
        ("neighbours", [-1.142640, 1.922076, 2.959851, 4.029800]),
        ("halves", [-1.984111, 1.959901, 2.462378, 4.019800]),
    ],
)
def test_g24_rotary_pairs_are_neighbours_or_halves_as_written(
    db: es.Session, run: Run, pairing: str, expected: list[float]
) -> None:
    """[1, 2, 3, 4] at position 1, other positions and six coordinates, against complex numbers."""
    db.create("Q", np.array([[0.0] * 4, [1, 2, 3, 4]]), labels="t d", **run.cut("t d"))
    got = db.sql(rotary(pairing, 4), **run("t d")).numpy()
    np.testing.assert_allclose(got, [[0] * 4, expected], atol=1e-6)
    for positions, n in ((3, 6), (5, 4), (2, 2)):
        q = np.random.default_rng(n).standard_normal((positions, n))
        db.create("Q", q, labels="t d", replace=True, **run.cut("t d"))
        got = db.sql(rotary(pairing, n), **run("t d")).numpy()
        np.testing.assert_allclose(got, turned(q, pairing), rtol=1e-12, atol=1e-12)


@everywhere
@pytest.mark.parametrize(("heads", "groups"), [(4, 2), (6, 3), (6, 2), (4, 1), (3, 3)])
def test_g25_query_heads_share_value_heads_in_order(db: es.Session, run: Run, heads: int, groups: int) -> None:
    """Query head h reads value head h // (heads / groups): 1, 1, 10, 10 for four heads and two."""
    each = heads // groups
    values = 10.0 ** np.arange(groups)
    db.create("weight", np.ones((heads, 1)), labels="h s", **run.cut("h s"))
    db.create("V", values[:, None], labels="g s", **run.cut("g s"))
    text = f"""
        SELECT w.h, SUM(w.val * v.val) AS val FROM weight w JOIN V v ON w.s = v.s AND v.g = w.h // {each} GROUP BY w.h
    """
    assert (heads, groups) != (4, 2) or np.repeat(values, each).tolist() == [1, 1, 10, 10]
    assert db.sql(text, **run("h s g")).numpy().tolist() == np.repeat(values, each).tolist()
    db.create("grouped", np.ones((groups, each, 1)), labels="g r s")
    by_einsum = db.einsum("grs,gs->gr", "grouped", "V", **run("g r s"))
    assert by_einsum.numpy().ravel().tolist() == np.repeat(values, each).tolist()


@everywhere
def test_g25_grouped_attention(db: es.Session, run: Run) -> None:
    """Scores and values over four query and two key heads, three positions, against repeated heads."""
    rng = np.random.default_rng(4)
    q, k, v = rng.integers(-3, 4, (4, 2)), rng.integers(-3, 4, (2, 3, 2)), rng.integers(-3, 4, (2, 3, 2))
    for name, array, labels in (("Q", q, "h e"), ("K", k, "g s e"), ("V", v, "g s c")):
        db.create(name, array, labels=labels, **run.cut(labels))
    text = """
        WITH score AS (
          SELECT q.h, k.s, SUM(q.val * k.val) AS val FROM Q q JOIN K k ON q.e = k.e AND k.g = q.h // 2 GROUP BY q.h, k.s
        )
        SELECT w.h, v.c, SUM(w.val * v.val) AS val FROM score w JOIN V v ON w.s = v.s AND v.g = w.h // 2
        GROUP BY w.h, v.c
    """
    expected = np.einsum("he,hse,hsc->hc", q, k.repeat(2, axis=0), v.repeat(2, axis=0))
    assert db.sql(text, **run("h g s e c")).numpy().tolist() == expected.tolist()


SOFTMAX = """
    WITH masked AS (SELECT i, j, {value} AS val FROM S {where}),
         top AS (SELECT i, MAX(val) AS val FROM masked GROUP BY i),
         weight AS (SELECT s.i, s.j, EXP(s.val - m.val) AS val FROM masked s JOIN top m ON s.i = m.i),
         total AS (SELECT i, SUM(val) AS val FROM weight GROUP BY i)
    SELECT w.i, w.j, w.val / n.val AS val FROM weight w JOIN total n ON w.i = n.i
"""
SCORES: list[Any] = [
    ([[5, 6], [1000, 1001]], [[0, 0], [0.26894142, 0.73105858]]),
    ([[-math.inf, -math.inf], [1000, 1001]], [[0, 0], [0.26894142, 0.73105858]]),
    (
        [[9, 9, 9], [-1000, -1000, -1001], [0, 0, math.log(2)]],
        [[0] * 3, [0.42231880, 0.42231880, 0.1553624], [0.25, 0.25, 0.5]],
    ),
]


@everywhere
@pytest.mark.parametrize(("scores", "expected"), SCORES, ids=["finite", "infinite", "three"])
def test_g26_a_row_that_is_masked_wholly_has_no_weights(
    db: es.Session, run: Run, scores: list[list[float]], expected: list[list[float]]
) -> None:
    """Masked by WHERE: row 0 has no cells, so nothing is computed from it, and a total reading fills in zeros."""
    db.create("S", np.array(scores, float), labels="i j", **run.cut("i j"))
    query = db.sql(SOFTMAX.format(value="val", where="WHERE i > 0"), **run("i j"))
    assert set(query.arrow()["i"].to_pylist()) == set(range(1, len(scores)))
    np.testing.assert_allclose(query.numpy(fill=0), expected, rtol=1e-6)


@everywhere
@pytest.mark.parametrize(("scores", "expected"), SCORES, ids=["finite", "infinite", "three"])
def test_g26_a_masked_row_spreads_to_no_other(
    db: es.Session, run: Run, scores: list[list[float]], expected: list[list[float]]
) -> None:
    """Masked with minus infinity: row 0 follows IEEE, which is NaN by this text, and the other rows do not see it."""
    db.create("S", np.array(scores, float), labels="i j", **run.cut("i j"))
    value = "CASE WHEN i > 0 THEN val ELSE CAST('-infinity' AS DOUBLE) END"
    got = db.sql(SOFTMAX.format(value=value, where=""), **run("i j")).numpy()
    assert np.isnan(got[0]).all()
    np.testing.assert_allclose(got[1:], expected[1:], rtol=1e-6)
