"""The examples of the playground: those in `examples/`, and the programs of the library that can be written as text."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

import tracr
from tracr.errors import ExpressionError
from tracr.rasp.programs import EXAMPLES
from tracr.saving.values_json import encode_value

__all__ = ["gallery"]

FIRST = ("shift", "palindrome", "majority", "sort", "induction")
LENGTH = 6


@cache
def gallery() -> list[dict[str, Any]]:
    """All examples: name, title, source, vocabulary, length and input."""
    return [*_written(), *_library()]


def _written() -> Iterator[dict[str, Any]]:
    """The examples in `examples/`; the first line is the title, `set example` the input and the vocabulary."""
    for name in FIRST:
        text = resources.files(__package__).joinpath(f"examples/{name}.rasp").read_text(encoding="utf-8")
        title, _, source = text.partition("\n")
        tokens = tracr.parse(text, folder=None).example or []
        yield {
            "name": name,
            "title": title.removeprefix("# "),
            "source": source.lstrip("\n"),
            "vocab": sorted(set(map(str, tokens))),
            "max_len": max(LENGTH, len(tokens)),
            "input": tokens,
        }


def _library() -> Iterator[dict[str, Any]]:
    for name, example in EXAMPLES.items():
        try:
            source = tracr.to_rasp(example.program, vocab=example.vocab, max_seq_len=example.max_seq_len)
        except ExpressionError:  # it has values that the language has not, such as None
            continue
        yield {
            "name": f"library/{name}",
            "title": example.description[:1].upper() + example.description[1:],
            "source": source,
            "vocab": [encode_value(token) for token in example.vocab],
            "max_len": example.max_seq_len,
            "input": [encode_value(token) for token in example.shown],
        }
