"""The puzzles themselves: complete, in order, with solutions that are right and reach par."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from typing import Any

import pytest

import tracr
from tests.learn.attempts import RIGHT
from tracr import learn
from tracr.errors import InputError, UnknownName
from tracr.learn.checking import LIMITS
from tracr.nearness import ANSWER, same_value
from tracr.text.layout import format_text

PUZZLES = learn.puzzles()
each = pytest.mark.parametrize("puzzle", PUZZLES, ids=lambda puzzle: puzzle.id)


def every_input(puzzle: learn.Puzzle) -> list[tuple[Any, ...]]:
    """All inputs, listed in another way than the puzzle lists them."""
    lists = [itertools.product(puzzle.vocab, repeat=length) for length in range(1, puzzle.max_len + 1)]
    return [xs for xs in itertools.chain(*lists) if puzzle.accepts is None or puzzle.accepts(xs)]


def solution_of(puzzle: learn.Puzzle) -> Any:
    return tracr.parse(puzzle.solution)["answer"]


def same(first: Any, second: Any) -> bool:
    return len(first) == len(second) and all(same_value(x, y, ANSWER) for x, y in zip(first, second, strict=True))


def test_they_grow_in_difficulty() -> None:
    """Numbered from 1, from shift right to Dyck-2, never easier than the one before."""
    assert len(PUZZLES) >= 18
    assert [puzzle.number for puzzle in PUZZLES] == list(range(1, len(PUZZLES) + 1))
    assert len({puzzle.id for puzzle in PUZZLES}) == len({puzzle.title for puzzle in PUZZLES}) == len(PUZZLES)
    assert [puzzle.stars for puzzle in PUZZLES] == sorted(puzzle.stars for puzzle in PUZZLES)
    assert {puzzle.stars for puzzle in PUZZLES} == {1, 2, 3, 4, 5}
    assert PUZZLES[0].id == "shift_right"
    assert {"induction", "addition", "dyck2"} <= {puzzle.id for puzzle in PUZZLES[-4:]}


@each
def test_texts_are_complete(puzzle: learn.Puzzle) -> None:
    """A statement, examples, three different hints, and a solution that begins with its explanation."""
    assert puzzle.statement.endswith((".", "?"))
    assert len(puzzle.examples) >= 2
    assert len(set(puzzle.hints)) == 3
    assert all(len(hint) > 10 for hint in puzzle.hints)
    assert puzzle.solution.startswith("# ")
    assert puzzle.solution.splitlines()[0].endswith(".")
    assert format_text(puzzle.solution, "solution") == puzzle.solution
    assert format_text(puzzle.starter, "starter") == puzzle.starter
    assert bool(puzzle.about) == (puzzle.accepts is not None)


@each
def test_reference_gives_the_answers_found_by_hand(puzzle: learn.Puzzle) -> None:
    for tokens, answer in RIGHT[puzzle.id]:
        assert puzzle.answer(tokens) == answer


@each
def test_solution_is_right_compiles_and_reaches_par(puzzle: learn.Puzzle) -> None:
    """On all inputs interpreter and models give the reference's answer; par is the fewest layers of the models."""
    inputs = every_input(puzzle)
    assert list(puzzle.inputs()) == inputs
    assert 100 <= len(inputs) <= 2_000
    program = solution_of(puzzle)
    assert all(same(program(list(xs)), puzzle.answers(xs)) for xs in inputs)
    layers = []
    for level in (1, 2):
        model = tracr.compile(program, puzzle.vocab, puzzle.max_len, level=level, **LIMITS)
        layers.append(model.n_layers)
        answers = model([list(xs) for xs in inputs])
        assert all(same(got, puzzle.answers(xs)) for got, xs in zip(answers, inputs, strict=True))
    assert min(layers) == puzzle.par


@each
def test_starter_runs_and_solves_nothing(puzzle: learn.Puzzle) -> None:
    verdict = puzzle.check(puzzle.starter)
    assert not verdict.solved
    assert verdict.counterexample is not None


@each
def test_json_has_what_the_playground_shows(puzzle: learn.Puzzle) -> None:
    """And not the solution."""
    data = json.loads(json.dumps(puzzle.as_json()))
    assert {"id", "number", "title", "statement", "vocab", "max_len", "examples", "hints", "par", "starter"} <= set(
        data
    )
    assert data["examples"] == [{"input": x, "output": y} for x, y in puzzle.examples]
    assert puzzle.solution not in json.dumps(data)
    assert puzzle.title in puzzle._repr_html_()
    assert puzzle.statement in str(puzzle)


def test_puzzles_are_found_by_number_and_name() -> None:
    for puzzle in PUZZLES:
        assert learn.puzzle(puzzle.number) is learn.puzzle(puzzle.id) is learn.puzzle(str(puzzle.number)) is puzzle


@pytest.mark.parametrize("which", [0, 99, True, None, "revers", "", 1.0])
def test_unknown_puzzles_are_refused(which: Any) -> None:
    with pytest.raises(UnknownName, match="there is no puzzle"):
        learn.puzzle(which)


def test_misspelt_names_are_corrected() -> None:
    with pytest.raises(UnknownName, match="did you mean reverse"):
        learn.puzzle("revers")


@pytest.mark.parametrize(("which", "tokens"), [(1, ""), (1, "abcabca"), (1, "xyz"), ("addition", "1+01"), (1, [1])])
def test_answers_only_to_inputs_of_the_puzzle(which: Any, tokens: Any) -> None:
    with pytest.raises(InputError, match="is not an input of"):
        learn.puzzle(which).answer(tokens)


def test_import_tracr_does_not_load_the_puzzles() -> None:
    code = "import sys, tracr; print([name for name in sys.modules if name.startswith('tracr.learn')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
