"""Query files: one query, the inputs it wants, and the golden plans it must give.

    -- title: Matrix product
    -- relation: A f32[i=512 j=384] scale 0.1
    -- relation: edges i64[src=34 dst=34] from networkx karate
    -- devices: 4
    -- parts: i=4
    SELECT ...
    ---- logical
    ...

The header is SQL comments, so that the text before the first section runs as it is and errors name the file's lines.
Inputs are made, not stored: seeded by their name, or taken from networkx.
"""

from __future__ import annotations

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
from planner.errors import DataError, SqlError

FORMS = ("logical", "relational", "sql", "program")
GRAPHS = ("karate", "les_miserables")
DTYPES = {"f32": "float32", "f64": "float64", "i64": "int64", "bool": "bool"}

Extents = Mapping[int, int]


@dataclass(frozen=True)
class RelationSpec:
    """One `-- relation:` line.

    source   "seeded", "ones" or the name of a graph
    scale    what the standard normal values are multiplied by
    """

    name: str
    dtype: str
    labels: tuple[str, ...]
    extents: tuple[int, ...]
    source: str
    scale: float

    @property
    def is_graph(self) -> bool:
        return self.source in GRAPHS

    def create(self, session: Session, extents: Extents | None = None) -> Relation:
        """Store the relation in `session`; `extents` maps the extents of the file to smaller ones."""
        if self.is_graph:
            return session.create(self.name, self._edges(), labels=self._stated(self.extents))
        shape = tuple((extents or {}).get(e, e) for e in self.extents)
        return session.create(self.name, self._array(shape), labels=self._stated(shape))

    def _stated(self, shape: tuple[int, ...]) -> str:
        return " ".join(f"{label}={extent}" for label, extent in zip(self.labels, shape, strict=True))

    def _array(self, shape: tuple[int, ...]) -> np.ndarray:
        dtype = DTYPES[self.dtype]
        if self.source == "ones":
            return np.ones(shape, dtype)
        random = np.random.default_rng(zlib.crc32(self.name.encode()))
        if dtype == "bool":
            return random.integers(0, 2, shape).astype(bool)
        if dtype == "int64":
            return random.integers(-3, 4, shape)
        return np.asarray(random.standard_normal(shape) * self.scale, dtype)

    def _edges(self) -> dict[str, np.ndarray]:
        """The adjacency of an undirected graph as rows: both directions of every edge, worth 1."""
        import networkx

        graph = networkx.karate_club_graph() if self.source == "karate" else networkx.les_miserables_graph()
        number = {node: i for i, node in enumerate(graph.nodes)}
        one = np.array([(number[a], number[b]) for a, b in graph.edges], np.int64)
        both = np.concatenate([one, one[:, ::-1]])
        return {self.labels[0]: both[:, 0], self.labels[1]: both[:, 1], "val": np.ones(len(both), DTYPES[self.dtype])}

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
        """Extents that cannot shrink, since a graph has them."""
        return frozenset(e for spec in self.relations if spec.is_graph for e in spec.extents)

    def text(self, plans: Mapping[str, str]) -> str:
        """The whole file with these plans as its sections."""
        return self.sql + "".join(f"---- {form}\n{plan.rstrip()}\n" for form, plan in plans.items())


_SECTION = re.compile(r"^---- *(\w+) *$", re.MULTILINE)
_HEADER = re.compile(r"-- (title|relation|devices|parts|tile): *(.*?) *")
_RELATION = re.compile(
    r"(?P<name>\w+) (?P<dtype>\w+)\[(?P<labels>[^\]]*)\]"
    r"(?: scale (?P<scale>\d+(?:\.\d+)?)| from networkx (?P<graph>\w+)| (?P<ones>ones))?"
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
                raise SqlError(str(error), number, match.start(2) + 1, line) from None
    return QueryFile(header.pop("title"), tuple(relations.values()), header, sql.rstrip() + "\n", plans)


def _read_line(word: str, value: str, header: dict[str, Any], relations: dict[str, RelationSpec]) -> None:
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
        example = f"'A f32[i=4 j=3]', then nothing, 'scale 0.1', 'ones' or 'from networkx {GRAPHS[0]}'"
        raise SqlError(f"cannot read the relation {value!r}; written like {example}")
    if match["dtype"] not in DTYPES:
        raise SqlError(f"no dtype {match['dtype']!r}; there are {', '.join(DTYPES)}")
    extents = _read_counts("labels", match["labels"])
    graph = match["graph"]
    if graph and graph not in GRAPHS:
        raise SqlError(f"no graph {graph!r}; there are {', '.join(GRAPHS)}")
    if graph and len(extents) != 2:
        raise SqlError(f"the edges of a graph have two labels, got {len(extents)}")
    source = graph or match["ones"] or "seeded"
    scale = float(match["scale"] or 1)
    return RelationSpec(match["name"], match["dtype"], tuple(extents), tuple(extents.values()), source, scale)


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
