"""Digit maps: which digits of the device number cut which axis.

The device count is factored in primes, the digits; device j is the mixed-radix number of its digits. A map gives every
axis the digits that cut it, most significant first; a digit that no axis has replicates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import permutations, product
from math import prod

Digits = tuple[int, ...]
Map = tuple[Digits, ...]  # per axis


@lru_cache(maxsize=4096)
def digit_maps(radices: Digits, most: Digits) -> tuple[Map, ...]:
    """Every map, each axis cut into at most `most` pieces; the digits of an axis ascend.

    >>> digit_maps((2, 2), (2, 1))
    (((), ()), ((1,), ()), ((0,), ()))
    """
    found = []
    axes = [None, *(axis for axis, n in enumerate(most) if n > 1)]
    for choice in product(axes, repeat=len(radices)):
        digits = tuple(tuple(d for d, axis in enumerate(choice) if axis == own) for own in range(len(most)))
        if all(pieces(own, radices) <= n for own, n in zip(digits, most, strict=True)):
            found.append(digits)
    return tuple(found)


@lru_cache(maxsize=4096)
def single_copy_maps(radices: Digits, most: Digits) -> tuple[Map, ...]:
    """The maps that leave no digit out, the digits of an axis in every order."""
    whole = [digits for digits in digit_maps(radices, most) if sum(map(len, digits)) == len(radices)]
    return tuple(ordered for digits in whole for ordered in product(*map(_orders, digits)))


def _orders(digits: Digits) -> Iterator[Digits]:
    return permutations(digits)


def pieces(digits: Digits, radices: Digits) -> int:
    """Into how many pieces digits cut an axis."""
    return prod(radices[d] for d in digits)


def restricted(digits: Map, axes: Sequence[int]) -> Map:
    """The map of a value whose axes are these labels of an operation."""
    return tuple(digits[axis] for axis in axes)


@lru_cache(maxsize=65536)
def piece_numbers(digits: Digits, radices: Digits) -> Digits:
    """Per device the number of its piece of an axis that `digits` cut."""
    numbers = []
    for device in range(prod(radices)):
        own, rest = [0] * len(radices), device
        for d in reversed(range(len(radices))):
            rest, own[d] = divmod(rest, radices[d])
        number = 0
        for d in digits:
            number = number * radices[d] + own[d]
        numbers.append(number)
    return tuple(numbers)
