"""Contraction paths: in which order the operands of an einsum are joined, two at a time.

A path is a plain list of index tuples in NumPy's linear form: each tuple is taken out of the list of operands and its
result is appended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from operator import index
from typing import Any, cast

import opt_einsum

from planner.errors import ShapeError
from planner.relation_type import Label

Path = list[tuple[int, ...]]

EXACT_OPERANDS = 10  # subsets of 10 operands: 59,049 splits, about 0.1 s


def find_path(inputs: Sequence[frozenset[Label]], output: frozenset[Label], extents: Mapping[Label, int]) -> Path:
    """The path of least FLOP on the uncut operands: exact to 10 operands, opt_einsum's greedy search beyond.

    Ties go to the earlier operands, so that a text always gives the same path.

    >>> find_path([frozenset("xgk"), frozenset("xkd"), frozenset("xk")], frozenset("xgd"), dict(x=2, g=2, k=64, d=32))
    [(0, 2), (0, 1)]
    """
    if len(inputs) <= EXACT_OPERANDS:
        return _exact(tuple(inputs), output, extents)
    found = opt_einsum.paths.greedy([set(i) for i in inputs], set(output), dict(extents))
    return [cast(tuple[int, ...], tuple(sorted(pair))) for pair in found]


def read_path(path: Any, operands: int) -> Path:
    """A path as NumPy, opt_einsum and cotengra give it: index tuples in linear form, after the word 'einsum_path' or
    none; or SSA pairs after the word 'ssa'. Each result is one more operand.

    >>> read_path(["einsum_path", (0, 1), (0, 1)], 3), read_path(["ssa", (1, 2), (0, 3)], 3)
    ([(0, 1), (0, 1)], [(1, 2), (0, 1)])
    """
    if isinstance(path, str) or not isinstance(path, Sequence):
        raise ShapeError(f"a path is a list of index pairs, as in [(0, 1), (0, 1)], got {path!r}")
    word = path[0] if len(path) and isinstance(path[0], str) else ""
    if word not in ("", "einsum_path", "ssa"):
        raise ShapeError(f"a path starts with 'einsum_path', 'ssa' or an index pair, got {word!r}")
    steps = [_read_step(step, i) for i, step in enumerate(path[1:] if word else path)]
    live = list(range(operands))
    linear: Path = []
    for i, step in enumerate(steps):
        known = {number: at for at, number in enumerate(live)} if word == "ssa" else range(len(live))
        for number in step:
            if number not in known:
                there = f"there are {len(live)} operands then, {', '.join(map(str, known))}"
                raise ShapeError(f"step {i + 1} of the path, {step}, names operand {number}; {there}")
        at = tuple(sorted(known[number] for number in step))
        linear.append(at)
        live = [number for k, number in enumerate(live) if k not in at] + [operands + i]
    if len(live) != 1:
        raise ShapeError(f"the path has {len(steps)} steps and leaves {len(live)} operands; it must leave one")
    return linear


def _read_step(step: Any, position: int) -> tuple[int, ...]:
    try:
        indices = tuple(index(i) for i in step)
    except (TypeError, ValueError):
        raise ShapeError(f"step {position + 1} of the path is {step!r}, not a tuple of operand numbers") from None
    if not indices or len(set(indices)) != len(indices):
        raise ShapeError(f"step {position + 1} of the path, {indices}, must name distinct operands")
    return indices


def in_pairs(
    path: Path, inputs: Sequence[frozenset[Label]], output: frozenset[Label], extents: Mapping[Label, int]
) -> Path:
    """The same path with every step of more than two operands taken apart, by least FLOP."""
    live = list(inputs)
    done: Path = []
    for step in path:
        taken = [live[i] for i in step]
        rest = [labels for i, labels in enumerate(live) if i not in step]
        kept = frozenset().union(*taken) & output.union(*rest)
        if len(step) <= 2:
            done.append(step)
        else:
            done += _within(step, len(live), find_path(taken, kept, extents))
        live = [*rest, kept]
    return done


def _within(step: tuple[int, ...], count: int, inner: Path) -> Path:
    """The steps of `inner`, a path over the operands of `step`, as steps over all `count` operands."""
    live: list[object] = list(range(count))
    mine: list[object] = list(step)
    done: Path = []
    for i, pair in enumerate(inner):
        taken = [mine[k] for k in pair]
        done.append(tuple(sorted(live.index(t) for t in taken)))
        mine = [m for m in mine if m not in taken] + [("result", i)]
        live = [m for m in live if m not in taken] + [("result", i)]
    return done


def _exact(inputs: tuple[frozenset[Label], ...], output: frozenset[Label], extents: Mapping[Label, int]) -> Path:
    n, everything = len(inputs), (1 << len(inputs)) - 1

    @cache
    def union(subset: int) -> frozenset[Label]:
        return frozenset().union(*(inputs[i] for i in range(n) if subset >> i & 1))

    @cache
    def open_labels(subset: int) -> frozenset[Label]:
        """What is left of a subset once everything that only it needs is reduced."""
        if subset & (subset - 1) == 0:
            return union(subset)
        return union(subset) & (output | union(everything & ~subset))

    best: dict[int, tuple[int, int]] = {1 << i: (0, 0) for i in range(n)}  # subset -> (cost, left half)
    for subset in range(1, everything + 1):
        if subset & (subset - 1) == 0:
            continue
        lowest = subset & -subset
        rest = subset ^ lowest
        half = rest
        while True:  # every split in two, the lowest operand always on the left
            half = (half - 1) & rest
            left, right = half | lowest, rest ^ half
            cost = best[left][0] + best[right][0]
            if subset not in best or cost < best[subset][0]:
                space = 1
                for label in open_labels(left) | open_labels(right):
                    space *= max(extents[label], 1)
                if subset not in best or cost + space < best[subset][0]:
                    best[subset] = (cost + space, left)
            if half == 0:
                break
    return _linear(best, everything, n)


def _linear(best: Mapping[int, tuple[int, int]], root: int, n: int) -> Path:
    """The tree of halves as a list of index pairs."""
    order: list[int] = []
    stack = [root]
    while stack:
        subset = stack.pop()
        if subset & (subset - 1):
            order.append(subset)
            left = best[subset][1]
            stack += [left, subset ^ left]
    position = [1 << i for i in range(n)]
    path: Path = []
    for subset in reversed(order):
        left = best[subset][1]
        i, j = sorted((position.index(left), position.index(subset ^ left)))
        path.append((i, j))
        del position[j], position[i]
        position.append(subset)
    return path
