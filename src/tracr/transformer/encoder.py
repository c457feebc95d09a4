"""Encoders (the path existing code imports)."""

from tracr.transformer.encoders import CategoricalEncoder, Encoder, NumericalEncoder

__all__ = ["CategoricalEncoder", "Encoder", "NumericalEncoder"]
