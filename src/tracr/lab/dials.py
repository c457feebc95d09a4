"""Dials by name: each stands for a few realisations that differ in one thing, with stated values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tracr.errors import UnknownName
from tracr.lab.choices import Configured, read_configured
from tracr.lab.realising import REALISATIONS
from tracr.spelling import did_you_mean

__all__ = ["DIALS", "Dial", "dial_realisations"]


@dataclass(frozen=True)
class Dial:
    """A dial: its name, what it changes, and the realisations that it stands for."""

    name: str
    says: str
    realisations: tuple[str, ...]


_NAMED = (
    Dial("gap", "how sharp attention is: logits between selected keys and others",
         ("compiled:gap=16", "compiled:gap=64", "compiled")),
    Dial("level", "the level of the compiler", ("compiled:level=0", "compiled", "compiled:level=2")),
    Dial("rotation", "the residual stream rotated or not", ("compiled", "rotated")),
    Dial("superposition", "features in fewer dimensions or not", ("compiled", "superposed")),
    Dial("softness", "how far labels may be off, in softened models",
         ("compiled", "softened:error=0.1", "softened", "softened:error=0.4")),
    Dial("decoys", "the number of decoys", ("compiled", "decoys", "decoys:count=2", "decoys:count=4")),
    Dial("width", "the width of twins (trained: minutes each)", ("twin:width=32", "twin", "twin:width=128")),
)  # fmt: skip
DIALS: Mapping[str, Dial] = MappingProxyType(
    {
        **{one.name: one for one in _NAMED},
        **{
            name: Dial(name, f"the realisation {name} or not", ("compiled", name))
            for name in REALISATIONS
            if name not in {one.name for one in _NAMED} | {"compiled"}
        },
    }
)
"""All dials by name; a realisation that has no dial of its own is one with the values off and on."""


def dial_realisations(names: Iterable[str]) -> list[Configured]:
    """The realisations that dials stand for, each once.

    >>> [str(one) for one in dial_realisations(["gap", "rotation"])]
    ['compiled:gap=16', 'compiled:gap=64', 'compiled', 'rotated']
    """
    found: dict[str, Configured] = {}
    for name in names:
        if name not in DIALS:
            hint = did_you_mean(str(name), DIALS, f"there are {', '.join(DIALS)}")
            raise UnknownName(f"there is no dial {name!r}", hint=hint)
        found |= {one: read_configured(one) for one in DIALS[name].realisations}
    return list(found.values())
