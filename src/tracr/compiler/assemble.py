"""The classes that existing Tracr code imports from here."""

from tracr.transformer.assembled import AssembledTransformerModel, AssembledTransformerModelOutput

__all__ = ["AssembledTransformerModel", "AssembledTransformerModelOutput"]
