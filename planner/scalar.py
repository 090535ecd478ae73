"""Scalar expressions: a small frozen tree over operands, label values and constants, and the table of its operators.

Trees compare by value. `scalar_types.typed` inserts every cast, so that evaluators need no rules of their own;
`scalar_text` prints a tree and reads it back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from planner.dtypes import DType
from planner.errors import ShapeError, UnsupportedError

Value = int | float | bool | complex
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
    """A literal. Compares by type and digits, so that 1, 1.0, 1+0j, true and nan are five values."""

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

    rule     how the result dtype follows: arith (integers give int64), order (min and max), same, float, analytic
             (float, and complex too), size and part (real from complex), int, compare, equal, logic, case
    infix    the Python operator that prints it, or "" for a call
    numpy    text of its NumPy evaluation
    sql      its SQL operator or function name; "" when it is expanded first
    expand   its definition in terms of simpler rows, for columns, which are never complex
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


def _itself(x: Expr) -> Expr:
    return x


def _no_part(x: Expr) -> Expr:
    return Call("case", (Const(True), Const(0), x))


OPS: dict[str, ScalarOp] = {
    op.name: op
    for op in (
        #        name    arity rule       infix  NumPy                                            SQL
        ScalarOp("add",     2, "arith",    "+",   "({0} + {1})",                                   "+"),
        ScalarOp("sub",     2, "arith",    "-",   "({0} - {1})",                                   "-"),
        ScalarOp("mul",     2, "arith",    "*",   "({0} * {1})",                                   "*"),
        ScalarOp("div",     2, "analytic", "/",   "np.divide({0}, {1})",                           "/"),
        ScalarOp("intdiv",  2, "int",      "//",  "int_div({0}, {1})",                             "//"),
        ScalarOp("mod",     2, "int",      "%",   "int_mod({0}, {1})",                             "%"),
        ScalarOp("pow",     2, "analytic", "**",  "np.power({0}, {1})",                            "POWER"),
        ScalarOp("neg",     1, "arith",    "",    "(-{0})",                                        "neg"),
        ScalarOp("abs",     1, "size",     "",    "np.abs({0})",                                   "ABS"),
        ScalarOp("sign",    1, "sign",     "",    "np.sign({0})",                                  "SIGN"),
        ScalarOp("min",     2, "order",    "",    "np.minimum({0}, {1})",                          "LEAST"),
        ScalarOp("max",     2, "order",    "",    "np.maximum({0}, {1})",                          "GREATEST"),
        ScalarOp("exp",     1, "analytic", "",    "np.exp({0})",                                   "EXP"),
        ScalarOp("log",     1, "analytic", "",    "np.log({0})",                                   "LN"),
        ScalarOp("sqrt",    1, "analytic", "",    "np.sqrt({0})",                                  "SQRT"),
        ScalarOp("rsqrt",   1, "float",    "",    "(1 / np.sqrt({0}))",                            "", _rsqrt),
        ScalarOp("sin",     1, "analytic", "",    "np.sin({0})",                                   "SIN"),
        ScalarOp("cos",     1, "analytic", "",    "np.cos({0})",                                   "COS"),
        ScalarOp("tanh",    1, "analytic", "",    "np.tanh({0})",                                  "TANH"),
        ScalarOp("erf",     1, "float",    "",    "erf({0})",                                      "ERF"),
        ScalarOp("conj",    1, "same",     "",    "np.conj({0})",                                  "", _itself),
        ScalarOp("real",    1, "part",     "",    "np.real({0})",                                  "", _itself),
        ScalarOp("imag",    1, "part",     "",    "np.imag({0})",                                  "", _no_part),
        ScalarOp("floor",   1, "float",    "",    "np.floor({0})",                                 "FLOOR"),
        ScalarOp("ceil",    1, "float",    "",    "np.ceil({0})",                                  "CEIL"),
        ScalarOp("sigmoid", 1, "float",    "",    "(1 / (1 + np.exp(-{0})))",                      "", _sigmoid),
        ScalarOp("silu",    1, "float",    "",    "({0} / (1 + np.exp(-{0})))",                    "", _silu),
        ScalarOp("lt",      2, "compare",  "<",   "({0} < {1})",                                   "<"),
        ScalarOp("le",      2, "compare",  "<=",  "({0} <= {1})",                                  "<="),
        ScalarOp("gt",      2, "compare",  ">",   "({0} > {1})",                                   ">"),
        ScalarOp("ge",      2, "compare",  ">=",  "({0} >= {1})",                                  ">="),
        ScalarOp("eq",      2, "equal",    "==",  "({0} == {1})",                                  "="),
        ScalarOp("ne",      2, "equal",    "!=",  "({0} != {1})",                                  "<>"),
        ScalarOp("and",     2, "logic",    "and", "({0} & {1})",                                   "AND"),
        ScalarOp("or",      2, "logic",    "or",  "({0} | {1})",                                   "OR"),
        ScalarOp("not",     1, "logic",    "",    "np.logical_not({0})",                           "NOT"),
        ScalarOp("case",    3, "case",     "",    "np.where({0}, {1}, {2})",                       "CASE"),
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


def substitute(
    expr: Expr, args: Mapping[int, Expr] | None = None, labels: Mapping[str, str | Expr] | None = None
) -> Expr:
    """Replace operands by expressions, and label values by other labels or by expressions."""
    args, labels = args or {}, labels or {}

    def rule(node: Expr, new: tuple[Expr, ...]) -> Expr:
        match node:
            case Arg(i):
                return args.get(i, node)
            case LabelValue(name):
                new_value = labels.get(name, name)
                return LabelValue(new_value) if isinstance(new_value, str) else new_value
            case Call(op, _):
                return Call(op, new)
            case Cast(_, dtype):
                return Cast(new[0], dtype)
        return node

    return fold(expr, rule)


def chain(op: str, terms: Sequence[Expr]) -> Expr:
    """terms[0] op terms[1] op ..., for an associative `op`; balanced, so that thousands do not nest thousands deep.

    >>> chain("mul", [Arg(0), Arg(1)])
    Call(op='mul', args=(Arg(index=0), Arg(index=1)))
    """
    level = list(terms)
    while len(level) > 1:
        level = [
            Call(op, (level[i], level[i + 1])) if i + 1 < len(level) else level[i] for i in range(0, len(level), 2)
        ]
    return level[0]


def is_plain_product(expr: Expr, operands: int = 2) -> bool:
    """Whether `expr` is x0 * x1 * ..., every operand once and in order, each converted or not."""
    factors: list[Expr] = []
    stack = [expr]
    while stack:
        here = stack.pop()
        if isinstance(here, Call) and here.op in ("mul", "and"):
            stack.extend(reversed(here.args))
        else:
            factors.append(here.arg if isinstance(here, Cast) else here)
    return factors == [Arg(i) for i in range(operands)]
