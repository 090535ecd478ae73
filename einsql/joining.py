"""Tensors that meet: they join on the labels that they share, over the relations of all of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from einsql.graph_domains import GraphDomains
from einsql.labels import axis_labels, read_labels
from einsql.relation import Relation
from einsql.sources import adopted
from einsql.sql.elementwise import elementwise_or_einsum
from einsql.total import Whole, total_einsum
from planner.einsum import Einsum
from planner.einsum import Tensor as Node
from planner.errors import DataError, ShapeError
from planner.scalar import Expr, labels_of
from planner.subscripts import Subscripts

if TYPE_CHECKING:
    from einsql.builder import Tensor


def joined(tensors: Sequence[Tensor], combine: Expr, reduce: str | None = None, over: Sequence[str] = ()) -> Tensor:
    """The einsum of tensors that join on the labels that they share, reduced over some of them."""
    labels = tuple(dict.fromkeys(label for t in tensors for label in t.labels))
    for label in sorted(labels_of(combine)):
        if label not in labels:
            where = ", ".join(map(str, tensors))
            raise ShapeError(f"es.label({label!r}) is read where no tensor has it: {where}{hint(label, labels)}")
    output = tuple(label for label in labels if label not in over)
    subscripts = Subscripts(tuple(t.labels for t in tensors), output)
    wholes, relations = matched(tensors, subscripts, combine)
    result = total_einsum(wholes, subscripts, combine, reduce or "sum")
    node = result.node
    assert isinstance(node, Einsum)
    if node.reduce is None:
        result = replace(result, node=elementwise_or_einsum(node.operands, subscripts, node.combine, None, None))
    return replace(tensors[0], whole=result, labels=output, relations=relations)


def matched(
    tensors: Sequence[Tensor], subscripts: Subscripts, combine: Expr
) -> tuple[list[Whole], dict[str, Relation]]:
    """Tensors as operands of one einsum, each label of one dictionary and one extent, and the relations of all."""
    nodes, relations = sources(tensors)
    wholes = [replace(t.whole, node=node) for t, node in zip(tensors, nodes, strict=True)]
    if any(relation.domains for relation in relations.values()):
        wholes = GraphDomains(relations).unified(wholes, subscripts, combine)
    sides = zip(tensors, wholes, subscripts.inputs, strict=True)
    check_extents([replace(t, whole=whole, labels=side) for t, whole, side in sides])
    return wholes, relations


def sources(tensors: Sequence[Tensor]) -> tuple[tuple[Node, ...], dict[str, Relation]]:
    """The graphs of tensors over the relations of all of them."""
    if any(t.session is not tensors[0].session for t in tensors):
        raise DataError(f"tensors of two sessions cannot meet: {', '.join(map(str, tensors))}")
    used: dict[str, Relation] = {}
    return tuple(adopted(t.whole.node, t.relations, used) for t in tensors), used


def check_extents(tensors: Sequence[Tensor]) -> None:
    """Refuse a label with two extents."""
    first: dict[str, Tensor] = {}
    for tensor in tensors:
        for label, extent in tensor.extents.items():
            other = first.setdefault(label, tensor)
            if other.extents[label] != extent:
                raise ShapeError(
                    f"label {label!r} has extent {other.extents[label]} in {other} but {extent} in {tensor}"
                    "\n  tensors join on the labels that they share; give one of them another name with rename"
                )


def relabelled(x: Tensor, labels: str | Sequence[str] | None) -> Tensor:
    """The same values with the axes named in order: "t d", also with their extents stated, "t=4 d=8"."""
    if labels is None:
        return x
    return replace(x, labels=tuple(spec.name for spec in axis_labels(str(x), labels, x.shape, "tensor")))


def label_names(labels: str | Iterable[str]) -> tuple[str, ...]:
    """The labels of "t d" or of a list; refuses a word that is none, and one that stands twice."""
    return tuple(spec.name for spec in read_labels(labels.split() if isinstance(labels, str) else list(labels)))


def hint(name: str, labels: Iterable[str]) -> str:
    """What else a label may be called, for the end of an error message."""
    known = list(labels)
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; labels are {', '.join(known) or 'none'}"
