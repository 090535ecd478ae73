"""Scalar expressions compiled to NumPy functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial

import numpy as np
import scipy.special

from gpu_exec.kernels.dtype import numpy_dtype
from gpu_exec.team import share
from planner.dtypes import BOOL, INT64, DType, check_int64
from planner.errors import ExecutionError, IntegerOverflowError
from planner.scalar import OPS, Arg, Call, Cast, Const, Expr, LabelValue, args_of, fold, labels_of, walk
from planner.scalar_text import text
from planner.scalar_types import guarded, magnitude, reads_integers

Array = np.ndarray
INTO = {"add": np.add, "sub": np.subtract, "mul": np.multiply}  # operators of the table that are one ufunc each
CHUNK = 1 << 16  # elements per piece of an element-wise pass, so that its temporaries stay in the second-level cache


def int_div(a: Array, b: Array) -> Array:
    """Integer division that truncates toward zero, as SQL does."""
    _refuse_zero(b)
    quotient = np.abs(a) // np.abs(b)
    return np.where((a < 0) != (b < 0), -quotient, quotient)


def int_mod(a: Array, b: Array) -> Array:
    """The remainder with the sign of the dividend, as in SQL."""
    wide = np.asarray(a).dtype == object or np.asarray(b).dtype == object
    return a - b * int_div(a, b) if wide else _fmod(a, b)


def _fmod(a: Array, b: Array) -> Array:
    _refuse_zero(b)
    return np.fmod(a, b)


def to_int(a: Array, dtype: DType) -> Array:
    """Conversion to an integer dtype; floats round half to even, as in SQL, and nothing wraps."""
    a = np.asarray(a)
    low, high = dtype.range
    exact = a if a.dtype.kind in "iubO" else np.rint(a.astype(np.float64))
    inside = (exact >= low) & (exact <= high if exact.dtype.kind != "f" else exact < float(high + 1))
    if not np.all(inside):
        first = a[~np.asarray(inside, bool)].flat[0] if a.ndim else a[()]
        raise IntegerOverflowError(f"a cast to {dtype.name} meets {first}, which {dtype.name} cannot hold")
    return np.asarray(exact).astype(numpy_dtype(dtype))


def erf(a: Array) -> Array:
    """The error function, in float32 or float64."""
    a = np.asarray(a)
    return np.asarray(scipy.special.erf(a if a.dtype in (np.float32, np.float64) else a.astype(np.float32)))


def _refuse_zero(b: Array) -> None:
    if np.any(np.asarray(b) == 0):
        raise ExecutionError("integer division by zero; tensors have no NULL to hold its result")


def to_exact(a: Array, dtype: DType) -> Array:
    """The same, as Python integers; what is int64 may leave it on the way."""
    a = np.asarray(a)
    if a.dtype != object and a.dtype != bool:
        return to_int(a, dtype).astype(object)
    whole = np.asarray(_whole(a), object)
    return whole if dtype == INT64 else to_int(whole, dtype).astype(object)


@partial(np.frompyfunc, nin=1, nout=1)
def _whole(value: float | bool) -> int:
    """A number as a Python integer, rounded half to even."""
    if not math.isfinite(value):
        raise IntegerOverflowError(f"a cast to an integer meets {value}")
    return round(value)


@lru_cache(maxsize=1024)
def compiled(expr: Expr, exact: bool = False) -> Callable[[Sequence[Array], Mapping[str, Array]], Array]:
    """A function (operands, label values) -> value of a typed expression; arguments broadcast.

    exact   integers are Python's: operands and label values come as objects
    """
    constants: list[object] = []

    def rule(node: Expr, new: tuple[str, ...]) -> str:
        match node:
            case Arg(i):
                return f"x[{i}]"
            case LabelValue(name):
                return f"labels[{name!r}]"
            case Const(value):
                constants.append(np.asarray(value, object) if exact and type(value) is int else value)
                return f"c[{len(constants) - 1}]"
            case Cast(arg, dtype):
                return _cast_text(arg, new[0], dtype, constants, exact)
            case Call(op, _):
                return OPS[op].numpy.format(*new)

    source = f"lambda x, labels: {fold(guarded(expr), rule)}"
    scope = {"np": np, "c": constants, "int_div": int_div, "int_mod": int_mod, "erf": erf}
    scope |= {"to_int": to_exact if exact else to_int}
    function: Callable[[Sequence[Array], Mapping[str, Array]], Array] = eval(source, scope)
    return function


def _cast_text(arg: Expr, inner: str, dtype: DType, constants: list[object], exact: bool) -> str:
    if isinstance(arg, Const) and not (exact and dtype.is_int):
        value = to_int(np.asarray(arg.value), dtype)[()] if dtype.is_int else numpy_dtype(dtype).type(arg.value)
        constants.append(value)
        return f"c[{len(constants) - 1}]"
    if dtype == BOOL:
        return f"(np.asarray({inner}) != 0)"
    constants.append(dtype if dtype.is_int else numpy_dtype(dtype))
    at = f"c[{len(constants) - 1}]"
    return f"to_int({inner}, {at})" if dtype.is_int else f"np.asarray({inner}).astype({at})"


def evaluate_condition(expr: Expr, operands: Sequence[Array], labels: Mapping[str, Array]) -> Array:
    """The value of a condition on operands and labels that broadcast; bool, broadcasting as they do."""
    with np.errstate(all="ignore"):
        if may_wrap(expr, operands, labels, 1):
            return exact_values(expr, operands, labels).astype(bool)
        return np.asarray(compiled(expr)(operands, labels))


def present_only(expr: Expr, operands: Sequence[Array], mask: Array | None) -> tuple[Expr, Sequence[Array]]:
    """An expression that refuses no value of an absent cell, and its operands."""
    if mask is None:
        return expr, operands
    safe = guarded(expr, Arg(len(operands)))
    return (expr, operands) if safe == expr else (safe, [*operands, mask])


def evaluate(
    expr: Expr, operands: Sequence[Array], labels: Mapping[str, Array], dtype: DType, shape: tuple[int, ...]
) -> Array:
    """A typed expression over operands and label values that broadcast to `shape`, in `dtype`.

    Integers never wrap: where int64 might, Python's integers compute, and a result that int64 cannot hold is an error.
    """
    with np.errstate(all="ignore"):
        if may_wrap(expr, operands, labels, 1):
            wide = np.broadcast_to(exact_values(expr, operands, labels), shape)
            return to_int64(wide, text(expr)) if dtype == INT64 else wide.astype(numpy_dtype(dtype))
        used = [operands[i] for i in args_of(expr)]
        if used and not labels_of(expr) and math.prod(shape) > CHUNK:
            equal = all(o.shape == shape and o.flags.c_contiguous for o in used)
            if equal or (_cheap(expr) and np.broadcast_shapes(*(o.shape for o in used)) == shape):
                return _in_pieces(expr, operands, dtype, shape, equal)
        return np.broadcast_to(np.asarray(compiled(expr)(operands, labels), numpy_dtype(dtype)), shape)


@lru_cache(maxsize=1024)
def _cheap(expr: Expr) -> bool:
    """Whether computing a part of it again, where an operand is broadcast, costs less than another pass over memory."""

    def rule(node: Expr, new: tuple[bool, ...]) -> bool:
        return isinstance(node, Arg | Const) or (isinstance(node, Call) and node.op in INTO and all(new))

    return fold(expr, rule)


def _in_pieces(expr: Expr, operands: Sequence[Array], dtype: DType, shape: tuple[int, ...], equal: bool) -> Array:
    """One pass over memory, a cache-sized piece at a time: `equal` contiguous operands are cut as if they had one axis,
    others along their leading axes."""
    out = np.empty(shape, numpy_dtype(dtype))
    used, target = args_of(expr), out
    if equal:
        operands, target = [o.reshape(-1) if i in used else o for i, o in enumerate(operands)], out.reshape(-1)
    write = _compiled_into(expr)

    def work(piece: tuple[slice, ...]) -> None:
        write([_cut(o, piece) if i in used else o for i, o in enumerate(operands)], target[piece])

    share(work, list(_pieces(target.shape)))
    return out


def _pieces(shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Cuts of the leading axes into boxes of at most CHUNK cells."""
    axis, below = 0, math.prod(shape[1:])
    while below > CHUNK:
        axis, below = axis + 1, below // shape[axis + 1]
    step = CHUNK // below
    for index in np.ndindex(shape[:axis]):
        for start in range(0, shape[axis], step):
            yield (*(slice(i, i + 1) for i in index), slice(start, start + step))


def _cut(operand: Array, piece: tuple[slice, ...]) -> Array:
    """The part of an operand, which may have an extent of 1 along an axis, that belongs to a piece of the result."""
    return operand[tuple(at if extent > 1 else slice(None) for at, extent in zip(piece, operand.shape, strict=False))]


@lru_cache(maxsize=1024)
def _compiled_into(expr: Expr) -> Callable[[Sequence[Array], Array], None]:
    """A function (operands, out) that writes the value of an expression without labels; where the outermost operator
    is one ufunc, it puts its results where they belong."""
    if isinstance(expr, Call) and expr.op in INTO:
        ufunc, left, right = INTO[expr.op], *map(compiled, expr.args)
        return lambda x, out: ufunc(left(x, {}), right(x, {}), out=out)
    function = compiled(expr)

    def write(x: Sequence[Array], out: Array) -> None:
        out[...] = function(x, {})

    return write


def may_wrap(expr: Expr, operands: Sequence[Array], labels: Mapping[str, Array], terms: int) -> bool:
    """Whether summing `terms` values of an expression might leave int64 anywhere in it."""
    used, casts = args_of(expr), _casts_to_int(expr)
    if not _reads_integers(expr) and not any(operands[i].dtype.kind in "iu" for i in used):
        return False
    bounds = [bound_of(o, casts) if i in used else 0 for i, o in enumerate(operands)]
    bound = magnitude(expr, bounds, {name: largest(values) for name, values in labels.items()})
    return bound * max(terms, 1) >= 2**63


_reads_integers = lru_cache(maxsize=1024)(reads_integers)


@lru_cache(maxsize=1024)
def _casts_to_int(expr: Expr) -> bool:
    return any(isinstance(part, Cast) and part.dtype.is_int for part in walk(expr))


def bound_of(values: Array, casts: bool = True) -> int | float | None:
    """A bound on |value|, a float for floats, which are looked at where the expression casts to integers."""
    match values.dtype.kind:
        case "i" | "u" | "O":
            return largest(values)
        case "b":
            return 1
    if not casts or values.dtype.kind == "c" or not values.size:
        return None
    most = float(max(abs(float(values.max())), abs(float(values.min()))))
    return most if math.isfinite(most) else None


def largest(values: Array) -> int:
    """max |value|; -2^63 has no int64 absolute value, so in Python's integers."""
    if not values.size:
        return 0
    return max(abs(int(values.max())), abs(int(values.min())))


def exact_values(expr: Expr, operands: Sequence[Array], labels: Mapping[str, Array]) -> Array:
    """The values of an integer expression as Python integers."""
    wide = [o.astype(object) if o.dtype.kind in "iu" else o for o in operands]
    try:
        return np.asarray(compiled(expr, exact=True)(wide, {k: v.astype(object) for k, v in labels.items()}), object)
    except (TypeError, AttributeError):  # a float function over integers that may leave int64
        raise IntegerOverflowError(
            f"an integer inside {text(expr)} may leave int64; cast its operands to DOUBLE"
        ) from None


def narrowed(wide: Array) -> Array:
    """Python integers as int64 where all of them fit, else as they are: a partial result may still come back."""
    try:
        return wide.astype(np.int64)
    except OverflowError:
        return wide


def to_int64(wide: Array, what: str) -> Array:
    """Python integers to int64, or the overflow error that names the value."""
    try:
        return wide.astype(np.int64)
    except OverflowError:
        worst = max((int(v) for v in wide.reshape(-1)), key=abs)
        check_int64(worst, f"a value of {what}")
        raise IntegerOverflowError(f"a value of {what} leaves int64") from None
