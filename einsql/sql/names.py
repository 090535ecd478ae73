"""What a name means inside a query block. Unquoted names match without case, quoted names match exactly."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from einsql.relation import VALUE
from einsql.sql.errors import refuse
from planner.einsum import Tensor
from planner.relation_type import is_label


@dataclass(frozen=True)
class Table:
    """A relation as SQL sees it: its label columns, one per axis of `node`, and its value column."""

    node: Tensor
    labels: tuple[str, ...]
    value: str = VALUE

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.labels, self.value)


@dataclass(frozen=True)
class Source:
    """A table in FROM, under its alias; `number` is its place among the operands."""

    alias: str
    table: Table
    number: int


@dataclass(frozen=True)
class LabelColumn:
    """A label of one source: which axis it is."""

    source: int
    axis: int
    name: str


@dataclass(frozen=True)
class ValueColumn:
    """The value column of one source."""

    source: int


Meaning = LabelColumn | ValueColumn


@dataclass(frozen=True)
class Scope:
    """The sources of one SELECT, in order."""

    text: str
    sources: tuple[Source, ...]
    using: frozenset[str] = frozenset()

    def resolve(self, column: exp.Column) -> Meaning:
        """The meaning of a column reference; refuses unknown and ambiguous names with what there is."""
        name, quoted = column.name, bool(column.this.args.get("quoted"))
        table = column.args.get("table")
        sources = self.sources if table is None else [self.source(table)]
        found = [
            (source, i)
            for source in sources
            for i, own in enumerate(source.table.columns)
            if same_name(own, name, quoted)
        ]
        if not found and same_name(VALUE, name, quoted):  # whatever its name, it is the value
            found = [(source, len(source.table.labels)) for source in sources]
        if not found:
            raise refuse(self.text, column, self._unknown(name, sources))
        if len({s.number for s, _ in found}) < len(found):
            source = found[0][0]
            both = ", ".join(f'"{source.table.columns[i]}"' for s, i in found if s is source)
            raise refuse(self.text, column, f"column {name!r} matches {both} of {source.alias}; quote the one you mean")
        if len(found) > 1 and name.lower() not in self.using:
            owners = ", ".join(f"{s.alias}.{s.table.columns[i]}" for s, i in found)
            raise refuse(self.text, column, f"column {name!r} is ambiguous: {owners}; write the table before it")
        source, i = found[0]
        if i == len(source.table.labels):
            return ValueColumn(source.number)
        return LabelColumn(source.number, i, source.table.labels[i])

    def source(self, table: exp.Identifier) -> Source:
        """The source with an alias."""
        matches = [s for s in self.sources if same_name(s.alias, table.name, bool(table.args.get("quoted")))]
        if not matches:
            known = ", ".join(s.alias for s in self.sources)
            raise refuse(self.text, table, f"no table {table.name!r} in FROM; there are {known}")
        return matches[0]

    def _unknown(self, name: str, sources: object) -> str:
        columns = [c for s in sources for c in s.table.columns]  # type: ignore[attr-defined]
        close = difflib.get_close_matches(name, columns, n=1)
        listed = "; ".join(f"{s.alias} has {', '.join(s.table.columns)}" for s in sources)  # type: ignore[attr-defined]
        hint = f"; did you mean {close[0]!r}?" if close else ""
        return f"no column {name!r}: {listed}{hint}"

    @cached_property
    def aliases(self) -> tuple[str, ...]:
        return tuple(s.alias for s in self.sources)


def check_label(text: str, node: exp.Expr, name: str) -> None:
    """Refuse a name that no label can have."""
    if name == VALUE:
        raise refuse(text, node, f"a label cannot be called {name!r}: that is the value column")
    if not is_label(name):
        raise refuse(
            text, node, f"a label cannot be called {name!r}: spaces, quotes, brackets and , . : = - > part labels"
        )


def same_name(own: str, written: str, quoted: bool) -> bool:
    return own == written if quoted else own.lower() == written.lower()
