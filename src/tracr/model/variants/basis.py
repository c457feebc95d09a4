"""The directions of the labelled coordinates in the residual stream: its axes, or others.

Streams are numpy arrays, torch tensors or JAX arrays. Results have the same framework, type and device, and can be
differentiated and traced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.runtime.tensors import as_tensor, like, replaced

__all__ = ["Axes", "Basis", "Directions"]

Array = NDArray[Any]
Tensor = Any  # an array of numpy, torch or JAX
Slots = Sequence[int] | NDArray[np.intp]


@dataclass(frozen=True)
class Axes:
    """Coordinate i is dimension i."""

    size: int

    @property
    def write(self) -> Array:
        """The directions along which the coordinates are written, a row each."""
        return np.eye(self.size)

    @property
    def read(self) -> Array:
        """The vectors that read the coordinates from the residual stream, a column each."""
        return np.eye(self.size)

    def get(self, stream: Tensor, slots: Slots) -> Tensor:
        """The coordinates [..., slot] of a residual stream [..., d_model]."""
        return as_tensor(stream)[..., np.asarray(slots, dtype=np.intp)]

    def put(self, stream: Tensor, slots: Slots, values: Tensor | float) -> Tensor:
        """The residual stream with these coordinates set to `values`."""
        stream = as_tensor(stream)
        return replaced(stream, np.asarray(slots, dtype=np.intp), like(stream, values))


@dataclass(frozen=True, eq=False)
class Directions:
    """Coordinate i is written along row i of `write` [coordinate, d_model] and read with column i of `read`.

    `write @ read` is the identity; therefore writing one coordinate does not change what is read of the others.
    """

    write: Array
    read: Array

    def get(self, stream: Tensor, slots: Slots) -> Tensor:
        """The coordinates [..., slot] of a residual stream [..., d_model]."""
        stream = as_tensor(stream)
        return stream @ like(stream, self.read[:, np.asarray(slots, dtype=np.intp)])

    def put(self, stream: Tensor, slots: Slots, values: Tensor | float) -> Tensor:
        """The residual stream with these coordinates set to `values`."""
        stream = as_tensor(stream)
        change = like(stream, values) - self.get(stream, slots)
        return stream + change @ like(stream, self.write[np.asarray(slots, dtype=np.intp)])


Basis = Axes | Directions
