"""Everything that an einsum call can say, drawn at random, against the whole label space in NumPy.

Payloads are small whole numbers, which every dtype holds, sums and products of them too, so that results are equal to
the last bit; a second test takes real floats and allows what rounding may do.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import einsql as es
from einsql.query import Query
from einsql.reference import evaluate
from gpu_exec.batch import to_dense
from planner.node import postorder
from tests.engines import ENGINES

Array = np.ndarray
MORE = settings(max_examples=3 * settings().max_examples, deadline=None)

DTYPES = {
    "bool": np.bool_, "uint8": np.uint8, "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
    "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64,
    "complex64": np.complex64, "complex128": np.complex128,
}  # fmt: skip
COMPLEX = ("complex64", "complex128")
LABELS = "ijkl"
UFUNCS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


@dataclass(frozen=True)
class Operand:
    """One operand: how its axes are written, the labels they mean, and its values."""

    written: tuple[Any, ...]
    labels: tuple[str, ...]
    values: Array
    sparse: bool

    def create(self, db: es.Session, name: str, parts: dict[str, int]) -> None:
        """Store it under positional labels, dense or as rows of single cells."""
        axes = [f"a{i}" for i in range(self.values.ndim)]
        own = {axes[i]: parts[label] for i, label in enumerate(self.labels) if label in parts}
        if self.sparse:
            db.create(name, self.values, labels=axes, dense=False)
        else:
            db.create(name, self.values, labels=axes, parts=own)


@dataclass(frozen=True)
class Call:
    """An einsum call. `dots` are the labels that an ellipsis means, the last ones of which an operand may have."""

    operands: tuple[Operand, ...]
    output: tuple[Any, ...] | None
    means: tuple[str, ...]
    reduce: str
    combine: str | None
    path: Any
    as_lists: bool
    stored: dict[str, int]
    cut: tuple[str, int]

    def arguments(self) -> list[Any]:
        names = [f"X{i}" for i in range(len(self.operands))]
        if self.as_lists:
            sides = [[_number(item) for item in o.written] for o in self.operands]
            args: list[Any] = [item for pair in zip(names, sides, strict=True) for item in pair]
            return args if self.output is None else [*args, [_number(item) for item in self.output]]
        left = ",".join("".join("..." if w is ... else w for w in o.written) for o in self.operands)
        arrow = "" if self.output is None else "->" + "".join("..." if w is ... else w for w in self.output)
        return [left + arrow, *names]

    def query(self, db: es.Session, **options: Any) -> Query:
        return db.einsum(*self.arguments(), reduce=self.reduce, combine=self.combine, path=self.path, **options)

    def expected(self) -> Array:
        """Over the whole label space, in wide NumPy dtypes."""
        labels = [*self.means, *dict.fromkeys(a for o in self.operands for a in o.labels if a not in self.means)]
        extent = dict.fromkeys(labels, 1)
        for o in self.operands:
            extent |= {a: n for a, n in zip(o.labels, o.values.shape, strict=True) if n != 1}
        grid = dict(zip(labels, np.indices([extent[a] for a in labels]), strict=True))
        full = []
        for o in self.operands:
            wide = o.values.astype({"b": bool, "c": np.complex128}.get(o.values.dtype.kind, np.float64))
            at = tuple(grid[a] * (n != 1) for a, n in zip(o.labels, o.values.shape, strict=True))
            full.append(np.broadcast_to(wide[at], [extent[a] for a in labels]))
        boolean = all(f.dtype == bool for f in full)
        counts = self.combine == "add" and len(full) > 1  # booleans that are added are counted
        if counts:
            full = [f.astype(int) if f.dtype == bool else f for f in full]
        combined = reduce({None: operator.mul, "add": operator.add, "min": np.minimum}[self.combine], full)
        axes = tuple(range(len(self.means), len(labels)))
        if self.reduce in ("any", "all") or (boolean and not counts and self.reduce in ("sum", "prod")):
            how = np.logical_or if self.reduce in ("any", "sum") else np.logical_and
            return np.asarray(how.reduce(combined != 0, axis=axes))
        return np.asarray(UFUNCS["sum" if self.reduce == "fsum" else self.reduce].reduce(combined, axis=axes))


def _number(item: Any) -> Any:
    return item if item is ... else LABELS.index(item) if item in LABELS else 60 + ord(item)


@st.composite
def calls(draw: st.DrawFn) -> Call:
    count = draw(st.integers(1, 3))
    extents = {a: draw(st.integers(1, 4)) for a in (*LABELS, "D", "E")}
    dots = draw(st.integers(0, 2))
    chosen = [draw(operands(extents, dots)) for _ in range(count)]
    kinds = [o.values.dtype for o in chosen]
    dotted = any(... in o.written for o in chosen)
    known = sorted({a for o in chosen for a in o.labels if a in LABELS})
    most = max((sum(a in "DE" for a in o.labels) for o in chosen), default=0)
    meant = tuple("DE"[2 - most :])
    if draw(st.booleans()):
        output, once = None, [a for a in known if sum(o.written.count(a) for o in chosen) == 1]
        means = (*meant, *once)
    else:
        kept = draw(st.permutations(known))[: draw(st.integers(0, len(known)))]
        at = draw(st.integers(0, len(kept)))
        keep_dots = dotted and draw(st.booleans())
        output = (*kept[:at], ..., *kept[at:]) if keep_dots else tuple(kept)
        means = (*kept[:at], *meant, *kept[at:]) if keep_dots else tuple(kept)
    inexact = any(k.kind == "c" for k in kinds)
    boolean = all(k.kind == "b" for k in kinds)
    reduces = ["sum", "sum", "any", "all"]
    reduces += [] if inexact else ["max", "min", *(["fsum"] if not boolean else [])]
    combines = [None, None, "add"] + ([] if inexact else ["min"])
    how = draw(st.sampled_from(reduces))
    combine = draw(st.sampled_from(combines))
    if boolean and combine == "add" and how in ("max", "min"):
        combine = None
    path = None
    exact = all(k.kind in "biu" for k in kinds)  # whether a product of floats is 0 depends on the order
    if (
        combine is None
        and count > 1
        and (how == "sum" or (how == "any" and (exact or count == 2)))
        and draw(st.booleans())
    ):
        path = draw(paths(count))
    cut = draw(st.sampled_from(["parts", "tile"])), draw(st.integers(1, 3))
    stored = draw(st.dictionaries(st.sampled_from(LABELS), st.integers(1, 3)))
    return Call(tuple(chosen), output, means, how, combine, path, draw(st.booleans()), stored, cut)


@st.composite
def operands(draw: st.DrawFn, extents: dict[str, int], dots: int) -> Operand:
    named = draw(st.lists(st.sampled_from(LABELS), max_size=3))
    written: list[Any] = list(named)
    labels = list(named)
    if draw(st.booleans()):
        at, rank = draw(st.integers(0, len(named))), draw(st.integers(0, dots))
        written.insert(at, ...)
        labels[at:at] = list("DE"[2 - rank :])
    short = {a for a in labels if draw(st.integers(0, 5)) == 0}  # stretched where another operand is longer
    shape = [1 if a in short else extents[a] for a in labels]
    name = draw(st.sampled_from(list(DTYPES)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = rng.integers(0 if name in ("bool", "uint8") else -2, 2, shape, endpoint=True)
    if name in COMPLEX:
        values = values + 1j * rng.integers(-2, 2, shape, endpoint=True)
    return Operand(tuple(written), tuple(labels), np.asarray(values).astype(DTYPES[name]), draw(st.booleans()))


@st.composite
def paths(draw: st.DrawFn, count: int) -> list[Any]:
    """A path in any of the forms in which libraries give one."""
    pairs, live, ssa = [], list(range(count)), []
    for step in range(count - 1):
        a, b = sorted(draw(st.lists(st.integers(0, len(live) - 1), min_size=2, max_size=2, unique=True)))
        pairs.append((a, b))
        ssa.append((live[a], live[b]))
        live = [n for i, n in enumerate(live) if i not in (a, b)] + [count + step]
    return draw(st.sampled_from([pairs, ["einsum_path", *pairs], ["ssa", *ssa], [tuple(range(count))]]))


@MORE
@given(call=calls())
def test_an_einsum_call_is_numpy_over_the_label_space(call: Call) -> None:
    """Every engine, under the cuts that relations are stored with and others that the query asks for."""
    expected = call.expected()
    with es.connect() as db:
        for i, operand in enumerate(call.operands):
            operand.create(db, f"X{i}", call.stored)
        how, n = call.cut
        labels = {label for node in postorder(call.query(db).host.plan) for label in node.type.labels}
        variants: list[dict[str, Any]] = [{"engine": e} for e in ENGINES]
        variants += [{"engine": e, how: dict.fromkeys(labels, n)} for e in ENGINES[1:]]
        dtypes = set()
        for options in variants:
            got = call.query(db, **options).numpy()
            dtypes.add(got.dtype)
            assert got.shape == expected.shape, (call.arguments(), options)
            np.testing.assert_array_equal(got.astype(expected.dtype), expected, err_msg=f"{call.arguments()} {options}")
        assert len(dtypes) == 1


INEXACT = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
EXPRESSIONS = ("x0 * x1", "x0 + x1", "exp(x0) * x1", "x0 / (2 + x1 * x1)", "abs(x0) * x1", "x0 * x1 * i")


@st.composite
def float_calls(draw: st.DrawFn) -> tuple[str, list[Array], dict[str, Any], dict[str, Any]]:
    """Subscripts, two real or complex operands, reduce and combine, and options."""
    subscripts = draw(st.sampled_from(["ij,jk->ik", "ij,ij->i", "ij,kj->", "ii,ij->j", "ij,j->ij", "ij,jk->ijk"]))
    extents = {a: draw(st.integers(1, 6)) for a in "ijk"}
    arrays = []
    for side in subscripts.partition("->")[0].split(","):
        name = draw(st.sampled_from(INEXACT))
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        shape = [extents[a] for a in side]
        values = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if name in COMPLEX else 0)
        arrays.append(np.asarray(values).astype(DTYPES[name]))
    reduces = ["sum"] if any(a.dtype.kind == "c" for a in arrays) else ["sum", "prod", "max", "min", "fsum"]
    call = {"reduce": draw(st.sampled_from(reduces)), "combine": draw(st.sampled_from(EXPRESSIONS))}
    parts = {label: draw(st.integers(1, 3)) for label in "ijk" if label in subscripts}
    options = {"engine": draw(st.sampled_from(["duckdb", "host:1", "host:2", "host:4"])), "parts": parts}
    return subscripts, arrays, call, options


@MORE
@given(drawn=float_calls())
def test_floats_stay_within_what_rounding_may_do(drawn: Any) -> None:
    """Law 1: c * n * eps times the same graph on absolute values, by the reference interpreter, in every dtype."""
    subscripts, arrays, call, options = drawn
    with es.connect() as db:
        query = db.einsum(subscripts, *arrays, **call, **options)
        total = evaluate(query.graph, {name: to_dense(r.batch) for name, r in query.relations.items()})
        got = query.numpy()
        off = np.abs(got.astype(total.values.dtype) - total.values)
        assert got.dtype.name == query.graph.type.dtype.name
        assert np.all(off <= 4 * total.bound + 1e-300), (subscripts, call, options, off.max(), total.bound.min())
