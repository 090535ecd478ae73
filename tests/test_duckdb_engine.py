"""The DuckDB engine: what its SQL depends on, the values it must give where DuckDB's own differ, memory and errors."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import einsql as es
from einsql.session import Session
from planner.errors import IntegerOverflowError

MATMUL = "SELECT a.i, b.k, SUM(a.val * b.val) AS val FROM A AS a JOIN B AS b ON a.j = b.j GROUP BY a.i, b.k"
EDGES = {"src": [0, 0, 2, 1], "dst": [1, 2, 0, 1], "val": [-2.5, np.nan, np.inf, 4.0]}


@pytest.fixture
def db() -> Session:
    session = es.connect(engine="duckdb")
    session.create("A", np.arange(35.0).reshape(5, 7), labels="i j")
    session.create("B", np.arange(21.0).reshape(7, 3), labels="j k")
    session.create("E", EDGES, labels="src=3 dst=3")
    return session


@pytest.mark.parametrize("parts", [{}, {"i": 2}, {"j": 7}, {"i": 3, "j": 2, "k": 3}])
def test_the_text_does_not_depend_on_the_partitioning(db: Session, parts: dict[str, int]) -> None:
    query = db.sql(MATMUL, parts=parts)
    assert query.to_sql() == db.sql(MATMUL).to_sql()
    np.testing.assert_array_equal(query.numpy(), db.relation("A").numpy() @ db.relation("B").numpy())
    assert query.stats is not None and query.stats.kernel_calls == np.prod([parts.get(x, 1) for x in "ijk"])


def test_a_plan_over_scalars_is_ordinary_sql(db: Session) -> None:
    text = db.sql("SELECT src, SUM(val) AS val FROM E GROUP BY src").to_sql("postgres")
    assert "BLOCK" not in text and "CONTRACT" not in text
    assert "GROUP BY" in text


@pytest.mark.parametrize("aggregate", ["MIN", "MAX", "SUM"])
@pytest.mark.parametrize("parts", [{}, {"src": 2, "dst": 2}])
def test_aggregates_propagate_nan(db: Session, aggregate: str, parts: dict[str, int]) -> None:
    rows = db.sql(f"SELECT src, {aggregate}(val) AS val FROM E GROUP BY src", parts=parts).arrow().to_pydict()
    assert rows["src"] == [0, 1, 2]
    assert np.isnan(rows["val"][0])
    assert rows["val"][1:] == [4.0, np.inf]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("val < 5", 0),
        ("val <= 5", 0),
        ("val > -9", 0),
        ("val >= -9", 0),
        ("val = val", 0),
        ("val <> val", 1),
        ("9 > val", 0),
    ],
)
@pytest.mark.parametrize("parts", [{}, {"src": 2}])
def test_comparisons_with_nan_are_ieee(db: Session, condition: str, expected: int, parts: dict[str, int]) -> None:
    rows = (
        db.sql(f"SELECT src, dst, CASE WHEN {condition} THEN 1 ELSE 0 END AS val FROM E", parts=parts)
        .arrow()
        .to_pylist()
    )
    assert [r["val"] for r in rows if (r["src"], r["dst"]) == (0, 2)] == [expected]


@pytest.mark.parametrize("function", ["LEAST", "GREATEST"])
@pytest.mark.parametrize("parts", [{}, {"src": 2}])
def test_least_and_greatest_propagate_nan(db: Session, function: str, parts: dict[str, int]) -> None:
    rows = db.sql(f"SELECT src, dst, {function}(val, 1.0) AS val FROM E", parts=parts).arrow().to_pylist()
    assert [r["val"] for r in rows if (r["src"], r["dst"]) == (0, 2)] == [pytest.approx(np.nan, nan_ok=True)]


@pytest.mark.parametrize("parts", [{}, {"src": 2, "dst": 2}])
@pytest.mark.parametrize("engine", ["duckdb", "host:1", "host:3", "reference"])
def test_decimal_literals_do_not_grow(db: Session, parts: dict[str, int], engine: str) -> None:
    table = {"i": [0, 0, 1, 1], "j": [0, 1, 0, 1], "val": [1.0, 1.0, 0.0, 1.0]}
    db.create("M", table, labels="i j", dense=False)
    steps, name = [], "M"
    for n in range(6):
        steps.append(
            f"s{n} AS (SELECT a.i, b.j, SUM(a.val * b.val * 1.0) AS val"
            f" FROM {name} a JOIN {name} b ON a.j = b.i GROUP BY a.i, b.j)"
        )
        name = f"s{n}"
    options = {} if engine == "reference" else {"parts": {"i": 2} if parts else {}}
    result = db.sql(f"WITH {', '.join(steps)} SELECT i, j, val FROM {name}", engine=engine, **options).numpy()
    np.testing.assert_array_equal(result, [[1.0, 64.0], [0.0, 1.0]])


@pytest.mark.parametrize("engine", ["duckdb", "host:1", "host:2", "reference"])
@pytest.mark.parametrize("dense", [True, False])
def test_integers_never_wrap(db: Session, engine: str, dense: bool) -> None:
    db.create("big", np.array([2**62, 2**62, 5]), labels="i", dense=dense)
    for text in (
        "SELECT SUM(val) AS val FROM big",
        "SELECT i, val * val AS val FROM big",
        "SELECT a.i, SUM(a.val * b.val) AS val FROM big a JOIN big b ON a.i = b.i GROUP BY a.i",
    ):
        with pytest.raises(IntegerOverflowError):
            db.sql(text, engine=engine).run()
    np.testing.assert_array_equal(
        db.sql("SELECT i, MAX(val) AS val FROM big GROUP BY i", engine=engine).numpy(), [2**62, 2**62, 5]
    )


def test_blocks_die_with_their_last_reader(db: Session) -> None:
    chain = "WITH s0 AS (SELECT i, j, val + 1 AS val FROM A)"
    for n in range(1, 9):
        chain += f", s{n} AS (SELECT i, j, val * 2 AS val FROM s{n - 1})"
    query = db.sql(f"{chain} SELECT i, j, val FROM s8")
    query.run()
    assert query.stats is not None
    assert query.stats.peak_bytes == (3 * 35 * 8,)  # the relation, a step and the one that reads it


def test_runs_from_two_threads(db: Session) -> None:
    expected = db.relation("A").numpy() @ db.relation("B").numpy()
    found: list[np.ndarray] = []

    def work() -> None:
        for _ in range(5):
            found.append(db.sql(MATMUL, parts={"i": 5, "j": 2}).numpy())

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 10
    for array in found:
        np.testing.assert_array_equal(array, expected)


def test_float_sums_over_many_rows_are_the_same_bits() -> None:
    rng = np.random.default_rng(0)
    db = es.connect(engine="duckdb")
    cells = rng.permutation(600 * 600)[:200_000]
    db.create("S", {"i": cells // 600, "j": cells % 600, "val": rng.standard_normal(200_000)}, labels="i=600 j=600")
    query = db.sql("SELECT i, SUM(val) AS val FROM S GROUP BY i")
    assert len({query.run().numpy().tobytes() for _ in range(20)}) == 1
