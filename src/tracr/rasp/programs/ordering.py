"""Putting values in another order: reversed, sorted, by frequency."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from tracr.arguments import whole
from tracr.errors import ExpressionError
from tracr.rasp import rasp
from tracr.rasp.programs.counting import make_has_prev, make_hist
from tracr.rasp.rasp import Comparison, Selector, SOp
from tracr.values import Number, Value, is_number

__all__ = [
    "make_most_freq",
    "make_reverse",
    "make_sort",
    "make_sort_composite",
    "make_sort_freq",
    "make_sort_unique",
    "smallest_gap",
]

LARGEST_KEY = 2.0**1000  # sums of larger keys may not be floats


def make_reverse(sop: SOp) -> SOp:
    """The values of `sop` in reverse order.

    >>> make_reverse(rasp.tokens)("abc")
    ['c', 'b', 'a']
    """
    opposite = (rasp.length - rasp.indices - 1).named("opposite")
    flip = rasp.Select(rasp.indices, opposite, Comparison.EQ).named("flip")
    return rasp.Aggregate(flip, sop).named("reverse")


def _sorted_by(smaller: Selector, vals: SOp) -> SOp:
    """Each of `vals` moved to the position whose index is how many others are `smaller`."""
    target_pos = rasp.SelectorWidth(smaller.named("smaller")).named("target_pos")
    sel_sort = rasp.Select(target_pos, rasp.indices, Comparison.EQ).named("sel_sort")
    return rasp.Aggregate(sel_sort, vals).named("sort")


def make_sort_unique(vals: SOp, keys: SOp) -> SOp:
    """`vals` in increasing order of `keys`, which must all differ (see `make_sort` for equal keys).

    >>> make_sort_unique(rasp.tokens, rasp.tokens)([3, 1, 2])
    [1, 2, 3]
    """
    return _sorted_by(rasp.Select(keys, keys, Comparison.LT), vals)


def make_sort(vals: SOp, keys: SOp, *, max_seq_len: int, min_key: float) -> SOp:
    """`vals` in increasing order of the numbers `keys`; equal keys stay in the order of their positions.

    A small multiple of `indices`, below `min_key`, separates equal keys. So `min_key` must be positive and no
    larger than the smallest gap between two different keys (1 for integers), and inputs no longer than `max_seq_len`:
    a longer one is an error.

    >>> make_sort(rasp.tokens, rasp.tokens, max_seq_len=5, min_key=1)([2, 3, 1, 2])
    [1, 2, 2, 3]
    """
    whole("max_seq_len", max_seq_len, 1, error=ExpressionError)
    if not is_number(min_key) or not min_key > 0:
        raise ExpressionError(
            f"min_key must be a positive number, not {min_key!r}",
            hint="give the smallest gap between two different keys: 1 for integers",
        )

    def below_max(index: int) -> int:
        """The index; an error past `max_seq_len`, where its multiple would reach the next key."""
        if index >= max_seq_len:
            raise ValueError(
                f"this sort is for inputs of up to {max_seq_len} tokens: make it with a larger max_seq_len, "
                "or use make_sort_composite"
            )
        return index

    distinct_keys = rasp.SequenceMap(
        lambda key, index: key + min_key * below_max(index) / max_seq_len, keys, rasp.indices
    )
    return make_sort_unique(vals, distinct_keys.named("distinct_keys"))


def smallest_gap(keys: Sequence[Value], max_seq_len: int) -> Number:
    """The `min_key` for these numbers: the smallest gap between two different ones, 1 if there is none.

    `make_sort` computes key + gap · index / max_seq_len, whose exact values are gap / max_seq_len apart or more.
    Rounding moves each by less than 2 ulp of the largest, and the gap itself by less than 1. So 8 ulp keep all of them
    apart and in order; numbers that are closer are refused.

    >>> smallest_gap([1, 2, 0.25, 8], 5)
    0.75
    """
    numbers = sorted({key for key in keys if is_number(key)})
    gap = min((after - before for before, after in pairwise(numbers)), default=1)
    largest = max(map(abs, numbers), default=0) + gap
    if largest > LARGEST_KEY or gap / max_seq_len < 8 * math.ulp(largest):
        raise ExpressionError(
            f"rounding would make keys of make_sort equal: a gap of {gap} between two numbers up to {numbers[-1]}, "
            f"divided by {max_seq_len} positions",
            hint="make_sort_composite needs no gap (sort_composite on the command line)",
        )
    return gap


def make_sort_composite(vals: SOp, keys: SOp) -> SOp:
    """`vals` in increasing order of `keys`; equal keys stay in the order of their positions.

    The RASP paper's sort: of equal keys, the earlier counts as smaller. Its selector combines two selectors over
    different inputs. Keys may be any values with an order, and no gap or length is needed.

    >>> make_sort_composite(rasp.tokens, rasp.tokens)("banana")
    ['a', 'a', 'a', 'b', 'n', 'n']
    """
    less = rasp.Select(keys, keys, Comparison.LT).named("less")
    equal = rasp.Select(keys, keys, Comparison.EQ).named("equal")
    earlier = rasp.Select(rasp.indices, rasp.indices, Comparison.LT).named("earlier")
    return _sorted_by(less | (equal & earlier).named("equal_earlier"), vals)


def make_sort_freq(max_seq_len: int) -> SOp:
    """The tokens, most frequent first; equally frequent ones stay in the order of their positions.

    >>> make_sort_freq(5)("cabab")
    ['a', 'b', 'a', 'b', 'c']
    """
    rarity = (-make_hist()).named("rarity")
    return make_sort(rasp.tokens, rarity, max_seq_len=max_seq_len, min_key=1).named("sort_freq")


def make_most_freq(filler: Value = None) -> SOp:
    """The different tokens, each once, most frequent first, then `filler`; equally frequent ones as they first occur.

    >>> make_most_freq()("cabab")
    ['a', 'b', 'c', None, None]
    """
    repeated = make_has_prev(rasp.tokens).named("repeated")
    # A frequency is at least 1, so 0 puts the repeated tokens after all others.
    rarity = rasp.SequenceMap(lambda again, count: 0 if again else -count, repeated, make_hist()).named("rarity")
    distinct = rasp.SequenceMap(lambda again, token: filler if again else token, repeated, rasp.tokens)
    return make_sort_composite(distinct.named("distinct"), rarity).named("most_freq")
