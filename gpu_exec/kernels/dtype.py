"""The type table's dtypes as NumPy's, and back. bfloat16 is NumPy's through ml_dtypes."""

from __future__ import annotations

from functools import lru_cache

import ml_dtypes
import numpy as np

from planner.dtypes import BFLOAT16, BY_NAME, DType, dtype_named


@lru_cache(maxsize=64)
def numpy_dtype(dtype: DType) -> np.dtype:
    """The NumPy dtype of a dtype of the type table."""
    return np.dtype(ml_dtypes.bfloat16) if dtype == BFLOAT16 else np.dtype(dtype.name)


def dtype_of(values: np.ndarray | np.dtype) -> DType:
    """The dtype of an array. Raises UnsupportedError for one that relations cannot hold."""
    name = (values.dtype if isinstance(values, np.ndarray) else values).name
    return BY_NAME.get(name) or dtype_named(name)
