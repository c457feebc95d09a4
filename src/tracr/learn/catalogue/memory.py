"""Puzzles in which a position depends on a chain of others: brackets, induction, carries."""

from __future__ import annotations

from typing import Any

from tracr.learn.puzzle import Puzzle

__all__ = ["PUZZLES"]

CLOSES = {")": "(", "}": "{"}


def _balance(xs: tuple[Any, ...]) -> list[Any]:
    """With a stack of open brackets; from the first mistake on, F."""
    stack: list[Any] = []
    answers: list[Any] = []
    broken = False
    for x in xs:
        if x not in CLOSES:
            stack.append(x)
        elif not stack or stack.pop() != CLOSES[x]:
            broken = True
        answers.append("F" if broken else "P" if stack else "T")
    return answers


def _induced(xs: tuple[Any, ...]) -> list[Any]:
    follower: dict[Any, Any] = {}
    answers: list[Any] = []
    for i, x in enumerate(xs):
        if i > 0:
            follower[xs[i - 1]] = x
        answers.append(follower.get(x, "-"))
    return answers


def _carries(xs: tuple[Any, ...]) -> list[Any]:
    carry, answers = 0, []
    for x in reversed(xs):
        answers.append(carry)
        carry = (int(x) + carry) // 2
    return answers[::-1]


def _is_sum(xs: tuple[Any, ...]) -> bool:
    first, plus, second = "".join(xs).partition("+")
    return bool(plus) and len(first) == len(second) > 0 and "+" not in second


def _added(xs: tuple[Any, ...]) -> list[Any]:
    first, _, second = "".join(xs).partition("+")
    total = f"{int(first, 2) + int(second, 2):b}"
    return [int(bit) for bit in total.rjust(len(xs), "0")]


PUZZLES = (
    Puzzle(
        number=16,
        id="dyck1",
        title="Balanced brackets",
        stars=4,
        statement='Each position looks at the brackets up to and including itself, and gives "T" if they are '
        'balanced, "P" if they are not but can become balanced, and "F" if they never can: some ")" had no "(" to '
        "close.",
        vocab=tuple("()"),
        max_len=8,
        shown=("(())", "())("),
        answers=_balance,
        hints=(
            "The depth is the number of ( minus the number of ) so far. When is the input balanced, and when is it "
            "broken?",
            "Broken means that the depth was negative at some position so far, even if it is 0 now: try ())(.",
            'has_focus(so_far and select(depth, 0, <)) tells broken. Then "F" if broken else ("T" if depth == 0 '
            'else "P").',
        ),
        par=2,
        solution="""\
# The mean of +1 for ( and -1 for ) has the sign of the depth, and that is all we need: no count, no rounding.
set example "(())"

so_far = select(indices, indices, <=);
mean = aggregate(so_far, 1 if tokens == "(" else -1);
broken = has_focus(so_far and select(mean, 0, <));
answer = "F" if broken else ("T" if mean == 0 else "P");
""",
    ),
    Puzzle(
        number=17,
        id="induction",
        title="Induction",
        stars=4,
        statement="Each position finds the latest earlier position that has its token, and gives the token that "
        'came after that one: what followed last time? It gives "-" if its token is new.',
        vocab=tuple("abc"),
        max_len=6,
        shown=("abcab", "aab"),
        answers=_induced,
        hints=(
            "First let each position know the token before it (puzzle 1). A position whose previous token is my "
            "token is a follower that I look for.",
            "There may be several followers up to me, and I need the latest. Number them: how many positions so "
            "far have the same previous token?",
            "My latest follower is the one whose number is the count of all followers that I see: select(number, "
            "followers, ==).",
        ),
        par=3,
        solution="""\
# Look for positions whose previous token is mine; they are numbered, and the number of the latest is their count.
set example "abcab"

so_far = select(indices, indices, <=);
before = aggregate(select(indices, indices - 1, ==), tokens, "-");
number = selector_width(select(before, before, ==) and so_far);
follows_me = select(before, tokens, ==);
followers = selector_width(follows_me and so_far);
answer = aggregate(follows_me and select(number, followers, ==), tokens, "-");
""",
    ),
    Puzzle(
        number=18,
        id="carries",
        title="Carries",
        stars=4,
        statement="Two binary numbers are written one below the other, and each token is the sum of a column: 0, 1 "
        "or 2. Each position gives the carry (0 or 1) that its column gets from the columns on its right.",
        vocab=tuple("012"),
        max_len=6,
        shown=("0112", "120"),
        answers=_carries,
        hints=(
            "A 2 always makes a carry and a 0 never does. A 1 passes on the carry that it gets.",
            "So the nearest column on the right that is not 1 decides: a carry if it is 2. How do you select the "
            "nearest?",
            "Number the columns that are not 1 from left to right. The decider has the number after the count of "
            "those up to and including yourself.",
        ),
        par=2,
        solution="""\
# The next column on the right that is not 1 decides. Numbered from the left, it is the one after those up to here.
set example "0112"

decides = select(tokens, "1", !=);
number = selector_width(decides and select(indices, indices, <=));
next = decides and select(number, number + 1, ==);
answer = aggregate(next, indicator(tokens == "2"));
""",
    ),
    Puzzle(
        number=19,
        id="addition",
        title="Long addition",
        stars=5,
        statement="The input is two binary numbers of the same length with a plus sign between them. Give the bits "
        "of their sum, as numbers, so that it ends where the input ends, with zeros before it.",
        vocab=tuple("01+"),
        max_len=9,
        shown=("11+01", "1+1"),
        answers=_added,
        hints=(
            "Align the numbers first. If plus is the index of the plus sign, the bit above position i is at i - "
            "plus - 1.",
            'Read the token above with the default "-", and put it in front of the own token: the pairs "01" and '
            '"10" pass a carry on, "11" makes one, and all others make none.',
            "Find the carries as in puzzle 18: the next pair on the right that does not pass decides. Then add the "
            "carry to the sum of the pair.",
        ),
        par=4,
        solution="""\
# Pair each bit with the one above it; pairs of different bits pass a carry on, and the next other pair decides.
set example "11+01"

plus = aggregate(select(tokens, "+", ==), indices);
above = aggregate(select(indices, indices - plus - 1, ==), tokens, "-");
pair = above + tokens;
passes = pair in ["01", "10"];

decides = select(passes, False, ==);
number = selector_width(decides and select(indices, indices, <=));
next = decides and select(number, number + 1, ==);
carry = aggregate(next, indicator(pair == "11"));
answer = (indicator(passes) + carry) % 2;
""",
        accepts=_is_sum,
        about="two numbers of the same length and one + between them",
    ),
    Puzzle(
        number=20,
        id="dyck2",
        title="Two kinds of brackets",
        stars=5,
        statement='As in puzzle 16, each position gives "T" if the brackets so far are balanced, "P" if they can '
        'become balanced, and "F" if they cannot. Now a bracket must be closed by one of its own kind: ({)} is '
        "broken.",
        vocab=tuple("(){}"),
        max_len=5,
        shown=("({})", "({)}"),
        answers=_balance,
        hints=(
            "Depth and negative depth are as in puzzle 16. New is that each closing bracket must find the bracket "
            "it closes and compare the kinds.",
            "A bracket and its partner are on the same level: the depth of an opening one, the depth + 1 of a "
            "closing one. On each level opening and closing brackets alternate.",
            "Number the brackets within their level. The partner of a closing bracket is the one on its level "
            "whose number is one less. A wrong kind anywhere so far breaks the input.",
        ),
        par=5,
        solution="""\
# Each closing bracket finds its partner: on its level, the one before it. One without a right partner breaks it all.
set example "({})"

so_far = select(indices, indices, <=);
is_close = tokens in [")", "}"];
depth = round((indices + 1) * aggregate(so_far, -1 if is_close else 1));
level = depth + indicator(is_close);
same_level = select(level, level, ==);
number = selector_width(same_level and so_far);
partner = aggregate(same_level and select(number, number - 1, ==), tokens, "-");
pair = partner + tokens;
wrong = is_close and (not (pair in ["()", "{}"]));
broken = has_focus(so_far and select(wrong, True, ==));
answer = "F" if broken else ("T" if depth == 0 else "P");
""",
    ),
)
