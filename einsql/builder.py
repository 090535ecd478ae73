"""Lazy tensors with named labels: Python expressions that build the einsum graph.

    x, w = db.tensor("X", "t d"), db.tensor("W", "d f")
    h = es.silu((x * w).sum("d"))    # x and w join on the label that both have, d

A tensor is read whole: an absent cell has the relation's fill. Nothing runs before a result is taken.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from einsql.joining import hint, joined, label_names
from einsql.operators import Build, Operators
from einsql.readings import Reading
from einsql.relation import Relation
from einsql.total import Whole
from gpu_exec.kernels.dtype import numpy_dtype
from planner.dtypes import BOOL, BY_NAME, DTYPES, DType, check_int64, dtype_named
from planner.einsum import Einsum
from planner.errors import DataError, ShapeError
from planner.scalar import Arg, Call, Cast, Const, Expr, Value
from planner.subscripts import Subscripts

if TYPE_CHECKING:
    import pyarrow as pa

    from einsql.query import Query, Text
    from einsql.session import Session

Labels = str | Iterable[str]


@dataclass(frozen=True, eq=False, repr=False)
class Scalar(Operators):
    """An expression over label values and numbers; it takes its extents from the tensor that it meets."""

    expr: Expr

    @staticmethod
    def apply(build: Build, *args: Any) -> Any:
        return elementwise(build, *args)


@dataclass(frozen=True, eq=False, repr=False)
class Tensor(Operators):
    """A tensor that is not computed yet.

    whole       its graph, and what an absent cell is worth
    labels      the names of its axes, in order
    relations   the relations that the graph reads, as it calls them
    """

    session: Session
    whole: Whole
    labels: tuple[str, ...]
    relations: Mapping[str, Relation]

    def __repr__(self) -> str:
        return f"Tensor {self._type} over {', '.join(self.relations)}"

    @property
    def _type(self) -> str:
        inside = " ".join(f"{label}={extent}" for label, extent in self.extents.items())
        return f"{self.whole.node.type.dtype.short}[{inside}]"

    @staticmethod
    def apply(build: Build, *args: Any) -> Any:
        return elementwise(build, *args)

    # ------------------------------------------------------------------------------------------------------- its type

    @property
    def extents(self) -> dict[str, int]:
        """Label -> extent, in order."""
        return dict(zip(self.labels, self.shape, strict=True))

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents, in the order of `labels`."""
        return self.whole.node.type.extents

    @property
    def dtype(self) -> np.dtype:
        """The dtype of what `numpy` gives."""
        return np.dtype(numpy_dtype(self.whole.node.type.dtype))

    @property
    def is_exact(self) -> bool:
        return self.whole.node.type.dtype.is_exact

    # -------------------------------------------------------------------------------------------------------- results

    def query(self, **options: Any) -> Query:
        """The tensor as a query; options as `Session.einsum` takes them."""
        node, fill = self.whole.node, self.whole.fill
        return self.session._query(Reading(node, self.labels, self.relations, fill), options)

    @cached_property
    def _default(self) -> Query:
        return self.query()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype, copy=copy)

    def numpy(self) -> np.ndarray:
        """The values, read-only, in the order of `labels`."""
        return self._default.numpy()

    def arrow(self) -> pa.Table:
        """The result with one row per present cell: a column per label, then `val`."""
        return self._default.arrow()

    def scipy(self) -> Any:
        """The present cells as a scipy.sparse.coo_array, of one or two labels."""
        return self._default.scipy()

    def to_table(self, name: str, replace: bool = False) -> Relation:
        """Store the result as a relation, whole or not at all."""
        return self._default.to_table(name, replace)

    def explain(self, form: str = "relational") -> Text:
        """The plan in one of its forms: logical, relational, sql, program."""
        return self._default.explain(form)

    # ----------------------------------------------------------------------------------------------------- reductions

    def sum(self, labels: Labels | None = None) -> Tensor:
        """The sum over labels, all of them by default. It counts booleans; narrow types widen."""
        return self._reduced("sum", labels)

    def fsum(self, labels: Labels | None = None) -> Tensor:
        """The exactly rounded sum, in float64."""
        return self._reduced("fsum", labels)

    def prod(self, labels: Labels | None = None) -> Tensor:
        """The product over labels."""
        return self._reduced("prod", labels)

    def max(self, labels: Labels | None = None) -> Tensor:
        """The largest value; NaN where there is one, and the least value of the dtype over nothing."""
        return self._reduced("max", labels)

    def min(self, labels: Labels | None = None) -> Tensor:
        """The least value; NaN where there is one, and the largest value of the dtype over nothing."""
        return self._reduced("min", labels)

    def any(self, labels: Labels | None = None) -> Tensor:
        """Whether any value is true, or other than 0."""
        return self._reduced("any", labels)

    def all(self, labels: Labels | None = None) -> Tensor:
        """Whether all values are true, or other than 0."""
        return self._reduced("all", labels)

    def __matmul__(self, other: Any) -> Tensor:
        """The product summed over the labels that both have: `x @ w` is `(x * w).sum("d")` where both have d."""
        if not isinstance(other, Tensor):
            return NotImplemented
        shared = tuple(label for label in self.labels if label in other.labels)
        return joined((self, other), Call("mul", (Arg(0), Arg(1))), "sum", shared)

    def __float__(self) -> float:
        return float(self.numpy())

    def __int__(self) -> int:
        return int(self.numpy())

    def mean(self, labels: Labels | None = None) -> Tensor:
        """The sum over labels, divided by their extents; of integers and booleans a float64."""
        count = math.prod(self.extents[label] for label in self.chosen(labels))
        mean: Tensor = self.sum(labels) / float(count)
        return mean

    def _reduced(self, reduce: str, labels: Labels | None) -> Tensor:
        combine: Expr = Arg(0)
        if reduce in ("any", "all") and self.whole.node.type.dtype != BOOL:
            combine = Call("ne", (combine, Const(0)))
        elif reduce == "fsum" and self.is_exact:
            combine = Cast(combine, dtype_named("float64"))
        return joined((self,), combine, reduce, self.chosen(labels))

    def chosen(self, labels: Labels | None) -> tuple[str, ...]:
        """The labels that a call names, all for None; refuses one that the tensor does not have."""
        if labels is None:
            return self.labels
        if not isinstance(labels, Iterable):
            raise ShapeError(f"labels are called by name, as in {' '.join(self.labels)!r}, got {labels!r}")
        names = tuple(dict.fromkeys(labels.split() if isinstance(labels, str) else labels))
        for name in names:
            if name not in self.labels:
                raise ShapeError(f"no label {name!r} in {self}{hint(name, self.labels)}")
        return names

    # --------------------------------------------------------------------------------------------- labels and dtypes

    def rename(self, **names: str) -> Tensor:
        """The same values under other labels: `x.rename(t="s")`."""
        self.chosen(names)
        return replace(self, labels=label_names(names.get(label, label) for label in self.labels))

    def transpose(self, labels: Labels) -> Tensor:
        """The axes in another order; `labels` names each of them."""
        order = self.chosen(labels)
        if len(order) != len(self.labels):
            left = ", ".join(label for label in self.labels if label not in order)
            raise ShapeError(f"transpose wants every label of {self}; {' '.join(order) or 'nothing'} leaves out {left}")
        if order == self.labels:
            return self
        node = Einsum((self.whole.node,), Subscripts((self.labels,), order), Arg(0), None)
        return replace(self, whole=Whole(node, self.whole.fill), labels=order)

    permute = transpose

    def cast(self, dtype: Any) -> Tensor:
        """The values in another dtype; floats round half to even when they become integers."""
        to = dtype if isinstance(dtype, DType) else _read_dtype(dtype)
        return self if to == self.whole.node.type.dtype else joined((self,), Cast(Arg(0), to))

    astype = cast

    def conj(self) -> Tensor:
        """The complex conjugate."""
        return joined((self,), Call("conj", (Arg(0),)))

    @property
    def real(self) -> Tensor:
        """The real part."""
        return joined((self,), Call("real", (Arg(0),)))

    @property
    def imag(self) -> Tensor:
        """The imaginary part."""
        return joined((self,), Call("imag", (Arg(0),)))

    # -------------------------------------------------------------------------------------- indexing: einsql.indexing

    def slice(self, **ranges: builtins.slice | Sequence[int | None]) -> Tensor:
        """A part of some labels, as Python slices: `x.slice(t=(1, 3))`, `x.slice(t=slice(None, None, -1))`.

        Coordinates of the result start at 0.
        """
        from einsql import indexing

        return indexing.slice(self, ranges)

    def shift(self, *, fill: Value = 0, **by: int) -> Tensor:
        """out[t] = x[t - by], with `fill` where that is outside; extents stay."""
        from einsql import indexing

        return indexing.shift(self, by, fill)

    def pad(self, *, fill: Value = 0, **widths: Sequence[int]) -> Tensor:
        """`x.pad(t=(1, 2))`: one more coordinate before and two after, with `fill` there."""
        from einsql import indexing

        return indexing.pad(self, widths, fill)

    def flip(self, labels: Labels) -> Tensor:
        """Coordinates along labels in the opposite order."""
        from einsql import indexing

        return indexing.flip(self, self.chosen(labels))

    def unfold(self, label: str, window: str, size: int, step: int = 1) -> Tensor:
        """Sliding windows: out[t, k] = x[t * step + k] under a new last label; (x.unfold("t", "k", 3) * w).sum("k")
        is a convolution."""
        from einsql import indexing

        return indexing.unfold(self, label, window, size, step)

    def split(self, label: str, into: Labels, /, **extents: int) -> Tensor:
        """One label as several, the last varying fastest: `x.split("d", "pair half", half=2)` has d = pair * 2 + half.

        extents   of the new labels; one of them may be left out
        """
        from einsql import indexing

        return indexing.split(self, label, into, extents)

    def merge(self, labels: Labels, into: str, /) -> Tensor:
        """Several labels as one, the last varying fastest: the inverse of `split`."""
        from einsql import indexing

        return indexing.merge(self, labels, into)

    def gather(self, *, fill: Value = 0, **index: Tensor) -> Tensor:
        """`table.gather(v=index)`: see `es.gather`."""
        from einsql import indexing

        if len(index) != 1:
            raise ShapeError(f"gather looks up one label at a time, got {', '.join(index) or 'none'}")
        ((label, values),) = index.items()
        return indexing.gather(self, values, label, fill=fill)


def elementwise(build: Build, *args: Any) -> Any:
    """What `build` makes of the values of tensors, label values and numbers: a tensor, or a `Scalar` without one."""
    tensors: list[Tensor] = []
    exprs: list[Expr] = []
    for arg in args:
        if not isinstance(arg, Tensor):
            exprs.append(_expression(arg))
            continue
        same = (i for i, t in enumerate(tensors) if t.whole.node is arg.whole.node and t.labels == arg.labels)
        number = next(same, len(tensors))
        if number == len(tensors):
            tensors.append(arg)
        exprs.append(Arg(number))
    if not tensors and not any(isinstance(arg, Scalar) for arg in args):
        raise DataError(f"one argument is a tensor or es.label('t'), got {', '.join(map(repr, args))}")
    return joined(tensors, build(*exprs)) if tensors else Scalar(build(*exprs))


def _expression(arg: Any) -> Expr:
    if isinstance(arg, Scalar):
        return arg.expr
    value = arg.item() if isinstance(arg, np.generic) else arg
    if isinstance(value, bool | float | complex):
        return Const(value)
    if isinstance(value, int):
        return Const(check_int64(value, "a number in an expression"))
    where = "an array has no labels" if isinstance(arg, np.ndarray | list | tuple) else "it is none of these"
    raise DataError(
        f"tensors are combined with tensors, numbers and label values, got {type(arg).__name__}: {where}"
        "\n  make it a tensor, as in db.tensor(array, 't d') or db.tensor('name')"
    )


def as_tensor(x: Any, what: str) -> Tensor:
    """x itself; refuses what is no tensor, with what to do."""
    if not isinstance(x, Tensor):
        raise DataError(f"{what} is a tensor, got {type(x).__name__}; make it one, as in db.tensor(array, 't d')")
    return x


def _read_dtype(dtype: Any) -> DType:
    if isinstance(dtype, str) and dtype in BY_NAME:
        return BY_NAME[dtype]
    try:
        return dtype_named(np.dtype(dtype).name if dtype is not None else "None")
    except TypeError:
        raise ShapeError(f"no dtype {dtype!r}; there are {', '.join(d.name for d in DTYPES)}") from None
