"""Random circuits, without a meaning, for tests and benchmarks of the schedulers."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from tracr.craft.heads import Head
from tracr.craft.linear import BOS, PAD, LinearMap
from tracr.craft.mlps import MLP
from tracr.craft.numerics import EXACT, Noise
from tracr.craft.variables import Variable
from tracr.ir.circuit import Circuit, Embedded
from tracr.ir.program import Program
from tracr.rasp.annotations import Encoding

__all__ = ["random_circuit"]

KINDS = ((EXACT, ()), (EXACT, ()), (Noise(error=0.1), ()), (EXACT, (2.0,)))  # noise and value at BOS


def random_circuit(seed: int, components: int, program: Program) -> Circuit:
    """A circuit of `components` components, each reading from some before it; most heads have the same pattern.

    Args:
        program: any program: a circuit needs one, but it is not used.
    """
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    tokens = Variable("tokens", Encoding.CATEGORICAL, tuple(range(rng.randint(1, 4))))
    indices = Variable("indices", Encoding.CATEGORICAL, tuple(range(rng.randint(1, 4))))
    found: list[Variable] = [tokens, indices]
    parts: list[Head | MLP] = []

    def reading(variables: Sequence[Variable], width: int) -> LinearMap:
        return LinearMap({variable: numbers.normal(size=(variable.size, width)) for variable in variables}, width)

    shared = reading([indices], 2), reading([indices, BOS, PAD], 2)
    for number in range(components):
        reads = rng.sample(found, min(len(found), rng.randint(1, 3)))
        values = tuple(range(rng.randint(1, 6)))
        noise, at_bos = rng.choice(KINDS)
        new = Variable(f"v{number}", Encoding.CATEGORICAL, values, noise, at_bos * len(values))
        if rng.random() < 0.5:
            parts.append(MLP(new.label, reading(reads, 3), ((new, numbers.normal(size=(3, new.size))),), ""))
        else:
            query, key = shared if rng.random() < 0.6 else (reading(reads[:1], 2), reading([reads[0], BOS, PAD], 2))
            writes = ((new, numbers.normal(size=(1, new.size))),)
            parts.append(Head(new.label, query, key, reading(reads, 1), writes, "", ""))
        found.append(new)
    sources = (Embedded(tokens, by_token=np.eye(tokens.size)), Embedded(indices, by_position=np.eye(indices.size)))
    outputs = tuple((variable.label, variable) for variable in found[-2:])
    return Circuit.of(program, sources, found[2:], parts, outputs)
