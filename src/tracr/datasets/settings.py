"""What is made of every program of a dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tracr.datasets.realisations import RealisationChoice

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings:
    """Compile options, the number of inputs each model is checked on, the number of programs in a shard, which other
    models of each program are made, and whether labels and ground truth are stored."""

    level: int = 1
    budget: int = 2_000
    shard_size: int = 100
    realisations: tuple[RealisationChoice, ...] = ()
    truth: bool = True

    def to_json(self) -> dict[str, Any]:
        """The settings by name; the last two only if they are not the usual ones, as in folders of older versions."""
        data: dict[str, Any] = {"level": self.level, "budget": self.budget, "shard_size": self.shard_size}
        if self.realisations:
            data["realisations"] = list(map(str, self.realisations))
        return data if self.truth else {**data, "truth": False}
