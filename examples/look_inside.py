"""Print the residual stream after every sub-layer, for one input: the paper's figure of frac_prevs as text.

Rows are dimensions with their labels, columns are positions. After the embedding, only rows that the sub-layer changed
are shown; a star marks a changed cell.
"""

from __future__ import annotations

import argparse

import numpy as np

import tracr
from tracr.rasp import programs

INPUT = "xacx"


def panel(labels: list[str], tokens: list[str], now: np.ndarray, before: np.ndarray) -> None:
    """Print the rows of [position, dimension] that changed, or that none did."""
    changed = now != before
    if not changed.any():
        print("  (no-op)")
        return
    print(" " * 14 + "".join(f"{token:>8}" for token in tokens))
    for number in np.flatnonzero(changed.any(axis=0)):
        cells = zip(now[:, number], changed[:, number], strict=True)
        text = "".join(
            f"{'*' if new else ' '}{value:.2f}".rjust(8) if value or new else "       ." for value, new in cells
        )
        print(f"  {labels[number]:12}{text}")


def main() -> None:
    """Show every sub-layer."""
    example = programs.EXAMPLES["frac_prevs"]
    model = tracr.compile(example.program, example.vocab, example.max_seq_len, level=0)
    run = model.run(INPUT)
    stream = run["blocks.0.hook_resid_pre"][0]
    print("embedding")
    panel(model.residual.labels, run.tokens[0], stream, np.zeros_like(stream))
    for block in range(model.n_layers):
        for kind, point in (("attention", "mid"), ("MLP", "post")):
            after = run[f"blocks.{block}.hook_resid_{point}"][0]
            print(f"{kind} {block + 1}")
            panel(model.residual.labels, run.tokens[0], after, stream)
            stream = after
    print("output", run.decoded)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
