"""The total reading: an einsum string sees every operand as a whole array, in which an absent cell has its fill.

Where the fill annihilates the combine and what is left is the identity of the reduce, the present cells alone give the
same answer, and the graph is the one that SQL would give. Anywhere else a `Fill` makes the operand whole first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpu_exec.kernels.dtype import numpy_dtype
from gpu_exec.kernels.expression import evaluate
from planner.dtypes import DType, identity
from planner.einsum import Einsum, Fill, Path, Tensor
from planner.scalar import Arg, Call, Cast, Expr, Value, args_of, labels_of
from planner.scalar_types import typed
from planner.subscripts import Subscripts

# combine -> the values that swallow every other one.
ANNIHILATORS: dict[str, tuple[Value, ...]] = {
    "mul": (0,),
    "and": (False,),
    "or": (True,),
    "add": (math.inf, -math.inf),
    "min": (-math.inf,),
    "max": (math.inf,),
}


@dataclass(frozen=True)
class Whole:
    """A tensor read as a total array: absent cells of `node` have the value `fill`, which its dtype holds."""

    node: Tensor
    fill: Value

    def __post_init__(self) -> None:
        object.__setattr__(self, "fill", _in_dtype(self.fill, self.node.type.dtype))


def total_einsum(
    operands: Sequence[Whole],
    subscripts: Subscripts,
    combine: Expr,
    reduce: str,
    where: Expr | None = None,
    path: Path | None = None,
) -> Whole:
    """The einsum over total arrays, and the fill of its result: what the reduce gives over nothing."""
    checked, dtype = typed(combine, [w.node.type.dtype for w in operands])
    contracts = bool(subscripts.contracted)
    absent = [
        None if w.node.type.complete else _value_where_absent(checked, dtype, i, w) for i, w in enumerate(operands)
    ]
    if contracts:
        absent = [a if a == identity(reduce, dtype) else None for a in absent]
    elif len({a for a in absent if a is not None}) > 1:
        absent = [None] * len(absent)
    nodes = tuple(
        w.node if w.node.type.complete or a is not None else Fill(w.node, w.fill)
        for w, a in zip(operands, absent, strict=True)
    )
    node = Einsum(nodes, subscripts, combine, reduce if contracts else None, where, path)
    fill = identity(reduce, node.type.dtype) if contracts else next((a for a in absent if a is not None), 0)
    return Whole(node, fill)


def _value_where_absent(combine: Expr, dtype: DType, index: int, operand: Whole) -> Value | None:
    """What `combine` gives wherever operand `index` is absent; None if the other operands or labels have a say.

    Raises   IntegerOverflowError where int64 does not hold it
    """
    fill = operand.fill
    if args_of(combine) == {index} and not labels_of(combine):
        number = np.asarray(fill, numpy_dtype(operand.node.type.dtype))
        value: Value = evaluate(combine, [number] * (index + 1), {}, dtype, ()).item()
        return value
    here = combine
    while here != Arg(index):
        if isinstance(here, Cast):
            here = here.arg
            continue
        if not isinstance(here, Call) or fill not in ANNIHILATORS.get(here.op, ()):
            return None
        holding = [a for a in here.args if index in args_of(a)]
        if len(holding) != 1:
            return None
        here = holding[0]
    return fill


def _in_dtype(fill: Value, dtype: DType) -> Value:
    """The fill as a plain number of a dtype; floats are rounded to it."""
    if dtype.is_int:
        return int(fill.real)
    real = fill if dtype.is_complex else fill.real
    with np.errstate(over="ignore"):
        value: Value = numpy_dtype(dtype).type(real).item()
    return value
