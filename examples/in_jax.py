"""Measure how much noise on its weights a compiled model tolerates: a thousand noisy copies with JAX's vmap.

`model.to_jax()` returns a pure function and a dict of weights, so a batch of models is a batch of dicts.
Needs JAX: pip install 'tracr[jax]'.
"""

from __future__ import annotations

import argparse

import numpy as np

import tracr
from tracr.rasp import programs

COPIES = 1000


def main() -> None:
    """Count, for each size of noise, the copies whose outputs are all right."""
    import jax

    example = programs.EXAMPLES["sort_unique"]
    model = tracr.compile(example.program, example.vocab, example.max_seq_len)
    apply, params = model.to_jax()
    ids = model.encode([[3, 1, 4], [2, 4, 1, 3], [4, 3]])
    expected = model.values(apply(params, ids), ids)
    print(f"{model!r}\nsorts to {expected}\n")

    def noisy(key: jax.Array, size: float) -> jax.Array:
        keys = dict(zip(params, jax.random.split(key, len(params)), strict=True))
        return apply({name: w + size * jax.random.normal(keys[name], w.shape) for name, w in params.items()}, ids)

    run = jax.jit(jax.vmap(noisy, in_axes=(0, None)))
    keys = jax.random.split(jax.random.key(0), COPIES)
    for size in (1e-6, 1e-5, 1e-4, 1e-3):
        logits = np.asarray(run(keys, size))
        right = sum(model.values(one, ids) == expected for one in logits)
        print(f"noise {size:<8g} {right:4} of {COPIES} copies are right")

    slopes = jax.grad(lambda weights: apply(weights, ids)[0, 1, 0])(params)
    steepest = max(slopes, key=lambda name: float(abs(slopes[name]).sum()))
    print(f"\nthe logit of the first output depends most steeply on {steepest}")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
