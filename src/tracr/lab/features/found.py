"""What a method of the track "features" returns: a dictionary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.errors import InputError

__all__ = ["FoundDictionary", "unit_rows"]

Array = NDArray[Any]


def unit_rows(rows: Array) -> Array:
    """The rows with the length 1; a row of zeros stays."""
    size = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(size > 0, size, 1.0))


@dataclass(frozen=True, eq=False)
class FoundDictionary:
    """Atoms, and the code of every activation: activations are about `encode(activations) @ atoms + offset`.

    Args:
        atoms: the directions of the features that were found [atom, dimension].
        encode: from activations [token, dimension] to codes [token, atom]; a transcoder's are those of its inputs. By
            default the positive part of the product with each atom, by its squared length.
        offset: [dimension]; by default zero.
        reads_inputs: whether `encode` takes `data.inputs_of_mlp` rather than activations.
    """

    atoms: Array
    encode: Callable[[Array], Array] | None = field(default=None, repr=False)
    offset: Array | None = field(default=None, repr=False)
    reads_inputs: bool = False

    def __post_init__(self) -> None:
        atoms = np.asarray(self.atoms, dtype=np.float64)
        if atoms.ndim != 2 or not np.isfinite(atoms).all():
            raise InputError(
                f"a dictionary is a matrix [atom, dimension] of finite numbers, not one of shape {atoms.shape}",
                hint="return FoundDictionary(atoms, encode)",
            )
        object.__setattr__(self, "atoms", atoms)

    @cached_property
    def directions(self) -> Array:
        """The atoms with the length 1."""
        return unit_rows(self.atoms)

    def codes(self, activations: Array) -> Array:
        """The code of each activation [token, atom]."""
        if self.encode is None:
            size = np.maximum((self.atoms**2).sum(axis=1), 1e-12)
            return np.asarray(np.maximum(activations @ self.atoms.T / size, 0))
        found = np.asarray(self.encode(activations), dtype=np.float64)
        if found.shape != (len(activations), len(self.atoms)):
            raise InputError(
                f"encode gave codes of shape {found.shape} for {len(activations)} activations and {len(self.atoms)} "
                "atoms",
                hint="return codes [activation, atom]",
            )
        return found

    def decoded(self, codes: Array) -> Array:
        """The activations that codes stand for."""
        return np.asarray(codes @ self.atoms + (0 if self.offset is None else self.offset))
