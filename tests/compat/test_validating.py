"""`validate` says what cannot be compiled, and why; and only that."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import tracr
from tracr.compiler import validating
from tracr.rasp import programs, rasp
from tracr.rasp.rasp import Comparison

EVERY = rasp.Select(rasp.indices, rasp.indices, Comparison.TRUE).named("every")


@pytest.mark.parametrize("name", programs.EXAMPLES)
def test_the_library_has_nothing_to_complain_about(name: str) -> None:
    """Statically."""
    assert validating.validate(programs.EXAMPLES[name].program) == []


@pytest.mark.parametrize(
    ("program", "culprit", "reason"),
    [
        (rasp.numerical(rasp.Full("a")).named("letter"), "letter", "annotated numerical"),
        (rasp.tokens == rasp.numerical(rasp.Full("a")).named("letter"), "letter", "annotated numerical"),
        ((1 / (rasp.indices * 0)).named("quotient"), "quotient", "division by zero"),
        (
            rasp.Aggregate(rasp.Select(rasp.Full(None), rasp.indices, Comparison.EQ).named("nothing"), rasp.tokens),
            "nothing",
            "None",
        ),
        (rasp.ConstantSOp([1, 2]) + rasp.ConstantSOp([1, 2, 3]), "sequence_map", "no input length"),
        (EVERY, "every", "only an s-op can be compiled"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_static_validation_names_the_expression_and_the_reason(program: rasp.SOp, culprit: str, reason: str) -> None:
    """What fails for every vocabulary and length."""
    (found,) = validating.static_validate(program)
    assert found.expr.name == culprit
    assert reason in found.reason
    assert validating.validate(program) == [found]


def test_static_validation_finds_several() -> None:
    """One entry for each part of the program that fails on its own."""
    wrong = [rasp.numerical(rasp.Full(letter)).named(letter) for letter in "pq"]
    program = (rasp.tokens + wrong[0]) + (rasp.tokens + wrong[1])
    assert [found.expr for found in validating.static_validate(program)] == wrong


def test_static_validation_does_not_refuse_what_some_length_can_be_compiled_for() -> None:
    """Position 3 divides by zero, but a model of length 3 has none."""
    program = 1 / (rasp.indices - 3)
    assert validating.static_validate(program) == []
    assert tracr.compile(program, "a", 3)("aaa") == program("aaa")


@pytest.mark.parametrize(
    ("program", "xs", "culprit", "reason"),
    [
        (rasp.Aggregate(EVERY, rasp.tokens).named("mean"), "ab", "mean", "no mean"),
        (rasp.Map(lambda x: x + 1, rasp.tokens).named("next"), "ab", "next", "TypeError"),
        (rasp.numerical(rasp.tokens).named("number"), "ab", "number", "annotated numerical"),
        (rasp.numerical(rasp.tokens * 2**25).named("large"), [1, 2], "large", "2**24"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_dynamic_validation_tries_the_input(program: rasp.SOp, xs: list[int], culprit: str, reason: str) -> None:
    """What fails for these tokens; nothing is known without them."""
    assert validating.validate(program) == validating.dynamic_validate(program) == []
    (found,) = validating.validate(program, xs)
    assert found.expr.name == culprit
    assert reason in found.reason


def test_dynamic_validation_is_content_where_all_is_well() -> None:
    """Also on tokens called like our own BOS."""
    assert validating.validate(rasp.Aggregate(EVERY, rasp.tokens), [1, 2, 3]) == []
    assert validating.validate(rasp.SelectorWidth(EVERY), ["bos", "pad"]) == []
    assert validating.validate(rasp.SelectorWidth(EVERY), []) == []


def scrambled(number: int, x: int) -> int:
    return (3 * x + number) % 7


@pytest.mark.parametrize("operations", [5, 40])
@pytest.mark.parametrize("xs", [None, [0, 1, 2]])
def test_a_program_that_compiles_is_compiled_once(
    operations: int, xs: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many of its operations do not read the tokens: validating takes no longer than compiling."""
    shift: rasp.SOp = rasp.indices
    program: rasp.SOp = rasp.tokens
    for number in range(operations):
        shift = rasp.Map(partial(scrambled, number), shift, simplify=False)
        program = (program + shift) % 5
    calls = []
    compile_program = vars(validating)["compile_program"]

    def counted(*args: Any) -> Any:
        calls.append(args)
        return compile_program(*args)

    monkeypatch.setattr(validating, "compile_program", counted)
    assert validating.validate(program, xs) == []
    assert len(calls) == 1


def test_something_else_is_an_expression_error() -> None:
    """Nothing to validate."""
    with pytest.raises(tracr.ExpressionError, match="only a RASP expression"):
        validating.validate("hist")  # type: ignore[arg-type]
