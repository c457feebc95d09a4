"""Puzzles about order: places, ranks and frequencies."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tracr.learn.puzzle import Puzzle

__all__ = ["PUZZLES"]


def _squeezed(xs: tuple[Any, ...]) -> list[Any]:
    kept = [x for x in xs if x != "b"]
    return kept + ["-"] * (len(xs) - len(kept))


def _largest(xs: tuple[Any, ...]) -> list[Any]:
    best, answers = 0, []
    for x in xs:
        best = max(best, int(x))
        answers.append(best)
    return answers


def _sorted(xs: tuple[Any, ...]) -> list[Any]:
    return sorted(xs)


def _as_frequent(xs: tuple[Any, ...]) -> list[Any]:
    often = Counter(xs)
    return [sum(times == often[x] for times in often.values()) for x in xs]


def _winner(xs: tuple[Any, ...]) -> list[Any]:
    often = Counter(xs)
    best = max(often.values())
    return [next(x for x in xs if often[x] == best)] * len(xs)


PUZZLES = (
    Puzzle(
        number=11,
        id="largest",
        title="High score",
        stars=3,
        statement="The tokens are digits. Each position gives, as a number, the largest digit up to and including "
        "itself.",
        vocab=tuple("0123"),
        max_len=5,
        shown=("10213", "20"),
        answers=_largest,
        hints=(
            "Transformers cannot loop over the positions, but this one can ask three questions: was there a 1 or "
            "more? A 2 or more? A 3?",
            'has_focus(so_far and select(tokens, "2", >=)) answers one of them; digits are ordered as strings too.',
            "The largest digit is the number of questions answered with yes: add the indicators of all three.",
        ),
        par=1,
        solution="""\
# The largest digit is the number of steps 1, 2, 3 that some digit so far has reached: three heads side by side.
set example "10213"

so_far = select(indices, indices, <=);
def reached(step) { return indicator(has_focus(so_far and select(tokens, step, >=))); }
answer = reached("1") + reached("2") + reached("3");
""",
    ),
    Puzzle(
        number=12,
        id="squeeze",
        title="Squeeze",
        stars=3,
        statement='Take out every "b" and move the other tokens together to the left. Fill the end with "-".',
        vocab=tuple("abc"),
        max_len=6,
        shown=("abcba", "bba"),
        answers=_squeezed,
        hints=(
            "To which position does each kept token have to go? Then let each position look for the token that "
            "goes there.",
            'A kept token goes to the position whose index is the number of kept tokens before it: count "not b" '
            "and earlier.",
            'Look for the place that equals your own index, among the tokens that are not "b": select(place, '
            'indices, ==) and select(tokens, "b", !=).',
        ),
        par=2,
        solution="""\
# Each kept token knows its new place: the number of kept tokens before it. Each position finds the token for its place.
set example "abcba"

kept = select(tokens, "b", !=);
place = selector_width(kept and select(indices, indices, <));
answer = aggregate(select(place, indices, ==) and kept, tokens, "-");
""",
    ),
    Puzzle(
        number=13,
        id="sort",
        title="Sort",
        stars=3,
        statement="Give the digits in ascending order. Digits may occur several times. Solve it without the "
        "library's sort, if you like.",
        vocab=tuple("0123"),
        max_len=5,
        shown=("3120", "212"),
        answers=_sorted,
        hints=(
            "As in puzzle 12, each token has to know its new place.",
            "The place is the number of smaller tokens: selector_width(select(tokens, tokens, <)). Equal tokens "
            "then get the same place; try 212.",
            "Break ties by position: count the smaller tokens, or the equal ones that are earlier. select(...) or "
            "(select(...) and select(...)).",
        ),
        par=2,
        solution="""\
# The place of a token is the number of smaller ones, and of equal ones before it: no two tokens share a place.
set example "3120"

smaller = select(tokens, tokens, <);
equal_before = select(tokens, tokens, ==) and select(indices, indices, <);
place = selector_width(smaller or equal_before);
answer = aggregate(select(place, indices, ==), tokens);
""",
    ),
    Puzzle(
        number=14,
        id="as_frequent",
        title="Double histogram",
        stars=3,
        statement="Each position gives the number of different tokens that occur exactly as often as its own "
        "token, its own token included.",
        vocab=tuple("abc"),
        max_len=6,
        shown=("abbc", "aab"),
        answers=_as_frequent,
        hints=(
            "Start with the histogram of puzzle 8. Then compare the counts of different positions.",
            "selector_width(select(how_often, how_often, ==)) counts positions, and a token that occurs twice is "
            "counted twice.",
            "Count each token only at its first position: the one that was not seen before (puzzle 7).",
        ),
        par=2,
        solution="""\
# A histogram, then a histogram of its counts in which each token takes part once: at its first position.
set example "abbc"

same = select(tokens, tokens, ==);
how_often = selector_width(same);
is_first = not has_focus(same and select(indices, indices, <));
answer = selector_width(select(how_often, how_often, ==) and select(is_first, True, ==));
""",
    ),
    Puzzle(
        number=15,
        id="winner",
        title="Election",
        stars=3,
        statement="Every position gives the token that occurs most often. If several do, the one among them that "
        "occurs first wins.",
        vocab=tuple("abc"),
        max_len=6,
        shown=("abcbc", "ab"),
        answers=_winner,
        hints=(
            "Three steps: how often each token occurs, a rank for each position, and the token with the best rank.",
            "The rank is the number of positions that are better: they have a larger count, or the same count and "
            "are earlier.",
            "The winner is at the only position of rank 0: aggregate(select(rank, 0, ==), tokens).",
        ),
        par=3,
        solution="""\
# Count, rank by count and then by position, and let everybody read the token of rank 0.
set example "abcbc"

how_often = selector_width(select(tokens, tokens, ==));
more = select(how_often, how_often, >);
as_many_before = select(how_often, how_often, ==) and select(indices, indices, <);
rank = selector_width(more or as_many_before);
answer = aggregate(select(rank, 0, ==), tokens);
""",
    ),
)
