"""Attention heads from selectors.

The logit of a key is 0 if the query selects it and -gap if not. Then the softmax gives each of the w selected keys
weight 1/w exactly (see `numerics.leak` for gaps below `GAP`). Four more terms make this hold for every input:

- BOS has logit -gap/2. It gets attention if and only if no key is selected, and then carries the default.
- PAD keys get another -2 gap. They never get attention, and a padded batch gives the unpadded answer.
- The BOS query attends to BOS alone (+2 gap). A head therefore always writes the same at the BOS position (its
  default), and readers can cancel it. In a short format the PAD query does so too.
- For a selector width BOS has weight c instead (logit ln c) and the head reads c/(c+w).

Codes at BOS read as zero. BOS keys and queries get nothing from the selector's own matrix, except the term that every
query adds for a key, which is 0 or less.

Several literals in one head: their logits add up to 0 exactly if all literals hold, and to -gap or less otherwise.

Sums. Let BOS have weight C = e^L, far above the number w of selected keys. Then a key's weight is 1/(C + w), nearly
1/C. The value that the head reads, times C, is the sum of the selected values instead of their mean, up to a factor
1 - w/C; and sums of disjoint selections add up. C also multiplies the value read at BOS. That value is 0, but C is
still chosen no larger than needed (`several_heads.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracr.craft.formats import FLOAT32, Format
from tracr.craft.grouping import at_most_one, group_rows
from tracr.craft.linear import BOS, ONE, PAD, LinearMap
from tracr.craft.numerics import GAP, U
from tracr.craft.variables import Array, Variable, bits_of

__all__ = [
    "Head",
    "SelectorClasses",
    "attend",
    "bos_logit",
    "matching_logits",
    "number_logits",
    "own_numbers",
    "selector_classes",
    "selector_logits",
    "selector_rank",
    "square_logits",
]

LEGIBLE = 16  # a matching of more classes than this gets a code instead of one-hot coordinates
SQUARE_RANK = 3  # the width of the code with squares
SQUARES = 2048  # a matching of more classes than this gets a code in bits instead of squares
MANY_CELLS = 2**20  # a table with more cells than this is first tested for being a matching


def bos_logit(weight: float, to: Format = FLOAT32) -> float:
    """The logit that gives BOS about this weight, a multiple of 2**-12; for a short format, at least this weight.

    The weight of the BOS direction cancels what the BOS position holds in a key's variable, in multiples of GAP. The
    logit is exact after this only if float32 also holds their sum. In a short format it has a coordinate of its own.

    >>> from tracr.craft.formats import SHORT
    >>> bos_logit(8.0), bos_logit(1.0), bos_logit(8.0, SHORT["bfloat16"])
    (2.079345703125, 0.0, 2.09375)
    """
    if not to.short:
        return round(math.log(weight) * 4096) / 4096
    exact = math.log(weight)
    logit = float(to.nearest(exact))
    return logit if logit >= exact else float(to.nearest(exact * (1 + 2 * to.roundoff)))


Groups = tuple[NDArray[np.intp], NDArray[np.intp]]  # the first member of each class, the class of each value
SelectorClasses = tuple[Groups, Groups]
"""The classes of queries and of keys that a selector treats alike."""


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
        """All maps with which the head reads the residual stream; the values last."""
        return (self.query, self.key, self.value)

    def with_maps(self, maps: Sequence[LinearMap], writes: tuple[tuple[Variable, Array], ...] | None = None) -> Head:
        """The head with other matrices for reading and, if given, for writing."""
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
    selected: NDArray[np.bool_],
    gap: float = GAP,
    *,
    compact: bool = False,
    legible: int = LEGIBLE,
    squares: int = SQUARES,
    classes: SelectorClasses | None = None,
) -> tuple[Array, Array]:
    """Factors Q [query values, r] and K [key values, r]: Q @ K.T is 0 where selected, -gap or less elsewhere.

    Keys that the same queries select form a class; queries that select the same keys form a class. One coordinate for
    each key class (or query class, if they are fewer) always works. A coordinate that is 0 for every query, because all
    select the class, is left out. In a matching each query class selects at most one key class, and the other way round
    (`==`, or reversal). With `compact`, a matching of more than `legible` classes gets the code of `matching_logits`,
    with squares for up to `squares` classes.
    `classes` are the `selector_classes`, if they are known.
    """
    (first_query, query_class), (first_key, key_class) = classes or selector_classes(selected)
    reduced = selected[first_query][:, first_key]
    if compact and gap == GAP and _is_matching(reduced, legible):
        queries, keys = matching_logits(reduced, squares)
        return queries[query_class], keys[key_class]
    logits = np.where(reduced, 0.0, -gap)
    if len(first_key) <= len(first_query):
        queries, keys = logits[query_class], np.eye(len(first_key))[key_class]
        used = queries.any(axis=0)
    else:
        queries, keys = np.eye(len(first_query))[query_class], logits.T[key_class]
        used = keys.any(axis=0)
    return queries[:, used], keys[:, used]


def selector_rank(
    selected: NDArray[np.bool_], classes: SelectorClasses, *, compact: bool = False, legible: int = LEGIBLE
) -> int:
    """The width of the factors of `selector_logits`, without computing them."""
    (first_query, _), (first_key, _) = classes
    shape = len(first_query), len(first_key)
    reduced = selected if shape == selected.shape else selected[first_query][:, first_key]
    if compact and _is_matching(reduced, legible):
        count = int(reduced.sum()) + 2
        return SQUARE_RANK if count <= SQUARES else count.bit_length() + 1
    return int((~reduced.all(axis=0 if len(first_key) <= len(first_query) else 1)).sum())


def selector_classes(selected: NDArray[np.bool_]) -> SelectorClasses:
    """The classes of queries and of keys; in a large matching, or its complement, each value is a class of its own."""
    if selected.size > MANY_CELLS:
        for table in (selected, ~selected):
            if all(at_most_one(table)) and np.count_nonzero(table) >= max(selected.shape) - 1:
                rows, columns = (np.arange(size) for size in selected.shape)
                return (rows, rows), (columns, columns)
    return group_rows(selected), group_rows(selected.T)


def _is_matching(reduced: NDArray[np.bool_], legible: int) -> bool:
    """Whether more than `legible` classes of queries and keys are matched one to one."""
    return min(reduced.shape) > legible and all(at_most_one(reduced))


def matching_logits(selected: NDArray[np.bool_], squares: int = SQUARES) -> tuple[Array, Array]:
    """Factors for a matching, in rank 3, or logarithmic rank for more than `squares` classes.

    Number the classes such that a query i and a key j match if i = j. Queries without a match share one more number,
    and keys without a match another. Then -GAP (i - j)^2 = GAP (2 i j - j^2 - i^2) is 0 for a match and at most -GAP
    otherwise. With numbers between -m/2 and m/2 all terms and their partial sums are multiples of GAP up to m^2 GAP.
    Therefore float32, with 24 bits, adds them exactly for m <= 4096; the limit here is 2048. In bfloat16, with 8 bits,
    m <= 16.

    More classes are numbered in bits, +1 and -1: the logit GAP/2 (b . c - B) is 0 if all B bits agree, and at most -GAP
    if not. Its terms stay below B GAP, and therefore it also holds in bfloat16, for any number of classes.
    """
    rows, columns = np.nonzero(selected)
    query, key = np.full(len(selected), len(rows)), np.full(selected.shape[1], len(rows) + 1)
    query[rows] = key[columns] = np.arange(len(rows))
    count = len(rows) + 2
    if count <= squares:
        return square_logits((query - count // 2).astype(np.float64), (key - count // 2).astype(np.float64))
    b, c = (bits_of(numbers, count.bit_length()) for numbers in (query, key))
    constant = np.full((len(key), 1), -GAP / 2 * count.bit_length())
    return np.hstack([b, np.ones((len(query), 1))]), np.hstack([GAP / 2 * c, constant])


def square_logits(i: Array, j: Array) -> tuple[Array, Array]:
    """Factors of -GAP (i - j)^2."""
    one = np.ones_like
    return np.stack([i, one(i), i * i], axis=1), GAP * np.stack([2 * j, -j * j, -one(j)], axis=1)


def own_numbers(selected: NDArray[np.bool_], queries: Array, keys: Array) -> tuple[Array, Array] | None:
    """Numbers for the queries and keys of a matching: the keys' own numbers, and a linear function of the queries' own.

    With these numbers the squares of `matching_logits` need no code that separates all values: a number and its square
    are enough. `None` if there are no such numbers, if all queries select one key (a flag is enough for that), or if
    the numbers are not integers that float32 squares exactly.

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
    """Factors 2 GAP k (for q) and -GAP k^2, for queries q that are numbers and always find a key, the integer k = q.

    GAP (2qk - k^2) = GAP (q^2 - (q - k)^2) is a matching's logit up to a term that is the same for all keys. `None` if
    the logit is not exact enough. Let the error of the query be `error`, e, and |q|, |k| <= m.

    Other keys. Compared with k = q, a key at distance d >= 1 loses at least GAP d (d - 2e), which is at least
    GAP (1 - 2e). The product q * 2k is rounded by at most 2 m^2 U, and each of two additions by 2 m^2 U, times GAP.
    Therefore rounding moves two logits by at most 12 m^2 U GAP relative to each other. With 2e + 12 m^2 U <= 1/2 the
    loss is at least GAP/2 = 128, and the key's weight vanishes (exp(-104) is 0). With e = 0 all terms are integers, up
    to 3 m^2, times GAP, and for m <= 2048 nothing is rounded. Therefore the proof holds for exact queries up to
    m = 2048, and for others up to m = 836 and less.

    BOS, at -GAP/2. The key found has GAP (k^2 + 2ek), where |e| <= 1/8. For k = 0 that is 0. Otherwise its terms, at
    most 2 k^2 + |k|/4 in size, are rounded by less than k^2/2^20, and k^2 (1 - 2^-20) - |k|/4 > 0. Therefore BOS lies
    at least GAP/2 below. At BOS all codes are zero, and these terms too. The BOS query holds q = 0 and sees -GAP k^2, 0
    or less, at keys.

    PAD, at -2 GAP. It holds the code of some k, or none. Its logit is at most that of the key found plus GAP e^2, or 0,
    minus 2 GAP. PAD must not hold a sum of codes: the keys must be written by the embedding, or be tables of such keys.
    """
    most = max(largest, float(np.abs(keys).max()))
    rounding = 0.0 if error == 0.0 and most <= 2048 else 12 * most**2 * U
    if error > 1 / 8 or 2 * error + rounding > 1 / 2:
        return None
    return 2 * GAP * keys, -GAP * keys**2


def attend(
    query: LinearMap, key: LinearMap, always: LinearMap, bos_logit: float, gap: float = GAP, to: Format = FLOAT32
) -> tuple[LinearMap, LinearMap]:
    """Add the BOS and PAD terms to the queries and keys of a selector; `always` is a term of every query for a key.

    In a short format every weight must be held. So BOS gets 2 gap from its own query, not 2 gap minus its logit; and if
    `always` is read with a weight for BOS, it has a coordinate of its own.

    In a short format the query of PAD gets 2 gap for BOS, too. If it holds codes of values, or zeros, all keys are at 0
    or below, and PAD adds what a query adds that selects nothing. No answer depends on this, but what is known of PAD
    does: otherwise PAD would count some keys for each of several heads, and the checker would try all these counts.
    """
    every_query, bos_query = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    special = {BOS: np.array([[bos_logit, 2 * gap - bos_logit]]), PAD: -2 * gap * every_query}
    queries = {ONE: every_query, BOS: bos_query}
    if to.short:
        special[BOS] = np.array([[bos_logit, 2 * gap]])
        queries[PAD] = bos_query
        if BOS in always.blocks:
            query, key = query.beside(LinearMap.of(ONE, np.eye(1))), key.beside(always)
            always = LinearMap({}, 1)
    special_key = always.then(every_query) + LinearMap(special, width=2)
    return query.beside(LinearMap(queries, width=2)), key.beside(special_key)
