"""The forward pass in its parts (the path existing code imports)."""

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
