"""Rows of cells, or of equal blocks, as a batch: each once, dense where complete, cut as the caller wants it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gpu_exec.batch import Batch, from_cells, from_dense, linear_keys, to_dense
from gpu_exec.kernels.dtype import numpy_dtype
from gpu_exec.kernels.expression import largest
from planner.cuts import Cut
from planner.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, DType
from planner.errors import DataError, IntegerOverflowError, ShapeError
from planner.relation_type import Label, RelationType, cell_storage

Array = np.ndarray


class Names(Protocol):
    """What errors call the coordinates of a label."""

    def __getitem__(self, code: int, /) -> str: ...


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


def cell_cuts(shape: Sequence[int]) -> tuple[Cut, ...]:
    """Every label cut to single cells."""
    return tuple(Cut(e, parts=max(e, 1)) for e in shape)


def cell_text(labels: Sequence[Label], coordinate: Sequence[object]) -> str:
    """`(src=0, dst=1)`."""
    return "(" + ", ".join(f"{name}={c}" for name, c in zip(labels, coordinate, strict=True)) + ")"


@dataclass(frozen=True)
class Cells:
    """Present cells of a relation, in row-major order: coordinates [n, rank] and values [n]."""

    name: str
    labels: tuple[Label, ...]
    shape: tuple[int, ...]
    dtype: DType
    coordinates: Array
    values: Array

    def batch(self, storage: Storage, called: Mapping[Label, Names] | None = None) -> Batch:
        """The rows as `storage` wants them. `called` says what errors call the coordinates of a label."""
        complete = len(self.values) == np.prod(self.shape, dtype=object)
        if storage.dense and not complete:
            raise DataError(self._missing(called or {}))
        if complete and storage.dense is not False:
            whole = np.zeros(self.shape, numpy_dtype(self.dtype))
            whole[tuple(self.coordinates.T)] = self.values if self.shape else self.values[0]
            return from_dense(whole, RelationType(self.labels, storage.cuts(self.labels, self.shape), self.dtype))
        if storage.cut:
            presence = "complete" if complete else "cells"
            cuts = storage.cuts(self.labels, self.shape)
            return from_cells(
                self.coordinates, self.values, RelationType(self.labels, cuts, self.dtype, presence=presence)
            )
        return from_cells(self.coordinates, self.values, self._rows("complete" if complete else "blocks"))

    def _rows(self, presence: str) -> RelationType:
        return RelationType(self.labels, cell_cuts(self.shape), self.dtype, cell_storage(self.dtype), presence)

    def _missing(self, called: Mapping[Label, Names]) -> str:
        present = to_dense(from_cells(self.coordinates, self.values, self._rows("blocks")))[1]
        absent = np.argwhere(~present)
        first = cell_text(self.labels, called_by(self.labels, absent[0], called))
        return (
            f"{self.name} is declared dense, but {len(absent)} of {int(np.prod(self.shape))} cells are missing"
            f", the first {first}"
        )


def called_by(labels: Sequence[Label], coordinate: Array, called: Mapping[Label, Names]) -> tuple[object, ...]:
    """A coordinate in the words of its labels' domains."""
    return tuple(
        called[label][int(c)] if label in called else int(c) for label, c in zip(labels, coordinate, strict=True)
    )


def distinct(
    name: str,
    labels: Sequence[Label],
    coordinates: Array,
    values: Array,
    dtype: DType,
    add_up: bool,
    called: Mapping[Label, Names],
) -> tuple[Array, Array]:
    """Rows in order, each coordinate once: duplicates are refused, or added up in `dtype` when the caller wants that.

    coordinates, values   [n, rank] and [n, *block]
    Raises                DataError with the first duplicate, IntegerOverflowError for a sum that `dtype` cannot hold
    """
    order = _order(coordinates)
    coordinates, values = coordinates[order], values[order]
    if len(values) < 2:
        return coordinates, values
    new = np.r_[True, (coordinates[1:] != coordinates[:-1]).any(axis=1)]
    extra = int(len(values) - new.sum())
    if not extra:
        return coordinates, values
    if not add_up:
        at = int(np.flatnonzero(~new)[0])
        cell = cell_text(labels, called_by(labels, coordinates[at], called))
        shown = f" with values {values[at - 1]} and {values[at]}" if values.ndim == 1 else ""
        raise DataError(
            f"{extra} duplicate coordinates in {name}, the first {cell}{shown}"
            "\n  add them up beforehand, or pass duplicates='sum'"
        )
    first = np.flatnonzero(new)
    return coordinates[first], _sums(name, values, first, dtype)


def _order(coordinates: Array) -> Array:
    """Rows in row-major order of their coordinates, equal ones as they came."""
    counts = [int(top) + 1 for top in coordinates.max(axis=0, initial=-1)]
    return np.argsort(linear_keys(coordinates, counts), kind="stable")


def _sums(name: str, values: Array, first: Array, dtype: DType) -> Array:
    if dtype == BOOL:
        return np.logical_or.reduceat(values, first)
    if dtype in (FLOAT16, BFLOAT16):
        return np.add.reduceat(values.astype(numpy_dtype(FLOAT32)), first).astype(numpy_dtype(dtype))
    longest = int(np.diff(np.r_[first, len(values)]).max())
    if not dtype.is_int or largest(values) * longest <= dtype.range[1]:
        return np.add.reduceat(values, first, dtype=values.dtype)
    low, high = dtype.range
    sums = np.add.reduceat(values.astype(object), first)
    outside = [value for value in sums.reshape(-1) if not low <= value <= high]
    if outside:
        raise IntegerOverflowError(
            f"duplicates in {name} add up to {outside[0]}, which {dtype.name} cannot hold; pass a wider dtype"
        )
    return sums.astype(values.dtype)
