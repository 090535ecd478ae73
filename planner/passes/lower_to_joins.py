"""Einsum graph to relational plan: every einsum is a join followed by an aggregation."""

from __future__ import annotations

from planner import relational as rel
from planner.cuts import Cut
from planner.einsum import Einsum, Fill, Filter, Input, Map, Tensor, node_names


def lower_to_joins(graph: Tensor) -> rel.Rel:
    """Write every node as a relational operator over relations that are not cut yet.

        einsum td,df->tf X, W   ->   Aggregate sum by (t f)
                                     └─ Join on (d)
                                        ├─ Scan X
                                        └─ Scan W

    Operators have the names that `node_names` gives.
    """
    new: dict[Tensor, rel.Rel] = {}
    for node, name in node_names(graph).items():
        new[node] = _lower(node, name, new)
    return new[graph]


def _lower(node: Tensor, name: str, new: dict[Tensor, rel.Rel]) -> rel.Rel:
    match node:
        case Input():
            return rel.Scan(node.stored, tuple(Cut(e, parts=1) for e in node.type.extents), name=name)
        case Einsum():
            operands = tuple(new[operand] for operand in node.operands)
            cuts = tuple(Cut(node.extents[label], parts=1) for label in node.subscripts.labels)
            return rel.Join(operands, node.subscripts, node.combine, node.reduce, node.where, cuts, name=name)
        case Map():
            return rel.Map(new[node.arg], node.expr, name=name)
        case Filter():
            return rel.Filter(new[node.arg], node.where, name=name)
        case Fill():
            return rel.Fill(new[node.arg], node.value, name=name)
    raise AssertionError(node)
