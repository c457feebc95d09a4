"""Measures which parameters of compiled models get no gradient, and how large the others' gradients are.

    python benchmarks/gradients.py -o docs/natural/gradients.json    # needs the extra `jax`

docs/natural.md has the results.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import tracr
from tracr import natural
from tracr.rasp import programs, rasp
from tracr.writing import write_file

VOCAB, LENGTH, THREE = "abcd", 5, list(map(list, ("aabcd", "abcda", "dcbaa")))
PROGRAMS = {"hist": programs.make_hist(), "the previous token": programs.shift_by(1, rasp.tokens)}
ATTENTION = ("W_Q", "W_K", "W_V")


def measured(model: tracr.DesignedModel) -> dict[str, Any]:
    """The share of entries without gradient on 256 inputs, and the largest gradients of the loss on three inputs."""
    found = natural.gradients(model)
    shares = {one.name.removeprefix("blocks.0.attn."): one.share for one in found.matrices}
    without = {name: round(shares[name], 4) for name in ATTENTION} | {"all": round(found.total.share, 4)}
    return {"inputs": found.inputs, "without_gradient": without, "largest": largest(model)}


def largest(model: tracr.DesignedModel) -> dict[str, float]:
    """The largest size of a gradient of the cross-entropy, over all tokens of three inputs."""
    apply, weights = model.to_jax(check=False)
    ids, codes = model.encode(THREE), jnp.asarray(model.codes(model.encode(THREE))[0])[:, 1:]

    def losses(params: Any) -> Any:
        logits = jax.nn.log_softmax(apply(params, ids)[:, 1:])
        return -jnp.take_along_axis(logits, codes[..., None], axis=-1).ravel()

    found = jax.jacrev(losses)(weights)
    return {name: float(jnp.abs(found[f"blocks.0.attn.{name}"]).max()) for name in ATTENTION}


def rows() -> Iterator[dict[str, Any]]:
    """The programs at three gaps, then variants of the first."""
    for name, program in PROGRAMS.items():
        for gap in (256, 64, 20):
            yield {"program": name, "gap": gap, **measured(tracr.compile(program, VOCAB, LENGTH, gap=gap))}
    model = tracr.compile(PROGRAMS["hist"], VOCAB, LENGTH)
    variants = {"rotated": model.rotated(), "layer norm": model.with_layer_norm(), "noise": model.with_noise(0.001)}
    for variant, made in variants.items():
        yield {"program": "hist", "gap": 256, "variant": variant, **measured(made)}


def main() -> None:
    """Print and write the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, required=True)
    lines = []
    out = parser.parse_args().out
    for row in rows():
        lines.append(json.dumps(row))
        print(lines[-1], flush=True)
    write_file(out, ("[\n" + ",\n".join(lines) + "\n]\n").encode())


if __name__ == "__main__":
    main()
