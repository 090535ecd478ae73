"""Labels that stand for values: what has a dictionary, how results decode, and how labels meet by their values."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import einsql as es
from einsql.domains import domain_of, union
from tests.engines import on_every_engine

UUIDS = [uuid.UUID(int=7), uuid.UUID(int=2**127), uuid.UUID(int=1)]
DAYS = [dt.date(2024, 3, 1), dt.date(1969, 12, 31), dt.date(2024, 1, 1)]
TIMES = [dt.datetime(2024, 3, 1, 12), dt.datetime(1969, 12, 31, 23, 59, 59, 5), dt.datetime(2024, 1, 1)]

KINDS: dict[str, pa.Array] = {
    "string": pa.array(["b", "ä", "a"]),
    "large_string": pa.array(["b", "ä", "a"], pa.large_string()),
    "string_view": pa.array(["b", "ä", "a"], pa.string_view()),
    "dictionary": pa.array(["b", "ä", "a"]).dictionary_encode(),
    "date": pa.array(DAYS),
    "seconds": pa.array([5, -5, 0], pa.timestamp("s")),
    "timestamp": pa.array(TIMES),
    "nanoseconds": pa.array([5, -1, 0], pa.timestamp("ns")),
    "zoned": pa.array(TIMES, pa.timestamp("us", "UTC")),
    "uuid": pa.array(UUIDS),
    "binary16": pa.array([u.bytes for u in UUIDS], pa.binary(16)),
    "boolean": pa.array([True, False, True]),
    "large": pa.array([2**31, -(2**62), 2**62]),
    "unsigned": pa.array([2**63, 2**64 - 1, 0], pa.uint64()),
}


def rows(relation: Any) -> list[tuple[Any, ...]]:
    """The rows of a result, as Python values."""
    table = relation.arrow()
    return list(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))


# ------------------------------------------------------------------------------------------------- encode and decode


@pytest.mark.parametrize("kind", KINDS)
def test_values_go_in_and_come_out(db: es.Session, kind: str) -> None:
    column = KINDS[kind]
    table = pa.table({"key": column, "n": [0, 1, 2], "val": [1.0, 2.0, 3.0]})
    relation = db.create("A", table, labels="key n")
    given = list(zip(column.to_pylist(), [0, 1, 2], [1.0, 2.0, 3.0], strict=True))
    assert rows(relation) == sorted(given)
    values = relation.domain("key")
    assert values.to_pylist() == sorted(set(column.to_pylist()))
    assert relation.shape == (len(values), 3)
    assert relation.domain("n") == range(3)
    for key, n, val in given:
        assert relation.numpy()[values.to_pylist().index(key), n] == val
    again = db.create("B", relation.arrow(), labels="key n")
    assert again.domains == relation.domains
    assert len({relation.domains["key"], again.domains["key"]}) == 1
    first = str(values[0].cast(pa.string()) if kind == "nanoseconds" else values[0].as_py())
    with pytest.raises(es.errors.DataError, match="absent") as caught:
        db.sql("SELECT key, n, val FROM A").numpy()
    assert first in str(caught.value) or kind in ("binary16", "zoned")


def test_integers_are_coordinates_until_one_is_large(db: es.Session) -> None:
    assert not db.create("A", {"i": [0, 2**31 - 1]}, labels="i").domains
    assert db.create("B", {"i": [0, 2**31]}, labels="i").shape == (2,)
    assert db.create("C", {"i": [0, 2**31]}, labels=f"i={2**31 + 1}").shape == (2**31 + 1,)
    with pytest.raises(es.errors.DataError, match="'i' of D holds -1 in row 1; coordinates start at 0"):
        db.create("D", {"i": [0, -1]}, labels="i")


def test_messages_name_values_and_extents_stay_numbers(db: es.Session) -> None:
    twice = {"city": ["Oslo", "Oslo"], "i": [1, 1], "val": [1, 2]}
    with pytest.raises(es.errors.DataError, match=r"1 duplicate coordinates in A, the first \(city='Oslo', i=1\)"):
        db.create("A", twice, labels="city i")
    some = {"city": ["Oslo", "Bern"], "i": [0, 1]}
    with pytest.raises(es.errors.DataError, match=r"2 of 4 cells are missing, the first \(city='Bern', i=0\)"):
        db.create("A", some, labels="city i", dense=True)
    with pytest.raises(es.errors.DataError, match="label 'city' of A is stated as 5, but has 2 distinct values"):
        db.create("A", some, labels="city=5 i")
    assert db.relations() == []
    db.create("A", some, labels="city i")
    with pytest.raises(es.errors.DataError, match=r"absent, the first at \(city='Bern', i=0\)"):
        db.sql("SELECT city, i, val FROM A").numpy()
    with pytest.raises(es.errors.ShapeError, match="no label 'town'; it has city, i"):
        db.relation("A").domain("town")


def test_results_keep_their_dictionaries(db: es.Session) -> None:
    db.create("A", {"city": ["Oslo", "Bern"], "i": [0, 1], "val": [1, 2]}, labels="city i", parts={"city": 2})
    query = db.sql("SELECT city AS town, SUM(val) AS val FROM A GROUP BY city")
    assert query.domain("town").to_pylist() == ["Bern", "Oslo"]
    assert rows(query) == [("Bern", 2), ("Oslo", 1)]
    stored = query.to_table("B")
    assert rows(db.einsum("t->t", "B", combine="x0 * 2")) == [("Bern", 4), ("Oslo", 2)]
    db.sql("CREATE TABLE C AS SELECT town, val FROM B WHERE town = 'Oslo'")
    assert rows(db.relation("C")) == [("Oslo", 1)]
    assert db.einsum("ci->i", "A").domains == {}
    assert stored.domain("town").to_pylist() == ["Bern", "Oslo"]
    with pytest.raises(es.errors.ShapeError, match="the result has no label 'city'; it has town"):
        query.domain("city")


# ----------------------------------------------------------------------------------------------------- SQL: literals


LITERALS = {
    "string": ["'a'", "'aa'", "'b'", "'ä'", "''", "'z'"],
    "date": ["DATE '2024-01-01'", "'1969-12-31'", "DATE '2024-02-01'", "TIMESTAMP '2024-01-01 00:00:01'"],
    "timestamp": ["TIMESTAMP '2024-03-01 12:00:00'", "DATE '2024-01-01'", "'1969-12-31 23:59:59.000005'"],
    "uuid": [f"'{UUIDS[0]}'", f"UUID '{UUIDS[1]}'", f"'{uuid.UUID(int=3)}'"],
    "boolean": ["TRUE", "FALSE"],
    "large": ["2147483648", "-4611686018427387904", "0", "2147483648.5", "9223372036854775808"],
}


@pytest.mark.parametrize("op", ["=", "<>", "<", "<=", ">", ">="])
@pytest.mark.parametrize("kind", LITERALS)
def test_comparisons_with_literals_as_in_duckdb(db: es.Session, kind: str, op: str) -> None:
    """Present values and absent ones, on either side."""
    table = pa.table({"key": KINDS[kind], "n": [0, 1, 2], "val": [1, 2, 3]})
    db.create("A", table, labels="key n")
    peer = duckdb.connect()
    cast = "key::UUID AS key" if kind == "uuid" else "key"
    strings = table.set_column(0, "key", pa.array([str(u) for u in UUIDS])) if kind == "uuid" else table
    peer.register("T", strings)
    for literal in LITERALS[kind]:
        for test in (f"key {op} {literal}", f"{literal} {op} key", f"NOT (key {op} {literal})"):
            expected = peer.sql(f"SELECT n FROM (SELECT {cast}, n FROM T) WHERE {test} ORDER BY n").fetchall()
            got = sorted(row[1] for row in rows(db.sql(f"SELECT key, n, val FROM A WHERE {test}")))
            assert got == [n for (n,) in expected], test


CITIES = {"city": ["Oslo", "Bern", "Rome", "Paris"], "val": [1.0, 2.0, 3.0, 4.0]}


@on_every_engine
@pytest.mark.parametrize(
    ("test", "kept"),
    [
        ("city = 'Paris'", ["Paris"]),
        ("city = 'Nowhere'", []),
        ("city <> 'Nowhere'", ["Bern", "Oslo", "Paris", "Rome"]),
        ("city BETWEEN 'C' AND 'Paris'", ["Oslo", "Paris"]),
        ("city NOT BETWEEN 'C' AND 'Paris'", ["Bern", "Rome"]),
        ("city IN ('Rome', 'Nowhere', 'Bern')", ["Bern", "Rome"]),
        ("city NOT IN ('Rome', 'Nowhere')", ["Bern", "Oslo", "Paris"]),
        ("city > 'P' AND city < 'R' OR (city) = ('Bern')", ["Bern", "Paris"]),
    ],
)
def test_predicates_on_values(db: es.Session, engine: str, test: str, kept: list[str]) -> None:
    db.create("A", CITIES, labels="city")
    assert [row[0] for row in rows(db.sql(f"SELECT city, val FROM A WHERE {test}", engine=engine))] == kept


def test_values_inside_expressions(db: es.Session) -> None:
    db.create("A", CITIES, labels="city")
    text = "SELECT SUM(CASE WHEN city = 'Oslo' OR city > 'Paris' THEN val ELSE 0 END) AS val FROM A"
    assert db.sql(text).numpy() == 4
    assert db.sql("SELECT COUNT(city) AS val FROM A").numpy() == 4
    flags = db.sql("SELECT city, CASE WHEN city < 'C' THEN 1 ELSE 0 END AS val FROM A")
    assert rows(flags) == [("Bern", 1), ("Oslo", 0), ("Paris", 0), ("Rome", 0)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT city || 'x' AS c, val FROM A", r"is not read as a scalar expression|\|\| is not read"),
        ("SELECT city + 1 AS c, city, val FROM A", "label city stands for values .dictionary of 4 string."),
        ("SELECT city, val * city AS val FROM A", "label city stands for values .dictionary of 4 string."),
        ("SELECT city, val FROM A WHERE city = 5", "5 cannot be compared with values of type string"),
        (
            "SELECT city, val FROM A WHERE city < val",
            "val is no literal that a dictionary of 4 string is compared with",
        ),
        ("SELECT city, val FROM A WHERE city = NULL", "NULL is no literal"),
        ("SELECT day, val FROM D WHERE day = 'soon'", "'soon' is no date and no timestamp"),
        ("SELECT day, val FROM D WHERE day = TRUE", "True cannot be compared with values of type date32"),
        (
            "SELECT a.city, a.val FROM A a JOIN D d ON a.city = d.day",
            "type string and of type date32.day. are never eq",
        ),
        ("SELECT a.city, a.val FROM A a JOIN P p ON a.city = p.i", "a.city is a dictionary of 4 string, and p.i holds"),
        ("SELECT a.city, a.val FROM A a JOIN P p ON p.i < a.city", "a.city is a dictionary of 4 string, and p.i holds"),
    ],
)
def test_what_values_are_not(db: es.Session, text: str, message: str) -> None:
    db.create("A", CITIES, labels="city")
    db.create("D", {"day": DAYS, "val": [1, 2, 3]}, labels="day")
    db.create("P", np.arange(4))
    with pytest.raises(es.errors.EinsqlError, match=message):
        db.sql(text)


# ------------------------------------------------------------------------------------------------- labels that meet

TOWNS = {"town": ["Rome", "Bonn", "Oslo"], "d": [0, 1, 2], "val": [10.0, 20.0, 30.0]}


@on_every_engine
@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.city, SUM(a.val * b.val) AS val FROM A a JOIN B b ON a.city = b.town GROUP BY a.city",
        "SELECT b.town, MAX(a.val + b.val) AS val FROM A a, B b WHERE b.town = a.city AND b.town > 'P' GROUP BY b.town",
        "SELECT a.city, b.town, SUM(a.val * b.val) AS val FROM A a JOIN B b ON a.city < b.town GROUP BY a.city, b.town",
        "SELECT a.city, COUNT(*) AS val FROM A a JOIN A b ON a.city >= b.city GROUP BY a.city",
        "WITH s AS (SELECT town AS city, SUM(val) AS val FROM B GROUP BY town)"
        " SELECT s.city, SUM(s.val / a.val) AS val FROM s JOIN A a USING (city) GROUP BY s.city",
        "SELECT SUM(CASE WHEN a.city = b.town THEN a.val * b.val ELSE 1 END) AS val FROM A a, B b",
        "SELECT a.city, SUM(a.val * b.val * c.val) AS val FROM A a JOIN B b ON a.city = b.town"
        " JOIN C c ON b.town = c.src AND c.dst = a.city GROUP BY a.city",
        "SELECT c.src, SUM(c.val) AS val FROM C c WHERE c.src = c.dst GROUP BY c.src",
    ],
)
def test_joins_go_through_values(db: es.Session, engine: str, text: str) -> None:
    pairs = {"src": ["Rome", "Rome", "Oslo", "Oslo"], "dst": ["Rome", "Oslo", "Bern", "Oslo"], "val": [1.0, 2, 3, 4]}
    peer = duckdb.connect()
    for name, table, labels in (("A", CITIES, "city"), ("B", TOWNS, "town d"), ("C", pairs, "src dst")):
        db.create(name, table, labels=labels)
        peer.register(name, pa.table(table))
    assert rows(db.sql(text, engine=engine)) == sorted(peer.sql(text).fetchall())


@on_every_engine
def test_letters_meet_by_values(db: es.Session, engine: str) -> None:
    """The total reading: over all values of both, and an absent cell is worth its fill."""
    db.create("A", CITIES, labels="city")
    db.create("B", {"town": TOWNS["town"], "val": TOWNS["val"]}, labels="town", fill=5.0)
    assert db.einsum("c,c->", "A", "B", engine=engine).numpy() == 1 * 30 + 2 * 5 + 3 * 10 + 4 * 5
    both = db.einsum("c,c->c", "A", "B", combine="add", engine=engine)
    assert both.domain("c").to_pylist() == ["Bern", "Bonn", "Oslo", "Paris", "Rome"]
    assert both.numpy().tolist() == [7, 20, 31, 9, 13]
    query = db.einsum("c->c", "A", combine="x0 * 2", engine=engine)
    assert db.einsum("c,c->c", query, "B", engine=engine).numpy().tolist() == [20, 0, 60, 40, 60]


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "complex64", "float64"])
def test_labels_meet_in_every_dtype(db: es.Session, dtype: str) -> None:
    values = np.array([1, 0, 1]).astype(dtype)
    db.create("A", {"c": ["x", "y", "z"], "val": values}, labels="c")
    db.create("B", {"c": ["y", "z", "zz"], "val": values}, labels="c")
    both = db.einsum("c,c->c", "A", "B", combine="mul")
    assert [row[0] for row in rows(both)] == ["y", "z"]
    assert not both.numpy().any()
    expected = db.einsum("c,c->c", values, values).numpy().dtype
    assert both.numpy().dtype == expected


def test_a_dictionary_of_one_value_is_not_stretched(db: es.Session) -> None:
    db.create("A", CITIES, labels="city")
    db.create("B", {"city": ["Oslo"], "val": [10.0]}, labels="city")
    assert rows(db.einsum("c,c->c", "A", "B")) == [("Oslo", 10.0)]
    assert db.einsum("c,c->c", "A", np.array([2.0])).numpy().tolist() == [4, 2, 8, 6]


def test_equal_dictionaries_cost_nothing(db: es.Session) -> None:
    db.create("A", CITIES, labels="city")
    db.create("B", {"town": CITIES["city"][::-1], "val": [1.0, 1.0, 1.0, 1.0]}, labels="town")
    query = db.sql("SELECT a.city, a.val * b.val AS val FROM A a JOIN B b ON a.city = b.town")
    assert list(query.relations) == ["A", "B"]
    assert list(db.einsum("c,c->c", "A", "B").relations) == ["A", "B"]


def test_a_letter_that_is_a_dictionary_here_and_a_position_there(db: es.Session) -> None:
    db.create("A", CITIES, labels="city")
    with pytest.raises(es.errors.ShapeError) as caught:
        db.einsum("c,dc->d", "A", np.zeros((2, 4)))
    lines = str(caught.value).splitlines()
    assert lines[0] == "label 'c' stands for values in one operand and for positions in another"
    assert lines[1].split() == ["operand", "1", "axis", "1", "A", "dictionary", "of", "4", "string"]
    assert lines[2].split() == ["operand", "2", "axis", "2", "operand1", "positions", "from", "0"]
    with pytest.raises(
        es.errors.ShapeError, match=r"label 'c' stands for values .dictionary of 4 string., and an expr"
    ):
        db.einsum("c->c", "A", combine="x0 + c")
    db.create("D", {"day": DAYS, "val": [1, 2, 3]}, labels="day")
    with pytest.raises(
        es.errors.ShapeError, match="label 'c' of einsum c,c->: values of type string and of type date32"
    ):
        db.einsum("c,c->", "A", "D")


def test_tensors_of_the_builder_meet_by_values(db: es.Session) -> None:
    db.create("A", CITIES, labels="city")
    db.create("B", {"city": ["Rome", "Oslo", "Bonn", "Nice"], "val": [1.0, 2.0, 3.0, 4.0]}, labels="city")
    assert (db.tensor("A") * db.tensor("B")).sum("city").numpy() == 1 * 2 + 3 * 1


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.array(DAYS), pa.array([dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 1)])),
        (pa.array([0, 5], pa.timestamp("s")), pa.array([5_000, 5_001], pa.timestamp("ms"))),
        (pa.array(UUIDS), pa.array([UUIDS[1].bytes], pa.binary(16))),
        (pa.array([5, 2**40]), pa.array([2**40, 2**63], pa.uint64())),
        (pa.array(["x", "y"]), pa.array(["y"], pa.large_string())),
    ],
)
def test_values_of_related_types_meet(db: es.Session, left: pa.Array, right: pa.Array) -> None:
    db.create("A", pa.table({"k": left}), labels="k")
    db.create("B", pa.table({"k": right}), labels="k")
    assert db.sql("SELECT COUNT(*) AS val FROM A a JOIN B b ON a.k = b.k").numpy() == 1


def test_values_of_types_that_never_meet(db: es.Session) -> None:
    zoned, plain = pa.array([0], pa.timestamp("s", "UTC")), pa.array([0], pa.timestamp("s"))
    with pytest.raises(es.errors.ShapeError, match="are never equal"):
        union([domain_of(zoned), domain_of(plain)])
    negative = pa.array([-5, 2**40])
    with pytest.raises(es.errors.ShapeError, match="values of type int64 are not all of type uint64"):
        union([domain_of(negative), domain_of(pa.array([2**63], pa.uint64()))])


# ------------------------------------------------------------------------------------------------------ named domains


def test_labels_share_a_named_domain(db: es.Session) -> None:
    edges = {"src": ["ann", "bob"], "dst": ["bob", "cid"], "val": [1.0, 2.0]}
    db.create("E", edges, labels="src:person dst:person")
    assert db.relation("E").shape == (3, 3)
    hops = db.sql("SELECT a.src, b.dst, SUM(a.val * b.val) AS val FROM E a JOIN E b ON a.dst = b.src GROUP BY ALL")
    assert rows(hops) == [("ann", "cid", 2.0)]
    assert list(hops.relations) == ["E"]
    weights = db.create("W", np.array([1.0, 10.0, 100.0]), labels="who:person")
    assert rows(weights) == [("ann", 1.0), ("bob", 10.0), ("cid", 100.0)]
    assert db.einsum("sd,d->s", "E", "W").numpy().tolist() == [10, 200, 0]


def test_a_named_domain_grows_and_older_relations_are_unified(db: es.Session) -> None:
    db.create("A", {"who": ["bob", "cid"], "val": [1.0, 2.0]}, labels="who:person")
    db.create("B", {"who": ["ann", "cid"], "val": [10.0, 20.0]}, labels="who:person")
    assert (db.relation("A").shape, db.relation("B").shape) == ((2,), (3,))
    assert rows(db.einsum("w,w->w", "A", "B")) == [("cid", 40.0)]
    small = db.create("N", {"n": [3, 5], "val": [1, 2]}, labels="n:number")
    assert rows(small) == [(3, 1), (5, 2)]


def test_a_failed_create_leaves_a_named_domain_alone(db: es.Session) -> None:
    db.create("A", {"who": ["bob"]}, labels="who:person")
    with pytest.raises(es.errors.DataError, match="duplicate"):
        db.create("B", {"who": ["ann", "ann"]}, labels="who:person")
    with pytest.raises(es.errors.CatalogError, match="already exists"):
        db.create("A", {"who": ["dan"]}, labels="who:person")
    assert db.create("C", {"who": ["cid"]}, labels="who:person").domain("who").to_pylist() == ["bob", "cid"]
    with pytest.raises(es.errors.ShapeError, match="values of type string and of type date32"):
        db.create("D", {"who": DAYS}, labels="who:person")
    with pytest.raises(es.errors.ShapeError, match="'who' of D has extent 5, its domain 'person' 2 values"):
        db.create("D", np.zeros(5), labels="who:person")


# ---------------------------------------------------------------------------------------------------------- properties

words = st.lists(st.text(max_size=3), min_size=1, max_size=6, unique=True)


@given(left=words, right=words)
def test_unions_keep_order_and_values(left: list[str], right: list[str]) -> None:
    a, b = domain_of(pa.array(left)), domain_of(pa.array(right))
    both = union([a, b])
    assert both.values.to_pylist() == sorted({*left, *right})
    assert both.take(both.codes(a.values)).to_pylist() == sorted(left)
    assert (both == a) == (set(right) <= set(left))
    for word in [*left, *right]:
        low, high = a.span(word)
        assert (low, high) == (sum(v < word for v in left), sum(v <= word for v in left))


@given(left=words, right=words)
def test_joins_of_any_words_go_through_values(left: list[str], right: list[str]) -> None:
    with es.connect() as db:
        db.create("A", {"c": left, "val": range(1, len(left) + 1)}, labels="c")
        db.create("B", {"c": right, "val": range(1, len(right) + 1)}, labels="c")
        got = db.sql("SELECT a.c, a.val * b.val AS val FROM A a JOIN B b ON a.c = b.c")
        expected = {w: (left.index(w) + 1) * (right.index(w) + 1) for w in left if w in right}
        assert dict(rows(got)) == expected
