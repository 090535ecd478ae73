"""Python's operators on tensors and on label values, as scalar expressions.

They mean what they mean in NumPy: `//` and `%` round toward minus infinity, where those of SQL truncate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from planner.errors import UnsupportedError
from planner.predicates import bounds
from planner.scalar import Call, Const, Expr, chain, labels_of

Build = Callable[..., Expr]
MOST_FACTORS = {False: 3, True: 63}  # of a constant power written as a product: of floats, of integers
ANY_COORDINATE = (0, 2**63 - 1)


def call(op: str) -> Build:
    """What builds an application of a scalar operator from its arguments."""
    return lambda *args: Call(op, args)


def _binary(build: Build) -> Callable[[Any, Any], Any]:
    return lambda self, other: self.apply(build, self, other)


def _reflected(build: Build) -> Callable[[Any, Any], Any]:
    return lambda self, other: self.apply(build, other, self)


def _unary(build: Build) -> Callable[[Any], Any]:
    return lambda self: self.apply(build, self)


def floor_divide(a: Expr, b: Expr) -> Expr:
    """a // b of integers, rounded toward minus infinity."""
    quotient = Call("intdiv", (a, b))
    if _agree(a, b):
        return quotient
    return Call("case", (_signs_differ(a, b), Call("sub", (quotient, Const(1))), quotient))


def remainder(a: Expr, b: Expr) -> Expr:
    """a % b of integers, with the sign of b."""
    rest = Call("mod", (a, b))
    return rest if _agree(a, b) else Call("case", (_signs_differ(a, b), Call("add", (rest, b)), rest))


def _agree(a: Expr, b: Expr) -> bool:
    """Whether a cannot be negative and b is a positive constant, so that truncating is rounding down."""
    least = bounds(a, dict.fromkeys(labels_of(a), ANY_COORDINATE))
    return least is not None and least[0] >= 0 and _is_positive(b)


def _signs_differ(a: Expr, b: Expr) -> Expr:
    """Whether truncating rounds up: a remainder is left, and its sign, which is that of a, is not that of b."""
    rest = Call("mod", (a, b))
    negative = Call("lt", (rest, Const(0)))
    if _is_positive(b):
        return negative
    return Call("and", (Call("ne", (rest, Const(0))), Call("ne", (negative, Call("lt", (b, Const(0)))))))


def _is_positive(expr: Expr) -> bool:
    return isinstance(expr, Const) and isinstance(expr.value, int) and expr.value > 0


def _power(exact: bool) -> Build:
    def build(x: Expr, y: Expr) -> Expr:
        match y:
            case Const(bool()):
                pass
            case Const(0) if exact:
                return Const(1)
            case Const(int() as n) if 1 <= n <= MOST_FACTORS[exact]:
                return chain("mul", [x] * n)
        return Call("pow", (x, y))

    return build


class Operators:
    """Base of what has operators. They are lazy, comparisons too; equality of two objects is `is`."""

    __array_ufunc__ = None  # an array or a NumPy scalar on the left leaves the operator to us
    __hash__ = object.__hash__

    @staticmethod
    def apply(build: Build, *args: Any) -> Any:
        """The expression that `build` makes of its arguments' values."""
        raise NotImplementedError

    @property
    def is_exact(self) -> bool:
        """Whether the values are known to be integers or booleans."""
        return False

    __add__, __radd__ = _binary(call("add")), _reflected(call("add"))
    __sub__, __rsub__ = _binary(call("sub")), _reflected(call("sub"))
    __mul__, __rmul__ = _binary(call("mul")), _reflected(call("mul"))
    __truediv__, __rtruediv__ = _binary(call("div")), _reflected(call("div"))
    __floordiv__, __rfloordiv__ = _binary(floor_divide), _reflected(floor_divide)
    __mod__, __rmod__ = _binary(remainder), _reflected(remainder)
    __and__, __rand__ = _binary(call("and")), _reflected(call("and"))
    __or__, __ror__ = _binary(call("or")), _reflected(call("or"))
    __lt__, __le__ = _binary(call("lt")), _binary(call("le"))
    __gt__, __ge__ = _binary(call("gt")), _binary(call("ge"))
    __eq__ = _binary(call("eq"))
    __ne__ = _binary(call("ne"))
    __neg__, __abs__, __invert__ = _unary(call("neg")), _unary(call("abs")), _unary(call("not"))

    def __pow__(self, other: Any) -> Any:
        """Integers to a constant power from 0 to 63 stay integers; any other power is a float."""
        return self.apply(_power(self.is_exact), self, other)

    __rpow__ = _reflected(call("pow"))

    def __bool__(self) -> NoReturn:
        raise UnsupportedError(
            "a tensor has no truth value before it is run: comparisons give tensors of booleans"
            "\n  write & | ~ in place of and, or, not and of chained comparisons; for a value take .numpy()"
        )
