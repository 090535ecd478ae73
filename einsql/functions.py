"""Scalar functions of tensors, and einsums over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from einsql.builder import Scalar, Tensor, as_tensor, elementwise
from einsql.einsum_call import einsum_of, read_call
from einsql.graph_domains import GraphDomains
from einsql.joining import relabelled, sources
from einsql.operators import Operators, call
from planner.errors import DataError, ShapeError
from planner.relation_type import is_label
from planner.scalar import LabelValue

T = TypeVar("T", bound=Operators)


def fused(function: Callable[..., Any], *args: Any) -> Any:
    """`function` of tensors as one node of the graph; it gets scalars in their places."""
    return elementwise(lambda *values: function(*map(Scalar, values)).expr, *args)


def label(name: str) -> Scalar:
    """The coordinate along a label, from 0: `es.where(es.label("s") <= es.label("t"), scores, -inf)`."""
    if not isinstance(name, str) or not is_label(name):
        raise ShapeError(f"a label is called by a word, got {name!r}")
    return Scalar(LabelValue(name))


def exp(x: T) -> T:
    """e to the power of x."""
    return _unary("exp", x)


def log(x: T) -> T:
    """The natural logarithm."""
    return _unary("log", x)


def sqrt(x: T) -> T:
    """The square root; NaN below 0."""
    return _unary("sqrt", x)


def rsqrt(x: T) -> T:
    """1 / sqrt(x)."""
    return _unary("rsqrt", x)


def sin(x: T) -> T:
    """The sine of x radians."""
    return _unary("sin", x)


def cos(x: T) -> T:
    """The cosine of x radians."""
    return _unary("cos", x)


def tanh(x: T) -> T:
    """The hyperbolic tangent."""
    return _unary("tanh", x)


def abs(x: T) -> T:
    """The absolute value; of complex numbers a real."""
    return _unary("abs", x)


def sign(x: T) -> T:
    """-1, 0 or 1."""
    return _unary("sign", x)


def floor(x: T) -> T:
    """The largest whole number up to x, as a float."""
    return _unary("floor", x)


def ceil(x: T) -> T:
    """The least whole number from x, as a float."""
    return _unary("ceil", x)


def erf(x: T) -> T:
    """The error function."""
    return _unary("erf", x)


def sigmoid(x: T) -> T:
    """1 / (1 + exp(-x))."""
    return _unary("sigmoid", x)


def silu(x: T) -> T:
    """x * sigmoid(x)."""
    return _unary("silu", x)


def gelu(x: T, approximate: str = "none") -> T:
    """x times the normal distribution function: exact by `erf`, or the usual formula with `approximate="tanh"`."""
    if approximate not in ("none", "tanh"):
        raise ShapeError(f"approximate is 'none' or 'tanh', got {approximate!r}")
    done: T = fused(_gelu if approximate == "none" else _gelu_by_tanh, x)
    return done


def _gelu(x: Any) -> Any:
    return x * 0.5 * (1 + erf(x * math.sqrt(0.5)))


def _gelu_by_tanh(x: Any) -> Any:
    return x * 0.5 * (1 + tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def maximum(a: Any, b: Any) -> Any:
    """The larger of two values; NaN where one is."""
    return elementwise(call("max"), a, b)


def minimum(a: Any, b: Any) -> Any:
    """The lesser of two values; NaN where one is."""
    return elementwise(call("min"), a, b)


def where(condition: Any, a: Any, b: Any) -> Any:
    """a where the condition holds, b elsewhere; labels come in the order of a, b, condition."""
    return elementwise(lambda x, y, test: call("case")(test, x, y), a, b, condition)


def einsum(
    subscripts: Any,
    *operands: Any,
    labels: str | Sequence[str] | None = None,
    reduce: str = "sum",
    combine: str | None = None,
    path: Any = None,
) -> Tensor:
    """An einsum over tensors, whose axes the subscripts name by position: `es.einsum("td,df->tf", x, w)`.

    labels   of the result; by default as the subscripts call them

    The rest is as in `Session.einsum`.
    """
    read = read_call(subscripts, operands, lambda name: False)
    tensors = [as_tensor(operand, "an operand of es.einsum") for operand in read.operands]
    if not tensors:
        raise DataError("es.einsum wants at least one tensor")
    nodes, relations = sources(tensors)
    wholes = [replace(t.whole, node=node) for t, node in zip(tensors, nodes, strict=True)]
    domains = GraphDomains(relations)
    written = read.subscripts([domains.shape(node) for node in nodes])
    result = einsum_of(wholes, written, reduce, combine, path, domains)
    named = Tensor(tensors[0].session, result, written.output, relations)
    return relabelled(named, labels)


def _unary(op: str, x: T) -> T:
    done: T = elementwise(call(op), x)
    return done
