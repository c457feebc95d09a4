"""Train a compiled model further in PyTorch, read the weights back, and look at the changes.

The model computes the fraction of "x" among the tokens so far. All weights are trained until it counts "a" as half an
"x". The result is a CompiledModel with labels, whose weights are not the compiler's own. It can be run, drawn and
compared.
Needs PyTorch: pip install 'tracr[torch]'.
"""

from __future__ import annotations

import argparse

import numpy as np

import tracr
from tracr.rasp import programs, rasp


def main() -> None:
    """Train, load back, compare."""
    import torch

    torch.manual_seed(0)
    is_x = (rasp.tokens == "x").named("is_x")
    model = tracr.compile(programs.make_frac_prevs(is_x), vocab="abx", max_seq_len=4)
    module = model.to_torch(dtype="float64")
    ids = module.encode([[a, b, c, d] for a in "abx" for b in "abx" for c in "abx" for d in "abx"])
    weight = torch.tensor([0.5, 0.0, 1.0], dtype=torch.float64)[ids[:, 1:]]
    target = weight.cumsum(dim=1) / torch.arange(1, 5)

    optimiser = torch.optim.Adam(module.parameters(), lr=1e-3)
    for step in range(401):
        loss = ((module(ids)[:, 1:, 0] - target) ** 2).mean()
        if step % 100 == 0:
            print(f"step {step:3}  loss {loss.item():.1e}")
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    trained = module.to_compiled()
    print(f"\n{trained!r}")
    run, before = trained.run("axb", dtype=np.float64), model.run("axb", dtype=np.float64)
    print("is_x before", *before["blocks.0.hook_resid_post"][0, 1:, model.residual["is_x"].index].round(2))
    print("is_x after ", *run["blocks.0.hook_resid_post"][0, 1:, trained.residual["is_x"].index].round(2))
    print("output     ", *run.logits[0, 1:, 0].round(2))
    counterexample = trained.verify().counterexample
    assert counterexample is not None
    print(f"the program would say {counterexample.expected} on {counterexample.tokens}")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
