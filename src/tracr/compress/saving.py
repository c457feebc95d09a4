"""Saves a compressed model: the folder of its compiled model, with two more files.

compression.json            format, version, sharing of W, training, the digest of the other file
compressed.safetensors      `projection` [matrices, D, d], and the d-dimensional weights under their usual names
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from tracr.arguments import flag
from tracr.arguments import path as as_path
from tracr.compress.model import CompressedModel, Training, compressed_model
from tracr.compress.network import network_of
from tracr.compress.projection import Projection, ProjectionSites
from tracr.errors import FormatError
from tracr.ir.parameters import LayerParameters, Parameters
from tracr.saving import models
from tracr.saving.folders import read_file, write_folder
from tracr.saving.json_reader import Reader, parse
from tracr.writing import written_to

__all__ = ["is_compressed", "load", "save"]

FORMAT, VERSION = "tracr compressed model", 1
INFO, ARRAYS = "compression.json", "compressed.safetensors"
LARGEST_JSON = 2**26


def is_compressed(folder: str | Path) -> bool:
    """Whether a folder holds a compressed model."""
    return (Path(folder) / INFO).is_file()


def save(model: CompressedModel, folder: str | Path, *, overwrite: bool = False) -> None:
    """Write the model into `folder`, completely or not at all."""
    flag("overwrite", overwrite, error=FormatError)
    path = as_path("folder", folder, error=FormatError).resolve()
    with written_to(path):
        held = {entry.name for entry in path.iterdir()} if path.is_dir() else set()
        ours = is_compressed(path) and held <= {models.MANIFEST, *models.CONTENT, INFO, ARRAYS}
        models.check_target(path, overwrite, ours)
    content = models.files_of(model.compiled)
    arrays = {name: np.ascontiguousarray(array) for name, array in model.parameters.named()}
    packed = safetensors.numpy.save({"projection": np.ascontiguousarray(model.projection.matrices), **arrays})
    info = {
        "format": FORMAT,
        "version": VERSION,
        "writes": list(model.projection.sites.writes),
        "reads": list(model.projection.sites.reads),
        "training": {name: _plain(value) for name, value in asdict(model.training).items()},
        "sha256": hashlib.sha256(packed).hexdigest(),
    }
    write_folder(path, {**content, INFO: json.dumps(info, allow_nan=False).encode() + b"\n", ARRAYS: packed})


def load(folder: str | Path, *, max_parameters: int = models.PARAMETERS) -> CompressedModel:
    """Load a model written by `save`; anything else is refused with a `FormatError`."""
    path = Path(folder)
    compiled = models.load(path, max_parameters=max_parameters)
    try:
        given = parse(read_file(path / INFO, LARGEST_JSON), INFO).object(
            ("format", "version", "writes", "reads", "training", "sha256")
        )
        given["format"].choice((FORMAT,))
        if given["version"].integer() != VERSION:
            given["version"].fail(f"is not {VERSION}, which this tracr reads")
        packed = read_file(path / ARRAYS, 8 * max_parameters + LARGEST_JSON)
        if hashlib.sha256(packed).hexdigest() != given["sha256"].text():
            raise FormatError(f"{ARRAYS} was changed after it was saved", hint="save the model again")
        arrays = models.tensors(packed, ARRAYS)
        network = network_of(compiled.parameters, compiled.options.causal)
        projection = _projection(arrays.pop("projection", None), given, len(network.parts), compiled.d_model)
        expected = compressed_model(compiled, network, projection, _training(given["training"]))
        return _with_weights(expected, arrays)
    except FormatError as error:
        raise FormatError(
            f"{path} is not a model that can be loaded: {error.diagnostic.what}", hint="save the model again"
        ) from None


def _plain(value: Any) -> Any:
    """A value for JSON, which has no NaN and no infinity."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _training(reader: Reader) -> Training:
    given = reader.object(field.name for field in fields(Training))
    found: dict[str, Any] = {}
    for field in fields(Training):
        place = given[field.name]
        match field.name:
            case "method":
                found[field.name] = place.text()
            case "seed":
                found[field.name] = place.integer()
            case "interrupted":
                found[field.name] = place.boolean()
            case "starts" | "steps" | "curve":
                found[field.name] = tuple(_number(item) for item in place.items())
            case _:
                found[field.name] = _number(place)
    return Training(**found)


def _number(reader: Reader) -> float:
    return float("nan") if reader.data is None else float(reader.number())


def _projection(matrices: Any, given: dict[str, Reader], parts: int, width: int) -> Projection:
    if matrices is None or matrices.ndim != 3 or matrices.shape[1] != width or matrices.dtype != np.float64:
        raise FormatError(f"{ARRAYS} has no projection from {width} dimensions", hint="save the model again")
    if not np.isfinite(matrices).all():
        raise FormatError(f"{ARRAYS} has numbers that are not finite", hint="save the model again")
    writes, reads = (
        tuple(item.integer(0, len(matrices) - 1) for item in given[name].items(count=parts + 1))
        for name in ("writes", "reads")
    )
    return Projection(matrices, ProjectionSites(len(matrices), writes, reads))


def _with_weights(model: CompressedModel, arrays: dict[str, Any]) -> CompressedModel:
    """The model with the saved weights, which may be trained; their shapes must be those of the projection.

    Layers may have another number of neurons than in the compiled model.
    """
    expected = dict(model.parameters.named())
    if set(arrays) != set(expected):
        raise FormatError(
            f"{ARRAYS} lacks or should not have {', '.join(sorted(set(arrays) ^ set(expected))[:5])}",
            hint="save the model again",
        )
    for name, array in expected.items():
        wanted = _shape(name, array.shape, arrays)
        if arrays[name].shape != wanted or arrays[name].dtype != np.float64 or not np.isfinite(arrays[name]).all():
            raise FormatError(f"{name} is not a finite float64 array of shape {wanted}", hint="save the model again")
    w_e, w_pos, *blocks, w_u = (arrays[name] for name in expected)
    size = len(fields(LayerParameters))
    layers = tuple(LayerParameters(*blocks[start : start + size]) for start in range(0, len(blocks), size))
    return replace(model, folded=Parameters(w_e, w_pos, layers, w_u))


def _shape(name: str, expected: tuple[int, ...], arrays: dict[str, Any]) -> tuple[int, ...]:
    """The shape that saved weights must have: the projection's, with as many neurons as the layer's biases."""
    layer, _, kind = name.rpartition(".")
    bias = arrays.get(f"{layer}.b_in")
    if kind not in ("W_in", "b_in", "W_out") or bias is None or bias.ndim != 1:
        return expected
    return {"W_in": (expected[0], len(bias)), "b_in": (len(bias),), "W_out": (len(bias), expected[-1])}[kind]
