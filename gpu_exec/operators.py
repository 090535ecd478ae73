"""The operators of one device: join, map, filter, fill. They see the batches of their device and nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from gpu_exec.batch import Array, Batch, Layout, empty_batch, first_of, linear_keys, settled, widened
from gpu_exec.kernels.expression import evaluate, evaluate_condition, largest, narrowed, present_only
from gpu_exec.kernels.join import MOST_CELLS, UFUNCS, JoinKernel, merge, neutral
from gpu_exec.structure import Pairs
from planner import program as p
from planner.placement import Placement
from planner.program import Step
from planner.relation_type import Label, RelationType
from planner.scalar import Expr, Value, labels_of
from planner.scalar_text import text
from planner.subscripts import Subscripts

SMALL_BLOCK = 1 << 12  # cells of the label space below which pairs are stacked rather than taken one by one


def join(step: Step, op: p.Join, operands: Sequence[Batch], pairs: Pairs, keys: Array) -> Batch:
    """Gather the rows that meet, contract them, and reduce pairs with the same output row.

    Pairs come sorted by output row; large blocks are contracted one by one into their accumulator, small ones are
    stacked by shape and reduced in segments.
    """
    kernel = JoinKernel(
        op.subscripts,
        op.combine,
        op.reduce,
        op.where,
        tuple(o.type.dtype for o in operands),
        step.type.presence == "cells",
    )
    out = _Accumulator(step.type, keys, op.reduce)
    read = {label: cut for label, cut in op.label_cuts.items() if label in kernel.reads_labels}
    for group in _groups(operands, pairs):
        for rows in _pieces(group, op, operands, pairs):
            views = [_gather(o, r[rows]) for o, r in zip(operands, pairs.operands, strict=True)]
            masks = [_gather_masks(o, r[rows]) for o, r in zip(operands, pairs.operands, strict=True)]
            firsts = {label: first_of(cut, pairs.keys[label][rows]) for label, cut in read.items()}
            if len(rows) == 1:
                out.add(int(pairs.out[rows[0]]), *kernel(views, masks, firsts))
            else:
                out.add_segments(pairs.out[rows], *kernel(views, masks, firsts))
    partial = isinstance(step.placement, Placement) and step.placement.partial
    return out.batch if partial else settled(out.batch, f"{op.reduce} of {text(op.combine)}")


def _pieces(group: Array, op: p.Join, operands: Sequence[Batch], pairs: Pairs) -> Iterator[Array]:
    """The pairs of one shape, as many at a time as a bounded label space holds; large blocks one by one."""
    first = [r[group[0]] for r in pairs.operands]
    shapes = [o.layout.shapes[o.layout.shape_class[row]] for o, row in zip(operands, first, strict=True)]
    cells = max(joined_cells(op.subscripts, shapes), 1)
    step = 1 if cells >= SMALL_BLOCK else MOST_CELLS // cells
    return (group[i : i + step] for i in range(0, len(group), step))


def joined_cells(subscripts: Subscripts, shapes: Sequence[tuple[int, ...]]) -> int:
    """Cells of the label space that blocks of these shapes span."""
    sizes = {
        label: n
        for labels, shape in zip(subscripts.inputs, shapes, strict=True)
        for label, n in zip(labels, shape, strict=True)
    }
    return int(np.prod(list(sizes.values()), dtype=np.int64))


def _groups(operands: Sequence[Batch], pairs: Pairs) -> list[Array]:
    """Pairs by the shape classes of their operands, each group in its order."""
    if not len(pairs.out):
        return []
    code = np.zeros(len(pairs.out), np.int64)
    for operand, rows in zip(operands, pairs.operands, strict=True):
        code = code * len(operand.layout.shapes) + operand.layout.shape_class[rows]
    if not code.any():
        return [np.arange(len(code))]
    return [np.flatnonzero(code == c) for c in np.unique(code)]


def _gather(operand: Batch, rows: Array) -> Array:
    """The blocks of rows of one shape class, stacked; a view where that is possible."""
    stack = operand.stacks[operand.layout.shape_class[rows[0]]]
    return _pick(stack, operand.layout.position[rows])


def _gather_masks(operand: Batch, rows: Array) -> Array | None:
    if operand.masks is None:
        return None
    return _pick(operand.masks[operand.layout.shape_class[rows[0]]], operand.layout.position[rows])


def _pick(stack: Array, at: Array) -> Array:
    """Rows of a stack; one row that all pairs share is not repeated."""
    if at[0] == at[-1] and np.all(at == at[0]):
        return stack[at[0] : at[0] + 1]
    if len(at) == len(stack) and np.array_equal(at, np.arange(len(stack))):
        return stack
    return stack[at]


class _Accumulator:
    """Output rows under construction: the first partial result of a row is copied (taken over where the batch is that
    one row), later ones are reduced into it.

    Every row is written at least once, since an output row is there because some pair is.
    """

    def __init__(self, type: RelationType, keys: Array, reduce: str | None) -> None:
        self.type, self.keys, self.reduce = type, keys, reduce
        self.touched = np.zeros(len(keys), bool)

    @cached_property
    def batch(self) -> Batch:
        """Room for every row, taken when something is to be written to it: unused, it would still cost page faults."""
        return empty_batch(self.type, self.keys, None)

    def add(self, row: int, values: Array, mask: Array | None) -> None:
        """One block, [1, *block]."""
        self._widen_for(values)
        if not self.touched[row]:
            self._first(row, values, mask)
            return
        assert self.reduce is not None
        block, own = self.batch.block(row), self.batch.mask(row)
        if own is None and block.dtype.kind not in "iO":
            with np.errstate(all="ignore"):
                UFUNCS[self.reduce](block, values[0, ...], out=block)
            return
        merged, both = merge(self.reduce, block, own, values[0, ...], None if mask is None else mask[0, ...])
        self._widen_for(merged)
        block, own = self.batch.block(row), self.batch.mask(row)
        block[...] = merged
        if own is not None and both is not None:
            own[...] = both

    def _widen_for(self, values: Array) -> None:
        """Make room for integers that int64 cannot hold."""
        if values.dtype == object:
            self.batch = widened(self.batch)

    def _first(self, row: int, values: Array, mask: Array | None) -> None:
        self.touched[row] = True
        if len(self.touched) == 1 and values.flags.writeable:  # nothing to copy, in whatever order the axes lie
            masks = None if mask is None else (mask,)
            self.batch = Batch(self.type, self.keys, Layout.of(self.type, self.keys), (values,), masks)
            return
        own = self.batch.mask(row)
        self.batch.block(row)[...] = values[0, ...]
        if own is not None and mask is not None:
            own[...] = mask[0, ...]

    def add_segments(self, out: Array, values: Array, mask: Array | None) -> None:
        """Many blocks, [pairs, *block], sorted by output row."""
        rows = len(out)
        if len(values) != rows:
            values = np.broadcast_to(values, (rows, *values.shape[1:]))
            mask = None if mask is None else np.broadcast_to(mask, values.shape)
        first = np.flatnonzero(np.r_[True, out[1:] != out[:-1]])
        if len(first) < rows:
            assert self.reduce is not None
            values, mask = segment_reduce(self.reduce, values, mask, first)
        self._scatter(out[first], values, mask)

    def _scatter(self, out: Array, values: Array, mask: Array | None) -> None:
        """Distinct output rows at once, by shape class (one, since pairs of one shape give one)."""
        batch = self.batch
        c = int(batch.layout.shape_class[out[0]])
        at = batch.layout.position[out]
        old = self.touched[out]
        stack, masks = batch.stacks[c], None if batch.masks is None else batch.masks[c]
        if old.any():
            assert self.reduce is not None
            again = np.flatnonzero(old)
            merged, both = merge(
                self.reduce,
                stack[at[again]],
                None if masks is None else masks[at[again]],
                values[again],
                None if mask is None else mask[again],
            )
            values = np.array(values, merged.dtype if merged.dtype == object else None)
            values[again] = merged
            if mask is not None and both is not None:
                mask = np.array(mask)
                mask[again] = both
        self._widen_for(values)
        self.batch.stacks[c][at] = values
        if masks is not None and mask is not None:
            masks[at] = mask
        self.touched[out] = True


def segment_reduce(reduce: str, values: Array, mask: Array | None, first: Array) -> tuple[Array, Array | None]:
    """Reduce runs of rows, each from `first[i]` to the next."""
    if mask is not None and reduce != "sum":
        values = np.where(mask, values, np.asarray(neutral(reduce, values.dtype), values.dtype))
    with np.errstate(all="ignore"):
        if values.dtype.kind in "iO" and reduce in ("sum", "prod"):
            reduced = _reduce_integers(reduce, values, first)
        else:
            reduced = UFUNCS[reduce].reduceat(values, first, axis=0)
    if mask is None:
        return reduced, None
    present = np.logical_or.reduceat(mask, first, axis=0)
    return np.where(present, reduced, reduced.dtype.type(0)), present


def _reduce_integers(reduce: str, values: Array, first: Array) -> Array:
    longest = int(np.diff(np.r_[first, len(values)]).max())
    bound = largest(values)
    safe = bound * longest < 2**63 if reduce == "sum" else longest * math.log2(max(bound, 1)) < 62
    if safe:
        return UFUNCS[reduce].reduceat(values, first, axis=0)
    return narrowed(UFUNCS[reduce].reduceat(values.astype(object), first, axis=0))


# ----------------------------------------------------------------------------------------------------- row by row


def map_rows(step: Step, expr: Expr, batch: Batch) -> Batch:
    """Apply an expression to every present cell."""
    stacks = []
    for c, stack in enumerate(batch.stacks):
        safe, operands = present_only(expr, [stack], None if batch.masks is None else batch.masks[c])
        values = evaluate(safe, operands, _label_values(batch, c, expr), step.type.dtype, stack.shape)
        stacks.append(values if batch.masks is None else np.where(batch.masks[c], values, values.dtype.type(0)))
    return Batch(step.type, batch.keys, batch.layout, tuple(stacks), batch.masks)


def filter_rows(step: Step, where: Expr, batch: Batch, rows: Array | None) -> Batch:
    """Keep the cells at which a condition on value and labels holds; `rows` when the key phase has decided it."""
    if rows is not None:
        kept = batch.take(rows)
        return Batch(step.type, kept.keys, kept.layout, kept.stacks, kept.masks)
    stacks, masks = [], []
    for c, stack in enumerate(batch.stacks):
        old = None if batch.masks is None else batch.masks[c]
        safe, operands = present_only(where, [stack], old)
        mask = np.broadcast_to(evaluate_condition(safe, operands, _label_values(batch, c, where)), stack.shape)
        mask = mask if old is None else mask & old
        stacks.append(np.where(mask, stack, stack.dtype.type(0)))
        masks.append(np.ascontiguousarray(mask))
    return Batch(step.type, batch.keys, batch.layout, tuple(stacks), tuple(masks))


def fill_rows(step: Step, value: Value, batch: Batch, keys: Array) -> Batch:
    """Every row of `keys`, absent cells set to `value`."""
    out = empty_batch(step.type, keys, value)
    at = np.searchsorted(linear_keys(keys, step.type.counts), linear_keys(batch.keys, step.type.counts))
    for c, stack in enumerate(batch.stacks):
        rows = at[batch.layout.shape_class == c]
        if len(rows):
            target = out.stacks[int(out.layout.shape_class[rows[0]])]
            where = out.layout.position[rows]
            target[where] = stack if batch.masks is None else np.where(batch.masks[c], stack, target.dtype.type(value))
    return out


def _label_values(batch: Batch, c: int, expr: Expr) -> dict[Label, Array]:
    """Coordinates along the labels that `expr` reads, for the blocks of one shape class."""
    keys, shape = batch.keys[batch.layout.shape_class == c], batch.layout.shapes[c]
    values = {}
    for axis, label in enumerate(batch.type.labels):
        if label in labels_of(expr):
            first = first_of(batch.type.cuts[axis], keys[:, axis])
            spread = first[:, None] + np.arange(shape[axis])
            values[label] = spread.reshape(len(keys), *(shape[axis] if i == axis else 1 for i in range(len(shape))))
    return values
