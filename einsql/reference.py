"""The reference interpreter of the einsum graph: plain, slow, obviously right.

It evaluates one node after another over the full label space, floats in float64 and integers as Python integers, and
carries beside every float a bound on what rounding in the node's own dtype may add: law 1 of the design. It shares no
kernel with the engines that it judges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import ml_dtypes
import numpy as np

from gpu_exec.kernels.dtype import numpy_dtype
from planner.dtypes import BOOL, FLOAT64, INT64, DType, check_int64, identity
from planner.einsum import Einsum, Fill, Filter, Input, Map, Tensor
from planner.errors import ExecutionError, IntegerOverflowError, PlanError
from planner.node import postorder, rewrite
from planner.scalar import OPS, Arg, Call, Cast, Const, Expr, LabelValue, fold, is_plain_product
from planner.scalar_types import guarded
from planner.subscripts import Labels, Subscripts

Array = np.ndarray
MOST_CELLS = 10**7


@dataclass(frozen=True)
class Total:
    """A whole tensor: values (object for integers, float64, complex128, bool), which cells are present, and a rounding
    bound."""

    values: Array
    present: Array
    bound: Array
    eps: float = 0.0  # of the dtype that the values have in the engines

    def numpy(self, dtype: DType) -> Array:
        """The values in their dtype, zero where absent; refuses integers that int64 cannot hold."""
        values = np.asarray(np.where(self.present, self.values, False if dtype == BOOL else 0))
        if dtype == INT64:
            for value in values.reshape(-1):
                check_int64(int(value), "a result")
        with np.errstate(over="ignore"):
            return values.astype(numpy_dtype(dtype))


def evaluate(graph: Tensor, inputs: Mapping[str, tuple[Array, Array]]) -> Total:
    """The value of `graph`, from (values, present) of every input by name.

    Raises   PlanError for a node with more than 10^7 cells in its label space
    """
    done: dict[Tensor, Total] = {}
    for node in postorder(rewrite(graph, _left_to_right)):
        total = _evaluate(node, [done[arg] for arg in node.args], inputs)
        done[node] = replace(total, eps=node.type.dtype.eps)
    return done[node]


def _left_to_right(node: Tensor) -> Tensor:
    """A sum of products whose label space is too large, two operands at a time: a label goes with its last operand."""
    if not isinstance(node, Einsum) or node.cells <= MOST_CELLS or node.reduce != "sum" or node.where is not None:
        return node
    if not is_plain_product(node.combine, len(node.operands)) or len(node.operands) < 3:
        return node
    sides, output = node.subscripts.inputs, node.subscripts.output
    total, labels = node.operands[0], sides[0]
    for i, operand in enumerate(node.operands[1:], 1):
        later = {label for side in sides[i + 1 :] for label in side}.union(output)
        both = dict.fromkeys([*labels, *sides[i]])
        kept = output if i == len(sides) - 1 else tuple(label for label in both if label in later)
        product = Call("mul", (Arg(0), Arg(1)))
        total, labels = Einsum((total, operand), Subscripts((labels, sides[i]), kept), product, "sum"), kept
    return total


def _evaluate(node: Tensor, args: Sequence[Total], inputs: Mapping[str, tuple[Array, Array]]) -> Total:
    match node:
        case Input():
            values, present = inputs[node.name]
            return Total(_widen(values), present, np.zeros(values.shape))
        case Einsum():
            return _einsum(node, args)
        case Map(_, expr):
            grid = _grid(node.type.labels, node.type.extents)
            return _masked(*_scalar(expr, args, grid, args[0].present), args[0].present)
        case Filter(_, where):
            kept, _ = _scalar(where, args, _grid(node.type.labels, node.type.extents), args[0].present)
            return Total(args[0].values, args[0].present & np.broadcast_to(kept, args[0].present.shape), args[0].bound)
        case Fill(_, value):
            present = args[0].present
            return Total(
                np.where(present, args[0].values, value), np.ones_like(present), np.where(present, args[0].bound, 0)
            )
    raise AssertionError(node)


def _widen(values: Array) -> Array:
    match values.dtype.kind:
        case "b":
            return values
        case "i" | "u":
            return values.astype(object)
        case "c":
            return values.astype(np.complex128)
    return values.astype(np.float64)


def _grid(labels: Labels, extents: Sequence[int]) -> dict[str, Array]:
    """The coordinate along each label, broadcasting over the others."""
    rank = len(labels)
    return {
        label: np.arange(n).astype(object).reshape([n if i == axis else 1 for i in range(rank)])
        for axis, (label, n) in enumerate(zip(labels, extents, strict=True))
    }


def _masked(values: Array, bound: Array, present: Array) -> Total:
    return Total(np.broadcast_to(values, present.shape), present, np.broadcast_to(bound, present.shape))


def _einsum(node: Einsum, args: Sequence[Total]) -> Total:
    labels = node.subscripts.labels
    if node.cells > MOST_CELLS:
        raise PlanError(
            f"the reference interpreter refuses {node.name or node.subscripts}"
            f": {node.cells} cells in its label space, at most {MOST_CELLS}"
            "\n  scale the inputs down, or use engine='host'"
        )
    shape = tuple(node.extents[label] for label in labels)
    spread = [_spread(arg, own, labels) for arg, own in zip(args, node.subscripts.inputs, strict=True)]
    grid = _grid(labels, shape)
    present = np.ones(shape, bool)
    for arg in spread:
        present = present & arg.present
    if node.where is not None:
        present = present & np.broadcast_to(_scalar(node.where, spread, grid, present)[0], shape)
    values, bound = (np.broadcast_to(a, shape) for a in _scalar(node.combine, spread, grid, present))
    if node.reduce is None:
        return Total(values, present, bound)
    return _reduce(node, values, bound, present)


def _spread(arg: Total, own: Labels, labels: Labels) -> Total:
    """Read `arg` over the label space: repeated labels along the diagonal, missing ones with extent 1."""
    distinct = list(dict.fromkeys(own))

    def rule(a: Array) -> Array:
        for label in distinct:
            while own_now.count(label) > 1:
                first = own_now.index(label)
                second = own_now.index(label, first + 1)
                a = np.moveaxis(np.diagonal(a, axis1=first, axis2=second), -1, first)
                del own_now[second]
        order = [own_now.index(label) for label in labels if label in own_now]
        sizes = iter(a.transpose(order).shape)
        return a.transpose(order).reshape([next(sizes) if label in own_now else 1 for label in labels])

    parts = []
    for a in (arg.values, arg.present, arg.bound):
        own_now = list(own)
        parts.append(rule(a))
    return Total(parts[0], parts[1], parts[2], arg.eps)


def _reduce(node: Einsum, values: Array, bound: Array, present: Array) -> Total:
    axes = tuple(range(len(node.subscripts.output), values.ndim))
    dtype = node.type.dtype
    start = identity(str(node.reduce), dtype)
    if dtype.is_int and node.reduce in ("max", "min"):  # one that no Python integer reaches
        start = -(1 << 256) if node.reduce == "max" else 1 << 256
    ufunc = {
        "sum": np.add,
        "prod": np.multiply,
        "max": np.maximum,
        "min": np.minimum,
        "any": np.logical_or,
        "all": np.logical_and,
        "fsum": np.add,
    }[str(node.reduce)]
    if node.combined_dtype == BOOL and dtype == INT64:
        values = values.astype(object)
    filled = np.where(present, values, start)
    with np.errstate(all="ignore"):
        out = (
            _fsum(filled, axes)
            if node.reduce == "fsum"
            else _kept(ufunc.reduce(filled, axis=axes, initial=start), filled)
        )
        errors = np.where(present, bound, 0)
        if node.reduce in ("max", "min"):
            error = errors.max(axis=axes, initial=0)
        elif node.reduce == "fsum":
            error = errors.sum(axis=axes) + dtype.eps * np.abs(out)
        elif not dtype.is_exact and node.reduce == "sum":
            terms = math.prod(values.shape[axis] for axis in axes)
            error = errors.sum(axis=axes) + terms * dtype.eps * np.abs(np.where(present, values, 0)).sum(axis=axes)
        elif not dtype.is_exact:
            relative = np.where(filled != 0, errors / np.abs(np.where(filled != 0, filled, 1)), 0)
            error = np.abs(out) * (relative.sum(axis=axes) + math.prod(values.shape) * dtype.eps)
            least = float(ml_dtypes.finfo(numpy_dtype(dtype)).smallest_normal)
            error = error + np.where(np.abs(out) < least, least, 0)  # below it, digits are lost
        else:
            error = np.zeros(out.shape)
    return Total(out, np.asarray(present.any(axis=axes)), np.nan_to_num(np.asarray(error, float)))


def _kept(out: Array, values: Array) -> Array:
    """A result as an array; Python integers stay what they are where NumPy gives a bare one."""
    return np.asarray(out, object if values.dtype == object and not isinstance(out, bool | np.bool_) else None)


def _fsum(values: Array, axes: tuple[int, ...]) -> Array:
    """Exactly rounded sums over the last axes."""
    kept = values.shape[: values.ndim - len(axes)]
    rows = values.reshape(math.prod(kept), math.prod(values.shape[len(kept) :]))
    sums = [math.fsum(row) if np.isfinite(row).all() else float(row.sum()) for row in rows.astype(float)]
    return np.array(sums, float).reshape(kept)


# ------------------------------------------------------------------------------------------------- scalar expressions

Rounded = tuple[Array, Array, float]  # value, rounding bound, eps of its dtype


def _inexact(a: Array) -> Array:
    return np.asarray(a, complex if a.dtype.kind == "c" else float)


def _alike(a: Array, b: Array) -> tuple[Array, Array]:
    """Both branches of a case; a float beside a Python integer would make an array of objects."""
    kinds = {a.dtype.kind, b.dtype.kind}
    kind = complex if "c" in kinds else float
    return (np.asarray(a, kind), np.asarray(b, kind)) if kinds & {"f", "c"} else (a, b)


FUNCTIONS: dict[str, Callable[..., Array]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: np.true_divide(_inexact(a), _inexact(b)),
    "pow": lambda a, b: np.power(_inexact(a), _inexact(b)),
    "neg": lambda a: -a,
    "abs": np.abs,
    "sign": lambda a: (
        np.asarray(np.frompyfunc(lambda v: (v > 0) - (v < 0), 1, 1)(a), object) if a.dtype == object else np.sign(a)
    ),
    "min": np.minimum,
    "max": np.maximum,
    "conj": np.conj,
    "real": np.real,
    "imag": lambda a: a.imag if a.dtype.kind == "c" else np.zeros_like(a),
    "lt": lambda a, b: (a < b).astype(bool),
    "le": lambda a, b: (a <= b).astype(bool),
    "gt": lambda a, b: (a > b).astype(bool),
    "ge": lambda a, b: (a >= b).astype(bool),
    "eq": lambda a, b: (a == b).astype(bool),
    "ne": lambda a, b: (a != b).astype(bool),
    "and": np.logical_and,
    "or": np.logical_or,
    "not": np.logical_not,
    "case": lambda c, a, b: np.where(c, *_alike(a, b)),
}


def _function(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda a: function(_inexact(a))


FUNCTIONS |= {
    name: _function(getattr(np, name)) for name in ("exp", "log", "sqrt", "sin", "cos", "tanh", "floor", "ceil")
}
FUNCTIONS |= {
    "erf": _function(lambda a: np.asarray(np.frompyfunc(math.erf, 1, 1)(a), float)),
    "rsqrt": _function(lambda a: 1 / np.sqrt(a)),
    "sigmoid": _function(lambda a: 1 / (1 + np.exp(-a))),
    "silu": _function(lambda a: a / (1 + np.exp(-a))),
}


def _truncated(a: Array, b: Array, remainder: bool) -> Array:
    def one(x: int, y: int) -> int:
        if y == 0:
            raise ExecutionError("integer division by zero; tensors have no NULL to hold its result")
        quotient = abs(x) // abs(y) * (-1 if (x < 0) != (y < 0) else 1)
        return x - quotient * y if remainder else quotient

    return np.asarray(np.frompyfunc(one, 2, 1)(a, b), object)


FUNCTIONS |= {"intdiv": lambda a, b: _truncated(a, b, False), "mod": lambda a, b: _truncated(a, b, True)}
assert FUNCTIONS.keys() == OPS.keys()


def _scalar(expr: Expr, args: Sequence[Total], labels: Mapping[str, Array], present: Array) -> tuple[Array, Array]:
    """A typed expression and its rounding bound: each operation rounds once, in the dtype of its operands, and passes
    on their bounds.

    What is not `present`, and the branch of a case that is not taken, raise nothing.
    """
    args = [*args, Total(present, present, np.zeros(()))]
    expr = guarded(expr, Arg(len(args) - 1))

    def rule(node: Expr, new: tuple[Rounded, ...]) -> Rounded:
        match node:
            case Arg(i):
                return args[i].values, args[i].bound, args[i].eps
            case LabelValue(name):
                return labels[name], np.zeros(1), 0.0
            case Const(value):
                whole = type(value) is int
                return np.asarray(value, object if whole else None), np.zeros(()), 0.0 if whole else FLOAT64.eps
            case Cast(_, dtype):
                inner, bound, _ = new[0]
                return _cast(inner, dtype), bound + dtype.eps * _size(inner), dtype.eps
            case Call(op, _):
                return _call(op, new)

    with np.errstate(all="ignore"):
        return fold(expr, rule)[:2]


def _cast(value: Array, dtype: DType) -> Array:
    if dtype == BOOL:
        return np.asarray(value != 0, bool)
    if dtype.is_int:
        whole = np.frompyfunc(lambda v: _to_int(v, dtype), 1, 1)
        return np.asarray(whole(np.rint(value) if value.dtype.kind == "f" else value), object)
    rounded = np.asarray(value, complex if dtype.is_complex else float).astype(numpy_dtype(dtype))
    return rounded.astype(complex if dtype.is_complex else float)


def _to_int(value: float, dtype: DType) -> int:
    low, high = dtype.range
    if not math.isfinite(value) or not low <= int(value) <= high:
        raise IntegerOverflowError(f"a cast to {dtype.name} meets {value}, which {dtype.name} cannot hold")
    return int(value)


def _size(value: Array) -> Array:
    if value.dtype.kind == "c":
        return np.abs(value)
    return np.zeros(value.shape) if value.dtype == bool else np.abs(np.asarray(value, float))


def _call(op: str, new: tuple[Rounded, ...]) -> Rounded:
    function, values = FUNCTIONS[op], [v for v, _, _ in new]
    eps = max(e for _, _, e in new)
    out = np.asarray(function(*values))
    if out.dtype.kind in "iu":  # of Python integers without an axis
        out = out.astype(object)
    if op == "case":
        return out, np.where(values[0], new[1][1], new[2][1]), eps
    if out.dtype.kind not in "fc":
        return out, np.zeros(out.shape), 0.0
    bound = eps * np.abs(out)
    for i, (value, error, _) in enumerate(new):
        if np.any(error):
            ways = (1, -1, 1j, -1j) if value.dtype.kind == "c" else (1, -1)
            moved = [function(*values[:i], value + way * error, *values[i + 1 :]) for way in ways]
            off = reduce(np.fmax, (np.abs(_inexact(np.asarray(m)) - out) for m in moved))
            bound = bound + np.where(np.isfinite(off), off, 0)
    return out, np.where(np.isfinite(bound), bound, 0), eps
