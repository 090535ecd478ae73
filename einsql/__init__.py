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
    from einsql.builder import Tensor as Tensor
    from einsql.functions import abs as abs
    from einsql.functions import ceil as ceil
    from einsql.functions import cos as cos
    from einsql.functions import einsum as einsum
    from einsql.functions import erf as erf
    from einsql.functions import exp as exp
    from einsql.functions import floor as floor
    from einsql.functions import gelu as gelu
    from einsql.functions import label as label
    from einsql.functions import log as log
    from einsql.functions import maximum as maximum
    from einsql.functions import minimum as minimum
    from einsql.functions import rsqrt as rsqrt
    from einsql.functions import sigmoid as sigmoid
    from einsql.functions import sign as sign
    from einsql.functions import silu as silu
    from einsql.functions import sin as sin
    from einsql.functions import sqrt as sqrt
    from einsql.functions import tanh as tanh
    from einsql.functions import where as where
    from einsql.indexing import concat as concat
    from einsql.indexing import gather as gather
    from einsql.indexing import one_hot as one_hot
    from einsql.indexing import stack as stack
    from einsql.layers import attention as attention
    from einsql.layers import layer_norm as layer_norm
    from einsql.layers import log_softmax as log_softmax
    from einsql.layers import logsumexp as logsumexp
    from einsql.layers import rms_norm as rms_norm
    from einsql.layers import rope as rope
    from einsql.layers import softmax as softmax
    from einsql.query import Query as Query
    from einsql.relation import Relation as Relation
    from einsql.session import Session as Session
    from einsql.session import connect as connect

__version__ = "0.1.0"

_FUNCTIONS = {
    "einsql.functions": """
        abs ceil cos einsum erf exp floor gelu label log maximum minimum rsqrt sigmoid sign silu sin sqrt tanh where
    """,
    "einsql.indexing": "concat gather one_hot stack",
    "einsql.layers": "attention layer_norm log_softmax logsumexp rms_norm rope softmax",
}
_HOMES = {
    "connect": "einsql.session",
    "Session": "einsql.session",
    "Query": "einsql.query",
    "Relation": "einsql.relation",
    "Tensor": "einsql.builder",
    "errors": "einsql.errors",
} | {name: home for home, names in _FUNCTIONS.items() for name in names.split()}

__all__ = [
    "Query", "Relation", "Session", "Tensor", "abs", "attention", "ceil", "concat", "connect", "cos",
    "einsum", "erf", "errors", "exp", "floor", "gather", "gelu", "label", "layer_norm", "log", "log_softmax",
    "logsumexp", "maximum", "minimum", "one_hot", "rms_norm", "rope", "rsqrt", "sigmoid", "sign", "silu",
    "sin", "softmax", "sqrt", "stack", "tanh", "where",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'einsql' has no attribute {name!r}")
    home = importlib.import_module(_HOMES[name])
    value = home if name == "errors" else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
