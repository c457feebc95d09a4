"""Fit linear probes for a variable at every sub-layer, and compare with the labels of the residual stream.

A probe answers "can this be decoded linearly here?". The labels answer "is this stored here, and which component wrote
it?". The two differ: a variable may be decodable before it is computed, or from other variables that depend on it.
"""

from __future__ import annotations

import argparse
from itertools import product

import numpy as np

import tracr
from tracr.rasp import programs, rasp

VOCAB, LENGTH = "abc", 5


def accuracy(inputs: np.ndarray, values: np.ndarray, train: np.ndarray) -> float:
    """The accuracy of a least-squares probe (one-hot targets, with a bias) on inputs it was not trained on."""
    kinds, codes = np.unique(values, return_inverse=True)
    features = np.column_stack([inputs, np.ones(len(inputs))])
    weights = np.linalg.lstsq(features[train], np.eye(len(kinds))[codes[train]], rcond=None)[0]
    return float(((features @ weights).argmax(axis=1) == codes)[~train].mean())


def main() -> None:
    """Print a table: a row for each sub-layer, a column for each variable."""
    program = programs.make_hist2()
    model = tracr.compile(program, VOCAB, LENGTH, level=0)
    batch = [list(xs) for xs in product(VOCAB, repeat=LENGTH)]
    run = model.run(batch)

    labelled = {node.label: expr for node, expr in zip(model.graph.nodes, model.expressions, strict=True)}
    exprs = {label: labelled[label] for label in ("hist", "first", "hist2")}
    truth = [rasp.DefaultRASPEvaluator().evaluate_all([program], xs) for xs in batch]
    values = {name: np.array([row[expr] for row in truth]).reshape(-1) for name, expr in exprs.items()}
    train = np.repeat(np.random.default_rng(0).random(len(batch)) < 0.5, LENGTH)

    places = {"blocks.0.hook_resid_pre": "embed"}
    for block in range(model.n_layers):
        places[f"blocks.{block}.hook_resid_mid"] = f"blocks.{block}.attn"
        places[f"blocks.{block}.hook_resid_post"] = f"blocks.{block}.mlp"
    writers = {name: model.residual.of(name)[0].writer for name in exprs}
    print("accuracy of a linear probe; * if the labels say that the variable is stored\n")
    print(f"{'after':16}" + "".join(f"{name:>9}" for name in exprs))
    commonest = (np.unique(column, return_counts=True)[1].max() / column.size for column in values.values())
    print(f"{'(most common)':16}" + "".join(f"{share:8.3f} " for share in commonest))
    stored: set[str] = set()
    for hook, place in places.items():
        stored |= {name for name, writer in writers.items() if writer.startswith(place)}
        inputs = run[hook][:, 1:].reshape(-1, model.d_model)
        cells = (f"{accuracy(inputs, values[name], train):8.3f}{'*' if name in stored else ' '}" for name in exprs)
        print(f"{place:16}" + "".join(cells))


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
