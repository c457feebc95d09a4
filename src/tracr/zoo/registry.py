"""All entries of the zoo by name, and how to find them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType, ModuleType
from typing import Any

from tracr.arguments import text
from tracr.errors import UnknownName
from tracr.model.compiled import CompiledModel
from tracr.spelling import did_you_mean
from tracr.values import Value, short_repr
from tracr.zoo import (
    arithmetic,
    brackets,
    counting,
    lookup,
    ngrams,
    numbers,
    ordering,
    places,
    positions,
    repeats,
    runs,
    transforms,
    words,
)
from tracr.zoo.aliases import find, suggestion
from tracr.zoo.entry import Entry
from tracr.zoo.facts import ZooFacts, facts_of
from tracr.zoo.library import LIBRARY

__all__ = ["ENTRIES", "entries", "facts", "get", "load", "names", "tags"]

FAMILIES = (
    positions,
    lookup,
    ngrams,
    counting,
    repeats,
    arithmetic,
    ordering,
    runs,
    brackets,
    transforms,
    words,
    numbers,
    places,
)


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
    """The entry of a name, or of another name of the same task (`tracr/zoo/aliases.py`).

    >>> get("copy_next").description
    'the token after this one'
    >>> get("ioi").name
    'indirect_object'
    """
    found = find(text("name", name), ENTRIES)
    if found is None:
        raise UnknownName(f"the zoo has no program {short_repr(name)}", hint=suggestion(name, ENTRIES))
    return ENTRIES[found]


def facts(name: str) -> ZooFacts:
    """What was measured of a program at its default size: sizes, difficulty, roles, certificates, twins.

    >>> known = facts("induction_head")
    >>> known.difficulty, known.layers, known.components, known.certified
    ('easy', 2, 2, (0, 1, 2))
    >>> known.roles["blocks.0.attn.0"]
    ('copy_by_position',)
    """
    return facts_of(get(name).name)


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
