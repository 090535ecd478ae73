"""Exactly rounded float sums: whatever the order and the partitioning, the same bits.

A partial sum is a whole multiple of 2^-1127, which every float64 is, kept as a Python integer beside the sum of what is
not finite. Partial sums are objects in an array, so that every reduction works on them as on numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

Array = np.ndarray
UNIT = 1127  # the least float64 is 2^-1074, and frexp gives 53 bits of every value
ONE = 1 << UNIT


@dataclass(frozen=True)
class ExactSum:
    """`scaled` * 2^-1127 + `special`, the latter 0, infinite or NaN."""

    scaled: int
    special: float = 0.0

    def __add__(self, other: ExactSum | int) -> ExactSum:
        if isinstance(other, int):  # the zero of an absent cell
            return self
        return ExactSum(self.scaled + other.scaled, self.special + other.special)

    __radd__ = __add__

    def __float__(self) -> float:
        if self.special:
            return self.special
        try:
            return self.scaled / ONE  # the division of integers rounds once
        except OverflowError:
            return math.inf if self.scaled > 0 else -math.inf


ZERO = ExactSum(0)


def exact_terms(values: Array) -> Array:
    """Floats as partial sums of one term each."""
    wide = np.asarray(values, np.float64)
    fraction, exponent = np.frexp(np.where(np.isfinite(wide), wide, 0.0))
    whole = (fraction * 2.0**53).astype(np.int64)
    special = np.where(np.isfinite(wide), 0.0, wide)
    flat = zip(whole.ravel().tolist(), (exponent + UNIT - 53).ravel().tolist(), special.ravel().tolist(), strict=True)
    terms = np.empty(wide.size, object)
    terms[:] = [ExactSum(w << e, s) for w, e, s in flat]
    return terms.reshape(wide.shape)


def rounded(sums: Array) -> Array:
    """Partial sums as float64, each rounded once."""
    return np.fromiter(map(float, sums.reshape(-1)), np.float64, sums.size).reshape(sums.shape)
