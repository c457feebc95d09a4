"""The projection W [D, d]: writes to the residual stream are multiplied by W, reads by Wᵀ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.compress.network import Attention, Network
from tracr.errors import TracrError
from tracr.ir.parameters import LayerParameters, Parameters

__all__ = ["SHARING", "Projection", "ProjectionSites", "fold", "sites_of"]

Array = NDArray[Any]
SHARING = ("one", "layer", "read-write")


@dataclass(frozen=True)
class ProjectionSites:
    """The number of the matrix, of `count`, that each writer (the embedding, then every sub-layer) and each reader
    (every sub-layer, then the unembedding) uses."""

    count: int
    writes: tuple[int, ...]
    reads: tuple[int, ...]


def sites_of(network: Network, sharing: str) -> ProjectionSites:
    """The sites of the paper's single projection ("one"), of one projection per layer and one each for the embedding
    and the unembedding ("layer"), or of one for all reads and one for all writes ("read-write")."""
    size = len(network.parts) + 1
    match sharing:
        case "one":
            return ProjectionSites(1, (0,) * size, (0,) * size)
        case "read-write":
            return ProjectionSites(2, (0,) * size, (1,) * size)
        case "layer":
            layers = [part.layer + 1 for part in network.parts]
            return ProjectionSites(network.n_layers + 2, (0, *layers), (*layers, network.n_layers + 1))
    raise TracrError(f"there is no projection {sharing!r}", hint=f"there are {', '.join(SHARING)}")


@dataclass(frozen=True, eq=False)
class Projection:
    """The matrices [count, D, d], and which of them each writer and reader uses."""

    matrices: Array
    sites: ProjectionSites

    @property
    def dim(self) -> int:
        """d, the width of the compressed residual stream."""
        return int(self.matrices.shape[2])

    @property
    def W(self) -> Array:
        """The projection [D, d]; if there are several, the one that writes the features."""
        return np.asarray(self.matrices[0])

    def write(self, number: int) -> Array:
        """The matrix of a writer: 0 is the embedding, then come the sub-layers."""
        return np.asarray(self.matrices[self.sites.writes[number]])

    def read(self, number: int) -> Array:
        """The matrix of a reader: the sub-layers, then the unembedding."""
        return np.asarray(self.matrices[self.sites.reads[number]])


def fold(parameters: Parameters, network: Network, projection: Projection) -> Parameters:
    """The weights of a d-dimensional transformer: W_E W, Wᵀ W_Q, W_O W and so on.

    The embedding is that of `parameters`; the sub-layers are those of `network`, which may have been trained.
    """
    layers = [_nothing(projection.dim) for _ in range(network.n_layers)]
    for number, part in enumerate(network.parts):
        read, rows, layer = projection.read(number).T, projection.write(number + 1)[part.dims], layers[part.layer]
        if isinstance(part, Attention):
            size = max(part.W_Q.shape[2], part.W_V.shape[2])
            for name in "QKV":
                layer[f"W_{name}"] = _widen(read @ getattr(part, f"W_{name}"), 2, size)
                layer[f"b_{name}"] = _widen(getattr(part, f"b_{name}"), 1, size)
            layer["W_O"], layer["b_O"] = _widen(part.W_O @ rows, 1, size), part.b_O @ rows
        else:
            layer["W_in"], layer["b_in"] = read @ part.W_in, part.b_in
            layer["W_out"], layer["b_out"] = part.W_out @ rows, part.b_out @ rows
    embed, unembed = projection.write(0), projection.read(len(network.parts)).T
    blocks = tuple(LayerParameters(**layer) for layer in layers)
    return Parameters(parameters.W_E @ embed, parameters.W_pos @ embed, blocks, unembed @ network.W_U)


def _nothing(d: int) -> dict[str, Array]:
    """The weights of a layer without heads and neurons."""
    empty: dict[str, Array] = {f"W_{name}": np.zeros((0, d, 0)) for name in "QKV"} | {
        f"b_{name}": np.zeros((0, 0)) for name in "QKV"
    }
    empty |= {"W_O": np.zeros((0, 0, d)), "b_O": np.zeros(d), "W_in": np.zeros((d, 0)), "b_in": np.zeros(0)}
    return empty | {"W_out": np.zeros((0, d)), "b_out": np.zeros(d)}


def _widen(array: Array, axis: int, size: int) -> Array:
    """The array with zeros added at the end of an axis."""
    return np.pad(array, [(0, size - array.shape[axis] if place == axis else 0) for place in range(array.ndim)])
