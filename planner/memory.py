"""What a program holds, against what it may hold."""

from __future__ import annotations

import re

from planner.errors import PlanError
from planner.explain import format_bytes
from planner.program import Program, Step

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
         "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}  # fmt: skip


def read_bytes(limit: int | str) -> int:
    """A number of bytes, or a text such as "800 KB", "4GiB".

    >>> read_bytes("1.5 KiB"), read_bytes(10)
    (1536, 10)
    """
    if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0:
        return limit
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", limit) if isinstance(limit, str) else None
    if match is None or match[2].upper() not in UNITS:
        raise PlanError(f"a memory limit is a number of bytes or a text such as '800 KB' or '4 GiB', got {limit!r}")
    return int(float(match[1]) * UNITS[match[2].upper()])


def check_program(program: Program, limit: int) -> None:
    """Refuse a program whose live values exceed `limit` bytes at some step, over all devices: they share one memory."""
    alive: dict[int, int] = {}
    for step in program.steps:
        alive[step.register] = sum(step.counts.held) if step.counts else 0
        if sum(alive.values()) > limit:
            raise PlanError(_message(program, step, alive, limit))
        for register in step.free:
            del alive[register]


def _message(program: Program, step: Step, alive: dict[int, int], limit: int) -> str:
    lines = [
        f"step {step.name!r} {step.type} needs {format_bytes(sum(alive.values()))}, and the memory limit is"
        f" {format_bytes(limit)}: {sum(alive.values())} bytes against {limit}",
        f"    {step.name}  {step.type.describe()}  {step.type.cells} cells, {alive[step.register]} bytes",
    ]
    for register, held in alive.items():
        if register != step.register:
            other = program.steps[register]
            what = f"{other.type.describe()}  {other.type.cells} cells, {held} bytes"
            lines.append(f"    {other.name}  {what}, held beside it")
    return "\n".join([*lines, "  raise memory_limit, or ask for less: fewer labels in the output, a narrower dtype"])


def check_whole(name: str, described: str, cells: int, nbytes: int, limit: int) -> None:
    """Refuse a complete relation that alone exceeds `limit` bytes."""
    if nbytes > limit:
        raise PlanError(
            f"{name} {described} has {cells} cells, {format_bytes(nbytes)}, and the memory limit is"
            f" {format_bytes(limit)}: {nbytes} bytes against {limit}"
        )
