"""SQL scalar expressions to the planner's."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

from sqlglot import exp

from einsql.sql.errors import refuse
from planner.dtypes import DTYPES, FLOAT32, INT32, DType
from planner.errors import EinsqlError, SqlUnsupportedError
from planner.scalar import OPS, Call, Cast, Const, Expr

BINARY: dict[type, str] = {
    exp.Add: "add", exp.Sub: "sub", exp.Mul: "mul", exp.Div: "div", exp.IntDiv: "intdiv", exp.Mod: "mod",
    exp.Pow: "pow", exp.LT: "lt", exp.LTE: "le", exp.GT: "gt", exp.GTE: "ge", exp.EQ: "eq", exp.NEQ: "ne",
    exp.And: "and", exp.Or: "or",
}  # fmt: skip

UNARY: dict[type, str] = {
    exp.Neg: "neg", exp.Not: "not", exp.Abs: "abs", exp.Sign: "sign", exp.Exp: "exp", exp.Ln: "log", exp.Sqrt: "sqrt",
    exp.Sin: "sin", exp.Cos: "cos", exp.Tanh: "tanh", exp.Floor: "floor", exp.Ceil: "ceil",
}  # fmt: skip

BY_NAME = {"silu", "sigmoid", "rsqrt", "erf", "conj", "real", "imag"}  # functions that SQL lacks

TYPES: dict[str, DType] = {d.sql: d for d in DTYPES if d.sql} | {"REAL": FLOAT32, "INT": INT32}  # sqlglot's words too

# Written out, because sqlglot's own classes say nothing a user would recognise.
CANNOT: dict[type, str] = {
    exp.Null: "NULL is no value of a tensor; leave the row out",
    exp.Is: "IS tests for NULL, which tensors do not hold",
    exp.Coalesce: "COALESCE replaces NULL, which tensors do not hold",
    exp.Window: "window functions are not tensor operations",
    exp.Subquery: "a subquery cannot stand inside an expression; join it in FROM",
    exp.Select: "a subquery cannot stand inside an expression; join it in FROM",
    exp.Exists: "EXISTS is not read; join the other relation",
    exp.Filter: "FILTER is not read; write CASE WHEN ... END inside the aggregate",
    exp.Distinct: "DISTINCT is not read: coordinates are distinct already",
}


def _is_ours(name: str, arguments: int) -> bool:
    return name in BY_NAME and OPS[name].arity == arguments


class ScalarReader:
    """Reads expressions of one query block. `leaf` gives columns and aggregates their meaning, or None to go on."""

    def __init__(self, text: str, leaf: Callable[[exp.Expr], Expr | None]) -> None:
        self.text, self.leaf = text, leaf

    def read(self, node: exp.Expr) -> Expr:
        """The expression of a SQL tree; refuses what tensors cannot compute, with its place."""
        found = self.leaf(node)
        if found is not None:
            return found
        try:
            return self._read(node)
        except EinsqlError as error:
            if getattr(error, "line", 0):
                raise
            raise refuse(self.text, node, str(error)) from None

    def _read(self, node: exp.Expr) -> Expr:
        kind = type(node)
        if kind in BINARY:
            return Call(BINARY[kind], (self.read(node.this), self.read(node.expression)))
        if kind is exp.Neg and isinstance(node.this, exp.Literal) and not node.this.is_string:
            return Const(-_number(node.this).value)
        if kind in UNARY:
            return Call(UNARY[kind], (self.read(node.this),))
        match node:
            case exp.Paren():
                return self.read(node.this)
            case exp.Literal() if not node.is_string:
                return _number(node)
            case exp.Boolean():
                return Const(bool(node.this))
            case exp.Pi():
                return Const(math.pi)
            case exp.Log():
                return self._log(node)
            case exp.Greatest() | exp.Least():
                op = "max" if isinstance(node, exp.Greatest) else "min"
                parts = [self.read(part) for part in (node.this, *node.expressions)]
                return reduce(lambda a, b: Call(op, (a, b)), parts)
            case exp.Cast():
                return self._cast(node)
            case exp.Case():
                return self._case(node)
            case exp.If():
                return Call(
                    "case",
                    (self.read(node.this), self.read(node.args["true"]), self._else(node, node.args.get("false"))),
                )
            case exp.Between():
                low, high = node.args["low"], node.args["high"]
                value = self.read(node.this)
                return Call("and", (Call("ge", (value, self.read(low))), Call("le", (value, self.read(high)))))
            case exp.In() if node.expressions:
                value = self.read(node.this)
                return reduce(
                    lambda a, b: Call("or", (a, b)), [Call("eq", (value, self.read(e))) for e in node.expressions]
                )
            case exp.Anonymous(name=name, expressions=args) if _is_ours(name.lower(), len(args)):
                return Call(name.lower(), tuple(map(self.read, args)))
        raise refuse(self.text, node, self._reason(node), SqlUnsupportedError)

    def _reason(self, node: exp.Expr) -> str:
        for kind, reason in CANNOT.items():
            if isinstance(node, kind):
                return reason
        known = ", ".join(sorted(name for name, op in OPS.items() if op.infix == ""))
        if isinstance(node, exp.Func):
            return f"function {node.name or node.sql_name()} is not read; scalar functions are {known}, and casts"
        return f"{node.sql(dialect='duckdb')} is not read as a scalar expression; functions are {known}"

    def _log(self, node: exp.Log) -> Expr:
        """DuckDB's LOG is of base 10; sqlglot turns LOG2 and LOG10 into LOG with a base."""
        base = self.read(node.this) if node.expression is not None else Const(10.0)
        value = self.read(node.expression if node.expression is not None else node.this)
        return Call("div", (Call("log", (value,)), Call("log", (base,))))

    def _cast(self, node: exp.Cast) -> Expr:
        to = node.to.sql(dialect="duckdb").upper()
        if to not in TYPES:
            message = f"CAST to {to} is not read; types are {', '.join(d.sql for d in DTYPES if d.sql)}"
            raise refuse(self.text, node, message, SqlUnsupportedError)
        if isinstance(node.this, exp.Literal) and node.this.is_string:
            words = {"inf": math.inf, "infinity": math.inf, "-inf": -math.inf, "-infinity": -math.inf, "nan": math.nan}
            if node.this.this.lower() not in words:
                raise refuse(
                    self.text, node, f"the string {node.this.this!r} is no number; known are inf, -inf and nan"
                )
            return Cast(Const(words[node.this.this.lower()]), TYPES[to])
        return Cast(self.read(node.this), TYPES[to])

    def _case(self, node: exp.Case) -> Expr:
        value = self._else(node, node.args.get("default"))
        for branch in reversed(node.args["ifs"]):
            test = self.read(branch.this)
            if node.this is not None:
                test = Call("eq", (self.read(node.this), test))
            value = Call("case", (test, self.read(branch.args["true"]), value))
        return value

    def _else(self, node: exp.Expr, default: exp.Expr | None) -> Expr:
        if default is None:
            message = "CASE without ELSE gives NULL, which tensors do not hold; add ELSE, or aggregate the CASE itself"
            raise refuse(self.text, node, message)
        return self.read(default)


def _number(node: exp.Literal) -> Const:
    text = node.this
    try:
        return Const(int(text))
    except ValueError:
        return Const(float(text))
