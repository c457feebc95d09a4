"""A shard: the models of some programs in one safetensors file, and their descriptions in a JSON file beside it.

This module reads and writes no files, so a shard can be made on any machine.
"""

from __future__ import annotations

import hashlib
import json
import traceback
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from tracr.datasets.printing import run_python, to_python
from tracr.datasets.records import Record, Refusal
from tracr.errors import FormatError, TracrError, TracrWarning
from tracr.ir.domains import Finite
from tracr.ir.layout import ALWAYS
from tracr.model.compiled import CompiledModel
from tracr.model.compiling import compile_model
from tracr.model.residual import Dimension
from tracr.rasp.expressions import SOp
from tracr.runtime.outputs import Output
from tracr.saving.values_json import encode_value
from tracr.version import __version__

__all__ = ["Settings", "Shard", "ShardTask", "make_shard", "shard_name"]

FORMAT, VERSION = "tracr shard", 1


@dataclass(frozen=True)
class Settings:
    """Compile options, the number of inputs each model is checked on, and the number of programs in a shard."""

    level: int = 1
    budget: int = 2_000
    shard_size: int = 100


@dataclass(frozen=True)
class ShardTask:
    """A shard to make."""

    number: int
    records: tuple[Record, ...]
    settings: Settings


@dataclass(frozen=True)
class Shard:
    """The content of a shard's two files."""

    number: int
    weights: bytes
    sidecar: bytes


def shard_name(number: int) -> str:
    """The name of the files of a shard, without suffix."""
    return f"shard-{number:05d}"


def make_shard(task: ShardTask) -> Shard:
    """Compile the programs, check the models, and gather them. The same task gives the same bytes."""
    tensors: dict[str, NDArray[Any]] = {}
    entries = []
    for record in task.records:
        entry, model = _outcome(record, task.settings)
        entries.append({**_origin(record), **entry})
        if model is not None:
            for name, array in model.cast(np.float32).named():
                tensors[f"{record.id}.{name}"] = np.ascontiguousarray(array)
    weights = safetensors.numpy.save(tensors)
    digest = hashlib.sha256(weights).hexdigest()
    sidecar = {
        "format": FORMAT,
        "version": VERSION,
        "tracr": __version__,
        "settings": vars(task.settings),
        "weights": {"file": f"{shard_name(task.number)}.safetensors", "bytes": len(weights), "sha256": digest},
        "programs": entries,
    }
    return Shard(task.number, weights, json.dumps(sidecar, allow_nan=False).encode() + b"\n")


def _origin(record: Record) -> dict[str, Any]:
    data = record.to_json()
    return {name: data[name] for name in ("id", "seed", "meaning", "source", "vocab", "max_seq_len", "causal")}


def _outcome(record: Record, settings: Settings) -> tuple[dict[str, Any], CompiledModel | None]:
    """The outcome of a program, and its model if it compiled and is right."""
    try:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TracrWarning)
                model = compile_model({"output": _program(record)}, record.controls.options(settings.level))
        except TracrError as error:
            return {"status": "refused", "reason": vars(Refusal.of(error))}, None
        found = model.verify(settings.budget)
        if not found:
            return {"status": "wrong", "reason": str(found)}, None
        checked = {"inputs": found.inputs, "exhaustive": found.exhaustive, "errors": found.errors}
        return {"status": "compiled", "verification": checked, **_description(model)}, model
    except Exception:  # a bug; one program must not stop a run of thousands
        return {"status": "failed", "reason": traceback.format_exc()}, None


def _program(record: Record) -> SOp:
    """The program made from its source, so that expressions have their lines there as origins.

    The record may be untrusted: the text that its seed gives is executed, not the text of the record.
    """
    source = to_python(record.program)
    if source != record.source:
        raise FormatError(
            f"program {record.id} is not the program of its seed {list(record.seed)}",
            hint="draw the programs again with this version of tracr",
        )
    return run_python(source)


def _description(model: CompiledModel) -> dict[str, Any]:
    """The model's shape, its labels and its ground truth."""
    return {
        "config": {
            "n_layers": model.n_layers,
            "d_model": model.d_model,
            "n_heads": [len(layer.b_Q) for layer in model.parameters.layers],
            "d_head": [layer.b_Q.shape[1] for layer in model.parameters.layers],
            "d_mlp": [len(layer.b_in) for layer in model.parameters.layers],
            "n_parameters": model.n_parameters,
            "bos": encode_value(model.options.bos),
            "pad": encode_value(model.options.pad),
            "lengths": list(model.program.lengths),
        },
        "outputs": [_output(output) for output in model.outputs],
        "residual": [_dimension(dimension) for dimension in model.residual],
        "ground_truth": model.ground_truth.to_dict(),
        "warnings": [str(warning) for warning in model.program.warnings],
    }


def _output(output: Output) -> dict[str, Any]:
    """The logits of an output: their values, or `null` for a logit that is the number itself."""
    values = [encode_value(value) for value in output.domain.values] if isinstance(output.domain, Finite) else None
    return {"encoding": output.encoding.value, "start": output.start, "stop": output.stop, "values": values}


def _dimension(dimension: Dimension) -> dict[str, Any]:
    return {
        "label": dimension.label,
        "index": dimension.index,
        "variable": dimension.variable,
        "encoding": dimension.encoding.value,
        "value": encode_value(dimension.value),
        "is_number": dimension.is_number,
        "writer": dimension.writer,
        "readers": list(dimension.readers),
        "since": dimension.since,
        "until": dimension.until if dimension.until < ALWAYS else None,
    }
