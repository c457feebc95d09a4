"""Attention heads from selectors.

The logit of a key is 0 if the query selects it and -gap if not, so the softmax gives every selected key weight 1/w
exactly (see `numerics.leak` for gaps below `GAP`). Four more terms make that hold for every input:

- BOS has logit -gap/2: it is attended to if and only if nothing else is, and then carries the default.
- PAD keys get another -2 gap: they are never attended to, so a padded batch gives the unpadded answer.
- The BOS query attends to BOS alone (+2 gap): what a head writes at the BOS position is always the same (its default),
  so that readers can cancel it.
- For a selector width BOS has weight c instead (logit ln c) and the head reads c/(c+w).

Codes at BOS read as zero, so BOS keys and queries get nothing from the selector's own matrix, but for what every query
adds for a key, which is 0 or less.

Several literals in one head: their logits add up, to 0 exactly where all hold and to -gap or less elsewhere.

Sums. With BOS at weight C = e^L far above the number w of selected keys, a key's weight is 1/(C + w), nearly 1/C. So
what the head reads, times C, is the sum of the selected values, up to a factor 1 - w/C, instead of their mean; and sums
of disjoint selections add up. C also multiplies whatever is read at BOS, which is nothing, so it is no larger than
needed (`several_heads.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracr.craft.grouping import at_most_one, group_rows
from tracr.craft.linear import BOS, ONE, PAD, LinearMap
from tracr.craft.numerics import GAP, U
from tracr.craft.variables import Array, Variable, bits_of

__all__ = [
    "Head",
    "attend",
    "bos_logit",
    "matching_logits",
    "number_logits",
    "own_numbers",
    "selector_logits",
    "selector_rank",
    "square_logits",
]

LEGIBLE = 16  # a matching of more classes than this is not kept one-hot
SQUARE_RANK = 3  # of the code it is taken to
SQUARES = 2048  # and of more than this not as squares
MANY_CELLS = 2**20  # a table with more is first looked at for being a matching


def bos_logit(weight: float) -> float:
    """The logit that gives BOS about this weight, a multiple of 2**-12.

    What the BOS position holds in a key's variable is cancelled by the weight of the BOS direction, in multiples of
    GAP. That leaves the logit exactly what it is only if float32 holds their sum, too.

    >>> bos_logit(8.0), bos_logit(1.0)
    (2.079345703125, 0.0)
    """
    return round(math.log(weight) * 4096) / 4096


Groups = tuple[NDArray[np.intp], NDArray[np.intp]]  # the first member of each class, the class of each value


@dataclass(frozen=True, eq=False)
class Head:
    """One attention head: queries and keys of equal width, values, and the matrix that writes them."""

    label: str
    query: LinearMap
    key: LinearMap
    value: LinearMap
    writes: tuple[tuple[Variable, Array], ...]
    selector: str
    what: str

    @property
    def maps(self) -> tuple[LinearMap, ...]:
        """Everything the head reads the residual stream with; the values last."""
        return (self.query, self.key, self.value)

    def with_maps(self, maps: Sequence[LinearMap], writes: tuple[tuple[Variable, Array], ...] | None = None) -> Head:
        """The head reading, and perhaps writing, with other matrices."""
        query, key, value = maps
        return Head(self.label, query, key, value, writes or self.writes, self.selector, self.what)

    @property
    def reads(self) -> tuple[Variable, ...]:
        """Every variable the head reads."""
        return tuple({**self.query.blocks, **self.key.blocks, **self.value.blocks})

    @property
    def rank(self) -> int:
        """The d_head this head needs."""
        return max(self.query.width, self.value.width)


def selector_logits(
    selected: NDArray[np.bool_], gap: float = GAP, *, compact: bool = False, legible: int = LEGIBLE
) -> tuple[Array, Array]:
    """Factors Q [query values, r] and K [key values, r]: Q @ K.T is 0 where selected, -gap or less elsewhere.

    Keys that all queries treat alike are one class, and so are queries that treat all keys alike. A coordinate for each
    key class (or query class, if they are fewer) always works; coordinates that are 0 for every query, because all
    select the class, are left out. With `compact`, a matching (each query class selects at most one key class, and the
    other way round: `==`, or reversal) of more than `legible` classes is taken to a code of its own, `matching_logits`.
    """
    (first_query, query_class), (first_key, key_class) = _classes(selected)
    reduced = selected[first_query][:, first_key]
    if compact and gap == GAP and _is_matching(reduced, legible):
        queries, keys = matching_logits(reduced)
        return queries[query_class], keys[key_class]
    logits = np.where(reduced, 0.0, -gap)
    if len(first_key) <= len(first_query):
        queries, keys = logits[query_class], np.eye(len(first_key))[key_class]
        used = queries.any(axis=0)
    else:
        queries, keys = np.eye(len(first_query))[query_class], logits.T[key_class]
        used = keys.any(axis=0)
    return queries[:, used], keys[:, used]


def selector_rank(selected: NDArray[np.bool_], *, compact: bool = False, legible: int = LEGIBLE) -> int:
    """The width of what `selector_logits` gives, without making it."""
    (first_query, _), (first_key, _) = _classes(selected)
    shape = len(first_query), len(first_key)
    reduced = selected if shape == selected.shape else selected[first_query][:, first_key]
    if compact and _is_matching(reduced, legible):
        count = int(reduced.sum()) + 2
        return SQUARE_RANK if count <= SQUARES else count.bit_length() + 1
    return int((~reduced.all(axis=0 if len(first_key) <= len(first_query) else 1)).sum())


def _classes(selected: NDArray[np.bool_]) -> tuple[Groups, Groups]:
    """The classes of queries and of keys; in a large matching, or its complement, each is its own."""
    if selected.size > MANY_CELLS:
        for table in (selected, ~selected):
            if all(at_most_one(table)) and np.count_nonzero(table) >= max(selected.shape) - 1:
                rows, columns = (np.arange(size) for size in selected.shape)
                return (rows, rows), (columns, columns)
    return group_rows(selected), group_rows(selected.T)


def _is_matching(reduced: NDArray[np.bool_], legible: int) -> bool:
    """Whether more than so many classes of queries and keys are matched one to one."""
    return min(reduced.shape) > legible and all(at_most_one(reduced))


def matching_logits(selected: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Factors for a matching, in rank 3, or logarithmic rank for more than `SQUARES` classes.

    Number the classes so that a query i and a key j match if i = j; what has no match gets numbers of its own, one for
    all queries and one for all keys. Then -GAP (i - j)^2 = GAP (2 i j - j^2 - i^2) is 0 for a match and at most -GAP
    otherwise. With numbers between -m/2 and m/2 all terms and their partial sums are multiples of GAP up to m^2 GAP, so
    float32, with 24 bits, adds them up exactly for m <= 4096; we stop at 2048. In bfloat16, with 8 bits, m <= 16.

    Beyond, the numbers in bits, +1 and -1: a logit of GAP/2 (b . c - B) is 0 if all B bits agree, and at most -GAP if
    not. Its terms stay below B GAP, so it holds in bfloat16 too, for any number of classes.
    """
    rows, columns = np.nonzero(selected)
    query, key = np.full(len(selected), len(rows)), np.full(selected.shape[1], len(rows) + 1)
    query[rows] = key[columns] = np.arange(len(rows))
    count = len(rows) + 2
    if count <= SQUARES:
        return square_logits((query - count // 2).astype(np.float64), (key - count // 2).astype(np.float64))
    b, c = (bits_of(numbers, count.bit_length()) for numbers in (query, key))
    constant = np.full((len(key), 1), -GAP / 2 * count.bit_length())
    return np.hstack([b, np.ones((len(query), 1))]), np.hstack([GAP / 2 * c, constant])


def square_logits(i: Array, j: Array) -> tuple[Array, Array]:
    """Factors of -GAP (i - j)^2."""
    one = np.ones_like
    return np.stack([i, one(i), i * i], axis=1), GAP * np.stack([2 * j, -j * j, -one(j)], axis=1)


def own_numbers(selected: NDArray[np.bool_], queries: Array, keys: Array) -> tuple[Array, Array] | None:
    """Numbers for the queries and keys of a matching that are the keys' own, and linear in the queries' own.

    With them codes need not tell values apart to be squared (`matching_logits`): a number and its square are enough.
    `None` if there are none, if all queries select one key (a flag is enough for that), or if they are no integers that
    float32 squares exactly.

    >>> own_numbers(np.eye(3, k=-1, dtype=bool), np.arange(3.0), np.arange(3.0))[0].tolist()
    [-1.0, 0.0, 1.0]
    """
    rows, columns = np.nonzero(selected)
    if len(rows) < 2 or queries[rows[0]] == queries[rows[-1]]:
        return None
    factor = (keys[columns[-1]] - keys[columns[0]]) / (queries[rows[-1]] - queries[rows[0]])
    numbers = factor * queries + (keys[columns[0]] - factor * queries[rows[0]])
    if not factor or ((numbers[:, None] == keys[None, :]) != selected).any():
        return None
    both = np.concatenate([numbers, keys])
    return (numbers, keys) if (both == np.round(both)).all() and np.abs(both).max() <= SQUARES / 2 else None


def number_logits(keys: Array, largest: float, error: float) -> tuple[Array, Array] | None:
    """For queries q that are numbers and surely find a key, the integer k = q: factors 2 GAP k, of q, and -GAP k^2.

    GAP (2qk - k^2) = GAP (q^2 - (q - k)^2) is a matching's logit up to what is the same for all keys. `None` if that is
    not exact enough. Let the query be off by `error`, e, and |q|, |k| <= m.

    Other keys. Against k = q, a key at a distance d >= 1 loses GAP d (d - 2e) or more, so at least GAP (1 - 2e). The
    product q * 2k is rounded by at most 2 m^2 U, each of two additions by 2 m^2 U, times GAP; so two logits are rounded
    apart by 12 m^2 U GAP. With 2e + 12 m^2 U <= 1/2 what is lost is at least GAP/2 = 128, and vanishes (exp(-104) is
    0). With e = 0 all terms are integers, up to 3 m^2, times GAP, and for m <= 2048 nothing is rounded. So it holds for
    exact queries up to m = 2048, for others up to m = 836 and less.

    BOS, at -GAP/2. The key found has GAP (k^2 + 2ek), where |e| <= 1/8. For k = 0 that is 0; else its terms, at most
    2 k^2 + |k|/4 in size, are rounded by less than k^2/2^20, and k^2 (1 - 2^-20) - |k|/4 > 0. So BOS lies GAP/2 below.
    At BOS all codes are zero, and so are these terms. The BOS query holds q = 0 and sees -GAP k^2, 0 or less, at keys.

    PAD, at -2 GAP. Holding the code of some k, or none, its logit is at most what is found plus GAP e^2, or 0, less
    2 GAP. It must hold no sum of codes, though: keys are what the embedding writes, and tables of that.
    """
    most = max(largest, float(np.abs(keys).max()))
    rounding = 0.0 if error == 0.0 and most <= 2048 else 12 * most**2 * U
    if error > 1 / 8 or 2 * error + rounding > 1 / 2:
        return None
    return 2 * GAP * keys, -GAP * keys**2


def attend(
    query: LinearMap, key: LinearMap, always: LinearMap, bos_logit: float, gap: float = GAP
) -> tuple[LinearMap, LinearMap]:
    """Add the BOS and PAD terms to the queries and keys of a selector; `always` is what every query adds for a key."""
    every_query, bos_query = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    special = {BOS: np.array([[bos_logit, 2 * gap - bos_logit]]), PAD: -2 * gap * every_query}
    special_key = always.then(every_query) + LinearMap(special, width=2)
    return query.beside(LinearMap({ONE: every_query, BOS: bos_query}, width=2)), key.beside(special_key)
