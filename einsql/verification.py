"""Checks the answer of a query file against the reference interpreter, directly or on a scaled-down copy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from einsql.query import Query
from einsql.query_file import QueryFile
from einsql.reference import evaluate
from einsql.session import Session
from gpu_exec.batch import to_dense
from gpu_exec.kernels.dtype import numpy_dtype
from planner.einsum import Einsum, Tensor
from planner.errors import PlanError
from planner.node import postorder

MOST_CELLS = 10**6


@dataclass(frozen=True)
class Verification:
    """What a comparison with the reference interpreter found.

    scaled   label -> extent of the copy that was compared, empty when the query itself was
    problem  the first cell that is wrong; empty when all are right
    error    the largest difference of two finite floats
    allowed  what rounding allows at that cell
    """

    query: Query
    scaled: Mapping[str, int]
    problem: str
    error: float = 0.0
    allowed: float = 0.0

    @property
    def passed(self) -> bool:
        return not self.problem

    def __str__(self) -> str:
        sizes = " ".join(f"{label}={extent}" for label, extent in self.scaled.items())
        where = f" on a copy scaled down to {sizes}" if sizes else ""
        if self.problem:
            return f"FAILED against the reference interpreter{where}: {self.problem}"
        rounding = f", within rounding: {self.error:.1e} off where {self.allowed:.1e} is allowed" if self.error else ""
        return f"equal to the reference interpreter{where}{rounding}"


def verify(file: QueryFile, query: Query, **options: Any) -> Verification:
    """Compare a query with the reference interpreter: itself, or a scaled-down copy where it is too large.

    options   of the copy's query; as those that `query` was made with
    Raises    PlanError when no copy is small enough, since the extents of graphs and of size 2 stay
    """
    extents = scaled_extents(query.graph, file.fixed_extents())
    if not extents:
        return compare(query, {})
    with Session() as session:
        file.make_inputs(session, extents)
        scaled = {
            label: extents.get(extent, extent)
            for spec in file.relations
            for label, extent in zip(spec.labels, spec.extents, strict=True)
        }
        return compare(file.query(session, **options), scaled)


def scaled_extents(graph: Tensor, fixed: frozenset[int]) -> dict[int, int]:
    """Extent -> smaller extent, so that no node has more than 10^6 cells; empty when none has.

    Joined labels have one extent, so scaling by extent keeps every join possible whatever its labels are called.
    """
    spaces = [tuple(n.extents.values()) if isinstance(n, Einsum) else n.type.extents for n in postorder(graph)]
    size = {extent: extent for space in spaces for extent in space}
    while max(math.prod(size[e] for e in space) for space in spaces) > MOST_CELLS:
        largest = max((e for e in size if e not in fixed and size[e] > 2), key=lambda e: (size[e], e), default=None)
        if largest is None:
            raise PlanError(f"no copy of the query is small enough to verify: over {MOST_CELLS} cells in one step")
        size[largest] //= 2
    return size if any(old != new for old, new in size.items()) else {}


def compare(query: Query, scaled: Mapping[str, int]) -> Verification:
    """Compare a query with the reference interpreter, law 1: the same cells are present, integers are equal, floats
    differ by at most four times the rounding bound, infinities and NaN are at the same places."""
    inputs = {name: to_dense(relation.batch) for name, relation in query.relations.items()}
    want = evaluate(query.graph, inputs)
    got, present = to_dense(query.run().batch)
    if not np.array_equal(present, want.present):
        return Verification(query, scaled, f"{_first(query, present != want.present)} is present on one side only")
    dtype = query.graph.type.dtype
    got = np.where(present, got, np.zeros((), got.dtype))
    wide = np.dtype(complex if dtype.is_complex else float)
    expected = np.where(present, want.values, 0).astype(numpy_dtype(dtype) if dtype.is_exact else wide)
    got = got if dtype.is_exact else got.astype(wide)
    finite = np.isfinite(got) & np.isfinite(expected)
    with np.errstate(invalid="ignore"):
        off = np.where(finite, np.abs(np.subtract(got, expected, dtype=wide)), 0.0)
    allowed = 4 * want.bound + float(np.finfo(np.float32).tiny)
    close = (finite & (off <= allowed)) | (np.isnan(got) & np.isnan(expected))
    wrong = (got != expected) & ~(close & (not dtype.is_exact))
    problem = f"{_first(query, wrong)} is {got[wrong][0]}, not {expected[wrong][0]}" if wrong.any() else ""
    error = float(off.max(initial=0))
    return Verification(query, scaled, problem, error, float(allowed.flat[off.argmax()]) if error else 0.0)


def _first(query: Query, where: np.ndarray) -> str:
    cell = np.argwhere(where)[0]
    return "(" + " ".join(f"{label}={int(c)}" for label, c in zip(query.labels, cell, strict=True)) + ")"
