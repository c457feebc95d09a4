"""The cases of the laboratory: the programs of the zoo whose answers depend on the input."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from tracr import zoo
from tracr.lab.one_case import Case
from tracr.values import Value

__all__ = ["case", "cases"]

CONSTANT = frozenset({"length", "sort_unique"})
"""Entries that are no cases at their default size: all inputs of one length have one answer."""


@cache
def _default(name: str) -> Case:
    return Case(zoo.get(name))


def case(name: str, *, vocab: Iterable[Value] | None = None, max_seq_len: int | None = None) -> Case:
    """The case of a program of the zoo, for its default vocabulary and length or for others.

    >>> case("sort_unique", vocab=range(6), max_seq_len=4).length
    4
    """
    if vocab is None and max_seq_len is None:
        return _default(name)
    return Case(zoo.get(name).made_for(vocab, max_seq_len))


def cases(tag: str | None = None) -> list[Case]:
    """All cases at their default sizes, or those with a tag of the zoo.

    >>> [one.name for one in cases("ngrams")][:2]
    ['bigram_count', 'trigram_count']
    """
    return [case(name) for name in zoo.names(tag) if name not in CONSTANT]
