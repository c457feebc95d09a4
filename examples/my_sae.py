"""Score a sparse autoencoder of your own on known features: a function from a subject and data to a dictionary.

This one has tied weights, a penalty on its codes, and plain gradient steps.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from tracr import lab
from tracr.lab.features import Examination, FeatureData, FoundDictionary


def my_sae(subject: Any, data: FeatureData, penalty: float = 0.5, steps: int = 3_000, seed: int = 0) -> FoundDictionary:
    """Codes are relu(x Wᵀ - penalty), and x is about codes W; `data.atoms` is the number of true features."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(data.atoms, data.activations.shape[1]))
    for step in range(steps):
        W /= np.linalg.norm(W, axis=1, keepdims=True)
        x = data.activations[rng.integers(len(data.activations), size=256)]
        codes = np.maximum(x @ W.T - penalty, 0)
        error = x - codes @ W
        W += 0.05 * (1 - step / steps) * (codes.T @ error + ((error @ W.T) * (codes > 0)).T @ x)
    return FoundDictionary(W, lambda x: np.maximum(x @ W.T - penalty, 0))


def main() -> None:
    """Compare it with random atoms and with the ceiling."""
    subject = lab.subject("features:features=32:tokens=256:density=0.02", "superposed", ratio=4)
    examination = Examination(subject, pairs=16, seed=0)
    mine = examination.score(my_sae(subject, examination.training))
    for name, scores in {"mine": mine, "null": examination.null(mine.atoms), "ceiling": examination.ceiling}.items():
        shown = ", ".join(f"{score} {getattr(scores, score):.2f}" for score in ("f1", "cosine", "firing", "causal"))
        print(f"{name:8} {shown}")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
