"""The text print-outs of forms 1 and 2. Made to be golden: no ids, no sets, no timings.

Reading rules: a parent stands above its children; rows cross devices only at an Exchange line; upper case marks a cut
label; rows under Partial are per device; totals come first.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner import relational as rel
from planner.einsum import Einsum, Fill, Filter, Input, Map, Tensor, node_names
from planner.node import consumers, postorder
from planner.placement import describe
from planner.program import Counts, Program
from planner.relation_type import RelationType
from planner.scalar import Const, Expr, is_plain_product
from planner.scalar_text import text

LONG_EXPRESSION = 40  # characters
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def format_bytes(n: float) -> str:
    """Bytes in the unit that leaves less than 1024 of them.

    >>> format_bytes(512), format_bytes(33554432)
    ('512 B', '32.0 MiB')
    """
    unit = 0
    while n >= 1024 and unit < len(UNITS) - 1:
        n, unit = n / 1024, unit + 1
    return f"{n:.1f} {UNITS[unit]}" if unit else f"{int(n)} B"


def format_flops(n: float) -> str:
    """FLOP with a decimal prefix.

    >>> format_flops(481036337152)
    '481.0 GFLOP'
    """
    for prefix in ("", "K", "M", "G", "T"):
        if n < 1000 or prefix == "T":
            return f"{n:.1f} {prefix}FLOP" if prefix else f"{int(n)} FLOP"
        n /= 1000
    raise AssertionError


def columns(rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> list[str]:
    """Rows as aligned lines; columns in `right` are flush right."""
    widths = [
        max((len(row[i]) for row in rows if i < len(row)), default=0) for i in range(max(map(len, rows), default=0))
    ]
    lines = []
    for row in rows:
        cells = [cell.rjust(widths[i]) if i in right else cell.ljust(widths[i]) for i, cell in enumerate(row)]
        lines.append("  ".join(cells).rstrip())
    return lines


def plural(n: int, word: str) -> str:
    """`1 einsum`, `3 einsums`."""
    return f"{n} {word}" + ("" if n == 1 else "es" if word.endswith("ch") else "s")


# ------------------------------------------------------------------------------------------------------------ logical


def explain_logical(graph: Tensor) -> str:
    """What is asked, no decisions yet: one line per node, in order."""
    names, legend = node_names(graph), _Legend()
    rows, einsums, maps, flops = [], 0, 0, 0
    for node in postorder(graph):
        work = ""
        if isinstance(node, Einsum):
            einsums, flops, work = einsums + 1, flops + node.flops, format_flops(node.flops)
        maps += isinstance(node, Map)
        rows.append(
            (
                f"{names[node]}",
                f":= {_describe(node, names, legend)}",
                str(node.type),
                format_bytes(node.type.nbytes),
                work,
            )
        )
    totals = [
        plural(einsums, "einsum"),
        plural(maps, "map"),
        format_flops(flops),
        f"output {names[graph]} {graph.type}",
    ]
    return "\n".join(["LOGICAL   " + "   ".join(totals), "", *columns(rows, frozenset({3, 4})), *legend.lines()]) + "\n"


def _describe(node: Tensor, names: dict[Tensor, str], legend: _Legend) -> str:
    args = ", ".join(names[arg] for arg in node.args)
    match node:
        case Input():
            return "input" + (" rows" if node.stored.storage == "scalar" else "")
        case Einsum():
            where = f" where {legend.short(node.where)}" if node.where is not None else ""
            combine = _combine(node.combine, len(node.operands))
            inner = f"({legend.short(combine)})" if combine is not None else ""
            outer = node.reduce if node.reduce not in ("sum", None) or (inner and node.reduce) else ""
            return " ".join(filter(None, [f"einsum {node.subscripts}", f"{outer}{inner}", args])) + where
        case Map():
            return f"map {legend.short(node.expr)}  {args}"
        case Filter():
            return f"filter {legend.short(node.where)}  {args}"
        case Fill():
            return f"fill {text(Const(node.value))}  {args}"
    raise AssertionError(node)


def _combine(combine: Expr, operands: int) -> Expr | None:
    """None for the plain product of all operands, which need not be said."""
    return None if is_plain_product(combine, operands) else combine


class _Legend:
    """Expressions too long for a column are numbered, and written out below the table."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def short(self, expr: Expr) -> str:
        """The text of an expression, or the number under which the legend has it."""
        whole = text(expr)
        if len(whole) <= LONG_EXPRESSION:
            return whole
        return f"${self.numbers.setdefault(whole, len(self.numbers) + 1)}"

    def lines(self) -> list[str]:
        return [""] * bool(self.numbers) + [f"${number} = {whole}" for whole, number in self.numbers.items()]


# --------------------------------------------------------------------------------------------------------- relational


def explain_plan(plan: rel.Rel, program: Program) -> str:
    """The plan, cut and placed, as a tree. A node with several readers is printed once and then named."""
    order = postorder(plan)
    counts = {node: step.counts for node, step in zip(order, program.steps, strict=True)}
    shared = {node for node, users in consumers(plan).items() if len(users) > 1 and not isinstance(node, rel.Scan)}
    printer = _TreePrinter(counts, shared)
    printer.visit(plan, "", "")
    devices = len(program.devices)
    head = [
        plural(devices, "device"),
        plural(program.kernel_calls, "kernel call"),
        plural(program.exchanges, "exchange"),
        f"moves {format_bytes(program.moved_bytes)}",
        f"peak {format_bytes(max(program.peak_bytes))} per device",
    ]
    return (
        "\n".join(
            ["EXPLAIN   " + "   ".join(head), "", *columns(printer.rows, frozenset({2})), *printer.legend.lines()]
        )
        + "\n"
    )


class _TreePrinter:
    """Rows of the tree, top down; iterative, since a model is deeper than Python's recursion limit."""

    def __init__(self, counts: dict[rel.Rel, Counts | None], shared: set[rel.Rel]) -> None:
        self.counts, self.shared = counts, shared
        self.rows: list[tuple[str, ...]] = [("operator", "keys", "rows", "block", "placement", "cost")]
        self.printed: set[rel.Rel] = set()
        self.legend = _Legend()

    def visit(self, root: rel.Rel, first: str, rest: str) -> None:
        stack = [(root, first, rest)]
        while stack:
            node, first, rest = stack.pop()
            if node in self.printed and node in self.shared:
                self.rows.append((f"{first}{type(node).__name__} {node.name}", "(shared, see above)", "", "", "", ""))
                continue
            self.printed.add(node)
            below = self._lines(node, first, rest)
            args = node.args
            for i, arg in reversed(list(enumerate(args))):
                last = i == len(args) - 1
                stack.append((arg, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  ")))

    def _lines(self, node: rel.Rel, first: str, rest: str) -> str:
        """The one or two rows of a node; what its children are indented by."""
        counts = self.counts[node]
        rows = str(counts.rows) if counts else ""
        keys, block = _keys(node.type), _block(node.type)
        placement = describe(node.placement, node.type.labels) if node.placement is not None else ""
        if not isinstance(node, rel.Join):
            self.rows.append(
                (f"{first}{_operator(node, self.legend)}", keys, rows, block, placement, _cost(node, counts))
            )
            return rest
        calls = plural(counts.calls, "call") if counts else ""
        cost = f"{calls}  {format_flops(node.flops)}"
        where = f" where {self.legend.short(node.where)}" if node.where is not None else ""
        combine = _combine(node.combine, len(node.operands))
        how = f" ({self.legend.short(combine)})" if combine is not None else ""
        if len(node.operands) == 1:
            kind = f"Aggregate {node.reduce} by ({_by(node)}) of" if node.reduce else "Project"
            self.rows.append(
                (f"{first}{node.name}: {kind} {node.subscripts}{how}{where}", keys, rows, block, placement, cost)
            )
            return rest
        join = f"Join {_on(node)}  {'contract' if node.reduce else 'combine'} {node.subscripts}{how}{where}"
        if node.reduce is None:
            self.rows.append((f"{first}{node.name}: {join}", keys, rows, block, placement, cost))
            return rest
        partial = "partial " if placement.startswith("Partial") else ""
        self.rows.append(
            (f"{first}{node.name}: Aggregate {partial}{node.reduce} by ({_by(node)})", keys, rows, block, placement, "")
        )
        work = describe(node.work, node.subscripts.labels) if node.work is not None else ""
        pairs = " ".join(label.upper() if cut.count > 1 else label for label, cut in node.label_cuts.items())
        self.rows.append((f"{rest}└─ {join}", pairs, str(counts.calls) if counts else "", "", work, cost))
        return rest + "   "


def _operator(node: rel.Rel, legend: _Legend) -> str:
    match node:
        case rel.Scan():
            return f"Scan {node.name}"
        case rel.Map():
            return f"{node.name}: Map {legend.short(node.expr)}"
        case rel.Filter():
            return f"{node.name}: Filter {legend.short(node.where)}"
        case rel.Fill():
            return f"{node.name}: Fill {text(Const(node.value))}"
        case rel.Exchange():
            return f"Exchange {node.name}" + (" re-tile" if node.is_retile else "")
    raise AssertionError(node)


def _cost(node: rel.Rel, counts: Counts | None) -> str:
    if counts is None:
        return ""
    return (
        f"moves {format_bytes(counts.moved)}"
        if isinstance(node, rel.Exchange)
        else plural(counts.calls, "call")
        if counts.calls
        else ""
    )


def _keys(type: RelationType) -> str:
    return " ".join(
        label.upper() if cut.count > 1 else label for label, cut in zip(type.labels, type.cuts, strict=True)
    )


def _block(type: RelationType) -> str:
    """The largest block, with the storage class and presence where they are not the usual."""
    inside = " ".join(
        f"{label}={cut.largest}"
        for label, cut in zip(type.labels, type.cuts, strict=True)
        if not cut.is_cells or cut.count == 1
    )
    kind = (
        "" if type.presence == "complete" else f" of {type.possible_rows}" if type.presence == "blocks" else " masked"
    )
    return f"{type.dtype.short}" + (f"[{inside}]" if inside or type.storage == "block" else "") + kind


def _by(node: rel.Join) -> str:
    return _keys(node.type)


def _on(node: rel.Join) -> str:
    """The labels that more than one operand has."""
    sides = node.subscripts.inputs
    shared = [label for label in node.subscripts.labels if sum(label in side for side in sides) > 1]
    named = " ".join(label.upper() if node.label_cuts[label].count > 1 else label for label in shared)
    return f"on ({named})"
