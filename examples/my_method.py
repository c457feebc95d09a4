"""Score a method of your own on a known circuit: a function from a subject and data to a number for each edge.

This one is exact edge patching, divided by the number of edges of the writer.
"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

from tracr import lab
from tracr.lab.faithfulness import faithfulness
from tracr.lab.methods import MethodData, exact_patching, run_method


def my_method(subject: Any, data: MethodData) -> dict[tuple[str, str], float]:
    """Larger numbers say more important; the keys are pairs such as ("embed", "blocks.0.attn.0.q")."""
    change = exact_patching(subject, data)
    edges = Counter(writer for writer, _ in change)
    return {(writer, reader): value / edges[writer] for (writer, reader), value in change.items()}


def main() -> None:
    """Compare it with methods of the laboratory."""
    case = lab.case("hist2")
    pairs = case.pairs(64)
    data = MethodData.of(pairs, case.metric(pairs))
    truth = case.model.ground_truth.minimal(pairs=pairs)
    for name, method in {"mine": my_method, "exact": "exact", "random": "random"}.items():
        found = run_method(method, case.model, data)
        print(f"{name:8}{truth.score(found.scores)}, {faithfulness(case.model, data, found.scores)}")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
