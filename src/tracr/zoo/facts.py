"""What was measured of every program of the zoo at its default size; `benchmarks/zoo_facts.py` writes the table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["DIFFICULTIES", "AdmittedTwins", "ZooFacts", "facts_of"]

TABLE = Path(__file__).with_name("facts.json")

DIFFICULTIES: Mapping[str, tuple[int, int]] = {"easy": (2, 3), "medium": (4, 6)}
"""The most layers and the most components of each difficulty; what has more is hard."""

ENDS = ("embed", "pos_embed", "unembed")  # nodes that every model has


@dataclass(frozen=True)
class AdmittedTwins:
    """Twins of a program: how many were trained and admitted (docs/natural.md), and their vocabulary and length."""

    trained: int
    admitted: int
    tokens: int
    length: int


@dataclass(frozen=True)
class ZooFacts:
    """What was measured of a program at its default vocabulary and length, with version `tracr` of this package.

    Args:
        tracr: the version.
        meaning: the key of the tabulated program (`tracr.datasets.meaning`).
        layers, d_model, parameters: sizes at level 1; `heads`: the most in one layer.
        roles: the roles of every component at level 1 (docs/lab-answers.md).
        rejections: for levels 0, 1 and 2 the reason why the checker rejects the model in float32, padded; empty if it
            accepts it (docs/certificate.md).
        twins: of the program's twins; `None` if none were trained.
    """

    tracr: str
    meaning: str
    layers: int
    heads: int
    d_model: int
    parameters: int
    roles: Mapping[str, tuple[str, ...]]
    rejections: tuple[str, ...]
    twins: AdmittedTwins | None

    @property
    def components(self) -> int:
        """The number of heads and of MLPs at level 1."""
        return sum(name not in ENDS for name in self.roles)

    @property
    def difficulty(self) -> str:
        """By layers and components at level 1: easy up to 2 and 3, medium up to 4 and 6, else hard."""
        for name, (layers, components) in DIFFICULTIES.items():
            if self.layers <= layers and self.components <= components:
                return name
        return "hard"

    @property
    def certified(self) -> tuple[int, ...]:
        """The levels at which the checker accepted the model."""
        return tuple(level for level, reason in enumerate(self.rejections) if not reason)


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))
    return table


def facts_of(name: str) -> ZooFacts:
    """The facts of the program of this name."""
    row = dict(_table()["programs"][name])
    roles = {component: tuple(one) for component, one in row.pop("roles").items()}
    twins = row.pop("twins")
    return ZooFacts(
        tracr=_table()["tracr"],
        roles=roles,
        rejections=tuple(row.pop("rejections")),
        twins=None if twins is None else AdmittedTwins(**twins),
        **row,
    )
