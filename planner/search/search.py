"""The maps of least seconds: exact, in the space of digit maps with one stop at most between an operation and the next.

    plan(graph, prices)   the map of every operation, and of every value that several read

An operation's map says how its labels are cut over the devices: block -> device and partial results follow. A value
with one reader goes there directly; one with several, or at a segment's border, is first brought to a map of its own,
so that what a gather brings is paid for once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf

from planner.errors import InternalError, PlanError
from planner.search.elimination import Problem, Reduced, reduced
from planner.search.graph import Graph, Operation, Start
from planner.search.maps import Map, digit_maps, restricted, single_copy_maps
from planner.search.prices import Partial, Price, Prices
from planner.search.segments import Segment, reads, segments, values_of

Allowed = Callable[[Operation, Map], bool]
Produced = tuple[Map, Partial]


@dataclass(frozen=True)
class Plan:
    """The maps that were chosen, and what they cost.

    operations   per operation the map over its labels
    values       of every value that is brought to a map of its own
    """

    operations: tuple[Map, ...]
    values: dict[int, Map]
    seconds: float
    moved_bytes: int


def plan(graph: Graph, prices: Prices, *, in_pieces: bool = False, allowed: Allowed | None = None) -> Plan:
    """The plan of least seconds.

    in_pieces   the results have to lie in single copies, one piece per device; otherwise they stay as they fall
    allowed     restricts the maps of operations: what makes a named strategy of the search
    Raises      PlanError where nothing is allowed
    """
    found = _Search(graph, prices, in_pieces, allowed).best()
    seconds, moved = price(graph, prices, found[0], found[1], in_pieces)
    if abs(seconds - found[2]) > 1e-9 * max(seconds, 1e-12):
        raise InternalError(f"the search reports {found[2]} seconds, and its plan costs {seconds}")
    return Plan(tuple(found[0]), found[1], seconds, moved)


def price(
    graph: Graph, prices: Prices, operations: Sequence[Map], values: dict[int, Map], in_pieces: bool = False
) -> Price:
    """What a plan costs, operation by operation and exchange by exchange: seconds, and bytes moved."""
    seconds, moved = 0.0, 0
    producer = {value: i for i, value in enumerate(graph.made)}

    def pay(one: Price) -> None:
        nonlocal seconds, moved
        seconds, moved = seconds + one[0], moved + one[1]

    for i, (operation, digits) in enumerate(zip(graph.operations, operations, strict=True)):
        pay((prices.compute(operation, digits, *_items(graph, i)), 0))
    consumers = graph.consumers()
    for v, readers in enumerate(consumers):
        value = graph.values[v]
        if value.start is Start.RESIDENT:
            continue
        stops = [values[v]] if v in values else []
        needs = [restricted(operations[i], graph.operations[i].inputs[k][1]) for i, k in readers]
        for target in stops or needs:
            if v in producer:
                operation = graph.operations[producer[v]]
                source, partial = produced(operation, operations[producer[v]])
                pay(prices.exchange(value.extents, value.item, source, partial, target, operation.wire))
            else:
                pay(_from_store(prices, value.extents, value.item, target))
        if stops:
            for need in needs:
                pay(prices.exchange(value.extents, value.item, stops[0], (), need))
        if in_pieces and v in producer and not readers:
            operation = graph.operations[producer[v]]
            pay(
                _to_pieces(
                    prices, value.extents, value.item, produced(operation, operations[producer[v]]), operation.wire
                )
            )
    return seconds, moved


def produced(operation: Operation, digits: Map) -> Produced:
    """The map in which a result falls, and the digits over which it is still to be reduced."""
    kept = set(operation.output)
    partial = tuple(sorted(d for axis, own in enumerate(digits) if axis not in kept for d in own))
    return restricted(digits, operation.output), partial


def _items(graph: Graph, i: int) -> tuple[tuple[int, ...], int]:
    """Bytes per element of the operands of an operation, and of its result."""
    operands = tuple(graph.values[value].item for value, _ in graph.operations[i].inputs)
    return operands, graph.values[graph.made[i]].item


def _from_store(prices: Prices, extents: tuple[int, ...], item: int, target: Map) -> Price:
    """From the best map in which one copy may be stored."""
    starts = single_copy_maps(prices.radices, extents)
    return min((prices.exchange(extents, item, start, (), target) for start in starts), default=(inf, 0))


def _to_pieces(prices: Prices, extents: tuple[int, ...], item: int, source: Produced, wire: float) -> Price:
    ends = single_copy_maps(prices.radices, extents)
    return min((prices.exchange(extents, item, *source, end, wire) for end in ends), default=(inf, 0))


@dataclass
class _Search:
    graph: Graph
    prices: Prices
    in_pieces: bool
    allowed: Allowed | None
    _reduced: dict[object, _Table] = field(default_factory=dict)

    def best(self) -> tuple[list[Map], dict[int, Map], float]:
        """The maps of operations, of values, and what they cost."""
        parts = segments(self.graph)
        tables = [self._table(part) for part in parts]
        # least[b]: the least cost up to the border in state b; came[i][b]: the state at the border before
        least = self._start(parts[0])
        came: list[list[int]] = []
        for table in tables:
            sums, from_ = [], []
            for b in range(table.after):
                column = [least[a] + table.cost[a][b] for a in range(table.before)]
                from_.append(min(range(len(column)), key=column.__getitem__))
                sums.append(column[from_[-1]])
            least, came = sums, [*came, from_]
        state = min(range(len(least)), key=least.__getitem__)
        total = least[state]
        if total == inf:
            raise PlanError("no plan is allowed: every map of some operation is excluded")
        operations: list[Map] = [()] * len(self.graph.operations)
        values: dict[int, Map] = {}
        for part, table, from_ in zip(reversed(parts), reversed(tables), reversed(came), strict=True):
            before = from_[state]
            self._read(part, table, before, state, operations, values)
            state = before
        return operations, values, total

    def _start(self, part: Segment) -> list[float]:
        if part.before is None:
            return [0.0]
        value = self.graph.values[part.before]
        stops = digit_maps(self.prices.radices, value.extents)
        return [_from_store(self.prices, value.extents, value.item, stop)[0] for stop in stops]

    def _table(self, part: Segment) -> _Table:
        key = reads(self.graph, part)
        if key not in self._reduced:
            self._reduced[key] = _Table(_Builder(self, part).built, part)
        return self._reduced[key]

    def _read(
        self, part: Segment, table: _Table, before: int, after: int, operations: list[Map], values: dict[int, Map]
    ) -> None:
        """Enter the maps of one segment, given the states at its borders."""
        states, built = table.states(before, after), table.built
        for i, variable in built.operations.items():
            operations[i - table.part.first + part.first] = built.domains[variable][states[variable]]
        here = dict(zip(values_of(self.graph, table.part), values_of(self.graph, part), strict=True))
        for v, variable in built.values.items():
            values[here[v]] = built.domains[variable][states[variable]]


@dataclass
class _Built:
    """The problem of a segment: which variable is the map of which operation, of which value."""

    problem: Problem
    domains: list[tuple[Map, ...]]
    operations: dict[int, int]
    values: dict[int, int]


class _Builder:
    def __init__(self, search: _Search, part: Segment) -> None:
        self.graph, self.prices, self.search = search.graph, search.prices, search
        self.built = _Built(Problem(), [], {}, {})
        consumers = self.graph.consumers()
        inside = range(part.first, part.last)
        for i in inside:
            self._operation(i)
        touched = {v for i in inside for v, _ in self.graph.operations[i].inputs} | {self.graph.made[i] for i in inside}
        producer = {self.graph.made[i]: i for i in inside}
        for v in sorted(touched):
            value, readers = self.graph.values[v], [(i, k) for i, k in consumers[v] if i in inside]
            if value.start is Start.RESIDENT:
                continue
            border = v in (part.before, part.after)
            if border or len(readers) > 1:
                self._stop(v, readers, producer.get(v), v == part.before)
            elif v in producer and readers:
                self._edge(v, producer[v], readers[0])
            elif v in producer and self.search.in_pieces:
                self._end(v, producer[v])
            elif readers:
                self._stored(v, readers[0])

    def _variable(self, domain: tuple[Map, ...], unary: list[float]) -> int:
        self.built.domains.append(domain)
        return self.built.problem.variable(unary)

    def _operation(self, i: int) -> None:
        operation, allowed = self.graph.operations[i], self.search.allowed
        domain = digit_maps(self.prices.radices, operation.most)
        if allowed is not None:
            domain = tuple(digits for digits in domain if allowed(operation, digits))
        if not domain:
            raise PlanError(f"no map of {operation.name} is allowed")
        items = _items(self.graph, i)
        unary = [self.prices.compute(operation, digits, *items) for digits in domain]
        self.built.operations[i] = self._variable(domain, unary)

    def _needs(self, reader: tuple[int, int]) -> tuple[list[int], list[Map]]:
        """The classes of an operation's maps by what they need of an operand."""
        i, k = reader
        axes = self.graph.operations[i].inputs[k][1]
        return _classes([restricted(digits, axes) for digits in self.built.domains[self.built.operations[i]]])

    def _produced(self, i: int) -> tuple[list[int], list[Produced]]:
        operation = self.graph.operations[i]
        return _classes([produced(operation, digits) for digits in self.built.domains[self.built.operations[i]]])

    def _edge(self, v: int, maker: int, reader: tuple[int, int]) -> None:
        value, wire = self.graph.values[v], self.graph.operations[maker].wire
        (made, sources), (read, targets) = self._produced(maker), self._needs(reader)
        rows = [
            [self.prices.exchange(value.extents, value.item, *source, target, wire)[0] for target in targets]
            for source in sources
        ]
        self.built.problem.pair(self.built.operations[maker], self.built.operations[reader[0]], (made, read), rows)

    def _stop(self, v: int, readers: list[tuple[int, int]], maker: int | None, given: bool) -> None:
        """A map of its own for a value; `given` to the segment, or made in it, or stored."""
        value = self.graph.values[v]
        domain = digit_maps(self.prices.radices, value.extents)
        unary = [0.0] * len(domain)
        if maker is None and not given:
            unary = [_from_store(self.prices, value.extents, value.item, stop)[0] for stop in domain]
        variable = self.built.values[v] = self._variable(domain, unary)
        own = list(range(len(domain)))
        if maker is not None:
            wire = self.graph.operations[maker].wire
            made, sources = self._produced(maker)
            rows = [
                [self.prices.exchange(value.extents, value.item, *source, stop, wire)[0] for stop in domain]
                for source in sources
            ]
            self.built.problem.pair(self.built.operations[maker], variable, (made, own), rows)
        for reader in readers:
            read, targets = self._needs(reader)
            rows = [
                [self.prices.exchange(value.extents, value.item, stop, (), target)[0] for target in targets]
                for stop in domain
            ]
            self.built.problem.pair(variable, self.built.operations[reader[0]], (own, read), rows)

    def _stored(self, v: int, reader: tuple[int, int]) -> None:
        value = self.graph.values[v]
        read, targets = self._needs(reader)
        costs = [_from_store(self.prices, value.extents, value.item, target)[0] for target in targets]
        self._pay(reader[0], read, costs)

    def _end(self, v: int, maker: int) -> None:
        value, wire = self.graph.values[v], self.graph.operations[maker].wire
        made, sources = self._produced(maker)
        costs = [_to_pieces(self.prices, value.extents, value.item, source, wire)[0] for source in sources]
        self._pay(maker, made, costs)

    def _pay(self, operation: int, classes: list[int], costs: list[float]) -> None:
        unary = self.built.problem.unary[self.built.operations[operation]]
        for state, c in enumerate(classes):
            unary[state] += costs[c]


class _Table:
    """The least cost of a segment per states at its borders; of an open end there is one state, 0."""

    def __init__(self, built: _Built, part: Segment) -> None:
        self.built, self.part = built, part
        self.borders = [None if v is None else built.values[v] for v in (part.before, part.after)]
        self.reduced: Reduced = reduced(built.problem, [b for b in self.borders if b is not None])
        self.before, self.after = (1 if b is None else len(built.domains[b]) for b in self.borders)
        self.cost = [[self.reduced.cost(self._at(a, b)) for b in range(self.after)] for a in range(self.before)]
        self._states: dict[tuple[int, int], dict[int, int]] = {}

    def _at(self, a: int, b: int) -> dict[int, int]:
        return {v: s for v, s in zip(self.borders, (a, b), strict=True) if v is not None}

    def states(self, a: int, b: int) -> dict[int, int]:
        """States of all variables of the segment, of least cost."""
        if (a, b) not in self._states:
            self._states[a, b] = self.reduced.complete(self._at(a, b))
        return self._states[a, b]


def _classes(keys: Sequence[object]) -> tuple[list[int], list]:  # type: ignore[type-arg]
    """Which of the distinct keys each one is, and the distinct ones."""
    number: dict[object, int] = {}
    return [number.setdefault(key, len(number)) for key in keys], list(number)
