"""One vocabulary for inputs and outputs, and a word-level tokenizer for it.

Every value has a word: first the tokens of the model, with the same ids as in the model, then BOS and PAD, then the
output values that are not tokens. The word of a string is the string; other values are written as Python prints them.
White space becomes ␣. If two values would have the same word, the later one gets its type as a suffix: `1:int`. So do
BOS and PAD if their words are part of a token's word: a tokenizer finds them there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tracr.values import Value, value_text

if TYPE_CHECKING:
    from tracr.runtime.vocabulary import Vocabulary

__all__ = ["Words", "tokenizer_config_json", "tokenizer_json"]


@dataclass(frozen=True)
class Words:
    """The word of each id; `values` are the meanings of the words, `inputs` counts the tokens of the model.

    Words beyond the values have no value.
    """

    words: tuple[str, ...]
    values: tuple[Value, ...]
    inputs: int

    @staticmethod
    def of(vocabulary: Vocabulary, outputs: Sequence[Value], extra: Sequence[str] = ()) -> Words:
        """Words for the model's tokens, BOS, PAD, the outputs that are not tokens, and `extra` ones."""
        tokens = {_key(value) for value in vocabulary.tokens}
        others = {_key(value): value for value in outputs if _key(value) not in tokens}
        values = (*vocabulary.tokens, vocabulary.bos, vocabulary.pad, *others.values())
        words: dict[str, None] = {}
        for place, value in enumerate((*values, *extra)):
            special = place - len(vocabulary.tokens) in (0, 1)
            words[_unique(value, words, inside=special)] = None
        return Words(tuple(words), values, len(vocabulary.tokens))

    @property
    def bos(self) -> int:
        """The id of BOS."""
        return self.inputs

    @property
    def pad(self) -> int:
        """The id of PAD."""
        return self.inputs + 1

    @cached_property
    def ids(self) -> dict[tuple[type, Value], int]:
        """The id of each token and output, by type and value."""
        special = (self.bos, self.pad)
        return {_key(value): number for number, value in enumerate(self.values) if number not in special}

    def id_of(self, value: Value) -> int:
        """The id of a token or an output."""
        return self.ids[_key(value)]

    def is_input(self, number: int) -> bool:
        """Whether an id may occur in an input."""
        return number < self.inputs


def _key(value: Value) -> tuple[type, Value]:
    """The key of a value's word: 1 and True are equal, but are written differently."""
    return type(value), value


def _unique(value: Value, taken: dict[str, None], inside: bool) -> str:
    """A new word for a value; one that is not part of a word before, either, if it must not be found inside one."""

    def known(word: str) -> bool:
        return word in taken or (inside and any(word in other for other in taken))

    plain = value_text(value)
    word = "".join("␣" if character.isspace() else character for character in plain) or "''"
    if known(word):
        word = f"{word}:{type(value).__name__}"
    number, base = 2, word
    while known(word):
        word, number = f"{base}_{number}", number + 1
    return word


def tokenizer_json(words: Words) -> dict[str, Any]:
    """A tokenizer that splits at white space, puts BOS first, and refuses words it does not know.

    When decoded, each word except BOS has a space before it, also the first one: `pipeline` decodes only the new words
    and appends them to the given text.
    """
    special = [
        {
            "id": number,
            "content": words.words[number],
            "single_word": True,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for number in (words.bos, words.pad)
    ]
    bos = words.words[words.bos]
    first = {"SpecialToken": {"id": bos, "type_id": 0}}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [first, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [first, {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {bos: {"id": bos, "ids": [words.bos], "tokens": [bos]}},
        },
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"Regex": f"^(?!{re.escape(bos)}$)"}, "content": " "},
                {"type": "Fuse"},
            ],
        },
        "model": {
            "type": "WordLevel",
            "vocab": {word: number for number, word in enumerate(words.words)},
            "unk_token": "",
        },
    }


def tokenizer_config_json(words: Words, longest: int) -> dict[str, Any]:
    """`tokenizer_config.json`: it lets `AutoTokenizer` load the tokenizer of `tokenizer_json`."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": words.words[words.bos],
        "pad_token": words.words[words.pad],
        "padding_side": "right",
        "model_max_length": longest,
        "model_input_names": ["input_ids", "attention_mask"],
        "clean_up_tokenization_spaces": False,
    }
