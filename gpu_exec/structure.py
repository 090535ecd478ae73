"""The key phase: from keys alone, which rows every step has, where they are, and which of them meet.

It never touches a payload. Its result is one `Structure` per step, from which `execute` runs, and exact counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from gpu_exec.batch import Array, grid_keys, keys_of, linear_keys, starts_of
from gpu_exec.kernels.expression import evaluate_condition
from planner import program as p
from planner.cuts import Cut
from planner.placement import AnyPlacement, Listed, group_number
from planner.predicates import conjunction, conjuncts, keys_decide, solved
from planner.program import Counts, Program, Step
from planner.relation_type import Label, RelationType
from planner.scalar import Expr, labels_of


@dataclass(frozen=True)
class Pairs:
    """The rows that one device joins, sorted by the output row, then by the contracted keys.

    operands    per operand [pairs] rows of its batch on this device
    out         [pairs] rows of the output batch on this device
    keys        per label [pairs] part numbers
    """

    operands: tuple[Array, ...]
    out: Array
    keys: dict[Label, Array]


Box = tuple[slice, ...]


@dataclass(frozen=True)
class Transfer:
    """What one device gives another in an exchange, in the order in which it is sent.

    source, target   [pieces] rows of the source's and of the target's batch
    boxes            per piece the box of the source block and where it goes in the target block; None: whole blocks
    """

    source: Array
    target: Array
    boxes: list[tuple[Box, Box]] | None


@dataclass(frozen=True)
class Structure:
    """What the key phase knows of one step.

    keys      [rows, rank] of all rows together, in row-major order
    local     per device, the rows that it holds, ascending
    pairs     of a join, per device
    transfers of an exchange, by (source device, target device); a device also "sends" to itself
    """

    keys: Array
    local: tuple[Array, ...]
    pairs: tuple[Pairs, ...] = ()
    transfers: Mapping[tuple[int, int], Transfer] = field(default_factory=dict)


def key_phase(program: Program, keys: Mapping[int, Array]) -> tuple[list[Structure], dict[int, Counts]]:
    """The structure of every step and the counts that they predict.

    keys    register of a scan -> keys of the rows that it reads
    """
    found: list[Structure] = []
    counts: dict[int, Counts] = {}
    for step in program.steps:
        args, arg_steps = [found[a] for a in step.args], [program.steps[a] for a in step.args]
        structure = _structure(step, args, arg_steps, keys)
        counts[step.register] = _counts(step, structure, args, arg_steps)
        found.append(structure)
    return found, counts


def _structure(step: Step, args: list[Structure], arg_steps: list[Step], keys: Mapping[int, Array]) -> Structure:
    devices = step.placement.devices
    match step.op:
        case p.Scan():
            return _placed(keys[step.register], step, devices)
        case p.Join():
            return _join(step, step.op, args)
        case p.Map():
            return Structure(args[0].keys, args[0].local)
        case p.Filter(_, where):
            return _filter(step.type, where, args[0])
        case p.Fill():
            return _placed(grid_keys(step.type.counts), step, devices)
        case p.Exchange():
            return _exchange(step, args[0], arg_steps[0])


def _placed(keys: Array, step: Step, devices: int) -> Structure:
    held = held_by(step.placement, keys, step.type.counts)
    return Structure(keys, tuple(np.flatnonzero(held[d]) for d in range(devices)))


def held_by(placement: AnyPlacement, keys: Array, counts: Sequence[int]) -> Array:
    """Which device holds which row: bool [devices, rows]."""
    held = np.ones((placement.devices, len(keys)), bool)
    if isinstance(placement, Listed):
        linear = linear_keys(keys, counts)
        table = np.zeros((placement.devices, len(placement.blocks)), bool)
        for i, devices in enumerate(placement.blocks):
            table[list(devices), i] = True
        return table[:, linear]
    for axis, digits in enumerate(placement.axes):
        groups = placement.groups(digits)
        if groups > 1:
            group = keys[:, axis] * groups // max(counts[axis], 1)
            for d in range(placement.devices):
                held[d] &= group == group_number(d, placement.devices, digits)
    return held


def _filter(type: RelationType, where: Expr, arg: Structure) -> Structure:
    """Rows of single cells that fail the condition are dropped here; masks decide within blocks."""
    if not keys_decide(where, type.label_cuts):
        return arg
    values = {label: arg.keys[:, type.labels.index(label)] for label in labels_of(where)}
    kept = np.flatnonzero(np.broadcast_to(evaluate_condition(where, (), values), len(arg.keys)))
    renumber = np.full(len(arg.keys), -1, np.int64)
    renumber[kept] = np.arange(len(kept))
    local = tuple(renumber[rows][renumber[rows] >= 0] for rows in arg.local)
    return Structure(arg.keys[kept], local)


# --------------------------------------------------------------------------------------------------------------- join


def _join(step: Step, op: p.Join, args: list[Structure]) -> Structure:
    cuts = op.label_cuts
    rows, keys = _join_rows(op, args, cuts)
    decided = conjunction(_decided(op))
    if decided is not None:
        values = {label: keys[label] for label in labels_of(decided)}
        kept = np.flatnonzero(np.broadcast_to(evaluate_condition(decided, (), values), len(rows[0])))
        rows, keys = [r[kept] for r in rows], {label: k[kept] for label, k in keys.items()}
    labels = op.subscripts.labels
    order = np.lexsort([keys[label] for label in reversed(labels)]) if labels else np.arange(len(rows[0]))
    rows, keys = [r[order] for r in rows], {label: k[order] for label, k in keys.items()}
    out_keys = _columns(keys, op.subscripts.output, len(order))
    linear = linear_keys(out_keys, step.type.counts)
    distinct, out = np.unique(linear, return_inverse=True)
    counts = [cuts[label].count for label in labels]
    works = held_by(op.work, _columns(keys, labels, len(order)), counts)
    pairs, local = [], []
    for d in range(op.work.devices):
        mine = np.flatnonzero(works[d])
        rows_out, local_out = np.unique(out[mine], return_inverse=True)
        operands = tuple(np.searchsorted(arg.local[d], r[mine]) for arg, r in zip(args, rows, strict=True))
        pairs.append(Pairs(operands, local_out, {label: keys[label][mine] for label in labels}))
        local.append(rows_out)
    return Structure(keys_of(distinct, step.type.counts), tuple(local), tuple(pairs))


def _columns(keys: Mapping[Label, Array], labels: Sequence[Label], rows: int) -> Array:
    return np.stack([keys[label] for label in labels], axis=1) if labels else np.zeros((rows, 0), np.int64)


def _decided(op: p.Join) -> list[Expr]:
    """The conjuncts of the predicate that keys decide."""
    return [part for part in conjuncts(op.where) if keys_decide(part, op.label_cuts)]


def _join_rows(op: p.Join, args: list[Structure], cuts: Mapping[Label, Cut]) -> tuple[list[Array], dict[Label, Array]]:
    """Every combination of operand rows whose keys agree: row numbers per operand, and the key of every label."""
    rows: list[Array] = []
    keys: dict[Label, Array] = {}
    for labels, arg in zip(op.subscripts.inputs, args, strict=True):
        own = np.arange(len(arg.keys))
        for axis, label in enumerate(labels):  # a repeated label reads a diagonal
            own = own[arg.keys[own, axis] == arg.keys[own, labels.index(label)]]
        mine = {label: arg.keys[own, labels.index(label)] for label in dict.fromkeys(labels)}
        if not rows:
            rows, keys = [own], mine
            continue
        left, right = dict(keys), dict(mine)
        for label, index in _computed(op, keys, mine).items():
            side = left if label in mine else right
            side[label] = np.broadcast_to(evaluate_condition(index, (), side), len(rows[0] if label in mine else own))
        shared = [label for label in left if label in right]
        a, b = _match(left, right, shared, [cuts[label].count for label in shared], len(rows[0]), len(own))
        rows = [r[a] for r in rows] + [own[b]]
        keys = {label: k[a] for label, k in keys.items()} | {label: k[b] for label, k in mine.items()}
    return rows, keys


def _computed(op: p.Join, keys: Mapping[Label, Array], mine: Mapping[Label, Array]) -> dict[Label, Expr]:
    """Labels of one side whose key the predicate gives as an expression over keys of the other side."""
    found: dict[Label, Expr] = {}
    for part in _decided(op):
        for label in sorted(labels_of(part)):
            index = solved(part, label)
            here, there = (mine, keys) if label in mine else (keys, mine)
            if index is None or label not in here or label in there or label in found:
                continue
            if labels_of(index) and labels_of(index) <= set(there):
                found[label] = index
                break
    return found


def _match(
    left: Mapping[Label, Array],
    right: Mapping[Label, Array],
    shared: list[Label],
    counts: list[int],
    n_left: int,
    n_right: int,
) -> tuple[Array, Array]:
    """Index pairs of equal keys, by sorting the right side and searching it."""
    if not shared:
        return np.repeat(np.arange(n_left), n_right), np.tile(np.arange(n_right), n_left)
    left_rows, right_rows = (_inside(side, shared, counts, n) for side, n in ((left, n_left), (right, n_right)))
    if len(left_rows) < n_left or len(right_rows) < n_right:  # a computed key may be no key
        left = {label: left[label][left_rows] for label in shared}
        right = {label: right[label][right_rows] for label in shared}
        a, b = _match(left, right, shared, counts, len(left_rows), len(right_rows))
        return left_rows[a], right_rows[b]
    a = linear_keys(_columns(left, shared, n_left), counts)
    b = linear_keys(_columns(right, shared, n_right), counts)
    if n_right == math.prod(counts) and np.array_equal(b, np.arange(n_right)):  # every key once, in order
        return np.arange(n_left), a
    order = np.argsort(b, kind="stable")
    first, last = np.searchsorted(b[order], a, "left"), np.searchsorted(b[order], a, "right")
    many = last - first
    which = np.repeat(np.arange(n_left), many)
    offset = np.arange(len(which)) - np.repeat(np.cumsum(many) - many, many)
    return which, order[np.repeat(first, many) + offset]


def _inside(keys: Mapping[Label, Array], labels: list[Label], counts: list[int], rows: int) -> Array:
    """The rows whose keys are inside the grid."""
    inside = np.ones(rows, bool)
    for label, n in zip(labels, counts, strict=True):
        inside &= (keys[label] >= 0) & (keys[label] < n)
    return np.flatnonzero(inside)


# ----------------------------------------------------------------------------------------------------------- exchange


def _exchange(step: Step, arg: Structure, source: Step) -> Structure:
    """Direct moves: a target block takes each piece once per partial result, from its own device if that has it, else
    from a holder, counted from the target's number so that holders share the work."""
    if source.type.cuts == step.type.cuts:
        old = new = np.arange(len(arg.keys))
        target, boxes = _placed(arg.keys, step, step.placement.devices), None
    else:
        old, new, keys, boxes = _retile(arg.keys, source.type, step.type)
        target = _placed(keys, step, step.placement.devices)
    held = _held(arg)
    groups = _partial_groups(source)
    transfers: dict[tuple[int, int], Transfer] = {}
    for d, rows in enumerate(target.local):
        at = np.searchsorted(rows, new)
        mine = np.flatnonzero((at < len(rows)) & (rows[np.minimum(at, len(rows) - 1)] == new)) if len(rows) else rows
        for devices in groups:
            chosen = _choose(held[devices][:, old[mine]], devices, d)
            for s in devices:
                which = mine[chosen == s]
                if len(which):
                    picked = None if boxes is None else [boxes[i] for i in which]
                    transfers[s, d] = Transfer(np.searchsorted(arg.local[s], old[which]), at[which], picked)
    return Structure(target.keys, target.local, transfers=transfers)


def _held(structure: Structure) -> Array:
    """Which device really has which row, bool [devices, rows]."""
    held = np.zeros((len(structure.local), len(structure.keys)), bool)
    for d, rows in enumerate(structure.local):
        held[d, rows] = True
    return held


def _partial_groups(source: Step) -> list[list[int]]:
    """Devices by which partial result they hold; one group when nothing is partial."""
    groups: dict[int, list[int]] = {}
    for d in range(source.placement.devices):
        groups.setdefault(group_number(d, source.placement.devices, source.placement.partial), []).append(d)
    return [groups[g] for g in sorted(groups)]


def _choose(held: Array, devices: list[int], target: int) -> Array:
    """The device that sends each row, -1 where none of `devices` has it; `held` is bool [devices, rows]."""
    many = held.sum(axis=0)
    turn = np.where(many > 0, target % np.maximum(many, 1), -1)
    chosen = np.full(held.shape[1], -1)
    seen = np.cumsum(held, axis=0) - 1
    for i, d in enumerate(devices):
        chosen[held[i] & (seen[i] == turn)] = d
    if target in devices:
        chosen[held[devices.index(target)]] = target
    return chosen


def _retile(keys: Array, old: RelationType, new: RelationType) -> tuple[Array, Array, Array, list[tuple[Box, Box]]]:
    """Which source rows overlap which target rows, the target keys, and the boxes of each overlap."""
    per_axis = []
    for a, b in zip(old.cuts, new.cuts, strict=True):
        s, t = starts_of(a), starts_of(b)
        per_axis.append([_overlaps(s, t, part) for part in range(a.count)])
    sources, targets, boxes = [], [], []
    for row, key in enumerate(keys):
        for combo in product(*(per_axis[axis][k] for axis, k in enumerate(key))):
            sources.append(row)
            targets.append(tuple(c[0] for c in combo))
            boxes.append((tuple(c[1] for c in combo), tuple(c[2] for c in combo)))
    target_keys = np.asarray(targets, np.int64).reshape(len(targets), len(new.labels))
    distinct, rows = np.unique(linear_keys(target_keys, new.counts), return_inverse=True)
    return np.asarray(sources, np.int64), rows, keys_of(distinct, new.counts), boxes


def _overlaps(s: Array, t: Array, part: int) -> list[tuple[int, slice, slice]]:
    low, high = int(s[part]), int(s[part + 1])
    found = []
    for k in range(int(np.searchsorted(t, low, "right")) - 1, int(np.searchsorted(t, high, "left"))):
        a, b = max(low, int(t[k])), min(high, int(t[k + 1]))
        found.append((k, slice(a - low, b - low), slice(a - int(t[k]), b - int(t[k]))))
    return found


# ------------------------------------------------------------------------------------------------------------- counts


def _counts(step: Step, structure: Structure, args: list[Structure], arg_steps: list[Step]) -> Counts:
    held = tuple(
        int(block_cells(step.type, structure.keys[rows]).sum()) * step.type.bytes_per_cell for rows in structure.local
    )
    calls = moved = 0
    match step.op:
        case p.Join():
            calls = sum(len(pairs.out) for pairs in structure.pairs)
        case p.Map() | p.Filter() | p.Fill():
            calls = sum(len(rows) for rows in structure.local)
        case p.Exchange():
            moved = _moved_cells(structure, args[0], arg_steps[0].type) * arg_steps[0].type.bytes_per_cell
    return Counts(len(structure.keys), calls, moved, held)


def _moved_cells(structure: Structure, source: Structure, type: RelationType) -> int:
    total = 0
    for (s, d), transfer in structure.transfers.items():
        if s == d:
            continue
        if transfer.boxes is None:
            total += int(block_cells(type, source.keys[source.local[s][transfer.source]]).sum())
        else:
            total += sum(math.prod(axis.stop - axis.start for axis in box) for box, _ in transfer.boxes)
    return total


def block_cells(type: RelationType, keys: Array) -> Array:
    """Cells of the block of every row."""
    cells = np.ones(len(keys), np.int64)
    for axis, cut in enumerate(type.cuts):
        if not cut.is_cells:
            cells *= np.diff(starts_of(cut))[keys[:, axis]]
    return cells
