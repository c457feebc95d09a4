"""Copying by position: rotations, swaps, mirrors, pointers."""

from __future__ import annotations

from typing import Any

from tracr.rasp import rasp
from tracr.rasp.programs.conditions import COUNTABLE
from tracr.rasp.rasp import SOp
from tracr.zoo.entry import at_each, everywhere, task
from tracr.zoo.pieces import MISSING, before, count_true, differ, token_at

tokens, indices, length = rasp.tokens, rasp.indices, rasp.length


@task(
    "abcd", 6, shown="abcad", tags="positions", says="the token after this one", answers=lambda xs: [*xs[1:], MISSING]
)
def copy_next() -> SOp:
    """The token one position later."""
    return before(tokens, -1).named("copy_next")


@task(
    "abcd",
    6,
    shown="abcad",
    tags="positions",
    says="the token two positions before",
    answers=lambda xs: [MISSING, MISSING, *xs][: len(xs)],
    causal=True,
)
def copy_two_back() -> SOp:
    """The token two positions before."""
    return before(tokens, 2).named("copy_two_back")


@task(
    "abcd",
    6,
    shown="bcad",
    tags="positions",
    says="the first token, at every position",
    answers=everywhere(lambda xs: xs[0]),
    causal=True,
)
def copy_first() -> SOp:
    """The first token."""
    return token_at(0).named("copy_first")


@task(
    "abcd",
    6,
    shown="bcad",
    tags="positions",
    says="the last token, at every position",
    answers=everywhere(lambda xs: xs[-1]),
)
def copy_last() -> SOp:
    """The token at the position length - 1."""
    return token_at((length - 1).named("last")).named("copy_last")


@task(
    "abcd",
    6,
    shown="abcad",
    tags="positions",
    says="the input rotated by one to the left",
    answers=lambda xs: [*xs[1:], *xs[:1]],
)
def rotate_left() -> SOp:
    """The next token; the last position gets the first one."""
    source = rasp.SequenceMap(lambda i, n: (i + 1) % n, indices, length).named("source")
    return token_at(source).named("rotate_left")


@task(
    "abcd",
    6,
    shown="abcad",
    tags="positions",
    says="the input rotated by two to the right",
    answers=at_each(lambda xs, i: xs[i - 2] if len(xs) > 1 else xs[0]),
)
def rotate_right_two() -> SOp:
    """The token two positions before, counted in a circle."""
    source = rasp.SequenceMap(lambda i, n: (i - 2) % n, indices, length).named("source")
    return token_at(source).named("rotate_right_two")


def _swapped(xs: list[Any]) -> list[Any]:
    result = list(xs)
    for i in range(0, len(xs) - 1, 2):
        result[i], result[i + 1] = xs[i + 1], xs[i]
    return result


@task(
    "abcd",
    6,
    shown="abcda",
    tags="positions",
    says="neighbours exchanged in pairs; a last token without a partner stays",
    answers=_swapped,
)
def swap_pairs() -> SOp:
    """The partner's token where there is a partner."""
    source = rasp.SequenceMap(lambda i, n: min(i ^ 1, n - 1), indices, length).named("source")
    return token_at(source).named("swap_pairs")


@task(
    "abcd",
    6,
    shown="abcdb",
    tags="positions",
    says="the input with its first and last token exchanged",
    answers=lambda xs: [xs[-1], *xs[1:-1], xs[0]] if len(xs) > 1 else list(xs),
)
def swap_ends() -> SOp:
    """The token of the other end at both ends."""
    source = rasp.SequenceMap(lambda i, n: n - 1 - i if i in (0, n - 1) else i, indices, length).named("source")
    return token_at(source).named("swap_ends")


@task(
    "abc",
    6,
    shown="abcba",
    tags="positions",
    says="the second half replaced by the mirror image of the first",
    answers=at_each(lambda xs, i: xs[i] if 2 * i < len(xs) else xs[::-1][i]),
)
def mirror_first_half() -> SOp:
    """The token at the smaller of this position and the opposite one."""
    source = rasp.SequenceMap(lambda i, n: min(i, n - 1 - i), indices, length).named("source")
    return token_at(source).named("mirror_first_half")


@task(
    "abcd",
    6,
    shown="abcd",
    tags="positions",
    says="each token twice, as far as there is room",
    answers=lambda xs: [x for x in xs for _ in range(2)][: len(xs)],
    causal=True,
)
def stutter() -> SOp:
    """The token at half the position."""
    half = rasp.Map(lambda i: i // 2, indices).named("half")
    return token_at(half).named("stutter")


@task(
    "abc",
    7,
    shown="abcacb",
    tags="positions",
    says="the tokens of even positions, then those of odd positions",
    answers=lambda xs: xs[::2] + xs[1::2],
)
def unshuffle() -> SOp:
    """Position i takes the token at 2 i, and counts the odd positions after the end."""
    source = rasp.SequenceMap(lambda i, n: 2 * i if 2 * i < n else 2 * (i - (n + 1) // 2) + 1, indices, length)
    return token_at(source.named("source")).named("unshuffle")


@task(
    "abcd",
    7,
    shown="abcda",
    tags="positions",
    says="the token in the middle of the input, at every position",
    answers=everywhere(lambda xs: xs[(len(xs) - 1) // 2]),
)
def copy_middle() -> SOp:
    """The token at the middle position, the left one of two."""
    middle = rasp.Map(lambda n: (n - 1) // 2, length).named("middle")
    return token_at(middle).named("copy_middle")


@task(
    range(5),
    5,
    shown=(2, 0, 4, 1),
    tags="positions lookup",
    says="the token at the position that this token names, -1 if there is none",
    answers=at_each(lambda xs, i: xs[xs[i]] if xs[i] < len(xs) else -1),
    tokens=COUNTABLE,
)
def follow_pointer() -> SOp:
    """One hop."""
    return token_at(tokens, -1).named("follow_pointer")


def _two_hops(xs: list[Any], i: int) -> Any:
    places = dict(enumerate(xs))
    return places.get(places.get(xs[i], -1), -1)


@task(
    range(5),
    5,
    shown=(2, 0, 4, 1, 3),
    tags="positions lookup",
    says="the token two pointers on: at the position named by the token that this token points to, -1 if there is none",
    answers=at_each(_two_hops),
    tokens=COUNTABLE,
)
def follow_two_pointers() -> SOp:
    """Two hops, one head each."""
    first = token_at(tokens, -1).named("first_hop")
    return token_at(first, -1).named("follow_two_pointers")


@task(
    "abcd",
    6,
    shown="abcdab",
    tags="positions",
    says="the token at the same place of the other half; the middle of an odd length stays",
    answers=lambda xs: xs[(len(xs) + 1) // 2 :] + xs[len(xs) // 2 : (len(xs) + 1) // 2] + xs[: len(xs) // 2],
)
def swap_halves() -> SOp:
    """Half a length on, or back."""

    def other(i: int, n: int) -> int:
        half = n // 2
        if i < half:
            return i + n - half
        return i - (n - half) if i >= n - half else i

    return token_at(rasp.SequenceMap(other, indices, length).named("source")).named("swap_halves")


def _mirrored() -> SOp:
    """The token at the opposite position."""
    opposite = rasp.SequenceMap(lambda n, i: n - 1 - i, length, indices).named("opposite")
    return token_at(opposite).named("mirrored")


@task(
    "abcd",
    6,
    shown="abcba",
    tags="positions comparison",
    says="whether the token equals the token at the opposite position",
    answers=lambda xs: [x == y for x, y in zip(xs, reversed(xs), strict=True)],
)
def equals_mirrored() -> SOp:
    """Compares with the reversed input."""
    return rasp.SequenceMap(lambda x, y: x == y, tokens, _mirrored()).named("equals_mirrored")


@task(
    "abc",
    6,
    shown="abcba",
    tags="positions comparison",
    says="how many tokens differ from the token at the opposite position",
    answers=everywhere(lambda xs: sum(x != y for x, y in zip(xs, reversed(xs), strict=True))),
)
def palindrome_errors() -> SOp:
    """Counts the positions that differ from the reversed input."""
    return count_true(differ(tokens, _mirrored())).named("palindrome_errors")


@task(
    "ab",
    6,
    shown="abba",
    tags="positions comparison",
    says="whether the input reads the same backwards",
    answers=everywhere(lambda xs: xs == xs[::-1]),
)
def is_palindrome() -> SOp:
    """Whether no position differs from the reversed input."""
    errors = count_true(differ(tokens, _mirrored())).named("errors")
    return (errors == 0).named("is_palindrome")


@task(
    "ab",
    6,
    shown="abab",
    tags="positions comparison",
    says="whether the input is one word written twice",
    answers=everywhere(lambda xs: len(xs) % 2 == 0 and xs[: len(xs) // 2] == xs[len(xs) // 2 :]),
)
def is_doubled() -> SOp:
    """Whether no position of the first half differs from the same position of the second."""
    half = rasp.Map(lambda n: n / 2, length).named("half")
    there = rasp.SequenceMap(lambda i, h: i + h if i < h else i, indices, half).named("there")
    partner = token_at(there).named("partner")  # an odd length has positions without a partner
    errors = count_true(differ(tokens, partner)).named("errors")
    return (errors == 0).named("is_doubled")
