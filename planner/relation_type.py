"""The type of a tensor relation: a table whose rows carry a key and a block.

Two laws rest on it. *One row is one block*: a label is cut (a key), inside (an axis of the block), or both. *Presence
is data*: an absent cell joins nothing, and how absence is stored is part of the type:

    complete   every cell is there
    blocks     some blocks are missing; the ones stored are full
    cells      blocks carry a mask of the cells that are there
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from itertools import product

from planner.cuts import Cut, parse_cut
from planner.dtypes import DType, dtype_named
from planner.errors import ShapeError

Label = str
PRESENCES = ("complete", "blocks", "cells")


@dataclass(frozen=True)
class RelationType:
    """Labels, cuts, dtype, storage class and presence of one relation.

    storage   "scalar": every label is cut to single cells and the payload is a plain column; "block" otherwise. Which
              scalar rows are there may be known only after a run: presence "cells"
    """

    labels: tuple[Label, ...]
    cuts: tuple[Cut, ...]
    dtype: DType
    storage: str = "block"
    presence: str = "complete"

    def __post_init__(self) -> None:
        if len(self.labels) != len(self.cuts):
            raise ShapeError(f"{len(self.labels)} labels but {len(self.cuts)} cuts")
        if len(set(self.labels)) != len(self.labels):
            raise ShapeError(f"a relation names each label once, got {', '.join(self.labels)}")
        if self.storage == "scalar" and not all(c.is_cells for c in self.cuts):
            raise ShapeError(f"scalar storage wants every label cut to single cells: {self}")
        if self.storage == "scalar" and not self.dtype.sql:
            raise ShapeError(f"no column holds {self.dtype.name}: {self}")

    @property
    def extents(self) -> tuple[int, ...]:
        return tuple(c.extent for c in self.cuts)

    @property
    def counts(self) -> tuple[int, ...]:
        """Parts per label: the grid of possible keys."""
        return tuple(c.count for c in self.cuts)

    @property
    def label_cuts(self) -> dict[Label, Cut]:
        return dict(zip(self.labels, self.cuts, strict=True))

    @property
    def possible_rows(self) -> int:
        return math.prod(self.counts)

    @property
    def cells(self) -> int:
        return math.prod(self.extents)

    @property
    def bytes_per_cell(self) -> int:
        """Payload bytes, and one more for the mask where there is one."""
        return self.dtype.itemsize + (self.presence == "cells")

    @property
    def nbytes(self) -> int:
        """Bytes when every cell is stored."""
        return self.cells * self.bytes_per_cell

    def block_shape(self, key: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(c.size(k) for c, k in zip(self.cuts, key, strict=True))

    def all_keys(self) -> product[tuple[int, ...]]:
        """All possible keys, row-major."""
        return product(*(range(n) for n in self.counts))

    def with_labels(self, labels: tuple[Label, ...]) -> RelationType:
        return replace(self, labels=labels)

    def describe(self) -> str:
        """`f32[t=4096 d=64]`, without cuts."""
        inside = " ".join(f"{name}={c.extent}" for name, c in zip(self.labels, self.cuts, strict=True))
        return f"{self.dtype.short}[{inside}]"

    def __str__(self) -> str:
        """`f32[t=4096/4 d=64]`, then storage and presence where they are not the usual; `parse_type` reads it back."""
        inside = " ".join(f"{_name(n)}={c}" for n, c in zip(self.labels, self.cuts, strict=True))
        rest = [self.storage] * (self.storage != "block") + [self.presence] * (self.presence != "complete")
        return " ".join([f"{self.dtype.short}[{inside}]", *rest])


def cell_storage(dtype: DType) -> str:
    """How rows of single cells are stored: as a plain column where DuckDB has one for the dtype."""
    return "scalar" if dtype.sql else "block"


_WRITABLE = re.compile(r"[^\s=\"\[\]:,.()'>-]+")


def is_label(name: str) -> bool:
    """Whether print-outs can write `name` bare: no spaces, quotes or brackets, and none of , . : = - >"""
    return _WRITABLE.fullmatch(name) is not None


_TYPE = re.compile(r"(?P<dtype>\w+)\[(?P<inside>.*)\](?P<rest>( (scalar|blocks|cells))*)$")
_LABEL = re.compile(r'("(?:[^"])*"|[^\s=]+)=(\S+)')


def _name(label: Label) -> str:
    return label if re.fullmatch(r"[^\s=\"\[\]]+", label) else f'"{label}"'


def parse_type(text: str) -> RelationType:
    """Read the text of a relation type.

    >>> str(parse_type("i64[src=34/34 dst=34/34] scalar blocks"))
    'i64[src=34/34 dst=34/34] scalar blocks'
    """
    match = _TYPE.match(text.strip())
    if match is None:
        raise ShapeError(f"cannot read the relation type {text!r}; written like f32[t=4096/4 d=64]")
    pairs = _LABEL.findall(match["inside"])
    rest = match["rest"].split()
    return RelationType(
        labels=tuple(name.strip('"') for name, _ in pairs),
        cuts=tuple(parse_cut(cut) for _, cut in pairs),
        dtype=dtype_named(match["dtype"]),
        storage="scalar" if "scalar" in rest else "block",
        presence=next((p for p in rest if p in PRESENCES), "complete"),
    )
