"""Put a model into a random basis: single dimensions lose their meaning, the directions of the ground truth keep it.

For how many labels of the residual stream is there a dimension that follows the label (a correlation of at least 0.9
over all inputs)? For all in the compiled model, for none in the rotated one; the directions follow all labels in both.
This program mixes well; a program that reads shares of attention again keeps a few dimensions (docs/variants.md).
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np

import tracr
from tracr.rasp import programs, rasp

LONGEST = 4


def correlations(found: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The correlation of each column of `found` with each of `truth`."""
    found, truth = (array - array.mean(axis=0) for array in (found, truth))
    sizes = np.linalg.norm(found, axis=0)[:, None] * np.linalg.norm(truth, axis=0)
    return np.divide(found.T @ truth, sizes, out=np.zeros_like(sizes), where=sizes > 1e-3)


def main() -> None:
    """Compare a compiled model with variants of it."""
    inputs = [list(xs) for n in range(1, LONGEST + 1) for xs in itertools.product("abc", repeat=n)]
    longest = [xs for xs in inputs if len(xs) == LONGEST]
    model = tracr.compile(programs.make_frac_prevs(rasp.tokens == "a"), "abc", LONGEST)
    hook = f"blocks.{model.n_layers - 1}.hook_resid_post"
    truth = model.run(longest)[hook][:, 1:].reshape(-1, model.d_model)
    varying = truth.std(axis=0) > 1e-3
    for shown in (model, model.rotated(seed=0), model.rotated(seed=0).with_layer_norm().with_noise()):
        stream = shown.run(longest)[hook][:, 1:].reshape(-1, shown.d_model)
        dimensions = np.abs(correlations(stream, truth)).max(axis=0)[varying]
        directions = np.diag(correlations(shown.coordinates(stream), truth))[varying]
        print(shown)
        print(f"  labels that a dimension follows:  {(dimensions > 0.9).sum():2} of {varying.sum()}")
        print(f"  labels that their direction does: {(directions > 0.9).sum():2} of {varying.sum()}")
        wrong = sum(a != b for a, b in zip(shown(inputs), model(inputs), strict=True))
        print(f"  outputs that changed: {wrong} of {len(inputs)}")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
