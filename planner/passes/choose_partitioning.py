"""How every label is cut."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import replace

from planner import relational as rel
from planner.cuts import Cut
from planner.errors import PlanError
from planner.node import postorder
from planner.predicates import conjuncts, determined, reads_values, solved, whole_numbers
from planner.relation_type import Label
from planner.request import Request
from planner.scalar import args_of, labels_of

Axis = tuple[rel.Rel, Label]
Retiled = dict[tuple[object, tuple[Cut, ...]], rel.Rel]  # by the name of a stored relation, or the node, and the cuts


def choose_partitioning(plan: rel.Rel, request: Request) -> rel.Rel:
    """Cut every label, and re-tile a relation between two operators that cut it differently.

        Join on (d)          Join on (D)    D=2
        ├─ Scan X       ->   ├─ Scan X
        └─ Scan W            └─ Scan W

    Axes that meet anywhere in the plan form a class and are cut alike, so that nothing is re-tiled, unless a request
    names two labels of a class differently. Stored relations are read in any cut, so that two uses of one need not be
    cut alike; and what is computed from complete relations only is not cut to the single cells of a sparse one that it
    meets, but re-tiled: one matrix product instead of one per cell. A class is cut by, in this order: the request; one
    part where values choose a coordinate; single cells where a stored relation is rows of single cells, or an equality
    ties the label to one that is; the cut of a stored relation; as many parts as devices where a join is best spread
    along it; one part.
    """
    _check_labels(plan, request)
    classes = _classes(plan)
    cuts = _class_cuts(plan, classes, request)
    new: dict[rel.Rel, rel.Rel] = {}
    made: Retiled = {}
    for node in postorder(plan):

        def cut(label: Label, extent: int, node: rel.Rel = node) -> Cut:
            return _requested(label, extent, request) or cuts[classes[node, label]]

        new[node] = _recut(node, tuple(new[arg] for arg in node.args), cut, made)
    return new[plan]


def _recut(node: rel.Rel, args: tuple[rel.Rel, ...], cut: Callable[[Label, int], Cut], made: Retiled) -> rel.Rel:
    match node:
        case rel.Scan():
            return _retile(node, tuple(map(cut, node.stored.labels, node.stored.extents)), made)
        case rel.Join():
            by_label = {label: cut(label, c.extent) for label, c in node.label_cuts.items()}
            operands = tuple(
                _retile(arg, tuple(by_label[label] for label in labels), made)
                for arg, labels in zip(args, node.subscripts.inputs, strict=True)
            )
            return replace(node, operands=operands, cuts=tuple(by_label.values()))
        case rel.RowWise():
            cuts = tuple(cut(label, c.extent) for label, c in node.type.label_cuts.items())
            return replace(node, arg=_retile(args[0], cuts, made))
    raise AssertionError(node)


def _retile(node: rel.Rel, cuts: tuple[Cut, ...], made: Retiled) -> rel.Rel:
    """`node` under other cuts: a stored relation is read so, anything else is re-tiled, once for all readers."""
    of = (node.name if isinstance(node, rel.Scan) else node, cuts)
    if of not in made:
        if node.type.cuts == cuts:
            made[of] = node
        elif isinstance(node, rel.Scan):
            made[of] = replace(node, cuts=cuts)
        else:
            made[of] = rel.Exchange(node, cuts, name=node.name)
    return made[of]


def _check_labels(plan: rel.Rel, request: Request) -> None:
    known = {label for node in postorder(plan) for label in _labels(node)}
    for label in (*request.parts, *request.tile):
        if label not in known:
            close = difflib.get_close_matches(label, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; its labels are {', '.join(sorted(known))}"
            raise PlanError(f"the query has no label {label!r}{hint}")


def _labels(node: rel.Rel) -> tuple[Label, ...]:
    return node.subscripts.labels if isinstance(node, rel.Join) else node.type.labels


def _requested(label: Label, extent: int, request: Request) -> Cut | None:
    if label in request.parts:
        return Cut(extent, parts=request.parts[label])
    return Cut(extent, tile=request.tile[label]) if label in request.tile else None


def _classes(plan: rel.Rel) -> dict[Axis, Axis]:
    """Axis -> representative of the axes it meets."""
    parent: dict[Axis, Axis] = {}
    sparse = _sparse(plan)

    def find(axis: Axis) -> Axis:
        while parent.setdefault(axis, axis) != axis:
            parent[axis] = axis = parent[parent[axis]]
        return axis

    for node in postorder(plan):
        for label in _labels(node):
            find((node, label))
        for arg, labels in zip(node.args, _sides(node), strict=True):
            if isinstance(arg, rel.Scan) or (sparse[node] and not sparse[arg] and isinstance(node, rel.Join)):
                continue
            for own, label in zip(arg.type.labels, labels, strict=True):
                parent[find((arg, own))] = find((node, label))
    return {axis: find(axis) for axis in parent}


def _sides(node: rel.Rel) -> tuple[tuple[Label, ...], ...]:
    """What a node calls the axes of each of its arguments."""
    return node.subscripts.inputs if isinstance(node, rel.Join) else tuple(node.type.labels for _ in node.args)


def _sparse(plan: rel.Rel) -> dict[rel.Rel, bool]:
    """Whether a node is computed from rows of single cells."""
    found: dict[rel.Rel, bool] = {}
    for node in postorder(plan):
        stored = isinstance(node, rel.Scan) and node.stored.storage == "scalar"
        found[node] = stored or any(found[arg] for arg in node.args)
    return found


def _class_cuts(plan: rel.Rel, classes: dict[Axis, Axis], request: Request) -> dict[Axis, Cut]:
    asked: dict[Axis, Cut] = {}
    stored: dict[Axis, Cut] = {}
    spread: dict[Axis, Cut] = {}
    whole: dict[Axis, Cut] = {}
    for node in postorder(plan):
        extents = _extents(node)
        for label, extent in extents.items():
            axis = classes[node, label]
            whole.setdefault(axis, Cut(extent, parts=1))
            wanted = _requested(label, extent, request)
            if wanted is not None:
                asked.setdefault(axis, wanted)
        for arg, labels in zip(node.args, _sides(node), strict=True):
            if isinstance(arg, rel.Scan):
                for label, cut in zip(labels, arg.stored.cuts, strict=True):
                    if arg.stored.storage == "scalar":
                        stored[classes[node, label]] = cut
                    elif cut.count > 1:
                        stored.setdefault(classes[node, label], cut)
        if isinstance(node, rel.Scan) and node is plan:
            stored |= {classes[node, label]: cut for label, cut in node.stored.label_cuts.items()}
        if isinstance(node, rel.Join) and request.devices > 1:
            if any(classes[node, label] in spread for label in node.subscripts.output):
                continue  # one more cut would only make more kernel calls
            best = _spread(node)
            if best is not None:
                spread[classes[node, best]] = Cut(extents[best], parts=request.devices)
    _tie(plan, classes, stored)
    return {**whole, **spread, **stored, **_looked_up(plan, classes), **asked}


def _tie(plan: rel.Rel, classes: dict[Axis, Axis], stored: dict[Axis, Cut]) -> None:
    """A label that an equality ties to single cells is cut to single cells too, so that keys decide which rows meet."""
    ties = []
    for node in postorder(plan):
        if not isinstance(node, rel.Join):
            continue
        for part in conjuncts(node.where):
            if not args_of(part) and any(solved(part, label) is not None for label in labels_of(part)):
                ties.append({classes[node, label]: node.label_cuts[label].extent for label in labels_of(part)})
    changed = True
    while changed:
        changed = False
        for tie in ties:
            free = [axis for axis in tie if axis not in stored]
            if free and any(axis in stored and stored[axis].is_cells for axis in tie):
                stored.update({axis: Cut(tie[axis], parts=max(tie[axis], 1)) for axis in free})
                changed = True


def _looked_up(plan: rel.Rel, classes: dict[Axis, Axis]) -> dict[Axis, Cut]:
    """A label that values choose from is left whole: no key says which part a value is in."""
    found: dict[Axis, Cut] = {}
    for node in postorder(plan):
        if isinstance(node, rel.Join) and reads_values(node.where):
            whole = whole_numbers(node.subscripts, [operand.type.dtype for operand in node.operands])
            for label, index in determined(node.where, node.subscripts.contracted, whole)[0].items():
                if args_of(index):
                    found[classes[node, label]] = Cut(node.label_cuts[label].extent, parts=1)
    return found


def _extents(node: rel.Rel) -> dict[Label, int]:
    if isinstance(node, rel.Join):
        return {label: cut.extent for label, cut in node.label_cuts.items()}
    return dict(zip(node.type.labels, node.type.extents, strict=True))


def _spread(node: rel.Join) -> Label | None:
    """The label along which a join is best spread over the devices: the least bytes to replicate or to reduce."""
    best: tuple[int, Label] | None = None
    for label, cut in node.label_cuts.items():
        if cut.extent < 2:
            continue
        replicate = sum(
            arg.type.nbytes
            for arg, labels in zip(node.operands, node.subscripts.inputs, strict=True)
            if label not in labels
        )
        bytes_ = replicate + (0 if label in node.subscripts.output else 2 * node.type.nbytes)
        if best is None or bytes_ < best[0]:
            best = (bytes_, label)
    return None if best is None else best[1]
