"""Tensor relations from what users have: NumPy arrays, Arrow tables and whatever turns into one, scipy matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from einsql.relation import Array, Relation, cell_text
from gpu_exec.batch import Batch, from_cells, from_dense, to_dense
from gpu_exec.kernels.dtype import numpy_dtype
from gpu_exec.kernels.expression import largest, to_int64
from planner.cuts import Cut
from planner.dtypes import BOOL, BY_NAME, DTYPES, INT64, DType
from planner.errors import DataError, ShapeError, UnsupportedError
from planner.relation_type import Label, RelationType, is_label
from planner.scalar import Value

DEFAULT_LABELS = "ijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Storage:
    """How a relation is to be stored: cuts by label, and whether all cells must, may, or shall not be kept dense."""

    parts: Mapping[Label, int]
    tile: Mapping[Label, int]
    dense: bool | None

    def cuts(self, labels: Sequence[Label], extents: Sequence[int]) -> tuple[Cut, ...]:
        for label in (*self.parts, *self.tile):
            if label not in labels:
                raise ShapeError(f"parts or tile name label {label!r}; the relation has {', '.join(labels)}")
        return tuple(
            Cut(e, tile=self.tile[name]) if name in self.tile else Cut(e, parts=self.parts.get(name, 1))
            for name, e in zip(labels, extents, strict=True)
        )

    @property
    def cut(self) -> bool:
        return bool(self.parts or self.tile)


def create_relation(
    name: str,
    data: Any,
    labels: str | Sequence[str] | None,
    val: str | None,
    fill: Value | None,
    storage: Storage,
    add_up: bool,
) -> Relation:
    """A relation from whatever `data` is: an array, a scipy sparse matrix, or a table."""
    if hasattr(data, "tocoo"):
        batch = _from_scipy(name, data, labels, storage, add_up)
    elif isinstance(data, (pa.Table, pa.RecordBatch)) or hasattr(data, "__arrow_c_stream__"):
        batch = _from_table(name, pa.table(data), labels, val, storage, add_up)
    elif isinstance(data, Mapping):
        batch = _from_table(name, pa.table(dict(data)), labels, val, storage, add_up)
    else:
        batch = _from_array(name, np.asarray(data), labels, storage, fill)
    return Relation(name, batch, _fill_value(name, fill, batch.type.dtype))


def _from_array(
    name: str, array: Array, labels: str | Sequence[str] | None, storage: Storage, fill: Value | None
) -> Batch:
    if labels is None and array.ndim > len(DEFAULT_LABELS):
        raise ShapeError(f"{name} has {array.ndim} axes; name its labels")
    names, extents = read_labels(DEFAULT_LABELS[: array.ndim] if labels is None else labels, array.ndim)
    if len(names) != array.ndim:
        raise ShapeError(
            f"{name} has {array.ndim} axes, shape {array.shape}, but {len(names)} labels: {' '.join(names)}"
        )
    for label, stated, real in zip(names, extents, array.shape, strict=True):
        if stated is not None and stated != real:
            raise ShapeError(f"label {label!r} of {name} is stated as {stated}, but the array has {real}")
    values, dtype = _values(name, array)
    if storage.dense is False:
        kept = np.asarray(values != (0 if fill is None else fill))
        return _from_coordinates(name, np.argwhere(kept), values[kept], names, values.shape, dtype, storage)
    own = np.array(values, order="C")  # the database keeps its own copy
    return from_dense(own, RelationType(names, storage.cuts(names, values.shape), dtype))


def _from_scipy(name: str, matrix: Any, labels: str | Sequence[str] | None, storage: Storage, add_up: bool) -> Batch:
    coo = matrix.tocoo()
    names, extents = read_labels(DEFAULT_LABELS[: len(coo.shape)] if labels is None else labels, len(coo.shape))
    if len(names) != len(coo.shape):
        raise ShapeError(
            f"{name} has {len(coo.shape)} axes, shape {coo.shape}, but {len(names)} labels: {' '.join(names)}"
        )
    for label, stated, real in zip(names, extents, coo.shape, strict=True):
        if stated is not None and stated != real:
            raise ShapeError(f"label {label!r} of {name} is stated as {stated}, but the matrix has {real}")
    coords = coo.coords if hasattr(coo, "coords") else (coo.row, coo.col)
    coordinates = np.stack([np.asarray(c, np.int64) for c in coords], axis=1)
    values, dtype = _values(name, coo.data)
    coordinates, values = _distinct(name, names, coordinates, values, dtype, add_up)
    return _from_coordinates(name, coordinates, values, names, coo.shape, dtype, storage)


def _from_table(
    name: str, table: pa.Table, labels: str | Sequence[str] | None, val: str | None, storage: Storage, add_up: bool
) -> Batch:
    if labels is None:
        raise ShapeError(
            f"say which columns of {name} are labels, as in labels='src dst'"
            f"; its columns are {', '.join(table.column_names)}"
        )
    names, extents = read_labels(labels, None)
    value_column = _value_column(name, table, names, val)
    for column in (*names, *([value_column] if value_column else [])):
        nulls = table.column(column).null_count
        if nulls:
            row = next(i for i, v in enumerate(table.column(column)) if not v.is_valid)
            raise DataError(
                f"column {column!r} of {name} holds {nulls} NULL, the first in row {row}"
                "; a cell is present or absent, drop those rows"
            )
    coordinates = (
        np.stack([_coordinate(name, label, table) for label in names], axis=1)
        if names
        else np.zeros((len(table), 0), np.int64)
    )
    raw = table.column(value_column).to_numpy() if value_column else np.ones(len(table), np.int64)
    values, dtype = _values(name, raw)
    shape = _shape(name, names, extents, coordinates)
    coordinates, values = _distinct(name, names, coordinates, values, dtype, add_up)
    return _from_coordinates(name, coordinates, values, names, shape, dtype, storage)


def _value_column(name: str, table: pa.Table, labels: Sequence[Label], val: str | None) -> str | None:
    for column in (*labels, *([val] if val else [])):
        if column not in table.column_names:
            raise ShapeError(f"{name} has no column {column!r}; its columns are {', '.join(table.column_names)}")
    if val is not None:
        return val
    rest = [c for c in table.column_names if c not in labels]
    if len(rest) > 1 and "val" not in rest:
        raise ShapeError(
            f"say which column of {name} holds the values, as in val={rest[0]!r}"
            f"; besides labels it has {', '.join(rest)}"
        )
    return "val" if "val" in rest else rest[0] if rest else None


def _coordinate(name: str, label: Label, table: pa.Table) -> Array:
    column = table.column(label)
    if not pa.types.is_integer(column.type):
        raise UnsupportedError(f"label {label!r} of {name} has type {column.type}; labels are integers from 0")
    return column.to_numpy().astype(np.int64)


def _shape(name: str, labels: Sequence[Label], stated: Sequence[int | None], coordinates: Array) -> tuple[int, ...]:
    shape = []
    for axis, (label, extent) in enumerate(zip(labels, stated, strict=True)):
        column = coordinates[:, axis]
        if len(column) and column.min() < 0:
            raise DataError(
                f"label {label!r} of {name} holds {column.min()} in row {int(column.argmin())}; coordinates start at 0"
            )
        top = int(column.max()) + 1 if len(column) else 0
        if extent is not None and top > extent:
            raise DataError(
                f"label {label!r} of {name} holds {top - 1} in row {int(column.argmax())}, outside its extent {extent}"
            )
        shape.append(top if extent is None else extent)
    return tuple(shape)


def _distinct(
    name: str, labels: Sequence[Label], coordinates: Array, values: Array, dtype: DType, add_up: bool
) -> tuple[Array, Array]:
    """Cells in order, each once: duplicates are refused, or added up when the caller asked for that."""
    order = np.lexsort(coordinates.T[::-1]) if coordinates.shape[1] else np.arange(len(values))
    coordinates, values = coordinates[order], values[order]
    if len(values) < 2:
        return coordinates, values
    new = np.r_[True, (coordinates[1:] != coordinates[:-1]).any(axis=1)]
    extra = int(len(values) - new.sum())
    if not extra:
        return coordinates, values
    if not add_up:
        at = int(np.flatnonzero(~new)[0])
        raise DataError(
            f"{extra} duplicate coordinates in {name}, the first {cell_text(labels, coordinates[at])}"
            f" with values {values[at - 1]} and {values[at]}"
            "\n  add them up beforehand, or pass duplicates='sum'"
        )
    first = np.flatnonzero(new)
    if dtype == BOOL:
        return coordinates[first], np.logical_or.reduceat(values, first)
    if dtype == INT64 and largest(values) * len(values) >= 2**63:
        return coordinates[first], to_int64(
            np.add.reduceat(values.astype(object), first), f"sums of duplicates in {name}"
        )
    return coordinates[first], np.add.reduceat(values, first)


def _from_coordinates(
    name: str,
    coordinates: Array,
    values: Array,
    labels: tuple[Label, ...],
    shape: tuple[int, ...],
    dtype: DType,
    storage: Storage,
) -> Batch:
    complete = len(values) == np.prod(shape, dtype=object)
    if storage.dense and not complete:
        array = from_cells(coordinates, values, RelationType(labels, _cell_cuts(shape), dtype, "scalar", "blocks"))
        absent = np.argwhere(~to_dense(array)[1])
        raise DataError(
            f"{name} is declared dense, but {len(absent)} of {int(np.prod(shape))} cells are missing"
            f", the first {cell_text(labels, absent[0])}"
        )
    if complete and storage.dense is not False:
        whole = np.zeros(shape, numpy_dtype(dtype))
        whole[tuple(coordinates.T)] = values if shape else values[0]
        return from_dense(whole, RelationType(labels, storage.cuts(labels, shape), dtype))
    presence = "complete" if complete else "cells"
    if storage.cut:
        return from_cells(
            coordinates, values, RelationType(labels, storage.cuts(labels, shape), dtype, presence=presence)
        )
    kind = RelationType(labels, _cell_cuts(shape), dtype, "scalar", "complete" if complete else "blocks")
    return from_cells(coordinates, values, kind)


def _cell_cuts(shape: Sequence[int]) -> tuple[Cut, ...]:
    return tuple(Cut(e, parts=max(e, 1)) for e in shape)


def _values(name: str, array: Array) -> tuple[Array, DType]:
    """The values in a dtype of the type table."""
    if array.dtype.name in BY_NAME:
        return array, BY_NAME[array.dtype.name]
    raise UnsupportedError(f"{name} has dtype {array.dtype}; supported are {', '.join(d.name for d in DTYPES)}")


def _fill_value(name: str, fill: Value | None, dtype: DType) -> Value | None:
    """The fill as a plain number that `dtype` holds."""
    if fill is None:
        return None
    try:
        value: Value = numpy_dtype(dtype).type(fill).item()
    except (TypeError, ValueError, OverflowError):
        value = 0 if fill else 1  # no such value: unequal to fill
    if value != fill and not dtype.is_float:
        raise ShapeError(f"{name} holds {dtype.name}, which has no value {fill!r} for fill")
    return value


def read_labels(labels: str | Sequence[str], rank: int | None) -> tuple[tuple[Label, ...], tuple[int | None, ...]]:
    """Label names and stated extents of `"src=34 dst=34"`, `"i j"`, `["i", "j"]`; `"ij"` for two axes means i and j."""
    words = labels.split() if isinstance(labels, str) else list(labels)
    if isinstance(labels, str) and len(words) == 1 and rank is not None and rank > 1 and len(words[0]) == rank:
        words = list(words[0])
    names, extents = [], []
    for word in words:
        name, _, extent = word.partition("=")
        if not is_label(name) or (extent and not extent.isdecimal()):
            raise ShapeError(f"cannot read the label {word!r}; written like 'src' or 'src=34'")
        if name.lower() == "val":
            raise ShapeError("a label cannot be called 'val': that is the value column")
        names.append(name)
        extents.append(int(extent) if extent else None)
    if len(set(names)) != len(names):
        raise ShapeError(f"labels must be distinct, got {' '.join(names)}")
    return tuple(names), tuple(extents)
