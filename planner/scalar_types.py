"""What the type table makes of a scalar expression: casts, branches not to evaluate, integer bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from planner.dtypes import BOOL, COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, INT64, DType, promote, real_dtype
from planner.errors import ShapeError
from planner.scalar import OPS, Arg, Call, Cast, Const, Expr, LabelValue, Value, fold, walk
from planner.scalar_text import text


@dataclass(frozen=True)
class _Typed:
    expr: Expr
    dtype: DType
    weak: bool


def typed(expr: Expr, arg_dtypes: Sequence[DType]) -> tuple[Expr, DType]:
    """`expr` with every conversion written as a Cast, and its dtype.

    >>> from planner.dtypes import BY_NAME
    >>> from planner.scalar_text import parse
    >>> text(typed(parse("x0 * 2 + i"), [BY_NAME["f32"]])[0])
    'x0 * f32(2) + f32(i)'
    """
    return _typed(expr, tuple(arg_dtypes))


@lru_cache(maxsize=4096)
def _typed(expr: Expr, arg_dtypes: tuple[DType, ...]) -> tuple[Expr, DType]:
    def rule(node: Expr, new: tuple[_Typed, ...]) -> _Typed:
        match node:
            case Arg(i):
                if i >= len(arg_dtypes):
                    raise ShapeError(f"the expression reads x{i}, but there are only {len(arg_dtypes)} operands")
                return _Typed(node, arg_dtypes[i], False)
            case LabelValue():
                return _Typed(node, INT64, True)
            case Const(value):
                dtype = constant_dtype(value)
                return _Typed(node, dtype, dtype != BOOL)
            case Cast(_, dtype):
                if new[0].dtype.is_complex and not dtype.is_complex:
                    raise ShapeError(
                        f"{text(new[0].expr)} is complex; take real(), imag() or abs() before {dtype.name}"
                    )
                same = new[0].dtype == dtype and not new[0].weak
                return new[0] if same else _Typed(Cast(new[0].expr, dtype), dtype, False)
            case Call(op, _):
                return _type_call(op, new)

    result = fold(expr, rule)
    return result.expr, result.dtype


def constant_dtype(value: Value) -> DType:
    """The dtype of a literal that meets no tensor."""
    if isinstance(value, bool):
        return BOOL
    return INT64 if isinstance(value, int) else FLOAT64 if isinstance(value, float) else COMPLEX128


def _type_call(op: str, args: tuple[_Typed, ...]) -> _Typed:
    rule = OPS[op].rule
    if rule == "logic" or rule == "case":
        for arg in args if rule == "logic" else args[:1]:
            if arg.dtype != BOOL:
                raise ShapeError(f"{op} wants a condition, got {text(arg.expr)} of dtype {arg.dtype.name}")
    if rule == "logic":
        return _Typed(Call(op, tuple(a.expr for a in args)), BOOL, False)
    values = args[1:] if rule == "case" else args
    dtype, weak = _common(values)
    if dtype.is_complex and rule in ("sign", "order", "float", "int", "compare"):
        raise ShapeError(f"{op} wants real numbers, got {dtype.name}; complex numbers have no order")
    if dtype == BOOL and op == "mul":
        return _Typed(Call("and", tuple(a.expr for a in args)), BOOL, False)
    if dtype.is_exact and rule in ("arith", "size", "sign"):
        dtype = INT64
    if rule in ("float", "analytic") and dtype.is_exact:
        dtype = FLOAT64
    if rule == "int":
        if not dtype.is_int:
            raise ShapeError(f"{op} wants integers, got {dtype.name}")
        dtype = INT64
    cast = tuple(_cast(a, dtype) for a in values)
    if rule == "case":
        return _Typed(Call(op, (args[0].expr, *cast)), dtype, weak)
    if rule in ("compare", "equal"):
        return _Typed(Call(op, cast), BOOL, False)
    return _Typed(Call(op, cast), real_dtype(dtype) if rule in ("size", "part") else dtype, weak)


def _common(args: Sequence[_Typed]) -> tuple[DType, bool]:
    """The dtype in which `args` meet, and whether all of them are weak."""
    strong = [a.dtype for a in args if not a.weak]
    if not strong:
        return promote(*(a.dtype for a in args)), True
    dtype = promote(*strong)
    for a in args:
        if a.weak:
            dtype = _weakly(dtype, a)
    return dtype, False


def _weakly(dtype: DType, arg: _Typed) -> DType:
    """The dtype of a tensor that meets a literal or a label value: its own wherever that can hold the other."""
    if arg.dtype.is_complex:
        return dtype if dtype.is_complex else COMPLEX128 if dtype.is_exact or dtype == FLOAT64 else COMPLEX64
    if arg.dtype.is_float:
        return FLOAT64 if dtype.is_exact else dtype
    if dtype == BOOL:
        return INT64
    if isinstance(arg.expr, Const):
        low, high = dtype.range if dtype.is_int else (0, 0)
        return dtype if not dtype.is_int or low <= int(arg.expr.value.real) <= high else INT64
    return INT64 if dtype.is_int else promote(dtype, FLOAT32) if dtype.is_float else dtype


def _cast(arg: _Typed, dtype: DType) -> Expr:
    return arg.expr if arg.dtype == dtype else Cast(arg.expr, dtype)


def guarded(expr: Expr, where: Expr | None = None) -> Expr:
    """`expr` with integer divisions and casts to integers made harmless wherever their value is not taken.

    That is in the other branch of a `case`, and where the condition `where` is false; evaluators compute both branches
    and absent cells too.

    >>> from planner.scalar_text import parse
    >>> text(guarded(parse("case(x1 != 0, x0 // x1, 0)")))
    'case(x1 != 0, x0 // case(x1 != 0, x1, 1), 0)'
    """
    if not any(_may_refuse(part) for part in walk(expr)):
        return expr
    match expr:
        case Call("case", (test, taken, other)):
            safe = guarded(test, where)
            both = safe if where is None else Call("and", (where, safe))
            neither = Call("not", (safe,)) if where is None else Call("and", (where, Call("not", (safe,))))
            return Call("case", (safe, guarded(taken, both), guarded(other, neither)))
        case Call(op, args):
            new = [guarded(arg, where) for arg in args]
            if _may_refuse(expr) and where is not None:
                new[1] = Call("case", (where, new[1], Const(1)))
            return Call(op, tuple(new))
        case Cast(arg, dtype):
            inner = guarded(arg, where)
            return Cast(inner if where is None or not dtype.is_int else Call("case", (where, inner, Const(0))), dtype)
    return expr


def _may_refuse(expr: Expr) -> bool:
    """Whether computing a value of `expr` may raise."""
    if isinstance(expr, Cast):
        return expr.dtype.is_int and not isinstance(expr.arg, Const)
    return isinstance(expr, Call) and expr.op in ("intdiv", "mod")


Bound = int | float | None


def magnitude(expr: Expr, args: Sequence[Bound], labels: Mapping[str, int]) -> int:
    """The largest bound on |value| over all integer sub-expressions, from bounds on operands and label values.

    Decides beforehand whether int64 arithmetic can wrap. Bounds on integers are ints, those on floats are floats, and
    None is unknown, as of a float function.
    """
    worst = 0

    def rule(node: Expr, new: tuple[Bound, ...]) -> Bound:
        nonlocal worst
        bound = _magnitude(node, new, args, labels)
        worst = max(worst, bound) if isinstance(bound, int) else worst
        return bound

    fold(expr, rule)
    return worst


def reads_integers(expr: Expr) -> bool:
    """Whether integers are computed with that no operand brings: label values, literals, casts."""
    return any(
        isinstance(e, LabelValue)
        or (isinstance(e, Const) and type(e.value) is int)
        or (isinstance(e, Cast) and e.dtype.is_int)
        for e in walk(expr)
    )


def _magnitude(node: Expr, new: tuple[Bound, ...], args: Sequence[Bound], labels: Mapping[str, int]) -> Bound:
    match node:
        case Arg(i):
            return args[i]
        case LabelValue(name):
            return labels[name]
        case Const(value):
            return None if isinstance(value, complex) or not math.isfinite(value) else abs(value)
        case Cast(_, dtype):
            return _cast_bound(new[0], dtype)
    assert isinstance(node, Call)
    known = [b for b in (new[1:] if node.op == "case" else new) if b is not None]
    if OPS[node.op].rule in ("compare", "equal", "logic"):
        return 1
    if len(known) < (2 if node.op == "case" else len(new)):
        return None
    match node.op:
        case "add" | "sub":
            return known[0] + known[1]
        case "mul":
            return known[0] * known[1]
        case "neg" | "abs" | "sign" | "intdiv":
            return known[0]
        case "mod" | "min" | "max" | "case":
            return max(known)
    return None


def _cast_bound(bound: Bound, dtype: DType) -> Bound:
    """A cast checks that its value fits, so that only what is done with it afterwards may wrap."""
    if dtype.is_complex:
        return None
    if not dtype.is_exact:
        return None if bound is None or bound >= 2**1000 else float(bound)
    most = dtype.range[1] if dtype.is_int else 1
    return most if bound is None or bound >= most else math.ceil(bound)
