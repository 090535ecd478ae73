"""A tensor relation in memory, and the ways out of it: NumPy, Arrow, scipy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from gpu_exec.batch import Batch, cells, recut, to_dense
from planner.dtypes import BOOL, FLOAT32, FLOAT64, INT64, DType
from planner.errors import DataError, PlanError, UnsupportedError
from planner.explain import format_bytes, plural
from planner.relation_type import Label, RelationType
from planner.scalar import Value

Array = np.ndarray

ARROW: dict[DType, pa.DataType] = {BOOL: pa.bool_(), INT64: pa.int64(), FLOAT32: pa.float32(), FLOAT64: pa.float64()}


@dataclass(frozen=True, repr=False)
class Relation:
    """A stored tensor relation, or a result.

    fill    the value that an absent cell has where the relation is read as a total array; None: there is none
    """

    name: str
    batch: Batch
    fill: Value | None = 0
    _recut: dict[RelationType, Batch] = field(default_factory=dict, repr=False, compare=False)

    @property
    def type(self) -> RelationType:
        return self.batch.type

    @property
    def labels(self) -> tuple[Label, ...]:
        return self.type.labels

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.extents

    def under(self, type: RelationType) -> Batch:
        """The rows under another cut, kept for the next query that asks for it."""
        if type == self.type:
            return self.batch
        if type not in self._recut:
            self._recut[type] = recut(self.batch, type)
        return self._recut[type]

    def numpy(self, fill: Value | None = None) -> Array:
        """The total array, in the order of `labels`. It is read-only, since it may be what the database holds.

        Raises   DataError where cells are absent and neither the relation nor the call names a fill
        """
        try:
            array, present = to_dense(self.batch)
        except MemoryError:
            size = format_bytes(self.type.cells * self.type.dtype.itemsize)
            raise PlanError(
                f"no memory for the {self.type.cells} cells ({size}) of {self.name or 'the result'}"
                f" {self.type.describe()}\n  take the present cells with .arrow() or .scipy()"
            ) from None
        if self.type.presence == "complete" or present.all():
            return _read_only(array)
        value = self.fill if fill is None else fill
        if value is None:
            absent = int(present.size - present.sum())
            raise DataError(
                f"{absent} of {present.size} cells of {self.name or 'the result'} {self.type.describe()} are absent"
                f", the first at {cell_text(self.labels, np.argwhere(~present)[0])}"
                "\n  say what they are worth, as in .numpy(fill=0), or take .arrow()"
            )
        return _read_only(np.where(present, array, array.dtype.type(value)))

    def arrow(self) -> pa.Table:
        """One row per present cell: a column per label, then `val`. An absent scalar is a row with NULL, as in SQL."""
        coordinates, values = cells(self.batch)
        columns = [pa.array(coordinates[:, i]) for i in range(len(self.labels))]
        dtype = ARROW[self.type.dtype]
        if not self.labels and not len(values):
            return pa.table([pa.nulls(1, dtype)], names=["val"])
        return pa.table([*columns, pa.array(values, dtype)], names=[*self.labels, "val"])

    def scipy(self) -> Any:
        """The present cells as a scipy.sparse.coo_array, of one or two labels."""
        import scipy.sparse

        if len(self.labels) not in (1, 2):
            raise UnsupportedError(
                f"scipy holds 1 or 2 labels, {self.name or 'the result'} has {len(self.labels)}; take .arrow()"
            )
        if self.type.presence != "complete" and self.fill not in (0, None):
            raise DataError(
                f"an absent cell of {self.name or 'the result'} is worth {self.fill}, and scipy's are worth 0"
                "; take .arrow() or .numpy()"
            )
        coordinates, values = cells(self.batch)
        return scipy.sparse.coo_array((values, tuple(coordinates.T)), shape=self.shape)

    def __str__(self) -> str:
        rows, size = plural(self.batch.rows, "row"), format_bytes(self.batch.nbytes)
        return f"{self.name or 'result'} {self.type}   {rows}   {size}"

    __repr__ = __str__


def _read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view


def cell_text(labels: Sequence[Label], coordinate: Array) -> str:
    """`(src=0, dst=1)`."""
    return "(" + ", ".join(f"{name}={int(c)}" for name, c in zip(labels, coordinate, strict=True)) + ")"
