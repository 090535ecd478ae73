"""Sums of products of two stacks of blocks, as (batched) matrix products through BLAS.

BLAS reads an operand where it lies if its strides allow that, and writes the product into its place in the output. What
must be copied first is copied in the order that costs least.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from gpu_exec.kernels.expression import largest, narrowed
from planner.relation_type import Label
from planner.subscripts import Labels

Array = np.ndarray
EXACT_IN_FLOAT64 = 2**53
Axes = tuple[tuple[Label, int, int], ...]  # label, extent and stride of each axis of an array
Group = list[Label]  # labels that are read as one axis of a matrix
ROW: Label = ""  # names the leading axis of a stack among the labels of its blocks
AGAINST_THE_GRAIN = 4  # an element copied where runs do not stay together: 0.2 ms/MB, elsewhere 0.05


@np.errstate(all="ignore")  # infinity and NaN are values
def contract(a: Array, b: Array, left: Labels, right: Labels, output: Labels) -> Array:
    """out[r, output] = sum over contracted labels of a[r, left] * b[r, right], for every row r.

    a, b     [rows, *left], [rows, *right]; labels are distinct inside an operand
    Returns  [rows, *output], in the dtype of the operands; integers exactly, by float64 BLAS where that
             is exact, and as Python integers where int64 cannot hold them
    """
    if a.dtype == np.int64:
        return _contract_integers(a, b, left, right, output)
    if a.dtype == bool:
        counts = _matmul(a.astype(np.float32), b.astype(np.float32), left, right, output)
        return counts > 0
    out = _matmul(a, b, left, right, output)
    alone = tuple(label for label in (*left, *right) if (label in left) != (label in right) and label not in output)
    if alone and not np.isfinite(out).all():  # a factor taken out of a sum: right, unless infinity or overflow is about
        return _matmul(a, b, left, right, (*output, *alone)).sum(axis=tuple(range(-len(alone), 0)))
    return out


def _contract_integers(a: Array, b: Array, left: Labels, right: Labels, output: Labels) -> Array:
    sizes = dict(zip(left, a.shape[1:], strict=True)) | dict(zip(right, b.shape[1:], strict=True))
    terms = math.prod(size for label, size in sizes.items() if label not in output)
    bound = largest(a) * largest(b) * terms
    if bound < EXACT_IN_FLOAT64:
        product = _matmul(a.astype(np.float64), b.astype(np.float64), left, right, output)
        return product.astype(np.int64)
    if bound < 2**63:
        return _matmul(a, b, left, right, output)
    return narrowed(_matmul(a.astype(object), b.astype(object), left, right, output))


def _matmul(a: Array, b: Array, left: Labels, right: Labels, output: Labels) -> Array:
    a, left = _sum_alone(a, left, right, output)
    b, right = _sum_alone(b, right, left, output)
    if len(b) == 1:
        b, left = b[0, ...], (ROW, *left)
    elif len(a) == 1:
        a, right = a[0, ...], (ROW, *right)
    else:
        left, right = (ROW, *left), (ROW, *right)
    how = _layout(_axes(a, left), _axes(b, right), (ROW, *output), a.itemsize)
    if how.place.cost:
        return _product(how.a.of(a), how.b.of(b), None).reshape(how.sizes).transpose(how.order)
    out = np.empty(how.whole, a.dtype)
    _product(how.a.of(a), how.b.of(b), how.place.of(out))
    return out


def _product(x: Array, y: Array, out: Array | None) -> Array:
    """x @ y per batch; degenerate shapes go around the loop of tiny matrix products."""
    if x.dtype == object and x.size and y.size:
        return np.einsum("...ik,...kj->...ij", x, y, out=out, optimize=False)
    if x.shape[-1] == 1:
        return np.multiply(x, y, out=out)
    if x.shape[-2] == y.shape[-1] == 1 and math.prod(x.shape[:-2]) > 1:
        return np.einsum("...ik,...kj->...ij", x, y, out=out)
    return np.matmul(x, y, out=out)


def _sum_alone(a: Array, labels: Labels, other: Labels, output: Labels) -> tuple[Array, Labels]:
    """Sum the labels that only this operand has and the output lacks."""
    alone = tuple(1 + i for i, label in enumerate(labels) if label not in other and label not in output)
    if not alone:
        return a, labels
    return a.sum(axis=alone), tuple(label for i, label in enumerate(labels) if 1 + i not in alone)


# ------------------------------------------------------------------------------------------------ arrays as matrices


@dataclass(frozen=True)
class _Matrices:
    """How an array becomes a stack of matrices, [*batch, product of first, product of second].

    axes     its axes in the order in which they are read
    shape    what these are reshaped to
    turned   second and first change places in `axes` and `shape`, because a copy is cheaper so
    cost     of the copy that BLAS needs, in elements; 0: the matrices are a view that it takes as it is
    """

    axes: tuple[int, ...]
    shape: tuple[int, ...]
    turned: bool
    cost: int

    def of(self, array: Array) -> Array:
        """The matrices; a view where that costs nothing."""
        matrices = array.transpose(self.axes).reshape(self.shape)
        return matrices.swapaxes(-1, -2) if self.turned else matrices


@dataclass(frozen=True)
class _Layout:
    """How two operands become matrices, and where their product goes.

    whole         the shape of the output
    place         the output as matrices; where BLAS cannot write to them, the product gets a place of its own,
    sizes, order  [batch, rows, columns] of these extents, whose axes in this order are the output
    """

    a: _Matrices
    b: _Matrices
    whole: tuple[int, ...]
    place: _Matrices
    sizes: tuple[int, ...]
    order: tuple[int, ...]


def _axes(array: Array, labels: Labels) -> Axes:
    return tuple(zip(labels, array.shape, array.strides, strict=True))


@lru_cache(maxsize=4096)
def _layout(left: Axes, right: Axes, output: Labels, unit: int) -> _Layout:
    """The layout of least copying, over the orders that operands and output suggest for rows, columns, inner axis."""
    sizes = {label: extent for label, extent, _ in (*left, *right)}
    a, b = [label for label, _, _ in left], [label for label, _, _ in right]
    batch = [label for label in output if label in a and label in b]
    rows = _orders([label for label in output if label not in b], a)
    columns = _orders([label for label in output if label not in a], b)
    inner = _orders([label for label in a if label in b and label not in output], b)
    whole = tuple(sizes[label] for label in output)
    target = tuple((label, sizes[label], unit * math.prod(whole[i + 1 :])) for i, label in enumerate(output))
    found = []
    for r, c, k in itertools.product(rows, columns, inner):
        order = [*batch, *r, *c]
        found.append(
            _Layout(
                a=_matrices(left, batch, r, k, unit),
                b=_matrices(right, batch, k, c, unit),
                whole=whole,
                place=_matrices(target, batch, r, c, unit),
                sizes=tuple(sizes[label] for label in order),
                order=tuple(order.index(label) for label in output),
            )
        )
    return min(found, key=lambda how: how.a.cost + how.b.cost + how.place.cost)


def _orders(labels: Group, other: Group) -> list[Group]:
    """These labels in their own order, and in that of `other`."""
    again = [label for label in other if label in labels]
    return [labels] if again == labels else [labels, again]


def _matrices(array: Axes, batch: Group, first: Group, second: Group, unit: int) -> _Matrices:
    labels = [label for label, _, _ in array]
    size = {label: extent for label, extent, _ in array}
    stride = {label: step for label, extent, step in array if extent != 1}
    steps = [_step([label for label in group if label in stride], size, stride, unit) for group in (first, second)]
    cells, turned, cost = math.prod(size.values()), False, 0
    if cells and (None in steps or unit not in steps):  # BLAS wants two axes, one of them of unit stride
        inmost = min(stride, key=lambda label: stride[label])
        turned = None in steps and inmost in first
        cost = cells if [inmost] == (first if turned else second)[-1:] else cells * AGAINST_THE_GRAIN
    groups = (second, first) if turned else (first, second)
    axes = tuple(labels.index(label) for label in (*batch, *groups[0], *groups[1]))
    shape = [size[label] for label in batch] + [math.prod(size[label] for label in group) for group in groups]
    return _Matrices(axes, tuple(shape), turned, cost)


def _step(group: Group, size: Mapping[Label, int], stride: Mapping[Label, int], unit: int) -> int | None:
    """The stride of a group of labels read as one axis; None where they are none."""
    if any(stride[i] != stride[j] * size[j] for i, j in itertools.pairwise(group)):
        return None
    return stride[group[-1]] if group else unit
