"""The sizes and the components of a model, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tracr.craft.heads import Head
from tracr.errors import EvaluationError, FormatError
from tracr.ir.layout import ALWAYS
from tracr.saving.values_json import encode_value
from tracr.values import Value

if TYPE_CHECKING:
    from tracr.ir.circuit import Component
    from tracr.model.designed import DesignedModel

__all__ = [
    "DescribedPart",
    "as_json",
    "certificate_json",
    "columns_json",
    "expected_outputs",
    "in_short",
    "parts",
    "sizes",
    "summary",
]


@dataclass(frozen=True)
class DescribedPart:
    """A component (head or group of neurons): its place, what it computes, reads and writes, and its size."""

    where: str
    kind: str
    computes: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    size: int


def parts(model: DesignedModel) -> list[DescribedPart]:
    """Every component, in the order of the forward pass."""
    found = []
    for sublayer in model.schedule.sublayers():
        where = f"blocks.{sublayer.layer}.{sublayer.kind}"
        for place, component in enumerate(sublayer.components):
            says = model.explanations[f"{where}.{place}"].sentence
            found.append(_part(f"{where}.{place}" if sublayer.kind == "attn" else where, component, says))
    return found


def _part(where: str, component: Component, says: str) -> DescribedPart:
    kind, size = ("head", component.rank) if isinstance(component, Head) else ("mlp", component.read.width)
    reads = tuple(variable.label for variable in component.reads if variable.node is not None)
    writes = tuple(variable.label for variable, _ in component.writes)
    return DescribedPart(where, kind, says, reads, writes, size)


def sizes(model: DesignedModel) -> dict[str, int]:
    """The sizes of a model; `heads`, `d_head` and `d_mlp` are those of the largest layer."""
    layers = model.parameters.layers
    arrays = [array for _, array in model.parameters.named()]
    return {
        "layers": model.n_layers,
        "d_model": model.d_model,
        "heads": max((layer.b_Q.shape[0] for layer in layers), default=0),
        "d_head": max((layer.b_Q.shape[1] for layer in layers), default=0),
        "d_mlp": max((layer.b_in.size for layer in layers), default=0),
        "parameters": model.n_parameters,
        "nonzero": sum(int(np.count_nonzero(array)) for array in arrays),
    }


def in_short(model: DesignedModel) -> str:
    """The sizes in one line."""
    layers = "1 layer" if model.n_layers == 1 else f"{model.n_layers} layers"
    return f"{layers}, {model.d_model} dimensions, {model.n_parameters:,} parameters, level {model.options.level}"


def summary(model: DesignedModel, name: str) -> dict[str, Any]:
    """The description of a model that `tracr info --json` prints."""
    layers = model.parameters.layers
    return {
        "name": name,
        "level": model.options.level,
        "causal": model.options.causal,
        "dtype": model.options.dtype,
        "vocab": [as_json(token) for token in model.options.vocab],
        "bos": as_json(model.options.bos),
        "pad": as_json(model.options.pad),
        "lengths": list(model.program.lengths),
        **sizes(model),
        "blocks": [
            {"heads": layer.b_Q.shape[0], "d_head": layer.b_Q.shape[1], "d_mlp": int(layer.b_in.size)}
            for layer in layers
        ],
        "outputs": {output.name: output.labels for output in model.outputs},
        "components": [{**vars(part), "reads": list(part.reads), "writes": list(part.writes)} for part in parts(model)],
        "variables": [
            {
                "label": one.label,
                "state": one.state,
                "settable": one.settable,
                "hook": one.hook or None,
                "reason": one.reason or None,
                "instead": one.instead or None,
            }
            for one in model.variables.values()
        ],
        "residual": [
            {
                "label": dimension.label,
                "index": dimension.index,
                "since": dimension.since,
                "until": dimension.until if dimension.until < ALWAYS else None,
                "variable": dimension.variable,
                "writer": dimension.writer,
                "readers": list(dimension.readers),
            }
            for dimension in model.residual
        ],
    }


def certificate_json(model: DesignedModel) -> dict[str, Any] | None:
    """The verdict that `tracr info --json` prints; None if the model is too large to be checked in passing."""
    from tracr.certificate.certifying import shown_certificate

    found = shown_certificate(model)
    return None if found is None else found.as_json()


def as_json(value: Value) -> Any:
    """A value for `--json`, as in a saved model; a value that JSON cannot hold becomes its text."""
    try:
        return encode_value(value)
    except FormatError:
        return repr(value)


def columns_json(columns: Mapping[str, Sequence[Value]]) -> dict[str, list[Any]]:
    """Rows of values by name, for `--json`."""
    return {name: list(map(as_json, row)) for name, row in columns.items()}


def expected_outputs(model: DesignedModel, tokens: list[Value]) -> dict[str, list[Value]]:
    """The outputs of the reference interpreter, or for a saved model of the table interpreter."""
    from tracr.rasp.interpreter import evaluate
    from tracr.runtime.table_interpreter import evaluate_batch

    if model.expressions:
        outputs = {name: model.expressions[number] for name, number in model.graph.outputs}
        return {name: evaluate(expr, tokens, causal=model.options.causal) for name, expr in outputs.items()}
    evaluation = evaluate_batch(model.program, [tokens])
    if evaluation.errors.any():
        raise EvaluationError(
            "the program has no value on this input: one of its functions fails", hint="try other tokens"
        )
    return {name: rows[0] for name, rows in evaluation.outputs().items()}
