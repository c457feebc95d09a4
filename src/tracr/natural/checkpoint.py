"""The state of training on disk: written atomically after every round, read by a run with the same settings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import safetensors.numpy

from tracr.errors import FormatError, TracrError
from tracr.natural.architecture import Architecture
from tracr.natural.network import Tree
from tracr.natural.training import State, TwinRecipe
from tracr.saving.folders import read_file, write_folder
from tracr.saving.json_reader import parse

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel

__all__ = ["Checkpoint"]

SETTINGS, ARRAYS = "training.json", "training.safetensors"
LARGEST_SETTINGS, LARGEST_ARRAYS = 2**16, 2**32


@dataclass(frozen=True)
class Checkpoint:
    """A folder with the state of one training run."""

    folder: Path
    settings: str
    """A digest of everything that the run depends on."""

    @staticmethod
    def of(
        folder: str | Path | None,
        model: CompiledModel,
        architecture: Architecture,
        recipe: TwinRecipe,
        seeds: Sequence[int],
    ) -> Checkpoint | None:
        """The checkpoint in a folder, if one is given; the folder must be empty or hold a run with these settings."""
        if folder is None:
            return None
        digest = hashlib.sha256(json.dumps([asdict(architecture), asdict(recipe), list(seeds)]).encode())
        for name, array in model.parameters.named():
            digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
        found = Checkpoint(Path(folder).resolve(), digest.hexdigest())
        held = {entry.name for entry in found.folder.iterdir()} if found.folder.is_dir() else set()
        if held and not held <= {SETTINGS, ARRAYS}:
            raise TracrError(f"{found.folder} holds something other than a training run", hint="name another folder")
        if held and found._saved() != found.settings:
            raise TracrError(
                f"{found.folder} holds a training run with other settings", hint="name another folder, or delete it"
            )
        return found

    def _saved(self) -> str:
        given = parse(read_file(self.folder / SETTINGS, LARGEST_SETTINGS), SETTINGS).object(("settings", "done"))
        return given["settings"].text()

    def write(self, state: State) -> None:
        """Write the state."""
        leaves = jax.tree.leaves(_arrays(state))
        arrays = {f"{number:05d}": np.ascontiguousarray(leaf) for number, leaf in enumerate(leaves)}
        settings = json.dumps({"settings": self.settings, "done": state.done}).encode()
        write_folder(self.folder, {SETTINGS: settings, ARRAYS: safetensors.numpy.save(arrays)})

    @staticmethod
    def means(folder: str | Path, names: Iterable[str]) -> tuple[Tree, int]:
        """The running means of the weights with these names, of all seeds, and the steps done, of any run.

        `finish` can train them further, whatever the settings of the run were.
        """
        names, (done, arrays) = sorted(names), _saved_state(Path(folder))
        first = len(names) + 1  # leaves are sorted by name: admitted, admitted_after, averaged
        places = [f"{first + place:05d}" for place in range(len(names))]
        if missing := [place for place in places if place not in arrays]:
            raise FormatError(f"{ARRAYS} has no array {missing[0]}: it is of another model", hint="name another folder")
        return {name: arrays[place] for name, place in zip(names, places, strict=True)}, done

    def read(self, start: State) -> State:
        """The saved state; `start` if there is none yet."""
        if not (self.folder / SETTINGS).exists():
            return start
        done, arrays = _saved_state(self.folder)
        leaves, shape = jax.tree.flatten(_arrays(start))
        read: list[Any] = [arrays.get(f"{number:05d}") for number in range(len(leaves))]
        if any(array is None or array.shape != np.shape(leaf) for array, leaf in zip(read, leaves, strict=True)):
            raise FormatError(f"{ARRAYS} is not the state of this run", hint="delete the folder to train again")
        return State(done=done, **jax.tree.unflatten(shape, read))


def _saved_state(folder: Path) -> tuple[int, dict[str, Any]]:
    """The steps done, and the arrays of a saved state."""
    given = parse(read_file(folder / SETTINGS, LARGEST_SETTINGS), SETTINGS).object(("settings", "done"))
    try:
        arrays = safetensors.numpy.load(read_file(folder / ARRAYS, LARGEST_ARRAYS))
    except FormatError:
        raise
    except Exception as error:
        raise FormatError(f"{ARRAYS} is not a safetensors file: {error}", hint="delete the folder") from None
    return given["done"].integer(), arrays


def _arrays(state: State) -> dict[str, Any]:
    """All of a state but the steps done."""
    return {field.name: getattr(state, field.name) for field in fields(state) if field.name != "done"}
