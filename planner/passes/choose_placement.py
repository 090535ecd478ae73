"""Which device joins which keys."""

from __future__ import annotations

from dataclasses import replace

from planner import relational as rel
from planner.cost import HOST, exchange_seconds
from planner.errors import PlanError
from planner.node import postorder, rewrite
from planner.placement import Listed, Placement, candidates, parse_placement
from planner.request import Request


def choose_placement(plan: rel.Rel, request: Request) -> rel.Rel:
    """Give every join the label along which its keys are spread over the devices.

    Greedy, inputs first: each join takes the map (all devices along one cut label, or everything everywhere) with the
    least time for its exchanges and its own arithmetic. What is stored is read wherever it is needed. A request names a
    node and a placement; for a join it is over the labels of the join and says who works, unless it lists blocks: then
    it says where the result goes.
    """
    names = {node.name for node in postorder(plan)}
    for name in request.placement:
        if name not in names:
            raise PlanError(f"the plan has no node {name!r} to place; its nodes are {', '.join(sorted(names))}")
    return rewrite(plan, lambda node: _place(node, request))


def _place(node: rel.Rel, request: Request) -> rel.Rel:
    asked = request.placement.get(node.name)
    match node:
        case rel.Join():
            if asked is None or asked.startswith("Listed"):
                placed: rel.Rel = replace(node, work=_cheapest(node, request.devices))
            else:
                work = parse_placement(asked, request.devices, node.subscripts.labels)
                if not isinstance(work, Placement) or work.partial:
                    raise PlanError(
                        f"join {node.name!r} cannot be placed as {asked}"
                        f"; name the labels of {node.subscripts} that it is spread along"
                    )
                return replace(node, work=work)
        case rel.Exchange():
            return node
        case _:
            placed = node
    if asked is None:
        return placed
    target = parse_placement(asked, request.devices, node.type.labels)
    if isinstance(target, Listed) and len(target.blocks) != node.type.possible_rows:
        raise PlanError(f"{node.name!r} has {node.type.possible_rows} blocks, its placement lists {len(target.blocks)}")
    if isinstance(target, Placement) and target.partial:
        raise PlanError(f"{node.name!r} cannot be stored as {asked}: partial results come from joins only")
    return (
        replace(placed, placed=target)
        if isinstance(placed, rel.Scan)
        else rel.Exchange(placed, node.type.cuts, target, name=node.name)
    )


def _cheapest(node: rel.Join, devices: int) -> Placement:
    found = candidates(devices, len(node.cuts), [cut.count > 1 for cut in node.cuts])
    if len(found) == 1:
        return found[0]
    return min(found, key=lambda work: _seconds(replace(node, work=work)))


def _seconds(node: rel.Join) -> float:
    """Estimated time: bring the operands, join, and send the partial results."""
    assert node.work is not None and node.placement is not None
    seconds = node.flops * node.work.replicas / node.work.devices / HOST.flops
    for i, arg in enumerate(node.operands):
        need = node.need(i)
        if arg.placement is not None and need is not None:
            seconds += exchange_seconds(arg.type, arg.placement, need)
    if node.placement.partial:
        rank = len(node.type.labels)
        ends = candidates(node.work.devices, rank, [cut.count > 1 for cut in node.type.cuts])
        seconds += min(exchange_seconds(node.type, node.placement, end) for end in ends)
    return seconds
