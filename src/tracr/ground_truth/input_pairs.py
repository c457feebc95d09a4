"""Pairs of a clean and a corrupted input, as users give them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tracr.errors import InputError
from tracr.values import Value

__all__ = ["TokenPair", "read_pairs"]

TokenPair = Any
"""A clean and a corrupted input of one length: a tuple of two, or an object with the attributes of these names."""

Tokens = tuple[Sequence[Value], ...]


def read_pairs(pairs: Iterable[TokenPair]) -> tuple[Tokens, Tokens]:
    """The clean and the corrupted inputs of pairs; those of a pair must have one length.

    >>> read_pairs([("aab", "abb")])
    (('aab',), ('abb',))
    """
    found: list[tuple[Sequence[Value], Sequence[Value]]] = []
    for pair in () if isinstance(pairs, str) else pairs:
        both = (pair.clean, pair.corrupted) if hasattr(pair, "corrupted") else pair
        if isinstance(both, str) or not isinstance(both, Sequence) or len(both) != 2:
            raise InputError(
                f"{pair!r} is not a pair of inputs", hint='write (clean, corrupted), such as ("aab", "abb")'
            )
        clean, corrupted = both
        if len(clean) != len(corrupted) or not len(clean):
            raise InputError(
                f"the pair {clean!r}, {corrupted!r} has {len(clean)} and {len(corrupted)} tokens",
                hint="clean and corrupted inputs have one length, at least 1",
            )
        found.append((clean, corrupted))
    if not found:
        raise InputError("there are no pairs", hint='pass a list of (clean, corrupted), such as [("aab", "abb")]')
    clean_inputs, corrupted_inputs = zip(*found, strict=True)
    return clean_inputs, corrupted_inputs
