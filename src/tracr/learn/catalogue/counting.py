"""Puzzles about counting: how many positions are selected, and which share of them."""

from __future__ import annotations

from typing import Any

from tracr.learn.puzzle import Puzzle

__all__ = ["PUZZLES"]


def _count(xs: tuple[Any, ...]) -> list[Any]:
    total = 0
    for x in xs:
        if x == "a":
            total += 1
    return [total] * len(xs)


def _share(xs: tuple[Any, ...]) -> list[Any]:
    found, answers = 0, []
    for seen, x in enumerate(xs, start=1):
        found += x == "a"
        answers.append(found / seen)
    return answers


def _seen(xs: tuple[Any, ...]) -> list[Any]:
    known: set[Any] = set()
    answers = []
    for x in xs:
        answers.append(x in known)
        known.add(x)
    return answers


def _histogram(xs: tuple[Any, ...]) -> list[Any]:
    return [xs.count(x) for x in xs]


def _parity(xs: tuple[Any, ...]) -> list[Any]:
    odd, answers = 0, []
    for x in xs:
        odd ^= x == "1"
        answers.append(odd)
    return answers


def _palindrome(xs: tuple[Any, ...]) -> list[Any]:
    return [xs == xs[::-1]] * len(xs)


PUZZLES = (
    Puzzle(
        number=5,
        id="count",
        title="Roll call",
        stars=1,
        statement='Every position gives the number of "a" in the whole input.',
        vocab=tuple("abc"),
        max_len=6,
        shown=("abca", "bc"),
        answers=_count,
        hints=(
            "selector_width(selector) counts the selected positions.",
            'Select the positions that hold "a". It does not matter who asks.',
            'select(tokens, "a", ==) marks every "a" in each row.',
        ),
        par=1,
        solution="""\
# Every position selects all "a" and counts them.
set example "abca"

every_a = select(tokens, "a", ==);
answer = selector_width(every_a);
""",
    ),
    Puzzle(
        number=6,
        id="share",
        title="Share so far",
        stars=2,
        statement='Each position gives the share of "a" among the tokens up to and including itself: 0.5 means '
        "that half of them are.",
        vocab=tuple("abc"),
        max_len=6,
        shown=("abca", "ba"),
        answers=_share,
        hints=(
            "If several numbers are selected, aggregate gives their mean. Which numbers have the share as their mean?",
            'indicator(tokens == "a") is 1 at each "a" and 0 elsewhere: the mean of these numbers is the share.',
            "Take the mean over the positions so far: select(indices, indices, <=).",
        ),
        par=1,
        solution="""\
# The share is a mean of ones and zeros, over the positions so far.
set example "abca"

so_far = select(indices, indices, <=);
answer = aggregate(so_far, indicator(tokens == "a"));
""",
    ),
    Puzzle(
        number=7,
        id="seen",
        title="Seen before",
        stars=2,
        statement="Each position gives True if its token occurs at an earlier position, else False.",
        vocab=tuple("abc"),
        max_len=6,
        shown=("abcba", "aa"),
        answers=_seen,
        hints=(
            "Two conditions for the position to look at: it holds the same token, and it is earlier.",
            "Selectors are combined with and: select(...) and select(...).",
            "has_focus(selector) is True where at least one position is selected.",
        ),
        par=1,
        solution="""\
# A selector for "the same token", one for "earlier", and the question whether both hold somewhere.
set example "abcba"

same = select(tokens, tokens, ==);
earlier = select(indices, indices, <);
answer = has_focus(same and earlier);
""",
    ),
    Puzzle(
        number=8,
        id="histogram",
        title="Histogram",
        stars=2,
        statement="Each position gives the number of times that its token occurs in the input.",
        vocab=tuple("abc"),
        max_len=6,
        shown=("abcaa", "bb"),
        answers=_histogram,
        hints=(
            "It is a roll call in which each position counts its own token.",
            "Both sides of select can be tokens.",
            "selector_width(select(tokens, tokens, ==)).",
        ),
        par=1,
        solution="""\
# Each position selects the positions with its own token, itself included, and counts them.
set example "abcaa"

same = select(tokens, tokens, ==);
answer = selector_width(same);
""",
    ),
    Puzzle(
        number=9,
        id="parity",
        title="Odd or even",
        stars=2,
        statement='Each position gives 1 if the number of "1" up to and including itself is odd, else 0.',
        vocab=tuple("01"),
        max_len=8,
        shown=("10110", "00"),
        answers=_parity,
        hints=(
            "First count the ones so far, then find whether that number is odd.",
            'Count with selector_width; "1" and "so far" are two selectors.',
            "x % 2 is 1 for odd numbers and 0 for even ones.",
        ),
        par=1,
        solution="""\
# Count the ones so far; the remainder of the division by 2 says whether that is odd.
set example "10110"

ones = select(tokens, "1", ==) and select(indices, indices, <=);
answer = selector_width(ones) % 2;
""",
    ),
    Puzzle(
        number=10,
        id="palindrome",
        title="Palindrome",
        stars=3,
        statement="Every position gives True if the input reads the same backwards, else False.",
        vocab=tuple("abc"),
        max_len=6,
        shown=("abcba", "ab"),
        answers=_palindrome,
        hints=(
            "First let every position find out whether it agrees with its mirror image (puzzle 3).",
            "The input is a palindrome if no position disagrees with its mirror image.",
            "If agrees is that s-op of True and False: not has_focus(select(agrees, False, ==)).",
        ),
        par=3,
        solution="""\
# Compare each token with its mirror image, then look for a position that disagrees.
set example "abcba"

mirror = aggregate(select(indices, length - 1 - indices, ==), tokens);
disagrees = select(mirror == tokens, False, ==);
answer = not has_focus(disagrees);
""",
    ),
)
