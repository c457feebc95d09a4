"""A folder of twins that were trained before, each as `twin.save` writes it.

FOLDER/NAME-SEED       as `benchmarks/twins.py` writes them
FOLDER/NAME/seedSEED   as `tracr twin PROGRAM PROGRAM -o FOLDER` writes them
FOLDER/NAME            a single twin of a program, if it has the seed
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracr.arguments import path
from tracr.errors import TracrError
from tracr.lab.subject_cache import key_of
from tracr.natural.saving import is_twin, load

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel
    from tracr.natural.twin_model import TwinModel

__all__ = ["TWINS_VARIABLE", "TwinFolder", "require_teacher"]

TWINS_VARIABLE = "TRACR_TWINS"


@dataclass(frozen=True)
class TwinFolder:
    """A folder of twins."""

    folder: Path

    @staticmethod
    def of(folder: str | Path | None) -> TwinFolder | None:
        """The folder given, else that of the variable TRACR_TWINS, else none."""
        chosen = os.environ.get(TWINS_VARIABLE) if folder is None else folder
        if not chosen:
            return None
        found = path("twins", chosen)
        if not found.is_dir():
            raise TracrError(f"there is no folder {found} with twins", hint="name the folder that holds NAME-SEED")
        return TwinFolder(found)

    def twin(self, name: str, seed: int, teacher: CompiledModel) -> TwinModel:
        """The twin of a program with a seed; refused if it is not there or has another teacher."""
        places = [self.folder / f"{name}-{seed}", self.folder / name / f"seed{seed}", self.folder / name]
        for place in filter(is_twin, places):
            found = load(place)
            if found.seed == seed:
                require_teacher(found, teacher, name, f"the twin in {place}")
                return found
        raise TracrError(
            f"there is no twin of {name} with seed {seed} in {self.folder}",
            hint=f"train it: tracr twin zoo:{name} --seeds {seed} -o {self.folder / name}",
        )


def require_teacher(twin: TwinModel, model: CompiledModel, name: str, what: str) -> None:
    """Refuse a twin of another compiled model: weights, inputs and outputs must be the same."""
    if key_of(twin.teacher, {}) != key_of(model, {}):
        raise TracrError(
            f"{what} is not one of the case {name}: its teacher is not the case's compiled model",
            hint="name its own case, with the vocabulary and length that it was trained for",
        )
