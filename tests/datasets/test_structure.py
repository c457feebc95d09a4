"""Structural equality and the pretty-printer: the text of a program gives the program back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import SEEDS, VOCABULARIES
from tracr.datasets import Controls, UnprintableError, run_python, same_structure, to_python
from tracr.datasets.printing import with_lines
from tracr.rasp import rasp
from tracr.rasp.functions import BinaryOperator, ConstantOperator
from tracr.rasp.generate import random_program
from tracr.rasp.programs import EXAMPLES
from tracr.rasp.random_functions import Table, square
from tracr.rasp.traversal import topological

prevs = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LEQ)


@given(
    seed=SEEDS,
    controls=st.builds(
        Controls,
        st.sampled_from(VOCABULARIES),
        st.integers(1, 6),
        st.booleans(),
        max_ops=st.integers(0, 9),
        composite=st.booleans(),
    ),
)
@settings(max_examples=300, deadline=None)
def test_the_text_gives_the_program_back(seed: int, controls: Controls) -> None:
    """Names and annotations included, and printed again it is the same text."""
    program = controls.program(seed)
    text = to_python(program)
    again = run_python(text)
    assert same_structure(program, again)
    assert to_python(again) == text


@pytest.mark.parametrize(
    "program",
    [
        rasp.tokens,
        rasp.Tokens(),
        rasp.SequenceMap(max, rasp.Indices(), rasp.indices),
        rasp.tokens.named("two words"),
        rasp.Full(("a", (1, True), b"x", frozenset({2}))),
        rasp.ConstantSOp([1, "a"], check_length=False),
        rasp.SelectorWidth(rasp.ConstantSelector([[True, False], [True, True]])),
        rasp.Map(str.upper, rasp.tokens),
        rasp.Map(ConstantOperator("<", 3, reflected=True), rasp.indices),
        rasp.Map(ConstantOperator("%", "a", reflected=True), rasp.indices),
        (-1) ** rasp.indices,
        -(rasp.indices**-2),
        (-rasp.indices) ** 2,
        3 - (rasp.indices + 1),
        rasp.Map(square, rasp.indices + 1, simplify=False),
        rasp.Map(square, rasp.Map(square, rasp.indices + 1, simplify=False)),
        ~((rasp.tokens == "a") & True),
        rasp.SequenceMap(
            BinaryOperator("<"), rasp.indices + rasp.length, rasp.LinearSequenceMap(rasp.length, rasp.length, 1, 2)
        ),
        rasp.Aggregate(~prevs | prevs & prevs, rasp.tokens, "none").named("class").annotated(author="me", line=3),
        rasp.numerical(rasp.indices).named("rasp") + rasp.length.named("rasp"),
        (rasp.indices == 1).named("Table") + rasp.Map(Table((("a", 1),), None), rasp.tokens),
        (rasp.indices == 1).named("3"),
        (rasp.indices == 1).named("été"),
    ],
    ids=repr,
)
def test_odd_programs_come_back(program: rasp.SOp) -> None:
    """Where Python's own rules for operators, names and precedence get in the way."""
    assert same_structure(program, run_python(to_python(program)))


def test_a_long_composition_comes_back() -> None:
    """A thousand fused Maps are a thousand functions, and no deeper text."""
    program = rasp.indices + 1
    for number in range(1000):
        program = program + number
    assert same_structure(program, run_python(to_python(program)))


@pytest.mark.parametrize(
    ("program", "named"),
    [
        (rasp.Map(lambda x: x, rasp.tokens).named("f"), r"f \(Map\): the function <lambda>"),
        (rasp.Select(rasp.tokens, rasp.tokens, lambda k, q: True), r"select \(Select\): the function <lambda>"),
        (rasp.Map({"a": 1}.get, rasp.tokens), "the function get"),
        (rasp.Full(3j), "the value 3j of type complex"),
        (rasp.tokens.annotated(**{"not a name": 1}), "the annotation 'not a name'"),
    ],
)
def test_what_cannot_be_printed_is_named(program: Any, named: str) -> None:
    """The error says which expression, and what to use instead."""
    program = rasp.SelectorWidth(program) if isinstance(program, rasp.Selector) else program
    with pytest.raises(UnprintableError, match=named):
        to_python(rasp.SequenceMap(max, rasp.tokens, program))


def test_library_programs_print_or_say_why_not() -> None:
    """Every library program comes back or is refused for a lambda; not a crash, not another program."""
    printed = 0
    for example in EXAMPLES.values():
        try:
            text = to_python(example.program)
        except UnprintableError:
            continue
        else:
            assert same_structure(example.program, run_python(text))
            printed += 1
    assert printed


def test_names_count_unless_ignored() -> None:
    """`ignore_names` is about names only: encodings still count."""
    named = (rasp.tokens == "a").named("x")
    assert not same_structure(rasp.tokens == "a", named)
    assert same_structure(rasp.tokens == "a", named, ignore_names=True)
    assert not same_structure(rasp.categorical(named), named, ignore_names=True)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (rasp.tokens == 1, rasp.tokens == True),  # noqa: E712
        (rasp.Full(0.0), rasp.Full(-0.0)),
        (rasp.Full((1,)), rasp.Full((1.0,))),
        (rasp.indices < 1, rasp.indices <= 1),
        (rasp.indices - rasp.length, rasp.length - rasp.indices),
        (rasp.Aggregate(prevs, rasp.tokens), rasp.Aggregate(prevs, rasp.tokens, 0)),
        (
            rasp.LinearSequenceMap(rasp.length, rasp.indices, 1, 2),
            rasp.LinearSequenceMap(rasp.length, rasp.indices, 2, 1),
        ),
        (rasp.Map(square, rasp.Map(square, rasp.indices)), rasp.Map(square, rasp.Map(square, rasp.indices), False)),
        (rasp.Map(lambda x: x, rasp.tokens), rasp.Map(lambda x: x, rasp.tokens)),
        (rasp.Map(Table(((1, 1),), None), rasp.tokens), rasp.Map(Table(((True, 1),), None), rasp.tokens)),
    ],
)
def test_different_programs_differ(first: rasp.SOp, second: rasp.SOp) -> None:
    """Operations, their order, constants with their types, functions."""
    assert not same_structure(first, second)
    assert same_structure(first, first)


def test_sharing_counts() -> None:
    """One s-op read twice is not two s-ops."""
    once = rasp.tokens == "a"
    assert not same_structure(once & once, once & (rasp.tokens == "a"))


def test_random_seeds_give_other_programs() -> None:
    """The same seed gives the same structure, other seeds nearly always another."""
    drawn = [random_program(seed, printable=True) for seed in range(40)]
    assert all(same_structure(p, random_program(seed, printable=True)) for seed, p in enumerate(drawn))
    alike = sum(same_structure(p, q) for i, p in enumerate(drawn) for q in drawn[:i])
    assert alike < 10


def test_lines_are_those_of_the_text() -> None:
    """`with_lines` gives the program that running its text gives: structure, and the line of every expression."""
    for seed in range(60):
        program = Controls(max_ops=8, composite=True, vocab=(1, 2, "a")).program((3, seed))
        text, placed = with_lines(program)
        ran = run_python(text)
        assert text == to_python(program)
        assert same_structure(placed, ran)
        assert [expr.origin for expr in topological([placed])] == [expr.origin for expr in topological([ran])]
