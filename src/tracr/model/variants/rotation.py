"""A random orthogonal basis of the residual stream: labels are directions, and a dimension holds several of them.

A rotation consists of rounds. A round puts dimensions into random groups of four, and replaces x by (sum x)/2 - x
within a group. This map is orthogonal, has entries of 1/2 and -1/2, and leaves (1, 1, 1, 1) unchanged. After one round
a dimension holds four labels, after two up to sixteen, and so on. After r rounds the entries are multiples of 2**-r;
each round needs more bits. After each round `exactness.py` proves that the rotation changes no bit of what is read.
Groups with labels that could be disturbed are drawn again; if that fails, they are left out of the round.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr import arguments
from tracr.model.variants.exactness import BEFORE, Exactness, is_exact
from tracr.model.variants.readback import checked
from tracr.model.variants.variant_model import VariantModel, changed

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel

__all__ = ["rotated"]

Array = NDArray[Any]
MIXING = 3  # rounds beyond the number after which every dimension could hold every label
DRAWS, IDLE = 6, 2  # the most draws of groups in a round, and the most without a new group
LARGE = 128  # with more dimensions than this, groups are drawn twice
FOUR = np.full((4, 4), 0.5) - np.eye(4)


def rotated(model: DesignedModel, seed: int) -> VariantModel:
    """The model with a random rotation R of its residual stream: writers x @ R, readers Rᵀ @ W.

    In exact arithmetic x R Rᵀ W = x W: every query, key, value, neuron and logit is unchanged. For the compiled model's
    weights, R is proved to leave all of these unchanged to the last bit, also in float32, at tokens and at BOS
    (`exactness.py`). This is necessary: a head that computes a sum gives BOS 2**34 times the weight of a key and must
    read 0 there, and staircases need exact multiples of 2**-24. Labels without such a proof, for example those of raw
    shares of attention or of means, keep their own dimension.

    A layer norm subtracts the mean, the component along (1, ..., 1), and divides by a function of the length. Rotations
    that leave (1, ..., 1) unchanged commute with both; a model with layer norms gets such a rotation, without signs.

    With noise, or with layer norms of a stream that does not add up exactly, nothing is proved; then the model is
    checked on up to 2,000 inputs (`readback.py`).
    """
    rng = np.random.default_rng(arguments.whole("seed", seed))
    mixing = _Mixing(model, rng)
    rotation = mixing.rotation()
    rotation = rotation[:, rng.permutation(model.d_model)] * rng.choice(mixing.signs, model.d_model)
    found = changed(model, f"rotated(seed={seed})", basis=(rotation, rotation.T))
    return found if is_exact(found, mixing.exactness) else checked(found, "rotate the model before anything else")


class _Mixing:
    """The rounds of a rotation of a model's stream."""

    def __init__(self, model: DesignedModel, rng: np.random.Generator) -> None:
        self.size, self.rng = model.d_model, rng
        self.write, self.read = model.basis.write, model.basis.read
        self.exactness = Exactness(model.plain)
        self.signs = [1.0] if model.norm else [-1.0, 1.0]
        self.draws = DRAWS if self.size <= LARGE else 2

    def rotation(self) -> Array:
        """The product of the rounds that spreads the labels best; every round is proved to change nothing."""
        total = best = np.eye(self.size)
        active = self.read.any(axis=1) & self.write.any(axis=0)  # the two dimensions of layer norms hold no label
        active &= ~(self.write[self.exactness.never] != 0).any(axis=0)
        for _ in range(math.ceil(math.log(self.size, 4)) + MIXING):
            before, total = total, self._round(total, np.flatnonzero(active))
            if np.array_equal(before, total):
                break
            total = total * self.rng.choice(self.signs, self.size)
            best = min(best, total, key=self._concentration)
        return best

    def _concentration(self, rotation: Array) -> tuple[int, float, int]:
        """How concentrated the labels are: labels with their own dimension, the largest entry, the number of zeros."""
        written = np.abs(self.write @ rotation)
        mixed = (written > 0).sum(axis=0) > 1
        apart = ~(written[:, mixed] > 0).any(axis=1)
        return int(apart.sum()), float(written[:, mixed].max(initial=0.0)), int((written == 0).sum())

    def _round(self, total: Array, waiting: NDArray[np.intp]) -> Array:
        """One more round: keeps groups that are proved to change nothing, and draws the others again."""
        idle = 0
        for draw in range(self.draws):
            groups = self._groups(total, waiting, by_time=draw % 2 == 1)
            after = _mix(total, groups)
            before = self.write @ total
            offending = self._offending(after, before)
            if not offending.any():
                return after
            kept = groups[~offending[groups].any(axis=1)]
            after = _mix(total, kept)
            if len(kept) and not self._offending(after, before).any():
                total, waiting = after, np.setdiff1d(waiting, kept)
            else:
                idle += 1
            if idle == IDLE or len(waiting) < 4:
                break
        return total

    def _offending(self, rotation: Array, before: Array) -> NDArray[np.bool_]:
        """The dimensions, `before` the round, of the labels that a rotation could disturb."""
        labels = self.exactness.offending(self.write @ rotation, rotation.T @ self.read)
        return np.asarray((before[labels] != 0).any(axis=0))

    def _groups(self, total: Array, waiting: NDArray[np.intp], by_time: bool) -> NDArray[np.intp]:
        """Random groups of four dimensions; dimensions with one label come first.

        With `by_time`, a group has labels whose last readers are at about the same time.
        """
        written = self.write @ total
        order = self.rng.permutation(waiting)
        if by_time:
            last = np.where(written != 0, self.exactness.last_read[:, None], BEFORE).max(axis=0)
            order = order[np.argsort(last[order], kind="stable")]
        alone = (written[:, order] != 0).sum(axis=0) < 2
        order = np.concatenate([order[alone], order[~alone]])
        return order[: len(order) - len(order) % 4].reshape(-1, 4)


def _mix(rotation: Array, groups: NDArray[np.intp]) -> Array:
    """The rotation, followed by a rotation of each group of four dimensions."""
    after = rotation.copy()
    after[:, groups] = rotation[:, groups] @ FOUR
    return after
