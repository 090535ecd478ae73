"""Nodes of a graph, and how to walk and rewrite one.

Nodes compare by identity: value equality would hash the whole graph below a node, twice per residual layer. Walks are
iterative, since a model is deeper than Python's recursion limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar


@dataclass(frozen=True, eq=False)
class Node:
    """Base of the nodes of forms 1 and 2. `args` are its inputs; nodes without inputs inherit the empty tuple."""

    @property
    def args(self) -> tuple[Any, ...]:
        return ()

    def with_args(self, args: tuple[Any, ...]) -> Any:
        """The same node over other inputs."""
        if not args:
            return self
        fields = {"arg": args[0]} if hasattr(self, "arg") else {"operands": args}
        return replace(self, **fields)


N = TypeVar("N", bound=Node)


def postorder(root: N) -> list[N]:
    """Every node below `root` once, inputs before their consumers, `root` last."""
    order: list[N] = []
    done: set[N] = set()
    stack: list[tuple[N, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if node in done:
            continue
        if ready:
            done.add(node)
            order.append(node)
        else:
            stack.append((node, True))
            stack.extend((arg, False) for arg in reversed(node.args))
    return order


def rewrite(root: N, rule: Callable[[N], N]) -> N:
    """Apply `rule` to every node once, inputs first; unchanged parts of the graph stay shared."""
    new: dict[N, N] = {}
    for node in postorder(root):
        args = tuple(new[arg] for arg in node.args)
        same = all(a is b for a, b in zip(args, node.args, strict=True))
        new[node] = rule(node if same else node.with_args(args))
    return new[root]


def consumers(root: N) -> dict[N, list[N]]:
    """For every node below `root`, the nodes that read it."""
    users: dict[N, list[N]] = {node: [] for node in postorder(root)}
    for node in users:
        for arg in dict.fromkeys(node.args):
            users[arg].append(node)
    return users
