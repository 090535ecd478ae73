"""One SELECT over tensor relations: sources joined on labels, predicates on labels, one value column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from sqlglot import exp

from einsql.graph_domains import GraphDomains
from einsql.sql.aggregate import AggregateReader, find_aggregates
from einsql.sql.dictionary import Dictionaries
from einsql.sql.elementwise import elementwise_or_einsum
from einsql.sql.errors import located, position, refuse
from einsql.sql.names import VALUE, LabelColumn, Scope, Source, Table, ValueColumn, check_label, same_name
from einsql.sql.scalars import ScalarReader
from planner.einsum import Tensor
from planner.errors import ShapeError, SqlUnsupportedError
from planner.predicates import bounds, conjunction, conjuncts, determined, inverted, never_negative
from planner.scalar import Arg, Call, Expr, LabelValue
from planner.subscripts import Subscripts

# Parts of a SELECT that have no meaning for a tensor, with what to do instead.
CLAUSES = {
    "distinct": "DISTINCT is not read: coordinates are distinct already",
    "having": "HAVING is not read: aggregate in a WITH, then say WHERE of its value",
    "order": "ORDER BY is not read: a relation has no order; results come sorted by their labels",
    "limit": "LIMIT is not read: a relation has no order",
    "offset": "OFFSET is not read: a relation has no order",
    "qualify": "QUALIFY is not read: window functions are not tensor operations",
    "windows": "OVER is not read: window functions are not tensor operations",
    "sample": "a sample is no tensor operation",
    "laterals": "LATERAL is not read: join the relation",
    "pivots": "PIVOT is not read",
    "into": "SELECT INTO is not read: write CREATE TABLE name AS SELECT",
    "locks": "locks have no meaning here",
    "kind": "SELECT AS STRUCT and AS VALUE are not read",
}

READ = frozenset({"with_", "expressions", "from_", "joins", "where", "group"})  # what a SELECT is made of here


@dataclass(frozen=True)
class Output:
    """One column of the select list: a label, a label that is computed from others as in `t + 1 AS t`, or the value."""

    name: str
    node: exp.Expr
    label: LabelColumn | None
    computed: bool = False

    @property
    def is_value(self) -> bool:
        return self.label is None and not self.computed


class SelectReader:
    """Reads one SELECT whose sources are known."""

    def __init__(
        self,
        text: str,
        select: exp.Select,
        scope: Scope,
        conditions: Sequence[exp.Expr],
        ones: Callable[[str, int], Tensor],
        domains: GraphDomains,
    ) -> None:
        self.text, self.select, self.scope, self.ones = text, select, scope, ones
        self._refuse_clauses()
        self._classes: dict[tuple[int, int], tuple[int, int]] = {}
        predicates = [part for condition in conditions for part in _conjuncts(condition)]
        rest = [part for part in predicates if not self._equate(part)]
        self.scope = Dictionaries(scope, domains, self.label).unified([*conditions, *select.expressions])
        self.dictionaries = Dictionaries(self.scope, domains, self.label)
        self.outputs = self._outputs()
        self.names = self._label_names()
        self.where = conjunction([self.predicate(part) for part in rest])
        self.computed = {o.name: self._coordinate(o) for o in self.outputs if o.computed}

    # ---------------------------------------------------------------------------------------------------- the parts

    def _refuse_clauses(self) -> None:
        for clause, reason in CLAUSES.items():
            value = self.select.args.get(clause)
            if value:
                node = value[0] if isinstance(value, list) else value
                at = node if isinstance(node, exp.Expr) and position(node) != (0, 0) else self.select
                raise refuse(self.text, at, reason, SqlUnsupportedError)
        others = [clause for clause, value in self.select.args.items() if value and clause not in READ]
        if others:
            message = f"{others[0].strip('_').upper().replace('_', ' ')} is not read in a SELECT"
            raise refuse(self.text, self.select, message, SqlUnsupportedError)

    def _find(self, axis: tuple[int, int]) -> tuple[int, int]:
        while self._classes.setdefault(axis, axis) != axis:
            axis = self._classes[axis]
        return axis

    def _equate(self, part: exp.Expr) -> bool:
        """Join on a label: `a.j = b.j` between two label columns makes them one label."""
        while isinstance(part, exp.Paren):
            part = part.this
        if not (
            isinstance(part, exp.EQ) and isinstance(part.this, exp.Column) and isinstance(part.expression, exp.Column)
        ):
            return False
        left, right = self.scope.resolve(part.this), self.scope.resolve(part.expression)
        if not (isinstance(left, LabelColumn) and isinstance(right, LabelColumn)):
            return False
        a, b = sorted((self._find((left.source, left.axis)), self._find((right.source, right.axis))))
        self._classes[b] = a
        return True

    def _outputs(self) -> list[Output]:
        found = []
        for node in self._starless():
            inner = node.unalias()
            meaning = self.scope.resolve(inner) if isinstance(inner, exp.Column) else None
            name = node.alias or (inner.name if isinstance(inner, exp.Column) else VALUE)
            window = node.find(exp.Window)
            if window is not None:
                raise refuse(self.text, window, CLAUSES["windows"], SqlUnsupportedError)
            found.append(Output(name, inner, meaning if isinstance(meaning, LabelColumn) else None))
        if sum(o.is_value for o in found) > 1:
            found = [replace(o, computed=o.is_value and self._is_coordinate(o)) for o in found]
        values = [o for o in found if o.is_value]
        if len(values) != 1:
            many = (
                "no value column" if not values else f"{len(values)} value columns: {', '.join(o.name for o in values)}"
            )
            at = values[1].node if values else self.select
            raise refuse(self.text, at, f"a tensor query selects its labels and exactly one value, got {many}")
        seen: dict[str, str] = {}
        for output in found:
            if output.name in seen:
                raise refuse(
                    self.text, output.node, f"two output columns are called {output.name!r}; rename one with AS"
                )
            seen[output.name] = output.name
        for output in found:
            if not output.is_value:
                check_label(self.text, output.node, output.name)
        return found

    def _is_coordinate(self, output: Output) -> bool:
        """Whether a column beside another value column is a label computed from labels."""
        if output.name.lower() == VALUE or find_aggregates(output.node):
            return False
        columns = list(output.node.find_all(exp.Column))
        return bool(columns) and all(isinstance(self.scope.resolve(c), LabelColumn) for c in columns)

    def _coordinate(self, output: Output) -> tuple[Expr, int]:
        """A computed label as an expression over labels, and its extent: one more than its largest value."""
        expr = ScalarReader(self.text, self.column).read(output.node)
        inside = bounds(expr, {label: (0, max(extent - 1, 0)) for label, extent in self.extents.items()})
        if inside is None:
            message = (
                f"label {output.name!r} is computed in a way whose range is not known; use +, -, *, // and % of labels"
            )
            raise refuse(self.text, output.node, message, SqlUnsupportedError)
        if inside[0] < 0 and not never_negative(expr, conjuncts(self.where)):
            message = (
                f"label {output.name!r} may be {inside[0]}, and coordinates start at 0; say in WHERE which rows to keep"
            )
            raise refuse(self.text, output.node, message)
        return expr, max(inside[1] + 1, 0)

    @cached_property
    def extents(self) -> dict[str, int]:
        """The extent of every label of the sources."""
        return {
            self.names[self._find((source.number, axis))]: extent
            for source in self.scope.sources
            for axis, extent in enumerate(source.table.node.type.extents)
        }

    def _starless(self) -> list[exp.Expr]:
        """The select list with `*` and `t.*` written out."""
        found: list[exp.Expr] = []
        for node in self.select.expressions:
            star = isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))
            if not star:
                found.append(node)
                continue
            if any((node.this if isinstance(node, exp.Column) else node).args.values()):
                message = "* EXCLUDE, REPLACE and RENAME are not read; list the columns"
                raise refuse(self.text, node, message, SqlUnsupportedError)
            table = node.args.get("table") if isinstance(node, exp.Column) else None
            for source in [self.scope.source(table)] if table is not None else self.scope.sources:
                for name in source.table.columns:
                    shown = any(same_name(name, o.name, False) for o in found if isinstance(o, exp.Column))
                    if not (shown and name.lower() in self.scope.using):
                        found.append(
                            exp.column(
                                exp.to_identifier(name, quoted=True), table=exp.to_identifier(source.alias, quoted=True)
                            )
                        )
        return found

    def _label_names(self) -> dict[tuple[int, int], str]:
        """A name for every label: how the output calls it, else its column's; distinct."""
        names: dict[tuple[int, int], str] = {}
        computed = {o.name for o in self.outputs if o.computed}
        for output in self.outputs:
            if output.label is not None:
                names.setdefault(self._find((output.label.source, output.label.axis)), output.name)
        for source in self.scope.sources:
            for axis, name in enumerate(source.table.labels):
                root = self._find((source.number, axis))
                if root not in names:
                    taken, number = {*names.values(), *computed}, 2
                    fresh = name
                    while fresh in taken:
                        fresh, number = f"{name}{number}", number + 1
                    names[root] = fresh
        return names

    def label(self, column: LabelColumn) -> str:
        """The name of a label in the graph."""
        return self.names[self._find((column.source, column.axis))]

    def column(self, node: exp.Expr) -> Expr | None:
        """The operand or label value that a column means, or what a comparison of a label with a dictionary says; None
        for any other expression."""
        if not isinstance(node, exp.Column):
            return self.dictionaries.test(node)
        meaning = self.scope.resolve(node)
        self.dictionaries.refuse_value(node)
        return Arg(meaning.source) if isinstance(meaning, ValueColumn) else LabelValue(self.label(meaning))

    def predicate(self, node: exp.Expr) -> Expr:
        """A condition on labels and values."""
        return ScalarReader(self.text, self.column).read(node)

    def output_label(self, output: Output) -> str | None:
        """The name in the graph of the label that a column of the select list is; None for the value."""
        if output.label is None:
            return output.name if output.computed else None
        return self.label(output.label)

    # ---------------------------------------------------------------------------------------------------- the result

    def table(self, name: str) -> Table:
        """The relation that the SELECT describes."""
        labels = [o for o in self.outputs if not o.is_value]
        value = next(o for o in self.outputs if o.is_value)
        kept = tuple(label for o in labels if (label := self.output_label(o)) is not None)
        if len(set(kept)) != len(kept):
            raise refuse(self.text, self.select, "two output columns are the same label; select it once")
        try:
            if find_aggregates(value.node) or self.select.args.get("group"):
                node = AggregateReader(self, kept).read(value.node)
            else:
                node = self._project(value, kept)
        except ShapeError as error:
            raise located(self.text, self.select, error) from None
        return Table(_named(node, name), tuple(o.name for o in labels), value.name)

    def _project(self, value: Output, kept: tuple[str, ...]) -> Tensor:
        """No aggregate: every label must come out or follow from those that do, or rows would repeat."""
        dropped = sorted(set(self.names.values()) - set(kept))
        whole = {s.number: self._side(s) for s in self.scope.sources if s.table.node.type.dtype.is_int}
        given = determined(self._where(self.where), dropped, whole)[0]
        free = [label for label in dropped if label not in given]
        if free:
            how = f"select it, or aggregate and GROUP BY {', '.join(kept) or '()'}"
            message = f"label {free[0]!r} is not selected, so rows would repeat; {how}"
            raise refuse(self.text, self.select, message)
        expr = ScalarReader(self.text, self.column).read(value.node)
        return self.einsum(expr, "max" if given else None, kept, self.where)  # the only row there is

    def _side(self, source: Source) -> tuple[str, ...]:
        """The labels of a source in the graph."""
        return tuple(self.names[self._find((source.number, axis))] for axis in range(len(source.table.labels)))

    def _where(self, where: Expr | None) -> Expr | None:
        """The predicate with what the computed labels say."""
        equal = [Call("eq", (LabelValue(name), expr)) for name, (expr, _) in self.computed.items()]
        extents = self.extents | {name: extent for name, (_, extent) in self.computed.items()}
        return conjunction([*conjuncts(where), *inverted(equal, extents)])

    def einsum(self, combine: Expr, reduce: str | None, kept: tuple[str, ...], where: Expr | None) -> Tensor:
        """The einsum over all sources, whether or not `combine` reads them: each multiplies the rows."""
        sides = [self._side(source) for source in self.scope.sources]
        operands = [source.table.node for source in self.scope.sources]
        for name, (_, extent) in self.computed.items():
            sides.append((name,))
            operands.append(self.ones(name, extent))
        subscripts = Subscripts(tuple(sides), kept)
        return elementwise_or_einsum(tuple(operands), subscripts, combine, reduce, self._where(where))


def _named(node: Tensor, name: str) -> Tensor:
    """`node` under the name that the query gives it, unless it already has one."""
    return replace(node, name=name) if name and not node.name else node


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    while isinstance(node, exp.Paren):
        node = node.this
    return [*_conjuncts(node.left), *_conjuncts(node.right)] if isinstance(node, exp.And) else [node]
