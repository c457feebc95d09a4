"""A probe with one hidden layer: a non-linear classifier of the variable's values, trained on streams.

Its loss is -mean log softmax(W₂ max(0, W₁ x + b₁) + b₂)_v. The place is where it is right most often, on inputs held
out. It reads only: it has no part of the stream that could be swapped, and its interchange accuracy is undefined. Its
control (Hewitt and Liang 2019) is the question with random labels by token: the more a probe can memorise, the better
it answers that question too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracr.lab.variables.choosing import Labelled, best_decoded
from tracr.lab.variables.found import FoundVariable
from tracr.lab.variables.probing import train_classifier

if TYPE_CHECKING:
    from tracr.lab.variables.questions import VariableData

__all__ = ["mlp_probe"]


def mlp_probe(
    subject: Any, data: VariableData, *, hidden: int = 64, steps: int = 200, rate: float = 0.01, seed: int = 0
) -> dict[str, FoundVariable]:
    """A probe for each variable. `rate` is Adam's."""

    def fit(place: str, labelled: Labelled) -> FoundVariable:
        return FoundVariable(place, None, train_classifier(labelled, (hidden,), steps=steps, rate=rate, seed=seed))

    return best_decoded(data, fit)
