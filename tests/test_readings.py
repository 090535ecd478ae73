"""A text that was read before gives what reading it anew would give, whatever happened to the catalog in between."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import einsql as es
import einsql.session

SQL = "SELECT A.i, SUM(A.val) AS val FROM A GROUP BY A.i"


def test_a_text_is_read_once(db: es.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a relation was replaced by one of the same type; the values are the new ones."""
    db.create("A", [[1, 2], [3, 4]])
    assert db.sql(SQL).numpy().tolist() == [3, 7]
    assert db.einsum("ij->j", "A").numpy().tolist() == [4, 6]
    db.create("A", [[10, 2], [3, 4]], replace=True)
    with monkeypatch.context() as patched:
        patched.setattr(einsql.session, "read_sql", lambda *args: pytest.fail("read again"))
        patched.setattr(einsql.session, "read_call", lambda *args: pytest.fail("read again"))
        assert db.sql(SQL, parts={"i": 2}).numpy().tolist() == [12, 7]
        assert db.einsum("ij->j", "A", engine="reference").numpy().tolist() == [13, 6]


def test_a_query_keeps_what_it_was_written_over(db: es.Session) -> None:
    db.create("A", [[1, 2], [3, 4]])
    before = db.sql(SQL)
    db.create("A", [[5, 5], [5, 5]], replace=True)
    assert db.sql(SQL).numpy().tolist() == [10, 10]
    assert before.numpy().tolist() == [3, 7]


def test_another_type_fill_or_dictionary_is_read_anew(db: es.Session) -> None:
    db.create("A", {"i": [0], "j": [1], "val": [2.0]}, labels="i=2 j=2")
    assert db.einsum("ij->i", "A").numpy().tolist() == [2, 0]
    db.create("A", {"i": [0], "j": [1], "val": [2.0]}, labels="i=2 j=2", fill=1.0, replace=True)
    assert db.einsum("ij->i", "A").numpy().tolist() == [3, 2]
    db.create("A", np.ones((2, 3)), replace=True)
    assert db.einsum("ij->i", "A").numpy().tolist() == [3, 3]
    for names in (["x", "y"], ["x", "z"]):
        db.create("A", {"i": names, "val": [1, 2]}, labels="i", replace=True)
        text = "SELECT A.i, A.val FROM A WHERE A.i = 'y'"
        assert db.sql(text).arrow().to_pydict() == ({"i": ["y"], "val": [2]} if "y" in names else {"i": [], "val": []})


def test_names_that_come_and_go(db: es.Session) -> None:
    db.create("A", [1, 2])
    text = "SELECT SUM(val) AS val FROM a"
    assert db.sql(text).numpy() == 3
    db.create("a", [5, 6])
    with pytest.raises(es.errors.SqlError, match="quote the one"):
        db.sql(text)
    db.drop("A")
    assert db.sql(text).numpy() == 11
    db.drop("a")
    with pytest.raises(es.errors.EinsqlError, match="no relation 'a'"):
        db.sql(text)
    with pytest.raises(es.errors.CatalogError):
        db.einsum("i->", "a")


def test_what_was_replaced_is_let_go(db: es.Session) -> None:
    db.create("A", np.ones(1000))
    assert db.einsum("i->", "A").numpy() == 1000
    gone = weakref.ref(db.relation("A").batch.stacks[0])
    db.create("A", np.zeros(1000), replace=True)
    gc.collect()
    assert gone() is None
