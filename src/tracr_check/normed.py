"""Models with layer norms: readers see y = g (x - m) / sqrt(v + e) instead of the stream x.

m is the mean of the D numbers of x, v their variance, e (epsilon) a power of 4, and the gain g is its root.

**Assumed** of a layer norm, beyond the arithmetic (`ASSUMED`): the computed mean is within (D + 8) u max |x| of the
mean (any order of summation, Welford's recurrence too); the computed variance is at most twice the mean square of x;
v + e is rounded to a nearest number, and the root of a power of 4, or its reciprocal, is exact; x - m is rounded once,
and multiplied by powers of two, before or after, without rounding unless the result is below `tiny`.

**Lemma 1.** If twice the mean square is at most e / 2^(p + 2), for sums of p bits, then v + e is rounded to e, and
y_d = x_d - m + r_d for one number m at each position, with |r_d| <= u (|x_d| + |m|) + l, and |r_d| <= l where x_d = 0;
l = 4 tiny sqrt(e). *Proof.* v + e is nearer to e than to the next number, as v is less than half the distance. So y_d
is x_d - m rounded, for the computed mean m; and -m is a number of the format. Of x_d / sqrt(e), m / sqrt(e), their
difference and y_d each may be flushed, which changes y_d by at most tiny sqrt(e). QED

**Lemma 2.** A column M of a reader gives sum of y_d M_d = sum of x_d M_d - m k + sum of r_d M_d, k the sum of M. So it
is what a plain reader reads, up to |m| |k| + sum of |r_d M_d|, and before rounding, which acts on products of sizes at
most (|x_d| + |m|) |M_d| (1 + u). For columns that are multiples of one another the differences are in the same
proportion. `grain` gives the part u |x_d| of r_d, `blur` the rest and the products.

This needs a bound of |m|. The last dimension that is written and that no reader reads is the *balance*; it is left out
of the network that is proved. Every write is meant to add up to 0 over all dimensions, with the balance.

**Lemma 3.** The sum of x over all dimensions is at most s, the sum over all writes so far of the sums of their rows
(times the sizes of what they multiply) and of the errors of their sums. So |m| <= s / D + (D + 8) (u max |x| + tiny),
and the balance is at most s + sum of the other |x_d|.

Nothing else is assumed of balance or anchor; if they are wrong, |m| or k is large, and then so are the bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tracr_check.arithmetic import Arithmetic
from tracr_check.boxes import INF, Read, State, farthest, joined, read_state, rounded
from tracr_check.following import Follower
from tracr_check.head import States
from tracr_check.proving import Weights
from tracr_check.variables import Array
from tracr_check.verdict import need

__all__ = ["ASSUMED", "Normed"]

ASSUMED = (
    "in a layer norm over D numbers the mean is within D + 8 units of the largest, the variance is at most twice the "
    "mean square, x - mean is rounded once, and the root of a power of 4 and products with powers of two are exact, "
    "these if they are not too small",
)
MORE = 1 + 2.0**-30  # for the checker's own rounding


class Normed(Follower):
    """Follows the proof of a network with layer norms. `full` has all weights, the one that is proved no balance."""

    def __init__(self, full: Weights, epsilon: float, last_bias: Array, a: Arithmetic) -> None:
        need(not a.narrow, f"there are no rules for layer norms in {a.name}")
        mantissa, exponent = np.frexp(epsilon)
        need(mantissa == 0.5 and exponent % 2 == 1 and 1 <= epsilon < 2.0**100, "epsilon is not a power of 4")
        need(np.isin(last_bias, (0.0, 1.0)).all() and last_bias.sum() <= 1, "a layer norm has a bias")
        self.full, self.epsilon, self.last_bias, self.a = full, epsilon, last_bias, a
        self.lost = 4 * a.tiny * float(np.sqrt(epsilon))
        readers = [full.unembed, *(matrix for time in range(2 * full.layers) for matrix, _ in full.readers(time))]
        read = np.any([one.any(1) for one in readers], axis=0)
        written = np.any([one.reshape(-1, full.width).any(0) for one in full.writers()], axis=0)
        need(not (written & (last_bias != 0)).any(), "the dimension of the last layer norm's bias is written")
        self.balance = np.zeros(full.width, bool)  # the last dimension that is only written, if any
        self.balance[np.flatnonzero(written & ~read)[-1:]] = True
        rows = [_off_zero(one).max() + 2 * a.unit * np.abs(one).sum(1).max() for one in (full.embed, full.positions)]
        self.sums = dict.fromkeys(("tokens", "bos", "pad"), MORE * sum(rows))  # Lemma 3, after the embedding

    def embedded(self, states: States) -> States:
        """The rows of tokens and positions."""
        return self._seen(states)

    def attended(self, layer: int, before: States, after: States) -> States:
        """The sums of what heads write."""
        block, found = self.full.blocks[layer], before.kinds
        sizes = [[self._reads(state, one.w_v, one.b_v)[1] for one in block.heads] for state in found.values()]
        most = np.max([np.concatenate([np.zeros(0), *one]) for one in sizes], axis=0)
        for kind, state in found.items():
            self._write(kind, state, 1.01 * most, block.w_o, block.bias)
        return self._seen(after)

    def transformed(self, layer: int, before: States, after: States) -> States:
        """The sums of what neurons write."""
        neurons = self.full.blocks[layer].neurons
        for kind, state in before.kinds.items():
            hidden = self._reads(state, neurons.w_in, neurons.b_in)[0]
            self._write(kind, state, hidden, neurons.w_out, neurons.b_out)
        return self._seen(after)

    def logits(self, states: States, unembed: Array) -> tuple[Array, Array]:
        """The bias of the last norm puts a 1 into an empty dimension, rounded with it."""
        bias = self.last_bias @ unembed
        return bias, 2 * self.a.unit * (1 + self._mean("tokens", states.tokens)) * np.abs(bias)

    def _reads(self, state: State, matrix: Array, bias: Array) -> tuple[Array, Array]:
        """The most that hidden values can be, and the sizes of sums."""
        read = joined(read_state(state, matrix, bias))
        off = rounded(read, self.a)
        return np.maximum(read.hi + off, 0.0)[0], farthest(read.lo, read.hi)[0] + off[0]

    def _write(self, kind: str, state: State, sources: Array, matrix: Array, bias: Array) -> None:
        """Lemma 3 for one write."""
        sizes = state.sizes
        sizes[self.balance] += _total(state) + self.sums[kind]
        terms = sources @ np.abs(matrix) + np.abs(bias)
        roundings = len(sources) + 4
        errors = np.where(terms > 0, self.a.gamma(roundings) * (terms + sizes) + 4 * roundings * self.a.tiny, 0.0)
        self.sums[kind] += MORE * (errors.sum() + sources @ _off_zero(matrix) + _off_zero(bias[None]).max())

    def _mean(self, kind: str, state: State) -> float:
        """A bound of |m|, and a check that the variance is small."""
        total, count = _total(state), self.full.width
        largest = float(total + self.sums[kind]) * MORE  # of the balance, and so of all
        square = (total**2 + largest**2) / count
        small = 2 * MORE * square <= self.epsilon * 2.0 ** -(self.a.sum_bits + 2)
        need(small, "the variance of the stream is not surely small")
        return float(self.sums[kind] / count + (count + 8) * (self.a.unit * largest + self.a.tiny)) * 1.001

    def _seen(self, states: States) -> States:
        """The states as readers see them."""
        found = {}
        for kind, state in states.kinds.items():
            blur = self._blur(state.sizes, self._mean(kind, state))
            found[kind] = replace(state, blur=blur, grain=2 * self.a.unit)
        return States(**found)

    def _blur(self, sizes: Array, mean: float) -> Callable[[Array], Read]:
        """Lemma 2."""

        def blur(matrix: Array) -> Read:
            size = np.abs(matrix)
            rounding = 2 * self.a.unit * mean * ((sizes > 0) @ size) + self.lost * size.sum(0)
            off = (mean * _off_zero(matrix.T) + rounding)[None] * MORE
            most = (mean * size.sum(0))[None] * 1.001 + off
            count = ((matrix != 0).sum(0) * 1.0)[None]
            return Read(-off, off, most, most, count, np.where(count > 0, 0.0, INF))

        return blur


def _off_zero(rows: Array) -> Array:
    """How far the sums of rows are from 0, with the rounding of this sum."""
    return np.asarray(np.abs(rows.sum(1)) + rows.shape[1] * 2.0**-52 * np.abs(rows).sum(1))


def _total(state: State) -> float:
    """The most that the absolute values of all dimensions add up to: variable by variable, one value of each."""
    rows = [farthest(boxes.lo, boxes.hi).sum(1) for boxes in state.tables.values()]
    return MORE * sum(float(one.max(initial=0.0)) for one in rows)
