"""SQL text to an einsum graph: statements, WITH, FROM and JOIN. sqlglot parses; names are resolved here, because its
qualifier folds the case of quoted names and loses the position of unknown ones."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from einsql.graph_domains import GraphDomains
from einsql.sql.errors import refuse
from einsql.sql.names import Scope, Source, Table, check_label, same_name
from einsql.sql.select import SelectReader
from planner.einsum import Tensor
from planner.errors import SqlError, SqlUnsupportedError

Tables = dict[str, dict[str, Table]]  # WITH tables by their names in lower case, then by their names


@dataclass(frozen=True)
class Statement:
    """A text that was read: what it computes, and the relation that CREATE TABLE ... AS wants to keep it in."""

    table: Table
    create: str | None = None
    replace: bool = False


@dataclass(frozen=True)
class Catalog:
    """Finds stored relations for the reader: `find` by exact name, `names` for suggestions; `ones` gives a relation
    that is true everywhere over one label of an extent, `domains` the dictionaries of labels."""

    names: Callable[[], list[str]]
    find: Callable[[str], Table]
    ones: Callable[[str, int], Tensor]
    domains: GraphDomains


def read_sql(text: str, catalog: Catalog) -> Statement:
    """Read one statement: SELECT, WITH ... SELECT, or CREATE [OR REPLACE] TABLE name AS either."""
    if not isinstance(text, str):
        raise SqlError(f"a query is a text, got {text!r}")
    if text.split(maxsplit=1)[:1] and text.split(maxsplit=1)[0].upper() == "EXPLAIN":
        raise SqlUnsupportedError("EXPLAIN is not read: call .explain() on the query, or run einsql explain FILE.sql")
    try:
        parsed = [s for s in sqlglot.parse(text, read="duckdb") if s is not None]
    except ParseError as error:
        raise _parse_error(text, error) from None
    except TokenError as error:
        raise SqlError(f"cannot read the text: {error}") from None
    except RecursionError:
        raise SqlError("the text nests too deeply; write its subqueries as WITH steps") from None
    if len(parsed) != 1:
        raise SqlError(f"one statement at a time, got {len(parsed)}")
    try:
        return _Reader(text, catalog).statement(parsed[0])
    except RecursionError:
        raise SqlError("the text nests too deeply; write its subqueries as WITH steps") from None


def _parse_error(text: str, error: ParseError) -> SqlError:
    first = error.errors[0] if error.errors else {}
    line, column = first.get("line") or 0, first.get("col") or 0
    lines = text.splitlines()
    message = re.sub(r"<class '[\w.]*?(\w+)'>", r"\1", str(first.get("description") or error).rstrip("."))
    width = len(first.get("highlight") or " ")
    return SqlError(
        f"not SQL: {message}", line, max(column - width + 1, 1), lines[line - 1] if 0 < line <= len(lines) else ""
    )


class _Reader:
    def __init__(self, text: str, catalog: Catalog) -> None:
        self.text, self.catalog = text, catalog

    def statement(self, node: exp.Expr) -> Statement:
        match node:
            case exp.Create() if node.kind == "TABLE" and isinstance(node.expression, (exp.Select, exp.Subquery)):
                if isinstance(node.this, exp.Schema):
                    raise refuse(self.text, node, "CREATE TABLE ... AS takes no column list", SqlUnsupportedError)
                if node.this.db or node.args.get("exists") or node.args.get("properties"):
                    message = "CREATE TABLE takes a bare name here: no schema, no IF NOT EXISTS, no TEMPORARY"
                    raise refuse(self.text, node, message, SqlUnsupportedError)
                if node.args.get("with_") is not None:
                    node.expression.set("with_", node.args["with_"])
                return Statement(self.query(node.expression, {}, ""), node.this.name, bool(node.args.get("replace")))
            case exp.Select() | exp.Subquery():
                return Statement(self.query(node, {}, ""))
        word = node.key.upper() if not isinstance(node, exp.Command) else str(node.this).upper()
        message = f"{word} is not read; einsql runs SELECT, WITH ... SELECT and CREATE TABLE ... AS"
        raise refuse(self.text, node, message, SqlUnsupportedError)

    def query(self, node: exp.Expr, outer: Tables, name: str) -> Table:
        """A SELECT with the WITH tables that it may read."""
        while isinstance(node, (exp.Subquery, exp.Paren)):
            node = node.this
        if not isinstance(node, exp.Select):
            raise refuse(
                self.text, node, f"{node.key.upper()} is not read; a relation is one SELECT", SqlUnsupportedError
            )
        tables = dict(outer)
        with_ = node.args.get("with_")
        if with_ is not None:
            if with_.args.get("recursive"):
                raise refuse(self.text, node, "WITH RECURSIVE is not read; write the steps out", SqlUnsupportedError)
            for cte in with_.expressions:
                self._add_cte(cte, tables)
        scope, conditions = self._from(node, tables)
        return SelectReader(self.text, node, scope, conditions, self.catalog.ones, self.catalog.domains).table(name)

    def _add_cte(self, cte: exp.CTE, tables: Tables) -> None:
        columns = cte.args["alias"].args.get("columns")
        table = self.query(cte.this, tables, cte.alias)
        if columns:
            table = self._rename(cte, table, [c.name for c in columns])
        group = tables.get(cte.alias.lower(), {})
        tables[cte.alias.lower()] = {**group, cte.alias: table}

    def _rename(self, node: exp.Expr, table: Table, columns: list[str]) -> Table:
        if len(columns) != len(table.columns):
            message = f"{len(columns)} column names for {len(table.columns)} columns: {', '.join(table.columns)}"
            raise refuse(self.text, node, message)
        for column in columns[:-1]:
            check_label(self.text, node, column)
        return Table(table.node, tuple(columns[:-1]), columns[-1])

    # ------------------------------------------------------------------------------------------------- FROM and JOIN

    def _from(self, select: exp.Select, tables: Tables) -> tuple[Scope, list[exp.Expr]]:
        from_ = select.args.get("from_")
        if from_ is None:
            raise refuse(self.text, select, "a tensor query reads at least one relation; write FROM")
        sources = [self._source(from_.this, tables, 0)]
        conditions: list[exp.Expr] = []
        using: set[str] = set()
        for join in select.args.get("joins") or []:
            self._refuse_join(join)
            sources.append(self._source(join.this, tables, len(sources)))
            if join.args.get("on") is not None:
                conditions.append(join.args["on"])
            for column in join.args.get("using") or []:
                conditions.append(self._using(column, sources))
                using.add(column.name.lower())
        if select.args.get("where") is not None:
            conditions.append(select.args["where"].this)
        aliases = [s.alias.lower() for s in sources]
        for source in sources:
            if aliases.count(source.alias.lower()) > 1:
                raise refuse(self.text, select, f"two tables in FROM are called {source.alias!r}; give one an alias")
        return Scope(self.text, tuple(sources), frozenset(using)), conditions

    def _refuse_join(self, join: exp.Join) -> None:
        side, method, kind = join.side, join.method, join.kind
        if side or kind in ("SEMI", "ANTI", "OUTER"):
            message = (
                f"{side or kind} JOIN is not read: an absent cell joins nothing; einsql reads inner and cross joins"
            )
            raise refuse(self.text, join, message, SqlUnsupportedError)
        if method:
            message = f"{method} JOIN is not read: it would match the value columns; write USING with the labels"
            raise refuse(self.text, join, message, SqlUnsupportedError)

    def _source(self, node: exp.Expr, tables: Tables, number: int) -> Source:
        match node:
            case exp.Subquery():
                self._refuse_extras(node)
                table = self._aliased(node, self.query(node.this, tables, node.alias))
                return Source(node.alias or f"subquery{number + 1}", table, number)
            case exp.Table() if isinstance(node.this, exp.Identifier) and not node.db:
                self._refuse_extras(node)
                return Source(node.alias or node.name, self._aliased(node, self._table(node, tables)), number)
        message = f"{node.sql(dialect='duckdb')} is not read in FROM; name a relation, a WITH table or a subquery"
        raise refuse(self.text, node, message, SqlUnsupportedError)

    def _aliased(self, node: exp.Expr, table: Table) -> Table:
        """The table under the column names of its alias, as in `A AS a(x, y, z)`."""
        columns = node.args["alias"].args.get("columns") if node.args.get("alias") else None
        return self._rename(node, table, [c.name for c in columns]) if columns else table

    def _refuse_extras(self, node: exp.Expr) -> None:
        extras = [word for word, value in node.args.items() if value and word not in ("this", "alias")]
        if extras:
            word = extras[0].strip("_").upper().replace("_", " ")
            message = f"{word} is not read in FROM; name a relation, a WITH table or a subquery"
            raise refuse(self.text, node, message, SqlUnsupportedError)

    def _table(self, node: exp.Table, tables: Tables) -> Table:
        name, quoted = node.name, bool(node.this.args.get("quoted"))
        near = tables.get(name.lower(), {})
        stored = [n for n in self.catalog.names() if n.lower() == name.lower()] if not near else []
        for names, find in ((list(near), near.__getitem__), (stored, self.catalog.find)):
            matches = [n for n in names if same_name(n, name, quoted)]
            if len(matches) > 1:
                both = ", ".join(f'"{n}"' for n in matches)
                raise refuse(self.text, node, f"table {name!r} matches {both}; quote the one you mean")
            if matches:
                return find(matches[0])
        known = [*(n for group in tables.values() for n in group), *self.catalog.names()]
        close = difflib.get_close_matches(name, known, n=1)
        hint = (
            f"; did you mean {close[0]!r}?"
            if close
            else f"; there are {', '.join(sorted(known))}"
            if known
            else "; none has been created"
        )
        raise refuse(self.text, node, f"no relation {name!r}{hint}")

    def _using(self, column: exp.Identifier, sources: list[Source]) -> exp.Expr:
        """USING (j) as the equality of the last source's column with the first earlier one."""
        quoted = bool(column.args.get("quoted"))

        def find(source: Source) -> str | None:
            matches = [c for c in source.table.labels if same_name(c, column.name, quoted)]
            return matches[0] if len(matches) == 1 else None

        right = find(sources[-1])
        left = next(((s, name) for s in sources[:-1] if (name := find(s)) is not None), None)
        if right is None or left is None:
            listed = "; ".join(f"{s.alias} has {', '.join(s.table.labels)}" for s in sources)
            raise refuse(self.text, column, f"USING ({column.name}) wants that label on both sides: {listed}")

        def reference(source: Source, name: str) -> exp.Column:
            made = exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(source.alias, quoted=True))
            made.this.meta.update(column.meta)
            return made

        return exp.EQ(this=reference(*left), expression=reference(sources[-1], right))
