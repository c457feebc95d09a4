"""Replace a head of a trained transformer by a compiled part, and see whether the replacement counts.

The host is a twin: it was trained to compute `hist` by the compiled model's mechanism, so the right part is known.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import tracr
from tracr import graft, natural

TWIN = Path(__file__).resolve().parents[1] / "docs" / "natural" / "twins" / "hist"


def main() -> None:
    """Put a true and a wrong part in the place of the head that counts."""
    twin = tracr.load(TWIN)
    assert isinstance(twin, natural.TwinModel)
    host, inputs = twin.to_torch(), graft.inputs_of(twin.teacher)
    parts = {one.title: one for one in graft.library("abcd", 5, names=["hist", "shift_by"]) if one.kind == "head"}
    grafted = graft.replace(host, "blocks.0.attn.0", parts["hist blocks.0.attn.0"], inputs)
    print(grafted.report(others=[parts["shift_by blocks.0.attn.0"]]))
    ids = host.encode([list("abca")])
    print("abca ->", *host.decode(grafted(ids).detach(), ids)[0])
    as_if = grafted.run_with_hooks(ids, {"graft.read.tokens": lambda scores: scores[:, [0, 0, 0, 0]]})
    print("if the head read aaaa ->", *host.decode(as_if.detach(), ids)[0])


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
