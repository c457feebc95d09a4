"""Dictionary learning (Mairal et al. 2009, online): x is about c A with |x - c A|²/2 + alpha Σ|c| as small as possible.

Codes are not negative. scikit-learn's `MiniBatchDictionaryLearning`.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from tracr.extras import need
from tracr.lab.features.found import FoundDictionary
from tracr.lab.features.sparse_autoencoders import atoms_of

if TYPE_CHECKING:
    from tracr.lab.features.questions import FeatureData

__all__ = ["dictionary_learning"]


def dictionary_learning(
    subject: Any, data: FeatureData, *, width: float = 1.0, alpha: float = 0.1, passes: int = 4, seed: int = 0
) -> FoundDictionary:
    """The atoms."""
    decomposition = need("sklearn.decomposition", "lab")
    unused = need("sklearn.exceptions", "lab").ConvergenceWarning
    learner = decomposition.MiniBatchDictionaryLearning(
        atoms_of(data, width),
        alpha=alpha,
        max_iter=passes,
        batch_size=256,
        fit_algorithm="cd",
        transform_algorithm="lasso_cd",
        positive_code=True,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", unused)
        learner.fit(data.activations)

    def encode(activations: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", unused)
            return learner.transform(activations)

    return FoundDictionary(learner.components_, encode)
