"""Circuits to schedule: random ones with much freedom, those of random programs; every schedule of a small one."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

import tracr
from tests.agreement import compile_quietly
from tests.strategies import VOCABULARIES, Case
from tests.tally import Tally, compile_case
from tracr.compiler.circuit import Circuit, Embedded
from tracr.compiler.placing import Placing
from tracr.compiler.typed import Typed
from tracr.craft.heads import Head
from tracr.craft.linear import BOS, PAD, LinearMap
from tracr.craft.mlps import MLP
from tracr.craft.numerics import EXACT, Noise
from tracr.craft.variables import Variable
from tracr.rasp import programs, rasp
from tracr.rasp.annotations import Encoding

DYCK3 = (programs.make_shuffle_dyck(["()", "{}", "[]"]), "(){}[]", 6)
DYCK2 = (programs.make_shuffle_dyck(["()", "{}"]), "(){}", 5)

KINDS = ((EXACT, ()), (EXACT, ()), (Noise(error=0.1), ()), (EXACT, (2.0,)))  # what can be overwritten, and by what


@cache
def some_program() -> Typed:
    """A program for circuits that compute nothing in particular."""
    return compile_quietly(rasp.Map(lambda x: x, rasp.tokens), "ab", 2, level=2).typed


def random_circuit(seed: int, components: int) -> Circuit:
    """Components that read from some of those before; most heads have the same pattern."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    tokens = Variable("tokens", Encoding.CATEGORICAL, tuple(range(rng.randint(1, 4))))
    indices = Variable("indices", Encoding.CATEGORICAL, tuple(range(rng.randint(1, 4))))
    found: list[Variable] = [tokens, indices]
    parts: list[Head | MLP] = []

    def reading(variables: Sequence[Variable], width: int) -> LinearMap:
        return LinearMap({variable: numbers.normal(size=(variable.size, width)) for variable in variables}, width)

    shared = reading([indices], 2), reading([indices, BOS, PAD], 2)
    for number in range(components):
        read = rng.sample(found, min(len(found), rng.randint(1, 3)))
        values = tuple(range(rng.randint(1, 6)))
        noise, at_bos = rng.choice(KINDS)
        new = Variable(f"v{number}", Encoding.CATEGORICAL, values, noise, at_bos * len(values))
        if rng.random() < 0.5:
            parts.append(MLP(new.label, reading(read, 3), ((new, numbers.normal(size=(3, new.size))),), ""))
        else:
            query, key = shared if rng.random() < 0.6 else (reading(read[:1], 2), reading([read[0], BOS, PAD], 2))
            writes = ((new, numbers.normal(size=(1, new.size))),)
            parts.append(Head(new.label, query, key, reading(read, 1), writes, "", ""))
        found.append(new)
    sources = (Embedded(tokens, by_token=np.eye(tokens.size)), Embedded(indices, by_position=np.eye(indices.size)))
    outputs = tuple((variable.label, variable) for variable in found[-2:])
    return Circuit(some_program(), sources, tuple(found[2:]), tuple(parts), outputs)


def every_schedule(circuit: Circuit, depth: int) -> Iterator[tuple[int, ...]]:
    """All ways to put components into sub-layers of so many layers, each after those it reads from."""
    writer = {variable: number for number, part in enumerate(circuit.components) for variable, _ in part.writes}

    def placed(times: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(times) == len(circuit.components):
            yield times
            return
        part = circuit.components[len(times)]
        soonest = max((times[writer[variable]] for variable in part.reads if variable in writer), default=-1) + 1
        for time in range(soonest, 2 * depth):
            if time % 2 == isinstance(part, MLP):
                yield from placed((*times, time))

    return placed(())


def few_schedules(placing: Placing, most: int) -> bool:
    """Whether trying them all is a matter of a moment."""
    return math.prod(len(placing.window(number)) for number in range(len(placing.first))) <= most


def random_models(seeds: range, **options: Any) -> list[tracr.CompiledModel]:
    """The models of some random programs, nearly all of which compile."""
    found = []
    with Tally(least=0.9) as tally:
        for seed in seeds:
            case = Case(seed, VOCABULARIES[seed % len(VOCABULARIES)], 4 + seed % 20, 1 + seed % 5, seed % 3 == 0)
            with tally.draw():
                found.append(compile_case(case, **options))
    return found
