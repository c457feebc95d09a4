"""Groups of neurons: an MLP of the circuit, and the neurons that a construction makes for it.

The constructions are in lookups.py (tables of codes), staircases.py (steps of a number) and arithmetic.py (lines
through points, carried numbers, quotients); gates.py has the parts they share. All of them write zero at the BOS
position: their inputs read as zero there, and constants are gated by BOS. Therefore a head whose query selects no key
reads no MLP's output at BOS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tracr.caching import cached_property
from tracr.craft.linear import LinearMap
from tracr.craft.numerics import Noise
from tracr.craft.variables import Array, Variable

__all__ = ["MLP", "Units", "join"]


@dataclass(frozen=True, eq=False)
class MLP:
    """relu(read) @ write: a group of neurons that computes one variable."""

    label: str
    read: LinearMap
    writes: tuple[tuple[Variable, Array], ...]
    what: str
    as_linear: Callable[[], LinearMap] | None = None
    """Computes `linear`."""
    clears: tuple[tuple[Variable, Array], ...] = ()
    """The variables whose slots it clears, and the maps for that (`residual/slot_reuse.py`)."""

    @cached_property
    def linear(self) -> LinearMap | None:
        """The written value as a linear function of the residual stream, if it is one."""
        return None if self.as_linear is None else self.as_linear()

    @property
    def maps(self) -> tuple[LinearMap, ...]:
        """The maps with which the neurons read the residual stream."""
        return (self.read,)

    def with_maps(self, maps: Sequence[LinearMap], writes: tuple[tuple[Variable, Array], ...] | None = None) -> MLP:
        """The neurons with other matrices for reading and, if given, for writing."""
        (read,) = maps
        return MLP(self.label, read, writes or self.writes, self.what, self.as_linear, self.clears)

    @property
    def reads(self) -> tuple[Variable, ...]:
        """Every variable the neurons read."""
        return tuple(self.read.blocks)


@dataclass(frozen=True, eq=False)
class Units:
    """Neurons (`read`, with their biases) and what each writes; `noise` bounds the error of the result.

    `as_linear` gives the result as a linear function of the input, if it is one.
    """

    read: LinearMap
    write: Array
    noise: Noise
    as_linear: Callable[[], LinearMap] | None = None

    @property
    def count(self) -> int:
        """The number of neurons."""
        return self.read.width


def join(*parts: Units) -> Units:
    """Joins several groups of neurons that write the same directions."""
    read = parts[0].read
    for part in parts[1:]:
        read = read.beside(part.read)
    noise = Noise(sum(part.noise.error for part in parts), sum(part.noise.cold for part in parts))
    return Units(read, np.concatenate([part.write for part in parts]), noise)
