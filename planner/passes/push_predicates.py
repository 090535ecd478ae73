"""Filter early: a condition on the labels of one operand is a filter of that operand."""

from __future__ import annotations

from functools import reduce

from planner.einsum import Einsum, Filter, Tensor
from planner.node import rewrite
from planner.scalar import Call, Expr, labels_of, substitute


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
        renamed = substitute(part, labels=dict(zip(labels, own.type.labels, strict=True)))
        operands[owner] = Filter(own, renamed)
    if len(kept) == len(conjuncts(node.where)):
        return node
    return Einsum(tuple(operands), node.subscripts, node.combine, node.reduce, conjunction(kept), name=node.name)


def _owner(node: Einsum, part: Expr) -> int | None:
    """The operand whose labels, each once, are all that `part` reads."""
    wanted = labels_of(part)
    for i, labels in enumerate(node.subscripts.inputs):
        if wanted and wanted <= set(labels) and len(set(labels)) == len(labels):
            return i
    return None


def conjuncts(expr: Expr) -> list[Expr]:
    """The parts of a chain of `and`, left to right."""
    done, stack = [], [expr]
    while stack:
        here = stack.pop()
        if isinstance(here, Call) and here.op == "and":
            stack.extend(reversed(here.args))
        else:
            done.append(here)
    return done


def conjunction(parts: list[Expr]) -> Expr | None:
    """The chain of `and` over `parts`; None for none."""
    return reduce(lambda left, right: Call("and", (left, right)), parts) if parts else None
