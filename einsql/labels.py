"""What `labels=` says: names, and for each perhaps an extent and the domain that it shares with other labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from planner.errors import ShapeError
from planner.relation_type import Label, is_label

DEFAULT_LABELS = "ijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class LabelSpec:
    """One label: `src`, `src=34` with its extent, `src:person` with the domain that its values belong to."""

    name: Label
    extent: int | None = None
    domain: str | None = None


def read_labels(labels: str | Sequence[str], rank: int | None = None) -> tuple[LabelSpec, ...]:
    """The labels of `"src=34 dst=34"`, `"i j"`, `["i", "j"]`, `"src:person"`; `"ij"` for two axes means i and j.

    >>> [spec.name for spec in read_labels("ij", 2)], read_labels("src:person=34")[0].domain
    (['i', 'j'], 'person')
    """
    if not isinstance(labels, Iterable):
        raise ShapeError(f"labels are a text such as 'src dst' or a list of words, got {labels!r}")
    words = labels.split() if isinstance(labels, str) else list(labels)
    if isinstance(labels, str) and len(words) == 1 and rank is not None and rank > 1 and len(words[0]) == rank:
        words = list(words[0])
    specs = tuple(_read(word) for word in words)
    names = [spec.name for spec in specs]
    if len(set(names)) != len(names):
        raise ShapeError(f"labels must be distinct, got {' '.join(names)}")
    return specs


def _read(word: str) -> LabelSpec:
    front, equals, extent = word.partition("=") if isinstance(word, str) else ("", "", "")
    name, colon, domain = front.partition(":")
    if not is_label(name) or (equals and not extent.isdecimal()) or (colon and not is_label(domain)):
        raise ShapeError(f"cannot read the label {word!r}; written like 'src', 'src=34' or 'src:person'")
    if name.lower() == "val":
        raise ShapeError("a label cannot be called 'val': that is the value column")
    return LabelSpec(name, int(extent) if equals else None, domain or None)


def _default(rank: int) -> list[str]:
    """i, j, ..., z, then l18, l19, ..."""
    return [*DEFAULT_LABELS[:rank], *(f"l{n}" for n in range(len(DEFAULT_LABELS), rank))]


def axis_labels(
    name: str, labels: str | Sequence[str] | None, shape: tuple[int, ...], what: str
) -> tuple[LabelSpec, ...]:
    """The labels of the axes of an array; i, j, k, ... where none are given. `what` is what errors call the data."""
    specs = read_labels(_default(len(shape)) if labels is None else labels, len(shape))
    if len(specs) != len(shape):
        names = " ".join(spec.name for spec in specs)
        raise ShapeError(f"{name} has {len(shape)} axes, shape {shape}, but {len(specs)} labels: {names}")
    for spec, real in zip(specs, shape, strict=True):
        if spec.extent is not None and spec.extent != real:
            raise ShapeError(f"label {spec.name!r} of {name} is stated as {spec.extent}, but the {what} has {real}")
    return specs
