"""What follows a proof step by step: a variant of the network whose stream is another form of the one that is proved.

`prove` is about a plain network: each reader reads the stream itself. A variant's proof is the plain one with the
states after each sub-layer watched by a `Follower`, which shows that the variant does the same (`turned.py`), or adds
what the variant does differently to the states (`normed.py`). This one does nothing: it follows the plain network.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracr_check.head import States
from tracr_check.variables import Array

__all__ = ["Follower"]


class Follower:
    """Follows a proof; its methods raise `Rejected`, or return the states as the variant's readers see them.

    `words`: the logit of each value of the output, if the logits are those of words and the largest one counts.
    """

    words: NDArray[np.int64] | None = None

    def embedded(self, states: States) -> States:
        """After the embedding."""
        return states

    def attended(self, layer: int, before: States, after: States) -> States:
        """After the heads of a layer."""
        return after

    def transformed(self, layer: int, before: States, after: States) -> States:
        """After the MLP of a layer."""
        return after

    def logits(self, states: States, unembed: Array) -> tuple[Array, Array]:
        """The bias of each logit, and how much farther than the plain network's it may be off."""
        return unembed[0] * 0.0, unembed[0] * 0.0
