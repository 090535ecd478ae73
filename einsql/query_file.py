"""Query files: one query, the inputs it wants, and the golden plans it must give.

    -- title: Matrix product
    -- relation: A f32[i=512 j=384] scale 0.1
    -- relation: edges i64[src=34 dst=34] from networkx karate
    -- relation: H c128[o=2 i=2] values 1 0 0 1j
    -- devices: 4
    -- parts: i=4
    SELECT ...
    ---- logical
    ...

The header is SQL comments, so that the text before the first section runs as it is and errors name the file's lines.
Inputs are made, not stored: seeded by their name, written out, or taken from networkx.
"""

from __future__ import annotations

import difflib
import math
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from einsql.query import Query
from einsql.relation import Relation
from einsql.session import Session
from gpu_exec.kernels.dtype import numpy_dtype
from planner.dtypes import BOOL, BY_NAME, DTYPES, DType
from planner.errors import DataError, SqlError

FORMS = ("logical", "relational", "sql", "program")
GRAPHS = ("karate", "les_miserables")

Extents = Mapping[int, int]


@dataclass(frozen=True)
class RelationSpec:
    """One `-- relation:` line.

    source   "seeded", "ones", "below", "values" or the name of a graph
    scale    what the standard normal values are multiplied by
    below    one more than the largest of seeded whole numbers from 0
    values   in row-major order
    what     of a graph: "" every edge is worth 1, "weights" its weight, "distances" also 0 from each node to itself,
             and infinity where there is no edge
    """

    name: str
    dtype: DType
    labels: tuple[str, ...]
    extents: tuple[int, ...]
    source: str = "seeded"
    scale: float = 1.0
    below: int = 0
    values: tuple[complex, ...] = ()
    what: str = ""

    @property
    def is_graph(self) -> bool:
        return self.source in GRAPHS

    def create(self, session: Session, extents: Extents | None = None) -> Relation:
        """Store the relation in `session`; `extents` maps the extents of the file to smaller ones."""
        if self.is_graph:
            fill = math.inf if self.what == "distances" else 0
            return session.create(self.name, self._edges(), labels=self._stated(self.extents), fill=fill)
        shape = tuple((extents or {}).get(e, e) for e in self.extents)
        return session.create(self.name, self._array(shape), labels=self._stated(shape))

    def _stated(self, shape: tuple[int, ...]) -> str:
        return " ".join(f"{label}={extent}" for label, extent in zip(self.labels, shape, strict=True))

    def _array(self, shape: tuple[int, ...]) -> np.ndarray:
        dtype = numpy_dtype(self.dtype)
        if self.source == "ones":
            return np.ones(shape, dtype)
        if self.source == "values":
            values = np.asarray(self.values)
            return (values if self.dtype.is_complex else values.real).reshape(self.extents).astype(dtype)
        random = np.random.default_rng(zlib.crc32(self.name.encode()))
        if self.source == "below":
            return random.integers(0, self.below, shape).astype(dtype)
        if self.dtype == BOOL:
            return random.integers(0, 2, shape).astype(bool)
        if self.dtype.is_int:
            return random.integers(-3, 4, shape).astype(dtype)
        values = random.standard_normal(shape) * self.scale
        return np.asarray(values + 1j * random.standard_normal(shape) if self.dtype.is_complex else values).astype(
            dtype
        )

    def _edges(self) -> dict[str, np.ndarray]:
        """An undirected graph as rows: both directions of every edge, and of distances the zeros of the diagonal."""
        import networkx

        graph = networkx.karate_club_graph() if self.source == "karate" else networkx.les_miserables_graph()
        number = {node: i for i, node in enumerate(graph.nodes)}
        one = np.array([(number[a], number[b]) for a, b in graph.edges], np.int64)
        worth = np.array([w if self.what else 1 for _, _, w in graph.edges(data="weight")])
        loops = np.arange(len(number) if self.what == "distances" else 0)
        at = np.concatenate([one, one[:, ::-1], np.stack([loops, loops], axis=1)])
        values = np.concatenate([worth, worth, np.zeros(len(loops), worth.dtype)])
        return {self.labels[0]: at[:, 0], self.labels[1]: at[:, 1], "val": values.astype(numpy_dtype(self.dtype))}

    def __str__(self) -> str:
        return f"{self.dtype}[{self._stated(self.extents)}]"


@dataclass(frozen=True)
class QueryFile:
    """A query with its inputs.

    options   what the header asks of the planner: devices, parts, tile
    sql       the text before the first section, header included
    plans     form -> the text that `explain` must give
    """

    title: str
    relations: tuple[RelationSpec, ...]
    options: Mapping[str, Any]
    sql: str
    plans: Mapping[str, str]

    def make_inputs(self, session: Session, extents: Extents | None = None) -> None:
        """Create every relation of the header in `session`, at the extents of the file or at mapped ones."""
        for spec in self.relations:
            spec.create(session, extents)

    def query(self, session: Session, **options: Any) -> Query:
        """The query over the relations of `session`; `options` override the header's.

        The header counts host devices, so its count is left out where `engine` brings its own or has no devices.
        """
        header = dict(self.options)
        engine = str(options.get("engine", "auto"))
        if ":" in engine or engine in ("reference", "duckdb"):
            header.pop("devices", None)
        cut = {label for what in ("parts", "tile") for label in options.get(what) or {}}
        for what in ("parts", "tile"):  # label by label
            kept = {label: n for label, n in header.get(what, {}).items() if label not in cut}
            header[what] = {**kept, **(options.get(what) or {})}
        rest = {name: value for name, value in options.items() if name not in ("parts", "tile")}
        return session.sql(self.sql, **{**header, **rest})

    def fixed_extents(self) -> frozenset[int]:
        """Extents that cannot shrink, since a graph or values that are written out have them."""
        fixed = (spec for spec in self.relations if spec.is_graph or spec.source == "values")
        return frozenset(e for spec in fixed for e in spec.extents)

    def text(self, plans: Mapping[str, str]) -> str:
        """The whole file with these plans as its sections."""
        return self.sql + "".join(f"---- {form}\n{plan.rstrip()}\n" for form, plan in plans.items())


_SECTION = re.compile(r"^---- *(\w+) *$", re.MULTILINE)
WORDS = ("title", "relation", "devices", "parts", "tile")
_HEADER = re.compile(r"-- (\w+): *(.*?) *")
_RELATION = re.compile(
    r"(?P<name>\w+) (?P<dtype>\w+)\[(?P<labels>[^\]]*)\]"
    r"(?: scale (?P<scale>\d+(?:\.\d+)?)| (?P<ones>ones)| below (?P<below>\d+)| values (?P<values>.+)"
    r"| from networkx (?P<graph>\w+)(?: (?P<what>weights|distances))?)?"
)


def read_query_file(path: str | Path) -> QueryFile:
    """Read a query file.

    Raises   OSError when it cannot be read, DataError when it is no text, SqlError with the line of a bad header
    """
    path = Path(path)
    try:
        sql, *sections = _SECTION.split(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is no text in UTF-8: byte {error.start} is {error.object[error.start]:#04x}") from None
    forms = sections[::2]
    for form in forms:
        if form not in FORMS or forms.count(form) > 1:
            raise SqlError(f"section {form!r} is unknown or there twice; sections are {', '.join(FORMS)}")
    plans = {form: plan.strip("\n") + "\n" for form, plan in zip(forms, sections[1::2], strict=True)}
    header: dict[str, Any] = {"title": path.stem}
    relations: dict[str, RelationSpec] = {}
    for number, line in enumerate(sql.splitlines(), 1):
        if match := _HEADER.fullmatch(line):
            try:
                _read_line(match[1], match[2], header, relations)
            except SqlError as error:
                raise SqlError(str(error), number, match.start(2 if match[1] in WORDS else 1) + 1, line) from None
    return QueryFile(header.pop("title"), tuple(relations.values()), header, sql.rstrip() + "\n", plans)


def _read_line(word: str, value: str, header: dict[str, Any], relations: dict[str, RelationSpec]) -> None:
    if word not in WORDS:  # a comment, unless it looks like a slip
        close = difflib.get_close_matches(word, WORDS, n=1)
        if close:
            raise SqlError(f"no header word {word!r}; did you mean {close[0]!r}?")
        return
    match word:
        case "title":
            header[word] = value
        case "devices":
            header[word] = _read_number(word, value)
        case "relation":
            spec = _read_relation(value)
            if relations.setdefault(spec.name, spec) is not spec:
                raise SqlError(f"relation {spec.name!r} is there twice")
        case _:
            header[word] = _read_counts(word, value)


def _read_relation(value: str) -> RelationSpec:
    match = _RELATION.fullmatch(value)
    if match is None:
        ways = f"nothing, 'scale 0.1', 'ones', 'below 10', 'values 1 0 0 1j' or 'from networkx {GRAPHS[0]}'"
        raise SqlError(f"cannot read the relation {value!r}; written like 'A f32[i=4 j=3]', then {ways}")
    if match["dtype"] not in BY_NAME:
        raise SqlError(f"no dtype {match['dtype']!r}; there are {', '.join(d.short for d in DTYPES)}")
    extents = _read_counts("labels", match["labels"])
    graph = match["graph"]
    if graph and graph not in GRAPHS:
        raise SqlError(f"no graph {graph!r}; there are {', '.join(GRAPHS)}")
    if graph and len(extents) != 2:
        raise SqlError(f"the edges of a graph have two labels, got {len(extents)}")
    given = {"ones": match["ones"], "below": match["below"], "values": match["values"]}
    return RelationSpec(
        match["name"],
        BY_NAME[match["dtype"]],
        tuple(extents),
        tuple(extents.values()),
        graph or next((way for way, word in given.items() if word), "seeded"),
        scale=float(match["scale"] or 1),
        below=int(match["below"] or 0),
        values=_read_values(match["values"], math.prod(extents.values())),
        what=match["what"] or "",
    )


def _read_values(text: str | None, cells: int) -> tuple[complex, ...]:
    if text is None:
        return ()
    try:
        values = tuple(complex(word) for word in text.split())
    except ValueError:
        raise SqlError(f"cannot read the values {text!r}; written like 1 0.5 1j") from None
    if len(values) != cells:
        raise SqlError(f"{len(values)} values for {cells} cells")
    return values


def _read_counts(word: str, value: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for part in value.split():
        label, _, count = part.partition("=")
        if label in counts:
            raise SqlError(f"label {label!r} is there twice in {word}")
        counts[label] = _read_number(word, count)
    return counts


def _read_number(word: str, value: str) -> int:
    if not value.isdecimal():
        raise SqlError(f"cannot read {value!r} as a number of {word}")
    return int(value)
