"""A join that one other join reads is part of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from planner.dtypes import ADDITIVE, accumulator
from planner.einsum import Einsum, Tensor
from planner.node import consumers, postorder
from planner.predicates import conjunction, conjuncts
from planner.scalar import Arg, Cast, Expr, is_plain_product, substitute
from planner.subscripts import Subscripts

MOST_OPERANDS = 8  # of an einsum whose combine cannot be taken apart again


def merge_joins(graph: Tensor) -> Tensor:
    """Take an einsum that reduces nothing, and that one einsum alone reads, into its reader.

        a := einsum td,df->tdf X, W        ->   einsum td,df->tf X, W
        einsum tdf->tf a

    Done where nothing is computed more often for it: both are products, which are ordered afterwards, or both join the
    same labels.
    """
    users = consumers(graph)
    new: dict[Tensor, Tensor] = {}
    for node in postorder(graph):
        args = tuple(new[arg] for arg in node.args)
        same = all(a is b for a, b in zip(args, node.args, strict=True))
        made: Tensor = node if same else node.with_args(args)
        times = Counter(node.args)
        for i in reversed(range(len(node.args))):
            once = len(users[node.args[i]]) == 1 and times[node.args[i]] == 1
            if once and isinstance(made, Einsum):
                made = _merged(made, i)
        new[node] = made
    return new[graph]


def _merged(node: Einsum, index: int) -> Einsum:
    """`node` with operand `index` taken in, or as it is."""
    inner = node.operands[index]
    if not isinstance(inner, Einsum) or inner.reduce is not None or node.path is not None or inner.path is not None:
        return node
    names = dict(zip(inner.subscripts.output, node.subscripts.inputs[index], strict=True))
    count, more = len(node.operands), len(inner.operands)
    taken = _widened(inner, node)
    products = is_plain_product(node.combine, count) and is_plain_product(taken, more)
    fits = set(names.values()) == set(node.subscripts.labels) and count + more - 1 <= MOST_OPERANDS
    if not products and not fits:
        return node
    moved = {k: Arg(k + more - 1) for k in range(index + 1, count)}
    shifted = {k: Arg(k + index) for k in range(more)}
    combine = substitute(node.combine, {**moved, index: substitute(taken, shifted, names)})
    read = {**moved, index: substitute(inner.combine, shifted, names)}
    wheres = [substitute(part, read) for part in conjuncts(node.where)]
    wheres += [substitute(part, shifted, names) for part in conjuncts(inner.where)]
    sides = tuple(tuple(names[label] for label in side) for side in inner.subscripts.inputs)
    inputs = node.subscripts.inputs
    return replace(
        node,
        operands=(*node.operands[:index], *inner.operands, *node.operands[index + 1 :]),
        subscripts=Subscripts((*inputs[:index], *sides, *inputs[index + 1 :]), node.subscripts.output),
        combine=combine,
        where=conjunction(wheres),
    )


def _widened(inner: Einsum, node: Einsum) -> Expr:
    """The inner combine; where `node` accumulates it, a product of narrow operands as it is before it is rounded."""
    wide = accumulator(inner.type.dtype)
    match inner.combine:
        case Cast(product, dtype) if node.reduce in ADDITIVE and dtype == inner.type.dtype != wide:
            if is_plain_product(product, len(inner.operands)):
                return product
    return inner.combine
