"""The forward pass in its parts, at the import path of existing code."""

from tracr.transformer.staged import (
    CompiledTransformerModel,
    CompiledTransformerModelOutput,
    Transformer,
    TransformerConfig,
    TransformerOutput,
)

__all__ = [
    "CompiledTransformerModel",
    "CompiledTransformerModelOutput",
    "Transformer",
    "TransformerConfig",
    "TransformerOutput",
]
