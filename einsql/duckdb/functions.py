"""Kernels as DuckDB functions over handles.

    CONTRACT_SUM('ij,jk->ik', LIST(a.block ORDER BY ...), LIST(b.block ORDER BY ...))   join + aggregate, per group
    CONTRACT_MIN('ij,jk->ik', 'x0 + x1', '', '', LIST(...), LIST(...))                  any combine and reduce
    BLOCK_COMBINE('ij,ij->ij', 'x0 * x1', '', '', a.block, b.block)                     join only, per row
    BLOCK_MAP('t f', 'silu(x0)', block)         BLOCK_KEEP('t s', 's <= t', block)
    BLOCK_FILL('0', COALESCE(x.block, grid.block))
    BLOCK_RETILE(grid.block, LIST(block))       BLOCK_ASSEMBLE(grid.block, LIST(val), LIST(k0), LIST(k1))
    INTEGER_PRODUCT(LIST(val))   EXACT_SUM(LIST(val))   ERF(val)                    values, no handles

The strings of CONTRACT and BLOCK_COMBINE are subscripts, combine, predicate, and which operands are plain
columns: `0 2` says that operands 0 and 2 are value columns, each followed by its key columns. Trailing empty strings
are left out.

All are volatile: DuckDB would otherwise evaluate calls over constants while it explains or prepares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache

import duckdb
import numpy as np
import pyarrow as pa
from duckdb.func import PythonUDFType

from einsql.duckdb.arena import Arena, Block
from gpu_exec.kernels.dtype import dtype_of
from gpu_exec.kernels.exact_sum import exact_terms, rounded
from gpu_exec.kernels.expression import erf, evaluate, evaluate_condition, present_only, to_int64
from gpu_exec.kernels.join import UFUNCS, JoinKernel, merge
from gpu_exec.operators import SMALL_BLOCK, joined_cells, segment_reduce
from planner.dtypes import DType, check_int64
from planner.scalar import Arg, Call, Const, Expr, labels_of
from planner.scalar_text import parse, text
from planner.scalar_types import typed
from planner.subscripts import Labels, Subscripts, parse_subscripts

Array = np.ndarray
ARROW = PythonUDFType.ARROW
Rows = Sequence[Sequence[Block]]  # per operand, one block per pair


class Kernels:
    """The functions of one connection. `arena` is that of the run in progress; `team` runs the groups of a call."""

    def __init__(self, team: ThreadPoolExecutor) -> None:
        self.arena, self.team = Arena(), team

    def register(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make every function known to a connection and its cursors."""
        functions = {f"CONTRACT_{reduce.upper()}": self._contract(reduce) for reduce in UFUNCS}
        functions |= {
            "BLOCK_COMBINE": self._combine,
            "BLOCK_MAP": self._map,
            "BLOCK_KEEP": self._keep,
            "BLOCK_FILL": self._fill,
        }
        functions |= {"BLOCK_RETILE": self._retile, "BLOCK_ASSEMBLE": self._assemble}
        plain: dict[str, tuple[Callable[..., pa.Array], str]]
        plain = {"INTEGER_PRODUCT": (_integer_product, "BIGINT"), "EXACT_SUM": (_exact_sum, "DOUBLE")}
        plain |= {"ERF": (_erf, "DOUBLE"), "ROUND_FLOAT32": (_round_float32, "FLOAT")}
        for name, (function, result) in {**{n: (f, "BIGINT") for n, f in functions.items()}, **plain}.items():
            connection.create_function(name, self._parked(function), None, result, type=ARROW, side_effects=True)

    def _parked(self, function: Callable[..., pa.Array]) -> Callable[..., pa.Array]:
        """Keep the first error: DuckDB passes on its text only."""

        def run(*columns: pa.ChunkedArray) -> pa.Array:
            try:
                return function(*(c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in columns))
            except BaseException as error:
                if self.arena.error is None:
                    self.arena.error = error
                raise

        return run

    def _each(self, work: Callable[[int], Block], rows: int) -> pa.Array:
        """One block per row, on the team when there are several; handles are given out in the order of rows."""
        blocks = list(self.team.map(work, range(rows))) if rows > 1 else [work(i) for i in range(rows)]
        return pa.array([self.arena.put(block) for block in blocks], pa.int64())

    def _blocks(self, handles: Array) -> list[Block]:
        return [self.arena.get(int(handle)) for handle in handles]

    def _contract(self, reduce: str) -> Callable[..., pa.Array]:
        def contract(*columns: pa.Array) -> pa.Array:
            call, rest = _read_call(columns, reduce)
            lists = [_Lists(column) for column in rest]
            self.arena.called(lists[0].total)
            return self._each(lambda i: _group(call, self._operands(call, [g.row(i) for g in lists])), len(columns[0]))

        return contract

    def _combine(self, *columns: pa.Array) -> pa.Array:
        call, rest = _read_call(columns, None)
        flat = [_numpy(column) for column in rest]
        self.arena.called(len(columns[0]))
        return self._each(lambda i: _group(call, self._operands(call, [c[i : i + 1] for c in flat])), len(columns[0]))

    def _operands(self, call: _Call, columns: Sequence[Array]) -> list[list[Block]]:
        """The blocks of every pair; values of plain columns become blocks of one cell."""
        found, at = [], 0
        for i, labels in enumerate(call.subscripts.inputs):
            column, at = columns[at], at + 1
            if i not in call.plain:
                found.append(self._blocks(column))
                continue
            keys, at = columns[at : at + len(labels)], at + len(labels)
            shape = (1,) * len(labels)
            origins = zip(*(k.tolist() for k in keys), strict=True) if keys else ((),) * len(column)
            found.append(
                [Block(v.reshape(shape), None, o) for v, o in zip(np.split(column, len(column)), origins, strict=True)]
            )
        return found

    def _map(self, labels: pa.Array, expr: pa.Array, handles: pa.Array) -> pa.Array:
        names, tree = tuple(labels[0].as_py().split()), _parsed(expr[0].as_py())
        self.arena.called(len(handles))

        def one(block: Block) -> Block:
            checked, dtype = typed(tree, [dtype_of(block.values)])
            safe, operands = present_only(checked, [block.values], block.mask)
            values = evaluate(safe, operands, _label_values(tree, names, block), dtype, block.values.shape)
            return Block(_zero_absent(values, block.mask), block.mask, block.origin)

        blocks = self._blocks(_numpy(handles))
        return self._each(lambda i: one(blocks[i]), len(handles))

    def _keep(self, labels: pa.Array, where: pa.Array, handles: pa.Array) -> pa.Array:
        names, tree = tuple(labels[0].as_py().split()), _parsed(where[0].as_py())
        self.arena.called(len(handles))

        def one(block: Block) -> Block:
            checked, _ = typed(tree, [dtype_of(block.values)])
            safe, operands = present_only(checked, [block.values], block.mask)
            kept = np.broadcast_to(
                evaluate_condition(safe, operands, _label_values(tree, names, block)), block.values.shape
            )
            mask = kept if block.mask is None else kept & block.mask
            return Block(_zero_absent(block.values, mask), mask, block.origin)

        blocks = self._blocks(_numpy(handles))
        return self._each(lambda i: one(blocks[i]), len(handles))

    def _fill(self, value: pa.Array, handles: pa.Array) -> pa.Array:
        fill = _parsed(value[0].as_py())
        assert isinstance(fill, Const)
        self.arena.called(len(handles))

        def one(block: Block) -> Block:
            if block.mask is None:
                return block
            return Block(np.where(block.mask, block.values, block.values.dtype.type(fill.value)), None, block.origin)

        blocks = self._blocks(_numpy(handles))
        return self._each(lambda i: one(blocks[i]), len(handles))

    def _retile(self, grid: pa.Array, sources: pa.Array) -> pa.Array:
        """Blocks under another cut: copy every overlap of a source block into the target's box."""
        lists, targets = _Lists(sources), self._blocks(_numpy(grid))

        def one(i: int) -> Block:
            target, found = targets[i], self._blocks(lists.row(i))
            values, mask = np.zeros_like(target.values), np.zeros(target.values.shape, bool)
            for source in found:
                into, out = _overlap(target, source)
                values[into] = source.values[out]
                mask[into] = True if source.mask is None else source.mask[out]
            return Block(values, None if mask.all() else mask, target.origin)

        return self._each(one, len(targets))

    def _assemble(self, grid: pa.Array, values: pa.Array, *keys: pa.Array) -> pa.Array:
        """Single cells, gathered into the target's box."""
        lists, axes, targets = _Lists(values), [_Lists(k) for k in keys], self._blocks(_numpy(grid))

        def one(i: int) -> Block:
            target = targets[i]
            block, mask = np.zeros_like(target.values), np.zeros(target.values.shape, bool)
            at = tuple(axis.row(i) - first for axis, first in zip(axes, target.origin, strict=True))
            block[at], mask[at] = lists.row(i), True
            return Block(block, None if mask.all() else mask, target.origin)

        return self._each(one, len(targets))


def _integer_product(values: pa.Array) -> pa.Array:
    """The exact product of each list; DuckDB's PRODUCT is a DOUBLE."""
    lists = _Lists(values)
    exact = [check_int64(math.prod(lists.row(i).tolist()), "a product") for i in range(len(values))]
    return pa.array(exact, pa.int64())


def _exact_sum(values: pa.Array) -> pa.Array:
    """The exactly rounded sum of each list."""
    lists = _Lists(values)
    return pa.array([_fsum(lists.row(i)) for i in range(len(values))], pa.float64())


def _fsum(values: Array) -> float:
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # infinities of both signs, or a partial sum beyond float64
        with np.errstate(all="ignore"):
            return float(rounded(np.asarray(np.add.reduce(exact_terms(values)), object))[()])


def _round_float32(values: pa.Array) -> pa.Array:
    with np.errstate(all="ignore"):
        return pa.array(_numpy(values).astype(np.float32))


def _erf(values: pa.Array) -> pa.Array:
    return pa.array(erf(_numpy(values)).astype(np.float64))


@dataclass(frozen=True)
class _Call:
    """The constant strings of CONTRACT and BLOCK_COMBINE. `plain` numbers the operands that are value columns."""

    subscripts: Subscripts
    combine: Expr
    reduce: str | None
    where: Expr | None
    plain: frozenset[int]


def _read_call(columns: Sequence[pa.Array], reduce: str | None) -> tuple[_Call, list[pa.Array]]:
    strings = [column[0].as_py() for column in columns if pa.types.is_string(column.type)]
    return _call(reduce, *strings), list(columns[len(strings) :])


@lru_cache(maxsize=1024)
def _call(reduce: str | None, subscripts: str, combine: str = "", where: str = "", plain: str = "") -> _Call:
    expr = parse(combine) if combine else Call("mul", (Arg(0), Arg(1)))
    return _Call(
        parse_subscripts(subscripts), expr, reduce, parse(where) if where else None, frozenset(map(int, plain.split()))
    )


_parsed = lru_cache(maxsize=1024)(parse)


@lru_cache(maxsize=1024)
def _kernel(call: _Call, dtypes: tuple[DType, ...], masked: bool) -> JoinKernel:
    return JoinKernel(call.subscripts, call.combine, call.reduce, call.where, dtypes, masked)


class _Lists:
    """A LIST column as arrays."""

    def __init__(self, column: pa.Array) -> None:
        self._offsets = column.offsets.to_numpy()
        self._values = _numpy(column.values)

    @property
    def total(self) -> int:
        return int(self._offsets[-1] - self._offsets[0])

    def row(self, i: int) -> Array:
        return self._values[self._offsets[i] : self._offsets[i + 1]]


def _numpy(column: pa.Array) -> Array:
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _group(call: _Call, operands: Rows) -> Block:
    """The pairs of one output row: stacked when they are many and small, one by one otherwise."""
    masked = call.where is not None or any(b.mask is not None for blocks in operands for b in blocks)
    dtypes = tuple(dtype_of(blocks[0].values) for blocks in operands)
    kernel = _kernel(call, dtypes, masked)
    starts = [_starts(call.subscripts, [blocks[i] for blocks in operands]) for i in range(len(operands[0]))]
    alike = all(len({b.values.shape for b in blocks}) == 1 for blocks in operands)
    pieces = (
        [range(len(starts))]
        if alike and joined_cells(call.subscripts, [blocks[0].values.shape for blocks in operands]) < SMALL_BLOCK
        else [range(i, i + 1) for i in range(len(starts))]
    )
    out: tuple[Array, Array | None] | None = None
    for piece in pieces:
        part = _contract_rows(kernel, [[blocks[i] for i in piece] for blocks in operands], [starts[i] for i in piece])
        out = part if out is None else merge(str(call.reduce), *out, *part)
    assert out is not None
    values = out[0]
    if values.dtype == object:
        fsum = call.reduce == "fsum"
        values = rounded(values) if fsum else to_int64(values, f"{call.reduce} of {text(call.combine)}")
    mask = None if out[1] is None or out[1].all() else out[1]
    return Block(np.asarray(values, order="C"), mask, tuple(starts[0][label] for label in call.subscripts.output))


def _contract_rows(kernel: JoinKernel, operands: Rows, starts: Sequence[dict[str, int]]) -> tuple[Array, Array | None]:
    stacks = [
        blocks[0].values[None] if len(blocks) == 1 else np.stack([b.values for b in blocks]) for blocks in operands
    ]
    masks = [
        None if all(b.mask is None for b in blocks) else np.stack([_mask(b) for b in blocks]) for blocks in operands
    ]
    firsts = {label: np.array([s[label] for s in starts]) for label in kernel.reads_labels}
    values, mask = kernel(stacks, masks, firsts)
    if len(starts) > 1:
        assert kernel.reduce is not None
        values, mask = segment_reduce(kernel.reduce, values, mask, np.zeros(1, np.int64))
    return values[0, ...], None if mask is None else mask[0, ...]


def _mask(block: Block) -> Array:
    return np.ones(block.values.shape, bool) if block.mask is None else block.mask


def _starts(subscripts: Subscripts, blocks: Sequence[Block]) -> dict[str, int]:
    """The first coordinate along every label, from whichever operand has it."""
    return {
        label: first
        for labels, block in zip(subscripts.inputs, blocks, strict=True)
        for label, first in zip(labels, block.origin, strict=True)
    }


def _label_values(expr: Expr, labels: Labels, block: Block) -> dict[str, Array]:
    shape = block.values.shape
    return {
        label: (block.origin[axis] + np.arange(shape[axis])).reshape(
            [shape[axis] if i == axis else 1 for i in range(len(shape))]
        )
        for axis, label in enumerate(labels)
        if label in labels_of(expr)
    }


def _zero_absent(values: Array, mask: Array | None) -> Array:
    return values if mask is None else np.where(mask, values, values.dtype.type(0))


def _overlap(target: Block, source: Block) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Where two blocks meet: the box inside the target, and inside the source."""
    into, out = [], []
    for t, s, n, m in zip(target.origin, source.origin, target.values.shape, source.values.shape, strict=True):
        low, high = max(t, s), min(t + n, s + m)
        into.append(slice(low - t, high - t))
        out.append(slice(low - s, high - s))
    return tuple(into), tuple(out)
