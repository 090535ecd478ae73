"""What a call of `db.einsum` says: subscripts as text or as lists of numbers, a reduce, a combine, a path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from einsql.graph_domains import GraphDomains
from einsql.total import Whole, total_einsum
from planner.contraction_path import read_path
from planner.dtypes import BOOL, FLOAT64, REDUCES, DType
from planner.errors import ShapeError
from planner.scalar import Arg, Call, Cast, Const, Expr, chain
from planner.scalar_text import parse
from planner.scalar_types import typed
from planner.subscripts import Subscripts, read_sublists, read_subscripts

Shapes = Sequence[Sequence[int]]

COMBINES: dict[str, Callable[[list[Expr]], Expr]] = {
    "mul": lambda x: chain("mul", x),
    "add": lambda x: chain("add", x),
    "min": lambda x: chain("min", x),
    "max": lambda x: chain("max", x),
    "sub": lambda x: Call("sub", (x[0], chain("add", x[1:]))) if len(x) > 1 else x[0],
    "div": lambda x: Call("div", (x[0], chain("mul", x[1:]))) if len(x) > 1 else x[0],
}


@dataclass(frozen=True)
class EinsumCall:
    """Operands, and how their shapes turn what was written into subscripts."""

    operands: tuple[Any, ...]
    subscripts: Callable[[Shapes], Subscripts]


def read_call(first: Any, rest: Sequence[Any], is_relation: Callable[[Any], bool]) -> EinsumCall:
    """`"ij,jk->ik", A, B`, or in NumPy's list form `A, [0, 1], B, [1, 2], [0, 2]`."""
    if isinstance(first, str) and not (rest and _is_sublist(rest[0]) and is_relation(first)):
        return EinsumCall(tuple(rest), lambda shapes: read_subscripts(first, shapes))
    args = [first, *rest]
    output = args.pop() if len(args) % 2 else None
    sides = args[1::2]
    for side in [*sides, *([] if output is None else [output])]:
        if not _is_sublist(side):
            raise ShapeError(
                "einsum takes a text such as 'ij,jk->ik' and its operands, or operands that each have a list of whole"
                f" numbers after them; got {side!r} in place of a list"
            )
    return EinsumCall(tuple(args[::2]), lambda shapes: read_sublists(sides, output, shapes))


def _is_sublist(item: Any) -> bool:
    return isinstance(item, list | tuple) and all(
        i is ... or (isinstance(i, int) and not isinstance(i, bool)) for i in item
    )


def einsum_of(
    wholes: Sequence[Whole], read: Subscripts, reduce: str, combine: str | None, path: Any, domains: GraphDomains
) -> Whole:
    """The einsum over total arrays; sum over booleans is any, as in NumPy. Labels meet by the values of `domains`."""
    if reduce not in REDUCES:
        raise ShapeError(f"no reduce {reduce!r}; there are {', '.join(REDUCES)}")
    expr = _combine(combine, len(wholes))
    wholes = domains.unified(wholes, read, expr)
    dtypes = [w.node.type.dtype for w in wholes]
    dtype = typed(expr, dtypes)[1]
    if reduce in ("any", "all") and dtype != BOOL:
        expr = _all_nonzero(dtypes) if combine in (None, "mul") and dtype.is_exact else Call("ne", (expr, Const(0)))
    elif dtype == BOOL and reduce in ("sum", "prod"):
        reduce = "any" if reduce == "sum" else "all"
    elif reduce == "fsum" and dtype.is_exact:
        expr = Cast(expr, FLOAT64)
    steps = None if path is None else tuple(read_path(path, len(wholes)))
    return total_einsum(wholes, read, expr, reduce, path=steps)


def _all_nonzero(dtypes: Sequence[DType]) -> Expr:
    """Whether a product of integers and booleans is not 0, factor by factor, so that it can be contracted in any order.
    Products of floats may underflow, or be NaN."""
    return chain("and", [Arg(i) if d == BOOL else Call("ne", (Arg(i), Const(0))) for i, d in enumerate(dtypes)])


def _combine(combine: str | None, operands: int) -> Expr:
    if combine is not None and not isinstance(combine, str):
        raise ShapeError(f"combine is a word or an expression such as 'abs(x0 - x1)', got {combine!r}")
    if combine is None or combine in COMBINES:
        return COMBINES[combine or "mul"]([Arg(i) for i in range(operands)])
    return parse(combine)
