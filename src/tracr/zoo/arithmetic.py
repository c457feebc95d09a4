"""Arithmetic: modular sums, differences, means, running extremes."""

from __future__ import annotations

from itertools import accumulate
from statistics import fmean
from typing import Any

from tracr.rasp import rasp
from tracr.rasp.programs.conditions import BITS, COUNTABLE, NUMBERS, Condition
from tracr.rasp.rasp import Comparison, SOp
from tracr.zoo.entry import at_each, everywhere, prefixes, task
from tracr.zoo.pieces import before, count, earlier, everything, is_one_of, mean, share, token_at

tokens, indices, length = rasp.tokens, rasp.indices, rasp.length

MODULUS = 5
RESIDUES = Condition("whole numbers from 0 to 4", lambda vocab: {*vocab} <= {*range(MODULUS)})
DIGITS = Condition("whole numbers from 0 to 2", lambda vocab: {*vocab} <= {0, 1, 2})


@task(
    range(MODULUS),
    5,
    shown=(3, 4, 2),
    tags="arithmetic modular classic",
    says="the sum of this token and the token before it, modulo 5",
    answers=at_each(lambda xs, i: sum(xs[max(0, i - 1) : i + 1]) % MODULUS),
    causal=True,
    tokens=RESIDUES,
)
def add_mod() -> SOp:
    """A head moves the first number; the MLP adds."""
    return rasp.SequenceMap(lambda x, y: (x + y) % MODULUS, before(tokens, 1, 0), tokens).named("add_mod")


@task(
    range(MODULUS),
    5,
    shown=(3, 4, 2),
    tags="arithmetic modular",
    says="the product of this token and the first token, modulo 5",
    answers=at_each(lambda xs, i: xs[0] * xs[i] % MODULUS),
    causal=True,
    tokens=RESIDUES,
)
def multiply_mod() -> SOp:
    """Every position fetches the first number."""
    return rasp.SequenceMap(lambda x, y: x * y % MODULUS, token_at(0, 0), tokens).named("multiply_mod")


@task(
    (1, 2, 3, 4, 5, 6, 7),
    5,
    shown=(1, 2, 4, 7),
    tags="arithmetic",
    says="whether the token is a prime number",
    answers=lambda xs: [x > 1 and all(x % n for n in range(2, x)) for x in xs],
    tokens=COUNTABLE,
)
def is_prime() -> SOp:
    """A table of numbers: those with exactly two divisors."""
    return rasp.Map(lambda x: [x % n for n in range(1, x + 1)].count(0) == 2, tokens).named("is_prime")


@task(
    (0, 1, 2),
    6,
    shown=(2, 1, 2, 0),
    tags="arithmetic modular",
    says="the sum of the tokens so far, modulo 3",
    answers=prefixes(lambda xs: sum(xs) % 3),
    causal=True,
    tokens=DIGITS,
)
def sum_mod_three() -> SOp:
    """Counts ones and twos; a two counts double."""
    ones, twos = count(tokens, 1).named("ones"), count(tokens, 2).named("twos")
    return rasp.SequenceMap(lambda x, y: (x + 2 * y) % 3, ones, twos).named("sum_mod_three")


@task(
    (0, 1, 2),
    6,
    shown=(2, 1, 2, 0),
    tags="arithmetic classic",
    says="prefix sums: the sum of the tokens so far",
    answers=lambda xs: list(accumulate(xs)),
    causal=True,
    tokens=DIGITS,
)
def sum_so_far() -> SOp:
    """Counts ones and twos; a two counts double."""
    ones, twos = count(tokens, 1).named("ones"), count(tokens, 2).named("twos")
    return rasp.SequenceMap(lambda x, y: x + 2 * y, ones, twos).named("sum_so_far")


@task(
    (0, 1),
    6,
    shown=(1, 0, 1, 1),
    tags="arithmetic",
    says="the exclusive or of the first and the last token, at every position",
    answers=everywhere(lambda xs: xs[0] ^ xs[-1]),
    tokens=BITS,
)
def xor_ends() -> SOp:
    """Two heads fetch the ends."""
    first, last = token_at(0, 0).named("first"), token_at((length - 1).named("end"), 0).named("last")
    return rasp.SequenceMap(lambda x, y: x ^ y, first, last).named("xor_ends")


@task(
    (0, 1),
    6,
    shown=(1, 0, 1),
    tags="arithmetic",
    says="the number that the bits so far write in the binary system, modulo 3",
    answers=prefixes(lambda xs: int("".join(map(str, xs)), 2) % 3),
    causal=True,
    tokens=BITS,
)
def binary_mod_three() -> SOp:
    """Powers of two are 1 and 2 in turn, modulo 3: counts the ones at even and at odd positions."""
    even = rasp.SequenceMap(lambda bit, i: bit == 1 and i % 2 == 0, tokens, indices).named("even_one")
    odd = rasp.SequenceMap(lambda bit, i: bit == 1 and i % 2 == 1, tokens, indices).named("odd_one")
    counts = rasp.SequenceMap(
        lambda x, y: (x, y), count(even, True).named("even_ones"), count(odd, True).named("odd_ones")
    ).named("counts")
    return rasp.SequenceMap(lambda xy, i: (xy[i % 2] + 2 * xy[1 - i % 2]) % 3, counts, indices).named(
        "binary_mod_three"
    )


@task(
    (0, 1, 2, 3),
    5,
    shown=(1, 3, 2, 2),
    tags="arithmetic numerical",
    says="the mean of the tokens so far",
    answers=prefixes(fmean),
    causal=True,
    tokens=NUMBERS,
)
def mean_so_far() -> SOp:
    """One head."""
    return mean(everything(), tokens).named("mean_so_far")


@task(
    (0, 1, 2),
    5,
    shown=(0, 2, 1, 2),
    tags="arithmetic numerical",
    says="the difference between the token and the mean of the input",
    answers=at_each(lambda xs, i: xs[i] - fmean(xs)),
    tokens=NUMBERS,
)
def centred() -> SOp:
    """The mean, subtracted."""
    average = mean(everything(), tokens).named("average")
    return rasp.numerical(rasp.LinearSequenceMap(rasp.numerical(tokens), average, 1, -1)).named("centred")


@task(
    (0, 1, 2, 3),
    6,
    shown=(0, 3, 0, 3),
    tags="arithmetic numerical",
    says="the mean of the token and its neighbours",
    answers=at_each(lambda xs, i: fmean(xs[max(0, i - 1) : i + 2])),
    tokens=NUMBERS,
)
def moving_average() -> SOp:
    """A window of three positions."""
    window = rasp.Select(indices, indices, lambda key, query: abs(key - query) <= 1).named("window")
    return mean(window, tokens).named("moving_average")


@task(
    (0, 1, 2, 3),
    5,
    shown=(1, 3, 2, 2),
    tags="arithmetic numerical",
    says="the mean of the tokens before this one, 0 at the start",
    answers=at_each(lambda xs, i: fmean(xs[:i] or [0])),
    tokens=NUMBERS,
)
def mean_before() -> SOp:
    """One head over earlier positions."""
    return mean(earlier(), tokens).named("mean_before")


@task(
    (0, 1, 2, 3),
    5,
    shown=(1, 3, 2, 2),
    tags="arithmetic",
    says="the token minus the token before it, which counts as 0 at the start",
    answers=lambda xs: [x - y for x, y in zip(xs, [0, *xs], strict=False)],
    causal=True,
    tokens=NUMBERS,
)
def difference() -> SOp:
    """The discrete derivative."""
    return (tokens - before(tokens, 1, 0)).named("difference")


@task(
    (0, 1, 2),
    6,
    shown=(0, 1, 2, 2),
    tags="arithmetic",
    says="the second difference of the tokens; tokens before the start count as 0",
    answers=lambda xs: [x - 2 * y + z for x, y, z in zip(xs, [0, *xs], [0, 0, *xs], strict=False)],
    causal=True,
    tokens=NUMBERS,
)
def second_difference() -> SOp:
    """The difference of differences."""
    change = (tokens - before(tokens, 1, 0)).named("change")
    return (change - before(change, 1, 0)).named("second_difference")


@task(
    (0, 1, 2),
    5,
    shown=(0, 2, 1),
    tags="arithmetic extremes",
    says="the largest token so far",
    answers=prefixes(max),
    causal=True,
    tokens=DIGITS,
)
def running_max() -> SOp:
    """Looks for ones and for twos."""
    ones, twos = count(tokens, 1).named("ones"), count(tokens, 2).named("twos")
    return rasp.SequenceMap(lambda x, y: 2 if y else int(x > 0), ones, twos).named("running_max")


@task(
    (0, 1, 2, 3),
    5,
    shown=(2, 0, 3, 1),
    tags="arithmetic extremes numerical",
    says="the largest token of the input, at every position",
    answers=everywhere(max),
    tokens=NUMBERS,
)
def maximum() -> SOp:
    """The mean of the tokens that no token exceeds: they are all equal."""
    exceeded = count(tokens, tokens, Comparison.GT).named("exceeded")
    largest = rasp.Select(exceeded, 0, Comparison.EQ).named("largest")
    return mean(largest, tokens).named("maximum")


@task(
    (0, 1, 2, 3),
    5,
    shown=(2, 1, 3, 1),
    tags="arithmetic extremes numerical",
    says="the smallest token of the input, at every position",
    answers=everywhere(min),
    tokens=NUMBERS,
)
def minimum() -> SOp:
    """The mean of the tokens that are above no token: they are all equal."""
    undercut = count(tokens, tokens, Comparison.LT).named("undercut")
    smallest = rasp.Select(undercut, 0, Comparison.EQ).named("smallest")
    return mean(smallest, tokens).named("minimum")


@task(
    (1, 2, 3, 4),
    5,
    shown=(1, 2, 4, 2),
    tags="arithmetic classic",
    says="two-sum: whether some token of the input and this one add up to 5",
    answers=at_each(lambda xs, i: 5 - xs[i] in xs),
    tokens=NUMBERS,
)
def two_sum() -> SOp:
    """Counts the tokens that complete this one."""
    wanted = rasp.Map(lambda x: 5 - x, tokens).named("wanted")
    return (count(tokens, wanted).named("partners") > 0).named("two_sum")


@task(
    (0, 1, 2, 3),
    5,
    shown=(2, 1, 3, 1),
    tags="arithmetic extremes numerical",
    says="the difference between the largest and the smallest token",
    answers=everywhere(lambda xs: max(xs) - min(xs)),
    tokens=NUMBERS,
)
def spread() -> SOp:
    """The largest and the smallest token, subtracted."""
    largest = rasp.Select(count(tokens, tokens, Comparison.GT), 0, Comparison.EQ).named("largest")
    smallest = rasp.Select(count(tokens, tokens, Comparison.LT), 0, Comparison.EQ).named("smallest")
    return (mean(largest, tokens).named("top") - mean(smallest, tokens).named("bottom")).named("spread")


@task(
    "abcu",
    5,
    shown="bacu",
    tags="averages numerical",
    says="the fraction of vowels in the input",
    answers=everywhere(lambda xs: sum(x in "au" for x in xs) / len(xs)),
)
def vowel_fraction() -> SOp:
    """Marks the vowels, and takes the mean."""
    return share(everything(), is_one_of("au").named("is_vowel")).named("vowel_fraction")


def _sentiment(xs: list[Any]) -> float:
    signs = {"g": 1, "b": -1, "n": 0}
    return fmean(signs[x] * (-1 if i and xs[i - 1] == "n" else 1) for i, x in enumerate(xs))


@task(
    "gbn",
    6,
    shown="gnbg",
    tags="averages numerical language",
    says="sentiment: the mean of good (1) and bad (-1) words so far, each negated if 'n' stands right before it",
    answers=prefixes(_sentiment),
    causal=True,
)
def sentiment() -> SOp:
    """Values words in their context, and takes the mean."""
    value = {"g": 1, "b": -1, "n": 0}
    in_context = rasp.SequenceMap(
        lambda last, word: -value[word] if last == "n" else value[word], before(tokens), tokens
    )
    return mean(everything(), in_context.named("in_context")).named("sentiment")
