"""A folder of subjects that were made before: each in a subfolder named by a digest of how it was made.

KEY/subject.json    case, realisation, seed and dials, and the digest of the model's weights
KEY/model/          the model, as its `save` writes it (safetensors and JSON)
KEY.training/       the state of training of a twin, until it is finished
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.arguments import path
from tracr.errors import FormatError
from tracr.ir.parameters import Parameters
from tracr.loading import load
from tracr.writing import sibling, sync, write_file, written_to

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel

__all__ = ["VARIABLE", "SubjectCache", "key_of", "weights_digest"]

VARIABLE = "TRACR_CACHE"
INFO, MODEL = "subject.json", "model"


def weights_digest(parameters: Parameters) -> str:
    """A digest of all weights: their names, shapes and values in float32."""
    found = hashlib.sha256()
    for name, array in parameters.named():
        found.update(f"{name} {np.shape(array)} ".encode())
        found.update(np.ascontiguousarray(array, dtype="<f4").tobytes())
    return found.hexdigest()[:32]


def key_of(base: CompiledModel, recipe: Mapping[str, Any]) -> str:
    """The digest of a recipe and of the compiled model that it starts from: its weights, inputs and outputs."""
    outputs = [(output.name, output.start, output.stop, repr(output.domain)) for output in base.outputs]
    inputs = [repr(base.options.vocab), base.options.max_seq_len, base.options.causal]
    whole = [weights_digest(base.parameters), inputs, outputs, dict(recipe)]
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class SubjectCache:
    """A folder of subjects."""

    folder: Path

    @staticmethod
    def of(folder: str | Path | None) -> SubjectCache | None:
        """The folder given, else that of the variable TRACR_CACHE, else none."""
        chosen = os.environ.get(VARIABLE) if folder is None else folder
        return SubjectCache(path("cache", chosen)) if chosen else None

    def read(self, key: str) -> Any | None:
        """The model with this key, or `None`; a damaged one raises a `FormatError`."""
        place = self.folder / key
        if not place.is_dir():
            return None
        model = load(place / MODEL)
        try:
            expected = json.loads((place / INFO).read_text(encoding="utf-8"))["digest"]
        except (OSError, ValueError, KeyError, TypeError):
            expected = None
        if weights_digest(model.parameters) != expected:
            raise FormatError(f"the subject in {place} is damaged", hint="delete this folder: it is made again")
        return model

    def training(self, key: str) -> Path:
        """The folder for the state of training of the model with this key."""
        return self.folder / f"{key}.training"

    def write(self, key: str, model: Any, about: Mapping[str, Any]) -> None:
        """Keep a model, completely or not at all. If another process has just kept it, that one stays."""
        place = self.folder / key
        with written_to(place):
            self.folder.mkdir(parents=True, exist_ok=True)
            temporary = sibling(place)
            try:
                temporary.mkdir()
                model.save(temporary / MODEL)
                info = {**about, "digest": weights_digest(model.parameters)}
                write_file(temporary / INFO, json.dumps(info, indent=1).encode() + b"\n")
                try:
                    temporary.rename(place)
                except OSError:
                    if not place.is_dir():
                        raise
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
            sync(self.folder)
        shutil.rmtree(self.training(key), ignore_errors=True)
