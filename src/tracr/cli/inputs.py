"""Reads tokens and vocabularies from the words typed.

An input is one word for each token. If there is only one word, the first of these rules that fits gives its tokens:

    it is a token of the vocabulary             that token
    "" (nothing between quotes)                 no token: the empty input
    its characters are all tokens               its characters, for .rasp programs and after --input
    [1, "a b"]                                  a JSON list: numbers are numbers, strings are strings
    3,1,2                                       the tokens between the commas
    hello                                       its characters, for .rasp programs and after --input

Spaces, and quotes around a word, are refused unless the vocabulary has such a token: they were almost always meant for
the shell. A word is read as the token that prints like it: `3` is the number 3 if the vocabulary has 3 and not "3".
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from tracr.errors import InputError
from tracr.values import Value

__all__ = ["as_typed", "read_tokens", "read_vocabulary", "read_words"]

QUOTES = "\"'`"
SHOWN = 20  # most tokens that a message lists


@dataclass(frozen=True)
class TypedWords:
    """The words typed, one for each token; `exact` if they tell numbers from strings, as JSON does."""

    items: tuple[Value, ...]
    exact: bool = False


def read_vocabulary(text: str) -> list[Value]:
    """Read a vocabulary: a JSON list, tokens separated by commas (numbers if they look like numbers) or characters.

    >>> read_vocabulary("abc"), read_vocabulary("1,2,x"), read_vocabulary('["1", 1, ["a", true]]')
    (['a', 'b', 'c'], [1, 2, 'x'], ['1', 1, ('a', True)])
    """
    listed = _json_list(text, ())
    if listed is not None:
        return listed
    if "," in text and len(text) > 1:
        return [_number_or_word(word) for word in _between_commas(text)]
    wrong = _for_the_shell(text)
    if wrong:
        example = json.dumps(list(dict.fromkeys(text)))
        raise typer.BadParameter(f"{text!r} has {wrong}; a vocabulary with such a token is a JSON list: '{example}'")
    return list(text)


def read_tokens(words: Sequence[str], vocab: Sequence[Value], characters: bool = False) -> list[Value]:
    """Read words as tokens of a vocabulary; with `characters`, one word can be a string of one-character tokens.

    >>> read_tokens(["3", "a"], [3, "a"]), read_tokens(["3a"], [3, "a"], characters=True)
    ([3, 'a'], [3, 'a'])
    >>> read_tokens(["3,a"], [3, "a"])
    [3, 'a']
    """
    program = _split(words, vocab, characters)
    by_text = _by_text(vocab)
    return [_meant(word, place, program.exact, vocab, by_text) for place, word in enumerate(program.items)]


def read_words(words: Sequence[str], known: Sequence[Value] = (), numbers: bool = False) -> list[Any]:
    """Read words without a fixed vocabulary: a word is a known token, else a string.

    With `numbers`, words that all look like numbers are read as numbers.

    >>> read_words(["abc"]), read_words(["the", "cat"]), read_words(["[1, 2]"]), read_words(["13"], [1, 2])
    (['a', 'b', 'c'], ['the', 'cat'], [1, 2], [1, '3'])
    """
    program = _split(words, known, characters=True)
    if program.exact:
        return list(program.items)
    texts = list(map(str, program.items))
    if numbers and not any(isinstance(_number_or_word(text), str) for text in texts):
        return [_number_or_word(text) for text in texts]
    by_text = _by_text(known)
    return [by_text[text][0] if len(by_text.get(text, ())) == 1 else text for text in texts]


def as_typed(tokens: Sequence[Value], characters: bool = False) -> str:
    """Tokens as one types them in a shell.

    >>> as_typed([3, 1, 2]), as_typed("({})", characters=True)
    ('3 1 2', "'({})'")
    """
    texts = list(map(str, tokens))
    if characters and all(len(text) == 1 for text in texts):
        return shlex.quote("".join(texts))
    return shlex.join(texts)


def _split(words: Sequence[str], known: Sequence[Value], characters: bool) -> TypedWords:
    """Split the input into words, one for each token."""
    spelled = set(map(str, known))
    if len(words) != 1:
        for word in words:
            if word not in spelled:
                _refuse_shell_signs(word)
        return TypedWords(tuple(words))
    (word,) = words
    if word in spelled or _is_option(word):
        return TypedWords((word,))
    if not word or (characters and all(character in spelled for character in word)):
        return TypedWords(tuple(word))
    listed = _json_list(word, spelled)
    if listed is not None:
        return TypedWords(tuple(listed), exact=True)
    if not _quoted(word) and "," in word and len(word) > 1:
        return TypedWords(tuple(_between_commas(word)))
    _refuse_shell_signs(word)
    return TypedWords(tuple(word) if characters else (word,))


def _json_list(text: str, spelled: object) -> list[Value] | None:
    """The values of a JSON list, or None if the text is not one.

    Refuses text that looks like a broken list, unless `spelled`: its characters are all tokens.
    """
    if not (text.startswith("[") and text.endswith("]") and len(text) > 2):
        return None
    try:
        return [_as_token(item) for item in json.loads(text)]
    except ValueError as error:
        if '"' in text or ("," in text and not spelled):
            raise typer.BadParameter(f"{text!r} is not a JSON list: {error}") from None
        return None


def _as_token(item: object) -> Value:
    if isinstance(item, dict):
        raise typer.BadParameter(f"{json.dumps(item)} cannot be a token")
    return tuple(map(_as_token, item)) if isinstance(item, list) else item


def _between_commas(text: str) -> list[str]:
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise typer.BadParameter(f'{text!r} has an empty token; a comma is written in JSON: ["a", ","]')
    return words


def _number_or_word(word: str) -> Value:
    for number in (int, float):
        try:
            return number(word)
        except ValueError:
            continue
    return word


def _quoted(word: str) -> bool:
    return len(word) > 1 and word[0] in QUOTES and word[-1] == word[0]


def _for_the_shell(word: str) -> str:
    """The part of a word that was probably meant for the shell."""
    if any(character.isspace() for character in word):
        return "spaces"
    return "quotes around it" if _quoted(word) else ""


def _refuse_shell_signs(word: str) -> None:
    wrong = _for_the_shell(word)
    if not wrong:
        return
    plain = (word[1:-1] if _quoted(word) else word).split()
    instead = f"if they are not tokens, write {shlex.join(plain)}; " if plain else ""
    listed = shlex.quote(json.dumps(list(word), ensure_ascii=False))
    raise InputError(f"the input {word!r} has {wrong}", hint=f"{instead}if they are, write a JSON list: {listed}")


def _by_text(vocab: Sequence[Value]) -> dict[str, list[Value]]:
    by_text: dict[str, list[Value]] = {}
    for token in vocab:
        by_text.setdefault(str(token), []).append(token)
    return by_text


def _meant(
    word: Value, place: int, exact: bool, vocab: Sequence[Value], by_text: Mapping[str, Sequence[Value]]
) -> Value:
    """The token of the vocabulary that a word means."""
    if exact:
        for token in vocab:
            if type(token) is type(word) and token == word:
                return token
    found = by_text.get(str(word), [])
    if len(found) > 1:
        raise InputError(
            f"{word!r} could be any of {[*found]!r}",
            hint=f"the vocabulary has tokens that print alike; write a JSON list: '{json.dumps([str(word)])}'",
        )
    if not found:
        raise _unknown(str(word), place, by_text)
    return found[0]


def _is_option(word: str) -> bool:
    return word.startswith("--") and len(word) > 2


def _unknown(word: str, position: int, by_text: Mapping[str, object]) -> Exception:
    if word.startswith("-") and len(word) > 1:
        return typer.BadParameter(f"{word} is neither an option nor a token of the vocabulary")
    if len(word) > 1 and all(character in by_text for character in word):
        hint = f"put spaces between tokens: {shlex.join(word)}"
    else:
        shown = list(by_text)
        more = f" ... ({len(shown)} tokens)" if len(shown) > SHOWN else ""
        hint = f"the vocabulary is {' '.join(shown[:SHOWN])}{more}; --vocab sets another"
    return InputError(f"token {word!r} at position {position} is not in the vocabulary", hint=hint)
