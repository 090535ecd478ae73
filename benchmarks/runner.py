"""Runs contenders in alternating processes. A machine that others use is noisy, and what one library leaves in a
process slows the next: so in every round each contender has a process of its own, contenders take turns case by case,
and the best time of all rounds counts.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

Work = Callable[[], object]
Ask = Callable[[str], float | str]  # name of a case -> its best time, or why there is none


@dataclass(frozen=True)
class Case:
    """One comparison of contenders, by name.

    prepare   makes the data of a contender, and returns what is to be timed; raises ModuleNotFoundError for a contender
              that is not installed
    limit     of our time over that of the fastest peer
    rounds    how many processes each contender gets
    """

    name: str
    prepare: Callable[[str], Work]
    ours: str
    peers: tuple[str, ...]
    limit: float
    rounds: int = 5

    @property
    def contenders(self) -> tuple[str, ...]:
        return (self.ours, *self.peers)


@dataclass(frozen=True)
class Row:
    """One line of a result table; seconds are the best of all rounds.

    peer      the fastest one
    others    of every other peer its seconds, or why it has none
    """

    name: str
    ours_s: float
    peer: str
    peer_s: float
    ratio: float
    limit: float
    others: Mapping[str, float | str]


def best_seconds(work: Work, at_least: float = 0.3, repeats: int = 15) -> float:
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


def serve(cases: Sequence[Case], contender: str) -> None:
    """What the process of a contender does: times each case that a line of its input names, and prints the answer."""
    by_name = {case.name: case for case in cases}
    for line in sys.stdin:
        answer: float | str = "not installed"
        try:
            answer = best_seconds(by_name[line.strip()].prepare(contender))
        except ModuleNotFoundError as error:
            if error.name != contender:
                raise
        print(json.dumps(answer), flush=True)


@contextmanager
def _process(group: str, contender: str) -> Iterator[Ask]:
    """A fresh process for one contender."""
    command = [sys.executable, "-m", "benchmarks", group, "--contender", contender]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        questions, answers = process.stdin, process.stdout

        def ask(case: str) -> float | str:
            print(case, file=questions, flush=True)
            answer = answers.readline()
            if not answer:
                raise RuntimeError(f"{contender} failed at {case}; its error is above")
            time: float | str = json.loads(answer)
            return time

        yield ask


def compare(group: str, cases: Sequence[Case]) -> list[Row]:
    """Time every contender of every case, rounds interleaved."""
    best: dict[str, dict[str, float]] = {case.name: {} for case in cases}
    skipped: dict[str, dict[str, str]] = {case.name: {} for case in cases}
    for turn in range(max(case.rounds for case in cases)):
        due = [case for case in cases if turn < case.rounds]
        with ExitStack() as stack:
            names = dict.fromkeys(name for case in due for name in case.contenders)
            asks = {name: stack.enter_context(_process(group, name)) for name in names}
            for case in due:
                for name in case.contenders:
                    answer = asks[name](case.name)
                    if isinstance(answer, str):
                        skipped[case.name][name] = answer
                    else:
                        best[case.name][name] = min(answer, best[case.name].get(name, answer))
    return [_row(case, best[case.name], skipped[case.name]) for case in cases]


def _row(case: Case, best: Mapping[str, float], skipped: Mapping[str, str]) -> Row:
    ran = sorted((name for name in case.peers if name in best), key=lambda name: best[name])
    if not ran:
        raise RuntimeError(f"no peer of {case.name!r} ran: {', '.join(f'{n} {why}' for n, why in skipped.items())}")
    ours, peer = best[case.ours], best[ran[0]]
    others: dict[str, float | str] = {name: best[name] for name in ran[1:]}
    return Row(case.name, ours, ran[0], peer, ours / peer, case.limit, {**others, **skipped})
