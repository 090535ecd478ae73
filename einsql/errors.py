"""Every error a user can cause, under the name to import: `es.errors.ShapeError`."""

from planner.errors import (
    CatalogError,
    DataError,
    EinsqlError,
    ExecutionError,
    IntegerOverflowError,
    InternalError,
    PlanError,
    ShapeError,
    SqlError,
    SqlUnsupportedError,
    UnsupportedError,
)

__all__ = [
    "CatalogError",
    "DataError",
    "EinsqlError",
    "ExecutionError",
    "IntegerOverflowError",
    "InternalError",
    "PlanError",
    "ShapeError",
    "SqlError",
    "SqlUnsupportedError",
    "UnsupportedError",
]
