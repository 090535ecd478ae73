"""The passes in order, each line with why it stands there."""

from __future__ import annotations

from collections.abc import Callable

from planner.einsum import Tensor
from planner.passes.choose_partitioning import choose_partitioning
from planner.passes.choose_placement import choose_placement
from planner.passes.common_subexpressions import common_subexpressions
from planner.passes.insert_exchanges import insert_exchanges
from planner.passes.lower_to_joins import lower_to_joins
from planner.passes.merge_joins import merge_joins
from planner.passes.order_contractions import order_contractions
from planner.passes.push_predicates import push_predicates
from planner.relational import Rel
from planner.request import Request
from planner.verify import verify

GRAPH_PASSES: tuple[Callable[[Tensor], Tensor], ...] = (
    common_subexpressions,  # first: later passes then see every value once
    merge_joins,            # before ordering, which then sees a product whole
    push_predicates,        # before ordering: filters of one operand leave fewer predicates to wait for
    order_contractions,     # last: every pass of form 2 prefers binary joins
)  # fmt: skip

PLAN_PASSES: tuple[Callable[[Rel, Request], Rel], ...] = (
    choose_partitioning,    # needs joins; block shapes follow from it
    choose_placement,       # needs cuts: only a cut label can be spread over devices
    insert_exchanges,       # last: nothing after it may change a placement
)  # fmt: skip


def optimize_graph(graph: Tensor) -> Tensor:
    """The passes of form 1."""
    for graph_pass in GRAPH_PASSES:
        graph = graph_pass(graph)
    return graph


def optimize(graph: Tensor, request: Request) -> Rel:
    """Einsum graph to placed relational plan."""
    plan = lower_to_joins(optimize_graph(graph))
    verify(plan, after="lower_to_joins")
    for plan_pass in PLAN_PASSES:
        plan = plan_pass(plan, request)
        verify(plan, after=plan_pass.__name__, placed=plan_pass is insert_exchanges)
    return plan
