"""Operations over labels and the values between them: all that the search reads of a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from planner.relation_type import Label


class Start(Enum):
    """Where a stored value is before the program runs."""

    RESIDENT = "resident"  # wherever it is wanted
    ONCE = "once"  # in one copy, in a map that the search chooses


@dataclass(frozen=True)
class Value:
    """A tensor. `start`: of a stored one; None for one that an operation makes."""

    name: str
    extents: tuple[int, ...]
    item: int
    start: Start | None = None


@dataclass(frozen=True)
class Operation:
    """One operation over labels.

    labels, extents  its label space
    most             per label into how many pieces it may be cut at most; 1 for a label that the kernel wants whole
    inputs           per operand the number of its value and which labels its axes are
    output           which labels the axes of its result are; the others are aggregated
    flop             per point of the label space
    causal           the labels of query and key, of which only the lower triangle is computed
    wire             bytes that a partial result takes for one of the result's, where its parts travel wider
    """

    name: str
    labels: tuple[Label, ...]
    extents: tuple[int, ...]
    most: tuple[int, ...]
    inputs: tuple[tuple[int, tuple[int, ...]], ...]
    output: tuple[int, ...]
    flop: float = 2.0
    causal: tuple[int, int] | None = None
    wire: float = 1.0


@dataclass
class Graph:
    """Operations in an order in which they can run; operation i makes value `made[i]`."""

    values: list[Value] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    made: list[int] = field(default_factory=list)

    def stored(self, name: str, extents: Sequence[int], item: int, start: Start) -> int:
        """Add a stored value; its number."""
        self.values.append(Value(name, tuple(extents), item, start))
        return len(self.values) - 1

    def add(
        self,
        name: str,
        extents: dict[Label, int],
        inputs: Sequence[tuple[int, Sequence[Label]]],
        output: Sequence[Label],
        *,
        flop: float = 2.0,
        whole: Sequence[Label] = (),
        causal: tuple[Label, Label] | None = None,
        wire: float = 1.0,
    ) -> int:
        """Add an operation; the number of the value that it makes, in the item size of its first operand.

        whole   labels that the kernel cannot be cut along
        """
        labels = tuple(extents)
        at = {label: i for i, label in enumerate(labels)}
        operation = Operation(
            name,
            labels,
            tuple(extents.values()),
            tuple(1 if label in whole else n for label, n in extents.items()),
            tuple((value, tuple(at[label] for label in axes)) for value, axes in inputs),
            tuple(at[label] for label in output),
            flop,
            None if causal is None else (at[causal[0]], at[causal[1]]),
            wire,
        )
        item = self.values[inputs[0][0]].item
        self.values.append(Value(name, tuple(extents[label] for label in output), item))
        self.operations.append(operation)
        self.made.append(len(self.values) - 1)
        return len(self.values) - 1

    def consumers(self) -> list[list[tuple[int, int]]]:
        """Per value who reads it: (operation, operand), in order."""
        found: list[list[tuple[int, int]]] = [[] for _ in self.values]
        for i, operation in enumerate(self.operations):
            for k, (value, _) in enumerate(operation.inputs):
                found[value].append((i, k))
        return found
