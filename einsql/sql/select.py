"""One SELECT over tensor relations: sources joined on labels, predicates on labels, label columns and one value column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from einsql.sql.errors import position, refuse
from einsql.sql.names import VALUE, LabelColumn, Scope, Source, Table, ValueColumn, same_name
from einsql.sql.scalars import ScalarReader
from planner.dtypes import BOOL, INT64
from planner.einsum import Einsum, Fill, Filter, Map, Tensor
from planner.errors import EinsqlError, SqlUnsupportedError
from planner.passes.push_predicates import conjunction
from planner.scalar import Arg, Call, Cast, Const, Expr, LabelValue, args_of, substitute
from planner.scalar_types import typed
from planner.subscripts import Subscripts

AGGREGATES: dict[type, str] = {
    exp.Sum: "sum", exp.Max: "max", exp.Min: "min", exp.LogicalOr: "any", exp.LogicalAnd: "all", exp.Count: "count", exp.Avg: "avg",
}  # fmt: skip

# Parts of a SELECT that have no meaning for a tensor, with what to do instead.
CLAUSES = {
    "distinct": "DISTINCT is not read: coordinates are distinct already",
    "having": "HAVING is not read: aggregate in a WITH, then use a CASE",
    "order": "ORDER BY is not read: a relation has no order; results come sorted by their labels",
    "limit": "LIMIT is not read: a relation has no order",
    "offset": "OFFSET is not read: a relation has no order",
    "qualify": "QUALIFY is not read: window functions are not tensor operations",
    "windows": "WINDOW is not read: window functions are not tensor operations",
    "sample": "a sample is no tensor operation",
    "laterals": "LATERAL is not read: join the relation",
    "pivots": "PIVOT is not read",
    "into": "SELECT INTO is not read: write CREATE TABLE name AS SELECT",
    "locks": "locks have no meaning here",
    "kind": "SELECT AS STRUCT and AS VALUE are not read",
}


@dataclass(frozen=True)
class _Output:
    """One column of the select list."""

    name: str
    node: exp.Expr
    label: LabelColumn | None


class SelectReader:
    """Reads one SELECT whose sources are known."""

    def __init__(self, text: str, select: exp.Select, scope: Scope, conditions: Sequence[exp.Expr]) -> None:
        self.text, self.select, self.scope = text, select, scope
        self._refuse_clauses()
        self._classes: dict[tuple[int, int], tuple[int, int]] = {}
        predicates = [part for condition in conditions for part in _conjuncts(condition)]
        rest = [part for part in predicates if not self._equate(part)]
        self.outputs = self._outputs()
        self.names = self._label_names()
        self.where = conjunction([self._predicate(part) for part in rest])

    # ---------------------------------------------------------------------------------------------------- the parts

    def _refuse_clauses(self) -> None:
        for clause, reason in CLAUSES.items():
            value = self.select.args.get(clause)
            if value:
                node = value[0] if isinstance(value, list) else value
                at = node if isinstance(node, exp.Expr) and position(node) != (0, 0) else self.select
                raise refuse(self.text, at, reason, SqlUnsupportedError)

    def _find(self, axis: tuple[int, int]) -> tuple[int, int]:
        while self._classes.setdefault(axis, axis) != axis:
            axis = self._classes[axis]
        return axis

    def _equate(self, part: exp.Expr) -> bool:
        """Join on a label: `a.j = b.j` between two label columns makes them one label."""
        while isinstance(part, exp.Paren):
            part = part.this
        if not (isinstance(part, exp.EQ) and isinstance(part.this, exp.Column) and isinstance(part.expression, exp.Column)):
            return False
        left, right = self.scope.resolve(part.this), self.scope.resolve(part.expression)
        if not (isinstance(left, LabelColumn) and isinstance(right, LabelColumn)):
            return False
        a, b = sorted((self._find((left.source, left.axis)), self._find((right.source, right.axis))))
        self._classes[b] = a
        return True

    def _outputs(self) -> list[_Output]:
        found = []
        for node in self._starless():
            inner = node.unalias()
            meaning = self.scope.resolve(inner) if isinstance(inner, exp.Column) else None
            name = node.alias or (inner.name if isinstance(inner, exp.Column) else VALUE)
            found.append(_Output(name, inner, meaning if isinstance(meaning, LabelColumn) else None))
        values = [o for o in found if o.label is None]
        if len(values) != 1:
            many = "no value column" if not values else f"{len(values)} value columns: {', '.join(o.name for o in values)}"
            at = values[1].node if values else self.select
            raise refuse(self.text, at, f"a tensor query selects its labels and exactly one value, got {many}")
        seen: dict[str, str] = {}
        for output in found:
            if output.name in seen:
                raise refuse(self.text, output.node, f"two output columns are called {output.name!r}; rename one with AS")
            seen[output.name] = output.name
        labels = [o.name for o in found if o.label is not None]
        if VALUE in labels:
            raise refuse(self.text, self.select, f"a label cannot be called {VALUE!r}: that is the value column")
        return found

    def _starless(self) -> list[exp.Expr]:
        """The select list with `*` and `t.*` written out."""
        found: list[exp.Expr] = []
        for node in self.select.expressions:
            star = isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))
            if not star:
                found.append(node)
                continue
            table = node.args.get("table") if isinstance(node, exp.Column) else None
            for source in [self.scope.source(table)] if table is not None else self.scope.sources:
                for name in source.table.columns:
                    shown = any(same_name(name, o.name, False) for o in found if isinstance(o, exp.Column))
                    if not (shown and name.lower() in self.scope.using):
                        found.append(exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(source.alias, quoted=True)))
        return found

    def _label_names(self) -> dict[tuple[int, int], str]:
        """A name for every label: how the output calls it, else its column's; distinct."""
        names: dict[tuple[int, int], str] = {}
        for output in self.outputs:
            if output.label is not None:
                names.setdefault(self._find((output.label.source, output.label.axis)), output.name)
        for source in self.scope.sources:
            for axis, name in enumerate(source.table.labels):
                root = self._find((source.number, axis))
                if root not in names:
                    taken, number = set(names.values()), 2
                    fresh = name
                    while fresh in taken:
                        fresh, number = f"{name}{number}", number + 1
                    names[root] = fresh
        return names

    def _label(self, column: LabelColumn) -> str:
        return self.names[self._find((column.source, column.axis))]

    def _column(self, node: exp.Expr) -> Expr | None:
        if not isinstance(node, exp.Column):
            return None
        meaning = self.scope.resolve(node)
        return Arg(meaning.source) if isinstance(meaning, ValueColumn) else LabelValue(self._label(meaning))

    def _predicate(self, node: exp.Expr) -> Expr:
        expr = ScalarReader(self.text, self._column).read(node)
        if args_of(expr):
            message = "a condition in WHERE or ON reads labels only; values belong in a CASE of the select list"
            raise refuse(self.text, node, message, SqlUnsupportedError)
        return expr

    # ---------------------------------------------------------------------------------------------------- the result

    def table(self, name: str) -> Table:
        """The relation that the SELECT describes."""
        labels = [o for o in self.outputs if o.label is not None]
        value = next(o for o in self.outputs if o.label is None)
        kept = tuple(self.names[self._find((o.label.source, o.label.axis))] for o in labels if o.label is not None)
        if len(set(kept)) != len(kept):
            raise refuse(self.text, self.select, "two output columns are the same label; select it once")
        if self._aggregates(value.node) or self.select.args.get("group"):
            self._check_group(labels)
            node = self._aggregate(value, kept)
        else:
            node = self._project(value, kept)
        return Table(_named(node, name), tuple(o.name for o in labels), value.name)

    def _aggregates(self, node: exp.Expr) -> list[exp.Expr]:
        return [part for part in node.walk(prune=lambda n: type(n) in AGGREGATES or _is_product(n)) if type(part) in AGGREGATES or _is_product(part)]

    def _project(self, value: _Output, kept: tuple[str, ...]) -> Tensor:
        """No aggregate: every label must come out, or rows would repeat."""
        dropped = sorted(set(self.names.values()) - set(kept))
        if dropped:
            message = f"label {dropped[0]!r} is not selected, so rows would repeat; select it, or aggregate and GROUP BY {', '.join(kept) or '()'}"
            raise refuse(self.text, self.select, message)
        expr = ScalarReader(self.text, self._column).read(value.node)
        return self._einsum(expr, None, kept, self.where)

    def _einsum(self, combine: Expr, reduce: str | None, kept: tuple[str, ...], where: Expr | None) -> Tensor:
        sides = tuple(
            tuple(self.names[self._find((source.number, axis))] for axis in range(len(source.table.labels)))
            for source in self.scope.sources
        )
        operands = tuple(source.table.node for source in self.scope.sources)
        return elementwise_or_einsum(operands, Subscripts(sides, kept), combine, reduce, where)

    def _check_group(self, labels: list[_Output]) -> None:
        group = self.select.args.get("group")
        wanted = {self._label(o.label) for o in labels if o.label is not None}
        if group is None:
            if labels:
                message = f"column {labels[0].name!r} stands beside an aggregate but not in GROUP BY"
                raise refuse(self.text, labels[0].node, message)
            return
        for clause in ("rollup", "cube", "grouping_sets"):
            if group.args.get(clause):
                raise refuse(self.text, self.select, f"GROUP BY {clause.replace('_', ' ').upper()} is not read", SqlUnsupportedError)
        if group.args.get("all"):
            return
        grouped = {self._group_label(node) for node in group.expressions}
        for output in labels:
            assert output.label is not None
            if self._label(output.label) not in grouped:
                raise refuse(self.text, output.node, f"column {output.name!r} stands beside an aggregate but not in GROUP BY")
        extra = sorted(grouped - wanted)
        if extra:
            raise refuse(self.text, group.expressions[0], f"GROUP BY names {extra[0]!r}, which is not selected, so rows would repeat; select it")

    def _group_label(self, node: exp.Expr) -> str:
        if isinstance(node, exp.Literal) and not node.is_string and node.this.isdecimal():
            number = int(node.this)
            if not 1 <= number <= len(self.outputs) or self.outputs[number - 1].label is None:
                raise refuse(self.text, node, f"GROUP BY {number} is no label of the select list")
            label = self.outputs[number - 1].label
            assert label is not None
            return self._label(label)
        if isinstance(node, exp.Column):
            meaning = self._group_column(node)
            if isinstance(meaning, LabelColumn):
                return self._label(meaning)
        raise refuse(self.text, node, f"GROUP BY {node.sql(dialect='duckdb')} is not read; group by label columns", SqlUnsupportedError)

    def _group_column(self, node: exp.Column) -> LabelColumn | ValueColumn:
        try:
            return self.scope.resolve(node)
        except EinsqlError:
            quoted = bool(node.this.args.get("quoted"))
            for output in self.outputs:  # an alias of the select list
                if output.label is not None and not node.table and same_name(output.name, node.name, quoted):
                    return output.label
            raise

    def _aggregate(self, value: _Output, kept: tuple[str, ...]) -> Tensor:
        """An expression over aggregates: one einsum each, then a map over their results."""
        found = self._aggregates(value.node)
        parts: list[Tensor] = []
        meaning: dict[int, Expr] = {}
        for node in found:
            meaning[id(node)] = self._one_aggregate(node, kept, parts)

        def leaf(node: exp.Expr) -> Expr | None:
            if id(node) in meaning:
                return meaning[id(node)]
            column = self._column(node)
            if isinstance(column, Arg):
                raise refuse(self.text, node, f"column {node.sql()!r} stands beside an aggregate but not inside one")
            if isinstance(column, LabelValue) and column.label not in kept:
                raise refuse(self.text, node, f"column {node.sql()!r} stands beside an aggregate but not in GROUP BY")
            return column

        expr = ScalarReader(self.text, leaf).read(value.node)
        if not parts:
            raise refuse(self.text, value.node, "GROUP BY without an aggregate; write SUM, MIN, MAX, COUNT or AVG over the value")
        if expr == Arg(0) and len(parts) == 1:
            return parts[0]
        return elementwise_or_einsum(tuple(parts), Subscripts((kept,) * len(parts), kept), expr, None, None)

    def _one_aggregate(self, node: exp.Expr, kept: tuple[str, ...], parts: list[Tensor]) -> Expr:
        """The einsum of one aggregate, appended to `parts`; how the outer expression reads it."""
        name = "prod" if _is_product(node) else AGGREGATES[type(node)]
        inner = node.expressions[0] if _is_product(node) else node.this
        if name == "count" and (isinstance(inner, exp.Star) or inner is None):
            where = self.where
            combine: Expr = Const(1)
        else:
            combine, where = self._inside(inner)
        if name == "count":
            # COUNT(CASE WHEN test THEN x END) counts rows and leaves none out: a group without any has 0.
            kept_out = None if where is self.where else where if self.where is None else where.args[1]  # type: ignore[union-attr]
            combine = Cast(Const(1), INT64) if kept_out is None else Call("case", (kept_out, Const(1), Const(0)))
            where, name = self.where, "sum"
        if name == "avg":
            total = self._add(parts, self._einsum(combine, "sum", kept, where))
            dtype = parts[total.index].type.dtype  # a mean of float32 stays float32, as a sum does
            one = Cast(Const(1), dtype if dtype.is_float else INT64)
            return Call("div", (total, self._add(parts, self._einsum(one, "sum", kept, where))))
        if name in ("sum", "prod"):
            combine = _counted(combine, self.scope.sources)
        result = self._einsum(combine, name, kept, where)
        counts_nothing = isinstance(node, exp.Count) and not kept  # a count of no rows at all is 0, not NULL
        return self._add(parts, Fill(result, 0) if counts_nothing else result)

    def _add(self, parts: list[Tensor], node: Tensor) -> Arg:
        parts.append(node)
        return Arg(len(parts) - 1)

    def _inside(self, node: exp.Expr) -> tuple[Expr, Expr | None]:
        """The argument of an aggregate; a CASE without ELSE over labels leaves rows out."""
        bare = node
        while isinstance(bare, exp.Paren):
            bare = bare.this
        if isinstance(bare, exp.Distinct):
            raise refuse(self.text, node, "DISTINCT inside an aggregate is not read", SqlUnsupportedError)
        reader = ScalarReader(self.text, self._column)
        if isinstance(bare, exp.Case) and bare.args.get("default") is None and len(bare.args["ifs"]) == 1 and bare.this is None:
            branch = bare.args["ifs"][0]
            test = self._predicate(branch.this)
            both = test if self.where is None else Call("and", (self.where, test))
            return reader.read(branch.args["true"]), both
        for part in node.walk():
            if part is not node and (type(part) in AGGREGATES or _is_product(part)):
                raise refuse(self.text, part, "an aggregate cannot stand inside another; aggregate in a WITH first")
        return reader.read(node), self.where


def elementwise_or_einsum(
    operands: tuple[Tensor, ...], subscripts: Subscripts, combine: Expr, reduce: str | None, where: Expr | None
) -> Tensor:
    """An Einsum, or the Map and Filter that say the same of one operand whose labels all stay where they are."""
    if len(operands) != 1 or subscripts.inputs[0] != subscripts.output:
        return Einsum(operands, subscripts, combine, reduce, where)
    node = operands[0]
    names = dict(zip(subscripts.output, node.type.labels, strict=True))
    if where is not None:
        node = Filter(node, substitute(where, labels=names))
    return node if combine == Arg(0) else Map(node, substitute(combine, labels=names))


def _named(node: Tensor, name: str) -> Tensor:
    """`node` under the name that the query gives it, unless it already has one."""
    return replace(node, name=name) if name and not node.name else node


def _counted(combine: Expr, sources: Sequence[Source]) -> Expr:
    """SUM counts booleans."""
    dtype = typed(combine, [source.table.node.type.dtype for source in sources])[1]
    return Cast(combine, INT64) if dtype == BOOL else combine


def _is_product(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == "product" and len(node.expressions) == 1


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    while isinstance(node, exp.Paren):
        node = node.this
    return [*_conjuncts(node.left), *_conjuncts(node.right)] if isinstance(node, exp.And) else [node]
