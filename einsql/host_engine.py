"""The host engine: optimize, key phase, exchange program, pipelines over CPU devices."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from threadpoolctl import ThreadpoolController

from einsql.plan_cache import planned, scans
from einsql.relation import Relation
from gpu_exec.batch import Batch, empty_batch
from gpu_exec.executor import Run, execute
from gpu_exec.metrics import Metrics
from gpu_exec.structure import Structure, key_phase
from planner.einsum import Tensor
from planner.program import Program
from planner.relational import Rel
from planner.request import Request


@dataclass(frozen=True)
class HostQuery:
    """A compiled query: its plan, its counted program, the structures of the key phase, and the tables it scans."""

    plan: Rel
    program: Program
    structures: list[Structure]
    tables: Mapping[int, Batch]

    def run(self) -> tuple[Batch, Metrics]:
        """The result as one batch, and what was counted."""
        devices = len(self.program.devices)
        threads = max(1, (os.cpu_count() or 1) // devices)
        with _blas().limit(limits=threads, user_api="blas"):
            run = execute(self.program, self.structures, self.tables, threads)
        return _collect(run, self.structures[self.program.result.register]), run.metrics


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    """The BLAS libraries that are loaded; looking for them costs a millisecond."""
    return ThreadpoolController()


def compile_host(graph: Tensor, relations: Mapping[str, Relation], request: Request) -> HostQuery:
    """Plan a graph for `request.devices` host devices and run its key phase, unless an equal query did that before."""
    plan, program, structures = planned(graph, request)
    tables = {step.register: relations[table].under(step.type) for table, step in scans(program)}
    if structures is None:
        structures, counts = key_phase(program, {register: batch.keys for register, batch in tables.items()})
        program = program.with_counts(counts)
    return HostQuery(plan, program, structures, tables)


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
