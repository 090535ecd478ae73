"""Which devices hold which blocks: block -> set of devices.

The device count is factored in primes, the *digits*: device j of 6 = 2 x 3 is the mixed-radix number of its two
digits. A placement gives every axis of a relation the digits that it cuts; digits that no axis uses replicate; digits
in `partial` hold results that are still to be reduced. There is no mesh: every value has a placement of its own.
`Listed` is any other assignment, block by block. Sharded, Replicated, Partial and Single are names in print-outs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from planner.errors import PlanError

Digits = tuple[int, ...]


def radices(devices: int) -> tuple[int, ...]:
    """Prime factors, ascending.

    >>> radices(12)
    (2, 2, 3)
    """
    factors, p = [], 2
    while devices > 1:
        while devices % p == 0:
            factors.append(p)
            devices //= p
        p += 1
    return tuple(factors)


def digits_of(device: int, devices: int) -> tuple[int, ...]:
    """The digits of a device, most significant first."""
    values = []
    for radix in reversed(radices(devices)):
        device, digit = divmod(device, radix)
        values.append(digit)
    return tuple(reversed(values))


def group_number(device: int, devices: int, digits: Digits) -> int:
    """The mixed-radix number that `digits` of `device` spell, most significant first."""
    own, base = digits_of(device, devices), radices(devices)
    number = 0
    for d in digits:
        number = number * base[d] + own[d]
    return number


@dataclass(frozen=True)
class Placement:
    """A digit map over the axes of a relation.

    axes      for every axis the digits that cut it, most significant first; () for an axis that no digit cuts
    partial   digits whose devices hold partial results, to be combined by `reduce`

    A part of an axis belongs to group `part * groups // parts`: contiguous ranges, so any number of parts can be
    spread over any number of devices.
    """

    devices: int
    axes: tuple[Digits, ...]
    partial: Digits = ()
    reduce: str = ""

    def __post_init__(self) -> None:
        used = [d for digits in self.axes for d in digits] + list(self.partial)
        if len(set(used)) != len(used) or not set(used) <= set(range(len(radices(self.devices)))):
            raise PlanError(
                f"digits {used} are not distinct digits of {self.devices} devices ({radices(self.devices)})"
            )
        if bool(self.partial) != bool(self.reduce):
            raise PlanError("partial digits and a reduce go together")

    def groups(self, digits: Digits) -> int:
        base = radices(self.devices)
        return math.prod(base[d] for d in digits)

    def holders(self, key: Sequence[int], counts: Sequence[int]) -> frozenset[int]:
        """The devices that hold (a part of) the block with this key."""
        return frozenset(
            device
            for device in range(self.devices)
            if all(
                group_number(device, self.devices, digits) == k * self.groups(digits) // n
                for digits, k, n in zip(self.axes, key, counts, strict=True)
            )
        )

    @property
    def replicas(self) -> int:
        """How many devices hold the same rows."""
        used = [d for digits in self.axes for d in digits] + list(self.partial)
        return self.devices // self.groups(tuple(used))


@dataclass(frozen=True)
class Listed:
    """Any placement: for every possible key, row-major, the devices that hold its block."""

    devices: int
    blocks: tuple[frozenset[int], ...]
    partial: Digits = ()

    def __post_init__(self) -> None:
        for i, devices in enumerate(self.blocks):
            if not devices or not devices <= set(range(self.devices)):
                raise PlanError(f"block {i} is placed on {sorted(devices)}; wanted some of the {self.devices} devices")

    def holders(self, key: Sequence[int], counts: Sequence[int]) -> frozenset[int]:
        index = 0
        for k, n in zip(key, counts, strict=True):
            index = index * n + k
        return self.blocks[index]


AnyPlacement = Placement | Listed


def replicated(devices: int, rank: int) -> Placement:
    return Placement(devices, ((),) * rank)


def sharded(devices: int, rank: int, axis: int) -> Placement:
    """Every digit on one axis."""
    every = tuple(range(len(radices(devices))))
    return Placement(devices, tuple(every if i == axis else () for i in range(rank)))


def single(devices: int, rank: int, blocks: int) -> AnyPlacement:
    """Everything on the first device."""
    return replicated(1, rank) if devices == 1 else Listed(devices, (frozenset([0]),) * blocks)


def candidates(devices: int, rank: int, cut: Sequence[bool]) -> list[Placement]:
    """The digit maps over one axis or none; `cut` says which axes have more than one part."""
    found = [sharded(devices, rank, axis) for axis in range(rank) if cut[axis]] if devices > 1 else []
    return [*found, replicated(devices, rank)]


# ------------------------------------------------------------------------------------------------------ text and back


def describe(placement: AnyPlacement, labels: Sequence[str]) -> str:
    """`Single`, `Replicated`, `Sharded(t)`, `Sharded(t:0 f:1)`, `Partial(sum)`; `parse_placement` reads it back."""
    if isinstance(placement, Listed):
        if placement.blocks == (frozenset([0]),):
            return "Single"
        return f"Listed({'|'.join(','.join(map(str, sorted(d))) for d in placement.blocks)})"
    if placement.devices == 1:
        return "Single"
    every = len(radices(placement.devices))
    cut = [(i, digits) for i, digits in enumerate(placement.axes) if digits]
    names = [
        labels[i] if digits == tuple(range(every)) else f"{labels[i]}:{'.'.join(map(str, digits))}" for i, digits in cut
    ]
    if placement.partial:
        whole = placement.partial == tuple(range(every))
        names.insert(0, placement.reduce if whole else f"{placement.reduce}:{'.'.join(map(str, placement.partial))}")
        return f"Partial({' '.join(names)})"
    return f"Sharded({' '.join(names)})" if names else "Replicated"


def parse_placement(text: str, devices: int, labels: Sequence[str]) -> AnyPlacement:
    """Read the text of a placement over a relation with `labels`.

    >>> parse_placement("Sharded(t:0 f:1)", 4, ["t", "f"]).axes
    ((0,), (1,))
    """
    every = tuple(range(len(radices(devices))))
    if text == "Single":
        return single(devices, len(labels), 1)
    if text == "Replicated":
        return replicated(devices, len(labels))
    match = re.fullmatch(r"(Listed|Sharded|Partial)\((.*)\)", text)
    if match is None:
        raise PlanError(f"cannot read the placement {text!r}; written like Replicated, Sharded(t) or Sharded(t:0 f:1)")
    kind, inside = match[1], match[2]
    if kind == "Listed":
        blocks = inside.split("|") if inside else []
        return Listed(devices, tuple(frozenset(map(int, part.split(","))) for part in blocks))
    pairs = [
        (name, _digits(rest, every))
        for name, _, rest in (word.rpartition(":") if ":" in word else (word, "", "") for word in inside.split())
    ]
    partial: tuple[str, Digits] = pairs.pop(0) if kind == "Partial" else ("", ())
    axes: list[Digits] = [()] * len(labels)
    for name, digits in pairs:
        if name not in labels:
            raise PlanError(f"placement {text!r} names label {name!r}; the relation has {', '.join(labels)}")
        axes[list(labels).index(name)] = digits
    return Placement(devices, tuple(axes), partial[1], partial[0])


def _digits(text: str, every: Digits) -> Digits:
    return tuple(map(int, text.split("."))) if text else every
