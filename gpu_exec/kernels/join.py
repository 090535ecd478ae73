"""The join kernel: combine and reduce, row by row of stacked blocks, whatever the scalar operators."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpu_exec.kernels.contract import contract
from gpu_exec.kernels.expression import (
    evaluate,
    evaluate_labels,
    exact_values,
    largest,
    may_wrap,
    present_only,
    to_int64,
)
from planner.dtypes import BOOL, DType, identity, reduce_dtype
from planner.relation_type import Label
from planner.scalar import Arg, Call, Expr, labels_of
from planner.scalar_text import text
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
        Returns    [rows, *output block], and its mask if the output carries one; absent cells are zero
        """
        views = [_diagonal(o, labels) for o, labels in zip(operands, self.subscripts.inputs, strict=True)]
        seen = [
            None if m is None else _diagonal(m, labels)[0]
            for m, labels in zip(masks, self.subscripts.inputs, strict=True)
        ]
        values, sides = [v for v, _ in views], [labels for _, labels in views]
        if self._plain_product and _absence_is_zero(values, seen):
            left, right = values
            out = contract(left, right, sides[0], sides[1], self.subscripts.output)
            return out, self._presence(values, seen, sides) if self.masked else None
        return self._general(values, seen, sides, starts)

    def _presence(self, values: Sequence[Array], masks: Masks, sides: Sequence[Labels]) -> Array:
        """Where any combination of present cells exists."""
        known = [np.ones((1,) * v.ndim, bool) if m is None else m for v, m in zip(values, masks, strict=True)]
        full = [np.broadcast_to(m, v.shape) for m, v in zip(known, values, strict=True)]
        return contract(full[0], full[1], sides[0], sides[1], self.subscripts.output)

    def _general(
        self, operands: Sequence[Array], masks: Masks, sides: Sequence[Labels], starts: Mapping[Label, Array]
    ) -> tuple[Array, Array | None]:
        sizes = {
            label: n
            for o, labels in zip(operands, sides, strict=True)
            for label, n in zip(labels, o.shape[1:], strict=True)
        }
        rows = max((len(o) for o in operands), default=1)
        axes = self.subscripts.labels
        cells = math.prod(sizes[label] for label in axes)
        step = max(1, MOST_CELLS // max(cells, 1))
        if rows > step:
            return self._by_rows(operands, masks, sides, starts, rows, step)
        if cells > MOST_CELLS and self.reduce is not None:
            longest = max(axes, key=lambda label: sizes[label])
            return self._by_label(operands, masks, sides, starts, longest, sizes[longest])
        shape = (rows, *(sizes[label] for label in axes))
        spread = [_spread(o, labels, axes) for o, labels in zip(operands, sides, strict=True)]
        present = [_spread(m, labels, axes) for m, labels in zip(masks, sides, strict=True) if m is not None]
        values_of = {label: _label_values(starts[label], sizes[label], axes, label) for label in self.reads_labels}
        if self.where is not None:
            present.append(evaluate_labels(self.where, values_of))
        mask = None
        if present:
            mask = np.broadcast_to(present[0], shape)
            for other in present[1:]:
                mask = mask & other
        return self._reduce(spread, values_of, mask, shape)

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
                exact = ufunc.reduce(wide, axis=inner, where=where, initial=start)
                out = to_int64(np.asarray(exact, object), f"{self.reduce} of {text(self.combine)}")
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

    def _by_rows(
        self,
        operands: Sequence[Array],
        masks: Masks,
        sides: Sequence[Labels],
        starts: Mapping[Label, Array],
        rows: int,
        step: int,
    ) -> tuple[Array, Array | None]:
        """A bounded number of rows at a time."""

        def piece(a: Array, at: slice) -> Array:
            return a if len(a) == 1 else a[at]

        parts = []
        for first in range(0, rows, step):
            at = slice(first, first + step)
            some = [None if m is None else piece(m, at) for m in masks]
            parts.append(
                self._general(
                    [piece(o, at) for o in operands], some, sides, {k: piece(v, at) for k, v in starts.items()}
                )
            )
        return _joined(parts, 0)

    def _by_label(
        self,
        operands: Sequence[Array],
        masks: Masks,
        sides: Sequence[Labels],
        starts: Mapping[Label, Array],
        label: Label,
        size: int,
    ) -> tuple[Array, Array | None]:
        """One label in halves: side by side if the output has it, reduced if not."""
        half, parts = size // 2, []
        for at in (slice(0, half), slice(half, None)):

            def piece(a: Array, labels: Labels, at: slice = at) -> Array:
                return a[(slice(None), *(at if name == label else slice(None) for name in labels))]

            some = [None if m is None else piece(m, labels) for m, labels in zip(masks, sides, strict=True)]
            moved = {name: first + at.start if name == label else first for name, first in starts.items()}
            parts.append(
                self._general([piece(o, labels) for o, labels in zip(operands, sides, strict=True)], some, sides, moved)
            )
        if label in self.subscripts.output:
            return _joined(parts, 1 + self.subscripts.output.index(label))
        assert self.reduce is not None
        (a, mask_a), (b, mask_b) = parts
        return merge(self.reduce, a, mask_a, b, mask_b)


def merge(reduce: str, a: Array, mask_a: Array | None, b: Array, mask_b: Array | None) -> tuple[Array, Array | None]:
    """Combine two partial results of a reduction, of equal shape; both have a mask or neither has."""
    ufunc = UFUNCS[reduce]
    with np.errstate(all="ignore"):
        if a.dtype == np.int64 and reduce in ("sum", "prod") and _may_leave(reduce, a, b):
            exact = np.asarray(ufunc(a.astype(object), b.astype(object)), object)
            both = to_int64(exact, f"a {reduce} of partial results")
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


def _diagonal(a: Array, labels: Labels) -> tuple[Array, Labels]:
    """Read each repeated label along its diagonal; labels come out distinct."""
    distinct = tuple(dict.fromkeys(labels))
    if len(distinct) == len(labels):
        return a, labels
    axis = {label: 1 + i for i, label in enumerate(distinct)}
    return np.einsum(a, [0, *(axis[label] for label in labels)], [0, *(axis[label] for label in distinct)]), distinct


def _spread(a: Array, labels: Labels, axes: Labels) -> Array:
    """`a` with its axes in the order of `axes`, and an extent of 1 wherever it lacks one."""
    order = [axis for axis in axes if axis in labels]
    moved = a.transpose(0, *(1 + labels.index(label) for label in order))
    sizes = iter(moved.shape[1:])
    return moved.reshape(len(a), *(next(sizes) if axis in labels else 1 for axis in axes))


def _label_values(start: Array, size: int, axes: Labels, label: Label) -> Array:
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
