"""Checks that models are still the same, bit for bit: digests of many compilations, to compare two checkouts.

For every program of the library and for random programs, at every level: the weights, the labels of the residual
stream, the tables of the program and the edges of the ground truth. A refusal counts as a result: the class of its
error. Write the digests in one checkout and compare in the other (the same machine, the same numpy):

    python benchmarks/same_models.py --write before.json
    python benchmarks/same_models.py --against before.json
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tracr
from tracr.rasp.generate import random_program
from tracr.rasp.programs.examples import EXAMPLES
from tracr.rasp.rasp import SOp

VOCABULARIES: tuple[tuple[Any, ...], ...] = (("a", "b", "c"), (1, 2, 3), (-1, 0, 0.5), ("x",), (False, True), (0, "a"))


def programs(count: int) -> Iterator[tuple[str, SOp, tuple[Any, ...], int, bool]]:
    """Name, program, vocabulary, longest length, causal or not."""
    for name, example in EXAMPLES.items():
        yield name, example.program, example.vocab, example.max_seq_len, False
        larger = example.made_for(example.vocab, example.max_seq_len + 2)
        yield f"{name}+2", larger.program, larger.vocab, larger.max_seq_len, False
    for seed in range(count):
        vocab, length, causal = VOCABULARIES[seed % len(VOCABULARIES)], 2 + seed % 5, seed % 7 == 0
        program = random_program(
            seed, max_ops=2 + seed % 12, vocab=vocab, max_seq_len=length, causal=causal, composite=seed % 2 == 1
        )
        yield f"random {seed}", program, vocab, length, causal


def digests(program: SOp, vocab: tuple[Any, ...], length: int, causal: bool, level: int) -> dict[str, str]:
    """A digest of each part of the compiled program."""
    try:
        model = tracr.compile(program, vocab, length, level=level, causal=causal)
    except tracr.TracrError as error:
        return {"refused": type(error).__name__}
    arrays = [(name, array.shape, array.tobytes()) for name, array in model.parameters.named()]
    truth = model.ground_truth
    return {
        "weights": _digest(arrays),
        "labels": _digest(list(model.residual.labels)),
        "tables": _digest(list(_tables(getattr(model, "program", None) or vars(model)["typed"]))),
        "edges": _digest([str(edge) for edge in truth.edges()]),
        "nodes": _digest([(node.id, node.kind, node.variables) for node in truth.nodes()]),
    }


def _tables(program: Any) -> Iterator[Any]:
    """The program as data: labels, encodings, values and tables."""
    for node in program.sops.values():
        table = getattr(node.op, "table", None)
        values = getattr(node.domain, "values", None) or str(node.domain)
        yield node.label, node.encoding.value, repr(values), None if table is None else np.asarray(table).tobytes()
    for selector in program.selectors.values():
        table = getattr(selector, "table", None)
        yield selector.label, selector.counts, None if table is None else np.asarray(table).tobytes()
    yield [(name, program.sops[number].label) for name, number in program.outputs]


def _digest(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


def main() -> int:
    """Write digests, or compare with those of another checkout."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="write the digests to this file")
    parser.add_argument("--against", type=Path, help="compare with the digests of this file")
    parser.add_argument("--random", type=int, default=500, help="how many random programs (default: 500)")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    known = json.loads(chosen.against.read_text()) if chosen.against else {}
    found, different, compared = {}, 0, 0
    for name, program, vocab, length, causal in programs(chosen.random):
        for level in (0, 1, 2):
            key = f"{name}, level {level}"
            found[key] = digests(program, vocab, length, causal, level)
            if key in known:
                compared += 1
                parts = [part for part in known[key] | found[key] if known[key].get(part) != found[key].get(part)]
                if parts:
                    different += 1
                    print(f"{key}: {', '.join(parts)} differ")
    if chosen.write:
        chosen.write.write_text(json.dumps(found, indent=1))
    refused = sum("refused" in one for one in found.values())
    print(f"{len(found)} compilations, {refused} refused; {compared} compared, {different} different")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
