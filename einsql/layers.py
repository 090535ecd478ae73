"""Layers of neural networks as compositions of einsums and scalar expressions; labels say over what."""

from __future__ import annotations

import math
from typing import Any

from einsql.builder import Labels, Scalar, Tensor, as_tensor
from einsql.functions import cos, exp, fused, label, log, sin, sqrt, where
from einsql.indexing import looked_up
from planner.dtypes import BOOL
from planner.errors import ShapeError
from planner.scalar_types import typed


def softmax(x: Tensor, labels: Labels) -> Tensor:
    """exp(x) / sum of exp(x) over labels, computed from x - max(x).

    Where all of x is -inf, as in a row that a mask leaves nothing of, the result is 0, not NaN.
    """
    weight, total = _weights(x, labels, _top(x, labels))
    return _narrow(fused(lambda w, n: w / where(n == 0, 1, n), weight, total), x)


def log_softmax(x: Tensor, labels: Labels) -> Tensor:
    """log(softmax(x)), without its rounding to 0; -inf where all of x is."""
    top = _top(x, labels)
    _, total = _weights(x, labels, top)
    return _narrow(fused(lambda v, m, n: v - _finite(m) - log(where(n == 0, 1, n)), x, top, total), x)


def logsumexp(x: Tensor, labels: Labels) -> Tensor:
    """log of the sum of exp(x) over labels, computed from x - max(x)."""
    top = _top(x, labels)
    _, total = _weights(x, labels, top)
    return _narrow(fused(lambda m, n: _finite(m) + log(n), top, total), x)


def _top(x: Tensor, labels: Labels) -> Tensor:
    x = as_tensor(x, "the argument")
    if x.is_exact:
        x = x.cast("float64")
    return x.max(labels)


def _weights(x: Tensor, labels: Labels, top: Tensor) -> tuple[Tensor, Tensor]:
    """exp(x - max), and its sum over labels."""
    weight: Tensor = fused(lambda v, m: exp(v - _finite(m)), x, top)
    return weight, weight.sum(labels)


def _finite(top: Any) -> Any:
    return where(top == -math.inf, 0, top)


def rms_norm(x: Tensor, weight: Tensor | None, labels: Labels, eps: float = 1e-5) -> Tensor:
    """x / sqrt(mean(x * x) + eps) * weight, with the mean over labels."""
    square = fused(lambda v: v * v, as_tensor(x, "the argument")).mean(labels)
    scale = [] if weight is None else [weight]
    return _narrow(fused(lambda v, m, *w: _scaled(v / sqrt(m + eps), w), x, square, *scale), x)


def layer_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, labels: Labels, eps: float = 1e-5) -> Tensor:
    """(x - mean(x)) / sqrt(var(x) + eps) * weight + bias, with mean and variance over labels."""
    centred: Tensor = x - as_tensor(x, "the argument").mean(labels)
    normal = rms_norm(centred, weight, labels, eps)
    return _narrow(normal if bias is None else normal + bias, x)


def _scaled(value: Any, weight: tuple[Any, ...]) -> Any:
    return value * weight[0] if weight else value


def attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    query: str = "t",
    key: str = "s",
    features: Labels = "e",
    causal: bool = False,
    mask: Any = None,
    scale: float | None = None,
) -> Tensor:
    """softmax(queries * keys * scale) * values: labels that all three share are heads or batches.

    query, key   the labels of positions in `queries`, and in `keys` and `values`
    features     the labels over which queries and keys are multiplied
    causal       position t sees the positions s <= t
    mask         booleans, true where a position is seen, or numbers that are added to the scores; a tensor over any of
                 the labels of the scores, or an expression as in `es.label("t") - es.label("s") < 128`
    scale        by default 1 / sqrt(extent of the features)

    Heads that share keys have two labels: queries (t, g, r, e), keys and values (s, g, e). A position that sees nothing
    gets zeros.
    """
    for name, x, own, other in (
        ("queries", queries, query, key),
        ("keys", keys, key, query),
        ("values", values, key, query),
    ):
        as_tensor(x, f"what an attention has for {name}").chosen([own])
        if other in x.labels:
            raise ShapeError(f"the {name} {x} of an attention have the label {own!r} and not {other!r}")
    queries.chosen(features)
    inner = keys.chosen(features)
    factor = 1 / math.sqrt(math.prod(keys.extents[name] for name in inner)) if scale is None else scale
    seen = [label(key) <= label(query)] if causal else []
    added: list[Any] = []
    if mask is not None:
        (seen if _is_condition(mask) else added).append(mask)

    def masked(score: Any, *given: Any) -> Any:
        score = score * factor
        for term in given[: len(added)]:
            score = score + term
        for condition in given[len(added) :]:
            score = where(condition, score, -math.inf)
        return score

    scores = fused(masked, (queries * keys).sum(inner), *added, *seen)
    return _narrow((softmax(scores, key) * values).sum(key), values)


def _narrow(done: Tensor, x: Tensor) -> Tensor:
    """Sums of float16 and bfloat16 are float32; a layer gives back the dtype that it got."""
    return done.cast(x.dtype) if x.dtype.itemsize == 2 and not x.is_exact else done


def _is_condition(mask: Any) -> bool:
    if not isinstance(mask, Scalar):
        return as_tensor(mask, "a mask").whole.node.type.dtype == BOOL
    return typed(mask.expr, [])[1] == BOOL


def rope(x: Tensor, position: Any = "t", pair: str = "e", base: float = 10000.0, style: str = "neighbours") -> Tensor:
    """Rotary position embedding: pair i of n features turned by the angle position * base ** (-2 i / n).

    position   a label whose coordinate it is, or a tensor of positions or an expression such as `es.label("t") + 17`
    style      what a pair is: "neighbours" (2 i, 2 i + 1), as in LLaMA, or "halves" (i, i + n / 2), as in GPT-NeoX
    """
    (pair,) = as_tensor(x, "the argument").chosen([pair])
    n = x.extents[pair]
    if n % 2:
        raise ShapeError(f"rope turns pairs of {pair!r}, and {x} has {n} of them, an odd number")
    if style not in ("neighbours", "halves"):
        raise ShapeError(f"style is 'neighbours' or 'halves', got {style!r}")
    own, half = label(pair), max(n // 2, 1)
    which, is_first, partner = (
        (own // 2, own % 2 == 0, own // 2 * 2 + (1 - own % 2))
        if style == "neighbours"
        else (own % half, own < half, (own + half) % max(n, 1))
    )
    other = looked_up(x, x.labels, {pair: n}, {pair: partner.expr})

    def turned(value: Any, beside: Any, place: Any) -> Any:
        angle = place * base ** (which * (-2 / max(n, 1)))
        return value * cos(angle) + where(is_first, -beside, beside) * sin(angle)

    place = label(position) if isinstance(position, str) else position
    if isinstance(place, Tensor) and place.is_exact:  # whole numbers would widen narrower floats
        place = place.cast("float64" if x.dtype.itemsize > 4 else "float32")
    return _narrow(fused(turned, x, other, place), x)
