"""What a user may ask of the planner; everything left open is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
        for what, given in (("parts", self.parts), ("tile", self.tile)):
            for label, n in given.items():
                if n < 1:
                    raise PlanError(f"{what} of label {label!r} must be at least 1, got {n}")
        both = sorted(set(self.parts) & set(self.tile))
        if both:
            raise PlanError(f"label {both[0]!r} is given both parts and a tile; give one")
