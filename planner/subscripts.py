"""Subscripts: which label stands at which axis of each operand and of the output.

Text is NumPy's where every label is one character, `ij,jk->ik`, and bracketed otherwise, `[src dst],[dst c]->[src c]`.
"""

from __future__ import annotations

import difflib
import re
import string
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from itertools import count as naturals

from planner.errors import ShapeError
from planner.relation_type import Label

Labels = tuple[Label, ...]
LETTERS = string.ascii_letters
DOTS = "..."


@dataclass(frozen=True)
class Subscripts:
    """Label lists of the operands and of the output. A label may repeat inside an operand: that reads a diagonal."""

    inputs: tuple[Labels, ...]
    output: Labels

    def __post_init__(self) -> None:
        known = {label for labels in self.inputs for label in labels}
        for label in self.output:
            if label not in known:
                close = difflib.get_close_matches(label.lower(), [k.lower() for k in known], n=1, cutoff=0.6)
                hint = next((k for k in sorted(known) if close and k.lower() == close[0]), None)
                raise ShapeError(
                    f"output label {label!r} appears in no operand of {self}"
                    + (f"; did you mean {hint!r}?" if hint else "")
                )
        if len(set(self.output)) != len(self.output):
            raise ShapeError(f"an output names each label once: {self}")

    @cached_property
    def labels(self) -> Labels:
        """Every label once: those of the output first, then the aggregated ones in order of appearance."""
        return tuple(dict.fromkeys([*self.output, *(label for labels in self.inputs for label in labels)]))

    @cached_property
    def contracted(self) -> Labels:
        """Labels that the output does not have."""
        return tuple(label for label in self.labels if label not in self.output)

    def __str__(self) -> str:
        return f"{','.join(map(self._side, self.inputs))}->{self._side(self.output)}"

    def _side(self, labels: Labels) -> str:
        if all(_is_letter(label) for label in self.labels):
            return "".join(labels)
        return f"[{' '.join(labels)}]"


def _is_letter(label: Label) -> bool:
    return len(label) == 1 and label.isalpha()


def parse_subscripts(text: str) -> Subscripts:
    """Read subscripts without an ellipsis: every label of every operand is named.

    >>> str(parse_subscripts("ij, jk -> ik")), str(parse_subscripts("bA"))
    ('ij,jk->ik', 'bA->Ab')
    """
    inputs, output = _split(text)
    return _resolved(inputs, output, None, text)


def read_subscripts(text: str, shapes: Sequence[Sequence[int]]) -> Subscripts:
    """Read subscripts for operands of these shapes, as NumPy does.

    An ellipsis stands for the axes that are not named, aligned at the right; one that the output leaves out is summed.
    Without an arrow the output is the axes of the ellipsis, then every label that occurs once, sorted, capitals first.
    An axis of extent 1 is stretched to the extent that its label has in other operands: it gets a label of its own.

    >>> str(read_subscripts("...ij,jk", [(5, 2, 3), (3, 4)])), str(read_subscripts("i,i->i", [(3,), (1,)]))
    ('aij,jk->aik', 'i,a->i')
    """
    inputs, output = _split(text)
    return _stretched(_resolved(inputs, output, [len(shape) for shape in shapes], text), shapes)


def read_sublists(
    inputs: Sequence[Sequence[object]], output: Sequence[object] | None, shapes: Sequence[Sequence[int]]
) -> Subscripts:
    """The list form of NumPy: numbers in place of letters, and `...` itself. Numbers are called a, b, ..., Z, l52, ...

    >>> str(read_sublists([[0, 1], [1, 60]], [0, 60], [(2, 3), (3, 4)]))
    '[a b],[b l60]->[a l60]'
    """
    sides = [_numbered(side) for side in inputs]
    text = f"{', '.join(map(str, inputs))} -> {output}"
    if output is None:
        once = [n for side in inputs for n in side if n is not ... and sum(list(s).count(n) for s in inputs) == 1]
        output = [*([...] if any(... in side for side in inputs) else []), *sorted(once, key=str_or_number)]
    resolved = _resolved(sides, _numbered(output), [len(shape) for shape in shapes], text)
    return _stretched(resolved, shapes)


def str_or_number(item: object) -> tuple[bool, object]:
    """A sorting key: numbers by size, anything else as text."""
    return (False, item) if isinstance(item, int) else (True, str(item))


def _numbered(side: Sequence[object]) -> list[Label]:
    names = []
    for item in side:
        if item is ...:
            names.append(DOTS)
        elif isinstance(item, int) and not isinstance(item, bool) and item >= 0:
            names.append(LETTERS[item] if item < len(LETTERS) else f"l{item}")
        else:
            raise ShapeError(f"a sublist of einsum holds whole numbers from 0 and `...`, got {item!r} in {list(side)}")
    return names


def _split(text: str) -> tuple[list[list[Label]], list[Label] | None]:
    left, arrow, right = text.partition("->")
    if "->" in right or "-" in left + right or ">" in left + right:
        raise ShapeError(f"einsum {text!r} is written like 'ij,jk->ik', with one '->' at most")
    return [_split_side(side, text) for side in left.split(",")], _split_side(right, text) if arrow else None


def _split_side(side: str, text: str) -> list[Label]:
    """The labels of one side, an ellipsis as one item."""
    side = side.strip()
    if side.startswith("["):
        if not side.endswith("]"):
            raise ShapeError(f"unbalanced bracket in einsum {text!r}")
        return side[1:-1].split()
    labels = re.findall(r"\.\.\.|\S", side)
    for label in labels:
        if label != DOTS and not label.isalpha():
            raise ShapeError(
                f"{label!r} is no label in einsum {text!r}; labels are letters,"
                " or words as in '[src dst],[dst c]->[src c]'"
            )
    return labels


def _resolved(
    inputs: Sequence[Sequence[Label]], output: Sequence[Label] | None, ranks: Sequence[int] | None, text: str
) -> Subscripts:
    """Ellipses written out, and the implicit output."""
    dotted = [DOTS in side for side in inputs]
    if any(list(side).count(DOTS) > 1 for side in [*inputs, output or []]):
        raise ShapeError(f"einsum {text!r} has two ellipses in one operand; one stands for all axes that are not named")
    if ranks is None and (any(dotted) or DOTS in (output or [])):
        raise ShapeError(f"einsum {text!r} has an ellipsis, and the axes it stands for are not known")
    if ranks is not None and len(ranks) != len(inputs):
        raise ShapeError(f"einsum {text!r} names {len(inputs)} operands, got {len(ranks)}")
    extra = [0] * len(inputs) if ranks is None else _dotted_ranks(inputs, ranks, text)
    dots = unused(max(extra, default=0), {label for side in inputs for label in side})
    written = [_written(side, dots[len(dots) - n :]) for side, n in zip(inputs, extra, strict=True)]
    if output is not None:
        if DOTS in output and not any(dotted):
            raise ShapeError(f"einsum {text!r} has an ellipsis in its output and in no operand")
        return Subscripts(tuple(written), _written(output, dots))
    every = Counter(label for side in inputs for label in side if label != DOTS)
    return Subscripts(tuple(written), (*dots, *sorted(label for label, n in every.items() if n == 1)))


def _dotted_ranks(inputs: Sequence[Sequence[Label]], ranks: Sequence[int], text: str) -> list[int]:
    """How many axes the ellipsis of each operand stands for."""
    extra = []
    for i, (side, rank) in enumerate(zip(inputs, ranks, strict=True)):
        named = len(side) - (DOTS in side)
        if named > rank or (named < rank and DOTS not in side):
            raise ShapeError(f"operand {i + 1} of einsum {text!r} has {named} labels but {rank} axes")
        extra.append(rank - named)
    return extra


def _written(side: Sequence[Label], dots: Labels) -> Labels:
    return tuple(name for label in side for name in (dots if label == DOTS else (label,)))


def _stretched(subscripts: Subscripts, shapes: Sequence[Sequence[int]]) -> Subscripts:
    """Axes of extent 1 whose label is longer elsewhere under labels of their own, over which nothing is left to do."""
    longest: dict[Label, int] = {}
    for labels, shape in zip(subscripts.inputs, shapes, strict=True):
        for label, n in zip(labels, shape, strict=True):
            if n != 1:
                longest.setdefault(label, n)
    sides: list[Labels] = []
    fresh = iter(unused(sum(map(len, shapes)), set(subscripts.labels)) if longest else ())
    for labels, shape in zip(subscripts.inputs, shapes, strict=True):
        extents: dict[Label, set[int]] = {}
        for label, n in zip(labels, shape, strict=True):
            extents.setdefault(label, set()).add(n)
        own = {label: next(fresh) for label, ns in extents.items() if ns == {1} and label in longest}
        sides.append(tuple(own.get(label, label) for label in labels))
    return Subscripts(tuple(sides), subscripts.output)


def unused(count: int, taken: Collection[Label]) -> Labels:
    """Labels that are not taken: letters, then words."""
    names = chain(LETTERS, (f"l{n}" for n in naturals(len(LETTERS))))
    return tuple(islice((name for name in names if name not in taken), count))
