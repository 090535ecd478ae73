"""Form 4: the straight line of steps that one device runs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gpu_exec.batch import Batch, linear_keys
from gpu_exec.exchange import exchange
from gpu_exec.metrics import Metrics
from gpu_exec.operators import fill_rows, filter_rows, join, map_rows
from gpu_exec.structure import Structure
from gpu_exec.transport import Stopped, Transport
from planner import program as p
from planner.errors import EinsqlError, ExecutionError
from planner.predicates import keys_decide
from planner.program import Program, Step


class DeviceRun:
    """The registers of one device and the steps that fill them. `result` is there after `run`."""

    def __init__(
        self,
        device: int,
        program: Program,
        structures: list[Structure],
        tables: Mapping[int, Batch],
        transport: Transport,
        metrics: Metrics,
    ) -> None:
        self.device, self.program, self.structures, self.tables = device, program, structures, tables
        self.transport, self.metrics = transport, metrics
        self.registers: dict[int, Batch] = {}

    def run(self) -> None:
        """Run every step in order; a failure names the step, the device and the types."""
        for step in self.program.steps:
            try:
                batch = self._step(step)
            except (EinsqlError, Stopped):
                raise
            except Exception as error:
                raise ExecutionError(self._describe(step, error)) from error
            self.registers[step.register] = batch
            self.metrics.hold(self.device, batch.nbytes)
            for register in step.free:
                self.metrics.hold(self.device, -self.registers.pop(register).nbytes)

    @property
    def result(self) -> Batch:
        return self.registers[self.program.result.register]

    def _step(self, step: Step) -> Batch:
        structure = self.structures[step.register]
        args = [self.registers[a] for a in step.args]
        keys = structure.keys[structure.local[self.device]]
        match step.op:
            case p.Scan():
                return self.tables[step.register].take(structure.local[self.device])
            case p.Join():
                pairs = structure.pairs[self.device]
                self.metrics.called(len(pairs.out))
                return join(step, step.op, args, pairs, keys)
            case p.Map(_, expr):
                self.metrics.called(args[0].rows)
                return map_rows(step, expr, args[0])
            case p.Filter(_, where):
                decided = keys_decide(where, step.type.label_cuts)
                batch = filter_rows(step, where, args[0], self._kept(step) if decided else None)
                self.metrics.called(batch.rows)
                return batch
            case p.Fill(_, value):
                self.metrics.called(len(keys))
                return fill_rows(step, value, args[0], keys)
            case p.Exchange((source,)):
                return exchange(self.device, step, structure, args[0], self.program.steps[source], self.transport)

    def _kept(self, step: Step) -> np.ndarray:
        """Which local rows of the argument a filter that the key phase decided keeps."""
        before, after = self.structures[step.args[0]], self.structures[step.register]
        mine, kept = before.keys[before.local[self.device]], after.keys[after.local[self.device]]
        counts = step.type.counts
        return np.flatnonzero(np.isin(linear_keys(mine, counts), linear_keys(kept, counts)))

    def _describe(self, step: Step, error: Exception) -> str:
        name = self.program.devices[self.device]
        lines = [
            f"step %{step.register} {step.name!r} failed on {name}: {type(error).__name__}: {error}",
            f"    result {step.type}",
        ]
        lines += [f"    operand %{a} {self.program.steps[a].type}" for a in step.args]
        return "\n".join(lines)
