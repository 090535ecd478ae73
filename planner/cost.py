"""What a plan costs before its keys are known: estimates on the closed form of complete relations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from planner.placement import AnyPlacement, Listed, Placement, group_number
from planner.relation_type import RelationType

Box = tuple[tuple[Fraction, Fraction], ...]


@dataclass(frozen=True)
class Rates:
    """What a device and its links do in a second.

    The defaults are round figures of one x86 core with NumPy: GEMM in float64, and a copy between two workers.
    """

    flops: float = 5e10
    bytes: float = 5e9
    message: float = 2e-5


HOST = Rates()


@lru_cache(maxsize=4096)
def box(placement: Placement, device: int) -> Box:
    """The share of every axis that a device holds, as fractions of the whole."""
    shares = []
    for digits in placement.axes:
        groups = placement.groups(digits)
        own = group_number(device, placement.devices, digits)
        shares.append((Fraction(own, groups), Fraction(own + 1, groups)))
    return tuple(shares)


def exchange_bytes(type: RelationType, source: AnyPlacement, target: AnyPlacement) -> float:
    """Bytes that all devices together receive when a complete relation goes from `source` to `target`.

    Whoever holds a piece keeps it; partial results come from every group that has one.
    """
    if isinstance(source, Listed) or isinstance(target, Listed):
        return _listed_bytes(type, source, target)
    total = Fraction(0)
    partials = source.groups(source.partial)
    for device in range(target.devices):
        want, have = box(target, device), box(source, device)
        both = math.prod(
            (max(Fraction(0), min(a[1], b[1]) - max(a[0], b[0])) for a, b in zip(want, have, strict=True)),
            start=Fraction(1),
        )
        whole = math.prod((b - a for a, b in want), start=Fraction(1))
        total += partials * whole - both
    return float(total * type.nbytes)


def _listed_bytes(type: RelationType, source: AnyPlacement, target: AnyPlacement) -> float:
    total = 0
    partials = source.groups(source.partial) if isinstance(source, Placement) else 1
    for key in type.all_keys():
        size = math.prod(type.block_shape(key)) * type.bytes_per_cell
        have, want = source.holders(key, type.counts), target.holders(key, type.counts)
        total += size * (partials * len(want) - len(want & have))
    return float(total)


def exchange_seconds(type: RelationType, source: AnyPlacement, target: AnyPlacement, rates: Rates = HOST) -> float:
    """The time of an exchange whose bytes are spread evenly over the devices; 0 when nothing moves."""
    moved = exchange_bytes(type, source, target)
    return rates.message + moved / target.devices / rates.bytes if moved else 0.0
