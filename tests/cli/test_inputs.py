"""What is typed as an input: which words, characters, commas, spaces and quotes are which tokens."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.calling import invoke_json
from tests.tally import NotCompared, mostly_compared
from tracr.cli import read_tokens, read_vocabulary
from tracr.cli.inputs import as_typed, read_words
from tracr.errors import InputError

COPY = "y = tokens;\n"
ANYTHING = st.text(st.characters(codec="ascii", exclude_categories=["C"]), max_size=5)
WORDS = ANYTHING | st.text("ab12(){}[].5,' ", max_size=5) | st.text("ab12(){}[]", max_size=5)


def run(tmp_path: Path, text: str, *words: str) -> list[Any]:
    """The tokens on which a .rasp program was run."""
    path = tmp_path / "program.rasp"
    path.write_text(text)
    answer = invoke_json("run", path, *words)
    assert answer["agree"]
    tokens: list[Any] = answer["tokens"]
    return tokens


@pytest.mark.parametrize(
    ("words", "tokens"),
    [
        (["({})"], ["(", "{", "}", ")"]),
        (["(", "{", "}", ")"], ["(", "{", "}", ")"]),
        (["the", "cat"], ["the", "cat"]),
        (["a,b,a"], ["a", "b", "a"]),
        (["10", "9"], ["10", "9"]),
        (["10,9"], ["10", "9"]),
        (["[10, 9]"], [10, 9]),
        (['["a b", "c"]'], ["a b", "c"]),
        (["[]"], ["[", "]"]),
        (["[(])"], ["[", "(", "]", ")"]),
        (["it's"], ["i", "t", "'", "s"]),
    ],
)
def test_rasp_programs(tmp_path: Path, words: list[str], tokens: list[Any]) -> None:
    """Words, characters, commas or JSON."""
    assert run(tmp_path, COPY, *words) == tokens


@pytest.mark.parametrize("word", ["( { } )", "a b", " ab", "ab\t", '"ab"', "'ab'"])
@pytest.mark.parametrize("others", [[], ["c"]], ids=["alone", "among others"])
def test_spaces_and_quotes_are_refused(tmp_path: Path, word: str, others: list[str]) -> None:
    """They were meant for the shell; the message says what to write, and that works."""
    with pytest.raises(InputError, match=r"has (spaces|quotes around it)") as error:
        run(tmp_path, COPY, word, *others)
    listed = error.value.diagnostic.hint.partition("write a JSON list: ")[2]
    assert run(tmp_path, COPY, listed.removeprefix("'").removesuffix("'").replace("'\"'\"'", "'")) == list(word)


def test_the_message_says_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"write '\(' '{' '}' '\)'"):
        run(tmp_path, COPY, "( { } )")


def test_spaces_commas_and_quotes_may_be_tokens(tmp_path: Path) -> None:
    """If the vocabulary, or the file's own example, has them."""
    assert run(tmp_path, COPY, "a b", "--vocab", '["a", "b", " "]') == ["a", " ", "b"]
    assert run(tmp_path, f'set example "a, b"\n{COPY}', "a b,a") == ["a", " ", "b", ",", "a"]
    assert run(tmp_path, f'set example "a\'b"\n{COPY}', "'a'") == ["'", "a", "'"]


def test_numbers_are_those_of_the_example(tmp_path: Path) -> None:
    """A word that prints like a number of the vocabulary is that number, and not a second token beside it."""
    for words in (["1", "2"], ["12"], ["1,2"], ["[1, 2]"]):
        assert run(tmp_path, "set example [1, 2, 3]\ny = tokens_int + 1;\n", *words) == [1, 2]


def test_an_input_that_is_too_long_names_the_option(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="add --max-len 3"):
        run(tmp_path, COPY, "aba", "--max-len", "2")


TOKENS = st.one_of(st.integers(-9, 99), st.text(st.characters(codec="ascii", exclude_categories=["C"]), max_size=3))


@given(vocab=st.lists(TOKENS, min_size=1, max_size=5, unique_by=str), data=st.data())
def test_every_input_can_be_typed(vocab: list[Any], data: st.DataObject) -> None:
    """As a JSON list always; as words wherever it has two tokens or more."""
    tokens = data.draw(st.lists(st.sampled_from(vocab), max_size=4))
    for characters in (False, True):
        written = json.dumps(tokens)
        if len(written) > 2 and written not in map(str, vocab) and not set(written) <= set(map(str, vocab)):
            assert read_tokens([written], vocab, characters) == tokens
        if len(tokens) > 1:
            assert read_tokens([str(token) for token in tokens], vocab, characters) == tokens


@mostly_compared(0.3)
@given(WORDS, st.booleans())
def test_a_word_is_read_or_refused(word: str, characters: bool) -> None:
    """No space, quote or comma becomes a token unless the vocabulary has it, whatever is typed."""
    vocab = [*"ab12(){}[]", 1.5]
    try:
        tokens = read_tokens([word], vocab, characters)
    except (InputError, typer.BadParameter) as refusal:
        raise NotCompared(str(refusal)) from refusal
    assert all(token in vocab for token in tokens)
    if characters and not tokens:
        assert word == ""


@mostly_compared(0.5)
@given(ANYTHING)
def test_without_a_vocabulary_nothing_meant_for_the_shell_is_a_token(word: str) -> None:
    """Spaces separate nothing silently, and quotes around a word are not tokens."""
    try:
        tokens = read_words([word])
    except (InputError, typer.BadParameter) as refusal:
        raise NotCompared(str(refusal)) from refusal
    if not word.startswith("["):
        assert not any(token.isspace() for token in tokens)
        assert not (len(word) > 1 and word[0] == word[-1] and word[0] in "\"'")


@pytest.mark.parametrize("text", ["a b c", "( )", "'abc'", '"abc"'])
def test_vocabularies_with_spaces_or_quotes(text: str) -> None:
    """Refused; JSON says them."""
    with pytest.raises(typer.BadParameter, match="JSON list"):
        read_vocabulary(text)
    assert read_vocabulary(json.dumps(list(dict.fromkeys(text)))) == list(dict.fromkeys(text))


@given(st.lists(st.sampled_from([1, 2, "a", "(", "x y", "$"]), min_size=2, max_size=4))
def test_suggested_inputs_can_be_typed(tokens: list[Any]) -> None:
    """What a message tells to type is read as what was meant."""
    assert read_tokens(shlex.split(as_typed(tokens)), [1, 2, "a", "(", "x y", "$"]) == tokens


def test_library_programs_take_commas_and_json_too() -> None:
    for word in ("3,1,2", "[3, 1, 2]"):
        assert invoke_json("run", "sort", word)["model"] == {"sort": [1, 2, 3]}


@pytest.mark.parametrize("word", ["[1, 2", '["a",]'])
def test_a_list_with_a_mistake_is_refused(word: str) -> None:
    with pytest.raises((InputError, typer.BadParameter)):
        read_tokens([word], [1, 2, "a"], characters=True)


def test_tokens_are_read_against_the_vocabulary() -> None:
    """Numbers where the vocabulary has numbers; an error where it is ambiguous."""
    assert read_tokens(["1", "a", "0.5"], [1, "a", 0.5]) == [1, "a", 0.5]
    assert read_tokens(["1"], ["1"]) == ["1"]
    assert read_tokens(["True", "None", "(1, 'a')"], [True, None, (1, "a")]) == [True, None, (1, "a")]
    with pytest.raises(InputError, match="print alike"):
        read_tokens(["1"], [1, "1"])
    with pytest.raises(InputError, match="put spaces between tokens: a b"):
        read_tokens(["ab"], ["a", "b"])
    with pytest.raises(typer.BadParameter, match="neither an option nor a token"):
        read_tokens(["--levle"], ["a"])


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("abc", ["a", "b", "c"]),
        ("()[]", ["(", ")", "[", "]"]),
        ("[]", ["[", "]"]),
        ("[(])", ["[", "(", "]", ")"]),
        ("[()]", ["[", "(", ")", "]"]),
        (",", [","]),
        ("1,2,-0.5,x", [1, 2, -0.5, "x"]),
        ("cat, dog", ["cat", "dog"]),
        ('["a", 1, "1", null, true, ["x", 2]]', ["a", 1, "1", None, True, ("x", 2)]),
    ],
)
def test_vocabularies(text: str, tokens: list[Any]) -> None:
    """Characters, comma separated, or JSON."""
    assert repr(read_vocabulary(text)) == repr(tokens)


@pytest.mark.parametrize("text", ["a,,b", '["a",]', '[{"a": 1}]'])
def test_vocabularies_with_mistakes(text: str) -> None:
    """Refused, not guessed."""
    with pytest.raises(typer.BadParameter):
        read_vocabulary(text)
