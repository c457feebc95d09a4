"""Saves a learned model: its weights and measurements, and its compiled model.

learned.json            format, version, seed, noise, parts, verification, the digest of the weights
learned.safetensors     the weights in float32, a dimension per label, and `rotation`, `readout` if there are any
compiled/               the compiled model, as `model.save` writes it
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from tracr.errors import FormatError, TracrError
from tracr.ir.parameters import Parameters
from tracr.model.compiled import CompiledModel
from tracr.model.verification import Verification
from tracr.natural.learned.assembly import check_wiring
from tracr.natural.learned.codes import places_of
from tracr.natural.learned.directions import EXACT_READ, LabelDirections, read_error
from tracr.natural.learned.model import LearnedModel, LearnedPart
from tracr.natural.saving import LARGEST_JSON, packed_weights, read_weights
from tracr.runtime.uniform import Sizes, layer_shapes
from tracr.saving import models
from tracr.saving.folders import read_file, write_folder
from tracr.saving.json_reader import Reader, parse

__all__ = ["is_learned", "load", "save"]

FORMAT, VERSION = "tracr learned model", 1
INFO, WEIGHTS, COMPILED = "learned.json", "learned.safetensors", "compiled"
ROTATION, READOUT = "rotation", "readout"
ORTHONORMAL = 1e-4  # the largest deviation of a saved rotation


def is_learned(folder: str | Path) -> bool:
    """Whether a folder holds a learned model."""
    return (Path(folder) / INFO).is_file()


def save(learned: LearnedModel, folder: str | Path, *, overwrite: bool = False) -> None:
    """Write the model into `folder`, completely or not at all."""
    path = Path(folder).resolve()
    held = {entry.name for entry in path.iterdir()} if path.is_dir() else set()
    models.check_target(path, overwrite, is_learned(path) and held <= {INFO, WEIGHTS, COMPILED})
    write_folder(path, _files_of(learned))


def _files_of(learned: LearnedModel) -> dict[str, bytes]:
    turned = {} if learned.turned is None else {ROTATION: learned.turned.write}
    if learned.turned is not None and learned.superposed:
        turned[READOUT] = learned.turned.read
    packed = packed_weights(learned.weights, **turned)
    info = {
        "format": FORMAT,
        "version": VERSION,
        "seed": learned.seed,
        "noise": learned.noise,
        "width": None if learned.turned is None else learned.d_model,
        "superposed": learned.superposed,
        "d_head": [layer.b_Q.shape[1] for layer in learned.weights.layers],
        "neurons": {name: list(span) for name, span in learned.neurons.items()},
        "parts": [asdict(part) for part in learned.parts],
        "verified": _verified_json(learned.verified),
        "sha256": hashlib.sha256(packed).hexdigest(),
    }
    compiled = {f"{COMPILED}/{name}": data for name, data in models.files_of(learned.compiled).items()}
    return {INFO: json.dumps(info, indent=1).encode() + b"\n", WEIGHTS: packed, **compiled}


def load(folder: str | Path, *, max_parameters: int = models.PARAMETERS) -> LearnedModel:
    """The model that `save` wrote; raises a `FormatError` for anything else."""
    path = Path(folder)
    compiled = models.load_compiled(path / COMPILED, max_parameters=max_parameters)
    keys = ("format", "version", "seed", "noise", "width", "d_head", "neurons", "parts", "verified", "sha256")
    try:
        given = parse(read_file(path / INFO, LARGEST_JSON), INFO).object(keys, optional=["superposed"])
        given["format"].choice((FORMAT,))
        if given["version"].integer() != VERSION:
            given["version"].fail(f"is not {VERSION}, which this tracr reads")
        neurons = _neurons(given["neurons"], compiled)
        shapes = _shapes(compiled, given["d_head"], neurons)
        superposed = "superposed" in given and given["superposed"].boolean()
        if superposed or given["width"].data is not None:
            width = given["width"].integer(1 if superposed else compiled.d_model, 2**20)
            shapes[ROTATION] = (compiled.d_model, width)
            if superposed:
                shapes[READOUT] = (width, compiled.d_model)
        weights = read_weights(path / WEIGHTS, shapes, given["sha256"].text(), max_parameters)
        write, read = (weights.pop(name, None) for name in (ROTATION, READOUT))
        check_wiring(Parameters.of(weights), compiled, neurons)
        turned = None if write is None else _directions(write, read, Parameters.of(weights), given["width"])
        return LearnedModel(
            compiled,
            Parameters.of(weights),
            _parts(given["parts"], compiled),
            neurons,
            _verified(given["verified"]),
            given["noise"].number(),
            given["seed"].integer(),
            turned,
            superposed,
        )
    except TracrError as error:
        raise FormatError(
            f"{path} is not a learned model that can be loaded: {error.diagnostic.what}", hint="save the model again"
        ) from None


def _directions(write: Any, read: Any, weights: Parameters, place: Reader) -> LabelDirections:
    """The saved directions, with which every read must be exact."""
    write = write.astype(np.float64)
    if read is None:
        if np.abs(write @ write.T - np.eye(len(write))).max() > ORTHONORMAL:
            place.fail("has a rotation that is not orthogonal")
        return LabelDirections(write, write.T)
    found = LabelDirections(write, read.astype(np.float64))
    if not read_error(weights, found) <= EXACT_READ:
        place.fail("has directions that are not read exactly")
    return found


def _neurons(reader: Reader, compiled: CompiledModel) -> dict[str, tuple[int, int]]:
    """The neurons of each group: in each layer one group after the other."""
    names = [placed.name for placed in compiled.schedule.neurons()]
    given, found = reader.object(names), {}
    stops: dict[str, int] = {}
    for name in names:
        layer = name.rpartition(".")[0]
        start, stop = (item.integer(high=2**20) for item in given[name].items(count=2))
        if start != stops.get(layer, 0) or stop <= start:
            given[name].fail("does not follow the group before")
        found[name], stops[layer] = (start, stop), stop
    return found


def _shapes(
    compiled: CompiledModel, d_heads: Reader, neurons: dict[str, tuple[int, int]]
) -> dict[str, tuple[int, ...]]:
    """The shapes of all weights."""
    shapes = {name: array.shape for name, array in compiled.parameters.named() if not name.startswith("blocks.")}
    layers = compiled.parameters.layers
    for number, (layer, d_head) in enumerate(zip(layers, d_heads.items(count=len(layers)), strict=True)):
        stops = [stop for name, (_, stop) in neurons.items() if name.startswith(f"blocks.{number}.")]
        sizes = Sizes(len(layer.W_Q), d_head.integer(1, 2**20), max(stops, default=0))
        for name, shape in layer_shapes(sizes, compiled.d_model).items():
            part = "mlp" if name.endswith(("in", "out")) else "attn"
            shapes[f"blocks.{number}.{part}.{name}"] = shape
    return shapes


def _parts(reader: Reader, compiled: CompiledModel) -> tuple[LearnedPart, ...]:
    names = {where.name for where in places_of(compiled)}
    found = []
    for item in reader.items(count=len(names)):
        given = item.object(("name", "variables", "error", "noisy", "code_error", "margins"))
        numbers = [given[name].number() for name in ("error", "noisy", "code_error", "margins")]
        variables = tuple(one.text() for one in given["variables"].items())
        found.append(LearnedPart(given["name"].choice(names), variables, *numbers))
    return tuple(found)


def _verified_json(verified: Verification) -> dict[str, Any]:
    return {name: value for name, value in asdict(verified).items() if name not in ("counterexample", "own_weights")}


def _verified(reader: Reader) -> Verification:
    given = reader.object(("inputs", "exhaustive", "errors", "assumptions", "interpreted", "apart"))
    counts = {name: given[name].integer() for name in ("inputs", "errors", "interpreted", "apart")}
    return Verification(
        exhaustive=given["exhaustive"].boolean(),
        counterexample=None,
        own_weights=False,
        assumptions=tuple(item.text() for item in given["assumptions"].items()),
        **counts,
    )
