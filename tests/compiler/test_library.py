"""Every program of the library compiles, at its own vocabulary and length, and agrees with the interpreter."""

from __future__ import annotations

import pytest

import tracr
from tests.agreement import all_inputs, assert_agrees, some_inputs
from tests.library import LENGTH
from tracr.ir.options import LEVELS
from tracr.rasp import programs, rasp
from tracr.rasp.interpreter import evaluate
from tracr.rasp.programs import EXAMPLES

# Programs that never look ahead: their causal meaning is the bidirectional one.
BACKWARD = {name for name, example in EXAMPLES.items() if example.backward}


def inputs_of(name: str) -> list[list[rasp.Value]]:
    """All inputs up to length 3 and 40 random ones, up to the longest."""
    example = EXAMPLES[name]
    return all_inputs(example.vocab, 3) + some_inputs(example.vocab, example.max_seq_len, 40)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_compile_and_agree(name: str, level: int) -> None:
    """No warning, no refusal; the interpreter's answer on every input it has one for."""
    example, inputs = EXAMPLES[name], inputs_of(name)
    model = tracr.compile(example.program, example.vocab, example.max_seq_len, level=level)
    assert assert_agrees(model, example.program, inputs) == len(inputs)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - LENGTH))
def test_examples_compile_causally(name: str, level: int) -> None:
    """So do the causal models of all programs that do not need the length."""
    example, inputs = EXAMPLES[name], inputs_of(name)
    model = tracr.compile(example.program, example.vocab, example.max_seq_len, causal=True, level=level)
    assert assert_agrees(model, example.program, inputs) == len(inputs)


@pytest.mark.parametrize("name", sorted(LENGTH))
def test_examples_that_need_the_length_are_not_causal(name: str) -> None:
    """They are refused, with advice."""
    example = EXAMPLES[name]
    with pytest.raises(tracr.CompileError, match="length"):
        tracr.compile(example.program, example.vocab, example.max_seq_len, causal=True)


@pytest.mark.parametrize("name", sorted(BACKWARD))
def test_programs_that_never_look_ahead(name: str) -> None:
    """Causal or not, they compute the same."""
    program = EXAMPLES[name].program
    for xs in inputs_of(name):
        assert evaluate(program, xs, causal=True) == evaluate(program, xs)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("causal", [False, True])
def test_dyck_on_every_short_word_and_some_long_ones(level: int, causal: bool) -> None:
    """Words that nest are rare among random ones, so Dyck-2 is compared on all up to length 4 and on chosen ones."""
    program = programs.make_dyck2()
    model = tracr.compile(program, "(){}", 6, causal=causal, level=level)
    words = ["({}())", "{{{}}}", "(){}()", "({(})}", "{()}}{", "(({}))", "(({)})", "((((((", "))))))"]
    inputs = all_inputs("(){}", 4) + [list(word) for word in words]
    assert assert_agrees(model, program, inputs) == len(inputs)
    assert model("({}())") == ["P", "P", "P", "P", "P", "T"]
    assert model("({(})}") == ["P", "P", "P", "F", "F", "F"]


@pytest.mark.parametrize("level", LEVELS)
def test_dyck_ignores_other_tokens(level: int) -> None:
    """A token that is not a bracket does not change the nesting, at any position."""
    program = programs.make_dyck(["()", "{}"])
    model = tracr.compile(program, "(){}a", 5, level=level)
    assert model("a(a)a") == ["T", "P", "P", "T", "T"]
    inputs = all_inputs("(){}a", 3) + some_inputs("(){}a", 5, 100)
    assert assert_agrees(model, program, inputs) == len(inputs)


@pytest.mark.parametrize("level", LEVELS)
def test_both_sorts_are_one_function(level: int) -> None:
    """The paper's sort and the RASP paper's give the same on every input, compiled as well."""
    tokens, vocab = rasp.tokens, (1, 2, 3)
    shifted = programs.make_sort(rasp.indices, tokens, max_seq_len=4, min_key=1)
    composite = programs.make_sort_composite(rasp.indices, tokens)
    inputs = all_inputs(vocab, 4)
    one, other = (tracr.compile(program, vocab, 4, level=level)(inputs) for program in (shifted, composite))
    assert one == other


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("filler", [None, "-"])
def test_most_freq_fills_up(filler: str | None, level: int) -> None:
    """The filler is a value like any other, `None` included."""
    program = programs.make_most_freq(filler)
    model = tracr.compile(program, "ab", 5, level=level)
    assert model("babbb") == ["b", "a", filler, filler, filler]
    inputs = all_inputs("ab", 5)
    assert assert_agrees(model, program, inputs) == len(inputs)
