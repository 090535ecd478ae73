"""Contraction paths: in which order the operands of an einsum are joined, two at a time.

A path is a plain list of index pairs in NumPy's linear form: each pair is taken out of the list of operands and its
result is appended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import cast

import opt_einsum

from planner.relation_type import Label

Path = list[tuple[int, int]]

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
    return [cast(tuple[int, int], tuple(sorted(pair))) for pair in found]


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
