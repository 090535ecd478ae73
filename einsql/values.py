"""NumPy values in a dtype of the type table, and the fill that goes with them."""

from __future__ import annotations

import numpy as np

from gpu_exec.kernels.dtype import numpy_dtype
from planner.dtypes import BY_NAME, DTYPES, INT64, DType
from planner.errors import DataError, ShapeError, UnsupportedError
from planner.scalar import Value

Array = np.ndarray

WIDER = {"uint16": "int32", "uint32": "int64"}  # unsigned integers that the type table lacks


def typed_values(name: str, array: Array) -> tuple[Array, DType]:
    """The values in native byte order, and their dtype; unsigned integers widen to signed ones that hold them.

    Raises   UnsupportedError for dtypes that relations cannot hold, DataError for a uint64 beyond int64
    """
    if array.dtype.name == "uint64":
        if array.size and array.max() >= 2**63:
            raise DataError(f"{name} holds {array.max()}, which int64 cannot hold; pass float64 if rounding is right")
        return array.astype(np.int64), INT64
    dtype = BY_NAME.get(WIDER.get(array.dtype.name, array.dtype.name))
    if dtype is None:
        raise UnsupportedError(f"{name} has dtype {array.dtype}; supported are {', '.join(d.name for d in DTYPES)}")
    return array.astype(numpy_dtype(dtype), copy=False), dtype


def number(value: object) -> Value:
    """A number as Python has it, for one that NumPy may have made; refuses anything else."""
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, bool | int | float | complex):
        raise DataError(f"a fill is a number, got {value!r}")
    return plain


def fill_value(name: str, fill: Value, dtype: DType) -> Value:
    """The fill as a plain number that `dtype` holds; floats round it.

    Raises   ShapeError where an exact dtype has no such value, or a real one meets a complex fill
    """
    if dtype.is_complex:
        return complex(fill)
    if isinstance(fill, complex) and fill.imag == 0:
        fill = fill.real
    if isinstance(fill, complex):
        raise ShapeError(f"{name} holds {dtype.name}, which has no value {fill!r} for fill")
    try:
        value: Value = numpy_dtype(dtype).type(fill).item()
    except (TypeError, ValueError, OverflowError):
        value = 0 if fill else 1  # no such value: unequal to fill
    if value != fill and not dtype.is_float:
        raise ShapeError(f"{name} holds {dtype.name}, which has no value {fill!r} for fill")
    return value
