"""Equality predicates that determine a label: shifts, slices, look-ups, splits and merges are joins on them.

s == t + k       a shifted read: each (t, k) meets one s
v == x0          a look-up: the value of operand 0 says which v is met
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce

from planner.cuts import Cut
from planner.dtypes import DType
from planner.relation_type import Label
from planner.scalar import Call, Cast, Const, Expr, LabelValue, args_of, fold, labels_of, substitute
from planner.subscripts import Labels, Subscripts

Range = tuple[int, int]


def conjuncts(expr: Expr | None) -> list[Expr]:
    """The parts of a chain of `and`, left to right; none of None."""
    done: list[Expr] = []
    stack = [] if expr is None else [expr]
    while stack:
        here = stack.pop()
        if isinstance(here, Call) and here.op == "and":
            stack.extend(reversed(here.args))
        else:
            done.append(here)
    return done


def conjunction(parts: list[Expr]) -> Expr | None:
    """The chain of `and` over `parts`; None for none."""
    return reduce(lambda left, right: Call("and", (left, right)), parts) if parts else None


def solved(part: Expr, label: Label) -> Expr | None:
    """The expression f for which `part` says label == f; None when `part` does not say so for whole numbers.

    >>> from planner.scalar_text import parse, text
    >>> text(solved(parse("t - 1 == s + k"), "s"))
    't - 1 - k'
    """
    if not (isinstance(part, Call) and part.op == "eq"):
        return None
    left, right = part.args
    if label not in labels_of(left):
        left, right = right, left
    if label not in labels_of(left) or label in labels_of(right):
        return None
    while left != LabelValue(label):
        match left:
            case Cast(arg, dtype) if dtype.is_int:
                left = arg
            case Call("neg", (arg,)):
                left, right = arg, Call("neg", (right,))
            case Call("add", (a, b)) if (label in labels_of(a)) != (label in labels_of(b)):
                left, other = (a, b) if label in labels_of(a) else (b, a)
                right = Call("sub", (right, other))
            case Call("sub", (a, b)) if (label in labels_of(a)) != (label in labels_of(b)):
                left, right = (a, Call("add", (right, b))) if label in labels_of(a) else (b, Call("sub", (a, right)))
            case _:
                return None
    return right


def inverted(parts: Sequence[Expr], extents: Mapping[Label, int]) -> list[Expr]:
    """The same equalities with splits and merges of a label told the other way round, so that they determine it.

    p == x // 4, h == x % 4   ->   x == p * 4 + h            where h has at most 4 values
    t == p * 4 + h            ->   p == t // 4, h == t % 4   likewise
    t == p * 4                ->   p == t // 4, t % 4 == 0
    """
    done: list[Expr] = []
    for part in parts:
        split = next((s for i, other in enumerate(done) if (s := _joined(other, part, extents)) is not None), None)
        if split is not None:
            done = [other for other in done if _joined(other, part, extents) is None] + [split]
        else:
            done += _taken_apart(part, extents)
    return done


def _joined(a: Expr, b: Expr, extents: Mapping[Label, int]) -> Expr | None:
    """x == p * c + h from p == x // c and h == x % c, in either order."""
    for first, second in ((a, b), (b, a)):
        match first, second:
            case (
                Call("eq", (LabelValue(p), Call("intdiv", (LabelValue(x), Const(c))))),
                Call("eq", (LabelValue(h), Call("mod", (LabelValue(y), Const(d))))),
            ) if x == y and c == d and isinstance(c, int) and extents[h] <= c:
                whole = Call("add", (Call("mul", (LabelValue(p), Const(c))), LabelValue(h)))
                return Call("eq", (LabelValue(x), whole))
    return None


def _taken_apart(part: Expr, extents: Mapping[Label, int]) -> list[Expr]:
    match part:
        case Call("eq", (LabelValue(t), Call("add", (Call("mul", (LabelValue(p), Const(c))), LabelValue(h))))) if (
            isinstance(c, int) and extents[h] <= c
        ):
            whole, rest = Call("intdiv", (LabelValue(t), Const(c))), Call("mod", (LabelValue(t), Const(c)))
            return [Call("eq", (LabelValue(p), whole)), Call("eq", (LabelValue(h), rest))]
        case Call("eq", (LabelValue(t), Call("mul", (LabelValue(p), Const(c))))) if isinstance(c, int) and c > 0:
            whole, rest = Call("intdiv", (LabelValue(t), Const(c))), Call("mod", (LabelValue(t), Const(c)))
            return [Call("eq", (LabelValue(p), whole)), Call("eq", (rest, Const(0)))]
    return [part]


def determined(
    where: Expr | None, contracted: Collection[Label], whole: Mapping[int, Collection[Label]]
) -> tuple[dict[Label, Expr], list[Expr]]:
    """Contracted labels that equalities give in terms of labels that none gives, and the conjuncts that are left.

    whole    the labels of the operands that hold integers: only their values can be coordinates, of labels other than
             those that say where the value is
    """
    found: dict[Label, Expr] = {}
    rest: list[Expr] = []
    at = {i: set(labels) for i, labels in whole.items()}
    for part in conjuncts(where):
        part = substitute(part, labels=found)
        for label in sorted(labels_of(part) & set(contracted)):
            index = solved(part, label)
            if index is None or not args_of(index) <= at.keys() or not _is_whole(index):
                continue
            place = set(labels_of(index)).union(*(at[i] for i in args_of(index)))
            if label not in place:
                at = {i: labels - {label} | place if label in labels else labels for i, labels in at.items()}
                found = {own: substitute(other, labels={label: index}) for own, other in found.items()}
                found[label] = index
                break
        else:
            rest.append(part)
    return found, rest


def joined(subscripts: Subscripts, where: Expr | None, dtypes: Sequence[DType]) -> list[Label]:
    """The labels that a join of operands of these dtypes ranges over: those that no equality determines."""
    given = determined(where, subscripts.contracted, whole_numbers(subscripts, dtypes))[0]
    return [label for label in subscripts.labels if label not in given]


def whole_numbers(subscripts: Subscripts, dtypes: Sequence[DType]) -> dict[int, Labels]:
    """The operands that hold integers, and their labels."""
    return {i: subscripts.inputs[i] for i, dtype in enumerate(dtypes) if dtype.is_int}


def _is_whole(expr: Expr) -> bool:
    """Whether an expression over whole numbers is one itself."""

    def rule(node: Expr, new: tuple[bool, ...]) -> bool:
        match node:
            case Const(value):
                return type(value) is int
            case Cast(_, dtype):
                return dtype.is_int and all(new)
            case Call(op, _):
                return op in ("add", "sub", "mul", "neg", "intdiv", "mod", "min", "max") and all(new)
        return True

    return fold(expr, rule)


def bounds(expr: Expr, labels: Mapping[Label, Range]) -> Range | None:
    """The range of an integer expression over labels, ends included; None where none is known."""

    def rule(node: Expr, new: tuple[Range | None, ...]) -> Range | None:
        match node:
            case LabelValue(name):
                return labels.get(name)
            case Const(value) if type(value) is int:
                return value, value
            case Cast(_, dtype) if dtype.is_int:
                return new[0]
            case Call(op, _) if None not in new:
                return _bounds(op, *(r for r in new if r is not None))
        return None

    return fold(expr, rule)


def _bounds(op: str, a: Range, b: Range = (0, 0)) -> Range | None:
    match op:
        case "neg":
            return -a[1], -a[0]
        case "add":
            return a[0] + b[0], a[1] + b[1]
        case "sub":
            return a[0] - b[1], a[1] - b[0]
        case "mul":
            ends = [x * y for x in a for y in b]
            return min(ends), max(ends)
        case "intdiv" if b[0] == b[1] > 0 and a[0] >= 0:
            return a[0] // b[0], a[1] // b[0]
        case "mod" if b[0] == b[1] > 0 and a[0] >= 0:
            return (a[0], a[1]) if a[1] < b[0] else (0, b[0] - 1)
        case "min":
            return min(a[0], b[0]), min(a[1], b[1])
        case "max":
            return max(a[0], b[0]), max(a[1], b[1])
    return None


def never_negative(expr: Expr, given: Sequence[Expr]) -> bool:
    """Whether a difference of labels or constants cannot be negative where the conditions `given` hold, as a >= b says
    of a - b."""
    if not (isinstance(expr, Call) and expr.op == "sub"):
        return False
    a, b = expr.args
    for part in given:
        match part:
            case Call("ge" | "gt" | "eq", (x, y)) | Call("le" | "lt" | "eq", (y, x)) if x == a:
                if y == b or (isinstance(y, Const) and isinstance(b, Const) and y.value.real >= b.value.real):
                    return True
    return False


def keeps_all(where: Expr | None, contracted: Collection[Label], extents: Mapping[Label, int]) -> bool:
    """Whether a predicate on labels leaves every output cell at least one term: each conjunct gives a contracted label
    a coordinate that is inside its extent for all values of the other labels."""
    ranges = {label: (0, extent - 1) for label, extent in extents.items()}
    given: set[Label] = set()
    for part in conjuncts(where):
        for label in sorted(labels_of(part) & set(contracted) - given):
            index = solved(part, label)
            if index is None or args_of(index) or labels_of(index) & given:
                continue
            inside = bounds(index, ranges)
            if inside is not None and inside[0] >= 0 and inside[1] < extents[label]:
                given.add(label)
                break
        else:
            return False
    return True


def reads_values(where: Expr | None) -> bool:
    """Whether a predicate reads operands, so that no key phase can decide it."""
    return where is not None and bool(args_of(where))


def keys_decide(where: Expr, cuts: Mapping[Label, Cut]) -> bool:
    """Whether a condition reads no value, and only labels that are cut to single cells."""
    return not reads_values(where) and all(cuts[label].is_cells for label in labels_of(where))
