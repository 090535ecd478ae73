"""Every refusal of SQL says what, and where: line and column point at the part of the text that is meant."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import einsql as es
from einsql.errors import PlanError, ShapeError, SqlUnsupportedError
from einsql.query import Query


@pytest.fixture
def db() -> Iterator[es.Session]:
    with es.connect() as session:
        session.create("A", np.arange(6).reshape(2, 3), labels="i j")
        session.create("B", np.arange(6).reshape(3, 2), labels="j k")
        session.create("N", np.array([[1, 2], [3, 4]]), labels="i I")
        session.create("edges", np.zeros((2, 2)), labels="src dst")
        session.create("T", np.array([1]), labels="x")
        session.create("t", np.array([2]), labels="x")
        yield session


A = "SELECT i, j, val FROM A"
S = "SELECT i, SUM(val) AS val FROM A"

# What SQL has and a tensor query has not.
UNSUPPORTED = [
    (
        f"{S} GROUP BY i HAVING SUM(val) > 0",
        "HAVING is not read: aggregate in a WITH, then say WHERE of its value",
        1,
        52,
    ),
    (f"{A}\nORDER BY i", "ORDER BY is not read: a relation has no order", 2, 10),
    (f"{A}\nLIMIT 3", "LIMIT is not read", 2, 7),
    (f"{A}\nOFFSET 3", "OFFSET is not read", 2, 8),
    (f"{A} QUALIFY ROW_NUMBER() OVER () = 1", "QUALIFY is not read", 1, 33),
    ("SELECT DISTINCT i, j, val FROM A", "DISTINCT is not read: coordinates are distinct already", 1, 17),
    (
        "SELECT a.i, a.j, b.k, a.val FROM A a\nLEFT JOIN B b ON a.j = b.j",
        "LEFT JOIN is not read: an absent cell joins nothing",
        2,
        11,
    ),
    ("SELECT a.i, a.j, b.k, a.val FROM A a\nFULL JOIN B b ON a.j = b.j", "FULL JOIN is not read", 2, 11),
    (
        "SELECT i, j, k, A.val FROM A NATURAL JOIN B",
        "NATURAL JOIN is not read: it would match the value columns",
        1,
        43,
    ),
    ("SELECT i, j, A.val FROM A SEMI JOIN B ON A.j = B.j", "SEMI JOIN is not read", 1, 37),
    (
        "SELECT i, j, SUM(val) OVER (PARTITION BY i) AS val FROM A",
        "OVER is not read: window functions are not tensor operations",
        1,
        14,
    ),
    ("SELECT i, SUM(val) FILTER (WHERE j > 0) AS val FROM A GROUP BY i", "FILTER is not read; write CASE WHEN", 1, 11),
    (
        "SELECT i, j, val + (SELECT SUM(val) FROM B) AS val FROM A",
        "a subquery cannot stand inside an expression",
        1,
        28,
    ),
    (f"{A} WHERE EXISTS (SELECT j FROM B)", "EXISTS is not read; join the other relation", 1, 46),
    (f"{A} WHERE i IN (SELECT j FROM B)", "i IN (SELECT j FROM B) is not read as a scalar expression", 1, 31),
    ("SELECT i // j AS k, val FROM A", "label 'k' is computed in a way whose range is not known", 1, 8),
    (f"{S} GROUP BY i + 1", "GROUP BY i + 1 is not read; group by label columns", 1, 43),
    (f"{S} GROUP BY ROLLUP (i)", "GROUP BY ROLLUP (i) is not read", 1, 51),
    ("SELECT i, SUM(DISTINCT val) AS val FROM A GROUP BY i", "DISTINCT inside an aggregate is not read", 1, 24),
    ("SELECT i, MEDIAN(val) AS val FROM A GROUP BY i", "function MEDIAN is not read; scalar functions are abs,", 1, 11),
    ("SELECT i, j, FOO(val) AS val FROM A", "function FOO is not read; scalar functions are abs,", 1, 14),
    (
        "SELECT i, j, CAST(val AS VARCHAR) AS val FROM A",
        "CAST to TEXT is not read; types are BOOLEAN, UTINYINT, TINYINT, SMALLINT, INTEGER, BIGINT, FLOAT, DOUBLE",
        1,
        19,
    ),
    ("SELECT i, j, 'x' AS val FROM A", "'x' is not read as a scalar expression", 1, 14),
    ("SELECT i, j, NULL AS val FROM A", "NULL is no value of a tensor; leave the row out", 1, 22),
    ("SELECT i, j, val IS NULL AS val FROM A", "IS tests for NULL, which tensors do not hold", 1, 14),
    ("SELECT i, j, COALESCE(val, 0) AS val FROM A", "COALESCE replaces NULL, which tensors do not hold", 1, 14),
    ("SELECT i, j, val FROM read_csv('x.csv')", "READ_CSV('x.csv') is not read in FROM", 1, 23),
    ("SELECT i, j, val FROM s.A", "s.A is not read in FROM", 1, 23),
    (f"{A} TABLESAMPLE 10%", "SAMPLE is not read in FROM", 1, 23),
    ("SELECT * EXCLUDE (val) FROM A", "* EXCLUDE, REPLACE and RENAME are not read", 1, 8),
    (f"{A} UNION {A}", "UNION is not read; einsql runs SELECT, WITH ... SELECT and CREATE TABLE ... AS", 1, 8),
    (f"WITH u AS ({A} UNION {A}) SELECT i, j, val FROM u", "UNION is not read; a relation is one SELECT", 1, 19),
    ("WITH RECURSIVE r AS (SELECT i, j, val FROM A) SELECT i, j, val FROM r", "WITH RECURSIVE is not read", 1, 16),
    ("INSERT INTO A VALUES (1, 2, 3)", "INSERT is not read", 1, 13),
    ("UPDATE A SET val = 1", "UPDATE is not read", 1, 8),
    ("DROP TABLE A", "DROP is not read", 1, 12),
    (f"CREATE VIEW v AS {A}", "CREATE is not read", 1, 13),
    (f"CREATE TABLE c (i, val) AS {A}", "CREATE TABLE ... AS takes no column list", 1, 14),
    (f"CREATE TABLE s.c AS {A}", "CREATE TABLE takes a bare name here", 1, 14),
    (f"CREATE TABLE IF NOT EXISTS c AS {A}", "no IF NOT EXISTS", 1, 28),
]

# What could be a tensor query and is a wrong one.
WRONG = [
    ("SELECT src, dst, val FROM edge", "no relation 'edge'; did you mean 'edges'?", 1, 27),
    ("SELECT i, j, val FROM zzz", "no relation 'zzz'; there are A, B, N, T, edges, t", 1, 23),
    ("SELECT i, j,\n  valu FROM A", "no column 'valu': A has i, j, val; did you mean 'val'?", 2, 3),
    ("SELECT a.i, a.x, val FROM A a", "no column 'x': a has i, j, val", 1, 13),
    ("SELECT z.i, A.j, val FROM A", "no table 'z' in FROM; there are A", 1, 8),
    (
        "SELECT a.i, j, b.k, a.val FROM A a JOIN B b ON a.j = b.j",
        "column 'j' is ambiguous: a.j, b.j; write the table before it",
        1,
        13,
    ),
    ("SELECT a.i, a.j, b.k, val FROM A a JOIN B b ON a.j = b.j", "column 'val' is ambiguous: a.val, b.val", 1, 23),
    (
        "SELECT i, val FROM A",
        "label 'j' is not selected, so rows would repeat; select it, or aggregate and GROUP BY i",
        1,
        8,
    ),
    ("SELECT i, j FROM A", "exactly one value, got no value column", 1, 8),
    ("SELECT i, j, val, val + 1 AS more FROM A", "exactly one value, got 2 value columns: val, more", 1, 19),
    ("SELECT i AS x, j AS x, val FROM A", "two output columns are called 'x'; rename one with AS", 1, 16),
    ("SELECT i, i AS x, j, val FROM A", "two output columns are the same label; select it once", 1, 8),
    ("SELECT i AS val, j, val AS w FROM A", "a label cannot be called 'val': that is the value column", 1, 8),
    ('SELECT i AS "a b", j, val FROM A', "a label cannot be called 'a b'", 1, 8),
    (
        "SELECT i, j, SUM(val) AS val FROM A GROUP BY i",
        "column 'j' stands beside an aggregate but not in GROUP BY",
        1,
        11,
    ),
    (S, "column 'i' stands beside an aggregate but not in GROUP BY", 1, 8),
    (f"{S} GROUP BY i, j", "GROUP BY names 'j', which is not selected, so rows would repeat; select it", 1, 46),
    (f"{A} GROUP BY i, j", "column 'val' stands beside an aggregate but not inside one", 1, 14),
    (f"{S} GROUP BY 7", "GROUP BY 7 is no label of the select list", 1, 43),
    (
        "SELECT i, SUM(val) + val AS val FROM A GROUP BY i",
        "column 'val' stands beside an aggregate but not inside one",
        1,
        22,
    ),
    (
        "SELECT i, SUM(val) + j AS val FROM A GROUP BY i",
        "column 'j' stands beside an aggregate but not in GROUP BY",
        1,
        22,
    ),
    (
        "SELECT i, MAX(SUM(val)) AS val FROM A GROUP BY i",
        "an aggregate cannot stand inside another; aggregate in a WITH first",
        1,
        15,
    ),
    (
        "SELECT i, j, CASE WHEN i < j THEN val END AS val FROM A",
        "CASE without ELSE gives NULL, which tensors do not hold",
        1,
        24,
    ),
    ("SELECT i, SUM(1 + CASE WHEN i < j THEN val END) AS val FROM A GROUP BY i", "CASE without ELSE gives NULL", 1, 29),
    (
        "SELECT i, j, CAST('x' AS DOUBLE) AS val FROM A",
        "the string 'x' is no number; known are inf, -inf and nan",
        1,
        19,
    ),
    ("SELECT i, j, val FROM A, A", "two tables in FROM are called 'A'; give one an alias", 1, 8),
    ("SELECT 1 AS val", "a tensor query reads at least one relation; write FROM", 1, 8),
    (
        "WITH c(a, b) AS (SELECT i, j, val FROM A) SELECT a, b, val FROM c",
        "2 column names for 3 columns: i, j, val",
        1,
        6,
    ),
    ("SELECT i, j, val FROM A a(x, y, z)", "no column 'i': a has x, y, z", 1, 8),
    (
        "SELECT a.i, b.k, SUM(a.val) AS val FROM A a JOIN B b USING (i) GROUP BY a.i, b.k",
        "USING (i) wants that label on both sides: a has i, j; b has j, k",
        1,
        61,
    ),
    ("SELEC i FROM A", "not SQL:", 1, 9),
    ("SELECT i, j,\nFROM WHERE", "not SQL: Expected table name", 2, 6),
    ("SELECT (i, j, val FROM A", "not SQL: Expecting )", 1, 19),
    ("hello", "COLUMN is not read; einsql runs SELECT", 1, 1),
]


@pytest.mark.parametrize(("text", "message", "line", "column"), UNSUPPORTED)
def test_sql_that_is_no_tensor_query(db: es.Session, text: str, message: str, line: int, column: int) -> None:
    with pytest.raises(es.errors.UnsupportedError) as caught:
        db.sql(text)
    _check(caught.value, text, message, line, column)
    assert db.relations() == ["A", "B", "N", "T", "edges", "t"]


@pytest.mark.parametrize(("text", "message", "line", "column"), WRONG)
def test_a_wrong_tensor_query(db: es.Session, text: str, message: str, line: int, column: int) -> None:
    with pytest.raises(es.errors.SqlError) as caught:
        db.sql(text)
    _check(caught.value, text, message, line, column)


def _check(error: BaseException, text: str, message: str, line: int, column: int) -> None:
    assert isinstance(error, es.errors.SqlError)
    assert message in str(error)
    assert (error.line, error.column) == (line, column)
    first, place, snippet, caret = str(error).splitlines()
    assert place == f"  line {line}, column {column}:"
    assert snippet.removeprefix("    ") == text.splitlines()[line - 1]
    assert caret == " " * (4 + column - 1) + "^"
    assert first


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "one statement at a time, got 0"),
        ("-- nothing", "one statement at a time, got 0"),
        (f"{A}; {A}", "one statement at a time, got 2"),
        ("SELECT 'unterminated FROM A", "cannot read the text: Error tokenizing"),
        (
            f"SELECT i, j, {'(' * 300}val{')' * 300} AS val FROM A",
            "the text nests too deeply; write its subqueries as WITH steps",
        ),
        (f"SELECT i, j, {'ABS(' * 300}val{')' * 300} AS val FROM A", "the text nests too deeply"),
        (f"SELECT i, j, val FROM {'(SELECT i, j, val FROM ' * 300}A{')' * 300}", "the text nests too deeply"),
        (f"{A} WHERE {'NOT (' * 300}i < 1{')' * 300}", "the text nests too deeply"),
    ],
)
def test_texts_without_a_place(db: es.Session, text: str, message: str) -> None:
    with pytest.raises(es.errors.SqlError, match=message) as caught:
        db.sql(text)
    assert caught.value.line == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "SELECT a.i, e.dst, SUM(a.val * e.val) AS val FROM A a JOIN edges e ON a.j = e.src GROUP BY a.i, e.dst",
            "label 'j' has extent 3 in A but 2 in edges",
        ),
        ("SELECT i, BOOL_OR(val) AS val FROM A GROUP BY i", "reduce 'any' wants booleans, got int64"),
        ("SELECT i, j, val AND TRUE AS val FROM A", "and wants a condition, got x0 of dtype int64"),
        ("SELECT src, dst, val % 2 AS val FROM edges", "mod wants integers, got float64"),
    ],
)
def test_extents_and_types_that_disagree(db: es.Session, text: str, message: str) -> None:
    with pytest.raises(es.errors.ShapeError, match=message):
        db.sql(text)


def test_deep_chains_of_steps_are_no_nesting(db: es.Session) -> None:
    """What cannot be nested 300 deep can be written as 300 steps."""
    steps = [
        "c0 AS (SELECT i, j, val FROM A)",
        *(f"c{n} AS (SELECT i, j, val + 1 AS val FROM c{n - 1})" for n in range(1, 301)),
    ]
    query = db.sql(f"WITH {', '.join(steps)} SELECT i, j, val FROM c300")
    assert query.numpy().tolist() == [[300, 301, 302], [303, 304, 305]]


# ---------------------------------------------------------------------------------------------------- case of names


def single(query: Query) -> list[int]:
    column: list[int] = query.arrow().to_pydict()["val"]
    return column


def test_unquoted_names_match_without_case(db: es.Session) -> None:
    for text in (
        "select I, J, VAL from a",
        "SELECT x.I, X.j, x.Val AS val FROM A X",
        'SELECT "i", "j", "val" FROM "A"',
    ):
        query = db.sql(text.replace("VAL from", "VAL as val from"))
        assert single(query) == [0, 1, 2, 3, 4, 5]


def test_two_matches_ask_for_quotes(db: es.Session) -> None:
    with pytest.raises(es.errors.SqlError, match='column \'i\' matches "i", "I" of N; quote the one you mean'):
        db.sql("SELECT i, SUM(val) AS val FROM N GROUP BY i")
    with pytest.raises(es.errors.SqlError, match='table \'t\' matches "T", "t"; quote the one you mean'):
        db.sql("SELECT x, val FROM t")


def test_quoted_names_match_exactly(db: es.Session) -> None:
    assert single(db.sql('SELECT "i", SUM(val) AS val FROM N GROUP BY "i"')) == [3, 7]
    assert single(db.sql('SELECT "I", SUM(val) AS val FROM N GROUP BY "I"')) == [4, 6]
    assert (single(db.sql('SELECT x, val FROM "T"')), single(db.sql('SELECT x, val FROM "t"'))) == ([1], [2])
    with pytest.raises(es.errors.SqlError, match="no column 'J'"):
        db.sql('SELECT i, "J", val FROM A')
    with pytest.raises(es.errors.SqlError, match="no relation 'a'"):
        db.sql('SELECT i, j, val FROM "a"')


@pytest.mark.parametrize("engine", ["reference", "host:2", "duckdb"])
def test_labels_that_differ_in_case_are_two_labels(db: es.Session, engine: str) -> None:
    """On every engine; DuckDB alone would fold them."""
    query = db.sql('SELECT "I", "i", val * 10 + "I" - "i" AS val FROM N', engine=engine)
    assert query.labels == ("I", "i")
    assert query.numpy().tolist() == [[10, 29], [21, 40]]
    assert db.einsum("iI->I", "N", engine=engine).numpy().tolist() == [4, 6]


def test_an_inner_name_hides_an_outer_one(db: es.Session) -> None:
    """A WITH table named like a relation is the one that is read."""
    assert single(
        db.sql("WITH A AS (SELECT i, j, val + 1 AS val FROM A) SELECT i, SUM(val) AS val FROM a GROUP BY i")
    ) == [6, 15]


def test_explain_as_a_word_is_refused_with_what_to_do(recwarn: pytest.WarningsRecorder) -> None:
    with es.connect() as db, pytest.raises(SqlUnsupportedError, match=r"call \.explain\(\)"):
        db.sql("EXPLAIN SELECT i, val FROM A")
    assert not recwarn.list


def test_shapes_that_disagree_name_the_line_too() -> None:
    with es.connect() as db:
        db.create("A", np.zeros((2, 3)), labels="i j")
        db.create("B", np.zeros((4, 5)), labels="j k")
        text = "SELECT a.i, SUM(a.val * b.val) AS val\nFROM A a JOIN B b ON a.j = b.j GROUP BY a.i"
        with pytest.raises(ShapeError, match=r"(?s)extent 3 in A but 4 in B.*line 1, column 8"):
            db.sql(text)


def test_placement_belongs_to_host_devices() -> None:
    with es.connect() as db:
        db.create("A", np.zeros((2, 3)), labels="i j")
        for engine in ("duckdb", "reference"):
            with pytest.raises(PlanError, match="placement= belongs to host devices"):
                db.einsum("ij->i", "A", engine=engine, placement={"e1": "Sharded(i)"})


def test_a_with_table_named_like_a_relation_is_a_node_of_its_own() -> None:
    with es.connect() as db:
        db.create("Z", np.arange(6).reshape(2, 3), labels="i j")
        query = db.sql("WITH Z AS (SELECT i, SUM(val) AS val FROM Z GROUP BY i) SELECT i, val * 2 AS val FROM Z")
        assert set(query.plan.placement) == {"Z", "Z_2", "e1"}
        np.testing.assert_array_equal(query.numpy(), [6, 24])
