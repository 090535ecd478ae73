"""Tensor relations from what users have: arrays, scipy matrices, tables, files, other relations."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from einsql.blocks import is_block_table, read_block_table, stored
from einsql.cells import Cells, Storage, distinct
from einsql.domains import Domain
from einsql.files import Origin, read_file
from einsql.inputs import read_input
from einsql.labels import LabelSpec, axis_labels, read_labels
from einsql.relation import VALUE, Relation
from einsql.tables import TableOptions, from_table
from einsql.values import fill_value, typed_values
from gpu_exec.batch import Batch, from_dense
from planner.errors import ShapeError
from planner.relation_type import Label, RelationType
from planner.scalar import Value

Array = np.ndarray
Domains = Mapping[Label, Domain]


def create_relation(
    name: str,
    data: Any,
    labels: str | Sequence[str] | None,
    val: str | None,
    fill: Value,
    storage: Storage,
    add_up: bool,
    block_shape: Sequence[int] | None = None,
    shared: dict[str, Domain] | None = None,
) -> Relation:
    """A relation from whatever `data` is; nothing of it is shared with the caller.

    shared   the session's domains by name; those that labels name are entered as they grow
    Raises   EinsqlError where data and words disagree
    """
    options = TableOptions(val, block_shape, add_up, {} if shared is None else shared)
    origin = Origin(name)
    if isinstance(data, str | os.PathLike):
        data, csv_file = read_file(data)
        origin = Origin(name, csv_file)
    value = VALUE
    if isinstance(data, Relation):
        return _again(name, data, labels, fill, storage)
    if hasattr(data, "tocoo"):
        batch, domains = _from_scipy(name, data, labels, storage, options)
    else:
        found = read_input(name, data)
        if isinstance(found, pa.Table) and labels is None and is_block_table(found):
            batch, kept, domains = read_block_table(name, found, storage)
            fill = (kept or 0) if fill == 0 else fill
        elif isinstance(found, pa.Table):
            batch, domains, value = from_table(origin, found, _table_labels(name, found, labels), storage, options)
        else:
            batch, domains = _from_array(name, found, labels, storage, fill, options)
    return Relation(name, batch, fill_value(name, fill, batch.type.dtype), domains, value)


def _table_labels(name: str, table: pa.Table, labels: str | Sequence[str] | None) -> tuple[LabelSpec, ...]:
    if labels is None:
        raise ShapeError(
            f"say which columns of {name} are labels, as in labels='src dst'"
            f"; its columns are {', '.join(table.column_names)}"
        )
    return read_labels(labels)


def _again(
    name: str, relation: Relation, labels: str | Sequence[str] | None, fill: Value, storage: Storage
) -> Relation:
    """The cells of another relation, perhaps under other labels and cuts."""
    batch, domains = relation.batch, relation.domains
    if labels is not None:
        names = tuple(spec.name for spec in axis_labels(name, labels, relation.shape, "relation"))
        called = dict(zip(relation.labels, names, strict=True))
        batch = replace(batch, type=batch.type.with_labels(names))
        domains = {called[label]: domain for label, domain in domains.items()}
    batch = stored(name, batch, storage)
    fill = (relation.fill or 0) if fill == 0 else fill
    return Relation(name, batch, fill_value(name, fill, batch.type.dtype), domains, relation.value)


def _from_array(
    name: str,
    array: Array,
    labels: str | Sequence[str] | None,
    storage: Storage,
    fill: Value,
    options: TableOptions,
) -> tuple[Batch, Domains]:
    """An array; cells that a NumPy mask hides are absent."""
    values, dtype = typed_values(name, np.ma.getdata(array))
    specs = axis_labels(name, labels, array.shape, "array")
    names = tuple(spec.name for spec in specs)
    domains = _named_domains(name, specs, array.shape, options.shared)
    hidden = np.ma.getmaskarray(array) if np.ma.isMaskedArray(array) else None
    if storage.dense is False or (hidden is not None and hidden.any()):
        kept = np.ones(values.shape, bool) if hidden is None else ~hidden
        if storage.dense is False:
            kept = kept & np.asarray(values != fill)
        cells = Cells(name, names, values.shape, dtype, np.argwhere(kept), values[kept])
        return cells.batch(storage, domains), domains
    own = np.array(values, order="C")  # the database keeps its own copy
    return from_dense(own, RelationType(names, storage.cuts(names, values.shape), dtype)), domains


def _from_scipy(
    name: str, matrix: Any, labels: str | Sequence[str] | None, storage: Storage, options: TableOptions
) -> tuple[Batch, Domains]:
    coo = matrix.tocoo()
    specs = axis_labels(name, labels, coo.shape, "matrix")
    names = tuple(spec.name for spec in specs)
    domains = _named_domains(name, specs, coo.shape, options.shared)
    coords = coo.coords if hasattr(coo, "coords") else (coo.row, coo.col)
    coordinates = np.stack([np.asarray(c, np.int64) for c in coords], axis=1)
    values, dtype = typed_values(name, coo.data)
    coordinates, values = distinct(name, names, coordinates, values, dtype, options.add_up, domains)
    return Cells(name, names, tuple(coo.shape), dtype, coordinates, values).batch(storage, domains), domains


def _named_domains(
    name: str, specs: Sequence[LabelSpec], shape: Sequence[int], shared: Mapping[str, Domain]
) -> dict[Label, Domain]:
    """The dictionaries that axes name: position n of such an axis is the n-th value of the dictionary."""
    found: dict[Label, Domain] = {}
    for spec, extent in zip(specs, shape, strict=True):
        if spec.domain is None:
            continue
        if spec.domain not in shared:
            known = (
                f"there are {', '.join(sorted(shared))}" if shared else "tables make them, from the values they hold"
            )
            raise ShapeError(
                f"label {spec.name!r} of {name} names the domain {spec.domain!r}, which is not there; {known}"
            )
        if len(shared[spec.domain]) != extent:
            raise ShapeError(
                f"label {spec.name!r} of {name} has extent {extent}, its domain {spec.domain!r}"
                f" {len(shared[spec.domain])} values"
            )
        found[spec.name] = shared[spec.domain]
    return found
