"""Texts that were read before: over relations of the same types, fills and dictionaries they say the same.

Only what a text says is kept, not what the relations hold.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from einsql.relation import VALUE, Relation
from planner.einsum import Einsum, Tensor
from planner.node import postorder
from planner.relation_type import Label
from planner.scalar import Value

MOST = 256  # texts kept; reading one takes 0.2 to 5 ms


@dataclass(frozen=True)
class Reading:
    """A text as a graph over relations, which it calls by the names in `relations`. `fill`: None for SQL. `value`: what
    the value column is called."""

    graph: Tensor
    labels: tuple[Label, ...]
    relations: Mapping[str, Relation]
    fill: Value | None
    value: str = VALUE

    def in_graph(self, cut: Any) -> Any:
        """{label: n} by the names that the graph has, which may know a label of the result under another one only."""
        if not isinstance(cut, Mapping):
            return {} if cut is None else cut
        known = {label for node in postorder(self.graph) for label in _labels_inside(node)}
        own = dict(zip(self.labels, self.graph.type.labels, strict=True))
        return {label if label in known else own.get(label, label): n for label, n in cut.items()}


@dataclass(frozen=True)
class _Kept:
    """A reading without the data: `stored` has for each name in the graph the name in the catalog, `made` the rest."""

    reading: Reading
    stored: Mapping[str, str]
    made: Mapping[str, Relation]


class Readings:
    """What the texts of one session say, while its catalog has the same names and types."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, _Kept] = {}

    def find(self, text: Hashable, catalog: Mapping[str, Relation]) -> Reading | None:
        """What a text says of the relations that the catalog holds now."""
        kept = self._kept.get(text)
        if kept is None:
            return None
        relations = {**kept.made, **{name: catalog[known] for name, known in kept.stored.items()}}
        return replace(kept.reading, relations=relations)

    def keep(self, text: Hashable, reading: Reading, catalog: Mapping[str, Relation]) -> None:
        """Remember a reading; the oldest ones go when there are too many."""
        stored = {name: r.name for name, r in reading.relations.items() if catalog.get(r.name) is r}
        made = {name: r for name, r in reading.relations.items() if name not in stored}
        while len(self._kept) >= MOST:
            self._kept.pop(next(iter(self._kept)), None)
        self._kept[text] = _Kept(replace(reading, relations={}), stored, made)

    def stored(self, before: Relation | None, after: Relation) -> None:
        """Forget everything if a relation that takes the place of another reads differently."""
        if before is None or not _reads_alike(before, after):
            self.forget()

    def forget(self) -> None:
        """Names came or went, or mean something else."""
        self._kept.clear()


def _labels_inside(node: Tensor) -> tuple[Label, ...]:
    return node.subscripts.labels if isinstance(node, Einsum) else node.type.labels


def _reads_alike(a: Relation, b: Relation) -> bool:
    same = a.domains.keys() == b.domains.keys() and all(a.domains[label] is b.domains[label] for label in a.domains)
    return same and a.type == b.type and (a.fill, type(a.fill), a.value) == (b.fill, type(b.fill), b.value)
