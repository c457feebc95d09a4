"""Where the labelled coordinates lie in the residual stream: on its axes, or along other directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Axes", "Basis", "Directions"]

Array = NDArray[Any]
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
        """What reads the coordinates off the residual stream, a column each."""
        return np.eye(self.size)

    def get(self, stream: Array, slots: Slots) -> Array:
        """The coordinates [..., slot] of a residual stream [..., d_model]."""
        return np.asarray(stream[..., np.asarray(slots, dtype=np.intp)])

    def put(self, stream: Array, slots: Slots, values: Array | float) -> Array:
        """The residual stream with these coordinates set to `values`."""
        changed = np.array(stream)
        changed[..., np.asarray(slots, dtype=np.intp)] = values
        return changed


@dataclass(frozen=True, eq=False)
class Directions:
    """Coordinate i is written along row i of `write` [coordinate, d_model] and read with column i of `read`.

    `write @ read` is the identity, so writing one coordinate leaves what is read of the others as it was.
    """

    write: Array
    read: Array

    def get(self, stream: Array, slots: Slots) -> Array:
        """The coordinates [..., slot] of a residual stream [..., d_model]."""
        return np.asarray(stream @ self.read[:, np.asarray(slots, dtype=np.intp)].astype(stream.dtype))

    def put(self, stream: Array, slots: Slots, values: Array | float) -> Array:
        """The residual stream with these coordinates set to `values`."""
        change = values - self.get(stream, slots)
        return np.asarray(
            stream + change.astype(stream.dtype) @ self.write[np.asarray(slots, dtype=np.intp)].astype(stream.dtype)
        )


Basis = Axes | Directions
