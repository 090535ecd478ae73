"""Relations as tables with one row per block, and back.

    label columns   the number of the part that the block is of, per label
    val             the block: `arrow.fixed_shape_tensor` when all are of one shape, else a flat list in row-major order
    val.present     the same in uint8, 1 where the cell is present, for relations whose blocks have holes
    val.shape       the shape of each block, where they differ

The schema's metadata says the rest: `einsql.type` is the type as print-outs write it (labels, extents, cuts, dtype,
presence), `einsql.fill` the fill as JSON, `einsql.domain.LABEL` the dictionary of a label as an Arrow stream in base64.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from einsql.arrow import block_field, list_field, read_values
from einsql.cells import Storage, cell_cuts, cell_text
from einsql.domains import Domain
from gpu_exec.batch import Batch, empty_batch, keys_of, linear_keys, recut
from planner.dtypes import BOOL
from planner.errors import DataError, EinsqlError, ShapeError
from planner.relation_type import Label, RelationType, cell_storage, parse_type
from planner.scalar import Value

Array = np.ndarray
TYPE, FILL, DOMAIN = b"einsql.type", b"einsql.fill", b"einsql.domain."
PRESENT, SHAPE = "val.present", "val.shape"  # no label holds a dot


# ---------------------------------------------------------------------------------------------------------------- out


def block_table(batch: Batch, fill: Value | None, domains: Mapping[Label, Domain]) -> pa.Table:
    """One row per block, in the order of keys."""
    labels = batch.type.labels
    made = [(pa.field(label, pa.int64()), pa.array(batch.keys[:, i])) for i, label in enumerate(labels)]
    if len(batch.stacks) == 1:
        made.append(block_field("val", batch.stacks[0], batch.type.dtype, labels))
        if batch.masks is not None:
            made.append(block_field(PRESENT, batch.masks[0], BOOL, labels))
    else:
        rows = range(batch.rows)
        made.append(list_field("val", [batch.block(row) for row in rows], batch.type.dtype))
        if batch.masks is not None:
            made.append(list_field(PRESENT, [mask for row in rows if (mask := batch.mask(row)) is not None], BOOL))
        shapes = [list(batch.block(row).shape) for row in rows]
        made.append((pa.field(SHAPE, pa.list_(pa.int64())), pa.array(shapes, pa.list_(pa.int64()))))
    metadata: dict[bytes, str | bytes] = {TYPE: str(batch.type), FILL: _fill_text(fill)}
    metadata |= {DOMAIN + label.encode(): _packed(domain) for label, domain in domains.items()}
    return pa.table([array for _, array in made], schema=pa.schema([field for field, _ in made], metadata))


def _fill_text(fill: Value | None) -> str:
    return json.dumps([fill.real, fill.imag] if isinstance(fill, complex) else fill)


def _packed(domain: Domain) -> bytes:
    sink = pa.BufferOutputStream()
    table = pa.table({"values": domain.values})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return base64.b64encode(sink.getvalue())


# ----------------------------------------------------------------------------------------------------------------- in


def is_block_table(table: pa.Table) -> bool:
    """Whether the metadata says how the rows make a relation."""
    return TYPE in (table.schema.metadata or {})


def read_block_table(name: str, table: pa.Table, storage: Storage) -> tuple[Batch, Value | None, dict[Label, Domain]]:
    """The relation that a table of `block_table` holds; rows may be missing, and are then absent blocks.

    Raises   DataError where the rows are not what the metadata says
    """
    metadata = table.schema.metadata
    try:
        type = parse_type(metadata[TYPE].decode())
        text = json.loads(metadata.get(FILL, b"0"))
        fill: Value | None = complex(*text) if isinstance(text, list) else text
        domains = {
            key.removeprefix(DOMAIN).decode(): _unpacked(packed)
            for key, packed in metadata.items()
            if key.startswith(DOMAIN)
        }
    except (EinsqlError, ValueError, TypeError, pa.ArrowException) as error:
        raise DataError(f"cannot read the metadata of {name}: {error}") from None
    keys, order = _keys(name, table, type)
    if type.presence == "complete" and len(keys) < type.possible_rows:
        type = replace(type, presence="blocks")
    batch = empty_batch(type, keys)
    for column, stacks, dtype in (("val", batch.stacks, type.dtype), (PRESENT, batch.masks or (), BOOL)):
        if stacks:
            _fill_stacks(name, table, column, batch, stacks, order, dtype.name)
    return stored(name, batch, storage), fill, domains


def _unpacked(packed: bytes) -> Domain:
    with pa.ipc.open_stream(base64.b64decode(packed)) as reader:
        column = reader.read_all().column("values")
    return Domain(pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type))


def _keys(name: str, table: pa.Table, type: RelationType) -> tuple[Array, Array]:
    """The keys in order, and which row each is in."""
    for column in (*type.labels, "val", *([PRESENT] if type.presence == "cells" else [])):
        if table.column_names.count(column) != 1 or table.column(column).null_count:
            raise DataError(f"{name} is {type}, so it has one column {column!r} without NULL")
    columns = [np.asarray(table.column(label).to_numpy(), np.int64) for label in type.labels]
    keys = np.stack(columns, axis=1) if columns else np.zeros((len(table), 0), np.int64)
    if len(keys) and ((keys < 0) | (keys >= np.asarray(type.counts, np.int64))).any():
        row = int(np.argmax(((keys < 0) | (keys >= np.asarray(type.counts, np.int64))).any(axis=1)))
        raise DataError(
            f"row {row} of {name} is block {cell_text(type.labels, keys[row])}, and {type} has no such block"
        )
    linear = linear_keys(keys, type.counts)
    order = np.argsort(linear, kind="stable")
    twice = np.flatnonzero(np.diff(linear[order]) == 0)
    if len(twice):
        key = cell_text(type.labels, keys[order[twice[0]]])
        raise DataError(f"{len(twice)} duplicate blocks in {name}, the first {key}")
    return keys[order], order


def _fill_stacks(
    name: str, table: pa.Table, column: str, batch: Batch, stacks: tuple[Array, ...], order: Array, dtype: str
) -> None:
    """Write the blocks of a column into the stacks, class by class."""
    field = table.schema.field(column).with_metadata({b"einsql.dtype": dtype})
    rows = table.column(column).take(pa.array(order))
    for c, shape in enumerate(batch.layout.shapes):
        mine = np.flatnonzero(batch.layout.shape_class == c)
        try:
            found = read_values(f"column {column!r} of {name}", field, rows.take(pa.array(mine)), shape)
        except ShapeError as error:
            raise DataError(f"blocks {shape} of {name}: {error}") from None
        if found.dtype.name != dtype:
            raise DataError(f"column {column!r} of {name} holds {found.dtype.name}, its type says {dtype}")
        stacks[c][batch.layout.position[mine]] = found.array


# ------------------------------------------------------------------------------------- blocks without such metadata


def block_batch(name: str, type: RelationType, keys: Array, blocks: Array, storage: Storage) -> Batch:
    """A batch of equal full blocks [n, *block] with distinct keys in order; other blocks are absent."""
    if not type.cells:
        keys, blocks = keys[:0], blocks[:0]
    complete = len(keys) == type.possible_rows
    kind = cell_storage(type.dtype) if type.cells and all(cut.is_cells for cut in type.cuts) else "block"
    type = replace(type, storage=kind, presence="complete" if complete else "blocks")
    batch = empty_batch(type, keys)
    if len(keys):
        batch.stacks[0][...] = blocks
    return stored(name, batch, storage)


def stored(name: str, batch: Batch, storage: Storage) -> Batch:
    """The batch as `storage` wants it."""
    type = batch.type
    if storage.dense and type.presence != "complete":
        raise DataError(f"{name} is declared dense, but {_missing(batch)}")
    if storage.cut:
        presence = "complete" if type.presence == "complete" else "cells"
        return recut(
            batch, RelationType(type.labels, storage.cuts(type.labels, type.extents), type.dtype, presence=presence)
        )
    if storage.dense is False:
        presence = "complete" if type.presence == "complete" else "blocks"
        kind = cell_storage(type.dtype)
        return recut(batch, RelationType(type.labels, cell_cuts(type.extents), type.dtype, kind, presence))
    return batch


def _missing(batch: Batch) -> str:
    counts = batch.type.counts
    have = linear_keys(batch.keys, counts)
    if len(have) == batch.type.possible_rows:
        return "its blocks have holes"
    gap = int(np.argmax(np.r_[have, -1] != np.arange(len(have) + 1)))
    key = cell_text(batch.type.labels, keys_of(np.array([gap]), counts)[0])
    return f"{batch.type.possible_rows - len(have)} of {batch.type.possible_rows} blocks are missing, the first {key}"
