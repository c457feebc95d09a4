"""Where the reference refuses, so do we, and say what to write instead; inputs of several kinds; library functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tracr
from tests.agreement import compile_quietly
from tracr.ir.options import LEVELS
from tracr.rasp import rasp
from tracr.rasp.base import RASPExpr


def off(source: str) -> Any:
    """The y of a text whose definitions are not checked."""
    return tracr.parse(f"examples off\n{source}")["y"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("y = zip([1, 2], [3]);", "<rasp>:1:5: zip takes lists of one length, not of 2 and 1"),
        ('for a, b in zip([1], ["a", "b"]) { y = a; }', "zip takes lists of one length, not of 1 and 2"),
        ('y = aggregate(full_s, tokens == "h");', "<rasp>:1:5: position 0 selects 5 booleans: they have no mean"),
        ("y = average(indices > 1);", "<rasp>:1:5: position 0 selects 5 booleans"),
        ("y = indices;\ny([]);", "<rasp>:2:1: an input has at least one token"),
        ('y = full_s("");', "<rasp>:1:5: an input has at least one token"),
        ('set example ""\n', "<rasp>:1:13: an input has at least one token"),
        ('draw(tokens, "");', "an input has at least one token"),
        ("s = full_s; draw(s);", "<rasp>:1:18: only an s-op can be drawn, not the selector"),
        ('draw(select(tokens, "a", ==), "abc");', "<rasp>:1:6: only an s-op can be drawn"),
        ("draw(3);", "only an s-op can be drawn, not 3"),
        ("y = 1 in [tokens];", "a list after in holds values, not the s-op tokens_str"),
        ("a, b = 3;", "2 names cannot take 1 value"),
    ],
)
def test_what_the_reference_refuses_is_refused(source: str, message: str) -> None:
    """With the place."""
    with pytest.raises(tracr.SourceError) as caught:
        tracr.parse(source)
    assert message in str(caught.value)


def test_the_refusals_teach() -> None:
    """What a share, a part of a list and a drawing are made of."""
    for source, hint in (
        ("y = aggregate(full_s, indices > 1);", "the mean of indicator(x) is the fraction"),
        ("y = zip([1, 2], [3]);", "make them equally long"),
        ("draw(full_s);", "selector_width(s)"),
    ):
        with pytest.raises(tracr.SourceError, match=r"hint: .*") as caught:
            tracr.parse(source)
        assert hint in str(caught.value)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ('a, b = "xy"; y = b + a;', "yx"),
        ('y = [a + b for a, b in ["xy", "zw"]];', ["xy", "zw"]),
        ("a, b = {1: 2, 3: 4}; y = a + b;", 4),
        ("y = 1 if {} else 2;", 2),
        ("y = {} or 3;", 3),
        ("y = not {};", True),
        ("y = 2 in [[1], 2];", True),
        ("y = 1 in [[1], 2];", False),
    ],
)
def test_what_the_reference_accepts_is_accepted(source: str, value: object) -> None:
    """Texts and dictionaries are taken apart, dictionaries are true or false, lists hold lists."""
    assert tracr.parse(source)["y"] == value


# Booleans


def test_a_sequence_of_booleans_has_no_mean_but_one_with_a_number_in_it_has() -> None:
    """The type is the whole sequence's, on each input; one boolean that is selected stays one."""
    y = off("y = aggregate(full_s, True if indices < 2 else 5);")
    assert y("a") == [True]
    with pytest.raises(tracr.EvaluationError, match=r"^<rasp>:2:5: position 0 selects 2 booleans"):
        y("ab")
    assert y("abc") == [7 / 3] * 3
    two = off("y = aggregate(select(indices, 2, <), True if indices < 2 else 5);")
    assert two("abc") == [1.0] * 3
    assert off("y = aggregate(select(indices, 1, ==), indices == 1);")("abc") == [True] * 3


@pytest.mark.parametrize("level", LEVELS)
def test_a_model_assumes_that_one_boolean_is_selected(level: int) -> None:
    """As for strings: where several are, the program raises, and `verify` counts those inputs apart."""
    y = off('y = aggregate(select(tokens, "a", ==), indices == 1, False);')
    model = compile_quietly(y, "ab", 3, level=level)
    report = model.verify()
    assert report
    assert "on which the program raises" in str(report)
    for given in ("b", "ab", "ba", "bab", "abb"):
        assert model(given) == y(given)
    with pytest.raises(tracr.CompileError, match="may select several values that have no mean"):
        compile_quietly(y, "ab", 3, level=level, strict=True)


def test_python_s_means_of_booleans_stay_and_are_printed_as_means_of_numbers() -> None:
    """Only the textual language refuses them."""
    everywhere = rasp.Select(1, 1, rasp.Comparison.EQ)
    upper: Callable[[str], bool | int] = {"a": True, "b": False, "c": 3}.__getitem__
    for sop in (rasp.tokens == "a", rasp.Map(upper, rasp.tokens), (rasp.tokens == "a") | (rasp.indices > 0)):
        share = rasp.Aggregate(everywhere, sop).named("share")
        text = tracr.to_rasp(share, vocab="abc", max_seq_len=3)
        again = tracr.parse(text)["share"]
        for given in ("a", "ab", "bca", "aaa"):
            assert again(given) == share(given), text
    assert "indicator(" in tracr.to_rasp(rasp.Aggregate(everywhere, rasp.tokens == "a"), vocab="ab", max_seq_len=3)


# Inputs


def test_tokens_of_two_kinds_are_converted_and_only_tokens_asis_refuses_them() -> None:
    """Each is converted by itself, as the reference does."""
    given = ["1", 2, 3.5, True]
    assert off("y = tokens;")(given) == ["1", "2", "3.5", "True"]
    assert off("y = tokens_int;")(given) == [1, 2, 3, 1]
    assert off("y = tokens_float;")(given) == [1.0, 2.0, 3.5, 1.0]
    assert off("y = tokens_bool;")(["", 0, "a"]) == [False, False, True]
    assert off("y = indices;")(given) == [0, 1, 2, 3]
    with pytest.raises(tracr.EvaluationError, match="mixes strings with numbers"):
        off("y = tokens_asis;")(given)
    assert tracr.parse('y = tokens; z = y(["a", 3]);')["z"] == ["a", "3"]


@pytest.mark.parametrize("level", LEVELS)
def test_a_vocabulary_of_two_kinds_compiles(level: int) -> None:
    """And definitions are checked on tokens of one kind."""
    module = tracr.parse("y = tokens_asis; z = tokens + tokens;", vocab=["a", 1, "b", 2], max_seq_len=3)
    z = compile_quietly(module["z"], ["a", 1], 3, level=level)
    assert z(["a", 1]) == module["z"](["a", 1]) == ["aa", "11"]
    y = compile_quietly(module["y"], ["a", 1, "b"], 3, level=level)
    assert y(["a", "b"]) == ["a", "b"]


def test_no_program_of_the_textual_language_runs_on_nothing() -> None:
    """Called from Python neither; programs built in Python do."""
    for source in ("y = tokens;", "y = indices + 1;", "y = selector_width(full_s);", "y = select(tokens, 1, ==);"):
        with pytest.raises(tracr.InputError, match="at least one token"):
            off(source)([])
    assert (rasp.indices + 1)([]) == []


# The library


def test_shift_by_an_s_op_moves_each_value_by_its_own_distance() -> None:
    """The distance stands with the value that moves, not with the place it moves to."""
    y = tracr.parse('y = shift(tokens, indices, "-");')["y"]
    assert y("abcde") == ["a", "-", "b", "-", "c"]


# Examples


@pytest.mark.parametrize(
    ("source", "head"),
    [
        ('set example "12"\ny = tokens_int * 2;', 'set example "12"\n'),
        (
            'set example "12"\ndef f(x) { return tokens_int + x; }\nset example [3, 4]\ny = f(1);',
            "set example [3, 4]\n",
        ),
        ('set example "hello"\ny = indices;\ny = y + 1;', 'set example "hello"\n'),
        (
            'set s-op example "12"\nset selector example "ab"\ny = tokens_int + 1;',
            'set s-op example "12"\nset selector example "ab"\n',
        ),
        ("y = indices + 1;", ""),
        ("examples off\ny = tokens_int + 1;", "examples off\n"),
        ('set example "ab"\nexamples off\ny = tokens_int + 1;', 'set example "ab"\nexamples off\n'),
    ],
)
def test_what_set_example_fixed_is_printed(source: str, head: str) -> None:
    """The text that is printed can be read, and is for the same tokens."""
    module = tracr.parse(source)
    text = tracr.to_rasp(module["y"])
    assert text.removesuffix(text[text.rindex("y =") :]) == head
    again = tracr.parse(text)
    assert again["y"]("12") == module["y"]("12")
    assert again.example == module.example


def test_a_program_made_in_python_is_printed_with_an_example_it_runs_on() -> None:
    """Where the usual one has no meaning for it."""
    for vocab, head in (
        ("ab", 'set example "ab"'),
        ([1, 2], "set example [1, 2]"),
        (["no", "yes"], 'set example ["no"'),
    ):
        table: RASPExpr = rasp.Map(lambda token: f"<{token}>", rasp.tokens).named("y")
        text = tracr.to_rasp(table, vocab=vocab, max_seq_len=3)
        assert text.startswith(head)
        assert tracr.parse(text)["y"](list(vocab)) == table(list(vocab))


def test_functions_are_not_printed() -> None:
    """What they return is."""
    module = tracr.parse("def f(x) { return x + 1; }")
    with pytest.raises(
        tracr.ExpressionError, match=r"not the function f\(x\)\n  hint: to print a function, print its result"
    ):
        tracr.to_rasp(module["f"])
