"""Scalar expressions and aggregates over plain columns as SQL, with the values that NumPy and IEEE give.

DuckDB differs in places, which are mended here: its literals are DECIMAL, NaN is its largest number and is skipped by
MIN and LEAST, float functions give DOUBLE, and integer sums give HUGEINT.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sqlglot import exp

from planner.dtypes import BOOL, FLOAT32, FLOAT64, INT64, DType, reduce_dtype
from planner.relation_type import Label
from planner.scalar import OPS, Arg, Call, Cast, Const, Expr, LabelValue, Value, fold
from planner.scalar_types import constant_dtype, typed

INFIX: dict[str, type[exp.Binary]] = {
    "+": exp.Add, "-": exp.Sub, "*": exp.Mul, "/": exp.Div, "//": exp.IntDiv, "%": exp.Mod,
    "AND": exp.And, "OR": exp.Or,
    "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE, "=": exp.EQ, "<>": exp.NEQ,
}  # fmt: skip

Written = tuple[exp.Expr, DType]


def literal(value: Value, dtype: DType) -> exp.Expr:
    """A literal in its dtype; never a DECIMAL. No column is complex, so no literal is."""
    assert not isinstance(value, complex)
    if isinstance(value, bool) or dtype == BOOL:
        return exp.Boolean(this=bool(value))
    if isinstance(value, float) and not math.isfinite(value):
        word = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return _cast(exp.Literal.string(word), dtype)
    number: exp.Expr = exp.Literal.number(repr(abs(value)))
    if math.copysign(1, value) < 0:
        number = exp.Neg(this=number)
    return _cast(number, dtype) if dtype != INT64 or abs(value) >= 2**31 else number


def _cast(expression: exp.Expr, dtype: DType) -> exp.Cast:
    return exp.Cast(this=expression, to=exp.DataType.build(dtype.sql, dialect="duckdb"))


def _rounded(expression: exp.Expr, dtype: DType) -> exp.Expr:
    """A DOUBLE in a float dtype; to FLOAT by a function of ours, since a CAST refuses what is too large."""
    if dtype == FLOAT32:
        return exp.Anonymous(this="ROUND_FLOAT32", expressions=[expression])
    return expression if dtype == FLOAT64 else _cast(expression, dtype)


def _is_literal(expression: exp.Expr) -> bool:
    """Whether the value comes from integer literals alone: DuckDB makes those INTEGER or less."""
    match expression:
        case exp.Literal():
            return True
        case exp.Paren() | exp.Neg():
            return _is_literal(expression.this)
        case exp.Case():
            return _is_literal(expression.args["ifs"][0].args["true"]) and _is_literal(expression.args["default"])
        case exp.Binary():
            return _is_literal(expression.this) and _is_literal(expression.expression)
    return False


def _paren(expression: exp.Expr) -> exp.Expr:
    """sqlglot's constructors add no brackets."""
    return exp.Paren(this=expression) if isinstance(expression, (exp.Binary, exp.Unary, exp.Not)) else expression


class ScalarWriter:
    """Writes expressions over given value columns and key columns."""

    def __init__(self, values: Sequence[exp.Expr], keys: Mapping[Label, exp.Column], dtypes: Sequence[DType]) -> None:
        self.values, self.keys, self.dtypes = values, keys, dtypes

    def write(self, expr: Expr) -> exp.Expr:
        """The SQL of a typed expression."""
        written, dtype = fold(typed(_expanded(expr), self.dtypes)[0], self._rule)
        return _cast(written, dtype) if dtype == INT64 and _is_literal(written) else written

    def _rule(self, node: Expr, new: tuple[Written, ...]) -> Written:
        match node:
            case Arg(i):
                return self.values[i].copy(), self.dtypes[i]
            case LabelValue(name):
                return self.keys[name].copy(), INT64
            case Const(value):
                dtype = constant_dtype(value)
                return literal(value, dtype), dtype
            case Cast(arg, dtype):
                if isinstance(arg, Const) and not isinstance(arg.value, bool | complex) and dtype.is_float:
                    return literal(float(arg.value), dtype), dtype
                inner, old = new[0][0].copy(), new[0][1]
                return (_rounded if old.is_float and dtype.is_float else _cast)(inner, dtype), dtype
            case Call(op, _):
                return self._call(op, new)

    def _call(self, op: str, new: tuple[Written, ...]) -> Written:
        parts, dtype = [part.copy() for part, _ in new], new[-1][1]
        if op == "case":
            branch = exp.If(this=parts[0], true=parts[1])
            return exp.Case(ifs=[branch], default=parts[2]), dtype
        if op == "neg":
            return exp.Neg(this=_paren(parts[0])), dtype
        if op == "not":
            return exp.Not(this=_paren(parts[0])), BOOL
        name = OPS[op].sql
        if name in INFIX:
            if dtype == INT64 and all(map(_is_literal, parts)):  # DuckDB would compute in INTEGER
                parts[0] = _cast(parts[0], INT64)
            made: exp.Binary = INFIX[name](this=_paren(parts[0]), expression=_paren(parts[1]))
            if OPS[op].rule in ("compare", "equal"):
                return (self._ieee(op, made, parts) if dtype.is_float else made), BOOL
            return made, dtype
        call: exp.Expr = exp.Anonymous(this=name, expressions=parts)
        if op == "min" and dtype.is_float:
            call = _nan_if(exp.Or(this=_isnan(parts[0]), expression=_isnan(parts[1])), call, dtype)
        if op == "sign" and dtype.is_float:
            call = _nan_if(_isnan(parts[0]), call, dtype)
        if op == "sign":
            call = _cast(call, dtype)
        if OPS[op].rule in ("float", "analytic"):
            call = _rounded(call, dtype)
        return call, dtype

    def _ieee(self, op: str, made: exp.Binary, parts: Sequence[exp.Expr]) -> exp.Expr:
        """Comparisons with NaN: DuckDB takes it for the largest number, equal to itself."""
        if all(map(_is_constant, parts)):
            return made
        doubtful = parts[1] if op in ("lt", "le") else parts[0]
        if op == "ne":
            return exp.Paren(this=exp.Or(this=made, expression=_isnan(doubtful)))
        return exp.Paren(this=exp.And(this=made, expression=exp.Not(this=_isnan(doubtful))))

    def aggregate(self, reduce: str, value: exp.Expr, dtype: DType) -> exp.Expr:
        """The aggregate of a value column; float sums are compensated, integer ones exact."""
        out = reduce_dtype(reduce, dtype)
        if reduce in ("sum", "prod") and dtype == BOOL:
            value, dtype = _cast(value, INT64), INT64
        match reduce:
            case "fsum":
                return exp.Anonymous(this="EXACT_SUM", expressions=[exp.Anonymous(this="LIST", expressions=[value])])
            case "sum":
                return (
                    _rounded(exp.Anonymous(this="FSUM", expressions=[value]), out)
                    if dtype.is_float
                    else _cast(exp.Sum(this=value), out)
                )
            case "prod":
                if dtype.is_float:
                    return _rounded(exp.Anonymous(this="PRODUCT", expressions=[value]), out)
                return exp.Anonymous(
                    this="INTEGER_PRODUCT", expressions=[exp.Anonymous(this="LIST", expressions=[value])]
                )
            case "any":
                return exp.LogicalOr(this=value)
            case "all":
                return exp.LogicalAnd(this=value)
            case "max":
                return exp.Max(this=value)
        least: exp.Expr = exp.Min(this=value)
        if dtype.is_float:
            return _nan_if(exp.LogicalOr(this=_isnan(value)), least, dtype)
        return least


def _is_constant(value: exp.Expr) -> bool:
    """Whether a value is a literal, in whatever dtype: what is compared with NaN itself is left to DuckDB."""
    while isinstance(value, exp.Cast | exp.Neg | exp.Paren):
        value = value.this
    return isinstance(value, exp.Literal)


def _isnan(value: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="ISNAN", expressions=[value.copy()])


def _nan_if(condition: exp.Expr, otherwise: exp.Expr, dtype: DType) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=condition, true=literal(math.nan, dtype))], default=otherwise)


def _expanded(expr: Expr) -> Expr:
    """Functions that SQL lacks, written out."""

    def rule(node: Expr, new: tuple[Expr, ...]) -> Expr:
        match node:
            case Cast(_, dtype):
                return Cast(new[0], dtype)
            case Call(op, _):
                expand = OPS[op].expand
                return Call(op, new) if expand is None else expand(*new)
        return node

    return fold(expr, rule)
