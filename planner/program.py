"""Form 3: the exchange program. Typed single-assignment steps: *in what order*, with every exchange and free explicit.

A program is a plain value. Its text parses back to an equal program, so it can travel. A step names rows only by their
number and place; which keys they have, and which rows meet, is its *structure* (`gpu_exec.structure`), found by the
key phase. `counts` hold what that phase predicts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from planner.cuts import Cut
from planner.placement import AnyPlacement, Placement
from planner.relation_type import Label, RelationType
from planner.scalar import Expr, Value
from planner.subscripts import Subscripts


@dataclass(frozen=True)
class Scan:
    """Read a stored relation."""

    table: str


@dataclass(frozen=True)
class Join:
    """Join, combine, reduce: the rows that share their keys, on the device that `work` gives those keys."""

    args: tuple[int, ...]
    subscripts: Subscripts
    combine: Expr
    reduce: str | None
    where: Expr | None
    cuts: tuple[Cut, ...]
    work: Placement

    @cached_property
    def label_cuts(self) -> dict[Label, Cut]:
        return dict(zip(self.subscripts.labels, self.cuts, strict=True))


@dataclass(frozen=True)
class Map:
    """Apply a scalar expression to every present cell."""

    args: tuple[int]
    expr: Expr


@dataclass(frozen=True)
class Filter:
    """Keep the cells at which a condition on labels holds."""

    args: tuple[int]
    where: Expr


@dataclass(frozen=True)
class Fill:
    """Make every absent cell present."""

    args: tuple[int]
    value: Value


@dataclass(frozen=True)
class Exchange:
    """Bring rows to the cut and placement of the step; partial results are reduced on the way."""

    args: tuple[int]


Op = Scan | Join | Map | Filter | Fill | Exchange


@dataclass(frozen=True)
class Counts:
    """What the key phase predicts of one step, over all devices.

    rows     distinct rows of the result
    calls    block contractions, or blocks mapped
    moved    bytes received from other devices
    held     bytes of the result on each device
    """

    rows: int
    calls: int
    moved: int
    held: tuple[int, ...]


@dataclass(frozen=True)
class Step:
    """One assignment: %register = op.

    name    how the query calls the value
    free    registers whose last use this is, dropped after it
    """

    register: int
    name: str
    op: Op
    type: RelationType
    placement: AnyPlacement
    free: tuple[int, ...] = ()
    counts: Counts | None = None

    @property
    def args(self) -> tuple[int, ...]:
        return () if isinstance(self.op, Scan) else self.op.args


@dataclass(frozen=True)
class Program:
    """Steps in order over named devices; the last step's value is the result."""

    devices: tuple[str, ...]
    steps: tuple[Step, ...]

    @property
    def result(self) -> Step:
        return self.steps[-1]

    @property
    def moved_bytes(self) -> int:
        return sum(step.counts.moved for step in self.steps if step.counts)

    @property
    def kernel_calls(self) -> int:
        return sum(step.counts.calls for step in self.steps if step.counts)

    @property
    def exchanges(self) -> int:
        return sum(isinstance(step.op, Exchange) for step in self.steps)

    @property
    def peak_bytes(self) -> tuple[int, ...]:
        """The most bytes that live values hold on each device: a step's result counts beside all it reads."""
        alive: dict[int, tuple[int, ...]] = {}
        peak = [0] * len(self.devices)
        for step in self.steps:
            alive[step.register] = step.counts.held if step.counts else (0,) * len(self.devices)
            peak = [max(p, sum(held[d] for held in alive.values())) for d, p in enumerate(peak)]
            for register in step.free:
                del alive[register]
        return tuple(peak)

    def with_counts(self, counts: dict[int, Counts]) -> Program:
        """The same program with the predictions of its key phase."""
        return replace(self, steps=tuple(replace(step, counts=counts[step.register]) for step in self.steps))

    def pipelines(self) -> list[list[Step]]:
        """Steps grouped so that rows cross devices only between groups: an exchange ends its pipeline."""
        groups: list[list[Step]] = [[]]
        for step in self.steps:
            groups[-1].append(step)
            if isinstance(step.op, Exchange):
                groups.append([])
        return [group for group in groups if group]
