"""What a user may ask of the planner; everything left open is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral
from types import MappingProxyType

from planner.errors import PlanError
from planner.relation_type import Label

_NOTHING: Mapping[str, int] = MappingProxyType({})
_NOWHERE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Request:
    """Overrides of the automatic choices.

    devices     how many devices the plan is for
    parts       label -> how many balanced parts
    tile        label -> tile extent
    placement   node name as EXPLAIN prints it -> a placement: Replicated, Sharded(t), Sharded(t:0 f:1), Listed(0|1|0,1)
    """

    devices: int = 1
    parts: Mapping[Label, int] = field(default_factory=lambda: _NOTHING)
    tile: Mapping[Label, int] = field(default_factory=lambda: _NOTHING)
    placement: Mapping[str, str] = field(default_factory=lambda: _NOWHERE)

    def __post_init__(self) -> None:
        if self.devices < 1:
            raise PlanError(f"a plan wants at least one device, got {self.devices}")
        check_cuts(self.parts, self.tile)
        if not isinstance(self.placement, Mapping) or not all(isinstance(p, str) for p in self.placement.values()):
            raise PlanError(f"placement is {{node: text}}, as in {{'e1': 'Sharded(i)'}}, got {self.placement!r}")


def check_cuts(parts: object, tile: object) -> None:
    """Refuse what is no {label: count} with counts of at least 1, and a label that is given both."""
    for what, given in (("parts", parts), ("tile", tile)):
        if not isinstance(given, Mapping):
            raise PlanError(f"{what} is {{label: n}}, as in {{'i': 4}}, got {given!r}")
        for label, n in given.items():
            if not isinstance(label, str):
                raise PlanError(f"{what} is {{label: n}}, as in {{'i': 4}}, got the label {label!r}")
            if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
                raise PlanError(f"{what} of label {label!r} must be at least 1, a whole number, got {n!r}")
    assert isinstance(parts, Mapping) and isinstance(tile, Mapping)
    both = sorted(set(parts) & set(tile))
    if both:
        raise PlanError(f"label {both[0]!r} is given both parts and a tile; give one")
