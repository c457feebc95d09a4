"""The key of what a program computes."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hypothesis import given, settings

from tests.strategies import Case, cases
from tests.tally import compiling, mostly_compared
from tracr.compiler.frontend.infer import infer
from tracr.compiler.frontend.trace import trace
from tracr.datasets import meaning
from tracr.ir.options import LEVELS, Options
from tracr.rasp import rasp
from tracr.rasp.random_functions import Table

tokens, indices, length = rasp.tokens, rasp.indices, rasp.length
same = rasp.Select(tokens, tokens, rasp.Comparison.EQ)
prevs = rasp.Select(indices, indices, rasp.Comparison.LT)
is_a = rasp.numerical(tokens == "a")


def key(*programs: rasp.SOp, vocab: str = "abc", size: int = 4, level: int = 1, **options: Any) -> str:
    outputs = {f"output {number}": program for number, program in enumerate(programs)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return meaning(infer(trace(outputs), Options(tuple(vocab), size, level=level, **options)))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (tokens == "a", rasp.Map(lambda x: x not in "bc", tokens).named("other")),
        (tokens == "a", rasp.Map(Table((("a", 1),), 0.0), tokens)),
        (rasp.SelectorWidth(same), rasp.SelectorWidth(rasp.Select(tokens, tokens, lambda k, q: k == q).named("x"))),
        (rasp.SelectorWidth(same), rasp.SelectorWidth(~~same)),
        (rasp.SelectorWidth(same & same), rasp.SelectorWidth(same)),
        (rasp.Aggregate(prevs, is_a), rasp.Aggregate(prevs, rasp.categorical(tokens == "a"))),
        (indices + length, length + indices),
        (
            rasp.SequenceMap(lambda x, y: (x, y), tokens, indices),
            rasp.SequenceMap(lambda x, y: (y, x), indices, tokens),
        ),
    ],
)
def test_differently_written_programs_are_one(first: rasp.SOp, second: rasp.SOp) -> None:
    """Names, lambdas, encodings, sharing and the order of a pair do not matter."""
    assert key(first) == key(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (tokens == "a", tokens == "b"),
        (tokens == "a", tokens != "a"),
        (tokens, indices),
        (rasp.Full(1), rasp.Full("1")),
        (indices + length, indices - length),
        (rasp.Aggregate(prevs, is_a), rasp.Aggregate(prevs, is_a, 0)),
        (rasp.Aggregate(prevs, is_a), rasp.Aggregate(same, is_a)),
        (rasp.SelectorWidth(prevs), rasp.SelectorWidth(rasp.Select(indices, indices, rasp.Comparison.GT))),
        (
            rasp.SequenceMap(lambda x, y: (x, y), tokens, indices),
            rasp.SequenceMap(lambda x, y: (y, x), tokens, indices),
        ),
    ],
)
def test_programs_that_compute_different_things_differ(first: rasp.SOp, second: rasp.SOp) -> None:
    """Tables, operations, constants and defaults matter."""
    assert key(first) != key(second)


def test_inputs_and_outputs_matter() -> None:
    """So do the vocabulary, its order, the length, causality, and the order of outputs."""
    program = rasp.SelectorWidth(same)
    keys = [
        key(program),
        key(program, vocab="ab"),
        key(program, vocab="acb"),
        key(program, size=5),
        key(program, causal=True),
        key(program, tokens),
        key(tokens, program),
    ]
    assert len(set(keys)) == len(keys)


def test_the_key_is_stable() -> None:
    """It is written into files, so it must not change from one process or version to the next."""
    assert key(rasp.Aggregate(prevs, is_a, 0.5)) == "2b7a03b8b5fcc73e8089383d05873a67"


@mostly_compared()
@given(case=cases(composite=True))
@settings(max_examples=100, deadline=None)
def test_levels_mean_the_same(case: Case) -> None:
    """Sharing changes nothing, and every program that can be tabulated has a key."""
    program = case.program
    outputs, options = trace({"x": program}), (case.vocab, case.max_seq_len, case.causal)
    with warnings.catch_warnings(), compiling():
        warnings.simplefilter("ignore")
        keys = {meaning(infer(outputs, Options(*options, level, bos="<bos>", pad="<pad>"))) for level in LEVELS}
    assert len(keys) == 1
