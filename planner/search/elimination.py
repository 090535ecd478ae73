"""Exact minimum of a sum of tables over discrete variables, one variable at a time.

Tables are over classes of states: states of a variable that a table does not tell apart share a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from math import inf
from operator import add

CHAMPIONS = 6  # states against which the others are measured
TOLERANCE = 1e-9  # relative: sums in another order must not decide


@dataclass
class Factor:
    """A table over some variables, in row-major order of their classes.

    classes   per variable, in order, the class of each of its states
    counts    per variable how many classes there are
    """

    scope: tuple[int, ...]
    classes: list[list[int]]
    counts: list[int]
    table: list[float]

    def classes_of(self, variable: int) -> list[int]:
        return self.classes[self.scope.index(variable)]

    def row(self, variable: int, others: dict[int, int]) -> list[float]:
        """The values per class of `variable`, at the classes `others` of the rest of the scope."""
        start, step, stride = 0, 0, 1
        for own, count in zip(reversed(self.scope), reversed(self.counts), strict=True):
            if own == variable:
                step = stride
            else:
                start += others[own] * stride
            stride *= count
        n = self.counts[self.scope.index(variable)]
        return self.table[start : start + step * (n - 1) + 1 : step]

    def at(self, states: dict[int, int]) -> float:
        """The value where every variable has a state."""
        index = 0
        for own, classes, count in zip(self.scope, self.classes, self.counts, strict=True):
            index = index * count + classes[states[own]]
        return self.table[index]


@dataclass
class Problem:
    """Variables by number, with a price per state; and the factors."""

    unary: list[list[float]] = field(default_factory=list)
    factors: list[Factor] = field(default_factory=list)

    def variable(self, unary: Sequence[float]) -> int:
        """Add a variable with these prices of its states."""
        self.unary.append(list(unary))
        return len(self.unary) - 1

    def pair(self, a: int, b: int, classes: tuple[list[int], list[int]], rows: Sequence[Sequence[float]]) -> None:
        """Add a table of two variables: `rows[class of a][class of b]`."""
        table = [value for row in rows for value in row]
        self.factors.append(Factor((a, b), [classes[0], classes[1]], [len(rows), len(rows[0])], table))

    def cost(self, states: Sequence[int]) -> float:
        """What an assignment costs."""
        known = dict(enumerate(states))
        return sum(u[s] for u, s in zip(self.unary, states, strict=True)) + sum(f.at(known) for f in self.factors)


@dataclass
class Reduced:
    """A problem of which only the kept variables are left: their prices, the factors between them, and how the others
    follow."""

    problem: Problem
    kept: tuple[int, ...]
    factors: list[Factor]
    _trace: list[tuple[int, list[Factor]]]
    _alive: list[list[int]]

    def cost(self, states: dict[int, int]) -> float:
        """The least cost of the whole at these states of the kept variables."""
        return sum(self.problem.unary[v][states[v]] for v in self.kept) + sum(f.at(states) for f in self.factors)

    def complete(self, states: dict[int, int]) -> dict[int, int]:
        """States of all variables, of least cost given those of the kept ones."""
        done = dict(states)
        for variable, factors in reversed(self._trace):
            unary, best = self.problem.unary[variable], (inf, -1)
            for state in self._alive[variable]:
                done[variable] = state
                cost = unary[state] + sum(f.at(done) for f in factors)
                if cost < best[0]:
                    best = (cost, state)
            done[variable] = best[1]
        return done


def reduced(problem: Problem, kept: Sequence[int] = ()) -> Reduced:
    """Eliminate every variable but the kept ones, the one that leaves the smallest table first."""
    alive = [list(range(len(u))) for u in problem.unary]
    for variable in range(len(alive)):
        if variable not in kept:
            alive[variable] = _undominated(problem, variable, alive)
    factors, trace = list(problem.factors), []
    left = [v for v in range(len(problem.unary)) if v not in kept]
    while left:
        variable = min(left, key=lambda v: _size(v, factors))
        left.remove(variable)
        mine = [f for f in factors if variable in f.scope]
        factors = [f for f in factors if variable not in f.scope]
        factors.append(_eliminated(problem.unary[variable], variable, mine, alive[variable]))
        trace.append((variable, mine))
    return Reduced(problem, tuple(kept), factors, trace, alive)


def minimum(problem: Problem) -> tuple[float, list[int]]:
    """The least cost and the states that have it."""
    result = reduced(problem)
    states = result.complete({})
    return result.cost({}), [states[v] for v in range(len(problem.unary))]


def _size(variable: int, factors: list[Factor]) -> int:
    """Entries of the table that eliminating a variable leaves."""
    counts: dict[int, int] = {}
    for factor in factors:
        if variable in factor.scope:
            for other, count in zip(factor.scope, factor.counts, strict=True):
                if other != variable:
                    counts[other] = counts.get(other, 1) * count
    size = 1
    for count in counts.values():
        size *= count
    return size


def _undominated(problem: Problem, variable: int, alive: list[list[int]]) -> list[int]:
    """The states that some other state does not beat whatever the other variables do."""
    states = alive[variable]
    mine = [_rows(f, variable) for f in problem.factors if variable in f.scope]
    unary = problem.unary[variable]
    least = [[min(row) for row in rows] for _, rows in mine]
    bound = {s: unary[s] + sum(m[c[s]] for (c, _), m in zip(mine, least, strict=True)) for s in states}
    champions = sorted(states, key=lambda s: (bound[s], s))[:CHAMPIONS]
    gone: set[int] = set()
    for champion in champions:
        if champion in gone:
            continue
        gaps = []
        for classes, rows in mine:
            best = rows[classes[champion]]
            gaps.append([min(map(_minus, row, best)) for row in rows])
        for s in states:
            if s == champion or s in gone:
                continue
            gap = unary[s] - unary[champion] + sum(g[c[s]] for g, (c, _) in zip(gaps, mine, strict=True))
            if gap > 0 and gap > TOLERANCE * abs(unary[champion]):
                gone.add(s)
    return [s for s in states if s not in gone]


def _minus(a: float, b: float) -> float:
    return inf if a == inf else a - b


def _rows(factor: Factor, variable: int) -> tuple[list[int], list[list[float]]]:
    """The classes of a variable, and per class its values at all states of the rest."""
    classes = factor.classes_of(variable)
    if len(factor.scope) == 1:
        return classes, [[value] for value in factor.table]
    n, m = factor.counts
    if variable == factor.scope[0]:
        return classes, [factor.table[i * m : (i + 1) * m] for i in range(n)]
    return classes, [factor.table[j::m] for j in range(m)]


def _eliminated(unary: list[float], variable: int, mine: list[Factor], alive: list[int]) -> Factor:
    """The table over the neighbours of a variable: its least cost."""
    neighbours = sorted({v for f in mine for v in f.scope if v != variable})
    joint = {v: _joint(v, mine) for v in neighbours}  # classes over all factors, and the class in each
    last = _private(variable, mine)
    outer = [v for v in neighbours if last is None or v not in last.scope]
    base = [unary[s] for s in alive]
    rest = [f for f in mine if f is not last]
    own = [[f.classes_of(variable)[s] for s in alive] for f in rest]
    groups: list[list[int]] = []
    lasts: list[list[float]] = []
    inner = next((v for v in neighbours if v not in outer), None)
    if last is not None and inner is not None:
        classes = last.classes_of(variable)
        found = sorted({classes[s] for s in alive})
        groups = [[i for i, s in enumerate(alive) if classes[s] == c] for c in found]
        n = last.counts[last.scope.index(inner)]
        lasts = [[row[c] for c in found] for row in (last.row(variable, {inner: k}) for k in range(n))]
    table: dict[tuple[int, ...], list[float]] = {}
    for choice in product(*(range(len(joint[v][1])) for v in outer)):
        sums = base
        for factor, classes in zip(rest, own, strict=True):
            at = {v: joint[v][1][c][id(factor)] for v, c in zip(outer, choice, strict=True) if v in factor.scope}
            row = factor.row(variable, at)
            sums = list(map(add, sums, [row[c] for c in classes]))
        if inner is None:
            table[choice] = [min(sums)]
        else:
            least = [min([sums[i] for i in group]) for group in groups]
            table[choice] = [min(map(add, row, least)) for row in lasts]
    scope = (*outer, *([inner] if inner is not None else []))
    counts = [len(joint[v][1]) for v in outer]
    told = [joint[v][0] for v in outer]
    if inner is not None and last is not None:
        counts.append(len(lasts))
        told.append(last.classes_of(inner))
    flat = [value for choice in product(*(range(len(joint[v][1])) for v in outer)) for value in table[choice]]
    return Factor(scope, told, counts, flat)


def _private(variable: int, mine: list[Factor]) -> Factor | None:
    """The factor of two variables with the fewest classes of this one, whose other variable no other factor has."""
    found = [
        f
        for f in mine
        if len(f.scope) == 2
        and not any(v in other.scope for v in f.scope if v != variable for other in mine if other is not f)
    ]
    return min(found, key=lambda f: f.counts[f.scope.index(variable)]) if found else None


def _joint(variable: int, mine: list[Factor]) -> tuple[list[int], list[dict[int, int]]]:
    """The classes of a neighbour that any of the factors tells apart: per state, and per class its class in each factor
    by id."""
    having = [f for f in mine if variable in f.scope]
    number: dict[tuple[int, ...], int] = {}
    columns = [f.classes_of(variable) for f in having]
    states = [number.setdefault(key, len(number)) for key in zip(*columns, strict=True)]
    return states, [{id(f): c for f, c in zip(having, key, strict=True)} for key in number]
