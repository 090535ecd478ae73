"""The smallest node that says what a SELECT says."""

from __future__ import annotations

from planner.einsum import Einsum, Filter, Map, Tensor
from planner.scalar import Arg, Expr, substitute
from planner.subscripts import Subscripts


def elementwise_or_einsum(
    operands: tuple[Tensor, ...], subscripts: Subscripts, combine: Expr, reduce: str | None, where: Expr | None
) -> Tensor:
    """An Einsum, or the Map and Filter that say the same of one operand whose labels all stay where they are."""
    if len(operands) != 1 or subscripts.inputs[0] != subscripts.output:
        return Einsum(operands, subscripts, combine, reduce, where)
    node = operands[0]
    names = dict(zip(subscripts.output, node.type.labels, strict=True))
    if where is not None:
        node = Filter(node, substitute(where, labels=names))
    return node if combine == Arg(0) else Map(node, substitute(combine, labels=names))
