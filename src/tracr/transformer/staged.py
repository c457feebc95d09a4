"""The forward pass in the original Tracr's three parts: embedding, transformer and unembedding.

They run the one forward pass (`forward.py`) over weights with the names of `params`. Arrays are numpy's or JAX's: if a
weight or an input is a JAX array, the pass can be traced, compiled and differentiated.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.ir.parameters import LayerParameters, Parameters
from tracr.runtime.forward import forward
from tracr.runtime.uniform import uniform

__all__ = [
    "CompiledTransformerModel",
    "CompiledTransformerModelOutput",
    "Params",
    "Transformer",
    "TransformerConfig",
    "TransformerOutput",
    "as_params",
    "relu",
]

Tensor = Any
Params = Mapping[str, Mapping[str, Tensor]]
MASKED = -1e30


def relu(x: Any) -> Any:
    """The activation function, for arrays of any framework."""
    return x * (x > 0)


@dataclass(frozen=True)
class TransformerConfig:
    """The sizes of a transformer with layers of equal sizes."""

    num_heads: int
    num_layers: int
    key_size: int
    mlp_hidden_size: int
    dropout_rate: float = 0.0
    activation_function: Callable[[Any], Any] = relu
    layer_norm: bool = False
    causal: bool = False


@dataclass(frozen=True, eq=False)
class TransformerOutput:
    """The activations [batch, position, d_model] of the layers; two entries per layer, attention then MLP.

    `layer_outputs` are the outputs of the sub-layers, `residuals` the stream after them; `attn_logits`
    [batch, head, query, key] has one entry per layer.
    """

    layer_outputs: list[Tensor]
    residuals: list[Tensor]
    attn_logits: list[Tensor]
    output: Tensor
    input_embeddings: Tensor


@dataclass(frozen=True, eq=False)
class CompiledTransformerModelOutput:
    """The activations, and the output [batch, position]: the number (index) of the value, or the value if numerical."""

    transformer_output: TransformerOutput
    unembedded_output: Tensor


@dataclass(frozen=True, eq=False)
class Transformer:
    """The layers without embeddings: from the first residual stream to the last."""

    config: TransformerConfig
    params: Params

    def __call__(
        self, embeddings: Tensor, mask: Tensor | None = None, *, use_dropout: bool = False
    ) -> TransformerOutput:
        """Run the layers; a mask [batch, position] is 0 at positions that must not be attended to.

        The weights already mask padding, and there is no dropout.
        """
        xp = namespace(embeddings, *(array for module in self.params.values() for array in module.values()))
        seen: dict[str, Tensor] = {}

        def hook(name: str, tensor: Tensor) -> Tensor | None:
            if name == "hook_embed":
                return embeddings
            if name == "hook_pos_embed":
                return xp.zeros_like(embeddings)
            if mask is not None and name.endswith("hook_attn_scores"):
                tensor = xp.where(xp.asarray(mask)[:, None, None, :] != 0, tensor, MASKED)
            seen[name] = tensor
            return tensor

        ids = np.zeros(embeddings.shape[:2], dtype=np.int64)  # their embedding is replaced
        forward(as_parameters(self.params, self.config, xp), ids, xp, causal=self.config.causal, hook=hook)
        layers = range(self.config.num_layers)
        residuals = [seen[f"blocks.{i}.hook_resid_{place}"] for i in layers for place in ("mid", "post")]
        return TransformerOutput(
            layer_outputs=[seen[f"blocks.{i}.hook_{part}_out"] for i in layers for part in ("attn", "mlp")],
            residuals=residuals,
            attn_logits=[seen[f"blocks.{i}.attn.hook_attn_scores"] for i in layers],
            output=residuals[-1] if residuals else embeddings,
            input_embeddings=embeddings,
        )


@dataclass(frozen=True, eq=False)
class CompiledTransformerModel:
    """A transformer with its embeddings and its unembedding; each can be replaced by another function."""

    transformer: Callable[..., TransformerOutput]
    token_embed: Callable[[Tensor], Tensor]
    position_embed: Callable[[Tensor], Tensor]
    unembed: Callable[..., Tensor]
    use_unembed_argmax: bool
    pad_token: int | None = None

    def embed(self, tokens: Tensor) -> Tensor:
        """The residual stream before the first layer, for ids [batch, position]."""
        positions = np.broadcast_to(np.arange(tokens.shape[-1]), tokens.shape)
        return self.token_embed(tokens) + self.position_embed(positions)

    def __call__(self, tokens: Tensor, use_dropout: bool = False) -> CompiledTransformerModelOutput:
        """Embed ids [batch, position], run the layers, and unembed."""
        mask = None if self.pad_token is None else tokens != self.pad_token
        found = self.transformer(self.embed(tokens), mask, use_dropout=use_dropout)
        return CompiledTransformerModelOutput(
            found, self.unembed(found.output, use_unembed_argmax=self.use_unembed_argmax)
        )

    @staticmethod
    def of(
        params: Params, config: TransformerConfig, unembedding: NDArray[Any], *, categorical: bool
    ) -> CompiledTransformerModel:
        """The model with these weights."""
        token, position = (Embedding(params[module]["embeddings"]) for module in ("token_embed", "pos_embed"))
        return CompiledTransformerModel(
            Transformer(config, params), token, position, Unembedding(unembedding), categorical
        )


@dataclass(frozen=True, eq=False)
class Embedding:
    """An embedding: one row for every id."""

    embeddings: Tensor

    def __call__(self, ids: Tensor) -> Tensor:
        """The rows of ids."""
        return namespace(ids, self.embeddings).asarray(self.embeddings)[ids]


@dataclass(frozen=True, eq=False)
class Unembedding:
    """The unembedding: the index of the largest logit, or a number with NaN for `None`."""

    matrix: NDArray[Any]

    def __call__(self, x: Tensor, use_unembed_argmax: bool) -> Tensor:
        """The values of residual streams [..., d_model]."""
        xp = namespace(x)
        logits = x @ xp.asarray(self.matrix.astype(np.float32))
        if use_unembed_argmax:
            return logits.argmax(axis=-1)
        return logits[..., 0] if logits.shape[-1] == 1 else xp.where(logits[..., 1] > 0.5, xp.nan, logits[..., 0])


def namespace(*arrays: Tensor) -> Any:
    """The array functions: JAX's if one of the arrays is JAX's, else numpy's."""
    if any(type(array).__module__.startswith("jax") for array in arrays):
        return importlib.import_module("tracr.adapters.jax").NAMESPACE
    return np


def as_params(parameters: Parameters) -> dict[str, dict[str, NDArray[Any]]]:
    """The weights in float32 with the names of `params`: layers of equal sizes, scores divided by √key_size."""
    weights = uniform(parameters, scaled=True).map(lambda array: array.astype(np.float32))
    d_model = weights.W_E.shape[1]

    def reads(weight: NDArray[Any], bias: NDArray[Any]) -> dict[str, NDArray[Any]]:
        return {"w": np.moveaxis(weight, 0, 1).reshape(d_model, -1), "b": bias.reshape(-1)}

    params = {"token_embed": {"embeddings": weights.W_E}, "pos_embed": {"embeddings": weights.W_pos}}
    for number, layer in enumerate(weights.layers):
        name = f"transformer/layer_{number}"
        params[f"{name}/attn/query"] = reads(layer.W_Q, layer.b_Q)
        params[f"{name}/attn/key"] = reads(layer.W_K, layer.b_K)
        params[f"{name}/attn/value"] = reads(layer.W_V, layer.b_V)
        params[f"{name}/attn/linear"] = {"w": layer.W_O.reshape(-1, d_model), "b": layer.b_O}
        params[f"{name}/mlp/linear_1"] = {"w": layer.W_in, "b": layer.b_in}
        params[f"{name}/mlp/linear_2"] = {"w": layer.W_out, "b": layer.b_out}
    return params


def as_parameters(params: Params, config: TransformerConfig, xp: Any) -> Parameters:
    """The inverse of `as_params`, in the form of the forward pass, without an unembedding."""
    heads, key_size = config.num_heads, config.key_size

    def dense(module: str, scale: float = 1.0) -> tuple[Tensor, Tensor]:
        weight, bias = (xp.asarray(params[module][name]) * np.float32(scale) for name in ("w", "b"))
        return weight, bias

    def read(module: str, scale: float = 1.0) -> tuple[Tensor, Tensor]:
        weight, bias = dense(module, scale)
        return xp.moveaxis(weight.reshape(-1, heads, key_size), 1, 0), bias.reshape(heads, key_size)

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
    w_e, w_pos = (xp.asarray(params[module]["embeddings"]) for module in ("token_embed", "pos_embed"))
    return Parameters(w_e, w_pos, tuple(layers), xp.zeros((w_e.shape[1], 0), dtype=w_e.dtype))
