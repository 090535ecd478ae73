"""n-ary einsums to trees of binary ones, wherever the combine distributes over the reduce."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import reduce

from planner.contraction_path import find_path, in_pairs
from planner.dtypes import BOOL, DType, accumulator, identity
from planner.einsum import Einsum, Map, Tensor
from planner.errors import PlanError
from planner.node import rewrite
from planner.predicates import conjunction, conjuncts, reads_values
from planner.scalar import Arg, Call, Cast, Const, Expr, args_of, children, labels_of, substitute
from planner.scalar_types import typed
from planner.subscripts import Labels, Subscripts

# reduce -> the combine that distributes over it, and the reduce whose identity is neutral for that combine.
DISTRIBUTES = {"sum": ("mul", "prod"), "max": ("add", "sum"), "min": ("add", "sum"), "any": ("and", "all")}
PRODUCTS = {False: ("mul", "prod"), True: ("and", "all")}  # of numbers, of booleans, where nothing is reduced
MOST_AT_ONCE = 8  # operands of an element-wise product that one pass over memory combines

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
    dtype, exact = node.combined_dtype, node.combine
    if node.reduce is None and isinstance(exact, Cast) and accumulator(dtype) != dtype:
        exact = exact.arg  # in float32, and rounded when all is done
    terms, op = _terms(node, exact)
    if terms is not None:
        done = _contract(node, terms, Call(op, (Arg(0), Arg(1))))
        return done if done.type.dtype == node.type.dtype else Map(done, Cast(Arg(0), dtype))
    if node.path is not None and len(node.operands) > 2:
        raise PlanError(
            f"the path given for {node.name or node.subscripts} cannot be followed: {node.reduce or 'the combine'}"
            " of its combine is no chain of products, one operand each\n  leave the path out"
        )
    return replace(node, path=None) if node.path is not None else node


def _terms(node: Einsum, combine: Expr) -> tuple[list[Term] | None, str]:
    """The operands, factors and all, that a chain of one operator joins; None when the einsum stays whole."""
    whole = node.reduce is None and len(node.operands) <= MOST_AT_ONCE and node.path is None
    if whole or node.is_contraction or reads_values(node.where):
        return None, ""
    dtype = typed(combine, [operand.type.dtype for operand in node.operands])[1]
    if node.reduce is not None and node.reduce not in DISTRIBUTES:
        return None, ""
    op, neutral = PRODUCTS[dtype == BOOL] if node.reduce is None else DISTRIBUTES[node.reduce]
    factors = _factors(node, combine, op)
    if factors is None or (dtype == BOOL) != (op == "and") or (len(node.operands) == 2 and len(factors) < 2):
        return None, ""
    if typed(Call(op, (Arg(0), Arg(1))), [dtype, dtype])[1] != dtype:
        return None, ""
    one = Const(identity(neutral, dtype))
    return [
        (_mapped(operand, labels, reduce(lambda a, b: Call(op, (a, b)), factors.get(i, [one])), dtype), labels)
        for i, (operand, labels) in enumerate(zip(node.operands, node.subscripts.inputs, strict=True))
    ], op


def _factors(node: Einsum, combine: Expr, op: str) -> dict[int, list[Expr]] | None:
    """The factors of `combine` by the operand they belong to; None when one belongs to no single operand."""
    owned: dict[int, list[Expr]] = {}
    stack = [combine]
    while stack:
        here = stack.pop()
        if isinstance(here, Call) and here.op == op:
            stack.extend(reversed(here.args))
            continue
        if isinstance(here, Cast) and _distributes(here, op):
            stack.extend(Cast(arg, here.dtype) for arg in reversed(children(here.arg)))
            continue
        owner = _owner(node, here)
        if owner is None:
            return None
        owned.setdefault(owner, []).append(here)
    return owned


def _distributes(cast: Cast, op: str) -> bool:
    """Whether operands may be converted before `op` instead of its result: to floats, and from booleans."""
    inner = cast.arg
    if not isinstance(inner, Call):
        return False
    return (inner.op == op and not cast.dtype.is_exact) or (inner.op == "and" and op == "mul")


def _owner(node: Einsum, factor: Expr) -> int | None:
    wanted, args = labels_of(factor), args_of(factor)
    for i in sorted(args) or range(len(node.operands)):
        labels = node.subscripts.inputs[i]
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
    pending = conjuncts(node.where)
    sides = [frozenset(labels) for _, labels in terms]
    path = (
        find_path(sides, frozenset(output), node.extents)
        if node.path is None
        else in_pairs(list(node.path), sides, frozenset(output), node.extents)
    )
    readers = Counter(output) + Counter(label for side in sides for label in side)  # label -> who still needs it
    readers += Counter(label for part in pending for label in labels_of(part))
    steps_left = sum(len(step) == 2 for step in path)
    for step in path:
        if len(step) == 1:
            terms.append(terms.pop(step[0]))
            continue
        (right, right_labels), (left, left_labels) = terms.pop(step[1]), terms.pop(step[0])
        here = dict.fromkeys([*left_labels, *right_labels])
        now = [part for part in pending if labels_of(part) <= here.keys()]
        pending = [part for part in pending if part not in now] if now else pending
        readers.subtract([*set(left_labels), *set(right_labels), *(label for p in now for label in labels_of(p))])
        steps_left -= 1
        kept = output if not steps_left else tuple(label for label in here if readers[label] > 0)
        readers.update(kept)
        subscripts = Subscripts((left_labels, right_labels), kept)
        reduce_here = node.reduce if subscripts.contracted else None
        name = node.name if not steps_left else ""
        terms.append((Einsum((left, right), subscripts, combine, reduce_here, conjunction(now), name=name), kept))
    return terms[0][0]
