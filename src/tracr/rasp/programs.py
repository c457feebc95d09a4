"""A library of RASP programs: those of the paper, and small tools to build others from.

Every function returns an expression; `EXAMPLES` holds one ready-made program of each kind, with the vocabulary and
the length it is usually compiled for. The s-ops and selectors carry the names the paper gives them, so they can be
recognised in a compiled model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from tracr.errors import ExpressionError
from tracr.rasp import rasp
from tracr.rasp.rasp import Comparison, SOp
from tracr.rasp.values import Value, is_number

__all__ = [
    "EXAMPLES",
    "Example",
    "detect_pattern",
    "make_count",
    "make_count_less_freq",
    "make_frac_prevs",
    "make_hist",
    "make_length",
    "make_nary_sequencemap",
    "make_pair_balance",
    "make_reverse",
    "make_shuffle_dyck",
    "make_shuffle_dyck2",
    "make_sort",
    "make_sort_freq",
    "make_sort_unique",
    "shift_by",
]


def _equal(key: Value, query: Value) -> bool:
    """`key == query` where either may be `None`, which `Comparison.EQ` refuses."""
    return key == query


# Counting


def make_length() -> SOp:
    """The length of the input, as the width of a selector that selects everything.

    Evaluated causally, it counts the tokens so far.

    >>> make_length()("abc")
    [3, 3, 3]
    """
    select_all = rasp.Select(rasp.tokens, rasp.tokens, Comparison.TRUE).named("select_all")
    return rasp.SelectorWidth(select_all).named("length")


def make_hist() -> SOp:
    """How often the token of each position occurs in the input.

    >>> make_hist()("abac")
    [2, 1, 2, 1]
    """
    same_token = rasp.Select(rasp.tokens, rasp.tokens, Comparison.EQ).named("same_token")
    return rasp.SelectorWidth(same_token).named("hist")


def make_count(sop: SOp, token: Value) -> SOp:
    """At how many positions `sop` equals `token`; the same number everywhere.

    >>> make_count(rasp.tokens, "a")("abac")
    [2, 2, 2, 2]
    """
    is_token = rasp.Select(sop, rasp.Full(token), _equal).named("is_token")
    return rasp.SelectorWidth(is_token).named(f"count_{token}")


def make_count_less_freq(n: int) -> SOp:
    """At how many positions stands a token that occurs at most `n` times; the same number everywhere.

    >>> make_count_less_freq(2)("aaabbc")
    [3, 3, 3, 3, 3, 3]
    """
    hist = make_hist()
    rare = rasp.Select(hist, rasp.Full(n), Comparison.LEQ).named("rare")
    return rasp.SelectorWidth(rare).named("count_less_freq")


def make_frac_prevs(bools: SOp) -> SOp:
    """The fraction of positions up to this one, it included, where `bools` holds.

    >>> is_x = (rasp.tokens == "x").named("is_x")
    >>> make_frac_prevs(is_x)("xacx")
    [True, 0.5, 0.3333333333333333, 0.5]
    """
    prevs = rasp.Select(rasp.indices, rasp.indices, Comparison.LEQ).named("prevs")
    # Every position selects itself, so the default is never taken: 0 spares the compiler a `None`.
    return rasp.numerical(rasp.Aggregate(prevs, rasp.numerical(bools), default=0)).named("frac_prevs")


# Moving


def make_reverse(sop: SOp) -> SOp:
    """The values of `sop` in reverse order.

    >>> make_reverse(rasp.tokens)("abc")
    ['c', 'b', 'a']
    """
    opposite = (rasp.length - rasp.indices - 1).named("opposite")
    flip = rasp.Select(rasp.indices, opposite, Comparison.EQ).named("flip")
    return rasp.Aggregate(flip, sop).named("reverse")


def shift_by(offset: int, sop: SOp) -> SOp:
    """The value of `sop` `offset` positions earlier (later if negative), `None` where there is no such position.

    >>> shift_by(1, rasp.tokens)("abc")
    [None, 'a', 'b']
    >>> shift_by(-2, rasp.tokens)("abc")
    ['c', None, None]
    """
    earlier = rasp.Select(rasp.indices, rasp.indices, lambda key, query: key + offset == query).named("earlier")
    return rasp.Aggregate(earlier, sop).named(f"shift_by({offset})")


def detect_pattern(sop: SOp, pattern: Sequence[Value]) -> SOp:
    """Whether an occurrence of `pattern` in `sop` ends here; `None` where it would have to start before the input.

    >>> detect_pattern(rasp.tokens, "ab")("aabab")
    [None, False, True, False, True]
    """
    if not pattern:
        raise ExpressionError("detect_pattern needs at least one value to look for, got an empty pattern")
    ahead = len(pattern) - 1
    found = [shift_by(ahead - i, sop == value) if i < ahead else sop == value for i, value in enumerate(pattern)]
    return reduce(SOp.__and__, found).named("detect_pattern")


# Sorting


def make_sort_unique(vals: SOp, keys: SOp) -> SOp:
    """`vals` in increasing order of `keys`, no two of which may be equal (see `make_sort`).

    >>> make_sort_unique(rasp.tokens, rasp.tokens)([3, 1, 2])
    [1, 2, 3]
    """
    smaller = rasp.Select(keys, keys, Comparison.LT).named("smaller")
    target_pos = rasp.SelectorWidth(smaller).named("target_pos")
    sel_sort = rasp.Select(target_pos, rasp.indices, Comparison.EQ).named("sel_sort")
    return rasp.Aggregate(sel_sort, vals).named("sort")


def make_sort(vals: SOp, keys: SOp, *, max_seq_len: int, min_key: float) -> SOp:
    """`vals` in increasing order of the numbers `keys`; equal keys stay in the order of their positions.

    A small multiple of `indices`, below `min_key`, tells equal keys apart. So `min_key` must be positive and no
    larger than the smallest gap between two different keys (1 for integers), and inputs no longer than `max_seq_len`.

    >>> make_sort(rasp.tokens, rasp.tokens, max_seq_len=5, min_key=1)([2, 3, 1, 2])
    [1, 2, 2, 3]
    """
    if max_seq_len < 1:
        raise ExpressionError(f"max_seq_len must be at least 1, not {max_seq_len!r}")
    if not is_number(min_key) or not min_key > 0:
        raise ExpressionError(
            f"min_key must be a positive number, not {min_key!r}",
            hint="give the smallest gap between two different keys: 1 for integers",
        )
    distinct_keys = rasp.SequenceMap(lambda key, index: key + min_key * index / max_seq_len, keys, rasp.indices)
    return make_sort_unique(vals, distinct_keys.named("distinct_keys"))


def make_sort_freq(max_seq_len: int) -> SOp:
    """The tokens, most frequent first; equally frequent ones stay in the order of their positions.

    >>> make_sort_freq(5)("cabab")
    ['a', 'b', 'a', 'b', 'c']
    """
    rarity = (-make_hist()).named("rarity")
    return make_sort(rasp.tokens, rarity, max_seq_len=max_seq_len, min_key=1).named("sort_freq")


# Parentheses


def make_pair_balance(sop: SOp, open_token: Value, close_token: Value) -> SOp:
    """The fraction of `open_token` minus that of `close_token`, over the positions up to this one.

    Negative where more were closed than opened, and exactly 0 where they balance.

    >>> make_pair_balance(rasp.tokens, "(", ")")("())(")
    [1, 0.0, -0.3333333333333333, 0.0]
    """
    opens = make_frac_prevs((sop == open_token).named("bools_open")).named("opens")
    closes = make_frac_prevs((sop == close_token).named("bools_close")).named("closes")
    return rasp.numerical(rasp.LinearSequenceMap(opens, closes, 1, -1)).named("pair_balance")


def make_shuffle_dyck(pairs: Iterable[Sequence[Value]]) -> SOp:
    """Whether each of the `pairs` of tokens is balanced, the others ignored; the same answer everywhere.

    Different pairs need not nest: `([)]` is balanced.

    >>> make_shuffle_dyck(["()"])("(())"), make_shuffle_dyck(["()"])("())(")
    ([True, True, True, True], [False, False, False, False])
    """
    checked = [tuple(pair) for pair in pairs]
    if not checked or any(len(pair) != 2 for pair in checked):
        raise ExpressionError(
            f"make_shuffle_dyck needs at least one pair of tokens, got {checked!r}", hint='write ["()", "{}"]'
        )
    balances = [make_pair_balance(rasp.tokens, *pair).named(f"balance_{pair[0]}{pair[1]}") for pair in checked]

    any_negative = rasp.numerical(reduce(SOp.__or__, [balance < 0 for balance in balances])).named("any_negative")
    select_all = rasp.Select(1, 1, Comparison.EQ).named("select_all")
    has_neg = rasp.numerical(rasp.Aggregate(select_all, any_negative, default=0)).named("has_neg")

    all_zero = reduce(SOp.__and__, [balance == 0 for balance in balances]).named("all_zero")
    select_last = rasp.Select(rasp.indices, rasp.length - 1, Comparison.EQ).named("select_last")
    last_zero = rasp.Aggregate(select_last, all_zero).named("last_zero")

    return (last_zero & ~has_neg).named("shuffle_dyck")


def make_shuffle_dyck2() -> SOp:
    """`make_shuffle_dyck` for the paper's two pairs, `()` and `{}`.

    >>> make_shuffle_dyck2()("({)}")
    [True, True, True, True]
    """
    return make_shuffle_dyck(["()", "{}"]).named("shuffle_dyck2")


# Several s-ops at once


def make_nary_sequencemap(f: Callable[..., Any], *sops: SOp) -> SOp:
    """`f` of the values of any number of s-ops at the same position; `None` if any of them is.

    The values are gathered into tuples, one s-op at a time, and the last step calls `f`.

    >>> make_nary_sequencemap(lambda x, y, z: x + y * z, rasp.indices, rasp.length, rasp.Full(10))("abc")
    [30, 31, 32]
    """
    if not sops:
        raise ExpressionError("make_nary_sequencemap needs at least one s-op")
    if len(sops) == 1:
        return rasp.Map(f, sops[0])
    if len(sops) == 2:
        return rasp.SequenceMap(f, sops[0], sops[1])
    gathered: SOp = rasp.SequenceMap(lambda x, y: (x, y), sops[0], sops[1]).named("gathered")
    for sop in sops[2:-1]:
        gathered = rasp.SequenceMap(lambda xs, y: (*xs, y), gathered, sop).named("gathered")
    return rasp.SequenceMap(lambda xs, y: f(*xs, y), gathered, sops[-1])


@dataclass(frozen=True)
class Example:
    """A program with the vocabulary and the maximum length (BOS not counted) it is usually compiled for."""

    program: SOp
    vocab: tuple[Value, ...]
    max_seq_len: int
    description: str


def _examples() -> dict[str, Example]:
    tokens = rasp.tokens
    letters, parens, numbers = tuple("abc"), tuple("()a"), (1, 2, 3, 4)
    is_x = (tokens == "x").named("is_x")
    sort = make_sort(tokens, tokens, max_seq_len=4, min_key=1)
    return {
        "length": Example(make_length(), letters, 5, "the length of the input"),
        "reverse": Example(make_reverse(tokens), letters, 5, "the input backwards"),
        "hist": Example(make_hist(), letters, 5, "how often each token occurs"),
        "frac_prevs": Example(make_frac_prevs(is_x), tuple("abcx"), 5, "the fraction of 'x' so far"),
        "sort_unique": Example(make_sort_unique(tokens, tokens), numbers, 4, "sorts different numbers"),
        "sort": Example(sort, numbers, 4, "sorts numbers, equal ones allowed"),
        "sort_freq": Example(make_sort_freq(4), letters, 4, "the tokens, most frequent first"),
        "pair_balance": Example(make_pair_balance(tokens, "(", ")"), parens, 5, "fraction of '(' minus that of ')'"),
        "shuffle_dyck": Example(make_shuffle_dyck(["()"]), parens, 5, "whether '(' and ')' are balanced"),
        "shuffle_dyck2": Example(make_shuffle_dyck2(), tuple("(){}"), 4, "whether '()' and '{}' are balanced"),
        "count": Example(make_count(tokens, "a"), letters, 5, "how many 'a' there are"),
        "shift_by": Example(shift_by(1, tokens), letters, 5, "the token before"),
        "detect_pattern": Example(detect_pattern(tokens, "ab"), letters, 5, "where 'ab' ends"),
        "count_less_freq": Example(make_count_less_freq(1), letters, 5, "how many tokens occur only once"),
    }


EXAMPLES: dict[str, Example] = _examples()
