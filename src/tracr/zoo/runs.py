"""Runs of equal tokens, segments between separators, and regular patterns."""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import Any

from tracr.rasp import rasp
from tracr.rasp.rasp import Comparison, SOp
from tracr.zoo.entry import at_each, everywhere, prefixes, task
from tracr.zoo.pieces import before, count, differ, everything, fetch, first_where, mean, share, so_far

tokens, indices, length = rasp.tokens, rasp.indices, rasp.length


def _starts() -> SOp:
    """Whether a run begins here."""
    return differ(tokens, before(tokens)).named("starts_run")


def _lengths(xs: list[Any]) -> list[int]:
    return [len(list(run)) for _, run in groupby(xs)]


@task(
    "ab",
    7,
    shown="aabba",
    tags="runs",
    says="whether the token differs from the one before it",
    answers=at_each(lambda xs, i: i == 0 or xs[i] != xs[i - 1]),
    causal=True,
)
def starts_run() -> SOp:
    """A head and a comparison."""
    return _starts()


@task(
    "abc",
    6,
    shown="aabbc",
    tags="runs",
    says="how many runs of equal tokens have begun so far",
    answers=prefixes(lambda xs: len(_lengths(xs))),
    causal=True,
)
def run_number() -> SOp:
    """Counts the beginnings."""
    return count(_starts(), True).named("run_number")


@task(
    "ab",
    7,
    shown="aabbba",
    tags="runs",
    says="how long the current run of equal tokens is so far",
    answers=prefixes(lambda xs: _lengths(xs)[-1]),
    causal=True,
)
def run_length() -> SOp:
    """Counts the positions with the same run number."""
    number = count(_starts(), True).named("run")
    return count(number, number).named("run_length")


@task(
    "ab",
    6,
    shown="aabbba",
    tags="runs",
    says="the length of the run of equal tokens that this position is in",
    answers=lambda xs: [n for n in _lengths(xs) for _ in range(n)],
)
def whole_run_length() -> SOp:
    """As `run_length`, over the whole input."""
    number = _numbered()
    return count(number, number).named("whole_run_length")


def _numbered() -> SOp:
    """The number of the run, from 1 on, with attention to both sides."""
    begins = rasp.Select(_starts(), True, Comparison.EQ).named("begins")
    return rasp.SelectorWidth((begins & so_far()).named("begun")).named("run")


@task(
    "ab",
    6,
    shown="aabbba",
    tags="runs extremes numerical",
    says="the length of the longest run of equal tokens",
    answers=everywhere(lambda xs: max(_lengths(xs))),
)
def longest_run() -> SOp:
    """The length that no other exceeds."""
    number = _numbered()
    lengths = count(number, number).named("lengths")
    exceeded = count(lengths, lengths, Comparison.GT).named("exceeded")
    return mean(rasp.Select(exceeded, 0, Comparison.EQ).named("longest"), lengths).named("longest_run")


@task(
    "abc",
    6,
    shown="abbcc",
    tags="runs extremes",
    says="the token of the longest run, the first of several, at every position",
    answers=everywhere(lambda xs: max(((len(list(run)), x) for x, run in groupby(xs)), key=lambda one: one[0])[1]),
)
def token_of_longest_run() -> SOp:
    """Among the positions of longest runs, fetches the first."""
    number = _numbered()
    lengths = count(number, number).named("lengths")
    longest = (count(lengths, lengths, Comparison.GT).named("exceeded") == 0).named("is_longest")
    return fetch(first_where(longest), True, tokens).named("token_of_longest_run")


@task(
    "abc",
    6,
    shown="aabbc",
    tags="runs",
    says="one token for each run, then '-'",
    answers=lambda xs: [*(x for x, _ in groupby(xs)), *["-"] * (len(xs) - len(_lengths(xs)))],
)
def collapse_runs() -> SOp:
    """Moves the beginnings to the left."""
    number = _numbered()
    target = rasp.SequenceMap(lambda n, start: n - 1 if start else -1, number, _starts()).named("target")
    return fetch(target, indices, tokens).named("collapse_runs")


@task(
    "abc",
    6,
    shown="aabbc",
    tags="runs",
    says="how many tokens equal their right neighbour",
    answers=everywhere(lambda xs: sum(x == y for x, y in pairwise(xs))),
)
def count_doubles() -> SOp:
    """Compares neighbours, and counts."""
    equal = rasp.SequenceMap(lambda x, y: x == y, tokens, before(tokens, -1)).named("equals_next")
    return count(equal, True).named("count_doubles")


@task(
    "abc",
    6,
    shown="bacca",
    tags="runs distances",
    says="how many tokens have come since the last 'a', itself included; 0 before the first 'a'",
    answers=prefixes(lambda xs: xs[::-1].index("a") + 1 if "a" in xs else 0),
    causal=True,
)
def since_last_a() -> SOp:
    """Counts the positions with as many 'a' before them."""
    seen = count(tokens, "a").named("seen")
    wanted = rasp.Map(lambda n: n if n else -1, seen).named("wanted")
    return count(seen, wanted).named("since_last_a")


@task(
    "abc",
    6,
    shown="bacca",
    tags="runs distances",
    says="the distance to the next 'a' at or after this position, -1 if there is none",
    answers=at_each(lambda xs, i: xs[i:].index("a") if "a" in xs[i:] else -1),
)
def until_next_a() -> SOp:
    """Counts later positions with as many 'a' from there on."""
    is_a = rasp.Select(tokens, "a", Comparison.EQ).named("is_a")
    onwards = rasp.Select(indices, indices, Comparison.GEQ).named("onwards")
    left = rasp.SelectorWidth((is_a & onwards).named("a_onwards")).named("left")
    same_left = rasp.Select(left, left, Comparison.EQ).named("same_left")
    steps = rasp.SelectorWidth((same_left & onwards).named("same_onwards")).named("steps")
    return rasp.SequenceMap(lambda n, some: n - 1 if some else -1, steps, left).named("until_next_a")


@task(
    "ab_",
    6,
    shown="ab_b_a",
    tags="runs language",
    says="the number of letters of the word this position is in, 0 at an underscore",
    answers=at_each(
        lambda xs, i: 0 if xs[i] == "_" else len("".join(xs[:i]).split("_")[-1] + "".join(xs[i:]).split("_")[0])
    ),
)
def word_length() -> SOp:
    """Letters with the same number of underscores before them."""
    gap = rasp.Select(tokens, "_", Comparison.EQ).named("is_gap")
    word = rasp.SelectorWidth((gap & so_far()).named("gaps_so_far")).named("word")
    key = rasp.SequenceMap(lambda token, n: -1 if token == "_" else n, tokens, word).named("key")
    query = rasp.SequenceMap(lambda token, n: -2 if token == "_" else n, tokens, word).named("query")
    return count(key, query).named("word_length")


@task(
    'ab"',
    7,
    shown='a"ab"b',
    tags="runs parity language",
    says="whether the token is a letter inside quotation marks",
    answers=prefixes(lambda xs: xs[-1] != '"' and xs.count('"') % 2 == 1),
    causal=True,
)
def inside_quotes() -> SOp:
    """The parity of the marks so far, and the token."""
    marks = count(tokens, '"').named("marks")
    return rasp.SequenceMap(lambda n, token: n % 2 == 1 and token != '"', marks, tokens).named("inside_quotes")


@task(
    "abc",
    6,
    shown="ababc",
    tags="runs comparison",
    says="whether every token so far equals the one two before it, where there is one",
    answers=prefixes(lambda xs: all(x == y for x, y in zip(xs, xs[2:], strict=False))),
    causal=True,
)
def period_two() -> SOp:
    """Whether there was an exception."""
    breaks = rasp.SequenceMap(lambda x, y: y not in (x, "-"), tokens, before(tokens, 2)).named("breaks")
    return (share(everything(), breaks) == 0).named("period_two")


@task(
    "ab",
    6,
    shown="aabb",
    tags="runs language",
    says="whether the input is some number of 'a' and then as many 'b'",
    answers=everywhere(lambda xs: "".join(xs) == "a" * (len(xs) // 2) + "b" * (len(xs) // 2)),
)
def is_anbn() -> SOp:
    """As many 'a' as 'b', and no 'a' right after a 'b'."""
    wrong = rasp.SequenceMap(lambda x, y: x == "b" and y == "a", before(tokens), tokens).named("wrong")
    errors = count(wrong, True).named("errors")
    balance = (count(tokens, "a").named("count_a") - count(tokens, "b").named("count_b")).named("balance")
    return rasp.SequenceMap(lambda n, m: n == 0 and m == 0, errors, balance).named("is_anbn")
