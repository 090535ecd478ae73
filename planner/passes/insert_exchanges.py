"""The one pass that moves data: an exchange wherever a relation is not placed as its consumer needs it."""

from __future__ import annotations

from dataclasses import replace

from planner import relational as rel
from planner.cost import exchange_seconds
from planner.node import postorder
from planner.placement import AnyPlacement, Placement, candidates, sharded, single
from planner.request import Request


def insert_exchanges(plan: rel.Rel, request: Request) -> rel.Rel:
    """Bring every operand to where its join works, and reduce what is partial before anything else reads it.

        Join  by F                    Join  by F
        ├─ Scan X   Sharded(T)   ->   ├─ Exchange            Replicated
        └─ Scan W   Sharded(F)        │  └─ Scan X           Sharded(T)
                                      └─ Scan W              Sharded(F)

    Two consumers with the same need share one exchange. A scan that has no placement, and the row-by-row operators
    above it, are read where they are needed. Idempotent.
    """
    placer = _Placer(request.devices)
    for node in postorder(plan):
        placer.visit(node)
    return placer.at(plan, placer.output(plan))


class _Placer:
    """Memo tables of one run of the pass: the new node of each old one, and of each (node, placement)."""

    def __init__(self, devices: int) -> None:
        self.devices = devices
        self.new: dict[rel.Rel, rel.Rel] = {}
        self.made: dict[tuple[rel.Rel, AnyPlacement], rel.Rel] = {}

    def visit(self, node: rel.Rel) -> None:
        match node:
            case rel.Join():
                operands = []
                for i, arg in enumerate(node.operands):
                    need = node.need(i)
                    assert need is not None
                    operands.append(self.at(arg, need))
                self.new[node] = replace(node, operands=tuple(operands))
            case rel.RowWise():
                arg = self.new[node.arg]
                self.new[node] = replace(node, arg=self.settled(node.arg) if arg.placement is not None else arg)
            case rel.Exchange():
                self.new[node] = (
                    replace(node, arg=self.fixed(node.arg))
                    if node.placed is not None
                    else replace(node, arg=self.new[node.arg])
                )
            case _:
                self.new[node] = node

    def at(self, node: rel.Rel, want: AnyPlacement) -> rel.Rel:
        """`node` placed as wanted."""
        key = (node, want)
        if key not in self.made:
            self.made[key] = self._make(self.new[node], node, want)
        return self.made[key]

    def _make(self, new: rel.Rel, old: rel.Rel, want: AnyPlacement) -> rel.Rel:
        if new.placement == want:
            return new
        if isinstance(new, rel.Exchange) and new.placed is None:  # a re-tile: move on the same occasion
            assert isinstance(old, rel.Exchange)
            return replace(new, arg=self.fixed(old.arg), placed=want)
        if new.placement is None:
            if isinstance(new, rel.Scan):
                return replace(new, placed=want)
            assert isinstance(new, rel.RowWise) and isinstance(old, rel.RowWise)
            return replace(new, arg=self.at(old.arg, want))
        return rel.Exchange(new, new.type.cuts, want, name=new.name)

    def settled(self, node: rel.Rel) -> rel.Rel:
        """`node` where it is, reduced if it was partial."""
        placement = self.new[node].placement
        if isinstance(placement, Placement) and placement.partial:
            return self.at(node, self._reduced(node, placement))
        return self.new[node]

    def fixed(self, node: rel.Rel) -> rel.Rel:
        """`node` with some placement, partial or not; what could be anywhere is spread along its first cut label."""
        if self.new[node].placement is None:
            return self.at(node, self._anywhere(node))
        return self.new[node]

    def output(self, node: rel.Rel) -> AnyPlacement:
        placement = self.new[node].placement
        if placement is None:
            return self._anywhere(node)
        if not (isinstance(placement, Placement) and placement.partial):
            return placement
        type_ = self.new[node].type
        if type_.possible_rows == 1:  # nothing to spread, and no reader on the other devices
            return single(self.devices, len(type_.cuts), 1)
        return self._reduced(node, placement)

    def _reduced(self, node: rel.Rel, partial: Placement) -> Placement:
        type_ = self.new[node].type
        ends = candidates(self.devices, len(type_.cuts), [cut.count > 1 for cut in type_.cuts])
        return min(ends, key=lambda end: exchange_seconds(type_, partial, end))

    def _anywhere(self, node: rel.Rel) -> AnyPlacement:
        cuts = self.new[node].type.cuts
        for axis, cut in enumerate(cuts):
            if cut.count > 1 and self.devices > 1:
                return sharded(self.devices, len(cuts), axis)
        return single(self.devices, len(cuts), self.new[node].type.possible_rows)
