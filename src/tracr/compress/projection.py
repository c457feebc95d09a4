"""The projection W [D, d]: what is written to the residual stream is multiplied by W, what is read by Wᵀ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.compress.network import Attention, Network
from tracr.errors import TracrError
from tracr.model.parameters import LayerParameters, Parameters

__all__ = ["SHARING", "Projection", "Sites", "fold", "sites_of"]

Array = NDArray[Any]
SHARING = ("one", "layer", "read-write")


@dataclass(frozen=True)
class Sites:
    """Which of `count` matrices each writer (the embedding, then every part) and each reader (every part, then the
    unembedding) uses."""

    count: int
    writes: tuple[int, ...]
    reads: tuple[int, ...]


def sites_of(network: Network, sharing: str) -> Sites:
    """The matrices of the paper's single projection ("one"), of one per layer besides those of the embedding and the
    unembedding ("layer"), or of one for all reads and one for all writes ("read-write")."""
    size = len(network.parts) + 1
    match sharing:
        case "one":
            return Sites(1, (0,) * size, (0,) * size)
        case "read-write":
            return Sites(2, (0,) * size, (1,) * size)
        case "layer":
            layers = [part.layer + 1 for part in network.parts]
            return Sites(network.n_layers + 2, (0, *layers), (*layers, network.n_layers + 1))
    raise TracrError(f"there is no projection {sharing!r}", hint=f"there are {', '.join(SHARING)}")


@dataclass(frozen=True, eq=False)
class Projection:
    """The matrices [count, D, d] and who uses which."""

    matrices: Array
    sites: Sites

    @property
    def dim(self) -> int:
        """d, the width of the compressed residual stream."""
        return int(self.matrices.shape[2])

    @property
    def W(self) -> Array:
        """The projection [D, d]; the one features are written with, if there are several."""
        return np.asarray(self.matrices[0])

    def write(self, number: int) -> Array:
        """The matrix of a writer: 0 is the embedding, then the parts."""
        return np.asarray(self.matrices[self.sites.writes[number]])

    def read(self, number: int) -> Array:
        """The matrix of a reader: the parts, then the unembedding."""
        return np.asarray(self.matrices[self.sites.reads[number]])


def fold(parameters: Parameters, network: Network, projection: Projection) -> Parameters:
    """The weights of a d-dimensional transformer: W_E W, Wᵀ W_Q, W_O W and so on.

    `parameters` has the embedding; the sub-layers are the network's, whose weights may have been trained.
    """
    d = projection.dim
    found: dict[str, Array] = {}
    for number, part in enumerate(network.parts):
        read, rows = projection.read(number).T, projection.write(number + 1)[part.dims]
        if isinstance(part, Attention):
            keys, values = part.Q.shape[2], part.V.shape[2]
            size = max(keys, values)

            def widen(array: Array, axis: int, size: int = size) -> Array:
                pad = [(0, 0)] * array.ndim
                pad[axis] = (0, size - array.shape[axis])
                return np.pad(array, pad)

            for name in "QKV":
                found[f"{number}W_{name}"] = widen(read @ getattr(part, name), 2)
                found[f"{number}b_{name}"] = widen(getattr(part, f"b_{name}"), 1)
            found[f"{number}W_O"], found[f"{number}b_O"] = widen(part.O @ rows, 1), part.b_O @ rows
        else:
            found[f"{number}W_in"], found[f"{number}b_in"] = read @ part.W_in, part.b_in
            found[f"{number}W_out"], found[f"{number}b_out"] = part.W_out @ rows, part.b_out @ rows
    places = {part.name: number for number, part in enumerate(network.parts)}

    def weight(part: str, name: str, empty: tuple[int, ...]) -> Array:
        return found[f"{places[part]}{name}"] if part in places else np.zeros(empty)

    layers = []
    for layer in range(network.n_layers):
        attn, mlp = f"blocks.{layer}.attn", f"blocks.{layer}.mlp"
        reads = [
            weight(attn, f"{kind}_{name}", (0, d, 0) if kind == "W" else (0, 0)) for name in "QKV" for kind in "Wb"
        ]
        writes = [weight(attn, "W_O", (0, 0, d)), weight(attn, "b_O", (d,))]
        neurons = [weight(mlp, "W_in", (d, 0)), weight(mlp, "b_in", (0,)), weight(mlp, "W_out", (0, d))]
        layers.append(LayerParameters(*reads, *writes, *neurons, weight(mlp, "b_out", (d,))))
    embed, unembed = projection.write(0), projection.read(len(network.parts)).T
    return Parameters(parameters.W_E @ embed, parameters.W_pos @ embed, tuple(layers), unembed @ network.W_U)
