"""The reference's programs with a few words changed: refused with the place, or compiled right."""

from __future__ import annotations

import itertools
import random
import re
import warnings
from collections import Counter

import pytest

import tracr
from tests.agreement import compile_quietly, same
from tests.text.cases import of_kind
from tests.tiers import usual
from tracr.cli.repl.session import Session
from tracr.ir.options import LEVELS
from tracr.text.layout import format_text

WORDS = re.compile(r'"[^"\n]*"|\w+|\s+|\S')
CASES = [case for case in of_kind("s-op") if len(case["source"]) < 900 and "files" not in case]
POOL = [word for case in CASES for word in WORDS.findall(case["source"])]


def mutant(rng: random.Random) -> str:
    """A program with words left out, added and replaced."""
    words = WORDS.findall(rng.choice(CASES)["source"])
    for _ in range(rng.randrange(1, 4)):
        place = rng.randrange(len(words))
        words[place : place + rng.randrange(2)] = rng.choice(([], [rng.choice(POOL)], [rng.choice(POOL)]))
        words = words or ["y"]
    return "".join(words)


def read_and_check(source: str) -> tracr.rasp.SOp | None:
    """The last s-op of a text that can be read; printing, formatting and the interpreter cope with all of it."""
    Session().feed(source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tracr.TracrWarning)
        refusal = None
        try:
            module = tracr.parse(source)
        except tracr.SourceError as error:
            refusal = str(error)
        if refusal is not None:
            assert re.match(r"<rasp>:\d+:\d+: ", refusal), source
            return None
        format_text(source)
        for program in module.programs.values():
            tracr.parse(f"examples off\n{tracr.to_rasp(program)}")
    return next(reversed(module.programs.values()), None)


def assert_compiles_right(program: tracr.rasp.SOp, source: str) -> bool:
    """The model of every level gives what the interpreter does, on all inputs of three tokens up to length 3."""
    for level in LEVELS:
        try:
            model = compile_quietly(program, ["a", "1", "b"], 3, level=level)
        except tracr.CompileError:
            return False
        for xs in itertools.chain.from_iterable(itertools.product("a1b", repeat=n) for n in (1, 2, 3)):
            try:
                expected = program(xs)
            except tracr.EvaluationError:
                continue
            assert all(map(same, model(list(xs)), expected)), (source, level, xs)
    return True


@pytest.mark.parametrize("count", [150, pytest.param(usual(1_500, long=3_000), marks=pytest.mark.slow)])
def test_changed_programs_are_refused_or_compiled_right(count: int) -> None:
    """Never a crash, never a wrong model; many of them are programs."""
    rng, outcomes = random.Random(count), Counter[str]()
    for number in range(count):
        source = mutant(rng)
        program = read_and_check(source)
        if program is None:
            outcomes["refused"] += 1
        elif number % 3 == 0:
            outcomes["compiled" if assert_compiles_right(program, source) else "not compiled"] += 1
    assert outcomes["refused"] > count / 3
    assert outcomes["compiled"] > count / 50
