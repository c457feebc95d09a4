"""Random programs as records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from tracr.datasets.bounds import ModelBounds
from tracr.datasets.controls import Controls
from tracr.errors import FormatError, TracrError
from tracr.rasp.expressions import SOp
from tracr.rasp.size import ProgramSize

__all__ = ["OVER", "Record", "Refusal"]

OVER = "OverBounds"  # the `error` of a program whose model is too large
INPUTS = ("vocab", "max_seq_len", "causal")


@dataclass(frozen=True)
class Refusal:
    """Why a program could not become a model."""

    error: str
    what: str
    hint: str

    @classmethod
    def of(cls, error: TracrError) -> Self:
        """The refusal that an error describes."""
        where = f"{error.diagnostic.expression}: " if error.diagnostic.expression else ""
        return cls(type(error).__name__, where + error.diagnostic.what, error.diagnostic.hint)


@dataclass(frozen=True)
class Record:
    """A random program: its seed and controls, its text, its measures and the key of its meaning.

    `id` numbers the programs of a dataset. A program that the compiler refused to tabulate, or whose model exceeds the
    bounds, has no id and no meaning; `refused` gives the reason.
    """

    id: int | None
    seed: tuple[int, int]
    controls: Controls
    source: str
    size: ProgramSize
    kinds: Mapping[str, int]
    meaning: str | None
    refused: Refusal | None = None
    bounds: ModelBounds | None = None

    @property
    def program(self) -> SOp:
        """The program, drawn again; `exec(record.source)` makes one of the same structure."""
        return self.controls.program(self.seed)

    def to_json(self) -> dict[str, Any]:
        """The record as `json` can write it; the order of the keys is always the same."""
        controls = self.controls.to_json()
        return {
            "id": self.id,
            "seed": list(self.seed),
            "meaning": self.meaning,
            **{name: controls.pop(name) for name in INPUTS},
            **vars(self.size),
            "kinds": dict(self.kinds),
            "source": self.source,
            "refused": None if self.refused is None else vars(self.refused),
            "controls": controls,
            **({} if self.bounds is None else {"bounds": self.bounds.to_json()}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Record:
        """The record that `to_json` wrote."""
        try:
            controls = Controls.from_json({**data["controls"], **{name: data[name] for name in INPUTS}})
            first, second = data["seed"]
            return cls(
                data["id"],
                (first, second),
                controls,
                data["source"],
                ProgramSize(data["ops"], data["depth"], data["selectors"]),
                data["kinds"],
                data["meaning"],
                None if data["refused"] is None else Refusal(**data["refused"]),
                ModelBounds.from_json(data["bounds"]) if "bounds" in data else None,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(
                f"this is not the record of a program: {type(error).__name__}: {error}",
                hint="sample the programs again",
            ) from None
