"""Score dictionary learning on models whose features are known exactly.

Models in superposition (`tracr.superpose`) compute their programs exactly, and the direction of every feature is known.
scikit-learn's dictionary learning sees only the activations. How many of the true features does it find, compared with
the same number of random directions, and with directions drawn from the activations?

Needs `pip install 'tracr[lab]'`.
"""

from __future__ import annotations

import argparse
import sys
import warnings

import numpy as np

import tracr
from tracr import compress
from tracr.compress.paper import study

SEEDS = range(3)
ROWS = 400  # most distinct activations to learn from


def main() -> None:
    """Learn, score, print a table."""
    try:
        from sklearn.decomposition import DictionaryLearning
        from sklearn.exceptions import ConvergenceWarning
    except ImportError:
        sys.exit("this example needs scikit-learn: pip install 'tracr[lab]'")
    models: dict[str, tracr.CompiledModel] = {name: study(name)[0] for name in ("frac_prevs", "sort_unique")}
    print("features recovered (|cosine| > 0.9), mean over seeds:")
    print(f"{'program':<12} {'D':>3} {'d':>3} {'features':>8} {'learned':>8} {'activations':>11} {'random':>7}")
    found: dict[tuple[str, int, int], list[tuple[int, ...]]] = {}
    for sample in compress.samples(models, seeds=SEEDS):
        rng = np.random.default_rng(sample.model.training.seed)
        rows = np.unique(sample.activations.round(9), axis=0)
        rows = rng.permutation(rows)[:ROWS]
        atoms = len(sample.features)
        learner = DictionaryLearning(
            n_components=atoms,
            alpha=0.05,
            max_iter=60,
            fit_algorithm="cd",
            transform_algorithm="lasso_cd",
            random_state=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            learned = learner.fit(rows).components_
        drawn = rows[rng.permutation(len(rows))[:atoms]]
        random = rng.normal(size=(atoms, rows.shape[1]))
        marks = tuple(
            compress.score(dictionary, sample.directions).recovered for dictionary in (learned, drawn, random)
        )
        found.setdefault((sample.program, sample.model.compiled.d_model, sample.model.d_model), []).append(
            (*marks, atoms)
        )
    for (program, width, dim), marks_of in found.items():
        learned_, drawn_, random_, atoms = np.mean(marks_of, axis=0)
        print(f"{program:<12} {width:>3} {dim:>3} {atoms:>8.0f} {learned_:>8.1f} {drawn_:>11.1f} {random_:>7.1f}")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
