"""Fine-tunes compiled weights to another program: "first duplicate" becomes "last duplicate".

    python benchmarks/fine_tuning.py -o docs/natural/fine_tuning.json   # needs the extra `jax`

Runs that the file already has are skipped. The compiled program answers with the first token that the input has more
than once (None if there is none); training asks for the last one. docs/natural.md has the results.
"""

from __future__ import annotations

import argparse
import itertools
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax

import tracr
from tracr.ir.domains import Finite
from tracr.rasp import rasp
from tracr.writing import write_file

VOCAB, LENGTH, BATCH = "abcd", 5, 256
SCALE = 10.0  # of the logits in the loss: the compiled logits are 0 and 1


def duplicate(which: rasp.Comparison) -> rasp.SOp:
    """The first (no duplicate before it: LT) or last (none after it: GT) token that the input has more than once."""
    same = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)
    repeated = rasp.SelectorWidth(same) > 1
    others = rasp.SelectorAnd(
        rasp.Select(rasp.indices, rasp.indices, which), rasp.Select(repeated, rasp.Full(True), rasp.Comparison.EQ)
    )
    chosen = rasp.SequenceMap(lambda count, flag: flag and count == 0, rasp.SelectorWidth(others), repeated)
    found = rasp.Select(chosen, rasp.Full(True), rasp.Comparison.EQ)
    return rasp.Aggregate(found, rasp.tokens).named("duplicate")


def position(which: rasp.Comparison) -> rasp.SOp:
    """For each token the position of the first (LT) or last (GT) token equal to it: a mean, read by a staircase."""
    same = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)
    beyond = rasp.Select(rasp.indices, rasp.indices, which)
    end = rasp.SelectorWidth(rasp.SelectorAnd(same, beyond)) == 0
    chosen = rasp.SelectorAnd(same, rasp.Select(end, rasp.Full(True), rasp.Comparison.EQ))
    return rasp.categorical(rasp.Aggregate(chosen, rasp.indices)).named("position")


PROGRAMS = {"duplicate": duplicate, "position": position}


def fine_tuned(name: str, gap: float, seed: int, steps: int, rate: float) -> tuple[float, float, float]:
    """The share of tokens with the right answer of the new program: before, after; and of the old program, after."""
    ends = (rasp.Comparison.LT, rasp.Comparison.GT)
    old, new = (tracr.compile(PROGRAMS[name](end), VOCAB, LENGTH, gap=gap) for end in ends)
    first, last = (cast(Finite, model.outputs[0].domain).values for model in (old, new))
    assert first == last  # a code means the same in both
    apply, weights = old.to_jax()
    inputs = list(itertools.product(VOCAB, repeat=LENGTH))
    ids = jnp.asarray(old.encode(inputs))
    old_answers, answers = (jnp.asarray(model.codes(model.encode(inputs))[0])[:, 1:] for model in (old, new))
    adam = optax.adam(rate)

    def loss(params: Any, rows: Any) -> Any:
        logits = SCALE * apply(params, ids[rows])[:, 1:]
        return optax.softmax_cross_entropy_with_integer_labels(logits, answers[rows]).mean()

    def one_step(params: Any, state: Any, rows: Any) -> Any:
        updates, state = adam.update(jax.grad(loss)(params, rows), state)
        return optax.apply_updates(params, updates), state

    step = jax.jit(one_step)

    def right(params: Any, wanted: Any) -> float:
        return float((apply(params, ids)[:, 1:].argmax(axis=-1) == wanted).mean())

    rng, state, before = np.random.default_rng(seed), adam.init(weights), right(weights, answers)
    for _ in range(steps):
        weights, state = step(weights, state, rng.integers(len(inputs), size=BATCH))
    return before, right(weights, answers), right(weights, old_answers)


def wanted() -> Iterator[dict[str, Any]]:
    """The runs of docs/natural.md."""
    for name, seeds in (("duplicate", 8), ("position", 3)):
        for rate, gap, seed in itertools.product((1e-2, 1e-3), (20.0, 256.0), range(seeds)):
            yield {"program": name, "rate": rate, "gap": gap, "seed": seed, "steps": 300}


def main() -> None:
    """Make the missing runs, print a line for each, and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # at most one token is chosen, which the compiler assumes
    rows: list[dict[str, Any]] = json.loads(given.out.read_text()) if given.out.exists() else []
    for run in wanted():
        if any(run.items() <= row.items() for row in rows):
            continue
        before, after, old = fine_tuned(run["program"], run["gap"], run["seed"], run["steps"], run["rate"])
        rows.append(run | {"right_before": before, "right_after": after, "still_the_old_answer": old})
        print(rows[-1], flush=True)
        lines = ",\n".join(map(json.dumps, rows))
        write_file(given.out, f"[\n{lines}\n]\n".encode())


if __name__ == "__main__":
    main()
