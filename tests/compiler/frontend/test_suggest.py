"""Where a function raises on some tokens, the hint has the vocabulary that leaves them out."""

from __future__ import annotations

import ast
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracr
from tracr.compiler import validating
from tracr.rasp import rasp

TOKENS = st.lists(st.integers(-9, 9) | st.sampled_from("abc"), min_size=2, max_size=6, unique=True)
EVERY = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.TRUE)


def suggested(program: rasp.SOp, vocab: list[rasp.Value], longest: int = 3) -> tuple[str, list[rasp.Value] | None]:
    """The hint, and the vocabulary in it."""
    with pytest.raises(tracr.CompileError) as caught:
        tracr.compile(program, vocab, longest)
    hint = caught.value.diagnostic.hint
    assert str(caught.value).endswith(hint)
    found = re.search(r"vocab=(\[.*\])", hint)
    return hint, ast.literal_eval(found[1]) if found else None


@given(TOKENS, st.data())
def test_the_tokens_on_which_a_function_raises_are_left_out(vocab: list[rasp.Value], data: st.DataObject) -> None:
    """All of them, no other, in the order of the vocabulary; and the program compiles for the rest."""
    wrong = data.draw(st.lists(st.sampled_from(vocab), min_size=1, max_size=len(vocab) - 1, unique=True))
    function = {token: str(token) for token in vocab if token not in wrong}.__getitem__
    one = rasp.Map(function, rasp.tokens)
    for program in (one, rasp.SequenceMap(lambda x, i: (function(x), i), rasp.tokens, rasp.indices), one == "1"):
        hint, rest = suggested(program, vocab)
        assert rest == [token for token in vocab if token not in wrong]
        assert all(repr(token) in hint.partition("vocab=")[0] for token in wrong)
        assert tracr.compile(program, rest, 3)([rest[0]]) == program([rest[0]])


def test_tokens_that_raise_only_together() -> None:
    """Strings and numbers are not compared: the more common type stays."""
    smaller = rasp.Select(rasp.tokens, rasp.tokens, lambda key, query: key < query)
    assert suggested(rasp.SelectorWidth(smaller), ["a", 1, 2, "b", 3])[1] == [1, 2, 3]


def test_no_vocabulary_is_suggested_where_none_helps() -> None:
    """It is the position, the function, or every token."""
    for program in (
        rasp.Map(lambda i: 1 / i, rasp.indices),
        rasp.Map(lambda token: token.nothing, rasp.tokens),
    ):
        assert suggested(program, ["a", "b"])[1] is None


def test_a_program_refused_for_another_reason_keeps_its_hint() -> None:
    """Only errors of functions are about tokens."""
    assert "leave out" not in suggested(rasp.numerical(rasp.tokens), ["a", 1])[0]


def test_validation_has_the_hint_too() -> None:
    """For the tokens of the input."""
    (found,) = validating.validate(rasp.Map(lambda x: 1 / x, rasp.tokens), [2, 0, 1])
    assert "division" in found.reason
    assert found.hint.endswith("leave out the token 0: vocab=[2, 1]")


def test_the_error_has_a_class_of_its_own() -> None:
    """So that loops over many programs can tell it from others."""
    with pytest.raises(tracr.FunctionError, match="raises on values that inputs take"):
        tracr.compile(rasp.Map(lambda x: 1 / x, rasp.tokens), [0, 1], 3)
