"""Plans that were made before: a query that says the same, of relations of the same types, is not planned again.

What a graph says is told by value, nodes by their numbers, so that two texts that read the same share a plan. Nothing
of a relation but its type is kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from functools import lru_cache

from gpu_exec.batch import grid_keys
from gpu_exec.structure import Structure, key_phase
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
class _Asked:
    """A graph and a request; equal to another when both say the same, of relations of the same types."""

    says: tuple[object, ...]
    graph: Tensor = field(compare=False)
    request: Request = field(compare=False)


def planned(graph: Tensor, request: Request) -> tuple[Rel, Program, list[Structure] | None]:
    """Plan and program, and the structures where types alone decide them: no relation lacks rows, and pairs are few."""
    return _made(_Asked(_says(graph, request), graph, request))


@lru_cache(maxsize=PLANS)
def _made(asked: _Asked) -> tuple[Rel, Program, list[Structure] | None]:
    plan = optimize(asked.graph, asked.request)
    program = build_program(plan, tuple(f"host:{d}" for d in range(asked.request.devices)))
    stored = [step for _, step in scans(program)]
    if any(step.type.presence != "complete" for step in stored) or sum(map(_pairs, program.steps)) > PAIRS:
        return plan, program, None
    structures, counts = key_phase(program, {step.register: grid_keys(step.type.counts) for step in stored})
    return plan, program.with_counts(counts), structures


def _says(graph: Tensor, request: Request) -> tuple[object, ...]:
    """All that planning reads, as a value."""
    options = (request.parts, request.tile, request.placement)
    return _graph_says(graph), request.devices, *(tuple(sorted(option.items())) for option in options)


@lru_cache(maxsize=PLANS)
def _graph_says(graph: Tensor) -> tuple[object, ...]:
    """The nodes of a graph by number, and every field of each."""
    number = {node: i for i, node in enumerate(postorder(graph))}

    def plain(value: object) -> object:
        if isinstance(value, Tensor):
            return number[value]
        if isinstance(value, tuple):
            return tuple(map(plain, value))
        return Const(value) if isinstance(value, bool | int | float | complex) else value  # 0, 0.0 and -0.0 differ

    return tuple((type(node), *(plain(getattr(node, f.name)) for f in fields(node))) for node in number)


def scans(program: Program) -> list[tuple[str, Step]]:
    """The steps that read stored relations, by the names of these."""
    return [(step.op.table, step) for step in program.steps if isinstance(step.op, p.Scan)]


def _pairs(step: Step) -> int:
    return math.prod(cut.count for cut in (step.op.cuts if isinstance(step.op, p.Join) else step.type.cuts))
