"""SELECT with aggregates: GROUP BY, one einsum per aggregate, and the expression over their results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from einsql.sql.elementwise import elementwise_or_einsum
from einsql.sql.errors import refuse
from einsql.sql.names import LabelColumn, same_name
from einsql.sql.scalars import ScalarReader
from planner.dtypes import BOOL, FLOAT64, INT64, DType
from planner.einsum import Fill, Tensor
from planner.errors import EinsqlError, SqlUnsupportedError
from planner.scalar import Arg, Call, Cast, Const, Expr, LabelValue
from planner.scalar_types import typed
from planner.subscripts import Subscripts

if TYPE_CHECKING:
    from einsql.sql.select import SelectReader

AGGREGATES: dict[type, str] = {
    exp.Sum: "sum", exp.Max: "max", exp.Min: "min", exp.LogicalOr: "any", exp.LogicalAnd: "all",
    exp.Count: "count", exp.Avg: "avg",
}  # fmt: skip
NAMED = {"product": "prod", "fsum": "fsum", "kahan_sum": "fsum", "sumkahan": "fsum"}


def find_aggregates(node: exp.Expr) -> list[exp.Expr]:
    """The outermost aggregates of an expression."""
    return [part for part in node.walk(prune=_is_closed) if _is_aggregate(part)]


def _is_closed(node: exp.Expr) -> bool:
    """Windows and subqueries have aggregates of their own; they are refused as what they are."""
    return _is_aggregate(node) or isinstance(node, (exp.Window, exp.Query))


def _is_aggregate(node: exp.Expr) -> bool:
    return type(node) in AGGREGATES or _named(node) is not None


def _named(node: exp.Expr) -> str | None:
    """The reduce of an aggregate for which sqlglot has no class."""
    if isinstance(node, exp.Anonymous) and len(node.expressions) == 1:
        return NAMED.get(node.name.lower())
    return None


class AggregateReader:
    """Reads the value column of one aggregating SELECT, whose label columns are `kept`."""

    def __init__(self, select: SelectReader, kept: tuple[str, ...]) -> None:
        self.select, self.kept, self.text = select, kept, select.text
        self.parts: list[Tensor] = []  # one einsum per aggregate
        self._check_group()

    def read(self, value: exp.Expr) -> Tensor:
        """The tensor of an expression over aggregates."""
        meaning = {id(node): self._aggregate(node) for node in find_aggregates(value)}

        def leaf(node: exp.Expr) -> Expr | None:
            if id(node) in meaning:
                return meaning[id(node)]
            column = self.select.column(node)
            if isinstance(column, Arg):
                raise refuse(self.text, node, f"column {node.sql()!r} stands beside an aggregate but not inside one")
            if isinstance(column, LabelValue) and column.label not in self.kept:
                raise refuse(self.text, node, f"column {node.sql()!r} stands beside an aggregate but not in GROUP BY")
            return column

        expr = ScalarReader(self.text, leaf).read(value)
        if not self.parts:
            message = "GROUP BY without an aggregate; write SUM, MIN, MAX, COUNT or AVG over the value"
            raise refuse(self.text, value, message)
        if expr == Arg(0) and len(self.parts) == 1:
            return self.parts[0]
        subscripts = Subscripts((self.kept,) * len(self.parts), self.kept)
        return elementwise_or_einsum(tuple(self.parts), subscripts, expr, None, None)

    # ---------------------------------------------------------------------------------------------------- GROUP BY

    def _check_group(self) -> None:
        """Every label column must be grouped by, and nothing else."""
        group = self.select.select.args.get("group")
        labels = [(o, label) for o in self.select.outputs if (label := self.select.output_label(o)) is not None]
        beside = "stands beside an aggregate but not in GROUP BY"
        if group is None:
            if labels:
                raise refuse(self.text, labels[0][0].node, f"column {labels[0][0].name!r} {beside}")
            return
        for clause in ("rollup", "cube", "grouping_sets"):
            if group.args.get(clause):
                message = f"GROUP BY {clause.replace('_', ' ').upper()} is not read"
                raise refuse(self.text, self.select.select, message, SqlUnsupportedError)
        if group.args.get("all"):
            return
        grouped = {self._group_label(node): node for node in group.expressions}
        for output, label in labels:
            if label not in grouped:
                raise refuse(self.text, output.node, f"column {output.name!r} {beside}")
        for name, node in grouped.items():
            if name not in self.kept:
                message = f"GROUP BY names {name!r}, which is not selected, so rows would repeat; select it"
                raise refuse(self.text, node, message)

    def _group_label(self, node: exp.Expr) -> str:
        """The label that one expression of GROUP BY means: a column, an alias, a number of the select list, or what the
        list computes a label by."""
        if isinstance(node, exp.Literal) and not node.is_string and node.this.isdecimal():
            number, outputs = int(node.this), self.select.outputs
            label = self.select.output_label(outputs[number - 1]) if 1 <= number <= len(outputs) else None
            if label is None:
                raise refuse(self.text, node, f"GROUP BY {number} is no label of the select list")
            return label
        for output in self.select.outputs:
            if output.computed and output.node.sql() == node.sql():
                return output.name
        if isinstance(node, exp.Column):
            label = self._group_column(node)
            if label is not None:
                return label
        message = f"GROUP BY {node.sql(dialect='duckdb')} is not read; group by label columns"
        raise refuse(self.text, node, message, SqlUnsupportedError)

    def _group_column(self, node: exp.Column) -> str | None:
        """The label of a column, else of an alias of the select list."""
        try:
            meaning = self.select.scope.resolve(node)
            return self.select.label(meaning) if isinstance(meaning, LabelColumn) else None
        except EinsqlError:
            quoted = bool(node.this.args.get("quoted"))
            for output in self.select.outputs:
                label = self.select.output_label(output)
                if label is not None and not node.table and same_name(output.name, node.name, quoted):
                    return label
            raise

    # -------------------------------------------------------------------------------------------------- aggregates

    def _aggregate(self, node: exp.Expr) -> Expr:
        """The einsum of one aggregate, appended to `parts`; how the outer expression reads it."""
        named = _named(node)
        inner = node.expressions[0] if named else node.this
        name = named or AGGREGATES[type(node)]
        more = [key for key, value in node.args.items() if value and key not in ("this", "expressions", "big_int")]
        extra = node.args.get("expressions") if not named else None
        if more or extra:
            word = node.sql(dialect="duckdb").partition("(")[0]
            raise refuse(self.text, node, f"{word} takes one argument here", SqlUnsupportedError)
        if name == "count":
            return self._count(inner)
        combine, test = self._inside(inner)
        where = _both(self.select.where, test)
        if name == "avg":
            return self._mean(combine, where)
        if name in ("sum", "prod") and self._dtype(combine) == BOOL:
            combine = Cast(combine, INT64)  # SUM counts booleans
        if name == "fsum" and self._dtype(combine).is_exact:
            combine = Cast(combine, FLOAT64)
        return self._add(self.select.einsum(combine, name, self.kept, where))

    def _count(self, inner: exp.Expr | None) -> Expr:
        """COUNT(CASE WHEN test THEN x END) counts the rows that pass, and a group without any has 0."""
        whole = inner is None or isinstance(inner, exp.Star) or self._is_label(inner)
        test = None if inner is None or whole else self._inside(inner)[1]
        one: Expr = Cast(Const(1), INT64) if test is None else Call("case", (test, Const(1), Const(0)))
        result = self.select.einsum(one, "sum", self.kept, self.select.where)
        return self._add(result if self.kept else Fill(result, 0))  # a count of no rows at all is 0, not NULL

    def _is_label(self, node: exp.Expr) -> bool:
        return isinstance(node, exp.Column) and isinstance(self.select.scope.resolve(node), LabelColumn)

    def _mean(self, combine: Expr, where: Expr | None) -> Expr:
        """Sum over count, so that parts can be reduced apart; a mean of float32 stays float32, as a sum does."""
        dtype = self._dtype(combine)
        if dtype.is_exact:
            combine, dtype = Cast(combine, FLOAT64), FLOAT64
        total, one = self.select.einsum(combine, "sum", self.kept, where), Cast(Const(1), dtype)
        return Call("div", (self._add(total), self._add(self.select.einsum(one, "sum", self.kept, where))))

    def _add(self, node: Tensor) -> Arg:
        self.parts.append(node)
        return Arg(len(self.parts) - 1)

    def _dtype(self, combine: Expr) -> DType:
        return typed(combine, [source.table.node.type.dtype for source in self.select.scope.sources])[1]

    def _inside(self, node: exp.Expr) -> tuple[Expr, Expr | None]:
        """The argument of an aggregate, and the test of a CASE without ELSE, which leaves rows out."""
        bare = node.unnest()
        if isinstance(bare, exp.Distinct):
            raise refuse(self.text, node, "DISTINCT inside an aggregate is not read", SqlUnsupportedError)
        for part in node.walk():
            if _is_aggregate(part):
                raise refuse(self.text, part, "an aggregate cannot stand inside another; aggregate in a WITH first")
        reader = ScalarReader(self.text, self.select.column)
        if isinstance(bare, exp.Case) and not bare.args.get("default") and len(bare.args["ifs"]) == 1 and not bare.this:
            branch = bare.args["ifs"][0]
            return reader.read(branch.args["true"]), self.select.predicate(branch.this)
        return reader.read(node), None


def _both(left: Expr | None, right: Expr | None) -> Expr | None:
    if left is None or right is None:
        return left if right is None else right
    return Call("and", (left, right))
