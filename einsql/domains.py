"""What the coordinates of a label stand for: themselves, or the values of a dictionary.

A dictionary is sorted, so coordinates compare as their values do. The planner sees coordinates only.
"""

from __future__ import annotations

import uuid
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from planner.errors import DataError, ShapeError

Array = np.ndarray
LARGE = 2**31  # integers from here on are names of things rather than coordinates
NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


@dataclass(frozen=True, eq=False)
class Domain:
    """A dictionary: distinct values of one Arrow type in rising order; the coordinate of a value is its place.

    Equal when type and values are.
    """

    values: pa.Array

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Domain)
            and self.values.type == other.values.type
            and _storage(self.values).equals(_storage(other.values))
        )

    def __hash__(self) -> int:
        ends = (self._key(0), self._key(len(self) - 1)) if len(self) else ()
        return hash((self.values.type, len(self), ends))

    def __getitem__(self, code: int) -> str:
        """The value of a coordinate, as errors write it."""
        return repr(_scalar(self.values[code]))

    def __str__(self) -> str:
        return f"dictionary of {len(self)} {self.values.type}"

    @property
    def kind(self) -> str:
        """text, integer, boolean, time or uuid."""
        return kind_of(self.values.type) or "other"

    def take(self, codes: Array) -> pa.Array:
        """The values of coordinates."""
        return _like(self.values.type, _storage(self.values).take(pa.array(codes)))

    def codes(self, values: pa.Array) -> Array:
        """The coordinate of every value; -1 for values that are not in the dictionary."""
        found = pc.index_in(_storage(_as(values, self.values.type)), value_set=_storage(self.values))
        return np.asarray(found.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)

    def span(self, literal: object) -> tuple[int, int]:
        """How many values are less than a literal, and how many are not greater; equal when it is not there.

        Raises   DataError for a literal that such values cannot be compared with
        """
        key, places = _literal(literal, self), range(len(self))
        low = bisect_left(places, key, key=self._key)
        return low, bisect_right(places, key, lo=low, key=self._key)

    def _key(self, place: int) -> Any:
        """A value as Python compares it; moments in nanoseconds."""
        value = _storage(self.values)[place]
        if self.kind != "time":
            return value.as_py()
        if pa.types.is_date32(self.values.type):
            return int(value.value) * 86_400 * 10**9
        return int(value.value) * NANOSECONDS[self.values.type.unit]


def _literal(literal: object, domain: Domain) -> Any:
    """A literal of SQL as `_key` gives values."""
    match domain.kind, literal:
        case ("text", str()) | ("boolean", bool()):
            return literal
        case "integer", int() | float() if not isinstance(literal, bool):
            return literal
        case "uuid", str():
            try:
                return uuid.UUID(literal).bytes
            except ValueError:
                raise DataError(f"{literal!r} is no UUID") from None
        case "time", str():
            return _moment(literal)
    raise DataError(f"{literal!r} cannot be compared with values of type {domain.values.type}")


def _moment(text: str) -> int:
    """Nanoseconds from 1970 of a date or timestamp; UTC where no offset is written."""
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.timestamp("ns", "UTC")):
        try:
            return int(pa.scalar(text).cast(kind).value) * NANOSECONDS[kind.unit]
        except pa.ArrowInvalid:
            continue
    raise DataError(f"{text!r} is no date and no timestamp")


# ----------------------------------------------------------------------------------------------------------- building


def kind_of(kind: pa.DataType) -> str | None:
    """What the values of a dictionary of this type are; None for types that label nothing."""
    types = pa.types
    if types.is_dictionary(kind):
        return kind_of(kind.value_type)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    if types.is_integer(kind):
        return "integer"
    if types.is_boolean(kind):
        return "boolean"
    if types.is_date(kind) or types.is_timestamp(kind):
        return "time"
    if isinstance(kind, pa.UuidType) or (types.is_fixed_size_binary(kind) and kind.byte_width == 16):
        return "uuid"
    return None


def canonical(column: pa.ChunkedArray) -> pa.Array:
    """A label column in one of the few types that dictionaries have."""
    array = column.combine_chunks()
    array = pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
    if pa.types.is_dictionary(array.type):
        dictionary = array.dictionary
        if pa.types.is_string_view(dictionary.type):  # which Arrow cannot take values from
            array = pa.DictionaryArray.from_arrays(array.indices, dictionary.cast(pa.string()))
        array = array.dictionary_decode()
    kind = array.type
    match kind_of(kind):
        case "text":
            return array.cast(pa.string())
        case "integer":
            return array.cast(pa.uint64() if pa.types.is_uint64(kind) else pa.int64())
        case "time" if pa.types.is_date64(kind):
            return array.cast(pa.date32())
    return array


def domain_of(values: pa.Array) -> Domain:
    """The dictionary of a column that `canonical` gave."""
    distinct = pc.unique(_storage(values))
    return Domain(_like(values.type, distinct.take(pc.sort_indices(distinct))))


def union(domains: Sequence[Domain]) -> Domain:
    """The dictionary of all values of several; one of them where it has them all.

    Raises   ShapeError for values that are never equal, such as strings and dates
    """
    first = domains[0]
    if all(domain == first for domain in domains):
        return first
    kind = first.values.type
    for domain in domains[1:]:
        kind = _common(kind, domain.values.type)
    parts = [_as(domain.values, kind) for domain in domains]
    whole = domain_of(_like(kind, pa.concat_arrays([_storage(part) for part in parts])))
    return next((domain for domain in domains if domain == whole), whole)


def _common(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    """The type that holds the values of both."""
    if a == b:
        return a
    match kind_of(a), kind_of(b):
        case "integer", "integer":
            return pa.uint64()
        case "uuid", "uuid":
            return pa.uuid()
        case "time", "time":
            stamps = [kind for kind in (a, b) if pa.types.is_timestamp(kind)]
            zones = {kind.tz for kind in stamps}
            if zones == {None} or (len(stamps) == 2 and None not in zones):
                finest = min((kind.unit for kind in stamps), key=NANOSECONDS.__getitem__)
                return pa.timestamp(finest, stamps[0].tz)
    raise ShapeError(f"values of type {a} and of type {b} are never equal")


def _as(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if values.type == kind:
        return values
    try:
        return _like(kind, _storage(values)) if kind_of(kind) == "uuid" else values.cast(kind)
    except pa.ArrowInvalid as error:
        raise ShapeError(f"values of type {values.type} are not all of type {kind}: {error}") from None


def _storage(values: pa.Array) -> pa.Array:
    """What an extension type is made of: Arrow sorts and looks up that only."""
    return values.storage if isinstance(values.type, pa.BaseExtensionType) else values


def _like(kind: pa.DataType, storage: pa.Array) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, storage) if isinstance(kind, pa.BaseExtensionType) else storage


def _scalar(value: pa.Scalar) -> object:
    if pa.types.is_timestamp(value.type):  # Python's own moments have no nanoseconds
        return value.cast(pa.string()).as_py()
    plain = value.as_py()
    return plain if isinstance(plain, str | int | bytes) else str(plain)
