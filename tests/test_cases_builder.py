"""Public faults as cases once more, written with the builder: the same answers as by einsum strings and by SQL."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import einsql as es
from tests.engines import Run, everywhere

Array = np.ndarray


def value(tensor: Any, run: Run) -> Array:
    """What a tensor is on one engine, with its own labels cut."""
    result: Array = tensor.query(**run(" ".join(tensor.labels))).numpy()
    return result


@everywhere
@pytest.mark.parametrize(("a", "b"), [([2, 3, 4], [5, 6]), ([2, 3, 4], [5])])
def test_g04_labels_of_other_extents_do_not_meet(db: es.Session, run: Run, a: list[int], b: list[int]) -> None:
    """The builder stretches nothing: a label has one extent, and the message names both."""
    db.create("A", a, labels="i", **run.cut("i"))
    db.create("B", b, labels="i", **run.cut("i"))
    with pytest.raises(es.errors.ShapeError, match=rf"'i'.*\b3\b.*\b{len(b)}\b"):
        (db.tensor("A") * db.tensor("B")).sum().query(**run("i")).numpy()


@everywhere
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_g06_small_integers_do_not_wrap(db: es.Session, run: Run, dtype: str) -> None:
    """Products, sums and a chain of both come out exact."""
    db.create("A", np.array([100, 100, 100], dtype), labels="i", **run.cut("i"))
    db.create("B", np.array([2, 2, 3], dtype), labels="i", **run.cut("i"))
    a, b = db.tensor("A"), db.tensor("B")
    assert value((a * b).sum(), run) == 700
    assert value(a * a * b, run).tolist() == [20_000, 20_000, 30_000]
    assert value(-a - b, run).tolist() == [-102, -102, -103]


@everywhere
def test_g10_exp_of_added_duplicates(db: es.Session, run: Run) -> None:
    """exp of 1.0 + 2.0, and the largest of the sums."""
    rows = {"i": [0, 1, 0], "val": [1.0, 7.0, 2.0]}
    db.create("x", rows, labels="i", duplicates="sum", **run.cut("i"))
    np.testing.assert_allclose(value(es.exp(db.tensor("x")), run), np.exp([3, 7]), rtol=1e-6)
    assert value(db.tensor("x").min(), run) == 3


@everywhere
@pytest.mark.parametrize(
    ("fill", "expected"), [(0, [[0.25, 0.75], [0.5, 0.5]]), (-math.inf, [[0, 1], [1, 0]])], ids=["0", "-inf"]
)
def test_g11_softmax_reads_the_declared_fill(db: es.Session, run: Run, fill: float, expected: Any) -> None:
    """Two rows of two cells, of which one each is stored: (0, 1) and (1, 0)."""
    rows = {"i": [0, 1], "j": [1, 0], "val": [math.log(3), 0.0]}
    db.create("x", rows, labels="i=2 j=2", fill=fill, **run.cut("i j"))
    np.testing.assert_allclose(value(es.softmax(db.tensor("x"), "j"), run), expected, rtol=1e-6)


@everywhere
@pytest.mark.parametrize("at", [[1], [0], [2, 0, 1, 1]])
def test_g19_a_look_up_counts_from_zero(db: es.Session, run: Run, at: list[int]) -> None:
    """A vector and the rows of a table, at offsets that are values of another tensor."""
    rows = np.array([[1, 2], [3, 4], [5, 6]])
    db.create("at", np.array(at), labels="n", **run.cut("n"))
    db.create("v", [10, 20, 30], labels="i", **run.cut("i"))
    db.create("rows", rows, labels="i d", **run.cut("i d"))
    index = db.tensor("at")
    assert value(es.gather(db.tensor("v"), index, "i"), run).tolist() == [[10, 20, 30][i] for i in at]
    assert value(es.gather(db.tensor("rows"), index, "i"), run).tolist() == rows[at].tolist()


@everywhere
@pytest.mark.parametrize("values", [[10, 1, 2, 3], [1, 2, 3, 10], [5.5, -5.5, 4, 0]])
def test_g23_a_mean_is_no_mean_of_means(db: es.Session, run: Run, values: list[float]) -> None:
    """Over blocks of 3 + 1 cells, alone and beside another label."""
    db.create("X", values, labels="i", tile={"i": 3})
    assert value(db.tensor("X").mean(), run) == sum(values) / 4
    db.create("Y", [values, values[::-1]], labels="g i", tile={"i": 3})
    assert value(db.tensor("Y").mean("i"), run).tolist() == [sum(values) / 4] * 2
    assert value(db.tensor("Y").mean(), run) == sum(values) / 4


def rotated(db: es.Session, pairing: str, n: int) -> Any:
    """Q turned by position, its coordinates paired as neighbours or as halves: d = (pair, half) or (half, pair)."""
    order = "pair half" if pairing == "neighbours" else "half pair"
    q = db.tensor("Q").split("d", order, half=2)
    angle = es.label("t") * 10000.0 ** (es.label("pair") * (-2.0 / n))
    first, second = (q.slice(half=(h, h + 1)) for h in range(2))
    turned = [first * es.cos(angle) - second * es.sin(angle), first * es.sin(angle) + second * es.cos(angle)]
    return es.concat(turned, "half").transpose(["t", *order.split()]).merge(order, "d")


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
    """[1, 2, 3, 4] at position 1; a turn keeps the length of what it turns, at six coordinates too."""
    db.create("Q", np.array([[0.0] * 4, [1, 2, 3, 4]]), labels="t d", **run.cut("t d"))
    np.testing.assert_allclose(value(rotated(db, pairing, 4), run), [[0] * 4, expected], atol=1e-6)
    for positions, n in ((3, 6), (2, 2)):
        q = np.random.default_rng(n).standard_normal((positions, n))
        db.create("Q", q, labels="t d", replace=True, **run.cut("t d"))
        got = value(rotated(db, pairing, n), run)
        np.testing.assert_allclose((got**2).sum(axis=1), (q**2).sum(axis=1), rtol=1e-12)
        np.testing.assert_allclose(got[0], q[0], rtol=1e-12)


@everywhere
@pytest.mark.parametrize(("heads", "groups"), [(4, 2), (6, 3), (6, 2)])
def test_g25_query_heads_share_value_heads_in_order(db: es.Session, run: Run, heads: int, groups: int) -> None:
    """Heads split into groups of neighbours, multiplied, and merged again: 1, 1, 10, 10."""
    values = 10.0 ** np.arange(groups)
    db.create("W", np.ones((heads, 1)), labels="h s", **run.cut("h s"))
    db.create("V", values[:, None], labels="g s", **run.cut("g s"))
    grouped = db.tensor("W").split("h", "g r", g=groups)
    got = value((grouped * db.tensor("V")).sum("s").merge("g r", "h"), run)
    assert got.tolist() == np.repeat(values, heads // groups).tolist()


@everywhere
@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([[-math.inf, -math.inf], [1000, 1001]], [0.26894142, 0.73105858]),
        ([[-math.inf] * 3, [0, 0, math.log(2)]], [0.25, 0.25, 0.5]),
        ([[-math.inf] * 2, [-math.inf, 5]], [0, 1]),
    ],
)
def test_g26_a_row_that_is_masked_wholly_has_no_weights(
    db: es.Session, run: Run, scores: list[list[float]], expected: list[float]
) -> None:
    """Zeros in the masked row, and no NaN in any other; the mask given as values, or written with es.where."""
    db.create("S", np.array(scores), labels="i j", **run.cut("i j"))
    weights = es.softmax(db.tensor("S"), "j")
    np.testing.assert_allclose(value(weights, run), [[0] * len(expected), expected], rtol=1e-6)
    db.create("F", np.array([scores[1], scores[1]]), labels="i j", **run.cut("i j"))
    masked = es.where(es.label("i") > 0, db.tensor("F"), -math.inf)
    np.testing.assert_allclose(value(es.softmax(masked, "j"), run), [[0] * len(expected), expected], rtol=1e-6)
    db.create("V", np.arange(1.0, len(expected) + 1), labels="j", **run.cut("j"))
    mixed = (weights * db.tensor("V")).sum("j")
    np.testing.assert_allclose(value(mixed, run), [0, np.dot(expected, np.arange(1, len(expected) + 1))], rtol=1e-6)


@everywhere
@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_g31_and_g36_by_name(db: es.Session, run: Run, dtype: str) -> None:
    """A product of a relation with itself replaces it; comparisons of it give booleans, whose `any` is or-of-ands."""
    db.create("A", np.array([[1, 2], [3, 4]], dtype), labels="i j", **run.cut("i j"))
    a = db.tensor("A")
    square = (a.rename(j="m") * a.rename(i="m")).sum("m")
    square.query(**run("i j m")).to_table("A", replace=True)
    assert db.relation("A").numpy().tolist() == [[7, 10], [15, 22]]
    assert value(a, run).tolist() == [[1, 2], [3, 4]]
    above = a > 1
    product = (above.rename(j="m") & above.rename(i="m")).any("m")
    assert (value(product, run).dtype, value(product, run).tolist()) == (np.bool_, [[True, True], [True, True]])


@everywhere
@pytest.mark.parametrize("causal", [False, True])
def test_g25_and_g26_in_attention(db: es.Session, run: Run, causal: bool) -> None:
    """Four query heads over two key heads, and a position that a mask leaves nothing of, against repeated heads."""
    rng = np.random.default_rng(8)
    q, k, v = (rng.standard_normal(shape) for shape in ((3, 4, 2), (3, 2, 2), (3, 2, 2)))
    for name, array, labels in (("Q", q, "t h e"), ("K", k, "s g e"), ("V", v, "s g c")):
        db.create(name, array, labels=labels, **run.cut(labels))
    seen = np.array([[True, True, True], [False, False, False], [True, False, True]])
    db.create("seen", seen, labels="t s", **run.cut("t s"))
    queries = db.tensor("Q").split("h", "g r", g=2)
    result = es.attention(queries, db.tensor("K"), db.tensor("V"), causal=causal, mask=db.tensor("seen"))
    got = value(result.transpose("t g r c").merge("g r", "h"), run)
    score = np.einsum("the,she->hts", q, k.repeat(2, axis=1)) / math.sqrt(2)
    visible = seen & (np.tri(3, dtype=bool) | (not causal))
    weight = np.where(visible, np.exp(score), 0)
    total = weight.sum(axis=2, keepdims=True)
    weight = np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)
    expected = np.einsum("hts,shc->thc", weight, v.repeat(2, axis=1))
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-7)
    assert (got[1] == 0).all() and (got[2] != 0).all()


@everywhere
@pytest.mark.parametrize("style", ["neighbours", "halves"])
def test_g24_rope_says_which_pairs_it_turns(db: es.Session, run: Run, style: str) -> None:
    """`es.rope` against the same written out with split, slice and concat, and the published numbers."""
    published = {
        "neighbours": [-1.142640, 1.922076, 2.959851, 4.029800],
        "halves": [-1.984111, 1.959901, 2.462378, 4.019800],
    }
    db.create("Q", np.array([[0.0] * 4, [1, 2, 3, 4]]), labels="t d", **run.cut("t d"))
    got = value(es.rope(db.tensor("Q"), "t", "d", style=style), run)
    np.testing.assert_allclose(got, [[0] * 4, published[style]], atol=1e-6)
    q = np.random.default_rng(3).standard_normal((5, 6))
    db.create("Q", q, labels="t d", replace=True, **run.cut("t d"))
    got = value(es.rope(db.tensor("Q"), "t", "d", style=style), run)
    np.testing.assert_allclose(got, value(rotated(db, style, 6), run), rtol=1e-12, atol=1e-12)
