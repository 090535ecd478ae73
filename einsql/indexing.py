"""Parts, shifts and look-ups of tensors: joins on an equality that says which coordinate of an operand is read.

    x.shift(t=1)    einsum ad,t->td max(x0) X, ones where a == t - 1

A label that no operand has comes from a relation of ones, which takes no memory. One term at most meets each cell of
the result, so that the reduction only has to keep it as it is. Where the coordinates of the label stood for values,
they are positions afterwards.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from einsql.builder import Labels, Tensor, as_tensor
from einsql.joining import hint, joined, label_names, matched
from einsql.ones import ones
from einsql.total import Whole
from einsql.values import fill_value
from planner.dtypes import BOOL, DType
from planner.einsum import Einsum, Fill, Input
from planner.einsum import Tensor as Node
from planner.errors import DataError, ShapeError
from planner.predicates import conjunction
from planner.scalar import Arg, Call, Const, Expr, LabelValue, Value
from planner.scalar_types import typed
from planner.subscripts import Subscripts, unused

MOST_STACKED = 8  # tensors that one choice tells apart; more are stacked in groups

_ones = lru_cache(maxsize=256)(ones)  # equal ones are one relation of a query


def slice(x: Tensor, ranges: Mapping[str, Any]) -> Tensor:
    """out[t] = x[start + step * t] for some labels."""
    x.chosen(ranges)
    index, extents = {}, {}
    for label, given in ranges.items():
        extent = x.extents[label]
        start, stop, step = _slice(label, given).indices(extent)
        if (start, stop, step) == (0, extent, 1):
            continue
        extents[label] = len(range(start, stop, step))
        index[label] = _line(label, step, start)
    return looked_up(x, x.labels, extents, index)


def _slice(label: str, given: Any) -> builtins.slice:
    parts = (given.start, given.stop, given.step) if isinstance(given, builtins.slice) else given
    if not isinstance(parts, tuple | list) or not 2 <= len(parts) <= 3 or not all(map(_is_bound, parts)):
        raise ShapeError(
            f"a slice of {label!r} is written like {label}=(1, 3) or {label}=slice(1, None, 2), got {given!r}"
        )
    if len(parts) == 3 and parts[2] == 0:
        raise ShapeError(f"a slice of {label!r} has step 0")
    return builtins.slice(*parts)


def _is_bound(part: object) -> bool:
    return part is None or (isinstance(part, int) and not isinstance(part, bool))


def shift(x: Tensor, by: Mapping[str, int], fill: Value) -> Tensor:
    """out[t] = x[t - by] for some labels, `fill` outside."""
    _whole_numbers("a shift", by.values())
    index = {label: _plus(LabelValue(label), -n) for label, n in by.items()}
    return looked_up(x, x.labels, {label: x.extents[label] for label in x.chosen(by)}, index, fill)


def pad(x: Tensor, widths: Mapping[str, Sequence[int]], fill: Value) -> Tensor:
    """out[t] = x[t - before] for some labels, each longer by (before, after), `fill` outside."""
    x.chosen(widths)
    index, extents = {}, {}
    for label, width in widths.items():
        if not isinstance(width, tuple | list) or len(width) != 2 or min(_whole_numbers("a width", width)) < 0:
            raise ShapeError(f"padding is written like {label}=(1, 2), the widths before and after, got {width!r}")
        extents[label] = x.extents[label] + sum(width)
        index[label] = _plus(LabelValue(label), -width[0])
    return looked_up(x, x.labels, extents, index, fill)


def flip(x: Tensor, labels: Sequence[str]) -> Tensor:
    """out[t] = x[n - 1 - t] for some labels."""
    extents = {label: x.extents[label] for label in labels}
    return looked_up(x, x.labels, extents, {t: _line(t, -1, n - 1) for t, n in extents.items()})


def unfold(x: Tensor, label: str, window: str, size: int, step: int) -> Tensor:
    """out[..., t, ..., k] = x[..., t * step + k]: every window that lies inside, k from 0 to size - 1."""
    (label,) = x.chosen([label])
    n = x.extents[label]
    if min(_whole_numbers("a window's size or step", [size, step])) < 1 or size > n:
        raise ShapeError(f"no window of {size} cells, {step} apart, lies inside label {label!r} of {x}")
    if window in x.labels:
        raise ShapeError(f"a window wants a label of its own, and {window!r} is one of {x}")
    at = Call("add", (_times(LabelValue(label), step), LabelValue(window)))
    return looked_up(x, [*x.labels, window], {label: (n - size) // step + 1, window: size}, {label: at})


def split(x: Tensor, label: str, into: Labels, given: Mapping[str, int]) -> Tensor:
    """out[..., pair, half] = x[..., pair * extent of half + half]."""
    (label,) = x.chosen([label])
    names = label_names(into)
    extents = _split_extents(x, label, names, given)
    index: Expr = Const(0)
    for name in names:
        index = LabelValue(name) if name == names[0] else Call("add", (_times(index, extents[name]), LabelValue(name)))
    output = [new for old in x.labels for new in (names if old == label else (old,))]
    return looked_up(x, output, extents, {label: index})


def _split_extents(x: Tensor, label: str, names: Sequence[str], given: Mapping[str, int]) -> dict[str, int]:
    for name in given:
        if name not in names:
            raise ShapeError(f"no label {name!r} among the new labels of the split{hint(name, names)}")
    _whole_numbers("an extent", given.values())
    left, whole, known = [n for n in names if n not in given], x.extents[label], math.prod(given.values())
    if not left and known == whole and names:
        return {name: given[name] for name in names}
    if len(left) == 1 and known > 0 and whole % known == 0:
        return {name: given.get(name, whole // known) for name in names}
    stated = " ".join(f"{name}={n}" for name, n in given.items()) or "no extents"
    raise ShapeError(
        f"label {label!r} of {x} has {whole} coordinates, which {stated} cannot split into {' '.join(names)}"
        "\n  all extents but one are stated, and their product divides the extent of the label"
    )


def merge(x: Tensor, labels: Labels, into: str) -> Tensor:
    """out[..., d] = x[..., d // extent of half, d % extent of half]."""
    names = x.chosen(labels)
    if not names:
        raise ShapeError(f"merge wants the labels of {x} that become {into!r}, got none")
    index: dict[str, Expr] = {}
    step = 1
    for name in reversed(names):
        n = max(x.extents[name], 1)
        part = LabelValue(into) if step == 1 else Call("intdiv", (LabelValue(into), Const(step)))
        index[name] = part if name == names[0] else Call("mod", (part, Const(n)))
        step *= n
    output = [into if old == names[0] else old for old in x.labels if old == names[0] or old not in names]
    return looked_up(x, output, {into: math.prod(x.extents[name] for name in names)}, index)


def gather(table: Tensor, index: Tensor, label: str, *, fill: Value = 0) -> Tensor:
    """out[labels of index, other labels of table] = table[label = value of index]: an embedding look-up.

    A label that both have is joined. An index outside of the table, a negative one too, gives `fill`.
    """
    (label,) = as_tensor(table, "a table").chosen([label])
    _check_index(index, f"an index into label {label!r} of {table}")
    (fresh,) = unused(1, {*table.labels, *index.labels})
    side = tuple(fresh if name == label else name for name in table.labels)
    output = tuple(dict.fromkeys([*index.labels, *(name for name in side if name != fresh)]))
    where = Call("eq", (Arg(0), LabelValue(fresh)))
    return _taken(table, index, Subscripts((index.labels, side), output), where, fill)


def one_hot(index: Tensor, label: str, extent: int) -> Tensor:
    """Booleans with one more label: true where its coordinate is the value of `index`, nowhere if that is outside."""
    _check_index(index, "a one-hot index")
    _whole_numbers("an extent", [extent])
    return joined((index, _ones_like(index, {label: extent})), Call("eq", (Arg(0), LabelValue(label))))


def concat(tensors: Sequence[Tensor], label: str) -> Tensor:
    """Tensors one after another along a label; their other labels are the same, in any order."""
    parts = _alike(tensors, label)
    while len(parts) > 1:
        pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
        parts = [_concat_two(pair[0], pair[1], label) if len(pair) == 2 else pair[0] for pair in pairs]
    return parts[0]


def _concat_two(a: Tensor, b: Tensor, label: str) -> Tensor:
    """One join that reads both, each at the nearest coordinate that it has, and chooses."""
    n, m = a.extents[label], b.extents[label]
    if not n or not m:
        kept, other = (b, a) if not n else (a, b)
        dtype = typed(Call("case", (Const(True), Arg(0), Arg(1))), [_dtype(kept), _dtype(other)])[1]
        return kept.cast(dtype).transpose(a.labels)
    i, j = unused(2, {*a.labels, *b.labels})
    t = LabelValue(label)
    places: list[Expr] = [Call("min", (t, Const(n - 1))), Call("max", (_plus(t, -n), Const(0)))]
    sides = [tuple(own if name == label else name for name in x.labels) for own, x in ((i, a), (j, b))]
    combine = Call("case", (Call("lt", (t, Const(n))), Arg(0), Arg(1)))
    where = conjunction([Call("eq", (LabelValue(own), at)) for own, at in zip((i, j), places, strict=True)])
    subscripts = Subscripts((*sides, (label,)), a.labels)
    wholes, relations = matched((a, b, _ones_like(a, {label: n + m})), subscripts, Arg(0))
    nodes = tuple(map(_complete, wholes))
    dtype = typed(combine, [node.type.dtype for node in nodes])[1]
    return Tensor(a.session, Whole(Einsum(nodes, subscripts, combine, _only(dtype), where), 0), a.labels, relations)


def stack(tensors: Sequence[Tensor], label: str) -> Tensor:
    """Tensors of the same labels side by side along a new first label."""
    parts = list(tensors)
    if len(parts) > MOST_STACKED:
        groups = [parts[i : i + MOST_STACKED] for i in range(0, len(parts), MOST_STACKED)]
        return concat([stack(group, label) for group in groups], label)
    for part in _alike(parts, ""):
        if label in part.labels:
            raise ShapeError(f"stack wants a new label, and {part} has {label!r}")
    return joined((_ones_like(parts[0], {label: len(parts)}), *parts), _choice(label, 0, len(parts)))


def _choice(label: str, first: int, last: int) -> Expr:
    """Operand 1 + the coordinate along a label, of those from `first` up to `last`."""
    if last - first == 1:
        return Arg(1 + first)
    middle = (first + last) // 2
    test = Call("lt", (LabelValue(label), Const(middle)))
    return Call("case", (test, _choice(label, first, middle), _choice(label, middle, last)))


def _alike(tensors: Sequence[Tensor], label: str) -> list[Tensor]:
    """The tensors in a list; refuses none, and other labels than `label` that are not the same in all."""
    parts = list(tensors)
    if not parts:
        raise ShapeError("there is nothing to put together")
    for part in parts:
        as_tensor(part, "what is put together")
    for part in parts:
        if label:
            part.chosen([label])
        first, other = ({k: n for k, n in x.extents.items() if k != label} for x in (parts[0], part))
        if first != other:
            raise ShapeError(
                f"{parts[0]} and {part} differ in labels or extents" + (f" other than {label!r}" * bool(label))
            )
    return parts


# ----------------------------------------------------------------------------------------------------------- the join


def looked_up(
    x: Tensor, output: Sequence[str], extents: Mapping[str, int], index: Mapping[str, Expr], fill: Value | None = None
) -> Tensor:
    """out[output] = x with some of its labels at other coordinates.

    extents   of the labels of the output that are new, or have another extent than in x
    index     label of x -> its coordinate, as an expression over the output's labels
    fill      what a cell outside of x is worth; None: nothing is outside
    """
    if not index:
        return x
    labels = label_names(output)
    fresh = dict(zip(index, unused(len(index), {*x.labels, *labels}), strict=True))
    side = tuple(fresh.get(label, label) for label in x.labels)
    where = conjunction([Call("eq", (LabelValue(fresh[label]), at)) for label, at in index.items()])
    return _taken(x, _ones_like(x, extents), Subscripts((tuple(extents), side), labels), where, fill)


def _taken(x: Tensor, other: Tensor, subscripts: Subscripts, where: Expr | None, fill: Value | None) -> Tensor:
    """The values of x that a predicate picks. Where it picks none the result has no cell, and so its fill."""
    fill = x.whole.fill if fill is None else _fill_of(x, fill)
    (beside, read), relations = matched((other, x), subscripts, Arg(1))
    operand = read.node if read.fill == fill else _complete(read)
    node = Einsum((_complete(beside), operand), subscripts, Arg(1), _only(_dtype(x)), where)
    return Tensor(x.session, Whole(node, fill), subscripts.output, relations)


def _only(dtype: DType) -> str:
    """The reduction that gives back the only value that there is, in its dtype."""
    return "any" if dtype == BOOL else "sum" if dtype.is_complex else "max"


def _complete(whole: Whole) -> Node:
    """The node of a tensor without absent cells."""
    node = whole.node
    return node if node.type.complete else Fill(node, whole.fill)


def _ones_like(x: Tensor, extents: Mapping[str, int]) -> Tensor:
    """Ones over some labels, in the session of x."""
    relation = _ones(tuple(extents), tuple(extents.values()))
    node: Node = Input(relation.type, name=relation.name)
    return Tensor(x.session, Whole(node, 0), tuple(extents), {relation.name: relation})


def _dtype(x: Tensor) -> DType:
    return x.whole.node.type.dtype


def _check_index(index: Any, what: str) -> None:
    if not _dtype(as_tensor(index, what)).is_int:
        raise ShapeError(f"{what} holds integers, got {index}")


def _fill_of(x: Tensor, fill: Value) -> Value:
    """A fill that the dtype holds, or the error that names both."""
    dtype = _dtype(x)
    if isinstance(fill, bool | int | float | complex):
        value = bool(fill) if dtype == BOOL and fill in (0, 1) else fill
        if typed(Call("case", (Const(True), Arg(0), Const(value))), [dtype])[1] == dtype:
            return fill_value(str(x), value, dtype)
    raise DataError(f"{x} has no value {fill!r} for fill")


def _whole_numbers(what: str, numbers: Any) -> list[int]:
    for number in numbers:
        if not isinstance(number, int) or isinstance(number, bool):
            raise ShapeError(f"{what} is a whole number, got {number!r}")
    return list(numbers)


def _line(label: str, step: int, start: int) -> Expr:
    """start + step * label."""
    if step > 0:
        return _plus(_times(LabelValue(label), step), start)
    return Call("sub", (Const(start), _times(LabelValue(label), -step)))


def _plus(expr: Expr, n: int) -> Expr:
    return Call("add", (expr, Const(n))) if n > 0 else Call("sub", (expr, Const(-n))) if n else expr


def _times(expr: Expr, n: int) -> Expr:
    return expr if n == 1 else Call("mul", (expr, Const(n)))
