"""The cases of the laboratory: the programs of the zoo whose answers depend on the input.

All realisations of a case have the vocabulary and length at which its twins are trained (`natural/cases.py`), so that
they can be compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from tracr import zoo
from tracr.lab.one_case import Case
from tracr.natural.cases import case_of
from tracr.values import Value

__all__ = ["case", "cases"]

CONSTANT = frozenset({"length"})
"""Entries that are no cases: all inputs of one length have one answer."""


@cache
def _default(name: str) -> Case:
    return Case(case_of(name))


def case(name: str, *, vocab: Iterable[Value] | None = None, max_seq_len: int | None = None) -> Case:
    """The case of a program of the zoo, for the vocabulary and length of its twins or for others.

    >>> case("hist").vocab, case("hist", vocab="abc").vocab
    (('a', 'b', 'c', 'd'), ('a', 'b', 'c'))
    """
    if vocab is None and max_seq_len is None:
        return _default(name)
    return Case(case_of(name, vocab, max_seq_len))


def cases(tag: str | None = None) -> list[Case]:
    """All cases at their default sizes, or those with a tag of the zoo.

    >>> [one.name for one in cases("ngrams")][:2]
    ['bigram_count', 'trigram_count']
    """
    return [case(name) for name in zoo.names(tag) if name not in CONSTANT]
