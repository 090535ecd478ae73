"""The one type table: which dtype every combine, reduce and map gives, for einsum and for SQL alike.

A dtype is named as in NumPy and printed short. Literals and label values are *weak*: they take the dtype of whatever
tensor they meet (`2.5 * x` keeps float32), and become int64, float64 or complex128 only when they meet none.

Narrow types are for storage: arithmetic on integers gives int64, and a sum or product of float16 or bfloat16
accumulates in float32 and stays there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce

from planner.errors import IntegerOverflowError, UnsupportedError


@dataclass(frozen=True)
class DType:
    """One row of the type table.

    sql    its column type in DuckDB; "" where DuckDB has none, and values of the dtype travel in blocks
    kind   bool, int, float or complex
    bits   of an integer its value bits without the sign, of a float or complex those of the significand
    """

    name: str
    short: str
    sql: str
    itemsize: int
    kind: str
    bits: int

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_int(self) -> bool:
        return self.kind == "int"

    @property
    def is_complex(self) -> bool:
        return self.kind == "complex"

    @property
    def is_exact(self) -> bool:
        return self.kind in ("bool", "int")

    @property
    def eps(self) -> float:
        """Distance from 1 to the next value; 0 for exact types."""
        return 0.0 if self.is_exact else 2.0 ** (1 - self.bits)

    @property
    def range(self) -> tuple[int, int]:
        """Least and largest value of an integer dtype."""
        return (0 if self.name.startswith("u") else -(1 << self.bits)), (1 << self.bits) - 1

    def __str__(self) -> str:
        return self.short


BOOL = DType("bool", "bool", "BOOLEAN", 1, "bool", 1)
UINT8 = DType("uint8", "u8", "UTINYINT", 1, "int", 8)
INT8 = DType("int8", "i8", "TINYINT", 1, "int", 7)
INT16 = DType("int16", "i16", "SMALLINT", 2, "int", 15)
INT32 = DType("int32", "i32", "INTEGER", 4, "int", 31)
INT64 = DType("int64", "i64", "BIGINT", 8, "int", 63)
FLOAT16 = DType("float16", "f16", "", 2, "float", 11)
BFLOAT16 = DType("bfloat16", "bf16", "", 2, "float", 8)
FLOAT32 = DType("float32", "f32", "FLOAT", 4, "float", 24)
FLOAT64 = DType("float64", "f64", "DOUBLE", 8, "float", 53)
COMPLEX64 = DType("complex64", "c64", "", 8, "complex", 24)
COMPLEX128 = DType("complex128", "c128", "", 16, "complex", 53)

DTYPES: tuple[DType, ...] = (
    BOOL, UINT8, INT8, INT16, INT32, INT64, FLOAT16, BFLOAT16, FLOAT32, FLOAT64, COMPLEX64, COMPLEX128,
)  # fmt: skip
BY_NAME: dict[str, DType] = {key: d for d in DTYPES for key in (d.name, d.short)}

REDUCES: tuple[str, ...] = ("sum", "prod", "max", "min", "any", "all", "fsum")
ADDITIVE: tuple[str, ...] = ("sum", "prod", "fsum")  # reductions that accumulate in a wide dtype


def dtype_named(name: str) -> DType:
    """The dtype of a NumPy or short name; refuses the ones that relations cannot hold."""
    if name not in BY_NAME:
        raise UnsupportedError(f"dtype {name} is not supported; supported are {', '.join(d.name for d in DTYPES)}")
    return BY_NAME[name]


def promote(*dtypes: DType) -> DType:
    """The least dtype that holds every value of all of `dtypes`, as in NumPy; an integer with more bits than a float
    has makes the float wider.

    >>> [promote(*pair).name for pair in ((UINT8, INT8), (INT64, FLOAT32), (FLOAT16, BFLOAT16), (INT8, FLOAT16))]
    ['int16', 'float64', 'float32', 'float16']
    """
    return reduce(_both, dtypes)


def _both(a: DType, b: DType) -> DType:
    if a == b or b == BOOL:
        return a
    if a == BOOL:
        return b
    if a.is_int and b.is_int:
        low, high = min(a.range[0], b.range[0]), max(a.range[1], b.range[1])
        return next(d for d in DTYPES if d.is_int and d.range[0] <= low and high <= d.range[1])
    if a.is_complex or b.is_complex:
        return COMPLEX128 if FLOAT64 in (_component(a), _component(b)) else COMPLEX64
    if a.is_int or b.is_int:
        whole, real = (a, b) if a.is_int else (b, a)
        return (
            real if whole.bits <= real.bits else FLOAT32 if whole.bits <= FLOAT32.bits and real != FLOAT64 else FLOAT64
        )
    return FLOAT32 if {a, b} == {FLOAT16, BFLOAT16} else max(a, b, key=lambda d: d.bits)


def _component(dtype: DType) -> DType:
    """The float that the parts of a complex number need to hold `dtype`."""
    if dtype.is_complex:
        return real_dtype(dtype)
    return FLOAT32 if dtype.bits <= FLOAT32.bits else FLOAT64


def real_dtype(dtype: DType) -> DType:
    """The dtype of the real part."""
    return {COMPLEX64: FLOAT32, COMPLEX128: FLOAT64}.get(dtype, dtype)


def accumulator(dtype: DType) -> DType:
    """The dtype in which sums and products of `dtype` are kept: booleans are counted, narrow types widen."""
    if dtype.is_exact:
        return INT64
    return FLOAT32 if dtype in (FLOAT16, BFLOAT16) else dtype


def reduce_dtype(reduce: str | None, dtype: DType) -> DType:
    """The dtype of `reduce` over values of `dtype`; an exactly rounded sum is float64, as DuckDB's FSUM."""
    if reduce == "fsum":
        return FLOAT64
    return accumulator(dtype) if reduce in ADDITIVE else dtype


def identity(reduce: str, dtype: DType) -> int | float | bool:
    """The value that `reduce` gives over nothing.

    >>> identity("sum", INT64), identity("max", FLOAT32), identity("all", BOOL), identity("max", INT8)
    (0, -inf, True, -128)
    """
    match reduce:
        case "sum" | "fsum":
            return 0 if dtype.is_exact else 0.0
        case "prod":
            return 1 if dtype.is_exact else 1.0
        case "any":
            return False
        case "all":
            return True
        case "max" | "min":
            if dtype == BOOL:
                return reduce == "min"
            if dtype.is_int:
                return dtype.range[0 if reduce == "max" else 1]
            return -math.inf if reduce == "max" else math.inf
    raise UnsupportedError(f"reduce {reduce!r} is not known; known are {', '.join(REDUCES)}")


def check_int64(value: int, what: str) -> int:
    """`value` unchanged, or the overflow error that names `what`."""
    if not -(2**63) <= value < 2**63:
        raise IntegerOverflowError(
            f"{what} is {value}, which int64 cannot hold\n  cast an operand to DOUBLE if rounding is acceptable"
        )
    return value
