"""Counting: occurrences so far, distinct tokens, majorities, parities."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tracr.rasp import rasp
from tracr.rasp.rasp import Comparison, SOp
from tracr.zoo.entry import at_each, everywhere, prefixes, task
from tracr.zoo.pieces import count, earlier, is_one_of, same

tokens, indices, length = rasp.tokens, rasp.indices, rasp.length


@task(
    "abc",
    6,
    shown="abaca",
    tags="counting",
    says="how often this token has occurred so far",
    answers=prefixes(lambda xs: xs.count(xs[-1])),
    causal=True,
)
def hist_so_far() -> SOp:
    """The causal histogram."""
    return count(tokens, tokens).named("hist_so_far")


@task(
    "abc",
    6,
    shown="abaca",
    tags="counting",
    says="how often this token occurs after this position",
    answers=at_each(lambda xs, i: xs[i + 1 :].count(xs[i])),
)
def count_after() -> SOp:
    """Equal tokens at later positions."""
    later = rasp.Select(indices, indices, Comparison.GT).named("later")
    return rasp.SelectorWidth((same(tokens) & later).named("same_later")).named("count_after")


@task(
    "abcd",
    6,
    shown="abacd",
    tags="counting",
    says="how many different tokens there have been so far",
    answers=prefixes(lambda xs: len({*xs})),
    causal=True,
)
def distinct_so_far() -> SOp:
    """Counts the first occurrences."""
    is_first = (count(tokens, tokens).named("occurrence") == 1).named("is_first")
    return count(is_first, True).named("distinct_so_far")


@task(
    "abcd",
    5,
    shown="abacd",
    tags="counting",
    says="how many different tokens the input has",
    answers=everywhere(lambda xs: len({*xs})),
)
def distinct() -> SOp:
    """Counts the positions whose token has not occurred before."""
    before = rasp.SelectorWidth((same(tokens) & earlier()).named("same_earlier")).named("before")
    return rasp.SelectorWidth(rasp.Select(before, 0, Comparison.EQ).named("first")).named("distinct")


@task(
    "abc",
    6,
    shown="abbaca",
    tags="counting",
    says="whether no other token occurs more often than this one",
    answers=at_each(lambda xs, i: xs.count(xs[i]) == max(Counter(xs).values())),
)
def is_most_frequent() -> SOp:
    """Counts the positions with a larger histogram."""
    hist = count(tokens, tokens).named("hist")
    return (count(hist, hist, Comparison.GT).named("more_frequent") == 0).named("is_most_frequent")


@task(
    "abc",
    6,
    shown="abaab",
    tags="counting",
    says="whether more than half of the tokens equal this one",
    answers=at_each(lambda xs, i: 2 * xs.count(xs[i]) > len(xs)),
)
def is_majority() -> SOp:
    """The histogram and the length, in one table."""
    hist = count(tokens, tokens).named("hist")
    return rasp.SequenceMap(lambda n, total: 2 * n > total, hist, length).named("is_majority")


@task(
    "abc",
    5,
    shown="aab",
    tags="counting comparison",
    says="whether all tokens of the input are equal",
    answers=everywhere(lambda xs: len({*xs}) == 1),
)
def all_equal() -> SOp:
    """Whether this token occurs as often as there are positions."""
    hist = count(tokens, tokens).named("hist")
    return rasp.SequenceMap(lambda n, total: n == total, hist, length).named("all_equal")


@task(
    "abc",
    6,
    shown="abaca",
    tags="counting",
    says="how frequent this token is: 'rare' if it occurs once, 'common' if twice, 'frequent' if more often",
    answers=at_each(lambda xs, i: ["rare", "common", "frequent"][min(xs.count(xs[i]), 3) - 1]),
)
def frequency_class() -> SOp:
    """The histogram, in three classes."""
    hist = count(tokens, tokens).named("hist")
    return rasp.Map(lambda n: "rare" if n == 1 else "common" if n == 2 else "frequent", hist).named("frequency_class")


def _leader(xs: list[Any]) -> str:
    lead = xs.count("a") - xs.count("b")
    return "a" if lead > 0 else "b" if lead < 0 else "="


@task(
    "abc",
    6,
    shown="abbca",
    tags="counting classic",
    says="which of 'a' and 'b' occurs more often in the input, '=' if neither",
    answers=everywhere(_leader),
)
def majority_of_two() -> SOp:
    """Compares two counts."""
    count_a, count_b = count(tokens, "a").named("count_a"), count(tokens, "b").named("count_b")
    return rasp.SequenceMap(lambda a, b: "a" if a > b else "b" if a < b else "=", count_a, count_b).named(
        "majority_of_two"
    )


@task(
    (0, 1),
    7,
    shown=(1, 0, 1, 1),
    tags="counting parity classic",
    says="the parity of the number of ones so far",
    answers=prefixes(lambda xs: sum(xs) % 2),
    causal=True,
)
def parity_so_far() -> SOp:
    """Counts, then takes the remainder."""
    return rasp.Map(lambda n: n % 2, count(tokens, 1).named("ones")).named("parity_so_far")


@task(
    "abc",
    7,
    shown="abacab",
    tags="counting parity",
    says="how many 'a' there are at even positions, the first being 0",
    answers=everywhere(lambda xs: xs[::2].count("a")),
)
def count_even_a() -> SOp:
    """Marks the tokens at even positions, and counts."""
    even_a = rasp.SequenceMap(lambda token, i: token == "a" and i % 2 == 0, tokens, indices).named("even_a")
    return count(even_a, True).named("count_even_a")


@task(
    "abc",
    6,
    shown="abacab",
    tags="counting parity",
    says="whether each of the tokens so far that equal this one is at a position of the same parity",
    answers=at_each(lambda xs, i: all((i - j) % 2 == 0 for j in range(i) if xs[j] == xs[i])),
    causal=True,
)
def same_parity() -> SOp:
    """Equal tokens so far, less those at positions of the same parity."""
    coloured = rasp.SequenceMap(lambda token, i: (token, i % 2), tokens, indices).named("coloured")
    matching = count(coloured, coloured).named("same_colour")
    return (count(tokens, tokens).named("hist") - matching == 0).named("same_parity")


@task(
    "aeb",
    6,
    shown="abeba",
    tags="counting",
    says="how many vowels there have been up to this position",
    answers=prefixes(lambda xs: sum(x in "ae" for x in xs)),
    causal=True,
)
def vowels_so_far() -> SOp:
    """Marks the vowels, and counts."""
    return count(is_one_of("ae").named("is_vowel"), True).named("vowels_so_far")


@task(
    "abc",
    6,
    shown="abcab",
    tags="counting",
    says="whether each of 'a', 'b' and 'c' has occurred so far",
    answers=prefixes(lambda xs: {*xs} >= {*"abc"}),
    causal=True,
)
def all_seen() -> SOp:
    """Three counting heads, combined pairwise."""
    seen = [(count(tokens, letter).named(f"count_{letter}") > 0).named(f"seen_{letter}") for letter in "abc"]
    return (seen[0] & seen[1] & seen[2]).named("all_seen")
