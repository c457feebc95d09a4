"""Print the selector and the attention pattern of each head of an induction program.

The pattern begins with a row and a column for BOS. A head that copies or averages spreads its weight evenly over the
selected keys, or puts it on BOS if none is selected. A head that counts gives BOS the weight c/(c+w).
"""

from __future__ import annotations

import argparse

import numpy as np

import tracr
from tracr.rasp import programs, rasp

INPUT = "abcab"


def lines(matrix: np.ndarray, digits: int) -> list[str]:
    """A row of text for each row of the matrix, zeros as dots."""
    width = digits + 3 if digits else 2
    return ["".join((f"{x:.{digits}f}" if x else ".").rjust(width) for x in row) for row in matrix]


def main() -> None:
    """Show every head."""
    model = tracr.compile(programs.make_induction(), "abc", len(INPUT))
    values = rasp.DefaultRASPEvaluator().evaluate_all(model.expressions, INPUT)
    labelled = zip(model.graph.nodes, model.expressions, strict=True)
    selectors = {node.label: values[expr] for node, expr in labelled}
    run = model.run(INPUT)
    for block, layer in enumerate(model.schedule.layers):
        for number, head in enumerate(layer.heads):
            designed = np.array(selectors[head.selector], dtype=float)
            pattern = run[f"blocks.{block}.attn.hook_pattern"][0, number]
            print(f"\nlayer {block}, head {number}: selector {head.selector!r}, writes {head.label!r}")
            left, right = ["", *lines(designed, 0)], lines(pattern, 2)
            for token, wanted, got in zip(run.tokens[0], left, right, strict=True):
                print(f"{token:>5} {wanted:<{2 * len(INPUT) + 3}} |{got}")
            selected = designed.sum(axis=1, keepdims=True)
            bos = pattern[1:, :1]
            even = np.where(selected, designed / np.maximum(selected, 1), 0) * (1 - bos)
            print(f"largest difference from the design: {np.abs(pattern[1:, 1:] - even).max():.1e}")
    print("\n" + " ".join(INPUT), "->", run.decoded)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
