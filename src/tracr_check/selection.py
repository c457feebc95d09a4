"""Which keys a head selects: the program's selector, or for a part of a selector the head's own mask, and the proof
that softmax gives weight to these keys only.

For a class of queries let s be the scores of the selected keys, b the score of BOS, and let every other key (PAD
included) be at least `apart` below the floor: the smallest s, or b where a query may select nothing.

- *default*: b is `apart` below s. If keys are selected, they share the weight; if none is, BOS has all of it.
- *counting*: b is near s: BOS has a weight of C = exp(b - s) next to a weight of 1 for each selected key.

Keys that the causal mask hides have no weight, in the program and in the network: a query of any class sees some subset
of the keys, so the classes are compared as without the mask.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracr_check.arithmetic import Arithmetic
from tracr_check.boxes import INF
from tracr_check.program import Array, Env
from tracr_check.scores import Vectors, scores
from tracr_check.verdict import need

__all__ = ["Mask", "Selection", "merged", "own_mask", "proved_selection"]

Truth = NDArray[np.bool_]
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


def own_mask(queries: Env, keys: Env, q: Vectors, k: Vectors, bos: Vectors) -> Mask:
    """The keys near the largest score: a guess, which `proved_selection` then proves."""
    middle: Array = q.middle @ k.middle.T
    best: Array = np.maximum(middle.max(1, initial=-INF), (q.middle @ bos.middle.T)[:, 0])
    chosen = np.array(middle - best[:, None] > -NEAR_BOS)
    return Mask(queries, keys, chosen, np.ones_like(chosen))


def merged(mask: Mask, q: Vectors, k: Vectors) -> tuple[Mask, Vectors, Vectors]:
    """Classes with equal vectors and equal rows (or columns) of the mask, each once: the same is to be proved."""
    rows = _different(q, mask.chosen, mask.defined)
    columns = _different(k, mask.chosen.T, mask.defined.T)
    cells = np.ix_(rows, columns)
    queries, keys = mask.queries.rows_at(rows), mask.keys.rows_at(columns)
    return Mask(queries, keys, mask.chosen[cells], mask.defined[cells]), q.at(rows), k.at(columns)


def _different(vectors: Vectors, chosen: Truth, defined: Truth) -> NDArray[np.int64]:
    """The first row of each kind."""
    bits = [np.packbits(truth, axis=1).astype(np.float64) for truth in (chosen, defined)]
    parts: list[Array] = [vectors.lo, vectors.hi, *bits]
    return np.sort(np.unique(np.hstack(parts), axis=0, return_index=True)[1])


def reference(mask: Mask, k: Vectors, bos: Vectors) -> Array:
    """A vector for each query class: a selected key, or BOS."""
    kept = mask.chosen & mask.defined
    some: Truth = np.asarray(kept.any(1))
    return np.where(some[:, None], k.middle[kept.argmax(1)], bos.middle)


def proved_selection(
    mask: Mask,
    q: Vectors,
    k: Vectors,
    bos: Vectors,
    pad: Array | None,
    ref: Array,
    sure: bool,
    a: Arithmetic,
    where: str,
) -> Selection:
    """Prove that softmax gives weight to the keys of the mask only; `pad`: the largest score at PAD by query class."""
    lo, hi = scores(q, k, ref, a)
    b_lo, b_hi = (bound[:, 0] for bound in scores(q, bos, ref, a))
    kept = mask.chosen & mask.defined
    some = kept.any(1)
    s_lo, s_hi = np.where(kept, lo, INF).min(1, initial=INF), np.where(kept, hi, -INF).max(1, initial=-INF)
    others = np.where(mask.chosen | ~mask.defined, -INF, hi).max(1, initial=-INF)
    weight, floor = None, s_lo
    if (b_lo[some] > s_hi[some] - NEAR_BOS).any():
        weight = float((b_lo - s_hi)[some].min()), float((b_hi - s_lo)[some].max())
        need(weight[1] - weight[0] < 1 and max(map(abs, weight)) < NEAR_BOS, f"BOS has a weight of e^{weight}", where)
        floor = np.minimum(s_lo, b_lo)
    else:
        below = (b_hi <= s_lo - a.apart)[some]
        need(below.all(), "BOS is not far below the selected keys", where)
        floor = s_lo if sure else np.minimum(s_lo, b_lo)
    for what, top in (("a key that is not selected", others), ("PAD", pad)):
        if top is not None:
            bad = np.flatnonzero(~(top <= floor - a.apart))
            need(
                not len(bad),
                f"{what} is only {_least(floor, top, bad):.4g} below what is selected",
                f"{where}{_row(mask, bad)}",
            )
    spread = float(np.where(some, s_hi - s_lo, 0.0).max(initial=0.0))
    return Selection(spread, weight, sure, not some.any())


def _least(floor: Array, top: Array, bad: NDArray[np.int64]) -> float:
    return float((floor - top)[bad].min()) if len(bad) else 0.0


def _row(mask: Mask, bad: NDArray[np.int64]) -> str:
    """The joint values of the first bad query class."""
    if not len(bad):
        return ""
    values = {name: int(codes[bad[0]]) for name, codes in mask.queries.codes.items()}
    return f", query class {values}"[:200]
