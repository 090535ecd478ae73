"""Compute equal things once."""

from __future__ import annotations

from planner.einsum import Einsum, Fill, Filter, Input, Map, Tensor
from planner.node import rewrite


def common_subexpressions(graph: Tensor) -> Tensor:
    """Merge nodes that say the same of the same inputs.

        p := exp A            p := exp A
        q := exp A       ->   r := mul p, p
        r := mul p, q

    Idempotent. The first name stays.
    """
    seen: dict[tuple[object, ...], Tensor] = {}

    def rule(node: Tensor) -> Tensor:
        return seen.setdefault(_key(node), node)

    return rewrite(graph, rule)


def _key(node: Tensor) -> tuple[object, ...]:
    match node:
        case Input():
            return ("input", node.name)
        case Einsum():
            return ("einsum", node.operands, node.subscripts, node.combine, node.reduce, node.where, node.path)
        case Map():
            return ("map", node.arg, node.expr)
        case Filter():
            return ("filter", node.arg, node.where)
        case Fill():
            return ("fill", node.arg, type(node.value), node.value)
    return (node,)
