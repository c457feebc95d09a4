"""Proves bounds on the rounding errors of a forward pass in a number format, for each input.

Weights are designed for float32. Whether a model is right in a shorter format depends on its weights (2**34 does not
fit into float16), on the number of bits that its sums need, and on the distance between outputs. This module runs the
model in float64 and computes a number x and a bound e for every number of the pass: in the format it is in
[x - e, x + e]. Where nothing is rounded, x is the number of float64.

**Arithmetic.** With p bits, u = 2**-p, and s the distance between neighbours near 0, rounding a result between 2**k and
2**(k+1) to the format changes it by at most u 2**k, or s. The bounds hold for every framework and device that is at
least as accurate as this: products of matrices are added up in float32, in any order, and rounded once; heads are
added up in one such product, or each is rounded first; sums of two are rounded once; a softmax is computed in float32,
and its weights are rounded once.

**Stored numbers.** If numbers are stored in the format (`Format.stored`: not in tf32, and not where a compiler keeps
more bits), they are rounded to the nearest number of p bits. If both ends of the bounds of a result are rounded to the
same number, that is the stored number, without an error: x is this number then, not that of float64. Every number also
has a power of two g, its grid: whatever it is within its bounds, it is a multiple of g. A stored number of p bits that
is at least 2**k in size is a multiple of 2**(k+1-p).

**Exact sums.** If all terms of a sum are multiples of g, and their absolute values add up to at most 2**24 g, every
partial sum fits into float32. Then the sum is exact in any order, and if it is at most 2**p g, nothing is rounded. Sums
of one-hot codes, scores that are multiples of 256, and the neurons of a staircase (`craft/staircases.py`) are of this
kind.

**Other sums** of k terms x_i w_i have an error of k 2**-24 times the sum of |x_i w_i|, plus the last rounding. Errors
e_i of the x_i add the sum of e_i |w_i|.

**Softmax.** A key whose score is 104 or more below the largest has weight 0: exp(-104) is 0 in float32. If all other
scores are exactly the largest, their exponentials are 1 and add up to their number w, and the weights are 1/w, rounded
to float32 and to the format. A single remaining key has weight 1, for any error of its score. Otherwise an error e_j of
a score, and an error E of the maximum, change the exponential by a factor of at most exp(e_j + E). They change the
weight by this factor, by the same factor of the sum, and by the roundings.

**MLP.** Neurons whose sign is certain are linear. An error of their inputs passes through all of them together, by the
matrix W_in W_out of the neurons that are on: on a plateau of a staircase (`craft/staircases.py`) it cancels. In the
stream after the MLP it passes by 1 + W_in W_out: where neurons clear a slot, its error vanishes. Neurons of uncertain
sign pass on at most their own error, because relu does not increase distances.

If a number may be larger than the format's largest, or an error is huge, nothing is proved for the input: the error of
its logits is infinite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
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
NO_GRID = -(2**16)  # the exponent used if no power of two is known
FLOAT32 = 24  # bits
SLACK = 1.01  # covers the rounding of float64 and terms of second order
CAP = 1e9  # an input with a larger error counts as lost


@dataclass(frozen=True, eq=False)
class Bounded:
    """Numbers in float64, bounds on their errors in the format, and the exponents of their grids."""

    value: Array
    error: Array
    grid: Array

    def map(self, f: Callable[[Array], Array]) -> Bounded:
        """Apply `f`, which selects or moves entries, to the numbers, the bounds and the grids."""
        return Bounded(f(self.value), f(self.error), f(self.grid))

    @property
    def size(self) -> Array:
        """The largest absolute values within the bounds."""
        return np.asarray(np.abs(self.value) + self.error)


@dataclass(frozen=True, eq=False)
class Product:
    """A product of matrices; `passed` is the error from the left factor, `own` that from the right one and rounding.

    `bounded` is the product with all of its error.
    """

    bounded: Bounded
    passed: Array
    own: Array


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
            stream = _after_mlp(arithmetic, layer, stream)
    logits = arithmetic.product(stream, weights.W_U, stored=True).bounded
    return Bounded(logits.value, np.where(arithmetic.lost[:, None, None], np.inf, logits.error), logits.grid)


class _Arithmetic:
    """The operations of a pass in a format; `lost` marks the inputs with a number that may be too large for it."""

    def __init__(self, number_format: Format, batch: int) -> None:
        self.format, self.u, self.lost = number_format, SLACK * number_format.roundoff, np.zeros(batch, dtype=bool)

    def weight(self, array: Array) -> Bounded:
        """Weights, rounded to the format if necessary."""
        found = self._round(array, np.zeros(array.shape), _grid(array))
        self.lost |= bool((found.size > self.format.largest).any())
        return found

    def add(self, one: Bounded, other: Bounded) -> Bounded:
        """The sum of two arrays."""
        return self.rounded(one.value + other.value, one.error + other.error, np.minimum(one.grid, other.grid))

    def total(self, parts: Bounded, axis: int) -> Bounded:
        """The sum over an axis, rounded once."""
        value, error, size = parts.value.sum(axis), parts.error.sum(axis), parts.size.sum(axis)
        grid = parts.grid.min(axis)
        exact = _exact(size, grid)
        error = error + np.where(exact, 0.0, parts.value.shape[axis] * SLACK * U * size)
        return self.rounded(value, error, np.where(exact, grid, NO_GRID), stored=False)

    def product(self, left: Bounded, right: Bounded, *, stored: bool = False) -> Product:
        """left @ right; `stored`: it is surely rounded. A bias may be added before rounding, or after another one."""
        value, passed, size = left.value @ right.value, left.error @ np.abs(right.value), left.size @ right.size
        terms = (left.size != 0).astype(float) @ (right.size != 0).astype(float)
        grid = _product_grid(left.grid, right.grid)
        exact = _exact(size, grid)
        own = left.size @ right.error + np.where(exact, 0.0, terms * SLACK * U * size)
        return self._product(value, passed, own, np.where(exact, grid, NO_GRID), stored=stored)

    def biased(self, product: Product, bias: Bounded) -> Product:
        """A product plus a bias."""
        grid = np.minimum(product.bounded.grid, bias.grid)
        return self._product(
            product.bounded.value + bias.value, product.passed, product.own + bias.error, grid, stored=True
        )

    def _product(self, value: Array, passed: Array, own: Array, grid: Array, *, stored: bool) -> Product:
        found = self.rounded(value, passed + own, grid, stored=stored)
        rounding = np.where(self._fits(value, passed + own, grid), 0.0, self._step(np.abs(value) + passed + own))
        return Product(found, passed, own + rounding)

    def rounded(self, value: Array, error: Array, grid: Array, *, stored: bool = True) -> Bounded:
        """A result with an error and a grid, rounded to the format; not `stored`: or left as it is."""
        found = self._round(value, error, grid, stored=stored)
        lost = (found.error > CAP) | (found.size > self.format.largest)
        self.lost |= lost.any(axis=tuple(range(1, value.ndim)))
        return Bounded(found.value, np.minimum(found.error, CAP), found.grid)

    def _step(self, size: Array) -> Array:
        """The largest change of a number of this size by rounding."""
        return np.asarray(self.u * _power_below(size) + self.format.smallest)

    def _fits(self, value: Array, error: Array, grid: Array) -> Array:
        """Whether the format holds all multiples of the grid within the bounds."""
        held = np.ldexp(1.0, np.clip(grid + self.format.bits, -1000, 1000))
        return np.asarray((np.abs(value) + error <= held) & (grid >= self.format.lowest))

    def _round(self, value: Array, error: Array, grid: Array, *, stored: bool = True) -> Bounded:
        fits, size = self._fits(value, error, grid), np.abs(value) + error
        if not (stored and self.format.stored):
            error = error + np.where(fits, 0.0, self._step(size))
            return Bounded(*_snapped(value, error, np.where(fits, grid, NO_GRID)))
        slack = error + 2.0**-23 * size  # of a first rounding to float32
        low, high = self._nearest(value - slack), self._nearest(value + slack)
        usual = size >= 2.0 ** (self.format.lowest + self.format.bits + 2)  # numbers near 0 may be rounded otherwise
        certain = ~fits & usual & (low == high)
        value = np.where(certain, low, value)
        off = np.where(usual, np.maximum(high - value, value - low), error + self._step(size))
        error = np.where(fits, error, np.where(certain, 0.0, off))
        binade = np.frexp(np.maximum(np.abs(value) - error, 0.0))[1].astype(np.int64)
        own = np.where(np.abs(value) > error, binade, self.format.lowest) - self.format.bits
        return Bounded(*_snapped(value, error, np.where(fits, grid, own)))

    def _nearest(self, array: Array) -> Array:
        """The nearest number of the format, but for numbers near 0."""
        fraction, exponent = np.frexp(array)
        return np.asarray(np.ldexp(np.rint(np.ldexp(fraction, self.format.bits)), exponent - self.format.bits))

    def softmax(self, scores: Bounded, mask: Array) -> Bounded:
        """The softmax over the last axis."""
        value = np.where(mask, scores.value, -np.inf)
        below = value - value.max(axis=-1, keepdims=True)
        off = (below + scores.error).max(axis=-1, keepdims=True)  # the error of the largest score
        depth = np.where(mask, -below, 0.0)
        shift = scores.error + off + 2 * U * depth
        gone = ~mask | (below + shift <= VANISHES)
        powers = np.where(gone, 0.0, np.exp(below))
        pattern = powers / powers.sum(axis=-1, keepdims=True)
        count = (~gone).sum(axis=-1, keepdims=True)
        equal = (gone | (shift == 0)).all(axis=-1, keepdims=True)
        plain = equal | (count == 1)
        exact = plain & (np.log2(count) % 1 == 0)
        factor = np.where(gone, 0.0, np.expm1(np.minimum(shift, 50.0)) + 8 * U)
        total = factor.max(axis=-1, keepdims=True) + U * count
        usual = (1 + factor) * (1 + 4 * U) / np.maximum(1 - total, 0.5) - 1
        error = pattern * np.where(exact, 0.0, np.where(plain, 2 * U, usual))
        error = np.where(plain | (total < 0.5), np.minimum(error, 1.0), 1.0)
        error = np.where(gone, 0.0, error)
        return self.rounded(pattern, error, np.where(exact | gone, _grid(pattern), NO_GRID))


def _attention(arithmetic: _Arithmetic, layer: LayerParameters, stream: Bounded, mask: Array) -> Bounded:
    each = stream.map(lambda array: array[:, None])  # [batch, head, position, d_model]

    def project(weight: Bounded, bias: Bounded) -> Bounded:
        product = arithmetic.product(each, weight)
        return arithmetic.biased(product, bias.map(lambda array: array[:, None])).bounded

    q, k, v = project(layer.W_Q, layer.b_Q), project(layer.W_K, layer.b_K), project(layer.W_V, layer.b_V)
    scores = arithmetic.product(q, k.map(lambda array: np.swapaxes(array, 2, 3))).bounded
    z = arithmetic.product(arithmetic.softmax(scores, mask), v, stored=True).bounded
    apart = arithmetic.total(arithmetic.product(z, layer.W_O).bounded, axis=1)  # the result of each head, and their sum
    mixed = z.map(lambda array: np.moveaxis(array, 1, 2).reshape(*array.shape[::2], -1))
    whole = arithmetic.product(mixed, layer.W_O.map(lambda array: array.reshape(-1, array.shape[2]))).bounded
    grid = np.minimum(apart.grid, whole.grid)
    return arithmetic.add(Bounded(apart.value, np.maximum(apart.error, whole.error), grid), layer.b_O)


def _after_mlp(arithmetic: _Arithmetic, layer: LayerParameters, stream: Bounded) -> Bounded:
    """The stream plus what the neurons write."""
    pre = arithmetic.biased(arithmetic.product(stream, layer.W_in), layer.b_in)
    value, error = pre.bounded.value, pre.bounded.error
    off, on = value < -error, (value > error) & (error > 0)  # a certain number passes nothing on
    post = Bounded(np.maximum(value, 0.0), np.where(off, 0.0, error), np.where(off, ZERO, pre.bounded.grid))
    out = arithmetic.product(post, layer.W_out)
    apart = np.where(on, pre.own, np.where(off, 0.0, error))  # the own error of each neuron
    written = SLACK * (apart @ np.abs(layer.W_out.value))
    together, kept = _through(stream.error, layer.W_in.value, layer.W_out.value, on)
    added = arithmetic.biased(replace(out, passed=np.minimum(out.passed, written + together)), layer.b_out)
    error = stream.error + added.bounded.error
    error = np.where(added.bounded.error > 0, np.minimum(error, written + kept + added.own), error)
    grid = np.minimum(stream.grid, added.bounded.grid)
    return arithmetic.rounded(stream.value + added.bounded.value, error, grid)


def _through(error: Array, read: Array, write: Array, on: Array) -> tuple[Array, Array]:
    """The errors of a stream in what the neurons that are on write, and in the stream plus that.

    Neurons that clear a slot cancel its error.
    """
    written, kept = np.zeros(error.shape), error.copy()
    for place in np.flatnonzero(error.any(axis=tuple(range(error.ndim - 1)))).tolist():
        used = read[place] != 0
        through = (on[..., used] * read[place, used]) @ write[used]
        written += SLACK * error[..., place, None] * np.abs(through)
        through[..., place] += 1
        kept += SLACK * error[..., place, None] * np.abs(through)
        kept[..., place] -= error[..., place]
    return written, np.maximum(kept, 0.0)


def _snapped(value: Array, error: Array, grid: Array) -> tuple[Array, Array, Array]:
    """The numbers, without the rounding errors of float64 where they are exact; their bounds and grids."""
    exact = (error == 0) & (np.abs(grid) < 1000)
    steps = np.where(exact, grid, 0)
    value = np.where(exact, np.ldexp(np.rint(np.ldexp(value, -steps)), steps), value)
    return value, error, np.where(exact, _grid(value), grid)


def _power_below(size: Array) -> Array:
    """The largest power of two that is at most each number; 0 for 0."""
    return np.where(size > 0, np.ldexp(0.5, np.frexp(size)[1]), 0.0)


def _grid(array: Array) -> NDArray[np.int64]:
    """The exponent of the largest power of two that divides each number."""
    fraction, exponent = np.frexp(array)
    whole = np.ldexp(fraction, 53).astype(np.int64)
    lowest = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.where(whole == 0, ZERO, exponent.astype(np.int64) - 53 + lowest)


def _exact(size: Array, grid: Array) -> Array:
    """Whether float32 adds multiples of 2**grid exactly, in any order, if their absolute values add up to `size`."""
    return np.asarray(size <= np.ldexp(1.0, np.clip(grid + FLOAT32, -1000, 1000)))


def _product_grid(left: Array, right: Array) -> Array:
    """The exponent of a power of two that divides all terms of each entry of a product, from those of the factors."""
    shape = np.broadcast_shapes((*left.shape[:-1], 1), (*right.shape[:-2], 1, right.shape[-1]))
    found = np.full(shape, ZERO)
    weighted = np.any((right < ZERO).reshape(-1, *right.shape[-2:]), axis=0)  # only these products are not 0
    for place in np.flatnonzero(np.any(weighted, axis=1)).tolist():
        used = np.flatnonzero(weighted[place])
        terms = left[..., place, None] + right[..., place, used][..., None, :]
        found[..., used] = np.minimum(found[..., used], terms)
    return found
