"""Sums of products of two stacks of blocks, as (batched) matrix products through BLAS."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gpu_exec.kernels.expression import largest, narrowed
from planner.relation_type import Label
from planner.subscripts import Labels

Array = np.ndarray
EXACT_IN_FLOAT64 = 2**53


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
    batch = [label for label in left if label in right and label in output]
    rows = [label for label in left if label not in right]
    columns = [label for label in right if label not in left]
    inner = [label for label in left if label in right and label not in output]
    x = _matrix(a, left, batch, rows, inner)
    y = _matrix(b, right, batch, inner, columns)
    product = _product(x, y)
    sizes = dict(zip(left, a.shape[1:], strict=True)) | dict(zip(right, b.shape[1:], strict=True))
    order = [*batch, *rows, *columns]
    product = product.reshape(len(product), *(sizes[label] for label in order))
    return product.transpose(0, *(1 + order.index(label) for label in output))


def _product(x: Array, y: Array) -> Array:
    """x @ y per batch; degenerate shapes go around the loop of tiny matrix products."""
    if x.dtype == object:
        return np.einsum("...ik,...kj->...ij", x, y, optimize=False) if x.size and y.size else x @ y
    if x.shape[-1] == 1:
        return x * y
    alone = math.prod(x.shape[:-2]) == 1 and math.prod(y.shape[:-2]) == 1
    if not alone and x.shape[-2] == 1 and y.shape[-1] == 1:
        return np.einsum("...ik,...kj->...ij", x, y)
    if alone:
        return (x.reshape(x.shape[-2:]) @ y.reshape(y.shape[-2:])).reshape(*x.shape[:-1], y.shape[-1])
    return np.matmul(x, y)


def _matrix(a: Array, labels: Labels, batch: Sequence[Label], first: Sequence[Label], second: Sequence[Label]) -> Array:
    """`a` as [rows, *batch, product of first, product of second]; a view wherever strides allow."""
    order = [1 + labels.index(label) for label in (*batch, *first, *second)]
    moved = a.transpose(0, *order)
    head = moved.shape[: 1 + len(batch)]
    middle = math.prod(moved.shape[1 + len(batch) : 1 + len(batch) + len(first)])
    last = math.prod(moved.shape[1 + len(batch) + len(first) :])
    return moved.reshape(*head, middle, last)


def _sum_alone(a: Array, labels: Labels, other: Labels, output: Labels) -> tuple[Array, Labels]:
    """Sum the labels that only this operand has and the output lacks."""
    alone = tuple(1 + i for i, label in enumerate(labels) if label not in other and label not in output)
    if not alone:
        return a, labels
    return a.sum(axis=alone), tuple(label for i, label in enumerate(labels) if 1 + i not in alone)
