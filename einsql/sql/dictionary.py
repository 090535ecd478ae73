"""Labels that stand for values, in one SELECT: comparisons become comparisons of coordinates, since dictionaries are
sorted; labels that are compared with each other come under one dictionary first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import networkx as nx
from sqlglot import exp

from einsql.domains import Domain, union
from einsql.graph_domains import GraphDomains
from einsql.sql.errors import refuse
from einsql.sql.names import LabelColumn, Scope, Source
from planner.errors import DataError, ShapeError
from planner.scalar import Call, Const, Expr, LabelValue

COMPARE: dict[type, str] = {
    exp.EQ: "eq", exp.NEQ: "ne", exp.LT: "lt", exp.LTE: "le", exp.GT: "gt", exp.GTE: "ge",
}  # fmt: skip
MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
CASTS = {"text": ("VARCHAR", "TEXT"), "time": ("DATE", "TIMESTAMP", "TIMESTAMPNTZ", "TIMESTAMPTZ"), "uuid": ("UUID",)}


@dataclass(frozen=True)
class Dictionaries:
    """The dictionaries of the label columns of a SELECT; `label` gives the name of a column's label in the graph."""

    scope: Scope
    domains: GraphDomains
    label: Callable[[LabelColumn], str]

    def of(self, node: exp.Expr) -> Domain | None:
        """The dictionary of a label column; None for any other expression."""
        column = self._column(node)
        return None if column is None else self._axis(column.source, column.axis)

    def _column(self, node: exp.Expr) -> LabelColumn | None:
        bare = node.unnest()
        meaning = self.scope.resolve(bare) if isinstance(bare, exp.Column) else None
        return meaning if isinstance(meaning, LabelColumn) else None

    def _axis(self, source: int, axis: int) -> Domain | None:
        return self.domains.of(self.scope.sources[source].table.node)[axis]

    # ------------------------------------------------------------------------------------------ labels with each other

    def unified(self, trees: Sequence[exp.Expr]) -> Scope:
        """The sources with every two labels that `trees` compare under one dictionary.

        Raises   SqlError for a label that stands for values where the other is a number, or where types differ
        """
        if all(domain is None for s in self.scope.sources for domain in self.domains.of(s.table.node)):
            return self.scope
        meet = nx.Graph()
        for node in (node for tree in trees for node in _comparisons(tree)):
            left, right = self._column(node.left), self._column(node.right)
            if left is not None and right is not None:
                self._check(node)
                meet.add_edge((left.source, left.axis), (right.source, right.axis))
        sources = list(self.scope.sources)
        for axes in nx.connected_components(meet):
            found = [domain for axis in sorted(axes) if (domain := self._axis(*axis)) is not None]
            if found:
                both = union(found)
                for source, axis in sorted(axes):
                    sources[source] = self._recoded(sources[source], axis, both)
        return replace(self.scope, sources=tuple(sources))

    def _recoded(self, source: Source, axis: int, domain: Domain) -> Source:
        node = self.domains.recoded(source.table.node, axis, domain)
        return replace(source, table=replace(source.table, node=node))

    def _check(self, node: exp.Binary) -> None:
        left, right = self.of(node.left), self.of(node.right)
        if left is None and right is None:
            return
        if left is None or right is None:
            column, other = (node.left, node.right) if right is None else (node.right, node.left)
            message = f"{column.sql()} is a {self.of(column)}, and {other.sql()} holds positions; they do not compare"
            raise refuse(self.scope.text, node, message)
        try:
            union([left, right])
        except ShapeError as error:
            raise refuse(self.scope.text, node, str(error)) from None

    # --------------------------------------------------------------------------------------------- labels and literals

    def test(self, node: exp.Expr) -> Expr | None:
        """What a comparison of a label that stands for values says of its coordinates; None for anything else."""
        if isinstance(node, exp.Between) and self.of(node.this) is not None:
            low, high = node.args["low"], node.args["high"]
            return Call("and", (self._compare(node.this, "ge", low), self._compare(node.this, "le", high)))
        if isinstance(node, exp.In) and node.expressions and self.of(node.this) is not None:
            return reduce(
                lambda a, b: Call("or", (a, b)), [self._compare(node.this, "eq", e) for e in node.expressions]
            )
        op = COMPARE.get(type(node))
        if op is None or not isinstance(node, exp.Binary):
            return None
        if self.of(node.left) is not None:
            return self._compare(node.left, op, node.right)
        return self._compare(node.right, MIRRORED[op], node.left) if self.of(node.right) is not None else None

    def _compare(self, column: exp.Expr, op: str, other: exp.Expr) -> Expr:
        domain, here = self.of(column), self._value(column)
        assert domain is not None
        if self.of(other) is not None:
            return Call(op, (here, self._value(other)))
        try:
            low, high = domain.span(_literal(other, domain))
        except DataError as error:
            raise refuse(self.scope.text, other, str(error)) from None
        match op:
            case "eq":
                return Call("eq", (here, Const(low))) if low < high else Call("lt", (here, Const(0)))
            case "ne":
                return Call("ne", (here, Const(low))) if low < high else Call("ge", (here, Const(0)))
            case "lt" | "ge":
                return Call(op, (here, Const(low)))
        return Call("lt" if op == "le" else "ge", (here, Const(high)))

    def _value(self, column: exp.Expr) -> LabelValue:
        meaning = self._column(column)
        assert meaning is not None
        return LabelValue(self.label(meaning))

    def refuse_value(self, node: exp.Column) -> None:
        """Refuse a label that stands for values where a number is read."""
        domain = self.of(node)
        if domain is not None:
            message = (
                f"label {node.sql()} stands for values ({domain}); compare it with a literal or with another label"
            )
            raise refuse(self.scope.text, node, message)


def _comparisons(tree: exp.Expr) -> Iterator[exp.Binary]:
    """Comparisons of two columns, outside of subqueries."""
    for node in tree.walk(prune=lambda node: isinstance(node, exp.Query)):
        if not isinstance(node, exp.Binary) or type(node) not in COMPARE:
            continue
        if isinstance(node.left.unnest(), exp.Column) and isinstance(node.right.unnest(), exp.Column):
            yield node


def _literal(node: exp.Expr, domain: Domain) -> object:
    """The plain value of a literal, or of a string that is cast to the type of the dictionary.

    Raises   DataError for any other expression
    """
    bare = node.unnest()
    if isinstance(bare, exp.Cast) and bare.to.this.name in CASTS.get(domain.kind, ()):
        bare = bare.this
    sign = -1 if isinstance(bare, exp.Neg) else 1
    inner = bare.this if isinstance(bare, exp.Neg) else bare
    match inner:
        case exp.Literal() if inner.is_string and sign > 0:
            return str(inner.this)
        case exp.Literal() if not inner.is_string:
            return sign * (int(inner.this) if inner.this.isdecimal() else float(inner.this))
        case exp.Boolean():
            return bool(inner.this)
    raise DataError(f"{node.sql(dialect='duckdb')} is no literal that a {domain} is compared with")
