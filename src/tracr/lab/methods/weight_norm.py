"""A null method: the size of the weights along an edge, without any input.

The score of an edge (w, r) is ‖O_w I_r‖, the Frobenius norm, with O_w the matrix by which the writer writes (token and
position embedding, W_O of a head, W_out of an MLP) and I_r the matrix by which the reader reads (W_Q, W_K or W_V of a
head, W_in, W_U). Layer norms are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.ground_truth.scores import EdgeKey
from tracr.ir.parameters import Parameters
from tracr.lab.methods.passes import model_of, patching_of

if TYPE_CHECKING:
    from tracr.lab.methods.data import MethodData

__all__ = ["weight_norm"]

Array = NDArray[Any]


def weight_norm(subject: Any, data: MethodData) -> dict[EdgeKey, float]:
    """The score of every edge of a subject."""
    patching = patching_of(model_of(subject))
    weights = patching.parameters.map(lambda array: np.asarray(array, dtype=np.float64))
    return {
        (writer, reader): float(np.linalg.norm(_writes(weights, writer) @ _reads(weights, reader)))
        for writer, reader in patching.candidates
    }


def _writes(weights: Parameters, writer: str) -> Array:
    if writer == "embed":
        return np.concatenate([weights.W_E, weights.W_pos])
    _, layer, kind, *head = writer.split(".")
    own = weights.layers[int(layer)]
    return np.asarray(own.W_out if kind == "mlp" else own.W_O[int(head[0])])


def _reads(weights: Parameters, reader: str) -> Array:
    if reader == "unembed":
        return np.asarray(weights.W_U)
    _, layer, kind, *rest = reader.split(".")
    own = weights.layers[int(layer)]
    return np.asarray(own.W_in if kind == "mlp" else getattr(own, f"W_{rest[1].upper()}")[int(rest[0])])
