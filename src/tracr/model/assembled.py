"""A compiled model under the names existing code uses; `compiled` is the same model under ours.

`params` holds the weights as frameworks want them: all layers alike, and scores divided by √key_size (`uniform.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.model.compiled import CompiledModel
from tracr.model.encoders import CategoricalEncoder, InputEncoder, NumericalEncoder, input_encoder, output_encoder
from tracr.model.parameters import LayerParameters, Parameters
from tracr.model.uniform import common_sizes, uniform
from tracr.rasp.annotations import Encoding
from tracr.rasp.values import Value

__all__ = ["AssembledTransformerModel", "AssembledTransformerModelOutput", "TransformerConfig", "relu"]

Array = NDArray[Any]
Params = dict[str, dict[str, Array]]


def relu(x: Any) -> Any:
    """The activation function, for arrays of any framework."""
    return x * (x > 0)


@dataclass(frozen=True)
class TransformerConfig:
    """The sizes of a transformer whose layers are all alike."""

    num_heads: int
    num_layers: int
    key_size: int
    mlp_hidden_size: int
    dropout_rate: float = 0.0
    activation_function: Callable[[Any], Any] = relu
    layer_norm: bool = False
    causal: bool = False


@dataclass(frozen=True, eq=False)
class AssembledTransformerModelOutput:
    """A forward pass on one input; the arrays have a batch axis of 1.

    `layer_outputs` and `residuals` have two entries per layer, attention then MLP: what the sub-layer adds, and the
    residual stream after it. `unembedded` is the number of the value (see `output_encoder`), or the raw number.
    """

    decoded: list[Value]
    unembedded: Array
    layer_outputs: list[Array]
    residuals: list[Array]
    attn_logits: list[Array]
    transformer_output: Array
    input_embeddings: Array


@dataclass(frozen=True, eq=False)
class AssembledTransformerModel:
    """A transformer that computes a RASP program. `apply` runs the weights in `params`, edited ones too."""

    compiled: CompiledModel

    @cached_property
    def model_config(self) -> TransformerConfig:
        """The sizes of the weights in `params`."""
        sizes = common_sizes(self.compiled.parameters)
        return TransformerConfig(
            num_heads=sizes.heads,
            num_layers=self.compiled.n_layers,
            key_size=sizes.d_head,
            mlp_hidden_size=sizes.d_mlp,
            causal=self.compiled.options.causal,
        )

    @cached_property
    def params(self) -> Params:
        """The weights in float32, by module and name."""
        return as_params(self.compiled.parameters)

    @cached_property
    def residual_labels(self) -> list[str]:
        """What each dimension of the residual stream holds: "name", or "name:value"."""
        return self.compiled.residual.labels

    @property
    def output_label(self) -> str:
        """The name under which `residual_labels` has the output (TransformerLens's loader may ask for it)."""
        (_, variable), *_ = self.compiled.circuit.outputs
        return variable.label

    @cached_property
    def input_encoder(self) -> InputEncoder:
        """Tokens and ids."""
        return input_encoder(self.compiled.vocabulary)

    @cached_property
    def output_encoder(self) -> CategoricalEncoder | NumericalEncoder:
        """Outputs and values."""
        return output_encoder(self.compiled.outputs[0])

    def apply(self, tokens: Sequence[Value]) -> AssembledTransformerModelOutput:
        """Run the model on tokens that start with BOS (and may end with PAD)."""
        ids = self.input_encoder.encode(tokens)
        parameters = as_parameters(self.params, self.model_config, self.compiled.parameters.W_U)
        seen: dict[str, Array] = {}
        model = replace(self.compiled, parameters=parameters)
        logits = model.logits(np.array([ids]), np.float32, seen.__setitem__)
        layers = range(self.model_config.num_layers)
        embeddings = seen["hook_embed"] + seen["hook_pos_embed"]
        residuals = [seen[f"blocks.{i}.hook_resid_{place}"] for i in layers for place in ("mid", "post")]
        unembedded = self._unembed(logits)
        return AssembledTransformerModelOutput(
            decoded=self._decode(ids, unembedded),
            unembedded=unembedded,
            layer_outputs=[seen[f"blocks.{i}.hook_{part}_out"] for i in layers for part in ("attn", "mlp")],
            residuals=residuals,
            attn_logits=[seen[f"blocks.{i}.attn.hook_attn_scores"] for i in layers],
            transformer_output=residuals[-1] if residuals else embeddings,
            input_embeddings=embeddings,
        )

    def _unembed(self, logits: Array) -> Array:
        (output,) = self.compiled.outputs
        mine = logits[..., output.start : output.stop]
        if output.encoding is Encoding.CATEGORICAL:
            return np.asarray(mine.argmax(axis=-1))
        if mine.shape[-1] == 1:
            return mine[..., 0]
        return np.where(mine[..., 1] > 0.5, np.nan, mine[..., 0])

    def _decode(self, ids: list[int], unembedded: Array) -> list[Value]:
        encoder = self.input_encoder
        values = self.output_encoder.decode(unembedded[0].tolist())
        special = {encoder.bos_encoding: encoder.bos_token, encoder.pad_encoding: encoder.pad_token}
        return [special.get(number, value) for number, value in zip(ids, values, strict=True)]


def as_params(parameters: Parameters) -> Params:
    """The weights under the names of `params`, all layers alike."""
    weights = uniform(parameters, scaled=True).map(lambda array: array.astype(np.float32))
    d_model = weights.W_E.shape[1]

    def reads(weight: Array, bias: Array) -> dict[str, Array]:
        return {"w": np.moveaxis(weight, 0, 1).reshape(d_model, -1), "b": bias.reshape(-1)}

    params: Params = {"token_embed": {"embeddings": weights.W_E}, "pos_embed": {"embeddings": weights.W_pos}}
    for number, layer in enumerate(weights.layers):
        name = f"transformer/layer_{number}"
        params[f"{name}/attn/query"] = reads(layer.W_Q, layer.b_Q)
        params[f"{name}/attn/key"] = reads(layer.W_K, layer.b_K)
        params[f"{name}/attn/value"] = reads(layer.W_V, layer.b_V)
        params[f"{name}/attn/linear"] = {"w": layer.W_O.reshape(-1, d_model), "b": layer.b_O}
        params[f"{name}/mlp/linear_1"] = {"w": layer.W_in, "b": layer.b_in}
        params[f"{name}/mlp/linear_2"] = {"w": layer.W_out, "b": layer.b_out}
    return params


def as_parameters(params: Mapping[str, Mapping[str, Any]], config: TransformerConfig, unembed: Array) -> Parameters:
    """The inverse of `as_params`, in the layout of our forward pass."""
    heads, key_size = config.num_heads, config.key_size

    def read(module: str, scale: float = 1.0) -> tuple[Array, Array]:
        weight, bias = (np.asarray(params[module][name]) * np.float32(scale) for name in ("w", "b"))
        return np.moveaxis(weight.reshape(-1, heads, key_size), 1, 0), bias.reshape(heads, key_size)

    def dense(module: str) -> tuple[Array, Array]:
        return np.asarray(params[module]["w"]), np.asarray(params[module]["b"])

    layers = []
    for number in range(config.num_layers):
        name = f"transformer/layer_{number}"
        w_o, b_o = dense(f"{name}/attn/linear")
        layers.append(
            LayerParameters(
                *read(f"{name}/attn/query", 1 / math.sqrt(key_size)),
                *read(f"{name}/attn/key"),
                *read(f"{name}/attn/value"),
                w_o.reshape(heads, key_size, -1),
                b_o,
                *dense(f"{name}/mlp/linear_1"),
                *dense(f"{name}/mlp/linear_2"),
            )
        )
    w_e, w_pos = (np.asarray(params[module]["embeddings"]) for module in ("token_embed", "pos_embed"))
    return Parameters(w_e, w_pos, tuple(layers), unembed)
