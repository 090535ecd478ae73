"""The text of scalar expressions, and back. It is what programs print and what `combine=` takes:

expr := x0 | x1 | ... | label | 2 | 2.5 | 2j | true | inf | nan | f32(expr) | expr + expr | exp(expr)
     | case(c, a, b) | ...
"""

from __future__ import annotations

import ast
import keyword
import math
from functools import reduce

from planner.dtypes import BY_NAME
from planner.errors import ShapeError, UnsupportedError
from planner.scalar import OPS, Arg, Call, Cast, Const, Expr, LabelValue, Value, fold

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
                if isinstance(value, complex):
                    return f"complex({value.real!r}, {value.imag!r})", _ATOM
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
    except SyntaxError as error:
        raise ShapeError(
            f"cannot read the scalar expression {source!r}: {error.msg}"
            + (f", column {error.offset}" if error.offset else "")
        ) from None
    except (RecursionError, MemoryError, ValueError) as error:
        raise ShapeError(f"cannot read the scalar expression {source!r}: {error}") from None
    return _from_ast(tree, source)


_BIN: dict[type, str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "intdiv",
                         ast.Mod: "mod", ast.Pow: "pow"}  # fmt: skip
_CMP: dict[type, str] = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
_NAMES: dict[str, Value] = {"inf": math.inf, "nan": math.nan, "true": True, "false": False, "pi": math.pi}
_RESERVED = (
    frozenset(_NAMES) | frozenset(OPS) | frozenset(BY_NAME) | {"where", "over", "complex"}
)  # where, over: program texts


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
        case ast.Constant(value=bool() | int() | float() | complex() as value):
            return Const(value)
        case ast.Name():
            name = ast.get_source_segment(source.strip(), node) or node.id  # Python folds letters beyond ASCII
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
        case ast.Call(func=ast.Name(id="complex"), args=[real, imag], keywords=[]):
            return _complex(rec(real), rec(imag), source)
        case ast.Call(func=ast.Name(id=name), args=[arg], keywords=[]) if name in BY_NAME:
            return Cast(rec(arg), BY_NAME[name])
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return Call("case" if name == "where" else name, tuple(rec(a) for a in args))
    raise UnsupportedError(f"cannot read {ast.unparse(node)!r} in the scalar expression {source!r}")


def _complex(real: Expr, imag: Expr, source: str) -> Const:
    if not (isinstance(real, Const) and isinstance(imag, Const)) or isinstance(real.value, complex):
        raise UnsupportedError(f"complex() takes two numbers in the scalar expression {source!r}")
    return Const(complex(real.value, float(imag.value.real)))
