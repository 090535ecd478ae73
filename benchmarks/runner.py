"""Runs contenders in alternating processes. A machine that others use is noisy, and what one library leaves in a
process slows the next: so each time comes from a process of its own, contenders take turns, and the best time counts.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Work = Callable[[], object]
Contender = Callable[[], Work]  # prepares its data, and returns what is to be timed


@dataclass(frozen=True)
class Case:
    """One comparison. `ours` and `peer` name contenders; `rounds` is how many processes each gets."""

    name: str
    ours: str
    peer: str
    limit: float
    rounds: int = 5


@dataclass(frozen=True)
class Row:
    """One line of a result table; seconds are the best of all rounds."""

    name: str
    ours_s: float
    peer: str
    peer_s: float
    ratio: float
    limit: float


def best_seconds(work: Work, at_least: float = 0.3, repeats: int = 7) -> float:
    """The best time of one call: one to warm up, then `repeats` calls or `at_least` seconds of them."""
    start = time.perf_counter()
    work()
    best = time.perf_counter() - start
    if best > 3:
        return best
    deadline = time.perf_counter() + max(at_least, 2 * best)
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
        if time.perf_counter() > deadline:
            break
    return best


def time_in_process(group: str, contender: str) -> float:
    """The best time of a contender, in a fresh process."""
    command = [sys.executable, "-m", "benchmarks", group, "--contender", contender]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{contender} failed:\n{done.stderr}")
    return float(done.stdout.split()[-1])


def compare(group: str, cases: Sequence[Case], contenders: Mapping[str, Contender]) -> list[Row]:
    """Time every contender that a case names, rounds interleaved; refuses names that do not exist."""
    wanted = {name: case.rounds for case in cases for name in (case.ours, case.peer)}
    missing = sorted(set(wanted) - set(contenders))
    if missing:
        raise ValueError(f"no contender {missing[0]!r} in group {group!r}")
    times: dict[str, list[float]] = {name: [] for name in wanted}
    for turn in range(max(wanted.values())):
        for name, rounds in wanted.items():
            if turn < rounds:
                times[name].append(time_in_process(group, name))
    best = {name: min(found) for name, found in times.items()}
    return [Row(c.name, best[c.ours], c.peer, best[c.peer], best[c.ours] / best[c.peer], c.limit) for c in cases]
