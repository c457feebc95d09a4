"""Puzzles about positions: which one to look at."""

from __future__ import annotations

from typing import Any

from tracr.learn.puzzle import Puzzle

__all__ = ["PUZZLES"]


def _shifted(xs: tuple[Any, ...]) -> list[Any]:
    return ["-", *xs[:-1]]


def _first(xs: tuple[Any, ...]) -> list[Any]:
    return [xs[0] for _ in xs]


def _reversed(xs: tuple[Any, ...]) -> list[Any]:
    return list(xs[::-1])


def _rotated(xs: tuple[Any, ...]) -> list[Any]:
    return [*xs[1:], xs[0]]


PUZZLES = (
    Puzzle(
        number=1,
        id="shift_right",
        title="Shift right",
        stars=1,
        statement="Move every token one position to the right: each position gives the token on its left. The "
        'first position has nothing on its left and gives "-".',
        vocab=tuple("abc"),
        max_len=6,
        shown=("abcab", "c"),
        answers=_shifted,
        hints=(
            "Two steps: a selector says which position to look at, and aggregate reads the token there.",
            "select(indices, indices - 1, ==) marks, for each position, the position on its left.",
            "At position 0 nothing is selected. The third argument of aggregate is the value for that case: "
            'aggregate(selector, tokens, "-").',
        ),
        par=1,
        solution="""\
# Each position looks at the one before it; the default fills the first position.
set example "abcab"

before = select(indices, indices - 1, ==);
answer = aggregate(before, tokens, "-");
""",
    ),
    Puzzle(
        number=2,
        id="first",
        title="Follow the leader",
        stars=1,
        statement="Every position gives the first token of the input.",
        vocab=tuple("abc"),
        max_len=6,
        shown=("bcab", "a"),
        answers=_first,
        hints=(
            "Every position has to look at the same position: the first one.",
            "The first position is the one whose index is 0. One side of select may be a constant.",
            "select(indices, 0, ==) marks position 0 in every row; read the tokens through it.",
        ),
        par=1,
        solution="""\
# Every position looks at position 0.
set example "bcab"

first = select(indices, 0, ==);
answer = aggregate(first, tokens);
""",
    ),
    Puzzle(
        number=3,
        id="reverse",
        title="Mirror",
        stars=1,
        statement="Give the input backwards.",
        vocab=tuple("abc"),
        max_len=6,
        shown=("abcc", "ba"),
        answers=_reversed,
        hints=(
            "Which position does position 0 have to look at? And position 1? The number of tokens is length.",
            "Position i looks at position length - 1 - i.",
            "select(indices, length - 1 - indices, ==) is the selector. Keys come first, queries second.",
        ),
        par=2,
        solution="""\
# Position i looks at position length - 1 - i. The length is counted by a head of its own, so there are two layers.
set example "abcc"

opposite = length - 1 - indices;
answer = aggregate(select(indices, opposite, ==), tokens);
""",
    ),
    Puzzle(
        number=4,
        id="rotate",
        title="Carousel",
        stars=1,
        statement="Rotate the input to the left: each position gives the token on its right, and the last position "
        "gives the first token.",
        vocab=tuple("abc"),
        max_len=6,
        shown=("abcc", "ba"),
        answers=_rotated,
        hints=(
            "All positions but the last look at indices + 1. What does the last one look at?",
            "(indices + 1) % length is 0 at the last position. That solves it, but the length costs a layer.",
            'For par do without length: read the token on the right with the default "-", read the first token '
            'too, and choose with if ... else where you got "-".',
        ),
        par=1,
        solution="""\
# Two heads side by side: the token on the right, and the first token for the position that has none on its right.
set example "abcc"

right = aggregate(select(indices, indices + 1, ==), tokens, "-");
first = aggregate(select(indices, 0, ==), tokens);
answer = first if right == "-" else right;
""",
    ),
)
