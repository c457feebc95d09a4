"""A linear probe (Alain and Bengio 2016): a linear classifier of the variable's values, trained on streams.

Its loss is -mean log softmax(W x + b)_v over tokens with the stream x and the value v. The place is where it is right
most often, on inputs held out. The subspace is the span of the rows of W minus their mean, in units of the stream: the
directions that its answers depend on. Its control (Hewitt and Liang 2019) is the question with random labels by token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracr.lab.variables.choosing import Labelled, best_decoded
from tracr.lab.variables.found import FoundVariable, LinearSubspace, span_of
from tracr.lab.variables.probing import train_classifier

if TYPE_CHECKING:
    from tracr.lab.variables.questions import VariableData

__all__ = ["linear_probe"]


def linear_probe(
    subject: Any, data: VariableData, *, steps: int = 200, rate: float = 0.05, seed: int = 0
) -> dict[str, FoundVariable]:
    """A probe for each variable. `rate` is Adam's."""

    def fit(place: str, labelled: Labelled) -> FoundVariable:
        probe = train_classifier(labelled, (), steps=steps, rate=rate, seed=seed)
        rows = (probe.weights[0] / probe.scale[:, None]).T
        return FoundVariable(place, LinearSubspace(span_of(rows - rows.mean(axis=0))), probe)

    return best_decoded(data, fit)
