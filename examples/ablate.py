"""Set variables to zero with a hook, and compare with the interpreter, where the same variable is replaced by zeros.

If the labels are right, the two must agree: the model with a variable's direction set to zero computes the same as the
program with that variable replaced by 0 at every position.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

import tracr
from tracr.rasp import programs, rasp
from tracr.rasp.annotations import Encoding

INPUTS = ["(())", "())(", "(()", "()a()"]


def zero(dimensions: list[int]) -> Callable[[str, np.ndarray], np.ndarray | None]:
    """A hook that sets dimensions of the residual stream to zero at every position except BOS."""

    def hook(name: str, activation: np.ndarray) -> np.ndarray | None:
        if "hook_resid" not in name:
            return None
        changed = activation.copy()
        changed[:, 1:, dimensions] = 0
        return changed

    return hook


def main() -> None:
    """Ablate every numerical variable in turn."""
    model = tracr.compile(programs.make_dyck1(), "()a", 5, level=0)
    exprs = {node.label: expr for node, expr in zip(model.graph.nodes, model.expressions, strict=True)}
    _, output = model.graph.outputs[0]
    program = model.expressions[output]
    # Numbers computed by heads and MLPs. Zero in all directions of a one-hot code is not a value.
    numbers = [d for d in model.residual if d.encoding is Encoding.NUMERICAL and d.writer.startswith("blocks")]
    agree = 0
    for xs in INPUTS:
        print(f"\n{xs:24}{''.join(model(xs))}")
        for dimension in numbers:
            got = model.run(xs, hook=zero([dimension.index])).decoded
            zeros = {exprs[dimension.variable]: [0] * len(xs)}
            wanted = rasp.DefaultRASPEvaluator().evaluate_all([program], xs, replaced=zeros)[program]
            agree += got == wanted
            print(f"  without {dimension.variable:14}{''.join(got):8}interpreter: {''.join(wanted)}")
    print(f"\nmodel and interpreter agree in {agree} of {len(INPUTS) * len(numbers)} ablations")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
