"""Tensors as relations: every tensor is a table, every kernel is a join.

    import einsql as es

    db = es.connect()
    db.create("A", numpy_array, labels="i j")
    y = db.sql("SELECT a.i, b.k, SUM(a.val * b.val) AS val FROM A a JOIN B b ON a.j = b.j GROUP BY a.i, b.k")
    y.numpy()

This is the only package to import; it loads NumPy, DuckDB and the rest on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from einsql import _siblings as _siblings

if TYPE_CHECKING:
    from einsql import errors as errors
    from einsql.query import Query as Query
    from einsql.relation import Relation as Relation
    from einsql.session import Session as Session
    from einsql.session import connect as connect

__version__ = "0.1.0"

_HOMES = {
    "connect": "einsql.session",
    "Session": "einsql.session",
    "Query": "einsql.query",
    "Relation": "einsql.relation",
    "errors": "einsql.errors",
}

__all__ = ["Query", "Relation", "Session", "connect", "errors"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'einsql' has no attribute {name!r}")
    home = importlib.import_module(_HOMES[name])
    value = home if name == "errors" else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
