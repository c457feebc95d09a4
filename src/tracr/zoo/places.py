"""Numbers changed by their place or by the length: masks, halves, products with the length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracr.rasp import rasp
from tracr.rasp.programs.conditions import COUNTABLE, NUMBERS
from tracr.rasp.rasp import Comparison, SOp
from tracr.zoo.entry import at_each, task
from tracr.zoo.numbers import WHOLE
from tracr.zoo.pieces import before, count, count_true, token_at

tokens, indices, length = rasp.tokens, rasp.indices, rasp.length
NUMERALS = (0, 1, 2, 3, 4)


@task(
    NUMERALS,
    6,
    shown=(3, 1, 4, 2),
    tags="positions numbers",
    says="the number, plus one at odd positions; the first position is 0",
    answers=lambda xs: [x + i % 2 for i, x in enumerate(xs)],
    tokens=WHOLE,
)
def increment_odd_positions() -> SOp:
    """An MLP reads number and position."""
    odd = rasp.Map(lambda i: i % 2, indices).named("odd")
    return (tokens + odd).named("increment_odd_positions")


@task(
    NUMERALS,
    6,
    shown=(3, 1, 4, 2, 2),
    tags="positions numbers",
    says="the input with 0 in place of every third number",
    answers=at_each(lambda xs, i: 0 if i in range(2, len(xs), 3) else xs[i]),
    tokens=WHOLE,
)
def zero_every_third() -> SOp:
    """An MLP reads number and position."""
    return rasp.SequenceMap(lambda x, i: x if i % 3 < 2 else 0, tokens, indices).named("zero_every_third")


@task(
    NUMERALS,
    6,
    shown=(3, 1, 4),
    tags="positions numbers",
    says="the second number at its place, 0 at the others",
    answers=lambda xs: [0, *xs[1:2], *[0] * len(xs)][: len(xs)],
    tokens=WHOLE,
)
def only_second() -> SOp:
    """An MLP reads number and position."""
    return rasp.SequenceMap(lambda x, i: x if i == 1 else 0, tokens, indices).named("only_second")


@task(
    NUMERALS,
    6,
    shown=(3, 1, 4),
    tags="positions numbers",
    says="twice the number minus its position; the first position is 0",
    answers=lambda xs: [x + x - i for i, x in enumerate(xs)],
    tokens=WHOLE,
)
def twice_minus_position() -> SOp:
    """An MLP reads number and position."""
    return rasp.SequenceMap(lambda x, i: 2 * x - i, tokens, indices).named("twice_minus_position")


@task(
    NUMERALS,
    5,
    shown=(3, 1, 4),
    tags="positions numbers",
    says="the number times the length of the input",
    answers=lambda xs: [x * len(xs) for x in xs],
    tokens=WHOLE,
)
def times_length() -> SOp:
    """A head counts, an MLP multiplies."""
    return rasp.SequenceMap(lambda x, n: x * n, tokens, length).named("times_length")


@task(
    NUMERALS,
    5,
    shown=(3, 1, 4),
    tags="positions numbers",
    says="the input with the numbers of its first half doubled, the middle one included",
    answers=lambda xs: [2 * x for x in xs[: -(-len(xs) // 2)]] + xs[-(-len(xs) // 2) :],
    tokens=WHOLE,
)
def double_first_half() -> SOp:
    """A head counts; one MLP finds the half, another doubles."""
    first = rasp.SequenceMap(lambda i, n: 2 * i < n, indices, length).named("in_first_half")
    return rasp.SequenceMap(lambda x, here: 2 * x if here else x, tokens, first).named("double_first_half")


@task(
    NUMERALS,
    5,
    shown=(3, 1, 4),
    tags="positions numbers",
    says="the input with the numbers of its second half halved, the middle one included",
    answers=lambda xs: xs[: len(xs) // 2] + [x / 2 for x in xs[len(xs) // 2 :]],
    tokens=WHOLE,
)
def halve_second_half() -> SOp:
    """A head counts; one MLP finds the half, another halves."""
    second = rasp.SequenceMap(lambda i, n: i >= n // 2, indices, length).named("in_second_half")
    return rasp.SequenceMap(lambda x, here: x / 2 if here else x, tokens, second).named("halve_second_half")


@task(
    NUMERALS,
    6,
    shown=(3, 1, 4, 2),
    tags="positions numbers",
    says="the first numbers with a 0 after each, as far as there is room",
    answers=lambda xs: [one for x in xs for one in (x, 0)][: len(xs)],
    tokens=WHOLE,
)
def insert_zeros() -> SOp:
    """Even positions fetch from half their distance."""
    half = rasp.Map(lambda i: i // 2, indices).named("half")
    there = token_at(half, 0).named("there")
    return rasp.SequenceMap(lambda x, i: 0 if i % 2 else x, there, indices).named("insert_zeros")


@task(
    NUMERALS,
    6,
    shown=(3, 1, 4),
    tags="positions numbers",
    says="the last number at the first place, 0 at the others",
    answers=lambda xs: [xs[-1]] + [0] * (len(xs) - 1),
    tokens=WHOLE,
)
def last_to_front() -> SOp:
    """A head fetches the last number."""
    last = token_at((length - 1).named("end"), 0).named("last")
    return rasp.SequenceMap(lambda x, i: 0 if i else x, last, indices).named("last_to_front")


@task(
    "abcd",
    6,
    shown="abcad",
    tags="positions",
    says="neighbours exchanged in pairs, the first token left out; a last token without a partner stays",
    answers=lambda xs: xs[:1] + [x for i in range(1, len(xs), 2) for x in reversed(xs[i : i + 2])],
)
def swap_inner_pairs() -> SOp:
    """Each position fetches from its partner."""
    partner = rasp.Map(lambda i: i + 1 if i % 2 else max(i - 1, 0), indices).named("partner")
    source = rasp.SequenceMap(lambda p, i: (p, i), partner, indices).named("both")
    inside = rasp.SequenceMap(lambda both, n: both[0] if both[0] < n else both[1], source, length).named("source")
    return token_at(inside).named("swap_inner_pairs")


@task(
    (1, 2, 3, 4),
    5,
    shown=(3, 1, 4, 1),
    tags="ordering ranks numbers",
    says="how many numbers of the input are smaller than this one",
    answers=at_each(lambda xs, i: sorted(xs).index(xs[i])),
    tokens=NUMBERS,
)
def count_smaller() -> SOp:
    """One head."""
    return count(tokens, tokens, Comparison.LT).named("count_smaller")


@task(
    NUMERALS,
    6,
    shown=(2, 4, 0),
    tags="counting numbers",
    says="whether all numbers of the input are even",
    answers=lambda xs: [not any(x % 2 for x in xs)] * len(xs),
    tokens=COUNTABLE,
)
def all_even() -> SOp:
    """Counts the odd ones."""
    odd = rasp.Map(lambda x: x % 2 == 1, tokens).named("odd")
    return (count_true(odd).named("odd_ones") == 0).named("all_even")


@task(
    (1, 2, 3, 4),
    5,
    shown=(1, 2, 4),
    tags="positions sorting numbers",
    says="the input backwards if its numbers never decrease, otherwise as it is",
    answers=lambda xs: xs[::-1] if xs == sorted(xs) else xs,
    tokens=NUMBERS,
)
def reverse_if_sorted(vocab: Sequence[Any]) -> SOp:
    """Counts the places where the numbers fall; the count decides where to fetch from."""
    falls = rasp.SequenceMap(lambda x, y: x > y, before(tokens, 1, min(vocab)), tokens).named("falls")
    number = count_true(falls).named("number")
    mirrored = rasp.SequenceMap(lambda i, n: n - 1 - i, indices, length).named("mirrored")
    turned = rasp.SequenceMap(lambda place, n: -1 if n else place, mirrored, number).named("turned")
    source = rasp.SequenceMap(lambda place, i: i if place < 0 else place, turned, indices).named("source")
    return token_at(source, 0).named("reverse_if_sorted")
