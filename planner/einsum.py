"""Form 1: the einsum graph. A node says *what* is computed over whole tensors, and nothing of how it is cut.

Every node reads the cells that are present in its inputs, and only those: an absent cell joins nothing, and a group
without cells gives no cell. The one node that makes absent cells present is `Fill`; a front end that reads a relation
as a total array (einsum strings) inserts it wherever the two readings would differ.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, count

from planner.dtypes import ADDITIVE, BOOL, DType, accumulator, reduce_dtype
from planner.errors import ShapeError
from planner.node import Node, postorder
from planner.predicates import joined, keeps_all
from planner.relation_type import Label, RelationType
from planner.scalar import Arg, Call, Cast, Expr, Value, is_plain_product, labels_of, substitute
from planner.scalar_text import text
from planner.scalar_types import typed
from planner.subscripts import Subscripts

Path = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class TensorType:
    """Labels, extents and dtype of a whole tensor; `complete` when every cell is known to be present."""

    labels: tuple[Label, ...]
    extents: tuple[int, ...]
    dtype: DType
    complete: bool

    @property
    def cells(self) -> int:
        return math.prod(self.extents)

    @property
    def nbytes(self) -> int:
        return self.cells * self.dtype.itemsize

    def __str__(self) -> str:
        inside = " ".join(f"{n}={e}" for n, e in zip(self.labels, self.extents, strict=True))
        return f"{self.dtype.short}[{inside}]" + ("" if self.complete else " sparse")


@dataclass(frozen=True, eq=False)
class Tensor(Node):
    """Base of form 1. `name` is how print-outs call the node; it has no meaning."""

    name: str = field(default="", kw_only=True)

    @property
    def args(self) -> tuple[Tensor, ...]:
        return ()

    @property
    def type(self) -> TensorType:
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Input(Tensor):
    """A stored relation, found by `name`."""

    stored: RelationType

    @cached_property
    def type(self) -> TensorType:
        t = self.stored
        return TensorType(t.labels, t.extents, t.dtype, t.presence == "complete")


@dataclass(frozen=True, eq=False)
class Einsum(Tensor):
    """out[output] = reduce over the contracted labels of combine(operands), where the predicate on labels holds.

    combine    any scalar expression over the operands and over label values
    reduce     sum, prod, max, min, any, all or fsum; None when no label is contracted
    where      a condition on label values and operands; None keeps every cell
    path       in which order to contract, in NumPy's linear form, as the caller wants it; None leaves it to the planner
    """

    operands: tuple[Tensor, ...]
    subscripts: Subscripts
    combine: Expr
    reduce: str | None
    where: Expr | None = None
    path: Path | None = None

    def __post_init__(self) -> None:
        self._check_axes()
        dtypes = [operand.type.dtype for operand in self.operands]
        combine, dtype = accumulated(self.combine, dtypes, self.reduce)
        object.__setattr__(self, "combine", combine)
        _check_labels(combine, self.extents, str(self.subscripts))
        if self.where is not None:
            object.__setattr__(self, "where", _predicate(self.where, dtypes, self.extents, str(self.subscripts)))
        if self.reduce is None and self.subscripts.contracted:
            raise ShapeError(
                f"einsum {self.subscripts} drops {', '.join(self.subscripts.contracted)} but names no reduce"
            )
        if self.reduce in ("any", "all") and dtype != BOOL:
            raise ShapeError(f"reduce {self.reduce!r} wants booleans, got {dtype.name}; compare first, as in x0 != 0")
        if self.reduce in ("max", "min", "fsum") and dtype.is_complex:
            raise ShapeError(
                f"reduce {self.reduce!r} wants real numbers, got {dtype.name}; take abs, real or imag first"
            )

    def _check_axes(self) -> None:
        sides = self.subscripts.inputs
        if len(sides) != len(self.operands):
            raise ShapeError(f"einsum {self.subscripts} names {len(sides)} operands, got {len(self.operands)}")
        for i, (labels, operand) in enumerate(zip(sides, self.operands, strict=True)):
            if len(labels) != len(operand.type.extents):
                raise ShapeError(
                    f"operand {i + 1} of einsum {self.subscripts} has {len(labels)} labels"
                    f" but {len(operand.type.extents)} axes"
                    f"\n    {operand.name or 'operand'}  {operand.type}"
                )

    @property
    def args(self) -> tuple[Tensor, ...]:
        return self.operands

    @cached_property
    def extents(self) -> dict[Label, int]:
        """Extent of every label of the join; refuses a label with two extents."""
        seen: dict[Label, tuple[int, int, int]] = {}
        for i, (labels, operand) in enumerate(zip(self.subscripts.inputs, self.operands, strict=True)):
            for axis, (label, extent) in enumerate(zip(labels, operand.type.extents, strict=True)):
                first = seen.setdefault(label, (i, axis, extent))
                if first[2] != extent:
                    raise ShapeError(self._extent_message(label, first, (i, axis, extent)))
        return {label: extent for label, (_, _, extent) in seen.items()}

    def _extent_message(self, label: Label, first: tuple[int, int, int], second: tuple[int, int, int]) -> str:
        names = [self.operands[i].name or f"operand {i + 1}" for i, _, _ in (first, second)]
        lines = [
            f"label {label!r} has extent {first[2]} in {names[0]} but {second[2]} in {names[1]}",
            f"    einsum {self.subscripts}",
        ]
        for name, (i, axis, extent) in zip(names, (first, second), strict=True):
            lines.append(f"    operand {i + 1} axis {axis + 1} size {extent}   {name}  {self.operands[i].type}")
        lines.append("  joined labels share one extent; state it on create, as in labels='src=34 dst=34'")
        return "\n".join(lines)

    @cached_property
    def combined_dtype(self) -> DType:
        """The dtype of `combine`, before the reduction."""
        return typed(self.combine, [operand.type.dtype for operand in self.operands])[1]

    @cached_property
    def type(self) -> TensorType:
        output = self.subscripts.output
        return TensorType(
            labels=output,
            extents=tuple(self.extents[label] for label in output),
            dtype=reduce_dtype(self.reduce, self.combined_dtype),
            complete=keeps_all(self.where, self.subscripts.contracted, self.extents)
            and all(operand.type.complete for operand in self.operands)
            and all(self.extents[label] for label in self.subscripts.contracted),
        )

    @property
    def cells(self) -> int:
        """Size of the label space that is joined."""
        return math.prod(self.extents.values())

    @property
    def flops(self) -> int:
        """A multiply-add is 2 FLOP; any other combine and reduce count as one each."""
        dtypes = [operand.type.dtype for operand in self.operands]
        cells = math.prod(self.extents[label] for label in joined(self.subscripts, self.where, dtypes))
        return cells * (max(len(self.operands) - 1, 0) + (self.reduce is not None))

    @property
    def is_contraction(self) -> bool:
        """The sum of the plain product of two operands: what BLAS computes."""
        return self.reduce == "sum" and is_plain_product(self.combine) and self.where is None


@dataclass(frozen=True, eq=False)
class Map(Tensor):
    """out[labels] = expr(arg[labels], labels), at the cells that are present."""

    arg: Tensor
    expr: Expr

    def __post_init__(self) -> None:
        object.__setattr__(self, "expr", accumulated(self.expr, [self.arg.type.dtype])[0])
        _check_labels(self.expr, self.arg.type.labels, self.arg.name)

    @property
    def args(self) -> tuple[Tensor, ...]:
        return (self.arg,)

    @cached_property
    def type(self) -> TensorType:
        t = self.arg.type
        return TensorType(t.labels, t.extents, typed(self.expr, [t.dtype])[1], t.complete)


@dataclass(frozen=True, eq=False)
class Filter(Tensor):
    """The cells of `arg` at which a condition on labels and on the value, x0, holds; coordinates and extents stay."""

    arg: Tensor
    where: Expr

    def __post_init__(self) -> None:
        t = self.arg.type
        object.__setattr__(self, "where", _predicate(self.where, [t.dtype], t.labels, self.arg.name))

    @property
    def args(self) -> tuple[Tensor, ...]:
        return (self.arg,)

    @cached_property
    def type(self) -> TensorType:
        t = self.arg.type
        return TensorType(t.labels, t.extents, t.dtype, False)


@dataclass(frozen=True, eq=False)
class Fill(Tensor):
    """The total array: cells of `arg` where they are present, `value` everywhere else."""

    arg: Tensor
    value: Value

    @property
    def args(self) -> tuple[Tensor, ...]:
        return (self.arg,)

    @cached_property
    def type(self) -> TensorType:
        t = self.arg.type
        return TensorType(t.labels, t.extents, t.dtype, True)


def _check_labels(expr: Expr, labels: Collection[Label], place: str) -> None:
    missing = sorted(labels_of(expr) - set(labels))
    if missing:
        raise ShapeError(
            f"expression {text(expr)} reads label {missing[0]!r}, which {place or 'its operand'} does not have"
            f"; it has {', '.join(labels) or 'none'}"
        )


def _predicate(expr: Expr, dtypes: Sequence[DType], labels: Collection[Label], place: str) -> Expr:
    done, dtype = typed(expr, dtypes)
    if dtype != BOOL:
        raise ShapeError(f"a predicate is a condition, got {text(expr)} of dtype {dtype.name}")
    _check_labels(done, labels, place)
    return done


def accumulated(combine: Expr, dtypes: Sequence[DType], reduce: str | None = None) -> tuple[Expr, DType]:
    """`combine` typed, and its dtype. Where a sum or product accumulates it, its narrow operands are widened first; any
    other expression of narrow floats is computed in float32 and rounded once."""
    done, dtype = typed(combine, dtypes)
    wide = accumulator(dtype)
    if dtype == BOOL or wide == dtype:
        return done, dtype
    widened = substitute(combine, {i: Cast(Arg(i), accumulator(d)) for i, d in enumerate(dtypes) if not _is_wide(d)})
    if reduce in ADDITIVE:
        return typed(widened, dtypes)
    if dtype.is_float and isinstance(done, Call):
        return typed(Cast(widened, dtype), dtypes)
    return done, dtype


def _is_wide(dtype: DType) -> bool:
    return dtype == BOOL or accumulator(dtype) == dtype


def node_names(graph: Tensor) -> dict[Tensor, str]:
    """A name for every node, in order, distinct whatever their case.

    Relations keep theirs; a second node of the same name gets a number, and nodes without one are e1, e2, ...
    """
    order = postorder(graph)
    given = {node.name.lower() for node in order}
    taken = {node.name.lower() for node in order if isinstance(node, Input)}
    unnamed = (name for name in map("e{}".format, count(1)) if name not in given)
    names: dict[Tensor, str] = {}
    for node in order:
        name = node.name or next(unnamed)
        if not isinstance(node, Input):
            numbered = map(f"{name}_{{}}".format, count(2))
            name = next(n for n in chain([name], numbered) if n.lower() not in taken)
            taken.add(name.lower())
        names[node] = name
    return names
