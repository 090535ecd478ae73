"""Runs a script of SQL steps in DuckDB: one connection per session, one cursor per run, temporary tables per cursor."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
from threadpoolctl import ThreadpoolController

from einsql.duckdb.arena import Arena, Block
from einsql.duckdb.functions import Kernels
from einsql.relation import Relation
from gpu_exec.batch import Batch, empty_batch, from_cells, from_dense, grid_keys, linear_keys, starts_of
from gpu_exec.kernels.dtype import numpy_dtype
from planner.cuts import Cut
from planner.errors import EinsqlError, ExecutionError, IntegerOverflowError
from planner.relation_type import RelationType
from planner.sqlgen import Script

ONE_VECTOR = 2048  # rows that DuckDB takes at a time
SETTINGS = ("SET preserve_insertion_order = false", "SET enable_progress_bar = false")


@dataclass(frozen=True)
class ScriptRun:
    """The result of a script, and what was counted: block contractions and maps, and the arena's high-water mark."""

    batch: Batch
    kernel_calls: int
    peak_bytes: int


class DuckDBEngine:
    """One in-process DuckDB with the kernels registered. Runs are one at a time: an arena belongs to one run."""

    def __init__(self) -> None:
        threads = self._cores = self._threads = os.cpu_count() or 1
        self._connection = duckdb.connect(config={"threads": threads})
        for setting in SETTINGS:
            self._connection.execute(setting)
        self._team = ThreadPoolExecutor(threads, thread_name_prefix="einsql-duckdb")
        self._kernels = Kernels(self._team)
        self._kernels.register(self._connection)
        self._blas = ThreadpoolController()
        self._lock = threading.Lock()

    def _use_threads(self, rows: int) -> None:
        """DuckDB on all cores, or on one where tables are so short that handing out their rows costs more, 3.5 ms a
        step against 2.0: the team computes the blocks anyway."""
        threads = 1 if rows <= ONE_VECTOR else self._cores
        if threads != self._threads:
            self._connection.execute(f"SET threads = {threads}")
            self._threads = threads

    def close(self) -> None:
        """End the worker threads and the connection."""
        self._team.shutdown()
        self._connection.close()

    def run(self, script: Script, relations: Mapping[str, Relation], limit: int | None = None) -> ScriptRun:
        """Run every step and read the result; handles die with their tables, and all of them with the run.

        limit    bytes that blocks may hold at a time
        """
        with self._lock, self._blas.limit(limits=1, user_api="blas"):
            arena = self._kernels.arena = Arena(limit)
            cursor = self._connection.cursor()
            try:
                stored = _stored(script, relations, arena)
                for name, table in stored.items():
                    cursor.register(name, table)
                self._use_threads(max(map(len, stored.values()), default=0))
                arena.fresh()
                handles: dict[str, list[int]] = {}
                for step in script.steps:
                    query = step.query.sql(dialect="duckdb", copy=False)
                    cursor.execute(f'CREATE TEMPORARY TABLE "{step.name}" AS {query}')
                    handles[step.name] = arena.fresh()
                    for name in step.free:  # a table whose last reader is done, and the blocks it names
                        cursor.execute(f'DROP TABLE "{name}"')
                        arena.free(handles.pop(name))
                batch = _result(cursor, script, arena, relations)
            except duckdb.Error as error:
                raise _translated(error, arena) from error
            finally:
                cursor.close()
            return ScriptRun(batch, arena.calls, arena.peak)


def _translated(error: duckdb.Error, arena: Arena) -> BaseException:
    """The error of a kernel with its own type; DuckDB's own overflow as ours."""
    if arena.error is not None:
        if isinstance(arena.error, EinsqlError) or not isinstance(arena.error, Exception):
            return arena.error
        return ExecutionError(f"a kernel failed in DuckDB: {type(arena.error).__name__}: {arena.error}")
    text = str(error)
    if "verflow" in text or "out of range" in text:
        return IntegerOverflowError(
            f"a value leaves its type in DuckDB: {text.splitlines()[0]}\n  cast an operand to DOUBLE"
        )
    return ExecutionError(f"DuckDB refused a step: {text}")


# ------------------------------------------------------------------------------------------------------ tables in


def _stored(script: Script, relations: Mapping[str, Relation], arena: Arena) -> dict[str, pa.Table]:
    """Every table that a script wants to find, as Arrow."""
    tables = {name: _scan(relations[relation].under(type), arena) for name, (relation, type) in script.scans.items()}
    tables |= {name: _grid(type, arena) for name, type in script.grids.items()}
    return tables | {name: _overlaps(old, new) for name, (old, new) in script.overlaps.items()}


def _keys(keys: np.ndarray) -> dict[str, pa.Array]:
    return {f"k{i}": pa.array(keys[:, i]) for i in range(keys.shape[1])}


def _scan(batch: Batch, arena: Arena) -> pa.Table:
    if batch.type.storage == "scalar":
        values = batch.stacks[0].reshape(-1) if batch.stacks else np.zeros(0, numpy_dtype(batch.type.dtype))
        return pa.table({**_keys(batch.keys), "val": pa.array(values)})
    starts = [starts_of(cut) for cut in batch.type.cuts]
    handles = []
    for row, key in enumerate(batch.keys):
        origin = tuple(int(s[k]) for s, k in zip(starts, key, strict=True))
        handles.append(arena.put(Block(batch.block(row), batch.mask(row), origin)))
    return pa.table({**_keys(batch.keys), "block": pa.array(handles, pa.int64())})


def _grid(type: RelationType, arena: Arena) -> pa.Table:
    """Every key of a type; for blocks, with an empty block in the right place."""
    keys = grid_keys(type.counts)
    if type.storage == "scalar":
        return pa.table({**_keys(keys), "block": pa.nulls(len(keys), pa.int64())})
    starts = [starts_of(cut) for cut in type.cuts]
    handles = []
    for key in keys:
        shape = type.block_shape(tuple(int(k) for k in key))
        empty = np.zeros(shape, numpy_dtype(type.dtype))
        handles.append(
            arena.put(Block(empty, np.zeros(shape, bool), tuple(int(s[k]) for s, k in zip(starts, key, strict=True))))
        )
    return pa.table({**_keys(keys), "block": pa.array(handles, pa.int64())})


def _overlaps(old: Cut, new: Cut) -> pa.Table:
    """Which parts s of one cut share a cell with which parts k of another."""
    pairs = [
        (s, k)
        for s in range(old.count)
        for k in range(new.part_of(old.start(s)), new.part_of(old.start(s + 1) - 1) + 1)
    ]
    return pa.table(
        {"s": pa.array([s for s, _ in pairs], pa.int64()), "k": pa.array([k for _, k in pairs], pa.int64())}
    )


# ----------------------------------------------------------------------------------------------------- result out


def _result(
    cursor: duckdb.DuckDBPyConnection, script: Script, arena: Arena, relations: Mapping[str, Relation]
) -> Batch:
    """The last table as a batch, sorted by key."""
    type = script.result_type
    assert type is not None
    if script.result in script.scans:
        relation, stored = script.scans[script.result]
        return relations[relation].under(stored)
    table = cursor.sql(f'SELECT * FROM "{script.result}"').to_arrow_table()
    keys = (
        np.stack([table.column(f"k{i}").to_numpy() for i in range(len(type.labels))], axis=1)
        if type.labels
        else np.zeros((len(table), 0))
    )
    keys = keys.astype(np.int64)
    payload = table.column("val" if type.storage == "scalar" else "block").to_numpy()
    if type.storage == "scalar":
        return from_cells(keys, payload.astype(numpy_dtype(type.dtype)), type)
    order = np.argsort(linear_keys(keys, type.counts))
    return _assembled(type, keys[order], [arena.get(int(h)) for h in payload[order]])


def _assembled(type: RelationType, keys: np.ndarray, blocks: list[Block]) -> Batch:
    if type.presence != "cells":  # BLOCK_KEEP masks a block where the plan drops its row
        kept = [i for i, block in enumerate(blocks) if block.mask is None or block.mask.any()]
        keys, blocks = keys[kept], [blocks[i] for i in kept]
    if len(blocks) == 1 and type.possible_rows == 1:
        return from_dense(blocks[0].values, type, _mask(blocks[0]) if type.presence == "cells" else None)
    batch = empty_batch(type, keys)
    for row, block in enumerate(blocks):
        batch.block(row)[...] = block.values
        mask = batch.mask(row)
        if mask is not None:
            mask[...] = _mask(block)
    return batch


def _mask(block: Block) -> np.ndarray:
    return np.ones(block.values.shape, bool) if block.mask is None else block.mask
