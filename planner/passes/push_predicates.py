"""Filter early: a condition on the labels and the value of one operand is a filter of that operand."""

from __future__ import annotations

from dataclasses import replace

from planner.einsum import Einsum, Filter, Tensor
from planner.node import rewrite
from planner.predicates import conjunction, conjuncts
from planner.scalar import Arg, Expr, args_of, labels_of, substitute


def push_predicates(graph: Tensor) -> Tensor:
    """Move each conjunct that one operand decides down to that operand.

    einsum ij,jk->ik A, B where i < 3 and i < k   ->   einsum ij,jk->ik A', B where i < k
                                                       A' := filter A where i < 3
    """
    return rewrite(graph, lambda node: _push(node) if isinstance(node, Einsum) and node.where is not None else node)


def _push(node: Einsum) -> Tensor:
    assert node.where is not None
    operands, kept = list(node.operands), []
    for part in conjuncts(node.where):
        owner = _owner(node, part)
        if owner is None:
            kept.append(part)
            continue
        own, labels = operands[owner], node.subscripts.inputs[owner]
        renamed = substitute(part, {owner: Arg(0)}, dict(zip(labels, own.type.labels, strict=True)))
        operands[owner] = Filter(own, renamed)
    if len(kept) == len(conjuncts(node.where)):
        return node
    return replace(node, operands=tuple(operands), where=conjunction(kept))


def _owner(node: Einsum, part: Expr) -> int | None:
    """The operand whose value and labels, each once, are all that `part` reads."""
    wanted, args = labels_of(part), args_of(part)
    for i, labels in enumerate(node.subscripts.inputs):
        mine = args <= {i} and wanted <= set(labels)
        if (wanted or args) and mine and len(set(labels)) == len(labels):
            return i
    return None
