"""The join kernel: combine and reduce, row by row of stacked blocks, whatever the scalar operators."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np

from gpu_exec.kernels.contract import contract
from gpu_exec.kernels.dtype import dtype_of, numpy_dtype
from gpu_exec.kernels.exact_sum import ZERO, exact_terms
from gpu_exec.kernels.expression import (
    bound_of,
    evaluate,
    evaluate_condition,
    exact_values,
    largest,
    may_wrap,
    narrowed,
    present_only,
)
from gpu_exec.kernels.rows import Masks, Rows
from planner.dtypes import BOOL, INT64, DType, identity, reduce_dtype
from planner.predicates import conjunction, determined, whole_numbers
from planner.relation_type import Label
from planner.scalar import Expr, is_plain_product, labels_of, substitute
from planner.scalar_types import magnitude, typed
from planner.subscripts import Labels, Subscripts

Array = np.ndarray

UFUNCS = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "any": np.logical_or,
    "all": np.logical_and,
    "fsum": np.add,
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
        """Whether a matrix product computes it, once the operands are converted to one dtype."""
        if self.where is not None or len(self.dtypes) != 2 or not is_plain_product(self.combine):
            return False
        if self.combined == BOOL:
            return self.reduce == "any" and self.dtypes == (BOOL, BOOL)
        return self.reduce == "sum" and all(d.is_exact or not self.combined.is_int for d in self.dtypes)

    @cached_property
    def _looked_up(self) -> tuple[dict[Label, Expr], JoinKernel]:
        """Labels that the predicate gives as expressions of others, and the kernel that is left without them."""
        whole = whole_numbers(self.subscripts, self.dtypes)
        found, rest = determined(self.where, self.subscripts.contracted, whole)
        combine, where = substitute(self.combine, labels=found), conjunction(rest)
        if where is not None:
            where = substitute(where, labels=found)
        return found, replace(self, combine=combine, where=where)

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
        rows = Rows(sides, values, seen, starts)
        found, kernel = self._looked_up if self.where is not None else ({}, self)
        for label, index in found.items():
            rows = rows.looked_up(label, index)
        return kernel._run(rows)

    def _run(self, rows: Rows) -> tuple[Array, Array | None]:
        if self._plain_product and _absence_is_zero(rows.values, rows.masks):
            dtype = numpy_dtype(self.combined)
            a, b = (v.astype(dtype, copy=False) for v in rows.values)
            left, right = rows.sides
            out = contract(a, b, left, right, self.subscripts.output)
            return out, self._presence(rows) if self.masked else None
        return self._general(rows)

    def _presence(self, rows: Rows) -> Array:
        """Where any combination of present cells exists."""
        full = [
            np.broadcast_to(np.True_, v.shape) if m is None else m for v, m in zip(rows.values, rows.masks, strict=True)
        ]
        return contract(full[0], full[1], rows.sides[0], rows.sides[1], self.subscripts.output)

    def _general(self, rows: Rows) -> tuple[Array, Array | None]:
        """Over the whole label space where that is small, else piece by piece."""
        axes, sizes, count = self.subscripts.labels, rows.sizes, rows.count
        cells = math.prod(sizes[label] for label in axes)
        step = max(1, MOST_CELLS // max(cells, 1))
        if count > step:
            return _joined([self._general(rows.at(slice(i, i + step))) for i in range(0, count, step)], 0)
        if cells > MOST_CELLS and self.reduce is not None:
            return self._in_halves(rows, max(axes, key=lambda label: sizes[label]))
        shape = (count, *(sizes[label] for label in axes))
        values, present = rows.spread(axes)
        coordinates = rows.coordinates(sorted(self.reads_labels), axes)
        if self.where is not None:
            present.append(evaluate_condition(self.where, values, coordinates))
        mask = reduce(np.logical_and, present, np.broadcast_to(np.True_, shape)) if present else None
        return self._reduce(values, coordinates, mask, shape)

    def _in_halves(self, rows: Rows, label: Label) -> tuple[Array, Array | None]:
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
        present = None  # what a complete output lacks here, another pair of blocks brings
        if mask is not None and self.masked:
            present = np.asarray(mask.any(axis=inner))
        start = identity(self.reduce, self.dtype)
        ufunc, where = UFUNCS[self.reduce], True if mask is None else mask
        terms = math.prod(shape[axis] for axis in inner)
        with np.errstate(all="ignore"):
            if self.dtype.name == "int64" and self._wide(operands, labels, terms):
                wide = np.broadcast_to(exact_values(combine, operands, labels), shape)
                exact = ufunc.reduce(wide, axis=inner, where=where, initial=neutral(self.reduce, wide.dtype))
                exact, present = _finish(np.asarray(exact, object), present, self.masked)
                return narrowed(exact), present
            values = evaluate(combine, operands, labels, self.combined, shape)
            if self.reduce == "fsum":
                out = np.asarray(ufunc.reduce(exact_terms(values), axis=inner, where=where, initial=ZERO), object)
            elif self.reduce in ("max", "min") and self.dtype.itemsize == 2 and self.dtype.is_float:
                wide = values.astype(np.float32)  # NumPy has no loops of its own for the narrow floats
                out = np.asarray(ufunc.reduce(wide, axis=inner, where=where, initial=start)).astype(values.dtype)
            else:
                dtype = numpy_dtype(self.dtype) if self.reduce in ("sum", "prod") else None
                out = np.asarray(ufunc.reduce(values, axis=inner, dtype=dtype, where=where, initial=start))
        return _finish(out, present, self.masked)

    def _wide(self, operands: Sequence[Array], labels: Mapping[Label, Array], terms: int) -> bool:
        if self.reduce == "prod":
            bound = magnitude(
                self.combine, [bound_of(o) for o in operands], {name: largest(v) for name, v in labels.items()}
            )
            return bound > 1 and terms * math.log2(bound) >= 62
        return may_wrap(self.combine, operands, labels, terms if self.reduce == "sum" else 1)


def neutral(reduce: str, dtype: np.dtype) -> int | float | bool:
    """The identity of a reduction in a NumPy dtype; of Python integers, one that no value reaches."""
    if dtype.kind == "O" and reduce in ("max", "min"):
        return -(1 << 256) if reduce == "max" else 1 << 256
    return identity(reduce, INT64 if dtype.kind == "O" else dtype_of(dtype))


def merge(reduce: str, a: Array, mask_a: Array | None, b: Array, mask_b: Array | None) -> tuple[Array, Array | None]:
    """Combine two partial results of a reduction, of equal shape; both have a mask or neither has."""
    ufunc = UFUNCS[reduce]
    with np.errstate(all="ignore"):
        if a.dtype.kind in "iO" and reduce in ("sum", "prod") and _may_leave(reduce, a, b):
            exact = np.asarray(ufunc(a.astype(object), b.astype(object)), object)
            both = narrowed(exact)
        else:
            both = np.asarray(ufunc(a, b), object if a.dtype == object else None)
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
    return all(v.dtype.kind in "iub" or bool(np.isfinite(v).all()) for v in values)


def _diagonal(a: Array, labels: Labels) -> Array:
    """Read each repeated label along its diagonal, a view; labels come out distinct."""
    axis = {label: 1 + i for i, label in enumerate(dict.fromkeys(labels))}
    if len(axis) == len(labels):
        return a
    return np.einsum(a, [0, *(axis[label] for label in labels)], [0, *axis.values()])


def _finish(values: Array, mask: Array | None, masked: bool) -> tuple[Array, Array | None]:
    """Absent cells to zero; a full mask where the output wants one and nothing is absent."""
    if mask is None:
        return values, np.ones(values.shape, bool) if masked else None
    values = np.where(mask, values, values.dtype.type(0))
    return values, mask if masked else None


def _joined(parts: Sequence[tuple[Array, Array | None]], axis: int) -> tuple[Array, Array | None]:
    masks = [m for _, m in parts if m is not None]
    return np.concatenate([v for v, _ in parts], axis), np.concatenate(masks, axis) if masks else None
