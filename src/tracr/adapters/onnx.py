"""ONNX: the transformer as a graph for any batch and length; the file also holds the program, to be read back.

The graph repeats the shared forward pass node for node, and its values have their TransformerLens names.
The graph does not run here; the tests run it in onnxruntime and compare it with numpy.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from numpy.typing import DTypeLike, NDArray
from onnx import helper, numpy_helper

from tracr.errors import FormatError, InputError
from tracr.model.number_formats import LONG, format_of
from tracr.model.variants.layer_norm import require_plain_norms
from tracr.model.variants.variant_model import with_other_weights
from tracr.model.weights import with_weights
from tracr.saving.folders import read_file
from tracr.writing import write_file

if TYPE_CHECKING:
    from tracr.ir.parameters import Parameters
    from tracr.model.designed import DesignedModel

__all__ = ["TWIN", "OnnxGraph", "from_onnx", "to_onnx", "write_graph"]

OPSET, IR_VERSION = 17, 8  # readable by onnxruntime since 1.12
LARGEST_MESSAGE = 2**31 - 2**24  # bytes of a protobuf message, without the graph
PROGRAM, TABLES, TWIN = "tracr.model", "tracr.tables", "tracr.twin"

GraphFunction = Callable[["OnnxGraph", str, str], str]
"""Adds a function of a tensor to a graph, under a name; gives the name of its result."""


def to_onnx(model: DesignedModel, path: str | Path, dtype: DTypeLike) -> None:
    """Write the graph, the weights and the program into one file."""
    from tracr.saving.models import program_files

    if format_of(dtype) not in LONG:
        raise InputError(f"an ONNX model cannot be written in {format_of(dtype)}", hint="pass float32 or float64")
    require_plain_norms(model, "ONNX")
    program, tables = program_files(model)
    props = {PROGRAM: program.decode(), TABLES: base64.b64encode(tables).decode()}
    write_graph(model, model.cast(dtype), path, props, about=repr(model))


def write_graph(
    model: DesignedModel,
    parameters: Parameters,
    path: str | Path,
    props: dict[str, str],
    *,
    about: str,
    norm: GraphFunction | None = None,
    activation: GraphFunction | None = None,
) -> None:
    """Write the graph with these weights and `props` into one file; tokens, logits and mask are the model's."""
    size = sum(array.nbytes for _, array in parameters.named()) + sum(map(len, props.values()))
    if size > LARGEST_MESSAGE:
        raise InputError(f"an ONNX file holds at most 2 GiB, the model has {size / 2**30:.1f}", hint="use save")
    proto = helper.make_model(
        _graph(parameters, model.options.causal, norm or _unchanged, activation or _relu),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="tracr",
        doc_string=about,
    )
    vocabulary = model.vocabulary
    named = {
        "tokens": ", ".join(map(repr, vocabulary.decode(range(len(vocabulary.ids))))),
        "logits": ", ".join(label for output in model.outputs for label in output.labels),
    }
    helper.set_model_props(proto, {**props, **named})
    onnx.checker.check_model(proto)
    write_file(Path(path), proto.SerializeToString(deterministic=True), make_folder=True)


def from_onnx(path: Path, recompile: bool, max_parameters: int) -> DesignedModel:
    """The model in a file that `to_onnx` wrote."""
    from tracr.saving.models import LARGE, read_model

    try:
        proto = onnx.load_model_from_string(read_file(path, 8 * max_parameters + 2 * LARGE))
        props = {prop.key: prop.value for prop in proto.metadata_props}
        if TWIN in props:
            raise FormatError(
                f"{path} holds a twin without its teacher and its measurements", hint="load what twin.save wrote"
            )
        program, tables = props[PROGRAM].encode(), base64.b64decode(props[TABLES], validate=True)
        if any(tensor.data_location != onnx.TensorProto.DEFAULT for tensor in proto.graph.initializer):
            raise FormatError(f"{path} names other files that hold its weights", hint="save it as one file")
        weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
    except FormatError:
        raise
    except Exception as error:  # protobuf raises many kinds of errors
        raise FormatError(
            f"{path} was not written by model.to_onnx: {type(error).__name__}: {error}",
            hint="write it with model.to_onnx",
        ) from None
    model, own_weights = read_model(program, tables, weights, recompile, max_parameters)
    if recompile:
        return model
    held = {name: weights.get(name, array) for name, array in model.parameters.named()}  # empty arrays are not stored
    loaded = with_weights(model, held)
    return loaded if own_weights else with_other_weights(loaded, loaded.parameters)


def _unchanged(graph: OnnxGraph, tensor: str, to: str) -> str:
    return tensor


def _relu(graph: OnnxGraph, tensor: str, to: str) -> str:
    return graph.add("Relu", tensor, to=to)


def _graph(parameters: Parameters, causal: bool, norm: GraphFunction, act: GraphFunction) -> onnx.GraphProto:
    """From `ids` [batch, position] to `logits` [batch, position, d_vocab_out]."""
    graph = OnnxGraph(parameters.W_E.dtype)
    for name, array in parameters.named():
        graph.constant(name, array)
    for axis in range(2):
        graph.constant(f"axis{axis}", np.array([axis]))
    graph.constant("zero", np.array(0))
    graph.constant("one", np.array(1))
    graph.constant("minus_inf", np.array(-np.inf, dtype=graph.dtype))
    length = graph.add("Squeeze", graph.add("Shape", "ids", start=1, end=2), "axis0")
    place = graph.add("Range", "zero", length, "one")
    embed = graph.add("Gather", "embed.W_E", "ids", to="hook_embed")
    residual = graph.add("Add", embed, graph.add("Gather", "pos_embed.W_pos", place, to="hook_pos_embed"))
    mask = None
    if causal:
        queries, keys = (graph.add("Unsqueeze", place, f"axis{axis}") for axis in (1, 0))
        mask = graph.add("GreaterOrEqual", queries, keys)
    for number, layer in enumerate(parameters.layers):
        block = f"blocks.{number}."
        residual = graph.add("Identity", residual, to=f"{block}hook_resid_pre")
        if layer.W_Q.shape[0]:
            seen = norm(graph, residual, f"{block}ln1.hook_normalized")
            residual = graph.add("Add", residual, _attention(graph, seen, block, mask))
        residual = graph.add("Identity", residual, to=f"{block}hook_resid_mid")
        if layer.W_in.shape[1]:
            seen = norm(graph, residual, f"{block}ln2.hook_normalized")
            residual = graph.add("Add", residual, _mlp(graph, seen, block, act))
        residual = graph.add("Identity", residual, to=f"{block}hook_resid_post")
    graph.add("MatMul", norm(graph, residual, "ln_final.hook_normalized"), "unembed.W_U", to="logits")
    return graph.finished(parameters.W_U.shape[1])


def _attention(graph: OnnxGraph, seen: str, block: str, mask: str | None) -> str:
    """Attention with heads on axis 1, so that weights [head, d_model, d_head] multiply unchanged."""
    stream = graph.add("Unsqueeze", seen, "axis1")

    def project(part: str) -> str:
        bias = graph.add("Unsqueeze", f"{block}attn.b_{part}", "axis1")
        return graph.add("Add", graph.add("MatMul", stream, f"{block}attn.W_{part}"), bias)

    q, k, v = map(project, "QKV")
    scores = graph.add("MatMul", q, graph.add("Transpose", k, perm=[0, 1, 3, 2]))
    if mask:
        scores = graph.add("Where", mask, scores, "minus_inf")
    pattern = graph.add("Softmax", scores, axis=-1, to=f"{block}attn.hook_pattern")
    results = graph.add("MatMul", graph.add("MatMul", pattern, v), f"{block}attn.W_O")
    total = graph.add("ReduceSum", results, "axis1", keepdims=0)
    return graph.add("Add", total, f"{block}attn.b_O", to=f"{block}hook_attn_out")


def _mlp(graph: OnnxGraph, seen: str, block: str, act: GraphFunction) -> str:
    pre = graph.add("Add", graph.add("MatMul", seen, f"{block}mlp.W_in"), f"{block}mlp.b_in")
    post = act(graph, pre, f"{block}mlp.hook_post")
    return graph.add(
        "Add", graph.add("MatMul", post, f"{block}mlp.W_out"), f"{block}mlp.b_out", to=f"{block}hook_mlp_out"
    )


class OnnxGraph:
    """Nodes in the order they run; `add` gives the name of a node's result."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}

    def number(self, value: float) -> str:
        """The name of a number."""
        self.constant(name := f"number_{value:.9g}", np.array(value, dtype=self.dtype))
        return name

    def constant(self, name: str, array: NDArray[Any]) -> None:
        """Give an array a name."""
        self.constants[name] = numpy_helper.from_array(np.asarray(array, order="C"), name)

    def add(self, op: str, *inputs: str, to: str = "", **attributes: Any) -> str:
        """Add a node and return the name of its result."""
        name = to or f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def finished(self, d_vocab_out: int) -> onnx.GraphProto:
        """The graph, with the constants that its nodes read."""
        used = {name for node in self.nodes for name in node.input}
        constants = [tensor for name, tensor in self.constants.items() if name in used]
        kind = helper.np_dtype_to_tensor_dtype(self.dtype)
        ids = helper.make_tensor_value_info("ids", onnx.TensorProto.INT64, ["batch", "position"])
        logits = helper.make_tensor_value_info("logits", kind, ["batch", "position", d_vocab_out])
        return helper.make_graph(self.nodes, "tracr", [ids], [logits], constants)
