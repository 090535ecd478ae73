"""Whatever a user holds, as a table of Arrow or a NumPy array: mappings, Arrow's and DLPack's protocols, arrays."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pyarrow as pa

from einsql.arrow import block_field, read_values, value_field
from einsql.values import typed_values
from planner.errors import DataError, EinsqlError

Array = np.ndarray


def read_input(name: str, data: Any) -> pa.Table | Array:
    """A table from what has columns, an array from anything else. A stream is read once.

    Raises   DataError that names the type of what cannot be read
    """
    try:
        return _read(name, data)
    except EinsqlError:
        raise
    except (pa.ArrowException, TypeError, ValueError, OverflowError, BufferError, RuntimeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"cannot make {name} from a {type(data).__name__}: {reason}") from None


def _read(name: str, data: Any) -> pa.Table | Array:
    if isinstance(data, np.ndarray | np.generic):
        return np.asanyarray(data)
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, Mapping):
        return _from_columns(name, data)
    streams = hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")
    if streams and not _is_column(data):
        return pa.table(data)
    if streams:
        return _column_values(name, data)
    if data is None or isinstance(data, set | frozenset) or hasattr(data, "__next__"):
        raise DataError(f"cannot make {name} from a {type(data).__name__}: it is no array and no table")
    if hasattr(data, "collect") and not hasattr(data, "__array__"):
        raise DataError(f"cannot make {name} from a {type(data).__name__}: call its .collect() first")
    return _array(data)


def _is_column(data: Any) -> bool:
    """Whether something with Arrow's protocol is one column, a Series, rather than a table."""
    return isinstance(data, pa.Array | pa.ChunkedArray) or hasattr(data, "dtype")


def _column_values(name: str, data: Any) -> Array:
    column = pa.chunked_array([data] if isinstance(data, pa.Array) else data)
    if column.null_count:
        raise DataError(f"{name} holds {column.null_count} NULL; a cell of an array is there")
    return read_values(name, pa.field("val", column.type), column, None).array


def _array(data: Any) -> Array:
    """An array by DLPack where NumPy can read it, else as the object gives itself."""
    if not hasattr(data, "__dlpack__"):
        return np.asanyarray(data)
    for settle in ("detach", "cpu", "resolve_conj", "resolve_neg"):  # torch lends plain memory of the host only
        if hasattr(data, settle):
            data = getattr(data, settle)()
    if str(getattr(data, "dtype", "")) == "torch.bfloat16":  # which DLPack knows and NumPy does not
        return np.from_dlpack(data.contiguous().view(sys.modules["torch"].int16)).view(ml_dtypes.bfloat16)
    try:
        return np.from_dlpack(data)
    except (TypeError, ValueError, BufferError, RuntimeError):
        if not hasattr(data, "__array__"):
            return np.from_dlpack(data, device="cpu")
        return np.asanyarray(data)


# ------------------------------------------------------------------------------------------------ mappings of columns


def _from_columns(name: str, columns: Mapping[Any, Any]) -> pa.Table:
    made = []
    for column, values in columns.items():
        if not isinstance(column, str):
            raise DataError(f"the columns of {name} are called by words, got {column!r}")
        made.append(_column(name, column, values))
    lengths = {field.name: len(array) for field, array in made}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{column} {length}" for column, length in lengths.items())
        raise DataError(f"the columns of {name} are of unequal length: {listed}")
    return pa.table([array for _, array in made], schema=pa.schema([field for field, _ in made]))


def _column(name: str, column: str, values: Any) -> tuple[pa.Field, pa.Array | pa.ChunkedArray]:
    place = f"column {column!r} of {name}"
    if hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__"):
        chunked = pa.chunked_array([values] if isinstance(values, pa.Array) else values)
        return pa.field(column, chunked.type), chunked
    array = values if isinstance(values, list | tuple | range) else _array(values)
    try:
        if not isinstance(array, np.ndarray):
            array = pa.array(array)
        if isinstance(array, pa.Array):
            return pa.field(column, array.type), array
        if array.dtype.kind in "iufcV" and not np.ma.isMaskedArray(array):
            return _typed(place, column, array)
        made = pa.array(array)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        plain = np.asarray(values, complex) if _are_complex(values) else None
        if plain is not None:
            return _typed(place, column, plain)
        raise DataError(f"cannot read {place}: {str(error).splitlines()[0]}") from None
    return pa.field(column, made.type), made


def _typed(place: str, column: str, array: Array) -> tuple[pa.Field, pa.Array]:
    """A column of numbers, or of blocks where the array has more axes."""
    if array.ndim == 0:
        raise DataError(f"{place} is a single number; a column has a value per row")
    if array.ndim == 1 and array.dtype.kind in "iuf":
        made = pa.array(array.astype(array.dtype.newbyteorder("="), copy=False))
        return pa.field(column, made.type), made
    values, dtype = typed_values(place, array)
    if array.ndim > 1:
        return block_field(column, values, dtype, [f"axis{i}" for i in range(1, array.ndim)])
    return value_field(column, values, dtype)


def _are_complex(values: Any) -> bool:
    return isinstance(values, list | tuple) and any(isinstance(value, complex) for value in values)
