"""Twins in ONNX: the graph of `adapters/onnx.py` with the twin's layer norms and activation function."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tracr.adapters.onnx import TWIN, OnnxGraph, write_graph
from tracr.natural.architecture import NORM_EPSILON

if TYPE_CHECKING:
    from pathlib import Path

    from tracr.natural.twin_model import TwinModel

__all__ = ["to_onnx"]


def to_onnx(twin: TwinModel, path: Path) -> None:
    """Write the graph and the weights, in float32, into one file; the teacher and the measurements are not in it."""
    write_graph(
        twin.teacher,
        twin.parameters,
        path,
        {TWIN: "admitted" if twin.admitted else "not admitted"},
        about=repr(twin),
        norm=_norm if twin.architecture.layer_norm else None,
        activation={"gelu": _gelu, "gelu_new": _gelu_new, "relu": None}[twin.architecture.activation],
    )


def _norm(graph: OnnxGraph, stream: str, to: str) -> str:
    centred = graph.add("Sub", stream, graph.add("ReduceMean", stream, axes=[-1]))
    variance = graph.add("ReduceMean", graph.add("Mul", centred, centred), axes=[-1])
    scale = graph.add("Sqrt", graph.add("Add", variance, graph.number(NORM_EPSILON)))
    return graph.add("Div", centred, scale, to=to)


def _gelu(graph: OnnxGraph, tensor: str, to: str) -> str:
    inner = graph.add("Erf", graph.add("Mul", tensor, graph.number(math.sqrt(0.5))))
    return _half_of(graph, tensor, inner, to)


def _gelu_new(graph: OnnxGraph, tensor: str, to: str) -> str:
    cube = graph.add("Mul", graph.add("Mul", tensor, tensor), tensor)
    bent = graph.add("Add", tensor, graph.add("Mul", cube, graph.number(0.044715)))
    inner = graph.add("Tanh", graph.add("Mul", bent, graph.number(math.sqrt(2 / math.pi))))
    return _half_of(graph, tensor, inner, to)


def _half_of(graph: OnnxGraph, tensor: str, inner: str, to: str) -> str:
    """`tensor * (1 + inner) / 2`."""
    shifted = graph.add("Add", inner, graph.number(1.0))
    return graph.add("Mul", graph.add("Mul", tensor, graph.number(0.5)), shifted, to=to)
