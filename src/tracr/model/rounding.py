"""Proves bounds on the rounding errors of a forward pass in a number format, for each input.

Weights are designed for float32. Whether a model is right in a shorter format depends on its weights (2**34 does not
fit into float16), on the number of bits that its sums need, and on the distance between outputs. This module runs the
model in float64 and computes a bound e for every number x of the pass: in the format, the same number is in
[x - e, x + e].

**Arithmetic.** With p bits, u = 2**-p, and s the distance between neighbours near 0, rounding a result to the format
changes it by at most u times itself, or s. The bounds hold for every framework and device that is at least as accurate
as this: products of matrices are added up in float32, in any order, and rounded once; heads are added up in one such
product, or each is rounded first; sums of two, exponentials and quotients are rounded once each.

**Exact sums.** If all terms of a sum are exact multiples of a power of two g, and their absolute values add up to at
most 2**24 g, every partial sum fits into float32. Then the sum is exact in any order, and if it fits into p bits,
nothing is rounded. Sums of one-hot codes, and scores that are multiples of 256, are of this kind.

**Other sums** of k terms x_i w_i have an error of k 2**-24 times the sum of |x_i w_i|, plus the last rounding. Errors
e_i of the x_i add the sum of e_i |w_i|.

**Softmax.** A key whose score is 104 or more below the largest has weight 0: exp(-104) is 0 in float32. If all other
scores are exactly the largest, their exponentials are 1 and add up to their number w, and the weights are 1/w, rounded
once. A single remaining key has weight 1, for any error of its score. Otherwise an error e_j of a score, and an error E
of the maximum, change the exponential by a factor of at most exp(e_j + E). They change the weight by this factor, by
the same factor of the sum, and by the roundings.

**MLP.** Neurons whose sign is certain are linear. An error of their inputs passes through all of them together, by the
matrix W_in W_out of the neurons that are on: on a plateau of a staircase (`craft/mlps.py`) it cancels. Neurons of
uncertain sign pass on at most their own error, because relu does not increase distances.

If a number may be larger than the format's largest, or an error is huge, nothing is proved for the input: the error of
its logits is infinite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.craft.numerics import U
from tracr.ir.parameters import LayerParameters, Parameters
from tracr.model.number_formats import Format

__all__ = ["Bounded", "bounded_logits"]

Array = NDArray[Any]
VANISHES = -104.0  # exp of this is 0 in float32
ZERO = 2**20  # the exponent used for 0, which is a multiple of every power of two
FLOAT32 = 24  # bits
SLACK = 1.01  # covers the rounding of float64 and terms of second order
CAP = 1e9  # an input with a larger error counts as lost


@dataclass(frozen=True, eq=False)
class Bounded:
    """Numbers in float64, and bounds on their errors in the format."""

    value: Array
    error: Array

    def map(self, f: Callable[[Array], Array]) -> Bounded:
        """Apply `f`, which selects or moves entries, to the numbers and to the bounds."""
        return Bounded(f(self.value), f(self.error))

    @property
    def size(self) -> Array:
        """The largest absolute values within the bounds."""
        return np.asarray(np.abs(self.value) + self.error)


@dataclass(frozen=True, eq=False)
class Product:
    """A product of matrices; `passed` is the error from the left factor, `own` that from the right one and rounding."""

    value: Array
    passed: Array
    own: Array

    @property
    def bounded(self) -> Bounded:
        """The product with all of its error."""
        return Bounded(self.value, self.passed + self.own)


def bounded_logits(parameters: Parameters, ids: Array, number_format: Format, *, causal: bool) -> Bounded:
    """The logits [batch, position, d_vocab_out] of a pass in the format."""
    arithmetic = _Arithmetic(number_format, len(ids))
    weights = parameters.map(arithmetic.weight)
    length = ids.shape[1]
    mask = np.tri(length, dtype=bool) if causal else np.ones((length, length), dtype=bool)
    embed = weights.W_E.map(lambda array: array[ids])
    positions = weights.W_pos.map(lambda array: np.broadcast_to(array[:length], embed.value.shape))
    stream = arithmetic.add(embed, positions)
    for layer in weights.layers:
        if layer.W_Q.value.shape[0]:
            stream = arithmetic.add(stream, _attention(arithmetic, layer, stream, mask))
        if layer.W_in.value.shape[1]:
            stream = arithmetic.add(stream, _mlp(arithmetic, layer, stream))
    logits = arithmetic.product(stream, weights.W_U).bounded
    return Bounded(logits.value, np.where(arithmetic.lost[:, None, None], np.inf, logits.error))


class _Arithmetic:
    """The operations of a pass in a format; `lost` marks the inputs with a number that may be too large for it."""

    def __init__(self, number_format: Format, batch: int) -> None:
        self.format, self.u, self.lost = number_format, SLACK * number_format.roundoff, np.zeros(batch, dtype=bool)

    def weight(self, array: Array) -> Bounded:
        """Weights, rounded to the format if necessary."""
        exact = self._fits(array)
        error = np.where(exact, 0.0, self.u * np.abs(array) + self.format.smallest)
        self.lost |= bool((np.abs(array) + error > self.format.largest).any())
        return Bounded(array, error)

    def add(self, one: Bounded, other: Bounded) -> Bounded:
        """The sum of two arrays."""
        return self.rounded(one.value + other.value, one.error + other.error)

    def total(self, parts: Bounded, axis: int) -> Bounded:
        """The sum over an axis, rounded once."""
        value, error, size = parts.value.sum(axis), parts.error.sum(axis), parts.size.sum(axis)
        exact = (error == 0) & _exact(size, _grid(parts.value).min(axis))
        return self.rounded(value, error + np.where(exact, 0.0, parts.value.shape[axis] * SLACK * U * size))

    def product(self, left: Bounded, right: Bounded) -> Product:
        """left @ right."""
        value, passed, size = left.value @ right.value, left.error @ np.abs(right.value), left.size @ right.size
        there, given = (right.size != 0).astype(float), (left.size != 0).astype(float)
        inexact = (left.error != 0).astype(float) @ there + given @ (right.error != 0).astype(float)
        exact = (inexact == 0) & _exact(size, _product_grid(_grid(left.value), _grid(right.value)))
        own = left.size @ right.error + np.where(exact, 0.0, (given @ there) * SLACK * U * size)
        return Product(value, passed, self.rounded(value, passed + own).error - passed)

    def biased(self, product: Product, bias: Bounded) -> Product:
        """A product plus a bias."""
        value, passed = product.value + bias.value, product.passed
        return Product(value, passed, self.rounded(value, passed + product.own + bias.error).error - passed)

    def rounded(self, value: Array, error: Array) -> Bounded:
        """A result with an error, rounded to the format."""
        off = np.where((error == 0) & self._fits(value), 0.0, self.u * (np.abs(value) + error) + self.format.smallest)
        error = error + off
        lost = (error > CAP) | (np.abs(value) + error > self.format.largest)
        self.lost |= lost.any(axis=tuple(range(1, value.ndim)))
        return Bounded(value, np.minimum(error, CAP))

    def softmax(self, scores: Bounded, mask: Array) -> Bounded:
        """The softmax over the last axis."""
        value = np.where(mask, scores.value, -np.inf)
        below = value - value.max(axis=-1, keepdims=True)
        off = (below + scores.error).max(axis=-1, keepdims=True)  # the error of the largest score
        depth = np.where(mask, -below, 0.0)
        shift = scores.error + off + 2 * self.u * depth
        gone = ~mask | (below + shift <= VANISHES)
        powers = np.where(gone, 0.0, np.exp(below))
        pattern = powers / powers.sum(axis=-1, keepdims=True)
        count = (~gone).sum(axis=-1, keepdims=True)
        equal = (gone | (shift == 0)).all(axis=-1, keepdims=True) & (count <= 2**self.format.bits)
        plain = equal | (count == 1)
        once = np.where(np.log2(count) % 1 == 0, 0.0, 2 * self.u)
        factor = np.where(gone, 0.0, np.expm1(np.minimum(shift, 50.0)) + 3 * self.u)
        total = factor.max(axis=-1, keepdims=True) + self.u * count
        usual = (1 + factor) * (1 + 2 * self.u) / np.maximum(1 - total, 0.5) - 1
        error = pattern * np.where(plain, once, usual) + np.where(plain, 0.0, self.format.smallest)
        error = np.where(plain | (total < 0.5), np.minimum(error, 1.0), 1.0)
        return Bounded(pattern, np.where(gone, 0.0, error))

    def _fits(self, array: Array) -> Array:
        """Whether the format holds each number exactly."""
        grid = _grid(array)
        bits = np.ldexp(1.0, np.minimum(grid + self.format.bits, 1000))
        return np.asarray((np.abs(array) <= bits) & (grid >= self.format.lowest))


def _attention(arithmetic: _Arithmetic, layer: LayerParameters, stream: Bounded, mask: Array) -> Bounded:
    each = stream.map(lambda array: array[:, None])  # [batch, head, position, d_model]

    def project(weight: Bounded, bias: Bounded) -> Bounded:
        product = arithmetic.product(each, weight)
        return arithmetic.biased(product, bias.map(lambda array: array[:, None])).bounded

    q, k, v = project(layer.W_Q, layer.b_Q), project(layer.W_K, layer.b_K), project(layer.W_V, layer.b_V)
    scores = arithmetic.product(q, k.map(lambda array: np.swapaxes(array, 2, 3))).bounded
    z = arithmetic.product(arithmetic.softmax(scores, mask), v).bounded
    apart = arithmetic.total(arithmetic.product(z, layer.W_O).bounded, axis=1)  # the result of each head, and their sum
    mixed = z.map(lambda array: np.moveaxis(array, 1, 2).reshape(*array.shape[::2], -1))
    whole = arithmetic.product(mixed, layer.W_O.map(lambda array: array.reshape(-1, array.shape[2]))).bounded
    return arithmetic.add(Bounded(apart.value, np.maximum(apart.error, whole.error)), layer.b_O)


def _mlp(arithmetic: _Arithmetic, layer: LayerParameters, stream: Bounded) -> Bounded:
    pre = arithmetic.biased(arithmetic.product(stream, layer.W_in), layer.b_in)
    error = pre.passed + pre.own
    off, on = pre.value < -error, pre.value > error
    post = Bounded(np.maximum(pre.value, 0.0), np.where(off, 0.0, error))
    out = arithmetic.product(post, layer.W_out)
    apart = np.where(off, 0.0, pre.own) + np.where(on | off, 0.0, pre.passed)  # the own error of each neuron
    together = _through(stream.error, layer.W_in.value, layer.W_out.value, on)
    passed = np.minimum(out.passed, SLACK * (apart @ np.abs(layer.W_out.value) + together))
    return arithmetic.biased(Product(out.value, passed, out.own), layer.b_out).bounded


def _through(error: Array, read: Array, write: Array, on: Array) -> Array:
    """The errors of a stream after the neurons that are on."""
    total = np.zeros((*error.shape[:-1], write.shape[1]))
    for place in np.flatnonzero(error.any(axis=tuple(range(error.ndim - 1)))):
        total += error[..., place, None] * np.abs((on * read[place]) @ write)
    return total


def _grid(array: Array) -> NDArray[np.int64]:
    """The exponent of the largest power of two that divides each number."""
    fraction, exponent = np.frexp(array)
    whole = np.ldexp(fraction, 53).astype(np.int64)
    lowest = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.where(whole == 0, ZERO, exponent.astype(np.int64) - 53 + lowest)


def _exact(size: Array, grid: Array) -> Array:
    """Whether float32 adds multiples of 2**grid exactly, in any order, if their absolute values add up to `size`."""
    return np.asarray(size <= np.ldexp(1.0, np.minimum(grid + FLOAT32, 1000)))


def _product_grid(left: Array, right: Array) -> Array:
    """The exponent of a power of two that divides all terms of each entry of a product, from those of the factors."""
    shape = np.broadcast_shapes((*left.shape[:-1], 1), (*right.shape[:-2], 1, right.shape[-1]))
    found = np.full(shape, ZERO)
    for place in range(left.shape[-1]):
        np.minimum(found, left[..., place, None] + right[..., place, :][..., None, :], out=found)
    return found
