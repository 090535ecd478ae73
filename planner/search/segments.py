"""A graph cut where one value is alive. Segments that read alike are reduced once, to a table over their borders."""

from __future__ import annotations

from dataclasses import dataclass

from planner.search.graph import Graph, Start


@dataclass(frozen=True)
class Segment:
    """Operations `first` to `last`, the latter excluded; the value at either border, None at an open end."""

    first: int
    last: int
    before: int | None
    after: int | None


def segments(graph: Graph) -> list[Segment]:
    """The segments in order; one if no cut leaves a single value alive."""
    consumers = graph.consumers()
    last_use = [max((i for i, _ in readers), default=-1) for readers in consumers]
    born = {value: i for i, value in enumerate(graph.made)}
    kept = [v for v, value in enumerate(graph.values) if value.start is not Start.RESIDENT]
    found: list[Segment] = []
    first, before = 0, None
    for i in range(-1, len(graph.operations) - 1):
        alive = [v for v in kept if born.get(v, -1) <= i < last_use[v]]
        if len(alive) == 1:
            if i >= first:
                found.append(Segment(first, i + 1, before, alive[0]))
            first, before = i + 1, alive[0]
    found.append(Segment(first, len(graph.operations), before, None))
    return found


def values_of(graph: Graph, segment: Segment) -> list[int]:
    """The values of a segment by first use."""
    found: dict[int, None] = {} if segment.before is None else {segment.before: None}
    for i in range(segment.first, segment.last):
        found |= dict.fromkeys(value for value, _ in graph.operations[i].inputs)
        found[graph.made[i]] = None
    return list(found)


def reads(graph: Graph, segment: Segment) -> tuple[object, ...]:
    """What a segment says, values numbered by first use: equal for two that have equal tables."""
    order = values_of(graph, segment)
    number = {value: n for n, value in enumerate(order)}
    said: list[object] = []
    for value in order:
        v = graph.values[value]
        said.append((v.extents, v.item, v.start if value != segment.before else None))
    for i in range(segment.first, segment.last):
        o = graph.operations[i]
        operands = tuple((number[value], axes) for value, axes in o.inputs)
        said.append((o.extents, o.most, operands, o.output, o.flop, o.causal, o.wire, number[graph.made[i]]))
    last = segment.last == len(graph.operations)
    return (*said, segment.before is not None, None if segment.after is None else number[segment.after], last)
