"""All entries of the zoo by name, and how to find them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType, ModuleType
from typing import Any

from tracr.errors import UnknownName
from tracr.model.compiled import CompiledModel
from tracr.spelling import did_you_mean
from tracr.values import Value
from tracr.zoo import (
    arithmetic,
    brackets,
    counting,
    lookup,
    ngrams,
    ordering,
    positions,
    repeats,
    runs,
    transforms,
)
from tracr.zoo.entry import Entry
from tracr.zoo.library import LIBRARY

__all__ = ["ENTRIES", "entries", "get", "load", "names", "tags"]

FAMILIES = (positions, lookup, ngrams, counting, repeats, arithmetic, ordering, runs, brackets, transforms)


def _written_here(modules: Iterable[ModuleType]) -> dict[str, Entry]:
    """The entries that modules define."""
    found = [value for module in modules for value in vars(module).values() if isinstance(value, Entry)]
    return {entry.name: entry for entry in found}


ENTRIES: Mapping[str, Entry] = MappingProxyType({**LIBRARY, **_written_here(FAMILIES)})
"""All entries: the library first, then the families in their order."""


def names(tag: str | None = None) -> list[str]:
    """The names of all programs, or of those with a tag.

    >>> names("library")[:3]
    ['length', 'hist', 'hist_bos']
    """
    return [entry.name for entry in entries(tag)]


def entries(tag: str | None = None) -> list[Entry]:
    """All entries, or those with a tag."""
    if tag is not None and tag not in tags():
        raise UnknownName(f"no entry of the zoo has the tag {tag!r}", hint=did_you_mean(tag, tags(), ", ".join(tags())))
    return [entry for entry in ENTRIES.values() if tag is None or tag in entry.tags]


def tags() -> list[str]:
    """All tags, in alphabetical order."""
    return sorted({tag for entry in ENTRIES.values() for tag in entry.tags})


def get(name: str) -> Entry:
    """The entry of a name.

    >>> get("copy_next").description
    'the token after this one'
    """
    if name not in ENTRIES:
        raise UnknownName(
            f"the zoo has no program {name!r}", hint=did_you_mean(name, ENTRIES, "`tracr zoo` and zoo.names() list all")
        )
    return ENTRIES[name]


def load(
    name: str,
    level: int = 1,
    *,
    vocab: Iterable[Value] | None = None,
    max_seq_len: int | None = None,
    **options: Any,
) -> CompiledModel:
    """The compiled model of a program of the zoo; `options` are those of `tracr.compile`.

    >>> load("rotate_left", level=2)("abcd")
    ['b', 'c', 'd', 'a']
    """
    return get(name).made_for(vocab, max_seq_len).load(level, **options)
