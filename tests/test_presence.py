"""Laws 4 and 5: which cells are present is data, whatever the tile; an absent cell annihilates everything."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import einsql as es
from einsql.query import Query

ENGINES = ("reference", "host:1", "host:3", "duckdb")
EDGES = {"src": [0, 0, 2], "dst": [1, 2, 0], "val": [-2, -3, 5]}
TILINGS = [{}, *({"src": a, "dst": b} for a, b in product((1, 2, 3), repeat=2))]

Array = np.ndarray


def rows_of(query: Query) -> list[tuple[Any, ...]]:
    return sorted(zip(*query.arrow().to_pydict().values(), strict=True))


def sparse(array: Array, labels: str, **options: Any) -> tuple[dict[str, Array], dict[str, Any]]:
    """The non-zero cells of an array as a table, with its extents stated."""
    at = np.argwhere(array)
    names = labels.split()
    stated = " ".join(f"{name}={n}" for name, n in zip(names, array.shape, strict=True))
    return {**dict(zip(names, at.T, strict=True)), "val": array[array != 0]}, {"labels": stated, **options}


# ----------------------------------------------------------------------------------------------- the two readings


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("stored", TILINGS)
def test_sql_sees_present_cells_and_einsum_a_total_array(stored: dict[str, int], engine: str) -> None:
    """MAX over negative edges: SQL gives -2 and 5 and no third row, einsum compares them with the zeros around them."""
    with es.connect(engine=engine) as db:
        db.create("E", EDGES, labels="src=3 dst=3", parts=stored)
        by_sql = db.sql("SELECT src, MAX(val) AS val FROM E GROUP BY src")
        assert rows_of(by_sql) == [(0, -2), (2, 5)]
        by_einsum = db.einsum("ij->i", "E", reduce="max")
        assert by_einsum.numpy().tolist() == [0, 0, 5]


@pytest.mark.parametrize("asked", TILINGS[1:])
@pytest.mark.parametrize("stored", [{}, {"src": 1, "dst": 1}, {"src": 2, "dst": 3}])
def test_the_readings_do_not_depend_on_the_tile_of_the_query(stored: dict[str, int], asked: dict[str, int]) -> None:
    """The same under every tiling of 3 x 3 that a query asks for, on 1 to 4 devices."""
    with es.connect() as db:
        db.create("E", EDGES, labels="src=3 dst=3", parts=stored)
        for devices in (1, 2, 3, 4):
            options: dict[str, Any] = {"engine": f"host:{devices}", "parts": asked}
            assert rows_of(db.sql("SELECT src, MAX(val) AS val FROM E GROUP BY src", **options)) == [(0, -2), (2, 5)]
            assert rows_of(db.sql("SELECT dst, COUNT(*) AS val FROM E GROUP BY dst", **options)) == [
                (0, 1),
                (1, 1),
                (2, 1),
            ]
            assert db.einsum("ij->i", "E", reduce="max", **options).numpy().tolist() == [0, 0, 5]
            assert db.einsum("ij->i", "E", reduce="min", **options).numpy().tolist() == [-3, 0, 0]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_readings_coincide_where_the_fill_annihilates(engine: str) -> None:
    """A sum of products over fill 0 reads present cells only, in both languages, and joins no absent one."""
    with es.connect(engine=engine) as db:
        db.create("E", EDGES, labels="src=3 dst=3", parts={"src": 2})
        by_sql = db.sql(
            "SELECT a.src, b.dst, SUM(a.val * b.val) AS val FROM E a JOIN E b ON a.dst = b.src GROUP BY a.src, b.dst"
        )
        by_einsum = db.einsum("ij,jk->ik", "E", "E")
        assert rows_of(by_sql) == rows_of(by_einsum) == [(0, 0, -15), (2, 1, -10), (2, 2, -15)]
        assert "fill" not in str(by_einsum.explain("logical"))


@pytest.mark.parametrize("engine", ENGINES)
def test_maps_move_the_fill(engine: str) -> None:
    """exp of fill 0 has fill 1, in einsum; SQL maps what is there."""
    with es.connect(engine=engine) as db:
        db.create("V", {"i": [1], "val": [0.0]}, labels="i=3")
        mapped = db.einsum("i->i", "V", combine="exp(x0) + 1")
        assert mapped.numpy().tolist() == [2.0, 2.0, 2.0]
        assert db.einsum("i->", mapped).numpy() == 6.0
        assert rows_of(db.sql("SELECT i, EXP(val) + 1 AS val FROM V")) == [(1, 2.0)]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_declared_fill_is_what_einsum_reads(engine: str) -> None:
    with es.connect(engine=engine) as db:
        db.create("V", {"i": [1], "val": [5]}, labels="i=3", fill=2)
        assert db.einsum("i->", "V").numpy() == 9
        assert db.einsum("i->", "V", reduce="prod").numpy() == 20
        assert rows_of(db.sql("SELECT SUM(val) AS val FROM V")) == [(5,)]


# ---------------------------------------------------------------------------------------------- NaN and infinity


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("stored", [{}, {"i": 1}, {"i": 2, "j": 3}, {"i": 4, "j": 4}])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_an_absent_cell_annihilates_nan_and_infinity(bad: float, stored: dict[str, int], engine: str) -> None:
    """Sparse times dense: a row that meets no stored cell is not touched by what the dense side holds there."""
    a = np.zeros((4, 4))
    a[0, 1], a[2, 3] = 2.0, 3.0
    b = np.ones((4, 2))
    b[0], b[2] = bad, bad  # columns 0 and 2 of the sparse operand hold nothing
    with es.connect(engine=engine) as db:
        table, options = sparse(a, "i j", parts=stored)
        db.create("A", table, **options)
        db.create("B", b, labels="j k")
        text = "SELECT a.i, b.k, SUM(a.val * b.val) AS val FROM A a JOIN B b ON a.j = b.j GROUP BY a.i, b.k"
        assert rows_of(db.sql(text)) == [(0, 0, 2.0), (0, 1, 2.0), (2, 0, 3.0), (2, 1, 3.0)]
        np.testing.assert_array_equal(db.einsum("ij,jk->ik", "A", "B").numpy(), [[2, 2], [0, 0], [3, 3], [0, 0]])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("parts", [{}, {"j": 2}, {"i": 2, "j": 3}])
def test_complete_relations_follow_ieee(parts: dict[str, int], engine: str) -> None:
    """A zero that is there times infinity is NaN, and MAX passes NaN on."""
    with es.connect(engine=engine) as db:
        db.create("A", np.array([[0.0, 1.0, 2.0], [1.0, 1.0, 1.0]]))
        db.create("B", np.array([np.inf, 1.0, np.nan]))
        db.create("C", np.array([np.inf, 1.0, 2.0]))
        assert np.isnan(db.einsum("ij,j->i", "A", "C", parts=parts).numpy()).tolist() == [True, False]
        assert np.isnan(db.einsum("ij,j->i", "A", "B", reduce="max", parts=parts).numpy()).all()
        assert db.einsum("j->", "C", reduce="max", parts={}).numpy() == np.inf


@pytest.mark.parametrize("engine", ENGINES)
def test_a_factor_outside_a_sum_is_inside_where_it_matters(engine: str) -> None:
    """Kernels take what is constant out of a sum; infinity and overflow must not see that."""
    with es.connect(engine=engine) as db:
        db.create("A", np.array([[1.0, -1.0, 1.0], [1e308, 1e308, 0.0]]))
        db.create("B", np.array([np.inf, 0.1]))
        np.testing.assert_allclose(db.einsum("ij,i->i", "A", "B").numpy(), [np.nan, 2e307])


@pytest.mark.parametrize("engine", ENGINES)
def test_present_zeros_of_a_sparse_relation_follow_ieee(engine: str) -> None:
    """Presence, not the value zero, is what annihilates."""
    for parts in ({}, {"j": 1}, {"j": 2}):
        with es.connect(engine=engine) as db:
            db.create("A", {"j": [0, 2], "val": [0.0, 1.0]}, labels="j=3", parts=parts)
            db.create("B", np.array([np.inf, np.nan, 1.0]), labels="j")
            assert np.isnan(db.einsum("j,j->", "A", "B").numpy())
            assert [
                r
                for r in rows_of(db.sql("SELECT a.j, a.val * b.val AS val FROM A a JOIN B b ON a.j = b.j"))
                if r[0] == 2
            ] == [(2, 1.0)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("parts", [{}, {"i": 1}, {"i": 2}])
def test_absent_cells_divide_by_nothing(parts: dict[str, int], engine: str) -> None:
    """A masked block stores zero where a cell is absent; no division may see it, nor the branch that a CASE leaves."""
    with es.connect(engine=engine) as db:
        db.create("V", {"i": [0, 3], "val": [2, 4]}, labels="i=4", parts=parts)
        assert rows_of(db.sql("SELECT i, 8 // val AS val FROM V")) == [(0, 4), (3, 2)]
        assert rows_of(db.sql("SELECT SUM(9 % v.val) AS val FROM V v JOIN V w ON v.i = w.i")) == [(2,)]
        guarded = "SELECT i, CASE WHEN val <> 2 THEN 8 // (val - 2) ELSE 0 END AS val FROM V"
        assert rows_of(db.sql(guarded)) == [(0, 0), (3, 4)]


@pytest.mark.parametrize("engine", ("reference", "host:1", "host:2"))
def test_a_division_by_zero_that_is_there_is_refused(engine: str) -> None:
    with es.connect(engine=engine) as db:
        db.create("V", np.array([2, 0]))
        with pytest.raises(es.errors.ExecutionError, match="integer division by zero"):
            db.sql("SELECT i, 8 // val AS val FROM V").numpy()


# --------------------------------------------------------------------------------------------------- what is absent


@pytest.mark.parametrize("engine", ENGINES)
def test_an_incomplete_sql_result_needs_a_fill(engine: str) -> None:
    """.numpy() does not invent a value; einsum results have one."""
    with es.connect(engine=engine) as db:
        db.create("E", EDGES, labels="src=3 dst=3")
        query = db.sql("SELECT src, SUM(val) AS val FROM E GROUP BY src")
        with pytest.raises(es.errors.DataError, match=r"1 of 3 cells .* are absent, the first at \(src=1\)"):
            query.numpy()
        assert query.numpy(fill=7).tolist() == [-5, 7, 5]
        assert db.einsum("ij->i", "E").numpy().tolist() == [-5, 0, 5]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_extent_of_zero(engine: str) -> None:
    """A sum over no cells is 0 for einsum, and no row for SQL."""
    with es.connect(engine=engine) as db:
        db.create("A", np.zeros((3, 0)), labels="i j")
        db.create("B", np.zeros((0, 2)), labels="j k")
        product_ = db.einsum("ij,jk->ik", "A", "B").numpy()
        assert product_.tolist() == [[0.0, 0.0]] * 3
        total = db.einsum("ij,jk->", "A", "B").numpy()
        assert total.shape == () and total.dtype == np.float64 and total == 0.0
        assert db.einsum("ij->ji", "A").numpy().shape == (0, 3)
        text = "SELECT a.i, b.k, SUM(a.val * b.val) AS val FROM A a JOIN B b ON a.j = b.j GROUP BY a.i, b.k"
        assert rows_of(db.sql(text)) == []
        assert db.sql(text).numpy(fill=0).shape == (3, 2)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_aggregate_over_nothing(engine: str) -> None:
    """Without GROUP BY, SQL answers one row: NULL, and 0 for a count."""
    with es.connect(engine=engine) as db:
        db.create("E", EDGES, labels="src=3 dst=3")
        nothing = db.sql("SELECT SUM(val) AS val FROM E WHERE src = dst")
        assert nothing.arrow().to_pydict() == {"val": [None]}
        assert nothing.numpy(fill=0).shape == ()
        assert db.sql("SELECT COUNT(*) AS val FROM E WHERE src = dst").arrow().to_pydict() == {"val": [0]}
        counted = db.sql("SELECT src, COUNT(CASE WHEN src < dst THEN val END) AS val FROM E GROUP BY src")
        assert rows_of(counted) == [(0, 2), (2, 0)]


@pytest.mark.parametrize("engine", ENGINES)
def test_filters_make_rows_absent_and_keep_coordinates(engine: str) -> None:
    """A predicate on one label, on both, and on none, over rows, blocks and masked blocks."""
    for parts in ({}, {"src": 3, "dst": 1}, {"src": 1, "dst": 2}, {"src": 3, "dst": 3}):
        with es.connect(engine=engine) as db:
            db.create("E", EDGES, labels="src=3 dst=3", parts=parts)
            assert rows_of(db.sql("SELECT src, dst, val FROM E WHERE src < 2")) == [(0, 1, -2), (0, 2, -3)]
            assert rows_of(db.sql("SELECT src, dst, val FROM E WHERE src > dst")) == [(2, 0, 5)]
            assert rows_of(db.sql("SELECT src, dst, val FROM E WHERE 1 = 2")) == []
            joined = "SELECT a.src, SUM(a.val * b.val) AS val FROM E a JOIN E b ON a.dst = b.dst"
            assert rows_of(db.sql(f"{joined} WHERE a.src < 2 AND b.src < 2 GROUP BY a.src")) == [(0, 13)]


def test_a_dense_relation_that_is_filtered_to_nothing_is_gone_in_a_join() -> None:
    """One cell, cut to itself: the filter drops its row, and the plan's type has no mask to say so."""
    for engine in ENGINES:
        with es.connect(engine=engine) as db:
            db.create("A", np.array([[3]]))
            filtered = "WITH c AS (SELECT i, j, val FROM A WHERE i < i)"
            joined = "SELECT x.i, x.j, x.val + y.val AS val FROM c x JOIN c y ON x.i = y.i AND x.j = y.j"
            assert rows_of(db.sql(f"{filtered} {joined}")) == []


# ------------------------------------------------------------------------------------------------------ equal graphs


@pytest.mark.parametrize(
    ("subscripts", "text"),
    [
        ("ij,jk->ik", "SELECT a.i, b.k, SUM(a.val * b.val) AS val FROM A a JOIN B b ON a.j = b.j GROUP BY a.i, b.k"),
        ("ij->i", "SELECT i, SUM(val) AS val FROM A GROUP BY i"),
        ("ij,jk->", "SELECT SUM(a.val * b.val) AS val FROM A a JOIN B b USING (j)"),
        ("ij,jk->ijk", "SELECT a.i, a.j, b.k, a.val * b.val AS val FROM A a, B b WHERE a.j = b.j"),
        (
            "ij,jk,kl->il",
            "SELECT a.i, c.l, SUM(a.val * b.val * c.val) AS val"
            " FROM A a JOIN B b ON a.j = b.j JOIN C c ON b.k = c.k GROUP BY a.i, c.l",
        ),
    ],
)
def test_both_languages_give_the_same_graph_of_complete_relations(subscripts: str, text: str) -> None:
    with es.connect() as db:
        db.create("A", np.ones((2, 3)), labels="i j")
        db.create("B", np.ones((3, 4)), labels="j k")
        db.create("C", np.ones((4, 5)), labels="k l")
        names = ["A", "B", "C"][: subscripts.count(",") + 1]
        assert str(db.sql(text).explain("logical")) == str(db.einsum(subscripts, *names).explain("logical"))
