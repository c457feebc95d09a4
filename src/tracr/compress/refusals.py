"""The attributes that compiled models have and compressed ones lack, and what to use instead."""

from __future__ import annotations

from tracr.errors import Unavailable
from tracr.model.compiled import CompiledModel

__all__ = ["UNCHECKED", "refusal"]

UNCHECKED = "the checker has no rules for projected weights"
UNLABELLED = "its dimensions have no labels"
LENGTHS = "compression can drop PAD, so it runs each input at its own length, which an export cannot do"
WEIGHTS = "its weights are model.parameters, with their TransformerLens names; model.compiled can be exported"

REASONS = {
    "residual": (UNLABELLED, "model.features has the direction of every label"),
    "basis": (UNLABELLED, "model.features has the direction of every label"),
    "variables": ("its variables share dimensions", "see model.compiled.variables, and model.report()"),
    "ground_truth": ("its mechanism is not known", "see model.compiled.ground_truth, and model.report()"),
    "figure": (UNLABELLED, "draw model.compiled, or see tracr.compress.figures"),
    **dict.fromkeys(
        ("certify", "certificate", "certified"), (UNCHECKED, "certify model.compiled; model.verify() compares")
    ),
    "labelled": (UNLABELLED, "model.compiled has a dimension per label"),
    "plain": ("it was not made by a change of basis", "model.compiled is the model it was made from"),
    "with_weights": ("its weights belong to a projection", "give model.compiled other weights and compress it"),
    **dict.fromkeys(("to_jax", "to_torch", "to_transformer_lens", "to_onnx", "save_pretrained"), (LENGTHS, WEIGHTS)),
    **dict.fromkeys(
        ("rotated", "with_noise", "with_layer_norm", "variant"),
        ("variants are made from compiled models", "make the variant of model.compiled, and compress its `labelled`"),
    ),
}
"""For each attribute of compiled models: why compressed ones lack it, and what to use instead."""


def refusal(name: str) -> AttributeError:
    """The error for an attribute that a compressed model does not have."""
    if name.startswith("_") or not (hasattr(CompiledModel, name) or name in CompiledModel.__dataclass_fields__):
        return AttributeError(f"'CompressedModel' object has no attribute {name!r}")
    why, hint = REASONS.get(name, ("it describes the compiled model", f"use model.compiled.{name}"))
    return Unavailable(f"a compressed model has no {name}: {why}", hint=hint)
