"""Counting: lengths, histograms, fractions."""

from __future__ import annotations

from tracr.rasp import rasp
from tracr.rasp.rasp import Comparison, SOp
from tracr.values import Value

__all__ = [
    "make_count",
    "make_count_less_freq",
    "make_frac_prevs",
    "make_has_prev",
    "make_hist",
    "make_hist2",
    "make_hist_bos",
    "make_length",
]


def _equal(key: Value, query: Value) -> bool:
    """`key == query` where either may be `None`, which `Comparison.EQ` refuses."""
    return key == query


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


def make_hist_bos() -> SOp:
    """`make_hist` without `SelectorWidth`, for inputs that begin with a BOS (a token that occurs once); 0 at the BOS.

    The RASP paper's histogram. Every position selects the BOS and the `hist` positions of its own token, so the
    BOS is 1 of the 1 + `hist` selected. This is how a model counts the width of a selector, written in RASP.

    >>> make_hist_bos()("^abac")
    [0, 2, 1, 2, 1]
    """
    same_token = rasp.Select(rasp.tokens, rasp.tokens, Comparison.EQ).named("same_token")
    select_bos = rasp.Select(rasp.indices, 0, Comparison.EQ).named("select_bos")
    is_bos = rasp.numerical(rasp.indices == 0).named("is_bos")
    same_or_bos = (same_token | select_bos).named("same_or_bos")
    frac_bos = rasp.numerical(rasp.Aggregate(same_or_bos, is_bos, default=0)).named("frac_bos")
    # Position 0 is always selected, so the fraction is never 0. The compiler cannot see this and also tries 0.
    return rasp.Map(lambda frac: round(1 / frac) - 1 if frac else 0, frac_bos).named("hist_bos")


def make_has_prev(sop: SOp) -> SOp:
    """Whether the value of `sop` occurred at an earlier position.

    >>> make_has_prev(rasp.tokens)("abac")
    [False, False, True, False]
    """
    same = rasp.Select(sop, sop, _equal).named("same")
    earlier = rasp.Select(rasp.indices, rasp.indices, Comparison.LT).named("earlier")
    return (rasp.SelectorWidth((same & earlier).named("prev_copy")) > 0).named("has_prev")


def make_hist2() -> SOp:
    """How many different tokens occur as often as the token of each position: the RASP paper's double histogram.

    Only the first occurrence of each token is counted.

    >>> make_hist2()("aaabbccdef")
    [1, 1, 1, 2, 2, 2, 2, 3, 3, 3]
    """
    hist = make_hist()
    first = (~make_has_prev(rasp.tokens)).named("first")
    same_count = rasp.Select(hist, hist, Comparison.EQ).named("same_count")
    select_first = rasp.Select(first, True, Comparison.EQ).named("select_first")
    return rasp.SelectorWidth((same_count & select_first).named("same_count_reprs")).named("hist2")


def make_count(sop: SOp, token: Value) -> SOp:
    """The number of positions where `sop` equals `token`; the same number everywhere.

    >>> make_count(rasp.tokens, "a")("abac")
    [2, 2, 2, 2]
    """
    is_token = rasp.Select(sop, rasp.Full(token), _equal).named("is_token")
    return rasp.SelectorWidth(is_token).named(f"count_{token}")


def make_count_less_freq(n: int) -> SOp:
    """The number of positions whose token occurs at most `n` times; the same number everywhere.

    >>> make_count_less_freq(2)("aaabbc")
    [3, 3, 3, 3, 3, 3]
    """
    hist = make_hist()
    rare = rasp.Select(hist, rasp.Full(n), Comparison.LEQ).named("rare")
    return rasp.SelectorWidth(rare).named("count_less_freq")


def make_frac_prevs(bools: SOp) -> SOp:
    """The fraction of positions up to and including this one where `bools` is true.

    >>> is_x = (rasp.tokens == "x").named("is_x")
    >>> make_frac_prevs(is_x)("xacx")
    [True, 0.5, 0.3333333333333333, 0.5]
    """
    prevs = rasp.Select(rasp.indices, rasp.indices, Comparison.LEQ).named("prevs")
    # Every position selects itself, so the default is never used; with 0 the compiler has no `None` to represent.
    return rasp.numerical(rasp.Aggregate(prevs, rasp.numerical(bools), default=0)).named("frac_prevs")
