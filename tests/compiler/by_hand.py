"""Small programs taken through single steps of the compiler, and circuits computed without any weights.

`stream` is an evaluator of its own: it follows the definitions of heads and MLPs, variable by variable, in float64.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import numpy as np

from tests.agreement import all_inputs, same
from tracr.compiler.frontend.infer import infer
from tracr.compiler.frontend.trace import trace
from tracr.compiler.lower.lower import lower
from tracr.compiler.program.encodings import choose_encodings
from tracr.compiler.program.share import drop_unused
from tracr.craft.heads import Head
from tracr.craft.linear import BOS, ONE, PAD, LinearMap
from tracr.craft.variables import NUMBER, Array, Variable
from tracr.ir.circuit import Circuit, Component
from tracr.ir.inferred import Inferred
from tracr.ir.options import Options
from tracr.ir.program import InferredNode, Program, Tabulation
from tracr.ir.schedule import Schedule
from tracr.rasp.rasp import SOp, Value

Outputs = SOp | dict[str, SOp]  # with the names of the outputs
N = TypeVar("N", bound=InferredNode)
Stream = dict[Variable, Array]  # [positions, directions]; BOS is position 0


def inferred(program: Outputs, vocab: Iterable[Value] = "ab", longest: int = 3, **options: Any) -> Inferred:
    """The program's tables; nothing is shared or encoded yet."""
    outputs = program if isinstance(program, dict) else {"output": program}
    return infer(trace(outputs), Options(tuple(vocab), longest, **options))


def encoded(program: Outputs, vocab: Iterable[Value] = "ab", longest: int = 3, **options: Any) -> Program:
    """The same with encodings."""
    return choose_encodings(drop_unused(inferred(program, vocab, longest, **options)))


def circuit_of(program: Outputs, vocab: Iterable[Value] = "ab", longest: int = 3, **options: Any) -> Circuit:
    """The same as a circuit, before any pass over circuits."""
    return lower(encoded(program, vocab, longest, **options))


def node(typed: Tabulation[N], label: str) -> N:
    """The s-op with this label."""
    (found,) = (one for one in typed.sops.values() if one.label == label)
    return found


def part(circuit: Circuit, label: str) -> Component:
    """The component with this label."""
    (found,) = (one for one in circuit.components if one.label == label)
    return found


def components(schedule: Schedule) -> Iterator[Component]:
    """All of them, in the order they run."""
    for layer in schedule.layers:
        yield from layer.heads
        yield from layer.mlps


def stream(circuit: Circuit, tokens: list[Value], parts: Iterable[Component] | None = None) -> Stream:
    """What every variable holds at every position; the components may be others than the circuit's."""
    rows = len(tokens) + 1
    held: Stream = {ONE: np.ones((rows, 1)), BOS: np.eye(rows, 1), PAD: np.zeros((rows, 1))}
    for source in circuit.embedded:
        held[source.variable] = np.zeros((rows, source.variable.size))
        if source.by_token is not None:
            held[source.variable][1:] += source.by_token[[circuit.options.vocab.index(x) for x in tokens]]
        if source.by_position is not None:
            held[source.variable][1:] += source.by_position[: rows - 1]
    for component in circuit.components if parts is None else parts:
        carried = read(component.maps[-1], held)
        if isinstance(component, Head):
            logits = read(component.query, held) @ read(component.key, held).T
            weights = np.exp(logits - logits.max(axis=1, keepdims=True))
            carried = weights / weights.sum(axis=1, keepdims=True) @ carried
        else:
            carried = np.maximum(carried, 0)
        for variable, matrix in component.writes:
            held[variable] = held.get(variable, 0.0) + carried @ matrix
    return held


def read(linear: LinearMap, held: Stream) -> Array:
    """What a map reads of the stream."""
    rows = len(held[ONE])
    return np.asarray(sum((held[v] @ block for v, block in linear.blocks.items()), np.zeros((rows, linear.width))))


def answers(circuit: Circuit, tokens: list[Value], parts: Iterable[Component] | None = None) -> dict[str, list[Value]]:
    """The outputs, read off the stream."""
    held, found = stream(circuit, tokens, parts), {}
    for (name, variable), linear in zip(circuit.outputs, circuit.unembedded, strict=True):
        codes = read(linear, held)[1:]
        if variable.numerical:
            numbers, none = codes[:, variable.index[NUMBER]], variable.index.get(None)
            missing = np.zeros(len(codes)) if none is None else codes[:, none]
            found[name] = [None if flag > 0.5 else number for number, flag in zip(numbers, missing, strict=True)]
        else:
            table = np.eye(len(variable.values)) if variable.codebook is None else variable.codebook
            found[name] = [variable.values[place] for place in (codes @ table.T).argmax(axis=1)]
    return found


def assert_computes(
    circuit: Circuit, program: Outputs, parts: Iterable[Component] | None = None, longest: int = 3
) -> None:
    """The circuit gives the interpreter's answer on every input up to a length."""
    outputs = program if isinstance(program, dict) else {"output": program}
    parts = None if parts is None else list(parts)
    for tokens in all_inputs(circuit.options.vocab, longest):
        got = answers(circuit, tokens, parts)
        for name, one in outputs.items():
            expected = one(tokens)
            assert all(same(a, b, 1e-6) for a, b in zip(got[name], expected, strict=True)), (tokens, got, expected)
