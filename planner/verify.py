"""What must hold of a relational plan. Cheap, and always on: a broken pass is named where it broke."""

from __future__ import annotations

from planner import relational as rel
from planner.errors import InternalError
from planner.node import postorder
from planner.placement import Listed, Placement


def verify(plan: rel.Rel, after: str, placed: bool = False) -> None:
    """Check cuts along every edge and, once `placed`, that every input is where its consumer needs it."""
    for node in postorder(plan):
        match node:
            case rel.Join():
                for labels, operand in zip(node.subscripts.inputs, node.operands, strict=True):
                    wanted = tuple(node.label_cuts[label] for label in labels)
                    _check(operand.type.cuts == wanted, node, after, f"operand {operand.name} is cut {operand.type}")
            case rel.RowWise():
                _check(node.type.cuts == node.arg.type.cuts, node, after, "a row-by-row operator re-cuts")
        if placed:
            _verify_placement(node, after)
    if placed:
        last = plan.placement
        _check(not (isinstance(last, Placement) and last.partial), plan, after, "the result is partial")


def _verify_placement(node: rel.Rel, after: str) -> None:
    _check(node.placement is not None, node, after, "it has no placement")
    if isinstance(node, rel.Join):
        for i, operand in enumerate(node.operands):
            _check(operand.placement == node.need(i), node, after, f"operand {operand.name} is not where it is needed")
    if isinstance(node, rel.RowWise):
        placement = node.arg.placement
        _check(not (isinstance(placement, Placement) and placement.partial), node, after, "it reads partial results")
    if isinstance(node.placement, Listed):
        _check(len(node.placement.blocks) == node.type.possible_rows, node, after, "its placement lists other blocks")


def _check(holds: bool, node: rel.Rel, after: str, what: str) -> None:
    if not holds:
        raise InternalError(
            f"after {after}, {type(node).__name__} {node.name!r} {node.type}: {what}"
            "\n  this is a fault of einsql, please report it"
        )
