"""Which dictionary every axis of an einsum graph has, and how axes of different dictionaries become one.

Dictionaries follow from the inputs as types do, so no node carries them. To join two of them, an operand is joined with
the relation of its old and new coordinates first: its rows are then under the union of both dictionaries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from einsql.cells import cell_cuts
from einsql.domains import Domain, union
from einsql.relation import Relation
from einsql.sources import called
from einsql.total import Whole
from gpu_exec.batch import from_cells
from planner.dtypes import BOOL
from planner.einsum import Einsum, Input, Tensor
from planner.errors import ShapeError
from planner.relation_type import Label, RelationType
from planner.scalar import Arg, Expr, labels_of
from planner.subscripts import Subscripts, unused

Axes = tuple[Domain | None, ...]


@dataclass
class GraphDomains:
    """The dictionaries of the nodes of one query, whose inputs are found in `relations` by name."""

    relations: dict[str, Relation]
    _known: dict[Tensor, Axes] = field(default_factory=dict)
    _recodes: dict[tuple[Domain, Domain], Relation] = field(default_factory=dict)

    def of(self, node: Tensor) -> Axes:
        """Per axis of `node` its dictionary; None where coordinates are themselves."""
        stack = [node]
        while stack:
            here = stack[-1]
            missing = [arg for arg in here.args if arg not in self._known]
            stack.extend(missing)
            if not missing:
                self._known[stack.pop()] = self._infer(here)
        return self._known[node]

    def _infer(self, node: Tensor) -> Axes:
        if node in self._known:
            return self._known[node]
        match node:
            case Input():
                domains = self.relations[node.name].domains
                return tuple(domains.get(label) for label in self.relations[node.name].labels)
            case Einsum(operands, subscripts):
                found: dict[Label, Domain] = {}
                for labels, operand in zip(subscripts.inputs, operands, strict=True):
                    for label, domain in zip(labels, self._known[operand], strict=True):
                        if domain is not None:
                            found.setdefault(label, domain)
                return tuple(found.get(label) for label in subscripts.output)
        return self._known[node.args[0]] if node.args else (None,) * len(node.type.labels)

    def shape(self, node: Tensor) -> tuple[int, ...]:
        """The extents of a node; an axis of one value is no axis to be stretched, so it counts as two."""
        domains = self.of(node)
        return tuple(n if domain is None else max(n, 2) for n, domain in zip(node.type.extents, domains, strict=True))

    def recoded(self, node: Tensor, axis: int, domain: Domain) -> Tensor:
        """The same cells with one axis under another dictionary, which has all values of its own."""
        old = self.of(node)[axis]
        assert old is not None
        if old == domain:
            return node
        if (old, domain) not in self._recodes:
            self._recodes[old, domain] = _recode(old, domain)
        relation = self._recodes[old, domain]
        recode = Input(relation.type, name=called(relation, self.relations))
        labels = node.type.labels
        (before,) = unused(1, labels)
        side = tuple(before if i == axis else label for i, label in enumerate(labels))
        # Each new coordinate meets one old one, so that any reduction gives its cell; this one keeps the dtype.
        reduce = "any" if node.type.dtype == BOOL else "sum" if node.type.dtype.is_complex else "max"
        return Einsum((node, recode), Subscripts((side, (before, labels[axis])), labels), Arg(0), reduce)

    def unified(self, operands: Sequence[Whole], subscripts: Subscripts, combine: Expr) -> list[Whole]:
        """The operands of an einsum with every label under one dictionary.

        Raises   ShapeError for a label that is a dictionary here and a range there, and for one that `combine` reads
        """
        found: dict[Label, list[tuple[int, int, Domain | None]]] = {}
        for i, (labels, operand) in enumerate(zip(subscripts.inputs, operands, strict=True)):
            for axis, (label, domain) in enumerate(zip(labels, self.of(operand.node), strict=True)):
                found.setdefault(label, []).append((i, axis, domain))
        whole = list(operands)
        for label, places in found.items():
            domains = [domain for _, _, domain in places if domain is not None]
            if not domains:
                continue
            if len(domains) < len(places):
                raise ShapeError(_mixed(label, places, operands))
            if label in labels_of(combine):
                raise ShapeError(f"label {label!r} stands for values ({domains[0]}), and an expression reads numbers")
            try:
                both = union(domains)
            except ShapeError as error:
                raise ShapeError(f"label {label!r} of einsum {subscripts}: {error}") from None
            for i, axis, _ in places:
                whole[i] = replace(whole[i], node=self.recoded(whole[i].node, axis, both))
        return whole


def _mixed(label: Label, places: Sequence[tuple[int, int, Domain | None]], operands: Sequence[Whole]) -> str:
    lines = [f"label {label!r} stands for values in one operand and for positions in another"]
    for i, axis, domain in places:
        name = operands[i].node.name or "operand"
        meaning = "positions from 0" if domain is None else str(domain)
        lines.append(f"    operand {i + 1} axis {axis + 1}   {name}   {meaning}")
    return "\n".join(lines) + "\n  give both a domain, as in labels='src:person', or neither"


def _recode(old: Domain, new: Domain) -> Relation:
    """Rows (old coordinate, new coordinate), one per value of the old dictionary."""
    coordinates = np.stack([np.arange(len(old)), new.codes(old.values)], axis=1)
    cuts = cell_cuts((len(old), len(new)))
    type = RelationType(("old", "new"), cuts, BOOL, "scalar", "blocks")
    batch = from_cells(coordinates, np.ones(len(old), bool), type)
    return Relation("recode", batch, 0, {"old": old, "new": new})
