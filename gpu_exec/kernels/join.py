"""The join kernel: combine and reduce, row by row of stacked blocks, whatever the scalar operators."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from gpu_exec.kernels.contract import contract
from gpu_exec.kernels.expression import (
    evaluate,
    evaluate_labels,
    exact_values,
    largest,
    may_wrap,
    narrowed,
    present_only,
)
from planner.dtypes import BOOL, BY_NAME, INT64, DType, identity, reduce_dtype
from planner.relation_type import Label
from planner.scalar import Arg, Call, Expr, labels_of
from planner.scalar_types import magnitude, typed
from planner.subscripts import Labels, Subscripts

Array = np.ndarray
Masks = Sequence[Array | None]

UFUNCS = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "any": np.logical_or,
    "all": np.logical_and,
}

MOST_CELLS = 1 << 22  # of the label space, evaluated at a time


@dataclass(frozen=True)
class _Rows:
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

    def at(self, rows: slice) -> _Rows:
        """Some of the rows."""

        def pick(a: Array) -> Array:
            return a if len(a) == 1 else a[rows]

        masks = [None if m is None else pick(m) for m in self.masks]
        return _Rows(self.sides, [pick(v) for v in self.values], masks, {k: pick(v) for k, v in self.starts.items()})

    def part(self, label: Label, at: slice) -> _Rows:
        """All rows, over a part of one label."""

        def pick(a: Array, labels: Labels) -> Array:
            return a[(slice(None), *(at if name == label else slice(None) for name in labels))]

        values = [pick(v, labels) for v, labels in zip(self.values, self.sides, strict=True)]
        masks = [None if m is None else pick(m, labels) for m, labels in zip(self.masks, self.sides, strict=True)]
        starts = {name: first + at.start if name == label else first for name, first in self.starts.items()}
        return _Rows(self.sides, values, masks, starts)


@dataclass(frozen=True)
class JoinKernel:
    """What to compute for each pair of rows.

    dtypes    of the operands
    masked    the output carries a mask of present cells
    """

    subscripts: Subscripts
    combine: Expr
    reduce: str | None
    where: Expr | None
    dtypes: tuple[DType, ...]
    masked: bool

    @cached_property
    def combined(self) -> DType:
        return typed(self.combine, self.dtypes)[1]

    @cached_property
    def dtype(self) -> DType:
        return reduce_dtype(self.reduce, self.combined)

    @cached_property
    def reads_labels(self) -> frozenset[Label]:
        """Labels whose values the kernel needs."""
        return labels_of(self.combine) | (labels_of(self.where) if self.where is not None else frozenset())

    @cached_property
    def _plain_product(self) -> bool:
        pair = self.where is None and len(self.dtypes) == 2 and self.dtypes[0] == self.dtypes[1]
        if self.reduce == "any":
            return pair and self.combine == Call("and", (Arg(0), Arg(1)))
        return pair and self.reduce == "sum" and self.combine == Call("mul", (Arg(0), Arg(1))) and self.combined != BOOL

    def __call__(
        self, operands: Sequence[Array], masks: Masks, starts: Mapping[Label, Array]
    ) -> tuple[Array, Array | None]:
        """Rows in, rows out.

        operands   per operand [rows, *block]; a leading extent of 1 is shared by all rows
        masks      per operand the same in bool, or None where every cell is present
        starts     per label that is read, [rows] first coordinate of the block
        Returns    [rows, *output block], and its mask if the output carries one; absent cells are zero. Integers that
                   int64 cannot hold come as Python integers: whoever reduces further decides at the end
        """
        sides = tuple(tuple(dict.fromkeys(labels)) for labels in self.subscripts.inputs)
        values = [_diagonal(o, labels) for o, labels in zip(operands, self.subscripts.inputs, strict=True)]
        seen = [
            None if m is None else _diagonal(m, labels) for m, labels in zip(masks, self.subscripts.inputs, strict=True)
        ]
        rows = _Rows(sides, values, seen, starts)
        if self._plain_product and _absence_is_zero(values, seen):
            out = contract(values[0], values[1], sides[0], sides[1], self.subscripts.output)
            return out, self._presence(rows) if self.masked else None
        return self._general(rows)

    def _presence(self, rows: _Rows) -> Array:
        """Where any combination of present cells exists."""
        full = [
            np.broadcast_to(np.True_, v.shape) if m is None else m for v, m in zip(rows.values, rows.masks, strict=True)
        ]
        return contract(full[0], full[1], rows.sides[0], rows.sides[1], self.subscripts.output)

    def _general(self, rows: _Rows) -> tuple[Array, Array | None]:
        """Over the whole label space where that is small, else piece by piece."""
        axes, sizes, count = self.subscripts.labels, rows.sizes, rows.count
        cells = math.prod(sizes[label] for label in axes)
        step = max(1, MOST_CELLS // max(cells, 1))
        if count > step:
            return _joined([self._general(rows.at(slice(i, i + step))) for i in range(0, count, step)], 0)
        if cells > MOST_CELLS and self.reduce is not None:
            return self._in_halves(rows, max(axes, key=lambda label: sizes[label]))
        shape = (count, *(sizes[label] for label in axes))
        spread = [_spread(o, labels, axes) for o, labels in zip(rows.values, rows.sides, strict=True)]
        present = [_spread(m, labels, axes) for m, labels in zip(rows.masks, rows.sides, strict=True) if m is not None]
        coordinates = {
            label: _coordinates(rows.starts[label], sizes[label], axes, label) for label in self.reads_labels
        }
        if self.where is not None:
            present.append(evaluate_labels(self.where, coordinates))
        mask = reduce(np.logical_and, present, np.broadcast_to(np.True_, shape)) if present else None
        return self._reduce(spread, coordinates, mask, shape)

    def _in_halves(self, rows: _Rows, label: Label) -> tuple[Array, Array | None]:
        """One label in halves: side by side if the output has it, reduced if not."""
        half = rows.sizes[label] // 2
        parts = [self._general(rows.part(label, at)) for at in (slice(0, half), slice(half, None))]
        if label in self.subscripts.output:
            return _joined(parts, 1 + self.subscripts.output.index(label))
        assert self.reduce is not None
        return merge(self.reduce, *parts[0], *parts[1])

    def _reduce(
        self, operands: Sequence[Array], labels: Mapping[Label, Array], mask: Array | None, shape: tuple[int, ...]
    ) -> tuple[Array, Array | None]:
        inner = tuple(range(1 + len(self.subscripts.output), len(shape)))
        combine, operands = present_only(self.combine, operands, mask)
        if self.reduce is None:
            return _finish(evaluate(combine, operands, labels, self.combined, shape), mask, self.masked)
        start = identity(self.reduce, self.dtype)
        ufunc, where = UFUNCS[self.reduce], True if mask is None else mask
        terms = math.prod(shape[axis] for axis in inner)
        with np.errstate(all="ignore"):
            if self.dtype.name == "int64" and self._wide(operands, labels, terms):
                wide = np.broadcast_to(exact_values(combine, operands, labels), shape)
                exact = ufunc.reduce(wide, axis=inner, where=where, initial=neutral(self.reduce, wide.dtype))
                present = None if mask is None else np.asarray(mask.any(axis=inner))
                exact, present = _finish(np.asarray(exact, object), present, self.masked)
                return narrowed(exact), present
            else:
                values = evaluate(combine, operands, labels, self.combined, shape)
                dtype = np.dtype(self.dtype.name) if self.reduce in ("sum", "prod") else None
                out = np.asarray(ufunc.reduce(values, axis=inner, dtype=dtype, where=where, initial=start))
        return _finish(out, None if mask is None else np.asarray(mask.any(axis=inner)), self.masked)

    def _wide(self, operands: Sequence[Array], labels: Mapping[Label, Array], terms: int) -> bool:
        if self.reduce == "prod":
            bound = magnitude(
                self.combine, [largest(o) for o in operands], {name: largest(v) for name, v in labels.items()}
            )
            return bound > 1 and terms * math.log2(bound) >= 62
        return may_wrap(self.combine, operands, labels, terms if self.reduce == "sum" else 1)


def neutral(reduce: str, dtype: np.dtype) -> int | float | bool:
    """The identity of a reduction in a NumPy dtype; of Python integers, one that no value reaches."""
    if dtype.kind == "O" and reduce in ("max", "min"):
        return -(1 << 256) if reduce == "max" else 1 << 256
    return identity(reduce, INT64 if dtype.kind == "O" else BY_NAME[dtype.name])


def merge(reduce: str, a: Array, mask_a: Array | None, b: Array, mask_b: Array | None) -> tuple[Array, Array | None]:
    """Combine two partial results of a reduction, of equal shape; both have a mask or neither has."""
    ufunc = UFUNCS[reduce]
    with np.errstate(all="ignore"):
        if a.dtype.kind in "iO" and reduce in ("sum", "prod") and _may_leave(reduce, a, b):
            exact = np.asarray(ufunc(a.astype(object), b.astype(object)), object)
            both = narrowed(exact)
        else:
            both = ufunc(a, b)
    if mask_a is None or mask_b is None:
        return both, None
    mask = mask_a | mask_b
    return (both if reduce == "sum" else np.where(mask_a & mask_b, both, np.where(mask_a, a, b))), mask


def _may_leave(reduce: str, a: Array, b: Array) -> bool:
    bound = largest(a) + largest(b) if reduce == "sum" else largest(a) * largest(b)
    return bound >= 2**63


def _absence_is_zero(values: Sequence[Array], masks: Masks) -> bool:
    """Absent cells are stored as zero; that annihilates unless the other operand holds NaN or infinity."""
    if all(m is None for m in masks):
        return True
    return all(v.dtype.kind != "f" or bool(np.isfinite(v).all()) for v in values)


def _diagonal(a: Array, labels: Labels) -> Array:
    """Read each repeated label along its diagonal, a view; labels come out distinct."""
    axis = {label: 1 + i for i, label in enumerate(dict.fromkeys(labels))}
    if len(axis) == len(labels):
        return a
    return np.einsum(a, [0, *(axis[label] for label in labels)], [0, *axis.values()])


def _spread(a: Array, labels: Labels, axes: Labels) -> Array:
    """`a` with its axes in the order of `axes`, and an extent of 1 wherever it lacks one."""
    order = [axis for axis in axes if axis in labels]
    moved = a.transpose(0, *(1 + labels.index(label) for label in order))
    sizes = iter(moved.shape[1:])
    return moved.reshape(len(a), *(next(sizes) if axis in labels else 1 for axis in axes))


def _coordinates(start: Array, size: int, axes: Labels, label: Label) -> Array:
    """Coordinates along `label`, [rows, 1, ..., size, ..., 1]."""
    values = start[:, None] + np.arange(size)
    return values.reshape(len(start), *(size if axis == label else 1 for axis in axes))


def _finish(values: Array, mask: Array | None, masked: bool) -> tuple[Array, Array | None]:
    """Absent cells to zero; a full mask where the output wants one and nothing is absent."""
    if mask is None:
        return values, np.ones(values.shape, bool) if masked else None
    values = np.where(mask, values, values.dtype.type(0))
    return values, mask if masked else None


def _joined(parts: Sequence[tuple[Array, Array | None]], axis: int) -> tuple[Array, Array | None]:
    masks = [m for _, m in parts if m is not None]
    return np.concatenate([v for v, _ in parts], axis), np.concatenate(masks, axis) if masks else None
