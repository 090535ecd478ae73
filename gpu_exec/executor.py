"""Run an exchange program on host devices: one worker thread per device, the first one inline."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from gpu_exec.batch import Batch
from gpu_exec.metrics import Metrics
from gpu_exec.pipeline import DeviceRun
from gpu_exec.structure import Structure
from gpu_exec.team import device_threads
from gpu_exec.transport import Stopped, Transport
from planner.program import Program


@dataclass(frozen=True)
class Run:
    """The result of a program: one batch per device, and what was counted."""

    batches: tuple[Batch, ...]
    metrics: Metrics


def execute(program: Program, structures: list[Structure], tables: Mapping[int, Batch], threads: int = 1) -> Run:
    """Run `program` on as many host devices as it names.

    tables    register of a scan -> the stored relation, cut as the program scans it
    threads   of each device
    Raises    the first error of any device; the others stop at their next wait
    """
    devices = len(program.devices)
    metrics = Metrics(devices)
    transport = Transport(metrics)
    runs = [DeviceRun(d, program, structures, tables, transport, metrics) for d in range(devices)]
    failures: list[BaseException | None] = [None] * devices

    def work(d: int) -> None:
        try:
            with device_threads(threads):
                runs[d].run()
        except BaseException as error:
            failures[d] = error
            transport.stop()

    workers = [
        threading.Thread(target=work, args=(d,), name=program.devices[d], daemon=True) for d in range(1, devices)
    ]
    for worker in workers:
        worker.start()
    work(0)
    for worker in workers:
        worker.join()
    for error in failures:
        if error is not None and not isinstance(error, Stopped):
            raise error
    return Run(tuple(run.result for run in runs), metrics)
