"""A second, slow implementation of the checker's core: exact fractions, one number at a time.

It says what the fast core must contain: the exact range of what a column reads of boxes, the exact range of a sum of
relus, the exact range of a head's mean, and the exact stream of a model on one input. The exponential is the only
function that is not rational: it is computed to 60 digits and rounded to a multiple of 2⁻¹⁸⁰.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

__all__ = ["Stream", "exact_mixture", "exact_power", "exact_read", "exact_relus", "exact_streams", "grid"]

Vector = list[Fraction]
FINEST = 2**180


def grid(x: Fraction) -> Fraction | None:
    """The largest power of two that divides a number whose denominator is a power of two; None for 0."""
    if x == 0:
        return None
    numerator, denominator = abs(x.numerator), x.denominator
    assert denominator & (denominator - 1) == 0
    return Fraction(numerator & -numerator, denominator)


def exact_read(
    lo: Sequence[Fraction], hi: Sequence[Fraction], column: Sequence[Fraction]
) -> tuple[Fraction, Fraction, Fraction, Fraction, int]:
    """What a column reads of a box: least, most, the sums of positive and of negative parts, terms that are not 0."""
    ends = [sorted((low * w, high * w)) for low, high, w in zip(lo, hi, column, strict=True)]
    up = sum((max(b, Fraction(0)) for _, b in ends), Fraction(0))
    down = sum((max(-a, Fraction(0)) for a, _ in ends), Fraction(0))
    terms = sum(1 for a, b in ends if a or b)
    return sum((a for a, _ in ends), Fraction(0)), sum((b for _, b in ends), Fraction(0)), up, down, terms


def exact_relus(
    w: Sequence[Fraction], b: Sequence[Fraction], c: Sequence[Fraction], lo: Fraction, hi: Fraction
) -> tuple[Fraction, Fraction]:
    """The range of Σ c relu(w x + b) for x from lo to hi: its values at the ends and at the kinks inside."""
    kinks = [-bias / weight for weight, bias in zip(w, b, strict=True) if weight and lo < -bias / weight < hi]

    def value(x: Fraction) -> Fraction:
        neurons = (out * max(weight * x + bias, Fraction(0)) for weight, bias, out in zip(w, b, c, strict=True))
        return sum(neurons, Fraction(0))

    found = [value(x) for x in (lo, hi, *kinks)]
    return min(found), max(found)


def exact_power(x: Fraction) -> Fraction:
    """e to the power x, to 60 digits."""
    with localcontext() as context:
        context.prec = 60
        power = (Decimal(x.numerator) / Decimal(x.denominator)).exp()
    return Fraction(round(Fraction(power) * FINEST), FINEST)


def exact_mixture(
    sums: Sequence[Fraction], bos: Sequence[Fraction], logs: Sequence[Fraction], count: int
) -> tuple[Fraction, Fraction]:
    """The range of (S + C b) / (w + C) for S, b and log C between two numbers each: by trying all ends."""
    found = []
    for log in logs:
        weight = exact_power(log)
        found += [(s + weight * b) / (count + weight) for s in sums for b in bos]
    return min(found), max(found)


@dataclass(frozen=True)
class Stream:
    """The residual stream [position][dimension] after each sub-layer, the embedding first; and the logits."""

    after: tuple[list[Vector], ...]
    logits: list[Vector]


def exact_streams(weights: Mapping[str, NDArray[Any]], ids: Sequence[int], causal: bool) -> Stream:
    """The exact stream of a model for ids, BOS included; weights are given in the format they are cast to."""
    exact = {name: _fractions(array.tolist()) for name, array in weights.items()}
    stream = [
        [a + b for a, b in zip(exact["embed.W_E"][number], exact["pos_embed.W_pos"][place], strict=True)]
        for place, number in enumerate(ids)
    ]
    after = [stream]
    layers = len({name.split(".")[1] for name in weights if name.startswith("blocks.")})
    for number in range(layers):
        layer = {name.rpartition(".")[2]: exact[name] for name in exact if name.startswith(f"blocks.{number}.")}
        stream = _added(stream, _attention(layer, stream, causal))
        after.append(stream)
        stream = _added(stream, _mlp(layer, stream))
        after.append(stream)
    return Stream(tuple(after), [_times(row, exact["unembed.W_U"]) for row in stream])


def _fractions(data: Any) -> Any:
    return [_fractions(item) for item in data] if isinstance(data, list) else Fraction(data)


def _times(row: Vector, matrix: list[Vector]) -> Vector:
    """A row times a matrix; zeros are left out."""
    width = len(matrix[0]) if matrix else 0
    total = [Fraction(0)] * width
    for x, weights in zip(row, matrix, strict=True):
        if x:
            total = [t + x * w if w else t for t, w in zip(total, weights, strict=True)]
    return total


def _added(stream: list[Vector], more: list[Vector]) -> list[Vector]:
    return [[a + b for a, b in zip(row, other, strict=True)] for row, other in zip(stream, more, strict=True)]


def _affine(row: Vector, matrix: list[Vector], bias: Vector) -> Vector:
    return [a + b for a, b in zip(_times(row, matrix), bias, strict=True)] if bias else []


def _attention(layer: Mapping[str, Any], stream: list[Vector], causal: bool) -> list[Vector]:
    found = [list(layer["b_O"]) for _ in stream]
    for head in range(len(layer["W_Q"])):
        q, k, v = ([_affine(row, layer[f"W_{p}"][head], layer[f"b_{p}"][head]) for row in stream] for p in "QKV")
        for i, query in enumerate(q):
            keys = range(i + 1) if causal else range(len(stream))
            scores = [sum((a * b for a, b in zip(query, k[j], strict=True)), Fraction(0)) for j in keys]
            powers = [
                exact_power(score - max(scores)) if max(scores) - score < 200 else Fraction(0) for score in scores
            ]
            total = sum(powers, Fraction(0))
            read = [
                sum((power * v[j][place] for j, power in enumerate(powers) if power), Fraction(0)) / total
                for place in range(len(v[0]))
            ]
            read = [Fraction(round(x * FINEST), FINEST) for x in read]
            found[i] = [a + b for a, b in zip(found[i], _times(read, layer["W_O"][head]), strict=True)]
    return found


def _mlp(layer: Mapping[str, Any], stream: list[Vector]) -> list[Vector]:
    if not layer["b_in"]:
        return [list(layer["b_out"]) for _ in stream]
    hidden = [[max(x, Fraction(0)) for x in _affine(row, layer["W_in"], layer["b_in"])] for row in stream]
    return [_affine(row, layer["W_out"], layer["b_out"]) for row in hidden]
