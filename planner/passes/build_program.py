"""Relational plan to exchange program."""

from __future__ import annotations

from planner import program as form3
from planner import relational as rel
from planner.node import postorder
from planner.program import Program, Step


def build_program(plan: rel.Rel, devices: tuple[str, ...]) -> Program:
    """Number the operators in order and free every value after its last use.

    Join on (d)       %0 = scan "X"
    ├─ Scan X    ->   %1 = scan "W"
    └─ Scan W         %2 = join %0, %1 sum td,df->tf    free %0 %1
    """
    order = postorder(plan)
    register = {node: i for i, node in enumerate(order)}
    last_use = {register[arg]: i for i, node in enumerate(order) for arg in node.args}
    steps = []
    for i, node in enumerate(order):
        assert node.placement is not None
        args = tuple(register[arg] for arg in node.args)
        free = tuple(sorted(r for r in set(args) if last_use[r] == i))
        steps.append(Step(i, node.name, _op(node, args), node.type, node.placement, free))
    return Program(devices, tuple(steps))


def _op(node: rel.Rel, args: tuple[int, ...]) -> form3.Op:
    match node:
        case rel.Scan():
            return form3.Scan(node.name)
        case rel.Join():
            assert node.work is not None
            return form3.Join(args, node.subscripts, node.combine, node.reduce, node.where, node.cuts, node.work)
        case rel.Map():
            return form3.Map((args[0],), node.expr)
        case rel.Filter():
            return form3.Filter((args[0],), node.where)
        case rel.Fill():
            return form3.Fill((args[0],), node.value)
        case rel.Exchange():
            return form3.Exchange((args[0],))
    raise AssertionError(node)
