"""The inputs that a program gets wrong, found without `tracr.learn.checking`."""

from __future__ import annotations

import warnings
from typing import Any

import tracr
from tracr.errors import EvaluationError
from tracr.learn import Puzzle
from tracr.nearness import ANSWER, same_value
from tracr.rasp.rasp import SOp


def last_sop(text: str) -> SOp:
    """The s-op that the last statement computes, else the last one that is defined."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tracr.TracrWarning)
        module = tracr.parse("examples off\n" + text)
    return module.out if isinstance(module.out, SOp) else list(module.programs.values())[-1]


def wrong_inputs(puzzle: Puzzle, program: SOp, longest: int) -> list[tuple[Any, ...]]:
    """All inputs up to a length on which a program is wrong or fails; in no particular order."""
    found = []
    for xs in puzzle.inputs():
        if len(xs) > longest:
            break
        try:
            got = program(list(xs))
        except EvaluationError:
            found.append(xs)
            continue
        if not all(same_value(x, y, ANSWER) for x, y in zip(puzzle.answers(xs), got, strict=True)):
            found.append(xs)
    return found


def smallest(puzzle: Puzzle, inputs: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """The shortest input, and of these the first in the order of the vocabulary."""
    return min(inputs, key=lambda xs: (len(xs), [puzzle.vocab.index(token) for token in xs]))
