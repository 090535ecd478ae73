"""Form 2: the relational plan. Joins, aggregates and exchanges over blocks: *how it is cut* and *where it lives*.

Each node derives its relation type from its inputs. Cuts are chosen before placements; a node whose `placement` is None
has none yet, or (a scan and what is computed from it row by row) takes the one that its consumer needs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from planner.cuts import Cut
from planner.dtypes import DType, reduce_dtype
from planner.errors import PlanError
from planner.node import Node
from planner.placement import AnyPlacement, Placement
from planner.predicates import joined, keeps_all, keys_decide
from planner.relation_type import Label, RelationType
from planner.scalar import Cast, Expr, Value, walk
from planner.scalar_types import typed
from planner.subscripts import Labels, Subscripts


@dataclass(frozen=True, eq=False)
class Rel(Node):
    """Base of form 2. `name` is how print-outs and placement requests call the node."""

    name: str = field(default="", kw_only=True)

    @property
    def args(self) -> tuple[Rel, ...]:
        return ()

    @property
    def type(self) -> RelationType:
        raise NotImplementedError

    @property
    def placement(self) -> AnyPlacement | None:
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Scan(Rel):
    """Read a stored relation, cut as asked. Stored relations reach whatever device asks for them."""

    stored: RelationType
    cuts: tuple[Cut, ...]
    placed: AnyPlacement | None = None

    @property
    def placement(self) -> AnyPlacement | None:
        return self.placed

    @cached_property
    def type(self) -> RelationType:
        return recut(self.stored, self.cuts)


@dataclass(frozen=True, eq=False)
class Join(Rel):
    """Join the operands on their shared labels, combine cell by cell, reduce over the labels that the output lacks.

    cuts    how each label of the join is cut, in the order of `subscripts.labels`
    work    which device joins which keys, over the same labels; a digit on a contracted label leaves partial results
    """

    operands: tuple[Rel, ...]
    subscripts: Subscripts
    combine: Expr
    reduce: str | None
    where: Expr | None
    cuts: tuple[Cut, ...]
    work: Placement | None = None

    def __post_init__(self) -> None:
        cut = self.label_cuts
        for labels, operand in zip(self.subscripts.inputs, self.operands, strict=True):
            if tuple(cut[label] for label in labels) != operand.type.cuts:
                raise PlanError(
                    f"join {self.name} {self.subscripts} wants its operand cut {labels}, got {operand.type}"
                )

    @property
    def args(self) -> tuple[Rel, ...]:
        return self.operands

    @cached_property
    def label_cuts(self) -> dict[Label, Cut]:
        return dict(zip(self.subscripts.labels, self.cuts, strict=True))

    def need(self, index: int) -> Placement | None:
        """The placement that operand `index` must have."""
        return None if self.work is None else restrict(self.work, self.subscripts.labels, self.subscripts.inputs[index])

    @property
    def placement(self) -> Placement | None:
        if self.work is None:
            return None
        out = restrict(self.work, self.subscripts.labels, self.subscripts.output)
        kept = len(self.subscripts.output)
        partial = tuple(sorted(d for digits in self.work.axes[kept:] for d in digits))
        return replace(out, partial=partial, reduce=self.reduce or "") if partial else out

    @cached_property
    def combined_dtype(self) -> DType:
        return typed(self.combine, [operand.type.dtype for operand in self.operands])[1]

    @cached_property
    def type(self) -> RelationType:
        cut = self.label_cuts
        output = self.subscripts.output
        return RelationType(
            labels=output,
            cuts=tuple(cut[label] for label in output),
            dtype=reduce_dtype(self.reduce, self.combined_dtype),
            storage=_storage([operand.type for operand in self.operands], self.combine, self.reduce),
            presence=self._presence(),
        )

    def _presence(self) -> str:
        types = [operand.type for operand in self.operands]
        extents = {label: cut.extent for label, cut in self.label_cuts.items()}
        contracted = self.subscripts.contracted
        all_there = all(extents[label] for label in contracted) and all(t.presence == "complete" for t in types)
        if all_there and keeps_all(self.where, contracted, extents):
            return "complete"
        undecided = self.where is not None and not self.keys_decide
        return "cells" if undecided or any(t.presence == "cells" for t in types) else "blocks"

    @property
    def keys_decide(self) -> bool:
        """The predicate reads only labels that are cut to single cells, so the key phase decides it."""
        return self.where is not None and keys_decide(self.where, self.label_cuts)

    @property
    def flops(self) -> int:
        """For a complete join; a multiply-add is 2 FLOP."""
        dtypes = [operand.type.dtype for operand in self.operands]
        cells = math.prod(self.label_cuts[label].extent for label in joined(self.subscripts, self.where, dtypes))
        return cells * (max(len(self.operands) - 1, 0) + (self.reduce is not None))


@dataclass(frozen=True, eq=False)
class RowWise(Rel):
    """Base of the nodes that work row by row, wherever the rows are."""

    arg: Rel

    @property
    def args(self) -> tuple[Rel, ...]:
        return (self.arg,)

    @property
    def placement(self) -> AnyPlacement | None:
        return self.arg.placement


@dataclass(frozen=True, eq=False)
class Map(RowWise):
    """Apply a scalar expression to every present cell."""

    expr: Expr

    @cached_property
    def type(self) -> RelationType:
        dtype = typed(self.expr, [self.arg.type.dtype])[1]
        return replace(self.arg.type, dtype=dtype, storage=_storage([self.arg.type], self.expr, None))


@dataclass(frozen=True, eq=False)
class Filter(RowWise):
    """Keep the cells at which a condition on labels and on the value holds."""

    where: Expr

    @property
    def keys_decide(self) -> bool:
        return keys_decide(self.where, self.arg.type.label_cuts)

    @cached_property
    def type(self) -> RelationType:
        whole = self.keys_decide and self.arg.type.presence != "cells"
        return replace(self.arg.type, presence="blocks" if whole else "cells")


@dataclass(frozen=True, eq=False)
class Fill(RowWise):
    """Make every absent cell present, with one value."""

    value: Value

    @cached_property
    def type(self) -> RelationType:
        return replace(self.arg.type, presence="complete")


@dataclass(frozen=True, eq=False)
class Exchange(Rel):
    """Bring a relation from one cut and placement to another; partial results are reduced on the way.

    On one device, or where the placement stays, only the cut changes: a re-tile.
    """

    arg: Rel
    cuts: tuple[Cut, ...]
    placed: AnyPlacement | None = None

    @property
    def args(self) -> tuple[Rel, ...]:
        return (self.arg,)

    @property
    def placement(self) -> AnyPlacement | None:
        return self.placed

    @property
    def is_retile(self) -> bool:
        return self.cuts != self.arg.type.cuts

    @cached_property
    def type(self) -> RelationType:
        return recut(self.arg.type, self.cuts)


def recut(type: RelationType, cuts: tuple[Cut, ...]) -> RelationType:
    """The type of the same cells under other cuts; scalar columns become blocks, and absence goes into masks."""
    if cuts == type.cuts:
        return type
    return replace(type, cuts=cuts, storage="block", presence="complete" if type.presence == "complete" else "cells")


def restrict(work: Placement, labels: Labels, side: Labels) -> Placement:
    """The placement of a relation over `side` that a join placed by `work` over `labels` reads or leaves."""
    digits = dict(zip(labels, work.axes, strict=True))
    axes = tuple(digits[label] if label not in side[:i] else () for i, label in enumerate(side))
    return Placement(work.devices, axes)


def _storage(args: Sequence[RelationType], expr: Expr, reduce: str | None) -> str:
    """Columns stay columns as long as DuckDB has a type for every value on the way."""
    dtype = reduce_dtype(reduce, typed(expr, [t.dtype for t in args])[1])
    inside = [part.dtype for part in walk(expr) if isinstance(part, Cast)]
    columns = all(t.storage == "scalar" for t in args) and all(d.sql for d in (dtype, *inside))
    return "scalar" if columns else "block"
