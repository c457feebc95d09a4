"""Encoders, at the import path of existing code."""

from tracr.transformer.encoders import CategoricalEncoder, Encoder, NumericalEncoder

__all__ = ["CategoricalEncoder", "Encoder", "NumericalEncoder"]
