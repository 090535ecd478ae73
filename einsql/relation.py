"""A tensor relation in memory, and the ways out of it: NumPy, Arrow, scipy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from einsql.arrow import value_field
from einsql.blocks import block_table
from einsql.cells import called_by, cell_text
from einsql.domains import Domain
from einsql.values import fill_value, number
from gpu_exec.batch import Batch, cells, recut, to_dense
from planner.dtypes import BFLOAT16, FLOAT16
from planner.errors import DataError, PlanError, ShapeError, UnsupportedError
from planner.explain import format_bytes, plural
from planner.relation_type import Label, RelationType
from planner.scalar import Value

Array = np.ndarray
VALUE = "val"


@dataclass(frozen=True, repr=False)
class Relation:
    """A stored tensor relation, or a result.

    fill      the value that an absent cell has where the relation is read as a total array; None: there is none
    domains   the dictionaries of the labels whose coordinates stand for other values
    value     what its value column is called, in SQL and in tables
    memory_limit   bytes that its array may have; None: any
    """

    name: str
    batch: Batch
    fill: Value | None = 0
    domains: Mapping[Label, Domain] = field(default_factory=dict)
    value: str = VALUE
    memory_limit: int | None = None
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

    def domain(self, label: Label) -> pa.Array | range:
        """The values that the coordinates 0, 1, ... of a label stand for: its dictionary, else its range."""
        if label not in self.labels:
            raise ShapeError(
                f"{self.name or 'the result'} has no label {label!r}; it has {', '.join(self.labels) or 'none'}"
            )
        if label in self.domains:
            return self.domains[label].values
        return range(self.type.label_cuts[label].extent)

    def numpy(self, fill: Value | None = None) -> Array:
        """The total array, in the order of `labels`, each axis in the order of its `domain`. It is read-only, since it
        may be what the database holds. bfloat16 is that of ml_dtypes.

        Raises   DataError where cells are absent and neither the relation nor the call names a fill
        """
        size = self.type.cells * self.type.dtype.itemsize
        if self.memory_limit is not None and self.type.presence != "complete" and size > self.memory_limit:
            raise self._too_large(f"the memory limit is {format_bytes(self.memory_limit)}", size)
        if fill is not None:
            fill = fill_value(self.name or "the result", number(fill), self.type.dtype)
        try:
            array, present = to_dense(self.batch)
        except (MemoryError, ValueError):  # NumPy's word for more than an address space
            raise self._too_large("there is no memory for them", size) from None
        if self.type.presence == "complete" or present.all():
            return _read_only(array)
        value = self.fill if fill is None else fill
        if value is None:
            absent = int(present.size - present.sum())
            raise DataError(
                f"{absent} of {present.size} cells of {self.name or 'the result'} {self.type.describe()} are absent"
                f", the first at {self._cell(np.argwhere(~present)[0])}"
                "\n  say what they are worth, as in .numpy(fill=0), or take .arrow()"
            )
        return _read_only(np.where(present, array, np.asarray(value, array.dtype)))

    def arrow(self, blocks: bool = False) -> pa.Table:
        """One row per present cell: a column per label, then the value, called `val` unless the query or the table that
        it came from says otherwise. An absent scalar is a row with its fill, or with
        NULL where there is none, as in SQL.

        Labels with a dictionary give its values. Arrow lacks complex numbers, which come as fixed-size lists of two
        floats, and bfloat16, which comes as float32; the field's metadata names the dtype, and `create` reads it back.

        blocks   one row per block: label columns with the numbers of its parts, and `val` as fixed_shape_tensor, or as
                 flat lists where blocks differ in shape. `create` restores labels, extents, cuts, dtype, fill, presence
                 and dictionaries from the metadata of the schema.
        """
        if blocks:
            return block_table(self.batch, self.fill, self.domains)
        coordinates, values = cells(self.batch)
        columns = [
            self.domains[label].take(coordinates[:, i]) if label in self.domains else pa.array(coordinates[:, i])
            for i, label in enumerate(self.labels)
        ]
        field, column = value_field(self.value, values, self.type.dtype)
        if not self.labels and not len(values):  # nothing was there: its fill, or NULL, as in SQL
            fill = np.asarray([0 if self.fill is None else self.fill]).astype(values.dtype)
            column = pa.nulls(1, field.type) if self.fill is None else value_field(self.value, fill, self.type.dtype)[1]
        fields = [pa.field(label, c.type) for label, c in zip(self.labels, columns, strict=True)]
        return pa.table([*columns, column], schema=pa.schema([*fields, field]))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.numpy(), dtype, copy=copy)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The rows of `arrow()`, for polars, pandas, DuckDB and whoever else reads Arrow's C stream."""
        return self.arrow().__arrow_c_stream__(requested_schema)

    def scipy(self) -> Any:
        """The present cells as a scipy.sparse.coo_array, of one or two labels. float16 and bfloat16, which scipy lacks,
        come as float32."""
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
        if self.type.dtype in (FLOAT16, BFLOAT16):
            values = values.astype(np.float32)
        return scipy.sparse.coo_array((values, tuple(coordinates.T)), shape=self.shape)

    def _too_large(self, why: str, size: int) -> PlanError:
        return PlanError(
            f"the array of {self.name or 'the result'} {self.type.describe()} has {self.type.cells} cells,"
            f" {format_bytes(size)}, and {why}\n  take the present cells with .arrow() or .scipy()"
        )

    def _cell(self, coordinate: Array) -> str:
        return cell_text(self.labels, called_by(self.labels, coordinate, self.domains))

    def __str__(self) -> str:
        rows, size = plural(self.batch.rows, "row"), format_bytes(self.batch.nbytes)
        return f"{self.name or 'result'} {self.type}   {rows}   {size}"

    __repr__ = __str__


def _read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view
