"""Seconds of operations and exchanges on devices that reach each other equally well.

Operations and exchanges follow each other, nothing overlaps. Local extents are rounded up, bytes counted box by box.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from planner.search.graph import Operation
from planner.search.maps import Digits, Map, piece_numbers, pieces
from planner.search.rates import Rates

Partial = Digits  # digits whose devices hold results that are still to be reduced
Price = tuple[float, int]  # seconds, bytes that all devices together receive
FREE: Price = (0.0, 0)


@dataclass
class Prices:
    """The prices on `prod(radices)` devices; what was priced before is remembered."""

    radices: Digits
    rates: Rates
    _exchanges: dict[object, Price] = field(default_factory=dict)
    _axes: dict[object, tuple[list[int], list[int]]] = field(default_factory=dict)

    @property
    def symmetric(self) -> bool:
        """Whether digits can be renamed without another price."""
        return len(set(self.radices)) == 1

    def compute(self, operation: Operation, digits: Map, items: tuple[int, ...], item: int) -> float:
        """Seconds of the largest kernel call: launch, then arithmetic or memory, whichever takes longer.

        items, item   bytes per element of the operands, of the result
        """
        parts = [pieces(own, self.radices) for own in digits]
        local = [-(-n // c) for n, c in zip(operation.extents, parts, strict=True)]
        moved = item * prod(local[axis] for axis in operation.output)
        for (_, axes), size in zip(operation.inputs, items, strict=True):
            moved += size * prod(local[axis] for axis in axes)
        points: float = prod(local)
        if operation.causal is not None:
            points = (
                points / (local[operation.causal[0]] * local[operation.causal[1]]) * _triangle(operation, local, parts)
            )
        seconds = max(operation.flop * points / self.rates.flops, moved / self.rates.memory)
        return self.rates.launch + seconds

    def exchange(
        self, extents: tuple[int, ...], item: int, source: Map, partial: Partial, target: Map, wire: float = 1.0
    ) -> Price:
        """From a map, perhaps with partial results, to another one."""
        if source == target and not partial:
            return FREE
        if self.symmetric:
            source, partial, target = _renamed(source, partial, target)
        key = (extents, item, source, partial, target, wire)
        if key not in self._exchanges:
            self._exchanges[key] = self._exchange(extents, item, source, partial, target, wire)
        return self._exchanges[key]

    def _exchange(
        self, extents: tuple[int, ...], item: int, source: Map, partial: Partial, target: Map, wire: float
    ) -> Price:
        if not partial:
            return self._direct(extents, item, source, target)
        return min(
            self._one_message(extents, item, source, partial, target, wire),
            *(
                self._two_messages(extents, item, source, partial, between, target, wire)
                for between in self._between(extents, source, partial, target)
            ),
        )

    def _direct(self, extents: tuple[int, ...], item: int, source: Map, target: Map) -> Price:
        wanted, both = self._cells(extents, source, target)
        received = [n - b for n, b in zip(wanted, both, strict=True)]
        if not any(received):
            return FREE
        return self.rates.message + max(received) * item / self.rates.link, sum(received) * item

    def _one_message(
        self, extents: tuple[int, ...], item: int, source: Map, partial: Partial, target: Map, wire: float
    ) -> Price:
        """Every wanter takes all partial results of what it wants, and reduces them."""
        k = pieces(partial, self.radices)
        wanted, both = self._cells(extents, source, target)
        received = [k * n - b for n, b in zip(wanted, both, strict=True)]
        seconds = self.rates.message + max(received) * item * wire / self.rates.link + self._merge(k, max(wanted), item)
        return seconds, round(sum(received) * item * wire)

    def _two_messages(
        self, extents: tuple[int, ...], item: int, source: Map, partial: Partial, between: Map, target: Map, wire: float
    ) -> Price:
        """Each device reduces a share first, then the shares go where they are wanted."""
        k = pieces(partial, self.radices)
        shares, _ = self._cells(extents, between, between)
        received = [(k - 1) * n for n in shares]
        seconds = self.rates.message + max(received) * item * wire / self.rates.link + self._merge(k, max(shares), item)
        more, moved = self._direct(extents, item, between, target)
        return seconds + more, round(sum(received) * item * wire) + moved

    def _merge(self, k: int, cells: int, item: int) -> float:
        return self.rates.launch + cells * (k * item + item) / self.rates.memory

    def _between(self, extents: tuple[int, ...], source: Map, partial: Partial, target: Map) -> list[Map]:
        """Maps in which the reduced shares may lie: the partial digits cut the axes that the source leaves them."""
        if not extents:
            return []
        largest = max(range(len(extents)), key=lambda axis: extents[axis])
        wanted = {d: axis for axis, digits in enumerate(target) for d in digits}
        choices = [dict.fromkeys(partial, axis) for axis in (largest, *range(len(extents)))]
        choices.append({d: wanted.get(d, largest) for d in partial})
        found = []
        for choice in choices:
            between = tuple((*digits, *(d for d in partial if choice[d] == axis)) for axis, digits in enumerate(source))
            if all(pieces(own, self.radices) <= n for own, n in zip(between, extents, strict=True)):
                found.append(between)
        return list(dict.fromkeys(found))

    def _cells(self, extents: tuple[int, ...], source: Map, target: Map) -> tuple[list[int], list[int]]:
        """Per device how many cells it wants, and how many of these it has."""
        count = prod(self.radices)
        wanted, both = [1] * count, [1] * count
        for extent, own, want in zip(extents, source, target, strict=True):
            lengths, common = self._axis(extent, own, want)
            wanted = [a * b for a, b in zip(wanted, lengths, strict=True)]
            both = [a * b for a, b in zip(both, common, strict=True)]
        return wanted, both

    def _axis(self, extent: int, own: Digits, want: Digits) -> tuple[list[int], list[int]]:
        """Per device the length of the piece it wants of an axis, and of what that shares with its own."""
        key = (extent, own, want)
        if key not in self._axes:
            c, w = pieces(own, self.radices), pieces(want, self.radices)
            lengths, common = [], []
            for x, y in zip(piece_numbers(own, self.radices), piece_numbers(want, self.radices), strict=True):
                first, last = extent * y // w, extent * (y + 1) // w
                lengths.append(last - first)
                common.append(max(0, min(last, extent * (x + 1) // c) - max(first, extent * x // c)))
            self._axes[key] = lengths, common
        return self._axes[key]


def _triangle(operation: Operation, local: list[int], parts: list[int]) -> float:
    """Query-key pairs of the device that has most of them."""
    assert operation.causal is not None
    t, s = operation.causal
    if parts[s] == 1:
        return local[t] * (operation.extents[s] - local[t] / 2)
    if parts[t] == 1:
        return local[s] * (operation.extents[s] - local[s] / 2)
    return local[t] * local[s]


def _renamed(source: Map, partial: Partial, target: Map) -> tuple[Map, Partial, Map]:
    """The same exchange with digits numbered as they appear."""
    name: dict[int, int] = {}

    def new(digits: Digits) -> Digits:
        return tuple([name.setdefault(d, len(name)) for d in digits])

    return tuple([new(digits) for digits in source]), new(partial), tuple([new(digits) for digits in target])
