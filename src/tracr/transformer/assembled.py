"""A compiled model with the attribute names of the original Tracr; `compiled` is the same model with ours.

`params` holds the weights as frameworks need them: layers of equal sizes, and scores divided by √key_size
(`uniform.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.craft.transformers import SeriesWithResiduals
from tracr.model.compiled import CompiledModel
from tracr.rasp.annotations import Encoding
from tracr.runtime.uniform import common_sizes
from tracr.transformer.craft_view import craft_model, program_graph
from tracr.transformer.encoders import CategoricalEncoder, InputEncoder, NumericalEncoder, input_encoder, output_encoder
from tracr.transformer.staged import (
    CompiledTransformerModel,
    CompiledTransformerModelOutput,
    Params,
    TransformerConfig,
    as_params,
)
from tracr.values import Value

__all__ = ["AssembledTransformerModel", "AssembledTransformerModelOutput"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class AssembledTransformerModelOutput:
    """A forward pass on one input; the arrays have a batch axis of 1.

    `layer_outputs` and `residuals` have two entries per layer, attention then MLP: the output of the sub-layer, and the
    residual stream after it. `unembedded` is the number of the value (see `output_encoder`), or the raw number.
    """

    decoded: list[Value]
    unembedded: Array
    layer_outputs: list[Array]
    residuals: list[Array]
    attn_logits: list[Array]
    transformer_output: Array
    input_embeddings: Array


@dataclass(eq=False)  # existing code assigns other `params`
class AssembledTransformerModel:
    """A transformer that computes a RASP program. `apply` runs the weights in `params`, also if they were edited."""

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
    def params(self) -> dict[str, dict[str, Array]]:
        """The weights in float32, by module and name."""
        return as_params(self.compiled.parameters)

    @cached_property
    def residual_labels(self) -> list[str]:
        """The labels of the dimensions of the residual stream, "name" or "name:value", the output's first."""
        return self.compiled.residual.labels

    @property
    def output_label(self) -> str:
        """The name of the output in `residual_labels` (TransformerLens's loader may read it)."""
        (_, variable), *_ = self.compiled.circuit.outputs
        return variable.label

    @cached_property
    def input_encoder(self) -> InputEncoder:
        """The encoder from tokens to ids."""
        return input_encoder(self.compiled.vocabulary)

    @cached_property
    def output_encoder(self) -> CategoricalEncoder | NumericalEncoder:
        """The encoder between outputs and values."""
        return output_encoder(self.compiled.outputs[0], self.output_label)

    def get_compiled_model(self) -> CompiledTransformerModel:
        """The embeddings, the layers and the unembedding, over the weights in `params`."""
        return self._staged(self.params)

    def forward(self, params: Params, tokens: Any) -> CompiledTransformerModelOutput:
        """Run weights like `params` on ids [batch, position] that start with BOS; numpy or JAX arrays."""
        return self._staged(params)(tokens)

    def _staged(self, params: Params) -> CompiledTransformerModel:
        (output,) = self.compiled.outputs
        return CompiledTransformerModel.of(
            params,
            self.model_config,
            self.compiled.parameters.W_U,
            categorical=output.encoding is Encoding.CATEGORICAL,
        )

    @property
    def model(self) -> AssembledTransformerModel:
        """The model itself: some compilers return a `TracrOutput` with `model`, `graph` and `craft_model`."""
        return self

    @cached_property
    def graph(self) -> Any:
        """The program as a networkx.DiGraph (`craft_view.program_graph`)."""
        return program_graph(self.compiled, self.craft_model.blocks)

    @cached_property
    def craft_model(self) -> SeriesWithResiduals:
        """The sub-layers over labelled spaces (`craft_view.craft_model`)."""
        return craft_model(self.compiled)

    def apply(self, tokens: Sequence[Value]) -> AssembledTransformerModelOutput:
        """Run the model on tokens that start with BOS (and may end with PAD)."""
        ids = self.input_encoder.encode(tokens)
        found = self.forward(self.params, np.array([ids]))
        inside = found.transformer_output
        return AssembledTransformerModelOutput(
            decoded=self._decode(ids, np.asarray(found.unembedded_output)),
            unembedded=found.unembedded_output,
            layer_outputs=inside.layer_outputs,
            residuals=inside.residuals,
            attn_logits=inside.attn_logits,
            transformer_output=inside.output,
            input_embeddings=inside.input_embeddings,
        )

    def _decode(self, ids: list[int], unembedded: Array) -> list[Value]:
        encoder = self.input_encoder
        values = self.output_encoder.decode(unembedded[0].tolist())
        special = {encoder.bos_encoding: encoder.bos_token, encoder.pad_encoding: encoder.pad_token}
        return [special.get(number, value) for number, value in zip(ids, values, strict=True)]
