"""How one label is cut: balanced parts, a tile extent, or an explicit list of cut points.

A part is never empty: asking for more parts than cells gives one part per cell, and extent 0 has no parts at all, so
that a join over it has no rows, as in SQL.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from planner.errors import PlanError


@dataclass(frozen=True)
class Cut:
    """One label's cut. Exactly one of `parts` (balanced), `tile` and `points` is given.

    >>> Cut(7, parts=3).points_list(), Cut(7, tile=3).points_list()
    ((0, 3, 5, 7), (0, 3, 6, 7))
    """

    extent: int
    parts: int = 0
    tile: int = 0
    points: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        given = [name for name in ("parts", "tile", "points") if getattr(self, name)]
        if self.extent < 0 or min(self.parts, self.tile) < 0:
            raise PlanError(f"extent, parts and tile cannot be negative: {self}")
        if self.extent and len(given) != 1:
            raise PlanError(f"a cut of extent {self.extent} wants one of parts, tile and points, got {given or 'none'}")
        if self.points:
            rising = all(a < b for a, b in zip(self.points, self.points[1:], strict=False))
            if not rising or self.points[0] != 0 or self.points[-1] != self.extent:
                raise PlanError(f"cut points must rise from 0 to the extent {self.extent}, got {list(self.points)}")
        # One way to say one thing: cuts compare by value.
        parts = min(self.parts, self.extent)
        if not self.extent:
            parts, tile, points = 0, 0, tuple[int, ...]()
        elif self.tile and (self.extent % self.tile == 0 or self.tile > self.extent):
            parts, tile, points = max(self.extent // self.tile, 1), 0, ()
        else:
            tile, points = self.tile, self.points
        object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "tile", tile)
        object.__setattr__(self, "points", points)

    @property
    def count(self) -> int:
        """How many parts."""
        if self.tile:
            return -(-self.extent // self.tile)
        return len(self.points) - 1 if self.points else self.parts

    @property
    def is_cells(self) -> bool:
        """Every part is a single cell: the label is purely relational."""
        return self.count == self.extent

    def start(self, part: int) -> int:
        """First coordinate of `part`; `start(count)` is the extent."""
        if self.points:
            return self.points[part]
        if self.tile:
            return min(part * self.tile, self.extent)
        small, larger = divmod(self.extent, self.parts) if self.parts else (0, 0)
        return part * small + min(part, larger)

    def size(self, part: int) -> int:
        return self.start(part + 1) - self.start(part)

    @property
    def largest(self) -> int:
        """The size of the largest part; 0 without parts."""
        if self.points:
            return max(self.size(p) for p in range(self.count))
        return self.size(0) if self.count else 0

    def part_of(self, coordinate: int) -> int:
        """The part that holds `coordinate`."""
        if self.points:
            return bisect_right(self.points, coordinate) - 1
        if self.tile:
            return coordinate // self.tile
        small, larger = divmod(self.extent, self.parts)
        head = larger * (small + 1)
        return coordinate // (small + 1) if coordinate < head else larger + (coordinate - head) // small

    def points_list(self) -> tuple[int, ...]:
        return tuple(self.start(p) for p in range(self.count + 1))

    def __str__(self) -> str:
        """`4096`, `4096/4`, `10@3` or `10:0.3.10`; `parse_cut` reads it back."""
        if self.points:
            return f"{self.extent}:{'.'.join(map(str, self.points))}"
        if self.tile:
            return f"{self.extent}@{self.tile}"
        return f"{self.extent}/{self.parts}" if self.parts > 1 else str(self.extent)


def parse_cut(text: str) -> Cut:
    """Read the text of a cut.

    >>> parse_cut("10@3").count
    4
    """
    for mark in "/@:":
        if mark in text:
            extent, rest = text.split(mark)
            if mark == ":":
                return Cut(int(extent), points=tuple(map(int, rest.split("."))))
            return Cut(int(extent), parts=int(rest)) if mark == "/" else Cut(int(extent), tile=int(rest))
    return Cut(int(text), parts=1)


def cut_points(extent: int, *, parts: int = 0, tile: int = 0, points: Sequence[int] = ()) -> tuple[int, ...]:
    """Where a label of `extent` is cut.

    n parts differ by at most 1, the larger ones first; a tile leaves a short last part.

    >>> cut_points(7, parts=3), cut_points(7, tile=3), cut_points(0, parts=3)
    ((0, 3, 5, 7), (0, 3, 6, 7), (0,))
    """
    return Cut(extent, parts=parts, tile=tile, points=tuple(points)).points_list()
