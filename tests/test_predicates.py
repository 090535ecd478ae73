"""Predicates that determine labels, against enumeration of all coordinates."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import einsql as es
from gpu_exec.kernels.expression import evaluate_condition
from planner.predicates import bounds, conjuncts, determined, inverted, keeps_all, never_negative, solved
from planner.scalar import Expr, labels_of
from planner.scalar_text import parse, text
from planner.scalar_types import typed

EXTENTS = {"a": 3, "b": 2, "t": 7, "s": 5}


def holds(where: Expr, at: dict[str, int]) -> bool:
    labels = {label: np.asarray(value) for label, value in at.items()}
    return bool(evaluate_condition(typed(where, [])[0], (), labels))


def cells(labels: list[str]) -> list[dict[str, int]]:
    ranges = (range(EXTENTS[label]) for label in labels)
    return [dict(zip(labels, at, strict=True)) for at in itertools.product(*ranges)]


@st.composite
def lines(draw: st.DrawFn) -> str:
    """A sum of labels and numbers, some of them negative."""
    terms = draw(st.lists(st.sampled_from(["a", "b", "t", "1", "2"]), min_size=1, max_size=3, unique=True))
    signs = [draw(st.sampled_from(["+", "-"])) for _ in terms]
    return "0" + "".join(f" {sign} {term}" for sign, term in zip(signs, terms, strict=True))


@given(left=lines(), right=lines())
def test_a_solved_equality_says_the_same(left: str, right: str) -> None:
    part = parse(f"{left} == {right} - s")
    index = solved(part, "s")
    assert index is not None
    for at in cells(sorted(EXTENTS)):
        value = eval(text(index), {}, dict(at))  # the text of an integer expression is Python
        assert holds(part, at) == (value == at["s"])


@pytest.mark.parametrize("written", ["s * 2 == t", "s // 2 == t", "s + s == t", "s < t", "s == s + t"])
def test_what_does_not_say_what_a_label_is(written: str) -> None:
    assert solved(parse(written), "s") is None


@given(st.lists(lines(), min_size=1, max_size=3), st.lists(lines(), min_size=1, max_size=3))
def test_determined_labels_and_what_is_left_say_the_same(first: list[str], second: list[str]) -> None:
    """Every assignment that fulfils the conjunction is one that the solutions give, and the other way round."""
    pairs = zip(first, second, strict=False)
    where = parse(" and ".join(f"({x} == {y} - s)" for x, y in pairs))
    found, rest = determined(where, ["s", "a"], {})
    assert not any(labels_of(index) & set(found) for index in found.values())
    for at in cells(sorted(EXTENTS)):
        free = {label: n for label, n in at.items() if label not in found}
        given_ = all(eval(text(index), {}, dict(free)) == at[label] for label, index in found.items())
        assert holds(where, at) == (given_ and all(holds(part, at) for part in rest))


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ("a == t // 2 and b == t % 2", "t == a * 2 + b"),
        ("b == t % 2 and a == t // 2", "t == a * 2 + b"),
        ("t == a * 2 + b", "a == t // 2 and b == t % 2"),
        ("t == a * 2", "a == t // 2 and t % 2 == 0"),
        ("s == t // 2", "s == t // 2"),
        ("a == t // 3 and b == t % 2", "a == t // 3 and b == t % 2"),
        ("a == t // 2 and s == t % 2", "a == t // 2 and s == t % 2"),  # s has more values than a remainder
    ],
)
def test_splits_and_merges_are_told_the_other_way_round(written: str, same: str) -> None:
    turned = inverted(conjuncts(parse(written)), EXTENTS)
    assert turned == conjuncts(parse(same))
    for at in cells(sorted(EXTENTS)):
        assert holds(parse(written), at) == all(holds(part, at) for part in turned)


@given(line=lines())
def test_bounds_hold_what_an_expression_takes(line: str) -> None:
    low_high = bounds(parse(line), {label: (0, n - 1) for label, n in EXTENTS.items()})
    assert low_high is not None
    values = [eval(line, {}, dict(at)) for at in cells(["a", "b", "t"])]
    assert low_high == (min(values), max(values))


@pytest.mark.parametrize(
    ("where", "contracted", "keeps"),
    [
        ("s == a + b", ["s"], True),
        ("s == a + b", ["s", "b"], True),
        ("s == t", ["s"], False),
        ("s == a - b", ["s"], False),
        ("s == a and t == b", ["s", "t"], True),
        ("s == a and a < 2", ["s"], False),
        ("s == a", [], False),
    ],
)
def test_a_predicate_keeps_all_cells_if_every_one_finds_a_term(where: str, contracted: list[str], keeps: bool) -> None:
    assert keeps_all(parse(where), contracted, EXTENTS) is keeps
    others = [label for label in EXTENTS if label not in contracted]
    if contracted and keeps:
        found = {tuple(at[label] for label in others) for at in cells(sorted(EXTENTS)) if holds(parse(where), at)}
        assert len(found) == np.prod([EXTENTS[label] for label in others])


def test_a_difference_that_conditions_keep_from_being_negative() -> None:
    given_: list[Any] = [parse("a >= b"), parse("s > 2")]
    assert never_negative(parse("a - b"), given_)
    assert never_negative(parse("s - 2"), given_)
    assert not never_negative(parse("b - a"), given_)
    assert not never_negative(parse("s - 4"), given_)


@pytest.mark.parametrize("engine", ["host:1", "host:3", "duckdb"])
def test_rows_that_an_equality_ties_meet_without_a_cross_product(engine: str) -> None:
    """A shift of 30,000 sparse rows among 10^9 coordinates: a cross product would never end."""
    at = np.arange(30_000) * 33_000
    with es.connect(engine=engine) as db:
        db.create("G", {"t": at, "val": np.arange(30_000)}, labels="t=1000000000")
        rows = db.sql("SELECT a.t, a.val + b.val AS val FROM G a JOIN G b ON b.t = a.t + 33000").arrow()
        assert rows.num_rows == 29_999
        assert rows["val"].to_numpy().sum() == sum(2 * i + 1 for i in range(29_999))


@pytest.mark.parametrize("engine", ["reference", "duckdb", "host:1", "host:3"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT COUNT(*) AS val FROM s WHERE s.val >= 0", 2),
        ("SELECT SUM(s.val) AS val FROM s WHERE s.val >= 0", 3),
        ("SELECT SUM(CASE WHEN s.val >= 0 THEN s.val END) AS val FROM s", 3),
        ("SELECT SUM(s.val * a.val) AS val FROM s JOIN A a ON s.t = a.t WHERE s.val >= 0", 9),
        ("SELECT SUM(s.val * e.val) AS val FROM s JOIN E e ON s.val = e.v", 120),
    ],
)
def test_a_predicate_on_the_value_of_a_join_that_becomes_part_of_its_reader(
    db: es.Session, engine: str, text: str, expected: int
) -> None:
    """It reads what the inner join computes, not one of its operands."""
    db.create("A", [0, 1, 2, 3], labels="t")
    db.create("B", [3, 1, 5, 0], labels="t")
    db.create("E", [10, 20, 30, 40], labels="v")
    inner = "WITH s AS (SELECT a.t, a.val - b.val AS val FROM A a JOIN B b ON a.t = b.t)"
    assert db.sql(f"{inner} {text}", engine=engine).numpy() == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("CAST(val AS DOUBLE) > 1.0", [0, 0, 1]),
        ("CAST(val AS DOUBLE) <> CAST(val AS DOUBLE)", [1, 0, 0]),
        ("EXP(val) = EXP(val)", [0, 1, 1]),
        ("EXP(val) >= 2", [0, 1, 1]),
        ("val <= 1e400", [0, 1, 1]),
    ],
)
def test_a_comparison_with_nan_is_false_on_rows_too(db: es.Session, condition: str, expected: list[int]) -> None:
    """In DuckDB NaN is the largest number, and equal to itself."""
    db.create("N", {"t": [0, 1, 2], "val": np.array([np.nan, 1, np.inf], "f4")}, labels="t=4")
    text = f"SELECT t, CASE WHEN {condition} THEN 1 ELSE 0 END AS val FROM N"
    for engine in ("reference", "duckdb", "host:2"):
        assert db.sql(text, engine=engine).arrow()["val"].to_pylist() == expected, engine


def test_a_value_does_not_say_where_it_is_itself(db: es.Session) -> None:
    """`val = i` of one relation keeps cells; it looks nothing up. Nor do two that would say where the other one is."""
    db.create("A", [[0, 1], [5, 1]], labels="i j")
    db.create("B", [1, 0, 2], labels="k")
    db.create("C", [1, 2, 0], labels="l")
    for engine in ("reference", "duckdb", "host:1", "host:3"):
        diagonal = "SELECT a.i + 1 AS o, a.val FROM A a WHERE a.i = a.j AND a.val = a.i"
        assert db.sql(diagonal, engine=engine).arrow().to_pydict() == {"o": [1, 2], "val": [0, 1]}
        both = "SELECT b.k, c.l, b.val + c.val AS val FROM B b JOIN C c ON b.val = c.l AND c.val = b.k"
        assert db.sql(both, engine=engine).arrow().to_pydict() == {"k": [1], "l": [0], "val": [1]}
        total = "SELECT SUM(10 * b.val + c.val) AS val FROM B b JOIN C c ON b.val = c.l AND c.val = b.k"
        assert db.sql(total, engine=engine).numpy() == 1
