"""A library of parts: the components of the programs of the zoo, compiled for given tokens and a given length."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from tracr import zoo
from tracr.arguments import as_list, flag, whole
from tracr.errors import TracrError
from tracr.graft.observed import ObservedPart, observe
from tracr.graft.part import Part, parts_of
from tracr.values import Value, as_value

__all__ = ["distinct", "library"]


def library(
    vocab: Iterable[Value], max_seq_len: int, *, causal: bool = False, names: str | Iterable[str] | None = None
) -> list[Part]:
    """The parts of all programs of the zoo that can be compiled for these tokens, this length and this attention.

    Programs that need other tokens (numbers, brackets) are left out. Programs that are meant for causal attention are
    compiled without it if `causal` is false, and compute something else then: their components are parts as well.

    Args:
        vocab: the tokens that the parts' programs take.
        max_seq_len: the longest input, BOS not counted.
        causal: whether heads see earlier positions only.
        names: the programs, or one; by default all.
    """
    tokens = tuple(as_value(one, where="a token of vocab") for one in as_list("vocab", vocab))
    length = whole("max_seq_len", max_seq_len, 1)
    causal, chosen = flag("causal", causal), zoo.names() if names is None else as_list("names", names)
    if not tokens:
        raise TracrError("there are no tokens to compile programs for", hint='write vocab="abcd", for example')
    found: list[Part] = []
    for name in [names] if isinstance(names, str) else chosen:
        entry = zoo.get(name)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a program may be undefined on tokens that it was not written for
                model = entry.made_for(tokens, length).load(causal=causal)
        except TracrError:
            continue
        found += parts_of(model, name)
    return found


def distinct(parts: Sequence[Part], inputs: Sequence[Sequence[Any]]) -> list[tuple[ObservedPart, tuple[str, ...]]]:
    """One part of each kind, and the titles of the others that read and write the same values on these inputs.

    Parts whose output is constant on the inputs are left out.
    """
    kept: dict[tuple[str, ...], ObservedPart] = {}
    equal: dict[tuple[str, ...], list[str]] = {}
    for one in observe(parts, inputs):
        if one.output.count < 2:
            continue
        kept.setdefault(one.key, one)
        equal.setdefault(one.key, []).append(one.part.title)
    return [(one, tuple(equal[key][1:])) for key, one in kept.items()]
