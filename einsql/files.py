"""Files: the suffix says what is in them."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from planner.errors import DataError, UnsupportedError


@dataclass(frozen=True)
class Origin:
    """What a relation is made from, as errors name it: its name, and the CSV file behind its rows if there is one."""

    name: str
    csv_file: Path | None = None

    def row(self, number: int) -> str:
        """Where row `number` is, counted from 0: `row 5`, or `line 7 of edges.csv`."""
        if self.csv_file is None:
            return f"row {number}"
        return f"line {_line(self.csv_file, number + 1)} of {self.csv_file}"


def read_file(path: str | os.PathLike[str]) -> tuple[Any, Path | None]:
    """What a file holds: a table of Arrow, an array, or a scipy matrix; and its path again if it is CSV.

    Raises   UnsupportedError for a suffix that is not known, DataError for a file that cannot be read
    """
    file = Path(path)
    reader = READERS.get(file.suffix.lower())
    if reader is None:
        what = f"the suffix {file.suffix!r}" if file.suffix else "a name without a suffix"
        raise UnsupportedError(f"cannot read {str(file)!r}: {what} says nothing; known are {', '.join(READERS)}")
    try:
        return reader(file), file if reader is _read_csv else None
    except (DataError, UnsupportedError):
        raise
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else _first(error)
        raise DataError(f"cannot read {file}: {reason if file.exists() else 'there is no such file'}") from None
    except Exception as error:  # a damaged file raises whatever its reader stumbles over
        raise DataError(f"cannot read {file}: {_first(error)}") from None


def _first(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _read_parquet(file: Path) -> pa.Table:
    import pyarrow.parquet

    return pyarrow.parquet.read_table(file, partitioning=None)


def _read_csv(file: Path) -> pa.Table:
    """One header line, then rows; column types are inferred."""
    import pyarrow.csv as reader

    try:
        return reader.read_csv(file)
    except pa.ArrowInvalid as error:
        problem: Exception = error
    try:  # again with one thread, which counts rows
        reader.read_csv(file, reader.ReadOptions(use_threads=False))
    except pa.ArrowInvalid as error:
        problem = error
    _, marked, rest = str(problem).partition("Row #")
    number, _, reason = rest.partition(": ")
    if not marked or not number.isdecimal():
        raise DataError(f"cannot read {file}: {_first(problem)}")
    raise DataError(f"cannot read line {_line(file, int(number) - 1)} of {file}: {_first(ValueError(reason))}")


def _line(file: Path, record: int) -> int:
    """The line on which a record of a CSV file ends, the header being record 0; blank lines are no records."""
    with file.open(newline="", encoding="utf-8", errors="replace") as text:
        records = csv.reader(text)
        lines = (records.line_num for fields in records if fields)
        return next(islice(lines, record, None), record + 1)


def _read_npy(file: Path) -> Any:
    with file.open("rb") as opened:
        return np.lib.format.read_array(opened, allow_pickle=False)


def _read_npz(file: Path) -> Any:
    """A scipy matrix, or the one array that is inside."""
    import scipy.sparse

    with np.load(file, allow_pickle=False) as arrays:
        names = list(arrays.files)
        if {"format", "shape", "data"} <= set(names):
            return scipy.sparse.load_npz(file)
        if len(names) != 1:
            raise DataError(f"{file} holds {len(names)} arrays: {', '.join(names)}; load the one you mean")
        return arrays[names[0]]


READERS = {".parquet": _read_parquet, ".csv": _read_csv, ".npy": _read_npy, ".npz": _read_npz}
