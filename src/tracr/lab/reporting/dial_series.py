"""Realisations that differ in one dial, in the order of its values: what a method × dial plot shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tracr.craft.numerics import GAP
from tracr.errors import TracrError
from tracr.lab.choices import read_configured
from tracr.lab.realising import COMPILING, REALISATIONS

__all__ = ["DialSeries", "dial_series"]

USUAL = dict(zip(COMPILING, (1, GAP), strict=True))


@dataclass(frozen=True)
class DialSeries:
    """A dial of a realisation: its values, and the label of the realisation with each."""

    realisation: str
    dial: str
    values: tuple[str, ...]
    labels: tuple[str, ...]


def dial_series(labels: Sequence[str]) -> list[DialSeries]:
    """Every dial with two values or more, among realisations that differ in nothing else.

    >>> dial_series(["compiled", "compiled:gap=16", "rotated"])[0].values
    ('16', '256')
    """
    groups: dict[tuple[str, str], list[tuple[Any, str]]] = {}
    for label in labels:
        try:
            read = read_configured(label)
        except TracrError:
            continue
        usual = {**USUAL, **(REALISATIONS[read.name].dials if read.name in REALISATIONS else {})}
        for dial in read.settings if len(read.settings) == 1 else ():
            groups.setdefault((read.name, dial), []).append((read.settings[dial], label))
            if read.name in labels and dial in usual and (usual[dial], read.name) not in groups[read.name, dial]:
                groups[read.name, dial].append((usual[dial], read.name))
    found = []
    for (name, dial), pairs in groups.items():
        pairs.sort(key=lambda pair: (pair[0] is None, _number(pair[0]), str(pair[0])))
        if len(pairs) > 1:
            values = tuple("default" if value is None else _text(value) for value, _ in pairs)
            found.append(DialSeries(name, dial, values, tuple(label for _, label in pairs)))
    return found


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
