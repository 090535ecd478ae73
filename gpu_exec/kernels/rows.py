"""Stacked operands of a join: their labels, their absent cells, and where each row begins along a label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpu_exec.kernels.expression import evaluate
from planner.dtypes import INT64
from planner.relation_type import Label
from planner.scalar import Expr, args_of, labels_of
from planner.subscripts import Labels

Array = np.ndarray
Masks = Sequence[Array | None]


@dataclass(frozen=True)
class Rows:
    """Stacked operands, and what belongs to them.

    sides    per operand its labels, distinct
    values   per operand [rows, *block], or [1, *block] for a block that all rows share
    masks    the same in bool, None where every cell is present
    starts   per label that is read, [rows] first coordinate
    """

    sides: tuple[Labels, ...]
    values: Sequence[Array]
    masks: Masks
    starts: Mapping[Label, Array]

    @property
    def count(self) -> int:
        return max((len(v) for v in self.values), default=1)

    @cached_property
    def sizes(self) -> dict[Label, int]:
        pairs = zip(self.sides, self.values, strict=True)
        return {label: n for labels, v in pairs for label, n in zip(labels, v.shape[1:], strict=True)}

    def at(self, rows: slice) -> Rows:
        """Some of the rows."""

        def pick(a: Array) -> Array:
            return a if len(a) == 1 else a[rows]

        masks = [None if m is None else pick(m) for m in self.masks]
        return Rows(self.sides, [pick(v) for v in self.values], masks, {k: pick(v) for k, v in self.starts.items()})

    def part(self, label: Label, at: slice) -> Rows:
        """All rows, over a part of one label."""

        def pick(a: Array, labels: Labels) -> Array:
            return a[(slice(None), *(at if name == label else slice(None) for name in labels))]

        values = [pick(v, labels) for v, labels in zip(self.values, self.sides, strict=True)]
        masks = [None if m is None else pick(m, labels) for m, labels in zip(self.masks, self.sides, strict=True)]
        starts = {name: first + at.start if name == label else first for name, first in self.starts.items()}
        return Rows(self.sides, values, masks, starts)

    def spread(self, axes: Labels) -> tuple[list[Array], list[Array]]:
        """Values, and the masks that there are, over `axes` in this order, of extent 1 where one is lacking."""
        values = [spread(v, labels, axes) for v, labels in zip(self.values, self.sides, strict=True)]
        masks = [spread(m, labels, axes) for m, labels in zip(self.masks, self.sides, strict=True) if m is not None]
        return values, masks

    def coordinates(self, labels: Sequence[Label], axes: Labels) -> dict[Label, Array]:
        """Coordinates along labels, each [rows, 1, ..., size, ..., 1] over `axes`."""
        found = {}
        for label in labels:
            values = self.starts[label][:, None] + np.arange(self.sizes[label])
            shape = (self.sizes[label] if axis == label else 1 for axis in axes)
            found[label] = values.reshape(len(values), *shape)
        return found

    def looked_up(self, label: Label, index: Expr) -> Rows:
        """The same rows with every operand that has `label` read at `index` along it, as one cell; what lies outside
        the block is absent."""
        own = [labels for i, labels in enumerate(self.sides) if i in args_of(index)]
        axes = tuple(dict.fromkeys([*(name for labels in own for name in labels), *sorted(labels_of(index))]))
        at = self._index(index, axes) - self.starts[label].reshape(-1, *(1 for _ in axes))
        inside = (at >= 0) & (at < self.sizes[label])
        everywhere = bool(inside.all())
        at = at if everywhere else np.where(inside, at, 0)
        sides, values, masks = list(self.sides), list(self.values), list(self.masks)
        for i, labels in enumerate(self.sides):
            if label in labels:
                rest = tuple(name for name in labels if name != label and name not in axes)
                sides[i] = (label, *axes, *rest)
                values[i] = _take(self.values[i], labels, label, at, axes)
                mask = self.masks[i]
                taken = None if mask is None else _take(mask, labels, label, at, axes)
                if not everywhere:  # absent cells are stored as zero
                    there = inside.reshape(len(at), 1, *at.shape[1:], *(1 for _ in rest))
                    there = np.broadcast_to(there, values[i].shape)
                    values[i] = np.where(there, values[i], values[i].dtype.type(0))
                    taken = there if taken is None else taken & there
                masks[i] = taken
        return Rows(tuple(sides), values, masks, self.starts)

    def _index(self, index: Expr, axes: Labels) -> Array:
        """The coordinates that `index` gives, [rows, *axes]."""
        reads = args_of(index)
        values = [
            spread(v, labels, axes) if i in reads else v
            for i, (v, labels) in enumerate(zip(self.values, self.sides, strict=True))
        ]
        labels = self.coordinates(sorted(labels_of(index)), axes)
        used = [values[i] for i in sorted(reads)] + list(labels.values())
        rows = max((len(a) for a in used), default=1)
        shape = (rows, *(self.sizes[name] for name in axes))
        return evaluate(index, values, labels, INT64, shape)


def spread(a: Array, labels: Labels, axes: Labels) -> Array:
    """`a` with its axes in the order of `axes`, and an extent of 1 wherever it lacks one."""
    order = [axis for axis in axes if axis in labels]
    moved = a.transpose(0, *(1 + labels.index(label) for label in order))
    sizes = iter(moved.shape[1:])
    return moved.reshape(len(a), *(next(sizes) if axis in labels else 1 for axis in axes))


def _take(a: Array, labels: Labels, label: Label, at: Array, axes: Labels) -> Array:
    """out[r, 0, axes, rest] = a[r, label=at[r, axes], axes, rest]; whole slices are copied along the rest."""
    rest = [name for name in labels if name != label and name not in axes]
    shared = [name for name in axes if name in labels]
    moved = a.transpose(0, *(1 + labels.index(name) for name in (label, *shared, *rest)))
    rows = max(len(at), len(a))
    if not a.shape[1 + labels.index(label)]:
        return np.zeros((rows, 1, *at.shape[1:], *moved.shape[2 + len(shared) :]), a.dtype)
    if rows == 1 and not shared and (step := _step(at.reshape(-1))):
        flat = at.reshape(-1)
        picked = moved[0, flat[0] : flat[-1] + 1 : step] if step > 0 else moved[0, flat]
        return picked.reshape(1, 1, *at.shape[1:], *picked.shape[1:])
    along = [
        np.arange(a.shape[1 + labels.index(name)]).reshape([-1 if axis == name else 1 for axis in axes])
        for name in shared
    ]
    row = np.arange(rows).reshape(-1, *(1 for _ in axes)) if len(a) > 1 else np.zeros(1, np.int64)
    taken = moved[(row, at, *along)]
    return taken[:, None]


def _step(flat: Array) -> int:
    """The step of an arithmetic sequence of at least two terms; 0 for any other."""
    if len(flat) < 2:
        return 0
    steps = np.diff(flat)
    return int(steps[0]) if (steps == steps[0]).all() else 0
