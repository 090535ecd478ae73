"""How relations are called inside one query, which may read two of one name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from einsql.relation import Relation
from planner.einsum import Input, Tensor
from planner.node import rewrite


def called(relation: Relation, used: dict[str, Relation]) -> str:
    """The name of a relation inside one query, entered into `used`: its own, unless another one has that name there."""
    name, number = relation.name, 2
    while used.setdefault(name, relation) is not relation:
        name, number = f"{relation.name}_{number}", number + 1
    return name


def adopted(graph: Tensor, relations: Mapping[str, Relation], used: dict[str, Relation]) -> Tensor:
    """A graph over `relations` with its inputs called as in `used`, which they are entered into."""
    names = {name: called(relation, used) for name, relation in relations.items()}
    if all(old == new for old, new in names.items()):
        return graph

    def rename(node: Tensor) -> Tensor:
        if isinstance(node, Input) and names[node.name] != node.name:
            return replace(node, name=names[node.name])
        return node

    return rewrite(graph, rename)
