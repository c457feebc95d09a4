"""Circuits to schedule: random ones with much freedom, those of random programs; every schedule of a small one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import tracr
from tests.agreement import compile_quietly
from tests.strategies import VOCABULARIES, Case
from tests.tally import Tally, compile_case
from tracr.compiler.layers.placing import Placing
from tracr.compiler.optimal.random_circuit import random_circuit as random_circuit_of
from tracr.craft.mlps import MLP
from tracr.ir.circuit import Circuit
from tracr.ir.program import Program
from tracr.rasp import programs, rasp

DYCK3 = (programs.make_shuffle_dyck(["()", "{}", "[]"]), "(){}[]", 6)
DYCK2 = (programs.make_shuffle_dyck(["()", "{}"]), "(){}", 5)


@cache
def some_program() -> Program:
    """A program for circuits that compute nothing in particular."""
    return compile_quietly(rasp.Map(lambda x: x, rasp.tokens), "ab", 2, level=2).program


def random_circuit(seed: int, components: int) -> Circuit:
    """A random circuit; which program it refers to does not matter."""
    return random_circuit_of(seed, components, some_program())


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
