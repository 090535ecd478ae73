"""Scalar expressions: a small frozen tree over operands, label values and constants, and the table of its operators.

Grammar, also the text that programs print and `combine=` takes:

    expr := x0 | x1 | ... | label | 2 | 2.5 | true | inf | nan | f32(expr) | expr + expr | exp(expr) | case(c, a, b) | ...

Trees compare by value. `typed` inserts every cast, so that evaluators need no rules of their own.
"""

from __future__ import annotations

import ast
import keyword
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeVar

from planner.dtypes import BOOL, BY_NAME, FLOAT64, INT64, DType, promote
from planner.errors import ShapeError, UnsupportedError

Value = int | float | bool
T = TypeVar("T")


@dataclass(frozen=True)
class Arg:
    """The value of operand `index`, printed `x0`, `x1`, ..."""

    index: int


@dataclass(frozen=True)
class LabelValue:
    """The coordinate along a label, an integer from 0."""

    label: str


@dataclass(frozen=True, eq=False)
class Const:
    """A literal. Compares by type and digits, so that 1, 1.0, true and nan are four values."""

    value: Value

    def _key(self) -> tuple[str, str]:
        return type(self.value).__name__, repr(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Const) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


@dataclass(frozen=True)
class Call:
    """An operator of the table applied to its arguments."""

    op: str
    args: tuple[Expr, ...]

    def __post_init__(self) -> None:
        if self.op not in OPS:
            raise UnsupportedError(f"scalar function {self.op!r} is not known; known are {', '.join(sorted(OPS))}")
        if len(self.args) != OPS[self.op].arity:
            raise ShapeError(f"scalar function {self.op} takes {OPS[self.op].arity} arguments, got {len(self.args)}")


@dataclass(frozen=True)
class Cast:
    """`arg` converted to a dtype."""

    arg: Expr
    dtype: DType


Expr = Arg | LabelValue | Const | Call | Cast


@dataclass(frozen=True)
class ScalarOp:
    """One row of the operator table.

    rule     how the result dtype follows: same, float, int, compare, logic, case
    infix    the Python operator that prints it, or "" for a call
    numpy    text of its NumPy evaluation
    sql      its SQL operator or function name; "" when it is expanded first
    expand   its definition in terms of simpler rows
    """

    name: str
    arity: int
    rule: str
    infix: str
    numpy: str
    sql: str
    expand: Callable[..., Expr] | None = None


def _sigmoid(x: Expr) -> Expr:
    return Call("div", (Const(1.0), Call("add", (Const(1.0), Call("exp", (Call("neg", (x,)),))))))


def _silu(x: Expr) -> Expr:
    return Call("div", (x, Call("add", (Const(1.0), Call("exp", (Call("neg", (x,)),))))))


def _rsqrt(x: Expr) -> Expr:
    return Call("div", (Const(1.0), Call("sqrt", (x,))))


OPS: dict[str, ScalarOp] = {
    op.name: op
    for op in (
        #        name       arity rule       infix  NumPy                                            SQL
        ScalarOp("add",      2, "same",    "+",   "({0} + {1})",                                   "+"),
        ScalarOp("sub",      2, "same",    "-",   "({0} - {1})",                                   "-"),
        ScalarOp("mul",      2, "same",    "*",   "({0} * {1})",                                   "*"),
        ScalarOp("div",      2, "float",   "/",   "np.divide({0}, {1})",                           "/"),
        ScalarOp("intdiv",   2, "int",     "//",  "int_div({0}, {1})",                             "//"),
        ScalarOp("mod",      2, "int",     "%",   "int_mod({0}, {1})",                             "%"),
        ScalarOp("pow",      2, "float",   "**",  "np.power({0}, {1})",                            "POWER"),
        ScalarOp("neg",      1, "same",    "",    "(-{0})",                                        "neg"),
        ScalarOp("abs",      1, "same",    "",    "np.abs({0})",                                   "ABS"),
        ScalarOp("sign",     1, "same",    "",    "np.sign({0})",                                  "SIGN"),
        ScalarOp("min",      2, "same",    "",    "np.minimum({0}, {1})",                          "LEAST"),
        ScalarOp("max",      2, "same",    "",    "np.maximum({0}, {1})",                          "GREATEST"),
        ScalarOp("exp",      1, "float",   "",    "np.exp({0})",                                   "EXP"),
        ScalarOp("log",      1, "float",   "",    "np.log({0})",                                   "LN"),
        ScalarOp("sqrt",     1, "float",   "",    "np.sqrt({0})",                                  "SQRT"),
        ScalarOp("rsqrt",    1, "float",   "",    "(1 / np.sqrt({0}))",                            "", _rsqrt),
        ScalarOp("sin",      1, "float",   "",    "np.sin({0})",                                   "SIN"),
        ScalarOp("cos",      1, "float",   "",    "np.cos({0})",                                   "COS"),
        ScalarOp("tanh",     1, "float",   "",    "np.tanh({0})",                                  "TANH"),
        ScalarOp("floor",    1, "float",   "",    "np.floor({0})",                                 "FLOOR"),
        ScalarOp("ceil",     1, "float",   "",    "np.ceil({0})",                                  "CEIL"),
        ScalarOp("sigmoid",  1, "float",   "",    "(1 / (1 + np.exp(-{0})))",                      "", _sigmoid),
        ScalarOp("silu",     1, "float",   "",    "({0} / (1 + np.exp(-{0})))",                    "", _silu),
        ScalarOp("lt",       2, "compare", "<",   "({0} < {1})",                                   "<"),
        ScalarOp("le",       2, "compare", "<=",  "({0} <= {1})",                                  "<="),
        ScalarOp("gt",       2, "compare", ">",   "({0} > {1})",                                   ">"),
        ScalarOp("ge",       2, "compare", ">=",  "({0} >= {1})",                                  ">="),
        ScalarOp("eq",       2, "compare", "==",  "({0} == {1})",                                  "="),
        ScalarOp("ne",       2, "compare", "!=",  "({0} != {1})",                                  "<>"),
        ScalarOp("and",      2, "logic",   "and", "({0} & {1})",                                   "AND"),
        ScalarOp("or",       2, "logic",   "or",  "({0} | {1})",                                   "OR"),
        ScalarOp("not",      1, "logic",   "",    "np.logical_not({0})",                           "NOT"),
        ScalarOp("case",     3, "case",    "",    "np.where({0}, {1}, {2})",                       "CASE"),
    )
}  # fmt: skip


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct sub-expressions of `expr`."""
    match expr:
        case Call(_, args):
            return args
        case Cast(arg, _):
            return (arg,)
    return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """Every sub-expression of `expr`, itself included, in no particular order."""
    stack: list[Expr] = [expr]
    while stack:
        here = stack.pop()
        yield here
        stack.extend(children(here))


def args_of(expr: Expr) -> frozenset[int]:
    """The operands that `expr` reads."""
    return frozenset(e.index for e in walk(expr) if isinstance(e, Arg))


def labels_of(expr: Expr) -> frozenset[str]:
    """The labels whose value `expr` reads."""
    return frozenset(e.label for e in walk(expr) if isinstance(e, LabelValue))


def fold(expr: Expr, combine: Callable[[Expr, tuple[T, ...]], T]) -> T:
    """Compute bottom-up: `combine(node, results of its children)`. Iterative, and once per distinct object."""
    done: dict[int, T] = {}
    stack: list[tuple[Expr, bool]] = [(expr, False)]
    while stack:
        here, ready = stack.pop()
        if id(here) in done:
            continue
        if ready:
            done[id(here)] = combine(here, tuple(done[id(c)] for c in children(here)))
        else:
            stack.append((here, True))
            stack.extend((c, False) for c in children(here))
    return done[id(expr)]


def substitute(expr: Expr, args: Mapping[int, Expr] | None = None, labels: Mapping[str, str] | None = None) -> Expr:
    """Replace operands by expressions and rename labels."""
    args, labels = args or {}, labels or {}

    def rule(node: Expr, new: tuple[Expr, ...]) -> Expr:
        match node:
            case Arg(i):
                return args.get(i, node)
            case LabelValue(name):
                return LabelValue(labels.get(name, name))
            case Call(op, _):
                return Call(op, new)
            case Cast(_, dtype):
                return Cast(new[0], dtype)
        return node

    return fold(expr, rule)


# ---------------------------------------------------------------------------------------------------------- types


@dataclass(frozen=True)
class _Typed:
    expr: Expr
    dtype: DType
    weak: bool


def typed(expr: Expr, arg_dtypes: Sequence[DType]) -> tuple[Expr, DType]:
    """`expr` with every conversion written as a Cast, and its dtype.

    >>> text(typed(parse("x0 * 2 + i"), [BY_NAME["f32"]])[0])
    'x0 * f32(2) + f32(i)'
    """

    def rule(node: Expr, new: tuple[_Typed, ...]) -> _Typed:
        match node:
            case Arg(i):
                if i >= len(arg_dtypes):
                    raise ShapeError(f"the expression reads x{i}, but there are only {len(arg_dtypes)} operands")
                return _Typed(node, arg_dtypes[i], False)
            case LabelValue():
                return _Typed(node, INT64, True)
            case Const(value):
                dtype = BOOL if isinstance(value, bool) else INT64 if isinstance(value, int) else FLOAT64
                return _Typed(node, dtype, dtype != BOOL)
            case Cast(_, dtype):
                return _Typed(Cast(new[0].expr, dtype), dtype, False)
            case Call(op, _):
                return _type_call(op, new)

    result = fold(expr, rule)
    return result.expr, result.dtype


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
    if dtype == BOOL and op == "mul":
        return _Typed(Call("and", tuple(a.expr for a in args)), BOOL, False)
    if dtype == BOOL and op in ("add", "sub", "neg", "abs", "sign"):
        dtype = INT64
    if rule == "float" and not dtype.is_float:
        dtype = FLOAT64
    if rule == "int" and dtype != INT64:
        raise ShapeError(f"{op} wants integers, got {dtype.name}")
    cast = tuple(_cast(a, dtype) for a in values)
    if rule == "case":
        return _Typed(Call(op, (args[0].expr, *cast)), dtype, weak)
    return _Typed(Call(op, cast), BOOL if rule == "compare" else dtype, weak and rule != "compare")


def _common(args: Sequence[_Typed]) -> tuple[DType, bool]:
    """The dtype in which `args` meet, and whether all of them are weak."""
    strong = [a.dtype for a in args if not a.weak]
    if not strong:
        return promote(*(a.dtype for a in args)), True
    dtype = promote(*strong)
    for a in args:
        if a.weak and a.dtype.rank > dtype.rank and not (a.dtype.is_float and dtype.is_float):
            dtype = a.dtype
    return dtype, False


def _cast(arg: _Typed, dtype: DType) -> Expr:
    return arg.expr if arg.dtype == dtype else Cast(arg.expr, dtype)


def guarded(expr: Expr, where: Expr | None = None) -> Expr:
    """`expr` with integer divisions and casts to int64 made harmless wherever their value is not taken.

    That is in the other branch of a `case`, and where the condition `where` is false; evaluators compute both branches
    and absent cells too.

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
            return Cast(inner if where is None or dtype != INT64 else Call("case", (where, inner, Const(0))), dtype)
    return expr


def _may_refuse(expr: Expr) -> bool:
    """Whether computing a value of `expr` may raise."""
    if isinstance(expr, Cast):
        return expr.dtype == INT64 and not isinstance(expr.arg, Const)
    return isinstance(expr, Call) and expr.op in ("intdiv", "mod")


def magnitude(expr: Expr, args: Sequence[int], labels: Mapping[str, int]) -> int:
    """The largest bound on |value| over all integer sub-expressions, from bounds on operands and label values.

    Decides beforehand whether int64 arithmetic can wrap. A float function has no bound and counts as 0.
    """
    worst = 0

    def rule(node: Expr, new: tuple[int | None, ...]) -> int | None:
        nonlocal worst
        bound = _magnitude(node, new, args, labels)
        worst = max(worst, bound or 0)
        return bound

    fold(expr, rule)
    return worst


def _magnitude(node: Expr, new: tuple[int | None, ...], args: Sequence[int], labels: Mapping[str, int]) -> int | None:
    match node:
        case Arg(i):
            return args[i]
        case LabelValue(name):
            return labels[name]
        case Const(value):
            return math.ceil(abs(value)) if math.isfinite(value) else None
        case Cast():
            return new[0]
    assert isinstance(node, Call)
    known = [b for b in (new[1:] if node.op == "case" else new) if b is not None]
    if OPS[node.op].rule in ("compare", "logic"):
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


# ------------------------------------------------------------------------------------------------------ text and back

_PRECEDENCE = {"or": 1, "and": 2, "<": 4, "<=": 4, ">": 4, ">=": 4, "==": 4, "!=": 4, "+": 6, "-": 6, "*": 7, "/": 7,
               "//": 7, "%": 7, "**": 9}  # fmt: skip
_NOT, _UNARY, _ATOM = 3, 8, 10


def text(expr: Expr) -> str:
    """The text of `expr`; `parse` reads it back.

    >>> text(Call("mul", (Call("add", (Arg(0), Const(1))), Call("exp", (LabelValue("t"),)))))
    '(x0 + 1) * exp(t)'
    """

    def bracket(part: tuple[str, int], least: int) -> str:
        return part[0] if part[1] >= least else f"({part[0]})"

    def rule(node: Expr, new: tuple[tuple[str, int], ...]) -> tuple[str, int]:
        match node:
            case Arg(i):
                return f"x{i}", _ATOM
            case LabelValue(name):
                return (name if _is_plain(name) else f"label({name!r})"), _ATOM
            case Const(value):
                word = str(value).lower() if isinstance(value, bool) else repr(value)
                return word, _UNARY if word.startswith("-") else _ATOM
            case Cast(_, dtype):
                return f"{dtype.short}({new[0][0]})", _ATOM
            case Call(op, _):
                infix = OPS[op].infix
                if not infix:  # Python's `not` binds less than a comparison, with brackets after it or without
                    return f"{op}({', '.join(part for part, _ in new)})", _NOT if op == "not" else _ATOM
                p = _PRECEDENCE[infix]
                left = p + 1 if infix == "**" or p == 4 else p
                return f"{bracket(new[0], left)} {infix} {bracket(new[1], p + 1)}", p

    return fold(expr, rule)[0]


def parse(source: str) -> Expr:
    """Read the text of a scalar expression.

    >>> parse("case(s <= t, x0, -inf)").op
    'case'
    """
    try:
        tree = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
        raise ShapeError(f"cannot read the scalar expression {source!r}: {error}") from None
    return _from_ast(tree, source)


_BIN: dict[type, str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "intdiv",
                         ast.Mod: "mod", ast.Pow: "pow"}  # fmt: skip
_CMP: dict[type, str] = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
_NAMES: dict[str, Value] = {"inf": math.inf, "nan": math.nan, "true": True, "false": False, "pi": math.pi}
_RESERVED = frozenset(_NAMES) | frozenset(OPS) | frozenset(BY_NAME) | {"where", "over"}  # the last two: program texts


def _is_plain(name: str) -> bool:
    """Whether a label reads back as itself; Python folds identifiers beyond ASCII."""
    word = name.isascii() and name.isidentifier() and not keyword.iskeyword(name)
    return word and name not in _RESERVED and not _is_arg(name)


def _is_arg(name: str) -> bool:
    return name[:1] == "x" and name[1:].isdecimal() and name[1:].isascii()


def _from_ast(node: ast.expr, source: str) -> Expr:
    def rec(child: ast.expr) -> Expr:
        return _from_ast(child, source)

    match node:
        case ast.Constant(value=bool() | int() | float() as value):
            return Const(value)
        case ast.Name(id=name):
            return Const(_NAMES[name]) if name in _NAMES else Arg(int(name[1:])) if _is_arg(name) else LabelValue(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = rec(operand)
            return Const(-inner.value) if isinstance(inner, Const) else Call("neg", (inner,))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return Call("not", (rec(operand),))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BIN:
            return Call(_BIN[type(op)], (rec(left), rec(right)))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _CMP:
            return Call(_CMP[type(op)], (rec(left), rec(right)))
        case ast.BoolOp(op=op, values=values):
            name = "and" if isinstance(op, ast.And) else "or"
            return reduce(lambda left, right: Call(name, (left, right)), map(rec, values))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return Call("case", (rec(test), rec(body), rec(orelse)))
        case ast.Call(func=ast.Name(id="label"), args=[ast.Constant(value=str() as name)], keywords=[]):
            return LabelValue(name)
        case ast.Call(func=ast.Name(id=name), args=[arg], keywords=[]) if name in BY_NAME:
            return Cast(rec(arg), BY_NAME[name])
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return Call("case" if name == "where" else name, tuple(rec(a) for a in args))
    raise UnsupportedError(f"cannot read {ast.unparse(node)!r} in the scalar expression {source!r}")
