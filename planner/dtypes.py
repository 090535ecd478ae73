"""The one type table: which dtype every combine, reduce and map gives, for einsum and for SQL alike.

A dtype is named as in NumPy and printed short. Literals and label values are *weak*: they take the dtype of whatever
tensor they meet (`2.5 * x` keeps float32), and become int64 or float64 only when they meet none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.errors import IntegerOverflowError, UnsupportedError


@dataclass(frozen=True)
class DType:
    """One row of the type table. `rank` orders the promotion bool < int64 < float32 < float64."""

    name: str
    short: str
    sql: str
    itemsize: int
    rank: int

    @property
    def is_float(self) -> bool:
        return self.rank >= 2

    @property
    def eps(self) -> float:
        """Distance from 1 to the next value; 0 for exact types."""
        return {"float32": 2.0**-23, "float64": 2.0**-52}.get(self.name, 0.0)

    def __str__(self) -> str:
        return self.short


BOOL = DType("bool", "bool", "BOOLEAN", 1, 0)
INT64 = DType("int64", "i64", "BIGINT", 8, 1)
FLOAT32 = DType("float32", "f32", "FLOAT", 4, 2)
FLOAT64 = DType("float64", "f64", "DOUBLE", 8, 3)

DTYPES: tuple[DType, ...] = (BOOL, INT64, FLOAT32, FLOAT64)
BY_NAME: dict[str, DType] = {key: d for d in DTYPES for key in (d.name, d.short)}

REDUCES: tuple[str, ...] = ("sum", "prod", "max", "min", "any", "all")


def dtype_named(name: str) -> DType:
    """The dtype of a NumPy or short name; refuses the ones that relations cannot hold."""
    if name not in BY_NAME:
        raise UnsupportedError(f"dtype {name} is not supported; supported are {', '.join(d.name for d in DTYPES)}")
    return BY_NAME[name]


def promote(*dtypes: DType) -> DType:
    """The dtype that holds all of `dtypes`. int64 with float32 is float64, as in NumPy: float32 would lose integers."""
    if INT64 in dtypes and FLOAT32 in dtypes:
        return FLOAT64
    return max(dtypes, key=lambda d: d.rank)


def reduce_dtype(reduce: str | None, dtype: DType) -> DType:
    """The dtype of `reduce` over values of `dtype`: sum and prod count booleans, any and all stay boolean."""
    if dtype == BOOL and reduce in ("sum", "prod"):
        return INT64
    return dtype


def identity(reduce: str, dtype: DType) -> int | float | bool:
    """The value that `reduce` gives over nothing.

    >>> identity("sum", INT64), identity("max", FLOAT32), identity("all", BOOL)
    (0, -inf, True)
    """
    match reduce:
        case "sum":
            return 0.0 if dtype.is_float else 0
        case "prod":
            return 1.0 if dtype.is_float else 1
        case "any":
            return False
        case "all":
            return True
        case "max" | "min":
            if dtype == BOOL:
                return reduce == "min"
            if dtype == INT64:
                return -(2**63) if reduce == "max" else 2**63 - 1
            return -math.inf if reduce == "max" else math.inf
    raise UnsupportedError(f"reduce {reduce!r} is not known; known are {', '.join(REDUCES)}")


def check_int64(value: int, what: str) -> int:
    """`value` unchanged, or the overflow error that names `what`."""
    if not -(2**63) <= value < 2**63:
        raise IntegerOverflowError(
            f"{what} is {value}, which int64 cannot hold\n  cast an operand to DOUBLE if rounding is acceptable"
        )
    return value
