"""n-ary einsums to trees of binary ones, wherever the combine distributes over the reduce."""

from __future__ import annotations

from functools import reduce

from planner.contraction_path import find_path
from planner.dtypes import BOOL, DType, identity
from planner.einsum import Einsum, Map, Tensor
from planner.node import rewrite
from planner.passes.push_predicates import conjunction, conjuncts
from planner.scalar import Arg, Call, Cast, Const, Expr, args_of, labels_of, substitute
from planner.scalar_types import typed
from planner.subscripts import Labels, Subscripts

# reduce -> the combine that distributes over it, and the reduce whose identity is neutral for that combine.
DISTRIBUTES = {"sum": ("mul", "prod"), "max": ("add", "sum"), "min": ("add", "sum"), "any": ("and", "all")}

Term = tuple[Tensor, Labels]


def order_contractions(graph: Tensor) -> Tensor:
    """Contract two operands at a time, in the order of least FLOP on the uncut graph.

        einsum ij,jk,kl->il A, B, C   ->   t := einsum ij,jk->ik A, B
                                           einsum ik,kl->il t, C

    Factors of one operand move into a map of that operand, so that what is left is a plain product for BLAS. An einsum
    whose combine does not split into such factors stays whole.
    """
    return rewrite(graph, lambda node: _order(node) if isinstance(node, Einsum) and len(node.operands) > 1 else node)


def _order(node: Einsum) -> Tensor:
    if node.reduce not in DISTRIBUTES or node.is_contraction:
        return node
    op, neutral = DISTRIBUTES[node.reduce]
    dtype = node.combined_dtype
    if (dtype == BOOL) != (op == "and"):
        return node
    factors = _factors(node, op)
    if factors is None:
        return node
    one = Const(identity(neutral, dtype))
    terms = [
        (_mapped(operand, labels, reduce(lambda a, b: Call(op, (a, b)), factors.get(i, [one])), dtype), labels)
        for i, (operand, labels) in enumerate(zip(node.operands, node.subscripts.inputs, strict=True))
    ]
    return _contract(node, terms, Call(op, (Arg(0), Arg(1))))


def _factors(node: Einsum, op: str) -> dict[int, list[Expr]] | None:
    """The factors of `combine` by the operand they belong to; None when one belongs to no single operand."""
    owned: dict[int, list[Expr]] = {}
    stack = [node.combine]
    while stack:
        here = stack.pop()
        if isinstance(here, Call) and here.op == op:
            stack.extend(reversed(here.args))
            continue
        owner = _owner(node, here)
        if owner is None:
            return None
        owned.setdefault(owner, []).append(here)
    return owned


def _owner(node: Einsum, factor: Expr) -> int | None:
    wanted, args = labels_of(factor), args_of(factor)
    for i, labels in enumerate(node.subscripts.inputs):
        if args <= {i} and wanted <= set(labels) and (not wanted or len(set(labels)) == len(labels)):
            return i
    return None


def _mapped(operand: Tensor, labels: Labels, factor: Expr, dtype: DType) -> Tensor:
    i = next(iter(args_of(factor)), 0)
    names = dict(zip(labels, operand.type.labels, strict=True))
    expr, got = typed(substitute(factor, {i: Arg(0)}, names), [operand.type.dtype])
    if got != dtype:
        expr = Cast(expr, dtype)
    return operand if expr == Arg(0) else Map(operand, expr)


def _contract(node: Einsum, terms: list[Term], combine: Expr) -> Tensor:
    output = node.subscripts.output
    pending = conjuncts(node.where) if node.where is not None else []
    path = find_path([frozenset(labels) for _, labels in terms], frozenset(output), node.extents)
    for step, (i, j) in enumerate(path):
        (right, right_labels), (left, left_labels) = terms.pop(j), terms.pop(i)
        here = dict.fromkeys([*left_labels, *right_labels])
        now = [part for part in pending if labels_of(part) <= set(here)]
        pending = [part for part in pending if part not in now]
        needed = set(output).union(*(labels for _, labels in terms), *(labels_of(part) for part in pending))
        last = step == len(path) - 1
        kept = output if last else tuple(label for label in here if label in needed)
        subscripts = Subscripts((left_labels, right_labels), kept)
        reduce_here = node.reduce if subscripts.contracted else None
        name = node.name if last else ""
        terms.append((Einsum((left, right), subscripts, combine, reduce_here, conjunction(now), name=name), kept))
    return terms[0][0]
