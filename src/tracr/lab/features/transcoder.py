"""Transcoder (Dunefsky et al. 2024): a sparse coder from what an MLP reads to what it writes.

y is about code(x) W_dec + b_dec, where x is the stream before the MLP and y is what it writes; codes have a penalty on
their sum. Only for the place "mlp". Training: `coder_training.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracr.errors import TracrError
from tracr.extras import need
from tracr.lab.features.found import FoundDictionary
from tracr.lab.features.sparse_autoencoders import atoms_of

if TYPE_CHECKING:
    from tracr.lab.features.questions import FeatureData

__all__ = ["transcoder"]


def transcoder(
    subject: Any,
    data: FeatureData,
    *,
    width: float = 1.0,
    penalty: float = 0.4,
    steps: int = 2_000,
    rate: float = 3e-3,
    seed: int = 0,
) -> FoundDictionary:
    """The transcoder of the MLP."""
    for library in ("jax", "optax"):
        need(library, "jax")
    from tracr.lab.features.coder_training import CoderRecipe, train_coders

    if data.inputs_of_mlp is None:
        raise TracrError(f"{data.place} is not written by an MLP", hint="use a case with place=mlp")
    recipe = CoderRecipe("l1", atoms_of(data, width), steps, rate=rate)
    found = train_coders(recipe, data.inputs_of_mlp[None], data.activations[None], [penalty], [seed])
    return found[0][0].found(reads_inputs=True)
