"""Assembles trained parts into the weights of one transformer, and checks which dimensions each part reads and writes.

The weights of a part are zero in all dimensions that it does not read or write: an edge that the compiled model lacks
cannot exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.errors import FormatError
from tracr.ir.parameters import LayerParameters, Parameters
from tracr.model.compiled import CompiledModel
from tracr.natural.learned.codes import PartPlace, places_of
from tracr.runtime.uniform import Sizes, layer_shapes

__all__ = ["assembled", "check_wiring", "spans_of"]

Array = NDArray[Any]
Spans = dict[str, tuple[int, int]]
MATRICES = {"q": "Q", "k": "K", "v": "V"}


def spans_of(model: CompiledModel, widths: Mapping[str, int]) -> Spans:
    """The neurons of each group in its layer, from the number of neurons of each group."""
    found: Spans = {}
    ends: dict[int, int] = {}
    for where in places_of(model):
        if where.span is not None:
            start = ends.get(where.layer, 0)
            ends[where.layer] = start + widths[where.name]
            found[where.name] = start, ends[where.layer]
    return found


def assembled(model: CompiledModel, fitted: Mapping[str, Mapping[str, Array]], spans: Spans) -> Parameters:
    """The weights of all parts in one transformer, in float32, with the embedding and unembedding of the model."""
    places = list(places_of(model))
    layers = []
    for number, before in enumerate(model.parameters.layers):
        here = [where for where in places if where.layer == number]
        d_head = max([1, *(fitted[where.name]["q"].shape[1] for where in here if where.span is None)])
        neurons = max([0, *(spans[where.name][1] for where in here if where.span is not None)])
        sizes = Sizes(len(before.W_Q), d_head, neurons)
        arrays = {name: np.zeros(shape) for name, shape in layer_shapes(sizes, model.d_model).items()}
        arrays["b_O"], arrays["b_out"] = before.b_O.copy(), before.b_out.copy()
        for where in here:
            _place(arrays, where, fitted[where.name], spans)
        layers.append(LayerParameters(**arrays))
    whole = Parameters(model.parameters.W_E, model.parameters.W_pos, tuple(layers), model.parameters.W_U)
    return whole.map(lambda array: array.astype(np.float32))


def _place(arrays: dict[str, Array], where: PartPlace, weights: Mapping[str, Array], spans: Spans) -> None:
    """Write the weights of one part into those of its layer."""
    writes = list(where.writes)
    if where.span is None:
        for name, letter in MATRICES.items():
            arrays[f"W_{letter}"][where.place, list(where.reads[name])] = weights[name]
            arrays[f"b_{letter}"][where.place] = weights[f"b_{name}"]
        arrays["W_O"][where.place][:, writes] = weights["out"]
        arrays["b_O"][writes] = weights["b_out"]
    else:
        span = slice(*spans[where.name])
        arrays["W_in"][list(where.reads["in"]), span] = weights["in"]
        arrays["b_in"][span] = weights["b_in"]
        arrays["W_out"][span, writes] = weights["out"]
        arrays["b_out"][writes] = weights["b_out"]


def check_wiring(weights: Parameters, model: CompiledModel, spans: Spans) -> None:
    """Refuse weights into or out of dimensions that the compiled part does not read or write."""
    for where in places_of(model):
        layer = weights.layers[where.layer]
        if where.span is None:
            read = {name: getattr(layer, f"W_{letter}")[where.place] for name, letter in MATRICES.items()}
            written = layer.W_O[where.place]
        else:
            span = slice(*spans[where.name])
            read, written = {"in": layer.W_in[:, span]}, layer.W_out[span]
        stray = any(np.delete(matrix, where.reads[name], axis=0).any() for name, matrix in read.items())
        if stray or np.delete(written, where.writes, axis=1).any():
            raise FormatError(
                f"{where.name} has weights for dimensions that are not its own", hint="use the weights that were saved"
            )
