"""The attributes that compiled models have and twins lack, and what to use instead."""

from __future__ import annotations

from tracr.errors import Unavailable
from tracr.model.compiled import CompiledModel

__all__ = ["refusal"]

UNLABELLED = "its dimensions have no labels, because training does not fix the directions of variables"
TRAINED = "it was trained, not compiled"

REASONS = {
    **dict.fromkeys(("residual", "basis", "directions", "coordinates", "labelled", "layout"), (UNLABELLED, "")),
    "read": (UNLABELLED, "run.variables has the program's values; tracr.lab has methods that look for directions"),
    "variables": (UNLABELLED, "twin.ground_truth has the teacher's nodes and edges, with their measurements"),
    "explore": (f"the page shows variables and labelled dimensions. {UNLABELLED.capitalize()}", ""),
    "figure": (UNLABELLED, ""),
    **dict.fromkeys(
        ("rotated", "with_noise", "with_layer_norm", "variant", "with_weights", "plain"),
        ("variants are made from compiled models", "make the variant of twin.teacher, and train its twin"),
    ),
    **dict.fromkeys(
        ("own_weights", "certify", "certificate", "certified", "verify", "bounds", "check_format"),
        (TRAINED, "twin.admission has what was measured"),
    ),
}
"""For each attribute of compiled models: why twins lack it, and what to use instead; by default the teacher's."""


def refusal(name: str) -> AttributeError:
    """The error for an attribute that a twin does not have."""
    if name.startswith("_") or not (hasattr(CompiledModel, name) or name in CompiledModel.__dataclass_fields__):
        return AttributeError(f"'TwinModel' object has no attribute {name!r}")
    why, hint = REASONS.get(name, ("it describes the compiled model", ""))
    return Unavailable(f"a twin has no {name}: {why}", hint=hint or f"use twin.teacher.{name}")
