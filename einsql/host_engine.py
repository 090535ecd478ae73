"""The host engine: optimize, key phase, exchange program, pipelines over CPU devices."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache

import numpy as np
from threadpoolctl import ThreadpoolController

from einsql.relation import Relation
from gpu_exec.batch import Batch, empty_batch, grid_keys
from gpu_exec.executor import Run, execute
from gpu_exec.metrics import Metrics
from gpu_exec.structure import Structure, key_phase, table_key
from planner import program as p
from planner.einsum import Tensor
from planner.node import postorder
from planner.optimizer import optimize
from planner.passes.build_program import build_program
from planner.program import Program, Step
from planner.relational import Rel
from planner.request import Request
from planner.scalar import Const

PLANS = 256  # kept; a plan takes 1 to 6 ms to make and a few kB to keep
PAIRS = 1 << 12  # of all steps together, up to which a plan keeps the structures of its key phase too


@dataclass(frozen=True)
class HostQuery:
    """A compiled query: its plan, its counted program, the structures of the key phase, and the tables it scans."""

    plan: Rel
    program: Program
    structures: list[Structure]
    tables: Mapping[str, Batch]

    def run(self) -> tuple[Batch, Metrics]:
        """The result as one batch, and what was counted."""
        devices = len(self.program.devices)
        threads = max(1, (os.cpu_count() or 1) // devices)
        with _blas().limit(limits=threads, user_api="blas"):
            run = execute(self.program, self.structures, self.tables)
        return _collect(run, self.structures[self.program.result.register]), run.metrics


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    """The BLAS libraries that are loaded; looking for them costs a millisecond."""
    return ThreadpoolController()


def compile_host(graph: Tensor, relations: Mapping[str, Relation], request: Request) -> HostQuery:
    """Plan a graph for `request.devices` host devices and run its key phase, unless an equal query did that before."""
    plan, program, structures = _planned(_Asked(_says(graph, request), graph, request))
    tables = {table_key(step): relations[table].under(step.type) for table, step in _scans(program)}
    if structures is None:
        structures, counts = key_phase(program, {name: batch.keys for name, batch in tables.items()})
        program = program.with_counts(counts)
    return HostQuery(plan, program, structures, tables)


@dataclass(frozen=True)
class _Asked:
    """A graph and a request; equal to another when both say the same, of relations of the same types."""

    says: tuple[object, ...]
    graph: Tensor = field(compare=False)
    request: Request = field(compare=False)


@lru_cache(maxsize=PLANS)
def _planned(asked: _Asked) -> tuple[Rel, Program, list[Structure] | None]:
    """Plan and program, and the structures where types alone decide them: no relation lacks rows, and pairs are few."""
    plan = optimize(asked.graph, asked.request)
    program = build_program(plan, tuple(f"host:{d}" for d in range(asked.request.devices)))
    stored = [step for _, step in _scans(program)]
    if any(step.type.presence != "complete" for step in stored) or sum(map(_pairs, program.steps)) > PAIRS:
        return plan, program, None
    structures, counts = key_phase(program, {table_key(step): grid_keys(step.type.counts) for step in stored})
    return plan, program.with_counts(counts), structures


def _says(graph: Tensor, request: Request) -> tuple[object, ...]:
    """All that planning reads, as a value: the nodes by number, every field of each, and the request."""
    number = {node: i for i, node in enumerate(postorder(graph))}

    def plain(value: object) -> object:
        if isinstance(value, Tensor):
            return number[value]
        if isinstance(value, tuple):
            return tuple(map(plain, value))
        return Const(value) if isinstance(value, bool | int | float | complex) else value  # 0, 0.0 and -0.0 differ

    nodes = tuple((type(node), *(plain(getattr(node, f.name)) for f in fields(node))) for node in number)
    options = (request.parts, request.tile, request.placement)
    return nodes, request.devices, *(tuple(sorted(option.items())) for option in options)


def _scans(program: Program) -> list[tuple[str, Step]]:
    return [(step.op.table, step) for step in program.steps if isinstance(step.op, p.Scan)]


def _pairs(step: Step) -> int:
    return math.prod(cut.count for cut in (step.op.cuts if isinstance(step.op, p.Join) else step.type.cuts))


def _collect(run: Run, structure: Structure) -> Batch:
    """All rows once, each from its first holder."""
    if len(run.batches) == 1:
        return run.batches[0]
    out = empty_batch(run.batches[0].type, structure.keys)
    taken = np.zeros(len(structure.keys), bool)
    for batch, rows in zip(run.batches, structure.local, strict=True):
        fresh = np.flatnonzero(~taken[rows])
        taken[rows] = True
        for c, shape in enumerate(batch.layout.shapes):
            own = fresh[batch.layout.shape_class[fresh] == c]
            if len(own):
                target, where = out.layout.shapes.index(shape), out.layout.position[rows[own]]
                out.stacks[target][where] = batch.stacks[c][batch.layout.position[own]]
                if out.masks is not None and batch.masks is not None:
                    out.masks[target][where] = batch.masks[c][batch.layout.position[own]]
    return out
