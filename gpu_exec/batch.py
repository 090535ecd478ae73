"""A batch: rows of one relation on one device, as key arrays and one stacked array per block shape.

No padding anywhere. Absent cells of a masked block hold zero, so that a plain sum of products is right already.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpu_exec.kernels.dtype import numpy_dtype
from gpu_exec.kernels.exact_sum import rounded
from gpu_exec.kernels.expression import to_int64
from planner.cuts import Cut
from planner.errors import PlanError, UnsupportedError
from planner.relation_type import RelationType

Array = np.ndarray
MOST_KEYS = 1 << 28  # of a grid; 2 GiB a label


def starts_of(cut: Cut) -> Array:
    """The cut points as an array of count + 1 coordinates."""
    if cut.points:
        return np.asarray(cut.points, np.int64)
    if cut.tile:
        return np.minimum(np.arange(cut.count + 1, dtype=np.int64) * cut.tile, cut.extent)
    small, larger = divmod(cut.extent, cut.parts) if cut.parts else (0, 0)
    parts = np.arange(cut.count + 1, dtype=np.int64)
    return parts * small + np.minimum(parts, larger)


def parts_of(cut: Cut, coordinates: Array) -> Array:
    """The part that holds each coordinate."""
    if cut.is_cells:
        return coordinates
    return np.searchsorted(starts_of(cut), coordinates, side="right") - 1


def first_of(cut: Cut, parts: Array) -> Array:
    """The first coordinate of each part; no list of cut points for single cells, whose extent may be huge."""
    return parts if cut.is_cells else starts_of(cut)[parts]


def linear_keys(keys: Array, counts: Sequence[int]) -> Array:
    """Row-major number of every key, [rows]; refuses grids that int64 cannot number."""
    total = 1
    for n in counts:
        total *= max(n, 1)
    if total >= 2**63:
        raise UnsupportedError(
            f"a grid of {' x '.join(map(str, counts))} keys is too large to number; cut fewer labels"
        )
    linear = np.zeros(len(keys), np.int64)
    for axis, n in enumerate(counts):
        linear = linear * n + keys[:, axis]
    return linear


def grid_keys(counts: Sequence[int]) -> Array:
    """Every key of a grid, [rows, rank], row-major.

    Raises   PlanError where they are too many to be listed
    """
    rows = math.prod(counts)
    if rows > MOST_KEYS:
        grid = " x ".join(map(str, counts))
        raise PlanError(
            f"a step has all {rows} rows of a grid of {grid}, and {MOST_KEYS} are the most that are listed"
            "\n  an absent cell is worth something there, or a label is cut to single cells"
        )
    if not counts:
        return np.zeros((1, 0), np.int64)
    return (
        np.stack(np.unravel_index(np.arange(rows), tuple(counts)), axis=1)
        if rows
        else np.zeros((0, len(counts)), np.int64)
    )


def keys_of(linear: Array, counts: Sequence[int]) -> Array:
    """The keys with these row-major numbers, [rows, rank]."""
    keys = np.zeros((len(linear), len(counts)), np.int64)
    for axis in reversed(range(len(counts))):
        linear, keys[:, axis] = np.divmod(linear, max(counts[axis], 1))
    return keys


@dataclass(frozen=True)
class Layout:
    """Where the block of each row lies: its shape class and its place in the stack of that class.

    shapes    block shape of each class
    """

    shapes: tuple[tuple[int, ...], ...]
    shape_class: Array
    position: Array

    @staticmethod
    def of(type: RelationType, keys: Array) -> Layout:
        """The layout of rows with these keys, in their order."""
        if len(keys) == 1:
            one = np.zeros(1, np.int64)
            return Layout((type.block_shape(tuple(map(int, keys[0]))),), one, one)
        code = np.zeros(len(keys), np.int64)
        sizes_by_axis = []
        for axis, cut in enumerate(type.cuts):
            sizes = np.diff(starts_of(cut)) if not cut.is_cells else np.ones(1, np.int64)
            distinct, part_code = np.unique(sizes, return_inverse=True)
            sizes_by_axis.append(distinct)
            if len(distinct) > 1:
                code = code * len(distinct) + part_code[keys[:, axis]]
        kinds = [len(d) if len(d) > 1 else 1 for d in sizes_by_axis]
        present, shape_class = np.unique(code, return_inverse=True)
        choice = keys_of(present, kinds)
        shapes = tuple(tuple(int(d[c]) for d, c in zip(sizes_by_axis, row, strict=True)) for row in choice)
        position = np.zeros(len(keys), np.int64)
        for c in range(len(shapes)):
            rows = np.flatnonzero(shape_class == c)
            position[rows] = np.arange(len(rows))
        return Layout(shapes, shape_class, position)


@dataclass(frozen=True)
class Batch:
    """Rows of a relation, sorted by key.

    keys      [rows, rank] part numbers
    stacks    per shape class [rows of the class, *block shape]
    masks     per shape class the same in bool, when presence is "cells"; None otherwise
    """

    type: RelationType
    keys: Array
    layout: Layout
    stacks: tuple[Array, ...]
    masks: tuple[Array, ...] | None

    @property
    def rows(self) -> int:
        return len(self.keys)

    @property
    def nbytes(self) -> int:
        """Payload and mask bytes; keys are structure."""
        return sum(s.nbytes for s in self.stacks) + sum(m.nbytes for m in self.masks or ())

    def block(self, row: int) -> Array:
        """The block of one row, a view."""
        return self.stacks[self.layout.shape_class[row]][self.layout.position[row], ...]

    def mask(self, row: int) -> Array | None:
        """The mask of one row; None for a full block."""
        return None if self.masks is None else self.masks[self.layout.shape_class[row]][self.layout.position[row], ...]

    def take(self, rows: Array) -> Batch:
        """Some rows, ascending; views where they are contiguous."""
        if len(rows) == self.rows:
            return self
        keys, layout = self.keys[rows], Layout.of(self.type, self.keys[rows])
        picks = []
        for c, shape in enumerate(layout.shapes):
            old = self.layout.shapes.index(shape)
            where = self.layout.position[rows[layout.shape_class == c]]
            picks.append((old, as_slice(where)))
        stacks = tuple(self.stacks[old][where] for old, where in picks)
        masks = None if self.masks is None else tuple(self.masks[old][where] for old, where in picks)
        return Batch(self.type, keys, layout, stacks, masks)


def as_slice(index: Array) -> Array | slice:
    """A slice in place of consecutive indices, so that taking them is a view."""
    if len(index) and index[-1] - index[0] == len(index) - 1 and np.all(np.diff(index) == 1):
        return slice(int(index[0]), int(index[-1]) + 1)
    return index


def empty_batch(type: RelationType, keys: Array, value: object = 0) -> Batch:
    """Rows with these keys, every cell `value` (None: left unwritten), every mask False."""
    layout = Layout.of(type, keys)
    counts = np.bincount(layout.shape_class, minlength=len(layout.shapes))
    sizes = [(int(n), *shape) for n, shape in zip(counts, layout.shapes, strict=True)]
    dtype = numpy_dtype(type.dtype)
    stacks = tuple(np.empty(size, dtype) if value is None else np.full(size, value, dtype) for size in sizes)
    masks = tuple(np.zeros(size, bool) for size in sizes) if type.presence == "cells" else None
    return Batch(type, keys, layout, stacks, masks)


def widened(batch: Batch) -> Batch:
    """The same rows with room for integers of any size and exact sums; only partial results are kept so."""
    if all(stack.dtype == object for stack in batch.stacks):
        return batch
    return replace(batch, stacks=tuple(stack.astype(object) for stack in batch.stacks))


def settled(batch: Batch, what: str) -> Batch:
    """A final result in its own dtype; integers that int64 cannot hold are an error that names `what`."""
    if all(stack.dtype != object for stack in batch.stacks):
        return batch
    if batch.type.dtype.is_float:
        return replace(batch, stacks=tuple(rounded(stack) for stack in batch.stacks))
    return replace(batch, stacks=tuple(to_int64(stack, what) for stack in batch.stacks))


def box_of(type: RelationType, key: Sequence[int]) -> tuple[slice, ...]:
    """Where the block with this key lies in the whole array."""
    return tuple(slice(c.start(int(k)), c.start(int(k) + 1)) for c, k in zip(type.cuts, key, strict=True))


def from_dense(array: Array, type: RelationType, mask: Array | None = None) -> Batch:
    """Cut a whole array; with one block it is a view. `mask` goes with presence "cells"."""
    keys = grid_keys(type.counts)
    if len(keys) == 1:
        layout = Layout.of(type, keys)
        return Batch(type, keys, layout, (array[None],), None if mask is None else (mask[None],))
    layout = Layout.of(type, keys)
    if len(layout.shapes) == 1:
        stacks = [_stacked(a, type.counts, layout.shapes[0]) for a in (array, mask) if a is not None]
        return Batch(type, keys, layout, (stacks[0],), None if mask is None else (stacks[1],))
    batch = empty_batch(type, keys)
    for row, key in enumerate(keys):
        batch.block(row)[...] = array[box_of(type, key)]
        if mask is not None:
            target = batch.mask(row)
            assert target is not None
            target[...] = mask[box_of(type, key)]
    return batch


def _stacked(array: Array, counts: Sequence[int], shape: Sequence[int]) -> Array:
    """The blocks of an array that has `counts` of them, all of one shape, in the order of their keys."""
    rank = array.ndim
    split = array.reshape([n for pair in zip(counts, shape, strict=True) for n in pair])
    return split.transpose([*range(0, 2 * rank, 2), *range(1, 2 * rank, 2)]).reshape(-1, *shape)


def to_dense(batch: Batch) -> tuple[Array, Array]:
    """The whole array, zero where absent, and the mask of present cells, both of the full extents."""
    type = batch.type
    whole = type.presence == "complete"
    if batch.rows == 1 and type.possible_rows == 1:
        mask = batch.mask(0)
        return batch.block(0), everywhere(type) if mask is None else mask
    if type.storage == "scalar" or all(c.is_cells for c in type.cuts):
        return _scatter_cells(batch)
    array = np.zeros(type.extents, numpy_dtype(type.dtype))
    present = everywhere(type) if whole else np.zeros(type.extents, bool)
    for row in range(batch.rows):
        box = box_of(type, batch.keys[row])
        array[box] = batch.block(row)
        if not whole:
            mask = batch.mask(row)
            present[box] = True if mask is None else mask
    return array, present


def everywhere(type: RelationType) -> Array:
    """The read-only mask of a complete relation; takes no memory."""
    return np.broadcast_to(np.True_, type.extents)


def _scatter_cells(batch: Batch) -> tuple[Array, Array]:
    coordinates, values = cells(batch)
    array = np.zeros(batch.type.extents, values.dtype)
    present = np.zeros(batch.type.extents, bool)
    if len(values):
        at = tuple(coordinates.T)
        array[at], present[at] = values if at else values[0], True
    return array, present


def cells(batch: Batch) -> tuple[Array, Array]:
    """Coordinates [n, rank] and values [n] of the present cells, in row-major order of the whole tensor."""
    type = batch.type
    rank = len(type.labels)
    found, values = [np.zeros((0, rank), np.int64)], [np.zeros(0, numpy_dtype(type.dtype))]
    for c, stack in enumerate(batch.stacks):
        keys = batch.keys[batch.layout.shape_class == c]
        mask = np.ones(stack.shape, bool) if batch.masks is None else batch.masks[c]
        at = np.nonzero(mask)
        found.append(
            np.stack([first_of(cut, keys[at[0], i]) + at[i + 1] for i, cut in enumerate(type.cuts)], axis=1)
            if rank
            else np.zeros((len(at[0]), 0), np.int64)
        )
        values.append(stack[at])
    coordinates, flat = np.concatenate(found), np.concatenate(values)
    order = np.lexsort(coordinates.T[::-1]) if rank else np.arange(len(flat))
    return coordinates[order], flat[order]


def from_cells(coordinates: Array, values: Array, type: RelationType) -> Batch:
    """Rows from distinct cells: coordinates [n, rank], values [n]. Blocks without a cell are not stored."""
    keys = (
        np.stack([parts_of(cut, coordinates[:, i]) for i, cut in enumerate(type.cuts)], axis=1)
        if type.cuts
        else np.zeros((len(values), 0), np.int64)
    )
    linear = linear_keys(keys, type.counts)
    distinct, row = np.unique(linear, return_inverse=True)
    batch = empty_batch(type, keys_of(distinct, type.counts))
    inside = tuple(coordinates[:, i] - first_of(cut, keys[:, i]) for i, cut in enumerate(type.cuts))
    for c in range(len(batch.stacks)):
        mine = np.flatnonzero(batch.layout.shape_class[row] == c)
        at = (batch.layout.position[row[mine]], *(axis[mine] for axis in inside))
        batch.stacks[c][at] = values[mine]
        if batch.masks is not None:
            batch.masks[c][at] = True
    return batch


def recut(batch: Batch, type: RelationType) -> Batch:
    """The same cells under the cuts of `type`."""
    if batch.type == type:
        return batch
    if type.presence == "complete":
        return from_dense(to_dense(batch)[0], type)
    return from_cells(*cells(batch), type)
