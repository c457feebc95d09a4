"""A null method: edges nearer to the output first.

The score of an edge is the number of the reader's sub-layer, divided by the number of all sub-layers; 1 for the
unembedding. It depends on the architecture only. A method that is not better has found no more than the direction in
which information flows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracr.ground_truth.scores import EdgeKey
from tracr.lab.methods.passes import model_of, patching_of

if TYPE_CHECKING:
    from tracr.lab.methods.data import MethodData

__all__ = ["downstream"]


def downstream(subject: Any, data: MethodData) -> dict[EdgeKey, float]:
    """The score of every edge of a subject."""
    patching = patching_of(model_of(subject))
    last = 2 * len(patching.parameters.layers)

    def sublayer(reader: str) -> int:
        if reader == "unembed":
            return last
        _, layer, kind, *_ = reader.split(".")
        return 2 * int(layer) + (kind == "mlp")

    return {key: sublayer(key[1]) / max(last, 1) for key in patching.candidates}
