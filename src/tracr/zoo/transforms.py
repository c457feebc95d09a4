"""Rewriting: ciphers, local rules, cellular automata, binary numbers, removing and masking tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracr.rasp import rasp
from tracr.rasp.programs.conditions import BITS, NUMBERS
from tracr.rasp.rasp import Comparison, SOp
from tracr.values import Value
from tracr.zoo.entry import at_each, task
from tracr.zoo.pieces import MISSING, before, count, earlier, fetch, same, so_far

tokens, indices, length = rasp.tokens, rasp.indices, rasp.length


def _shifted(vocab: Sequence[Value], token: Any, by: int) -> Any:
    letters = list(vocab)
    return letters[(letters.index(token) + by) % len(letters)]


@task(
    "abcde",
    6,
    shown="abcde",
    tags="transforms ciphers classic",
    says="Caesar's cipher: the token that comes next in the vocabulary, after the last the first",
    answers=lambda xs, vocab: [_shifted(vocab, x, 1) for x in xs],
)
def caesar(vocab: Sequence[Value], max_seq_len: int) -> SOp:
    """A table; no attention at all."""
    following = dict(zip(vocab, [*vocab[1:], *vocab[:1]], strict=True))
    return rasp.Map(lambda token: following[token], tokens).named("caesar")


@task(
    "abcd",
    6,
    shown="aaaa",
    tags="transforms ciphers",
    says="each token moved on in the vocabulary by its position",
    answers=lambda xs, vocab: [_shifted(vocab, x, i) for i, x in enumerate(xs)],
)
def progressive_cipher(vocab: Sequence[Value], max_seq_len: int) -> SOp:
    """A table of tokens and positions."""
    number = {token: n for n, token in enumerate(vocab)}
    return rasp.SequenceMap(lambda token, i: vocab[(number[token] + i) % len(vocab)], tokens, indices).named(
        "progressive_cipher"
    )


@task(
    "abc",
    6,
    shown="abca",
    tags="transforms ciphers",
    says="each token moved on in the vocabulary by the number of tokens that equal it",
    answers=lambda xs, vocab: [_shifted(vocab, x, xs.count(x)) for x in xs],
)
def frequency_cipher(vocab: Sequence[Value], max_seq_len: int) -> SOp:
    """A histogram as the key of a cipher."""
    number = {token: n for n, token in enumerate(vocab)}
    hist = count(tokens, tokens).named("hist")
    return rasp.SequenceMap(lambda token, n: vocab[(number[token] + n) % len(vocab)], tokens, hist).named(
        "frequency_cipher"
    )


BEATS = {("r", "s"), ("s", "p"), ("p", "r")}


@task(
    "rps",
    6,
    shown="rpsr",
    tags="transforms",
    says="rock, paper, scissors: whether this token wins (1), loses (-1) or draws (0) against the one before",
    answers=at_each(lambda xs, i: 0 if i == 0 else ((xs[i], xs[i - 1]) in BEATS) - ((xs[i - 1], xs[i]) in BEATS)),
    causal=True,
)
def rock_paper_scissors() -> SOp:
    """A head and a table."""
    order = {"r": 0, "p": 1, "s": 2}

    def result(mine: str, other: str) -> int:
        return (order[mine] - order[other] + 1) % 3 - 1 if other in order else 0

    return rasp.SequenceMap(result, tokens, before(tokens)).named("rock_paper_scissors")


@task(
    "abc",
    6,
    shown="cabab",
    tags="transforms",
    says="the input with 'x' in place of each 'b' that follows an 'a'",
    answers=lambda xs: list("".join(xs).replace("ab", "ax")),
    causal=True,
)
def rewrite_ab() -> SOp:
    """A rule that looks one token back."""
    return rasp.SequenceMap(lambda last, x: "x" if (last, x) == ("a", "b") else x, before(tokens), tokens).named(
        "rewrite_ab"
    )


@task(
    "ab_",
    6,
    shown="ab_ba",
    tags="transforms language",
    says="the first letter of each word as a capital letter; words end at an underscore",
    answers=lambda xs: list("_".join(word[:1].upper() + word[1:] for word in "".join(xs).split("_"))),
    causal=True,
)
def capitalise() -> SOp:
    """A letter after an underscore, or at the start."""
    return rasp.SequenceMap(lambda last, x: x.upper() if last == "_" else x, before(tokens, 1, "_"), tokens).named(
        "capitalise"
    )


@task(
    "abc",
    6,
    shown="abacb",
    tags="transforms repeats",
    says="the input with '-' in place of tokens that have occurred before",
    answers=at_each(lambda xs, i: MISSING if xs[i] in xs[:i] else xs[i]),
    causal=True,
)
def mask_repeats() -> SOp:
    """Counts, then keeps first occurrences."""
    occurrence = count(tokens, tokens).named("occurrence")
    return rasp.SequenceMap(lambda x, n: x if n == 1 else MISSING, tokens, occurrence).named("mask_repeats")


@task(
    "abc",
    6,
    shown="abacb",
    tags="transforms repeats",
    says="the different tokens in the order in which they first occur, then '-'",
    answers=lambda xs: [*dict.fromkeys(xs), *[MISSING] * (len(xs) - len({*xs}))],
)
def distinct_tokens() -> SOp:
    """Numbers the first occurrences, and moves them to the left."""
    seen = rasp.SelectorWidth((same(tokens) & earlier()).named("same_earlier")).named("seen")
    first = rasp.Select(seen, 0, Comparison.EQ).named("first")
    number = rasp.SelectorWidth((first & so_far()).named("first_so_far")).named("number")
    target = rasp.SequenceMap(lambda n, again: -1 if again else n - 1, number, seen).named("target")
    return fetch(target, indices, tokens).named("distinct_tokens")


@task(
    "ab_",
    6,
    shown="a__b_a",
    tags="transforms",
    says="the tokens other than the underscore, moved to the left; underscores after them",
    answers=lambda xs: sorted(xs, key=lambda x: x == "_"),
)
def remove_gaps() -> SOp:
    """Each letter moves by the number of letters before it."""
    letter = rasp.Select(tokens, "_", Comparison.NEQ).named("is_letter")
    number = rasp.SelectorWidth((letter & so_far()).named("letters_so_far")).named("number")
    target = rasp.SequenceMap(lambda n, x: -1 if x == "_" else n - 1, number, tokens).named("target")
    return fetch(target, indices, tokens, "_").named("remove_gaps")


def _cells(xs: list[int], rule: int) -> list[int]:
    padded = [0, *xs, 0]
    return [rule >> (4 * padded[i] + 2 * padded[i + 1] + padded[i + 2]) & 1 for i in range(len(xs))]


@task(
    (0, 1),
    7,
    shown=(0, 0, 1, 0, 0),
    tags="transforms automata classic",
    says="one step of the cellular automaton rule 110, with zeros outside",
    answers=lambda xs: _cells(xs, 110),
    tokens=BITS,
)
def rule_110() -> SOp:
    """Two heads fetch the neighbours."""
    left, right = before(tokens, 1, 0).named("left"), before(tokens, -1, 0).named("right")
    centre_right = rasp.SequenceMap(lambda x, y: 2 * x + y, tokens, right).named("centre_right")
    return rasp.SequenceMap(lambda n, x: 110 >> (4 * x + n) & 1, centre_right, left).named("rule_110")


@task(
    (0, 1),
    7,
    shown=(0, 0, 1, 0, 0),
    tags="transforms automata",
    says="two steps of the cellular automaton rule 90, with zeros outside",
    answers=lambda xs: _cells(_cells(xs, 90), 90),
    tokens=BITS,
)
def rule_90_twice() -> SOp:
    """The exclusive or of the neighbours, twice."""

    def step(cells: SOp) -> SOp:
        return rasp.SequenceMap(lambda x, y: x ^ y, before(cells, 1, 0), before(cells, -1, 0))

    return step(step(tokens).named("after_one_step")).named("rule_90_twice")


@task(
    (0, 1),
    6,
    shown=(1, 1, 0, 1),
    tags="transforms binary",
    says="the binary number plus one, lowest bit first; a carry beyond the end is lost",
    answers=lambda xs: [(sum(x << i for i, x in enumerate(xs)) + 1) >> i & 1 for i in range(len(xs))],
    tokens=BITS,
    causal=True,
)
def increment() -> SOp:
    """A bit changes if no 0 is before it."""
    zeros = count(tokens, 0).named("zeros")
    return rasp.SequenceMap(lambda x, n: 1 - x if n <= 1 - x else x, tokens, zeros).named("increment")


@task(
    (0, 1),
    6,
    shown=(1, 1, 0, 1),
    tags="transforms binary",
    says="the Gray code of the bits: each bit exclusive or the one before it",
    answers=lambda xs: [x ^ y for x, y in zip(xs, [0, *xs], strict=False)],
    tokens=BITS,
    causal=True,
)
def gray_code() -> SOp:
    """A head and a table."""
    return rasp.SequenceMap(lambda x, y: x ^ y, tokens, before(tokens, 1, 0)).named("gray_code")


@task(
    (1, 2, 3, 4),
    6,
    shown=(3, 1, 2, 4, 1),
    tags="transforms sorting",
    says="the input with each pair of positions 0 and 1, 2 and 3 and so on in increasing order",
    answers=lambda xs: [x for i in range(0, len(xs), 2) for x in sorted(xs[i : i + 2])],
    tokens=NUMBERS,
)
def sort_pairs() -> SOp:
    """Each position fetches its partner, and keeps the smaller or the larger of the two."""
    partner_place = rasp.Map(lambda i: i ^ 1, indices).named("partner_place")
    other = rasp.Aggregate(rasp.Select(indices, partner_place, Comparison.EQ), tokens, default=99).named("partner")
    smaller = rasp.SequenceMap(min, tokens, other).named("smaller")
    larger = rasp.SequenceMap(lambda x, y: x if y == 99 else max(x, y), tokens, other).named("larger")
    both = rasp.SequenceMap(lambda x, y: (x, y), smaller, larger).named("both")
    return rasp.SequenceMap(lambda xy, i: xy[i % 2], both, indices).named("sort_pairs")


@task(
    "abc",
    6,
    shown="abacb",
    tags="transforms comparison",
    says="whether the tokens on both sides of this one are equal",
    answers=at_each(lambda xs, i: 0 < i < len(xs) - 1 and xs[i - 1] == xs[i + 1]),
)
def is_sandwiched() -> SOp:
    """Two heads and a comparison; missing neighbours differ."""
    left, right = before(tokens, 1, "start").named("left"), before(tokens, -1, "end").named("right")
    return rasp.SequenceMap(lambda x, y: x == y, left, right).named("is_sandwiched")
