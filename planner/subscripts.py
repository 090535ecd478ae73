"""Subscripts: which label stands at which axis of each operand and of the output.

Text is NumPy's where every label is one character, `ij,jk->ik`, and bracketed otherwise, `[src dst],[dst c]->[src c]`.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from planner.errors import ShapeError, UnsupportedError
from planner.relation_type import Label

Labels = tuple[Label, ...]


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

    @property
    def labels(self) -> Labels:
        """Every label once: those of the output first, then the aggregated ones in order of appearance."""
        return tuple(dict.fromkeys([*self.output, *(label for labels in self.inputs for label in labels)]))

    @property
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
    """Read subscripts; without an arrow the output is every label that occurs once, in sorted order, capitals first.

    >>> str(parse_subscripts("ij, jk -> ik")), str(parse_subscripts("bA"))
    ('ij,jk->ik', 'bA->Ab')
    """
    if "." in text:
        raise UnsupportedError(f"an ellipsis is not read yet in {text!r}; name every label")
    left, arrow, right = text.partition("->")
    if "->" in right or "-" in left + right or ">" in left + right:
        raise ShapeError(f"einsum {text!r} wants at most one '->'")
    inputs = tuple(_parse_side(side, text) for side in left.split(","))
    if arrow:
        return Subscripts(inputs, _parse_side(right, text))
    every = [label for labels in inputs for label in labels]
    return Subscripts(inputs, tuple(sorted(label for label in set(every) if every.count(label) == 1)))


def _parse_side(side: str, text: str) -> Labels:
    side = side.strip()
    if side.startswith("["):
        if not side.endswith("]"):
            raise ShapeError(f"unbalanced bracket in einsum {text!r}")
        return tuple(side[1:-1].split())
    labels = tuple(side.replace(" ", ""))
    for label in labels:
        if not label.isalpha():
            raise ShapeError(
                f"{label!r} is no label in einsum {text!r}; labels are letters,"
                " or words as in '[src dst],[dst c]->[src c]'"
            )
    return labels
