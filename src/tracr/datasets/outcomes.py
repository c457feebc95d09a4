"""What became of a program: its model, checked and described, or why there is none."""

from __future__ import annotations

import json
import traceback
import warnings
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from tracr.datasets.behaviour import behaviour
from tracr.datasets.packed_weights import PackedWeights
from tracr.datasets.printing import with_lines
from tracr.datasets.realisations import Realised, realise
from tracr.datasets.records import Record, Refusal
from tracr.datasets.settings import Settings
from tracr.errors import FormatError, TracrError, TracrWarning
from tracr.ground_truth.data import GroundTruth
from tracr.ground_truth.wiring import ground_truth_of
from tracr.ir.domains import Finite
from tracr.ir.layout import ALWAYS
from tracr.ir.options import Options
from tracr.model.compiled import CompiledModel
from tracr.model.compiling import compile_model
from tracr.model.residual import Dimension
from tracr.rasp.expressions import SOp
from tracr.runtime.outputs import Output
from tracr.saving.values_json import encode_value

__all__ = ["ProgramOutcome", "compiled", "outcomes_of", "remade"]

JSON = json.JSONEncoder(allow_nan=False, check_circular=False)
T = TypeVar("T")
Weights = dict[str, PackedWeights]
Steps = Generator[None, None, T]
"""The work on one program, which pauses after each step, and its result."""


@dataclass(frozen=True, eq=False)
class ProgramOutcome:
    """The entry of a program in its shard, as JSON text without its first bracket and `id`; and its models' weights.

    The names of the compiled model's weights begin with "." (".embed.W_E"), those of a realisation with
    "/rotated.0." ("/rotated.0.embed.W_E").
    """

    entry: str
    weights: Weights


def compiled(program: SOp, options: Options) -> CompiledModel | Exception:
    """The model of a program, or the error why there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TracrWarning)
            return compile_model({"output": program}, options)
    except Exception as error:
        return error


def remade(record: Record, settings: Settings) -> ProgramOutcome:
    """The outcome of a record, whose program is drawn again.

    The record may be untrusted: its text is compared with the text that its seed gives, and never executed.
    """
    source, program = with_lines(record.program)
    made: CompiledModel | Exception
    if source == record.source:
        made = compiled(program, record.controls.options(settings.level))
    else:
        made = FormatError(
            f"program {record.id} is not the program of its seed {list(record.seed)}",
            hint="draw the programs again with this version of tracr",
        )
    return outcomes_of([(record, made)], settings)[0]


def outcomes_of(made: Sequence[tuple[Record, CompiledModel | Exception]], settings: Settings) -> list[ProgramOutcome]:
    """The outcomes of some programs, given the model of each or the error of its compilation.

    Each step is done for all programs before the next one, which uses the processor's caches better.
    """
    working = [_outcome(record, model, settings) for record, model in made]
    found: dict[int, ProgramOutcome] = {}
    while len(found) < len(working):
        for number, steps in enumerate(working):
            if number not in found:
                try:
                    next(steps)
                except StopIteration as end:
                    found[number] = end.value
    return [found[number] for number in range(len(working))]


def _outcome(record: Record, made: CompiledModel | Exception, settings: Settings) -> Steps[ProgramOutcome]:
    """The outcome of a program.

    An error other than a refusal is a bug. It is recorded: one program must not stop a run of thousands.
    """
    weights: Weights = {}
    if isinstance(made, TracrError):
        entry: dict[str, Any] = {"status": "refused", "reason": vars(Refusal.of(made))}
    elif isinstance(made, Exception):
        entry = {"status": "failed", "reason": "".join(traceback.format_exception(made))}
    else:
        try:
            entry = yield from _entry(record, made, settings, weights)
        except Exception:
            entry, weights = {"status": "failed", "reason": traceback.format_exc()}, {}
    return ProgramOutcome(JSON.encode({**_origin(record), **entry})[1:], weights)


def _origin(record: Record) -> dict[str, Any]:
    data = record.to_json()
    return {name: data[name] for name in ("seed", "meaning", "source", "vocab", "max_seq_len", "causal")}


def _entry(record: Record, model: CompiledModel, settings: Settings, weights: Weights) -> Steps[dict[str, Any]]:
    """Check the model and describe it; its weights, and those of its realisations, are added to `weights`."""
    found = model.verify(settings.budget)
    if not found:
        return {"status": "wrong", "reason": str(found)}
    entry: dict[str, Any] = {
        "status": "compiled",
        "verification": {"inputs": found.inputs, "exhaustive": found.exhaustive, "errors": found.errors},
        "behaviour": behaviour(model.program, settings.budget).to_json(),
    }
    yield
    entry |= _description(model)
    weights["."] = PackedWeights.of(model.cast(np.float32))
    yield
    if settings.truth:
        _ = model.residual, model.explanations  # which the ground truth is made of
        yield
        truth = ground_truth_of(model)
        yield
        entry |= _mechanism(model, truth)
    entry["warnings"] = [str(warning) for warning in model.program.warnings]
    if settings.realisations:
        entry["realisations"] = [
            _realisation(one, weights) for one in realise(model, settings.realisations, record.seed, settings.budget)
        ]
    yield
    return entry


def _realisation(made: Realised | tuple[str, TracrError], weights: Weights) -> dict[str, Any]:
    """A realisation as an entry; its weights are added to `weights`."""
    if isinstance(made, tuple):
        return {"name": made[0], "status": "refused", "reason": vars(Refusal.of(made[1]))}
    weights[f"/{made.name}."] = PackedWeights.of(made.parameters)
    return {
        "name": made.name,
        "status": "made",
        "seed": None if made.seed is None else list(made.seed),
        "amount": made.amount,
        "d_model": int(made.parameters.W_E.shape[1]),
        "measured": vars(made.measured),
    }


def _description(model: CompiledModel) -> dict[str, Any]:
    """The model's shape and its outputs."""
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
    }


def _mechanism(model: CompiledModel, truth: GroundTruth) -> dict[str, Any]:
    """The labels of the residual stream, and the ground truth."""
    return {
        "residual": [_dimension(dimension) for dimension in model.residual],
        "ground_truth": truth.to_dict(),
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
