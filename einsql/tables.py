"""A table as a relation: label columns, a value column, and either a cell or a block in every row.

Which labels a row of blocks cuts: a label with a column is cut, and its column holds the number of the block; a label
without one lies inside. The axes of a block are those of all labels, or of the labels without a column, in the order of
`labels` - or as the names of the tensor's axes say, where these are labels. A label with a column and no axis is cut to
single cells.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from einsql.arrow import Values, is_blocks, read_values
from einsql.blocks import block_batch
from einsql.cells import Cells, Storage, distinct
from einsql.domains import LARGE, Domain, canonical, domain_of, kind_of, union
from einsql.files import Origin
from einsql.labels import LabelSpec
from einsql.relation import VALUE
from gpu_exec.batch import Batch
from planner.cuts import Cut
from planner.dtypes import INT64
from planner.errors import DataError, ShapeError, UnsupportedError
from planner.relation_type import Label, RelationType

Array = np.ndarray


@dataclass(frozen=True)
class TableOptions:
    """What `create` says about a table.

    val           the value column; None: `val`, else the one that is no label, else every row is worth 1
    block_shape   of a value column of lists
    add_up        whether rows of equal coordinates are added up; they are refused otherwise
    shared        the session's domains by name, which labels that name them extend in place
    """

    val: str | None
    block_shape: Sequence[int] | None
    add_up: bool
    shared: dict[str, Domain]


def from_table(
    origin: Origin, table: pa.Table, labels: Sequence[LabelSpec], storage: Storage, options: TableOptions
) -> tuple[Batch, dict[Label, Domain], str]:
    """The rows of a table, the dictionaries of those labels that have one, and what the value column is called.

    Raises   ShapeError for columns that are not there, UnsupportedError for types, DataError for rows
    """
    _refuse_repeated(origin.name, table)
    value = _value_column(origin.name, table, labels, options.val)
    blocks = value is not None and (is_blocks(table.schema.field(value)) or options.block_shape is not None)
    with_column = [spec for spec in labels if spec.name in table.column_names]
    if not blocks:
        _refuse_missing(origin.name, table, [spec.name for spec in labels])
    for column in (*(spec.name for spec in with_column), *([value] if value is not None else [])):
        _refuse_null(origin, table, column)
    columns = {spec.name: _label_column(origin.name, table, spec.name) for spec in with_column}
    domains = _domains(columns, with_column, options.shared)
    keys = {n: domains[n].codes(column) if n in domains else _integers(column) for n, column in columns.items()}
    values = _values(origin, table, value, options.block_shape)
    if blocks:
        return _block_rows(origin, labels, keys, values, storage, options.add_up, domains), domains, value or VALUE
    names = tuple(spec.name for spec in labels)
    coordinates = np.stack([keys[n] for n in names], axis=1) if names else np.zeros((len(table), 0), np.int64)
    shape = tuple(_extent(origin, spec, keys[spec.name], domains) for spec in labels)
    coordinates, array = distinct(origin.name, names, coordinates, values.array, values.dtype, options.add_up, domains)
    batch = Cells(origin.name, names, shape, values.dtype, coordinates, array).batch(storage, domains)
    return batch, domains, value or VALUE


# ------------------------------------------------------------------------------------------------------------- columns


def _refuse_repeated(name: str, table: pa.Table) -> None:
    for column in table.column_names:
        if table.column_names.count(column) > 1:
            raise DataError(f"{name} has two columns {column!r}; rename one")


def _refuse_missing(name: str, table: pa.Table, columns: Sequence[str]) -> None:
    for column in columns:
        if column not in table.column_names:
            close = difflib.get_close_matches(column, table.column_names, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise ShapeError(f"{name} has no column {column!r}; its columns are {', '.join(table.column_names)}{hint}")


def _value_column(name: str, table: pa.Table, labels: Sequence[LabelSpec], val: str | None) -> str | None:
    if val is not None:
        _refuse_missing(name, table, [val])
        return val
    rest = [c for c in table.column_names if c not in {spec.name for spec in labels}]
    if len(rest) > 1 and "val" not in rest:
        _refuse_missing(name, table, [spec.name for spec in labels])
        raise ShapeError(
            f"say which column of {name} holds the values, as in val={rest[0]!r}"
            f"; besides labels it has {', '.join(rest)}"
        )
    return "val" if "val" in rest else rest[0] if rest else None


def _refuse_null(origin: Origin, table: pa.Table, column: str) -> None:
    nulls = table.column(column).null_count
    if nulls:
        row = pc.index(table.column(column).is_null(), True).as_py()
        floats = pa.types.is_floating(table.column(column).type)
        raise DataError(
            f"column {column!r} of {origin.name} holds {nulls} NULL, the first in {origin.row(row)}"
            "; a cell is present or absent, drop those rows"
            + ("\n  pandas says NULL for NaN; where NaN is the value, pass a dict of NumPy columns" * floats)
        )


def _values(origin: Origin, table: pa.Table, column: str | None, block_shape: Sequence[int] | None) -> Values:
    if column is None:
        return Values(np.ones(len(table), np.int64), INT64)
    field = table.schema.field(column)
    if origin.csv_file is not None and kind_of(field.type) == "text":
        for row, text in enumerate(table.column(column).to_pylist()):
            if not _is_number(text):
                raise DataError(f"column {column!r} of {origin.name} holds {text!r} in {origin.row(row)}, no number")
    return read_values(f"column {column!r} of {origin.name}", field, table.column(column), block_shape)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# -------------------------------------------------------------------------------------------------------------- labels


def _label_column(name: str, table: pa.Table, label: Label) -> pa.Array:
    column = table.column(label)
    if pa.types.is_null(column.type) and not len(column):
        return pa.array([], pa.int64())
    if kind_of(column.type) is None:
        raise UnsupportedError(
            f"label {label!r} of {name} has type {column.type}"
            "; labels are integers, strings, dates, timestamps, UUIDs or booleans"
        )
    return canonical(column)


def _integers(column: pa.Array) -> Array:
    return np.asarray(column.to_numpy(zero_copy_only=False), np.int64)


def _domains(
    columns: Mapping[Label, pa.Array], labels: Sequence[LabelSpec], shared: dict[str, Domain]
) -> dict[Label, Domain]:
    """The dictionary of every label that has one; labels that name a domain share one, which grows."""
    found: dict[Label, Domain] = {}
    for spec in labels:
        column = columns[spec.name]
        whole = pa.types.is_integer(column.type)
        large = whole and spec.extent is None and len(column) > 0 and pc.max(column).as_py() >= LARGE
        if spec.domain is not None or large or not whole:
            found[spec.name] = domain_of(column)
    for spec in labels:
        if spec.domain is not None:
            known = [shared[spec.domain]] if spec.domain in shared else []
            shared[spec.domain] = union([*known, found[spec.name]])
    return found | {spec.name: shared[spec.domain] for spec in labels if spec.domain is not None}


def _extent(origin: Origin, spec: LabelSpec, coordinates: Array, domains: Mapping[Label, Domain]) -> int:
    """The extent of a label: as stated, or as large as its coordinates or its dictionary want it."""
    name, stated = spec.name, spec.extent
    if name in domains:
        size = len(domains[name])
        if stated is not None and stated != size:
            raise DataError(
                f"label {name!r} of {origin.name} is stated as {stated}, but has {size} distinct values"
                f" of type {domains[name].values.type}"
            )
        return size
    if len(coordinates) and coordinates.min() < 0:
        where = origin.row(int(coordinates.argmin()))
        raise DataError(f"label {name!r} of {origin.name} holds {coordinates.min()} in {where}; coordinates start at 0")
    top = int(coordinates.max()) + 1 if len(coordinates) else 0
    if stated is not None and top > stated:
        where = origin.row(int(coordinates.argmax()))
        raise DataError(f"label {name!r} of {origin.name} holds {top - 1} in {where}, outside its extent {stated}")
    return top if stated is None else stated


# -------------------------------------------------------------------------------------------------------------- blocks


def _block_rows(
    origin: Origin,
    labels: Sequence[LabelSpec],
    keys: Mapping[Label, Array],
    values: Values,
    storage: Storage,
    add_up: bool,
    domains: Mapping[Label, Domain],
) -> Batch:
    names = tuple(spec.name for spec in labels)
    axes = _axes(origin.name, names, keys, values)
    array = np.transpose(values.array, [0, *(axes.index(n) + 1 for n in names if n in axes)])
    sizes = dict(zip((n for n in names if n in axes), array.shape[1:], strict=True))
    cuts = tuple(_cut(origin, spec, keys.get(spec.name), sizes.get(spec.name), domains) for spec in labels)
    rows = len(array)
    grid = np.stack([keys.get(n, np.zeros(rows, np.int64)) for n in names], axis=1)
    grid, array = distinct(origin.name, names, grid, array, values.dtype, add_up, domains)
    type = RelationType(names, cuts, values.dtype)
    blocks = array.reshape(len(array), *(sizes.get(n, 1) for n in names))
    return block_batch(origin.name, type, grid, blocks, storage)


def _axes(name: str, labels: Sequence[Label], keys: Mapping[Label, Array], values: Values) -> tuple[Label, ...]:
    """The labels that the axes of a block belong to, in the order of its axes."""
    rank = values.array.ndim - 1
    inside = tuple(label for label in labels if label not in keys)
    if len(set(values.axes)) == rank and set(inside) <= set(values.axes) <= set(labels):
        return values.axes
    if rank == len(labels):
        return tuple(labels)
    if rank == len(inside):
        return inside
    raise ShapeError(
        f"blocks of {name} have {rank} axes, shape {values.array.shape[1:]}: wanted {len(labels)}, one per label"
        f" ({' '.join(labels)}), or {len(inside)}, one per label without a column ({' '.join(inside) or 'none'})"
    )


def _cut(origin: Origin, spec: LabelSpec, keys: Array | None, size: int | None, domains: Mapping[Label, Domain]) -> Cut:
    """How a label is cut: in blocks of `size` by its column, to single cells without an axis, not at all by neither."""
    name, stated = spec.name, spec.extent
    if keys is None:
        assert size is not None
        if stated is not None and stated != size:
            raise ShapeError(f"label {name!r} of {origin.name} is stated as {stated}, but its blocks have {size}")
        return Cut(size, parts=1)
    if size is None:
        extent = _extent(origin, spec, keys, domains)
        return Cut(extent, parts=max(extent, 1))
    if name in domains:
        raise ShapeError(
            f"label {name!r} of {origin.name} numbers blocks, so its column holds integers from 0, no {domains[name]}"
        )
    if stated is not None and size and stated % size:
        raise ShapeError(f"label {name!r} of {origin.name} is stated as {stated}, no multiple of its blocks' {size}")
    parts = None if stated is None or not size else stated // size
    count = _extent(origin, LabelSpec(name, parts), keys, domains)
    return Cut(count * size, parts=max(count, 1))
