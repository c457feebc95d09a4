"""The models of a folder of shards as rows of a table: one row for each model, with weights padded to one shape."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.datasets.behaviour import Behaviour
from tracr.datasets.canonical import canonical
from tracr.datasets.splits import SPLITS, same_functions, split
from tracr.datasets.stored import StoredModel, read_models, read_sidecar
from tracr.errors import FormatError
from tracr.ir.parameters import LayerParameters, Parameters

__all__ = ["AXES", "ModelTable", "TableRow", "table_of"]

AXES: Mapping[str, tuple[str, ...]] = {
    "W_E": ("token", "dimension"),
    "W_pos": ("position", "dimension"),
    "W_Q": ("layer", "head", "dimension", "inside"),
    "b_Q": ("layer", "head", "inside"),
    "W_K": ("layer", "head", "dimension", "inside"),
    "b_K": ("layer", "head", "inside"),
    "W_V": ("layer", "head", "dimension", "inside"),
    "b_V": ("layer", "head", "inside"),
    "W_O": ("layer", "head", "inside", "dimension"),
    "b_O": ("layer", "dimension"),
    "W_in": ("layer", "dimension", "neuron"),
    "b_in": ("layer", "neuron"),
    "W_out": ("layer", "neuron", "dimension"),
    "b_out": ("layer", "dimension"),
    "W_U": ("dimension", "logit"),
}
"""The axes of each kind of weight, after the axis of models."""

Sizes = dict[str, int]


@dataclass(frozen=True, eq=False)
class TableRow:
    """One model: its facts (plain values for a table), and its weights and masks padded to the sizes of the table."""

    facts: dict[str, Any]
    weights: dict[str, NDArray[np.float32]]
    masks: dict[str, NDArray[np.bool_]]


@dataclass(frozen=True, eq=False)
class ModelTable:
    """The models of a folder of shards, with the size of every axis over all of them and the split of each program."""

    folder: Path
    sizes: Sizes
    splits: Mapping[int, str]
    groups: Mapping[int, int]
    models: int
    in_order: bool

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each kind of weight of one model."""
        return {kind: tuple(self.sizes[axis] for axis in axes) for kind, axes in AXES.items()}

    @property
    def bytes(self) -> int:
        """The size of all weights and masks, padded."""
        return self.models * sum(5 * int(np.prod(shape)) for shape in self.shapes.values())

    def rows(self) -> Iterator[TableRow]:
        """Every model, in the order of the shards, each followed by the realisations of its program."""
        shapes = self.shapes
        for model in read_models(self.folder, realisations=True):
            parameters = model.parameters
            order: dict[str, Any] = {}
            if self.in_order:
                parameters, permuted = canonical(parameters)
                order = permuted.to_json()
            weights = {kind: np.zeros(shape, dtype=np.float32) for kind, shape in shapes.items()}
            masks = {kind: np.zeros(shape, dtype=bool) for kind, shape in shapes.items()}
            for kind, place, array in _arrays(parameters):
                own: tuple[int | slice, ...] = (*place, *(slice(length) for length in array.shape))
                weights[kind][own] = array
                masks[kind][own] = True
            yield TableRow(self._facts(model, order), weights, masks)

    def _facts(self, model: StoredModel, order: Mapping[str, Any]) -> dict[str, Any]:
        entry, config = model.entry, model.entry["config"]
        measured = model.facts.get("measured") or {
            "inputs": entry["verification"]["inputs"],
            "exhaustive": entry["verification"]["exhaustive"],
            "wrong": 0,
            "padded": True,
        }
        seed = model.facts.get("seed")
        return {
            "id": model.id,
            "realisation": model.realisation,
            "split": self.splits[model.id],
            "group": self.groups[model.id],
            "meaning": entry["meaning"],
            "source": model.source,
            "realisation_seed": None if seed is None else json.dumps(seed),
            "amount": model.facts.get("amount"),
            "checked_inputs": measured["inputs"],
            "checked_all_inputs": measured["exhaustive"],
            "checked_padded": measured["padded"],
            "wrong_inputs": measured["wrong"],
            "vocab": json.dumps(entry["vocab"]),
            "max_seq_len": entry["max_seq_len"],
            "causal": entry["causal"],
            "n_layers": config["n_layers"],
            "d_model": int(model.parameters.W_E.shape[1]),
            "n_heads": list(config["n_heads"]),
            "d_head": list(config["d_head"]),
            "d_mlp": list(config["d_mlp"]),
            "n_parameters": sum(int(array.size) for array in model.weights.values()),
            "outputs": json.dumps(entry["outputs"]),
            "order": json.dumps(order),
        }


def table_of(
    folder: str | Path,
    shares: Mapping[str, float] = SPLITS,
    seed: int = 0,
    *,
    in_order: bool = True,
) -> ModelTable:
    """The table of the models of a folder of shards; the weights in canonical order, unless `in_order` is off."""
    folder = Path(folder)
    entries = [entry for path in sorted(folder.glob("shard-*.json")) for entry in read_sidecar(path)["programs"]]
    made = [entry for entry in entries if entry["status"] == "compiled"]
    if not made:
        raise FormatError(f"{folder} holds no models", hint="tracr sample --compile makes them")
    if any("behaviour" not in entry for entry in made):
        raise FormatError(
            f"{folder} was made by an older version, which did not store what programs compute",
            hint="delete its JSON files and run tracr sample --compile again",
        )
    behaviours = [Behaviour.from_json(entry["behaviour"]) for entry in made]
    chosen = split(behaviours, [entry["meaning"] for entry in made], shares, seed)
    groups = [made[first]["id"] for first in same_functions(behaviours)]
    numbers = [entry["id"] for entry in made]
    return ModelTable(
        folder,
        _largest(made),
        dict(zip(numbers, chosen, strict=True)),
        dict(zip(numbers, groups, strict=True)),
        sum(1 + sum(one["status"] == "made" for one in entry.get("realisations", ())) for entry in made),
        in_order,
    )


def _largest(entries: list[dict[str, Any]]) -> Sizes:
    """The size of every axis over all models; at least 1, which table formats need."""
    sizes = dict.fromkeys(("token", "position", "layer", "head", "inside", "neuron", "dimension", "logit"), 1)
    for entry in entries:
        config = entry["config"]
        widths = [one["d_model"] for one in entry.get("realisations", ()) if one["status"] == "made"]
        own = {
            "token": len(entry["vocab"]) + 2,
            "position": config["lengths"][1] + 1,
            "layer": config["n_layers"],
            "head": max(config["n_heads"], default=0),
            "inside": max(config["d_head"], default=0),
            "neuron": max(config["d_mlp"], default=0),
            "dimension": max([config["d_model"], *widths]),
            "logit": max(output["stop"] for output in entry["outputs"]),
        }
        sizes = {axis: max(size, own[axis]) for axis, size in sizes.items()}
    return sizes


def _arrays(parameters: Parameters) -> Iterator[tuple[str, tuple[int, ...], NDArray[Any]]]:
    """Every array by kind, with the number of its layer."""
    yield "W_E", (), parameters.W_E
    yield "W_pos", (), parameters.W_pos
    yield "W_U", (), parameters.W_U
    for number, layer in enumerate(parameters.layers):
        for one in fields(LayerParameters):
            yield one.name, (number,), getattr(layer, one.name)
