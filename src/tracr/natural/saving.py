"""Saving a twin: its weights and measurements, and its teacher.

twin.json               format, version, architecture, seed, steps, admission, the digest of the weights
twin.safetensors        the weights in float32, under their TransformerLens names
teacher/                the compiled model, as `model.save` writes it
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from tracr.errors import FormatError, TracrError
from tracr.ir.parameters import Parameters
from tracr.natural.admission import Admission, Rate, SiteAdmission
from tracr.natural.architecture import ACTIVATIONS, Architecture, architecture_of
from tracr.natural.twin_model import TwinModel
from tracr.saving import models
from tracr.saving.folders import read_file, write_folder
from tracr.saving.json_reader import Reader, parse

__all__ = ["files_of", "is_twin", "load", "packed_weights", "read_weights", "save"]

FORMAT, VERSION = "tracr twin", 1
INFO, WEIGHTS, TEACHER = "twin.json", "twin.safetensors", "teacher"
LARGEST_JSON = 2**26


def is_twin(folder: str | Path) -> bool:
    """Whether a folder holds a twin."""
    return (Path(folder) / INFO).is_file()


def save(twin: TwinModel, folder: str | Path, *, overwrite: bool = False) -> None:
    """Write the twin into `folder`, completely or not at all."""
    path = Path(folder).resolve()
    held = {entry.name for entry in path.iterdir()} if path.is_dir() else set()
    models.check_target(path, overwrite, is_twin(path) and held <= {INFO, WEIGHTS, TEACHER})
    write_folder(path, files_of(twin))


def files_of(twin: TwinModel) -> dict[str, bytes]:
    """The files of a saved twin; that of its folder first."""
    packed = packed_weights(twin.parameters)
    info = {
        "format": FORMAT,
        "version": VERSION,
        "architecture": asdict(twin.architecture),
        "seed": twin.seed,
        "steps": twin.steps,
        "admission": _admission_json(twin.admission),
        "sha256": hashlib.sha256(packed).hexdigest(),
    }
    teacher = {f"{TEACHER}/{name}": data for name, data in models.files_of(twin.teacher).items()}
    return {INFO: json.dumps(info, indent=1).encode() + b"\n", WEIGHTS: packed, **teacher}


def load(folder: str | Path, *, max_parameters: int = models.PARAMETERS) -> TwinModel:
    """The twin that `save` wrote; raises a `FormatError` for anything else."""
    path = Path(folder)
    teacher = models.load_compiled(path / TEACHER, max_parameters=max_parameters)
    try:
        keys = ("format", "version", "architecture", "seed", "steps", "admission", "sha256")
        given = parse(read_file(path / INFO, LARGEST_JSON), INFO).object(keys)
        given["format"].choice((FORMAT,))
        if given["version"].integer() != VERSION:
            given["version"].fail(f"is not {VERSION}, which this tracr reads")
        architecture = _architecture(given["architecture"])
        if architecture != architecture_of(
            teacher,
            architecture.width,
            architecture.d_head,
            architecture.d_mlp,
            layer_norm=architecture.layer_norm,
            activation=architecture.activation,
        ):
            given["architecture"].fail("is not one for this teacher")
        weights = read_weights(path / WEIGHTS, architecture.shapes(teacher), given["sha256"].text(), max_parameters)
        return TwinModel(
            teacher,
            architecture,
            Parameters.of(weights),
            _admission(given["admission"], architecture),
            given["seed"].integer(low=-(2**63)),
            given["steps"].integer(),
        )
    except TracrError as error:
        raise FormatError(
            f"{path} is not a twin that can be loaded: {error.diagnostic.what}", hint="save the twin again"
        ) from None


def packed_weights(parameters: Parameters, **more: Any) -> bytes:
    """The weights in float32, under their TransformerLens names, and other arrays."""
    arrays = {**dict(parameters.named()), **more}
    return safetensors.numpy.save(
        {name: np.ascontiguousarray(array, dtype=np.float32) for name, array in arrays.items()}
    )


def read_weights(
    path: Path, shapes: dict[str, tuple[int, ...]], digest: str, max_parameters: int
) -> dict[str, NDArray[np.float32]]:
    """The arrays of a file that `packed_weights` made, with these shapes and this digest."""
    packed = read_file(path, 4 * max_parameters + LARGEST_JSON)
    if hashlib.sha256(packed).hexdigest() != digest:
        raise FormatError(f"{path.name} was changed after it was saved")
    weights = models.tensors(packed, path.name)
    if set(weights) != set(shapes):
        raise FormatError(f"{path.name} lacks or should not have {', '.join(sorted(set(weights) ^ set(shapes))[:5])}")
    for name, shape in shapes.items():
        if weights[name].shape != shape or weights[name].dtype != np.float32 or not np.isfinite(weights[name]).all():
            raise FormatError(f"{name} is not a finite float32 array of shape {shape}")
    return {name: weights[name] for name in shapes}


def _architecture(reader: Reader) -> Architecture:
    given = reader.object(("layers", "width", "d_head", "d_mlp", "layer_norm", "activation"))
    sizes = {name: given[name].integer(1, 2**20) for name in ("layers", "width", "d_head", "d_mlp")}
    layer_norm, activation = given["layer_norm"].boolean(), given["activation"].choice(ACTIVATIONS)
    return Architecture(**sizes, layer_norm=layer_norm, activation=activation)


def _admission_json(admission: Admission) -> dict[str, Any]:
    return {
        "accuracy": [admission.accuracy.hits, admission.accuracy.tries],
        "every_input": admission.every_input,
        "sites": [
            [
                site.site,
                site.wired,
                [site.agreement.hits, site.agreement.tries],
                [site.false_changes.hits, site.false_changes.tries],
                site.tried,
                site.undefined,
            ]
            for site in admission.sites
        ],
    }


def _admission(reader: Reader, architecture: Architecture) -> Admission:
    given = reader.object(("accuracy", "every_input", "sites"))
    names = [str(site) for site in architecture.sites.all]
    sites = []
    for name, place in zip(names, given["sites"].items(count=len(names)), strict=True):
        site, wired, agreement, false_changes, tried, undefined = place.items(count=6)
        site.choice((name,))
        sites.append(
            SiteAdmission(
                name, wired.boolean(), _rate(agreement), _rate(false_changes), tried.integer(), undefined.integer()
            )
        )
    return Admission(_rate(given["accuracy"]), given["every_input"].boolean(), tuple(sites))


def _rate(reader: Reader) -> Rate:
    hits, tries = (item.integer() for item in reader.items(count=2))
    if hits > tries:
        reader.fail("has more hits than tries")
    return Rate(hits, tries)
