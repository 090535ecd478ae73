"""Value columns of Arrow, for every dtype and for values that are blocks.

Arrow has no complex numbers and no bfloat16, and its tensors hold no booleans. Such columns say what they mean in the
metadata of their field, under `einsql.dtype`:

    dtype       one value per row             a block per row
    complex     fixed-size list of two        a last axis of two: real and imaginary part
    bfloat16    float32, which holds it       uint16, its bits
    bool        bool                          uint8
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from einsql.values import typed_values
from gpu_exec.kernels.dtype import numpy_dtype
from planner.dtypes import BFLOAT16, BOOL, BY_NAME, DType, real_dtype
from planner.errors import DataError, ShapeError, UnsupportedError

Array = np.ndarray
DTYPE = b"einsql.dtype"


# ---------------------------------------------------------------------------------------------------------------- out


def value_field(column: str, values: Array, dtype: DType) -> tuple[pa.Field, pa.Array]:
    """Values [n], one per row."""
    if dtype.is_complex:
        parts = pa.array(_physical(values, dtype).reshape(-1))
        return _field(column, pa.FixedSizeListArray.from_arrays(parts, 2), dtype)
    if dtype == BFLOAT16:
        return _field(column, pa.array(values.astype(np.float32)), dtype)
    return _field(column, pa.array(values), None)


def block_field(column: str, stack: Array, dtype: DType, names: Sequence[str]) -> tuple[pa.Field, pa.Array]:
    """Equal blocks [n, *block] as `arrow.fixed_shape_tensor`, its axes called `names`."""
    if stack.ndim == 1:
        stack, names = stack[:, None], ["cell"]
    physical = _physical(stack, dtype)
    names = [*names, "part"] if dtype.is_complex else list(names)
    tensor = pa.fixed_shape_tensor(pa.from_numpy_dtype(physical.dtype), physical.shape[1:], dim_names=names)
    flat = pa.FixedSizeListArray.from_arrays(pa.array(physical.reshape(-1)), int(np.prod(physical.shape[1:])))
    return _field(column, pa.ExtensionArray.from_storage(tensor, flat), _noted(dtype))


def list_field(column: str, blocks: Sequence[Array], dtype: DType) -> tuple[pa.Field, pa.Array]:
    """Blocks of several shapes, each as a flat list in row-major order."""
    flat = [_physical(np.ascontiguousarray(block)[None], dtype).reshape(-1) for block in blocks]
    offsets = np.cumsum([0, *(len(values) for values in flat)])
    none = _physical(np.zeros(0, numpy_dtype(dtype)), dtype).reshape(-1)
    values = pa.array(np.concatenate([none, *flat]))
    return _field(column, pa.LargeListArray.from_arrays(pa.array(offsets), values), _noted(dtype))


def _field(column: str, array: pa.Array, dtype: DType | None) -> tuple[pa.Field, pa.Array]:
    return pa.field(column, array.type, metadata=None if dtype is None else {DTYPE: dtype.name}), array


def _noted(dtype: DType) -> DType | None:
    return dtype if dtype.is_complex or dtype in (BFLOAT16, BOOL) else None


def _physical(values: Array, dtype: DType) -> Array:
    """Values [n, *block] as numbers that a tensor column holds: a last axis of two for complex, bits for bfloat16."""
    values = np.ascontiguousarray(values)
    if dtype.is_complex:
        return values.view(numpy_dtype(real_dtype(dtype))).reshape(*values.shape, 2)
    return values.view(np.uint16 if dtype == BFLOAT16 else np.uint8) if dtype in (BFLOAT16, BOOL) else values


# ----------------------------------------------------------------------------------------------------------------- in


@dataclass(frozen=True)
class Values:
    """A value column: [n, *block] in a dtype of the type table; `axes` are the names that the block's axes have."""

    array: Array
    dtype: DType
    axes: tuple[str, ...] = ()


def is_blocks(field: pa.Field) -> bool:
    """Whether a column holds a block per row; a complex number is no block."""
    kind = field.type
    if isinstance(kind, pa.FixedShapeTensorType):
        return True
    return _is_list(kind) and not (_is_complex(field) and not _is_list(kind.value_type))


def read_values(place: str, field: pa.Field, column: pa.ChunkedArray, block_shape: Sequence[int] | None) -> Values:
    """The values of a column without NULL, blocks in their logical order and of the shape asked for.

    place         what errors call the column
    block_shape   of a list column, whose own shape is that of its nested lists
    Raises        UnsupportedError for a type that holds no numbers, ShapeError for lists that are no such blocks
    """
    array = column.combine_chunks()
    array = pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
    shape: list[int] = []
    order, names = None, None
    if isinstance(array.type, pa.FixedShapeTensorType):
        shape, order, names = list(array.type.shape), array.type.permutation, array.type.dim_names
        array = array.storage.flatten()
    while _is_list(array.type):
        shape.append(_length(place, array))
        array = array.flatten()
    if array.null_count:
        raise DataError(f"{place} holds {array.null_count} NULL inside its blocks; every cell of a block is there")
    numbers = _numbers(place, array).reshape(len(column), *shape)
    if block_shape is not None and _is_complex(field) and numbers.size and numbers.size % 2 == 0:
        numbers = numbers.reshape(len(column), -1, 2)
    numbers, dtype = _logical(place, field, numbers)
    logical = [axis for axis in order or range(len(shape)) if axis < numbers.ndim - 1]  # without real and imaginary
    numbers = np.transpose(numbers, [0, *(axis + 1 for axis in logical)])
    if block_shape is not None:
        return Values(_reshaped(place, numbers, tuple(block_shape)), dtype)
    return Values(numbers, dtype, tuple(names[axis] for axis in logical) if names else ())


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _is_complex(field: pa.Field) -> bool:
    name = (field.metadata or {}).get(DTYPE, b"").decode()
    return name in BY_NAME and BY_NAME[name].is_complex


def _length(place: str, array: pa.Array) -> int:
    """How many values each list of a column has."""
    if pa.types.is_fixed_size_list(array.type):
        return int(array.type.list_size)
    lengths = pc.unique(pc.list_value_length(array)).to_pylist()
    if len(lengths) > 1:
        raise ShapeError(
            f"{place} holds lists of {min(lengths)} and of {max(lengths)} values; blocks are equally large"
        )
    return int(lengths[0]) if lengths else 0


def _numbers(place: str, array: pa.Array) -> Array:
    kind = array.type
    if pa.types.is_dictionary(kind):
        array, kind = array.dictionary_decode(), kind.value_type
    if pa.types.is_decimal(kind):  # what DuckDB makes of sums of integers, and of literals such as 1.5
        array = array.cast(pa.int64() if kind.scale == 0 else pa.float64())
        kind = array.type
    if not (pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise UnsupportedError(f"{place} has type {kind}; values are booleans, integers, floats or complex numbers")
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _logical(place: str, field: pa.Field, numbers: Array) -> tuple[Array, DType]:
    """What the numbers mean, as the metadata of the field says."""
    name = (field.metadata or {}).get(DTYPE, b"").decode()
    dtype = BY_NAME.get(name)
    if dtype is None or _noted(dtype) is None:
        return typed_values(place, numbers)
    if dtype.is_complex:
        if numbers.ndim < 2 or numbers.shape[-1] != 2 or numbers.dtype.kind != "f":
            raise ShapeError(f"{place} is declared {name}, so its last axis holds two floats; it is {field.type}")
        parts = np.ascontiguousarray(numbers, numpy_dtype(real_dtype(dtype)))
        return parts.view(numpy_dtype(dtype))[..., 0], dtype
    if dtype == BFLOAT16 and numbers.dtype == np.uint16:
        return numbers.view(ml_dtypes.bfloat16), dtype
    return numbers.astype(numpy_dtype(dtype)), dtype


def _reshaped(place: str, numbers: Array, shape: tuple[int, ...]) -> Array:
    if np.prod(shape, dtype=object) != np.prod(numbers.shape[1:], dtype=object):
        raise ShapeError(
            f"{place} holds blocks of {numbers.shape[1:]} cells, which are no blocks of block_shape {shape}"
        )
    return numbers.reshape(len(numbers), *shape)
