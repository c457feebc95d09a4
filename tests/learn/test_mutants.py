"""Solutions with a few words changed: never a crash, and every verdict is true."""

from __future__ import annotations

import json
import random
import re
from collections import Counter

import pytest

from tests.learn.brute_force import last_sop, smallest, wrong_inputs
from tests.tiers import usual
from tracr import learn
from tracr.errors import TracrError

KINDS = {
    "string": re.compile(r'"[^"\n]*"'),
    "comparison": re.compile(r"==|!=|<=|>=|<|>"),
    "number": re.compile(r"\d+"),
    "word": re.compile(r"[a-z_]+|True|False"),
    "other": re.compile(r"\s+|\S"),
}
WORDS = re.compile("|".join(f"(?P<{kind}>{pattern.pattern})" for kind, pattern in KINDS.items()))


def words_of(solution: str) -> list[tuple[str, str]]:
    """The words of a solution with their kinds; without its first two lines, the explanation and the example."""
    code = "".join(solution.splitlines(keepends=True)[2:])
    return [(str(match.lastgroup), match[0]) for match in WORDS.finditer(code)]


POOL = [word for puzzle in learn.puzzles() for word in words_of(puzzle.solution)]


def mutant(solution: str, rng: random.Random) -> str:
    """A solution in which one or two words are replaced by others of their kind, from itself if it has any."""
    words = words_of(solution)
    places = [place for place, (kind, _) in enumerate(words) if kind != "other"]
    for place in rng.sample(places, rng.randrange(1, 3)):
        own, all_ = (
            [one for one in pool if one[0] == words[place][0] and one != words[place]] for pool in (words, POOL)
        )
        words[place] = rng.choice(own or all_)
    return "".join(word for _, word in words)


def outcome(puzzle: learn.Puzzle, text: str) -> str:
    """What became of a mutant; the claims of its verdict are checked."""
    refusal = ""
    try:
        verdict = puzzle.check(text)
    except TracrError as error:
        refusal = str(error)
    if refusal:
        assert re.search(r"^<rasp>:\d+:\d+: |\n  hint: ", refusal), text
        return "refused"
    assert json.dumps(verdict.as_json(), allow_nan=False)
    assert verdict._repr_html_()
    if "the time is up" in verdict.message:
        return "not finished"
    wrong = verdict.counterexample
    if wrong is not None:
        assert wrong.input == smallest(puzzle, wrong_inputs(puzzle, last_sop(text), len(wrong.input))), text
        return "wrong"
    assert wrong_inputs(puzzle, last_sop(text), puzzle.max_len) == [], text
    return "solved" if verdict.solved else "not compiled"


@pytest.mark.parametrize("count", [40, pytest.param(usual(500, long=1_500), marks=pytest.mark.slow)])
def test_changed_solutions_get_true_verdicts(count: int) -> None:
    rng, outcomes = random.Random(count), Counter[str]()
    for number in range(count):
        puzzle = learn.puzzles()[number % len(learn.puzzles())]
        outcomes[outcome(puzzle, mutant(puzzle.solution, rng))] += 1
    assert outcomes["wrong"] > count / 8, outcomes
    assert outcomes["refused"] > count / 10, outcomes
    assert outcomes["solved"], outcomes
