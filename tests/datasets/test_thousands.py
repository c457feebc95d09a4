"""Thousands of random programs, most of them at one level: no model is wrong, and every refusal says what to do."""

from __future__ import annotations

import os
import warnings
from collections import Counter

import pytest

from tests.strategies import VOCABULARIES
from tests.tiers import some_levels, usual
from tracr.datasets import Controls
from tracr.errors import CompileError, TracrError
from tracr.model.compiling import compile_model
from tracr.workers import over_processes

PROGRAMS = int(os.environ.get("TRACR_PROGRAMS", usual(4000, long=8000)))
BLOCK = 50
BUDGET = 400  # inputs each model is compared on


def controls_of(number: int) -> Controls:
    """Programs of all sorts, every fourth as `tracr sample` draws them unless told otherwise."""
    if number % 4 == 2:
        return Controls()
    return Controls(
        VOCABULARIES[number % len(VOCABULARIES)],
        1 + number % 6,
        causal=number % 3 == 0,
        max_ops=1 + number % 8,
        composite=number % 4 == 0,
    )


def check(start: int) -> list[str]:
    """What became of a block of programs; anything but "compiled" and "refused" is a fault."""
    found = []
    for number in range(start, start + BLOCK):
        controls = controls_of(number)
        for level in some_levels(number):
            try:
                found.append(outcome(number, controls, level))
            except Exception as error:
                found.append(f"program {number} at level {level}: {type(error).__name__}: {error}")
    return found


def outcome(number: int, controls: Controls, level: int) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = compile_model({"output": controls.program((0, number))}, controls.options(level))
        except TracrError as error:
            actionable = isinstance(error, CompileError) and error.diagnostic.hint
            return "refused" if actionable else f"program {number} at level {level} is refused without advice: {error}"
    found = model.verify(BUDGET)
    return "compiled" if found else f"program {number} at level {level} is wrong: {found}"


@pytest.mark.slow
def test_thousands_of_programs() -> None:
    """0 wrong, 0 crashes, few refused."""
    counts: Counter[str] = Counter()
    with over_processes(2) as workers:
        for found in workers.map(check, range(0, PROGRAMS, BLOCK)):
            counts.update(found)
    faults = [text for text in counts if text not in ("compiled", "refused")]
    assert not faults, "\n".join([f"{len(faults)} faults", *faults[:20]])
    assert counts["compiled"] > 0.97 * counts.total() >= 0.97 * PROGRAMS
