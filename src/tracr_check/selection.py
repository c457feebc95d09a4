"""Which keys a head selects: the program's selector, or for a part of a selector the head's own mask, and the proof
that softmax gives weight to these keys only.

For a class of queries let s be the scores of the selected keys, b the score of BOS, and let every other key (PAD
included) be at least `apart` below the floor: the smallest s, or b where a query may select nothing.

- *default*: b is `apart` below s. If keys are selected, they share the weight; if none is, BOS has all of it.
- *counting*: b is near s: BOS has a weight of C = exp(b - s) next to a weight of 1 for each selected key.

**Factors.** If components of queries and keys fall into groups (`groups.py`), a score is a sum of a term for each
group, and a mask may be a conjunction of masks, one for each. A key is selected if every factor selects it. So the
scores of selected keys are between the sums of the smallest and of the largest selected terms; another key fails in
some factor, and its score is at most the largest term that is not selected there, plus the largest of the others.

Keys that the causal mask hides have no weight, in the program and in the network: a query of any class sees some subset
of the keys, so the classes are compared as without the mask.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tracr_check.arithmetic import Arithmetic
from tracr_check.boxes import INF, chunks
from tracr_check.scores import CELLS, Beside, Vectors, scores
from tracr_check.variables import Array, Codes, Env, Truth
from tracr_check.verdict import need

__all__ = ["Factor", "Mask", "Selection", "is_apart", "own_mask", "proved_selection", "reference"]

NEAR_BOS = 60.0


@dataclass(frozen=True, eq=False)
class Mask:
    """Classes of queries and of keys, which keys are selected, and where the program is defined: [query, key]."""

    queries: Env
    keys: Env
    chosen: Truth
    defined: Truth


@dataclass(frozen=True, eq=False)
class Selection:
    """What is proved about a head's pattern.

    `spread`: how far the scores of selected keys can differ. `weight`: bounds of log C if BOS counts, else `None`.
    `sure`: every query selects something. `never`: no query selects anything.
    """

    spread: float
    weight: tuple[float, float] | None
    sure: bool
    never: bool

    def weight_error(self, keys: int, a: Arithmetic) -> float:
        """A bound of the relative error of each computed weight against (1 or C) / (w + C).

        Let E be the largest relative error of an exponential, its argument's rounding included: (exp_error + 2|x|) u
        for |x| up to the spread and log C. Selected keys differ by a factor of at most e^spread. Numerator and sum
        (gamma(keys) for its additions) and the quotient (3 u) give |log(weight / ideal)| <= 2 spread + 2 E +
        gamma(keys) + 4 u. If all scores are equal and exp(0) = 1, exponentials and their sum are exact: 3 u.
        """
        if self.spread == 0 and self.weight is None and not a.copy_error:
            return 3.1 * a.unit
        if self.spread > 1:
            return math.inf
        far = self.spread + max(map(abs, self.weight or (0.0, 0.0)))
        exponential = (a.exp_error + a.copy_error + 2 * far) * a.unit
        return 1.001 * math.expm1(2 * self.spread + 2 * exponential + a.gamma(keys + 1) + 4 * a.unit)

    def least_weight(self, keys: int) -> float:
        """A bound from below of the weights of selected keys and of BOS, if it counts."""
        low, high = self.weight or (0.0, 0.0)
        return 0.9 * math.exp(min(0.0, low) - self.spread) / (keys + math.exp(max(0.0, high)))


@dataclass(frozen=True, eq=False)
class Factor:
    """A mask with the components of queries, keys and BOS that belong to it.

    `whole`: all classes of queries and of keys. `kinds`: the row and the column of the mask that each belongs to.
    """

    mask: Mask
    q: Vectors
    k: Vectors
    bos: Vectors
    whole: tuple[Env, Env]
    kinds: tuple[Codes, Codes]

    def whole_mask(self, most: int, where: str) -> Mask:
        """The mask of all classes, which may not be more than `most` pairs."""
        need(math.prod(one.rows for one in self.whole) <= most, "too many classes of a part", where)
        cells = np.ix_(*self.kinds)
        return Mask(*self.whole, self.mask.chosen[cells], self.mask.defined[cells])

    def bounds(self, ref: Array, pad: Array, by_keys: Beside, by_bos: Beside, a: Arithmetic) -> Bounds:
        """The bounds of its terms; `pad`: the largest term at PAD, by query class. The other factors are beside it."""
        b_lo, b_hi = (bound[:, 0] for bound in scores(self.q, self.bos, ref, a, by_bos))
        parts = []
        for rows in chunks(len(ref), len(self.k.lo), CELLS):
            lo, hi = scores(self.q.at(rows), self.k, ref[rows], a, by_keys)
            chosen, defined = self.mask.chosen[rows], self.mask.defined[rows]
            kept, others = chosen & defined, ~chosen & defined
            tops = (np.where(some, hi, -INF).max(1, initial=-INF) for some in (kept, others, defined))
            parts.append(np.stack([np.where(kept, lo, INF).min(1, initial=INF), *tops]))
        kept_lo, kept_hi, other, top = np.concatenate(parts, axis=1)
        return Bounds(kept_lo, kept_hi, other, top, b_lo, b_hi, pad)


def own_mask(factor: Factor, alone: bool) -> Mask:
    """The keys near the largest score: of the query's keys and BOS, or (one factor of several) of all queries.

    This is a guess, which `proved_selection` then proves.
    """
    q, k, bos = factor.q.middle, factor.k.middle, factor.bos.middle
    parts = list(chunks(len(q), len(k), CELLS))
    best = np.concatenate([(q[rows] @ k.T).max(1, initial=-INF) for rows in parts])
    best = np.maximum(best, (q @ bos.T)[:, 0]) if alone else np.full_like(best, best.max())
    chosen = [q[rows] @ k.T - best[rows, None] > -NEAR_BOS for rows in parts]
    return replace(factor.mask, chosen=np.concatenate(chosen))


def reference(factor: Factor) -> Array:
    """A vector for each query class: a selected key, or BOS."""
    kept = factor.mask.chosen & factor.mask.defined
    some: Truth = np.asarray(kept.any(1))
    return np.where(some[:, None], factor.k.middle[kept.argmax(1)], factor.bos.middle)


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds of scores for each class of queries: of selected keys, of other keys, of all keys, of BOS and of PAD."""

    kept_lo: Array
    kept_hi: Array
    other: Array
    any: Array
    bos_lo: Array
    bos_hi: Array
    pad: Array

    def and_(self, more: Bounds) -> Bounds:
        """The bounds of two factors together, for all pairs of their query classes."""
        return Bounds(
            _pairs(self.kept_lo, more.kept_lo, -1),
            _pairs(self.kept_hi, more.kept_hi, 1),
            np.maximum(_pairs(self.other, more.any, 1), _pairs(self.any, more.other, 1)),
            _pairs(self.any, more.any, 1),
            _pairs(self.bos_lo, more.bos_lo, -1),
            _pairs(self.bos_hi, more.bos_hi, 1),
            _pairs(self.pad, more.pad, 1),
        )

    def only_bos(self, a: Arithmetic) -> bool:
        """Whether every key, PAD included, is `apart` below BOS for every class of queries."""
        return bool(is_apart(np.maximum(self.any, self.pad), self.bos_lo, a).all())


def _pairs(first: Array, second: Array, way: int) -> Array:
    """All sums, rounded up (`way` = 1) or down (-1): the error of a float64 sum is a float64 number itself."""
    a, b = first[:, None], second[None]
    total = a + b
    with np.errstate(invalid="ignore"):
        rest = total - a
        error = (a - (total - rest)) + (b - rest)
    return np.where(way * error > 0, np.nextafter(total, way * INF), total).reshape(-1)


def is_apart(top: Array, floor: Array, a: Arithmetic) -> Truth:
    """Whether scores are at least `apart` below others.

    From their difference, rounded down: `floor - apart` is `floor` if the scores are very large.
    """
    return np.asarray(np.nextafter(floor - top, -INF) >= a.apart)


def proved_selection(factors: Sequence[Factor], total: Bounds, sure: bool, a: Arithmetic, where: str) -> Selection:
    """Prove that softmax gives weight to the keys of the masks only, from the bounds of all factors together."""
    s_lo, s_hi, b_lo, b_hi = total.kept_lo, total.kept_hi, total.bos_lo, total.bos_hi
    some = s_lo != INF
    weight, floor = None, s_lo
    if ((b_lo - s_hi)[some] > -NEAR_BOS).any():
        least, most = (b_lo - s_hi)[some].min(), (b_hi - s_lo)[some].max()
        weight = float(np.nextafter(least, -INF)), float(np.nextafter(most, INF))
        need(weight[1] - weight[0] < 1 and max(map(abs, weight)) < NEAR_BOS, f"BOS has a weight of e^{weight}", where)
        floor = np.minimum(s_lo, b_lo)
    else:
        below = is_apart(b_hi, s_lo, a)[some]
        need(below.all(), "BOS is not far below the selected keys", where)
        floor = s_lo if sure else np.minimum(s_lo, b_lo)
    for what, top in (("a key that is not selected", total.other), ("PAD", total.pad)):
        bad = np.flatnonzero(~is_apart(top, floor, a))
        least = (floor - top)[bad].min() if len(bad) else 0.0
        need(not len(bad), f"{what} is only {least:.4g} below what is selected", f"{where}{_row(factors, bad)}")
    spread = float(np.where(some & (s_hi > s_lo), np.nextafter(s_hi - s_lo, INF), 0.0).max(initial=0.0))
    return Selection(spread, weight, sure, not some.any())


def _row(factors: Sequence[Factor], bad: NDArray[np.int64]) -> str:
    """The joint values of the first bad query class."""
    if not len(bad):
        return ""
    places = np.unravel_index(int(bad[0]), [one.mask.queries.rows for one in factors])
    values = {
        name: int(codes[place])
        for one, place in zip(factors, places, strict=True)
        for name, codes in one.mask.queries.codes.items()
    }
    return f", query class {values}"[:200]
