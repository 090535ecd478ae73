"""Form 2 as SQL: a script of steps that sqlglot writes.

The text depends on the storage class of each relation, never on the number or size of its blocks. A relation of single
cells has columns k0, k1, ..., val, and a step over such relations is ordinary SQL; any other has a `block` column of
handles, and kernels are functions over handles. Column names are positional, because DuckDB folds case.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from planner import relational as rel
from planner.cuts import Cut
from planner.node import postorder
from planner.predicates import conjunction, conjuncts, keys_decide
from planner.relation_type import Label, RelationType
from planner.scalar import Arg, Call, Const
from planner.scalar_text import text
from planner.sqlgen_scalar import ScalarWriter, literal
from planner.subscripts import Subscripts


@dataclass(frozen=True)
class SqlStep:
    """CREATE TEMP TABLE name AS query; tables in `free` are dropped after it."""

    name: str
    query: exp.Select
    type: RelationType
    free: tuple[str, ...]


@dataclass
class Script:
    """Steps in order, and the tables that must be there first.

    scans      table -> stored relation and the type under which it is read
    grids      table -> type whose every key it lists, with handles of empty blocks
    overlaps   table -> two cuts of one label whose parts (s, k) overlap
    """

    scans: dict[str, tuple[str, RelationType]] = field(default_factory=dict)
    grids: dict[str, RelationType] = field(default_factory=dict)
    overlaps: dict[str, tuple[Cut, Cut]] = field(default_factory=dict)
    steps: list[SqlStep] = field(default_factory=list)
    result: str = ""
    result_type: RelationType | None = None

    def sql(self, dialect: str = "duckdb") -> str:
        """The text of the script, one statement per step."""
        parts = []
        for step in self.steps:
            query = step.query.sql(dialect=dialect, pretty=True)
            parts.append(f"CREATE TEMPORARY TABLE {_identifier(step.name).sql(dialect=dialect)} AS\n{query};")
            parts += [f"DROP TABLE {_identifier(name).sql(dialect=dialect)};" for name in step.free]
        last = exp.select("*").from_(_table(self.result))
        return "\n\n".join([*parts, f"{last.sql(dialect=dialect)};"]) + "\n"


def generate_script(plan: rel.Rel) -> Script:
    """The script that computes `plan`."""
    return _Writer(plan).script


def _identifier(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=not (name.isidentifier() and name.isascii()))


def _table(name: str, alias: str = "") -> exp.Table:
    return exp.Table(this=_identifier(name), alias=exp.TableAlias(this=exp.to_identifier(alias)) if alias else None)


def _column(table: str, name: str) -> exp.Column:
    return exp.Column(this=exp.to_identifier(name), table=exp.to_identifier(table))


def _payload(type: RelationType) -> str:
    return "val" if type.storage == "scalar" else "block"


def _as(expression: exp.Expr, name: str) -> exp.Alias:
    return exp.Alias(this=expression, alias=exp.to_identifier(name))


def _call(name: str, *args: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=list(args))


def _conjunction(parts: Sequence[exp.Expr]) -> exp.Expr | None:
    found = list(parts)
    while len(found) > 1:  # balanced, so that a hundred labels do not nest a hundred deep
        found = [
            exp.And(this=found[i], expression=found[i + 1]) if i + 1 < len(found) else found[i]
            for i in range(0, len(found), 2)
        ]
    return found[0] if found else None


class _Writer:
    """The script of one plan. `names` maps every node to the table that holds it."""

    def __init__(self, plan: rel.Rel) -> None:
        self.script = Script()
        self.names: dict[rel.Rel, str] = {}
        self.taken: set[str] = set()
        order = postorder(plan)
        last_use = {arg: node for node in order for arg in node.args}
        for node in order:
            if isinstance(node, rel.Scan):
                self._scan(node)
                continue
            query = self._query(node)
            name = self._fresh(node.name)
            self.names[node] = name
            free = [
                self.names[a] for a in dict.fromkeys(node.args) if last_use[a] is node and not isinstance(a, rel.Scan)
            ]
            self.script.steps.append(SqlStep(name, query, node.type, tuple(free)))
        self.script.result, self.script.result_type = self.names[plan], plan.type

    def _fresh(self, wanted: str) -> str:
        name, number = wanted, 2
        while name.lower() in self.taken:
            name, number = f"{wanted}_{number}", number + 1
        self.taken.add(name.lower())
        return name

    def _scan(self, node: rel.Scan) -> None:
        for name, (relation, type) in self.script.scans.items():
            if (relation, type) == (node.name, node.type):
                self.names[node] = name
                return
        self.names[node] = self._fresh(node.name)
        self.script.scans[self.names[node]] = (node.name, node.type)

    def _query(self, node: rel.Rel) -> exp.Select:
        match node:
            case rel.Join():
                return self._scalar_join(node) if node.type.storage == "scalar" else self._block_join(node)
            case rel.Map():
                return self._map(node)
            case rel.Filter():
                return self._filter(node)
            case rel.Fill():
                return self._fill(node)
            case rel.Exchange():
                return self._retile(node)
        raise AssertionError(node)

    # ------------------------------------------------------------------------------------------------------- joins

    def _joined(self, node: rel.Join) -> tuple[exp.Select, dict[Label, exp.Column], list[str]]:
        """FROM and JOIN over the operands; the key column of every label; the aliases."""
        aliases = [f"x{i}" for i in range(len(node.operands))]
        keys: dict[Label, exp.Column] = {}
        query = exp.Select()
        for i, (alias, labels, operand) in enumerate(zip(aliases, node.subscripts.inputs, node.operands, strict=True)):
            conditions = []
            for axis, label in enumerate(labels):
                column = _column(alias, f"k{axis}")
                if label in keys:
                    conditions.append(exp.EQ(this=keys[label].copy(), expression=column))
                else:
                    keys[label] = column
            table = _table(self.names[operand], alias)
            on = _conjunction(conditions)
            if i == 0:
                query = query.from_(table, copy=False)
                query = query.where(on, copy=False) if on is not None else query
            elif on is None:
                query = query.join(table, join_type="cross", copy=False)
            else:
                query = query.join(table, on=on, copy=False)
        return query, keys, aliases

    def _scalar_join(self, node: rel.Join) -> exp.Select:
        query, keys, aliases = self._joined(node)
        values = [_column(alias, "val") for alias in aliases]
        dtypes = [operand.type.dtype for operand in node.operands]
        writer = ScalarWriter(values, keys, dtypes)
        if node.where is not None:
            query = query.where(writer.write(node.where))
        outputs = [_as(keys[label].copy(), f"k{i}") for i, label in enumerate(node.subscripts.output)]
        value = writer.write(node.combine)
        if node.reduce is None:
            return query.select(*outputs, _as(value, "val"))
        query = query.select(*outputs, _as(writer.aggregate(node.reduce, value, node.combined_dtype), "val"))
        return self._grouped(query, [keys[label] for label in node.subscripts.output])

    def _grouped(self, query: exp.Select, keys: Sequence[exp.Column]) -> exp.Select:
        """GROUP BY the keys; without any, no rows give no row."""
        if keys:
            return query.group_by(*(key.copy() for key in keys), copy=False)
        count = exp.Count(this=exp.Star())
        return query.having(exp.GT(this=count, expression=exp.Literal.number(0)))

    def _block_join(self, node: rel.Join) -> exp.Select:
        query, keys, aliases = self._joined(node)
        decided = conjunction([part for part in conjuncts(node.where) if keys_decide(part, node.label_cuts)])
        if decided is not None:
            query = query.where(ScalarWriter([], keys, []).write(decided))
        order = [keys[label] for label in node.subscripts.contracted]
        plain = [i for i, operand in enumerate(node.operands) if operand.type.storage == "scalar"]
        columns = list(self._operand_columns(node, aliases, plain))
        outputs = [_as(keys[label].copy(), f"k{i}") for i, label in enumerate(node.subscripts.output)]
        strings = self._strings(node, plain)
        if node.reduce is None:
            return query.select(*outputs, _as(_call("BLOCK_COMBINE", *strings, *columns), "block"), copy=False)
        lists = [_call("LIST", _ordered(column, order)) for column in columns]
        value = _call(f"CONTRACT_{node.reduce.upper()}", *strings, *lists)
        query = query.select(*outputs, _as(value, "block"), copy=False)
        return self._grouped(query, [keys[label] for label in node.subscripts.output])

    def _operand_columns(self, node: rel.Join, aliases: Sequence[str], plain: Sequence[int]) -> Iterator[exp.Expr]:
        for i, (alias, labels, operand) in enumerate(zip(aliases, node.subscripts.inputs, node.operands, strict=True)):
            yield _column(alias, _payload(operand.type))
            if i in plain:
                yield from (_column(alias, f"k{axis}") for axis in range(len(labels)))

    def _strings(self, node: rel.Join, plain: Sequence[int]) -> list[exp.Expr]:
        product = node.combine == Call("mul", (Arg(0), Arg(1)))
        where = text(node.where) if node.where is not None else ""
        strings = [
            str(node.subscripts),
            "" if product and node.reduce else text(node.combine),
            where,
            " ".join(map(str, plain)),
        ]
        while not strings[-1]:
            strings.pop()
        return [exp.Literal.string(s) for s in strings]

    # -------------------------------------------------------------------------------------------------- row by row

    def _rows(self, node: rel.RowWise) -> tuple[exp.Select, list[exp.Expr], dict[Label, exp.Column]]:
        keys = {label: _column("x0", f"k{i}") for i, label in enumerate(node.type.labels)}
        return exp.Select().from_(_table(self.names[node.arg], "x0")), [key.copy() for key in keys.values()], keys

    def _map(self, node: rel.Map) -> exp.Select:
        query, columns, keys = self._rows(node)
        if node.type.storage == "scalar":
            writer = ScalarWriter([_column("x0", "val")], keys, [node.arg.type.dtype])
            return query.select(*columns, _as(writer.write(node.expr), "val"))
        if node.arg.type.storage == "scalar":  # no column holds the result
            same = str(Subscripts((node.type.labels,), node.type.labels))
            strings = [exp.Literal.string(s) for s in (same, text(node.expr), "", "0")]
            value = _call("BLOCK_COMBINE", *strings, _column("x0", "val"), *(c.copy() for c in columns))
            return query.select(*columns, _as(value, "block"))
        value = _call("BLOCK_MAP", _names(node.type), exp.Literal.string(text(node.expr)), _column("x0", "block"))
        return query.select(*columns, _as(value, "block"))

    def _filter(self, node: rel.Filter) -> exp.Select:
        query, columns, keys = self._rows(node)
        if node.type.storage == "scalar":
            writer = ScalarWriter([_column("x0", "val")], keys, [node.type.dtype])
            return query.select(*columns, _column("x0", "val")).where(writer.write(node.where))
        value = _call("BLOCK_KEEP", _names(node.type), exp.Literal.string(text(node.where)), _column("x0", "block"))
        return query.select(*columns, _as(value, "block"))

    def _fill(self, node: rel.Fill) -> exp.Select:
        grid = self._grid(node.type)
        rank = len(node.type.labels)
        on = _conjunction([exp.EQ(this=_column("g", f"k{i}"), expression=_column("x0", f"k{i}")) for i in range(rank)])
        query = exp.Select().from_(_table(grid, "g")).select(*(_column("g", f"k{i}") for i in range(rank)))
        query = query.join(
            _table(self.names[node.arg], "x0"), on=on if on is not None else exp.true(), join_type="left"
        )
        if node.type.storage == "scalar":
            value = exp.Coalesce(this=_column("x0", "val"), expressions=[literal(node.value, node.type.dtype)])
            return query.select(_as(value, "val"))
        block = exp.Coalesce(this=_column("x0", "block"), expressions=[_column("g", "block")])
        return query.select(_as(_call("BLOCK_FILL", exp.Literal.string(text(Const(node.value))), block), "block"))

    def _grid(self, type: RelationType) -> str:
        """The table of all keys of a type, made once."""
        for name, known in self.script.grids.items():
            if known == type:
                return name
        name = self._fresh(f"grid_{len(self.script.grids) + 1}")
        self.script.grids[name] = type
        return name

    def _retile(self, node: rel.Exchange) -> exp.Select:
        """Blocks under another cut; the tables of overlapping parts are the one place where parts are named."""
        source, rank = node.arg.type, len(node.type.labels)
        grid = self._grid(node.type)
        query = exp.Select().from_(_table(self.names[node.arg], "x0"))
        for i, (old, new) in enumerate(zip(source.cuts, node.cuts, strict=True)):
            name = self._fresh(f"overlap_{len(self.script.overlaps) + 1}")
            self.script.overlaps[name] = (old, new)
            query = query.join(
                _table(name, f"o{i}"), on=exp.EQ(this=_column(f"o{i}", "s"), expression=_column("x0", f"k{i}"))
            )
        on = _conjunction([exp.EQ(this=_column("g", f"k{i}"), expression=_column(f"o{i}", "k")) for i in range(rank)])
        query = (
            query.join(_table(grid, "g"), on=on) if on is not None else query.join(_table(grid, "g"), join_type="cross")
        )
        keys = [_column("g", f"k{i}") for i in range(rank)]
        order = [_column("x0", f"k{i}") for i in range(rank)]
        columns = [_payload(source)] + [f"k{i}" for i in range(rank)] * (source.storage == "scalar")
        lists = [_call("LIST", _ordered(_column("x0", column), order)) for column in columns]
        function = "BLOCK_ASSEMBLE" if source.storage == "scalar" else "BLOCK_RETILE"
        value = _call(function, _column("g", "block"), *lists)
        return query.select(*keys, _as(value, "block")).group_by(*(k.copy() for k in keys), _column("g", "block"))


def _ordered(column: exp.Expr, order: Sequence[exp.Column]) -> exp.Expr:
    """`column ORDER BY order`: the order inside a group varies from run to run otherwise."""
    if not order:
        return column
    return exp.Order(this=column, expressions=[exp.Ordered(this=key.copy(), nulls_first=False) for key in order])


def _names(type: RelationType) -> exp.Literal:
    return exp.Literal.string(" ".join(type.labels))
