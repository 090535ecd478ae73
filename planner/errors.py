"""Every error a user of einsql can cause, and the one that is ours."""

from __future__ import annotations


class EinsqlError(Exception):
    """Base of every error that einsql raises on purpose."""


class SqlError(EinsqlError, ValueError):
    """A text that cannot be read as a tensor query; carries line and column (1-based) and the line itself."""

    def __init__(self, message: str, line: int = 0, column: int = 0, snippet: str = "") -> None:
        self.line, self.column, self.snippet = line, column, snippet
        if line:
            message = f"{message}\n  line {line}, column {column}:\n    {snippet}\n    {' ' * (column - 1)}^"
        super().__init__(message)


class ShapeError(EinsqlError, ValueError):
    """Extents, labels or dtypes that disagree."""


class DataError(EinsqlError, ValueError):
    """Rows that are no tensor relation: duplicate coordinates, NULL, a coordinate out of range, a missing block."""


class CatalogError(EinsqlError, LookupError):
    """A relation name that is not there, or already is."""

    def __str__(self) -> str:  # LookupError's own would quote the message
        return str(self.args[0])


class UnsupportedError(EinsqlError, NotImplementedError):
    """Understood but not done; the message says what is."""


class SqlUnsupportedError(SqlError, UnsupportedError):
    """SQL that is well formed but is no tensor query that einsql runs; carries line and column."""


class PlanError(EinsqlError, RuntimeError):
    """No plan fits the request: partitioning, placement, devices or memory."""


class IntegerOverflowError(EinsqlError, OverflowError):
    """An integer result that int64 cannot hold. Integers never wrap."""


class ExecutionError(EinsqlError, RuntimeError):
    """A step failed on a device; the message names step, device and shapes."""


class InternalError(EinsqlError, AssertionError):
    """A pass broke an invariant: our bug. The message carries the plan; please report it."""


for _error in [EinsqlError, *EinsqlError.__subclasses__(), SqlUnsupportedError]:
    _error.__module__ = "einsql.errors"  # where users find them, and what a traceback shows
