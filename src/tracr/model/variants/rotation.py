"""The residual stream in a random orthogonal basis: labels are directions, and a dimension holds several of them.

A rotation is made of rounds. In a round dimensions meet in random groups of four, and x becomes (sum x)/2 - x within a
group: that is orthogonal, has entries of 1/2 and -1/2, and leaves (1, 1, 1, 1) as it is. After one round a dimension
holds four labels, after two up to sixteen, and so on; entries are multiples of 2**-r after r rounds, so each round
takes bits. `exactness.py` proves of the rotation so far that it changes no bit of what is read; groups in which labels
would be disturbed are drawn again, and at last sit out the round.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr import arguments
from tracr.model.variants.exactness import BEFORE, Exactness, is_exact
from tracr.model.variants.readback import checked
from tracr.model.variants.variant import changed

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel

__all__ = ["rotated"]

Array = NDArray[Any]
MIXING = 3  # rounds beyond those after which every dimension could have met every other
DRAWS, IDLE = 6, 2  # how often groups are drawn in a round, and how often in vain
LARGE = 128  # dimensions, beyond which groups are drawn twice
FOUR = np.full((4, 4), 0.5) - np.eye(4)


def rotated(model: CompiledModel, seed: int) -> CompiledModel:
    """The model with a random rotation R of its residual stream: writers x @ R, readers Rᵀ @ W.

    In exact arithmetic x R Rᵀ W = x W: every query, key, value, neuron and logit is what it was. Of the compiled
    model's weights R is proved to leave all of these as they were to the last bit, in float32 too, at tokens and at BOS
    (`exactness.py`). This matters: a head that adds up weighs BOS 2**34 times as much as a key, and relies on reading 0
    there, and staircases rely on multiples of 2**-24. Labels of which that cannot be proved, as those that hold raw
    shares of attention or means, keep a dimension of their own.

    A layer norm subtracts the mean, the component along (1, ..., 1), and divides by a function of the length. Rotations
    that leave (1, ..., 1) alone commute with both, so a model with layer norms gets one of those, without signs.

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

    def __init__(self, model: CompiledModel, rng: np.random.Generator) -> None:
        self.size, self.rng = model.d_model, rng
        self.write, self.read = model.basis.write, model.basis.read
        self.exactness = Exactness(model.plain)
        self.signs = [1.0] if model.norm else [-1.0, 1.0]
        self.draws = DRAWS if self.size <= LARGE else 2

    def rotation(self) -> Array:
        """Rounds that are proved to change nothing, as many as spread the labels best."""
        total = best = np.eye(self.size)
        active = self.read.any(axis=1) & self.write.any(axis=0)  # of layer norms two dimensions hold no label
        active &= ~(self.write[self.exactness.never] != 0).any(axis=0)
        for _ in range(math.ceil(math.log(self.size, 4)) + MIXING):
            before, total = total, self._round(total, np.flatnonzero(active))
            if np.array_equal(before, total):
                break
            total = total * self.rng.choice(self.signs, self.size)
            best = min(best, total, key=self._concentration)
        return best

    def _concentration(self, rotation: Array) -> tuple[int, float, int]:
        """How little labels are spread: those with a dimension of their own, the largest entry, how many are 0."""
        written = np.abs(self.write @ rotation)
        mixed = (written > 0).sum(axis=0) > 1
        apart = ~(written[:, mixed] > 0).any(axis=1)
        return int(apart.sum()), float(written[:, mixed].max(initial=0.0)), int((written == 0).sum())

    def _round(self, total: Array, waiting: NDArray[np.intp]) -> Array:
        """One more round: groups that are proved to change nothing are kept, the others drawn again."""
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
        """The dimensions in which the labels that a rotation could disturb were `before`."""
        labels = self.exactness.offending(self.write @ rotation, rotation.T @ self.read)
        return np.asarray((before[labels] != 0).any(axis=0))

    def _groups(self, total: Array, waiting: NDArray[np.intp], by_time: bool) -> NDArray[np.intp]:
        """Random groups of four dimensions; those that hold one label first.

        With `by_time`, groups of labels that are last read at about the same time.
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
    """The rotation, then one of each group of four dimensions."""
    after = rotation.copy()
    after[:, groups] = rotation[:, groups] @ FOUR
    return after
