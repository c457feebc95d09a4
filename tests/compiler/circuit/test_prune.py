"""prune: every direction that is left is read, every neuron that is left writes one of them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.by_hand import assert_computes, circuit_of, part, read, stream
from tests.compiler.circuits import random_circuit, random_models, some_program
from tracr.compiler.circuit.fold import fold
from tracr.compiler.circuit.prune import prune
from tracr.compiler.lower.lower import lower
from tracr.craft.linear import LinearMap
from tracr.craft.mlps import MLP
from tracr.craft.variables import Variable
from tracr.ir.circuit import Circuit, Embedded
from tracr.rasp import rasp
from tracr.rasp.annotations import Encoding
from tracr.rasp.rasp import Comparison

LAST = rasp.Select(rasp.indices, rasp.indices - 1, Comparison.EQ)
PREVIOUS = rasp.Aggregate(LAST, rasp.tokens, "-").named("previous")


def code(label: str, size: int) -> Variable:
    return Variable(label, Encoding.CATEGORICAL, tuple(range(size)))


def by_hand() -> Circuit:
    """tokens -> middle (3 directions, a neuron each) -> end, which reads direction 1 of middle; dead reads direction 2.

    A neuron reads token 0 for direction 0, token 1 for direction 1, and token 2 for direction 2.
    """
    tokens, middle, end, dead = code("tokens", 3), code("middle", 3), code("end", 1), code("dead", 1)
    parts = (
        MLP("middle", LinearMap.of(tokens, np.eye(3)), ((middle, np.eye(3)),), ""),
        MLP("end", LinearMap.of(middle, np.array([[0.0], [2.0], [0.0]])), ((end, np.ones((1, 1))),), ""),
        MLP("dead", LinearMap.of(middle, np.array([[0.0], [0.0], [1.0]])), ((dead, np.ones((1, 1))),), ""),
    )
    sources = (Embedded(tokens, by_token=np.eye(3)),)
    return Circuit.of(some_program(), sources, (middle, end, dead), parts, (("end", end),))


def test_what_nothing_reads_goes() -> None:
    """The component that no output needs, then the neurons that only it read, then the tokens that only they read."""
    circuit = by_hand()
    after = prune(circuit)
    after.verify()
    assert [one.label for one in after.components] == ["middle", "end"]
    middle = part(after, "middle")
    ((tokens, block),) = middle.maps[0].blocks.items()
    assert block.tolist() == [[0.0], [1.0], [0.0]]
    ((variable, written),) = middle.writes
    assert written.tolist() == [[0.0, 1.0, 0.0]]
    assert list(after.kept(variable)) == [1]
    assert list(after.kept(tokens)) == [1]
    assert {v.label: list(after.kept(v)) for v in after.variables} == {"middle": [1], "end": [0], "dead": []}


def test_a_direction_that_is_always_zero_is_not_read() -> None:
    """No component writes it, so its readers do not look there."""
    circuit = by_hand()
    middle = circuit.variables[0]
    first = MLP("middle", circuit.components[0].maps[0], ((middle, np.diag([1.0, 0.0, 1.0])),), "")
    reader = LinearMap.of(middle, np.array([[1.0], [2.0], [0.0]]))
    second = circuit.components[1].with_maps([reader])
    after = prune(Circuit.of(some_program(), circuit.embedded, circuit.variables, (first, second), circuit.outputs))
    assert list(after.kept(middle)) == [0]
    assert part(after, "end").maps[0].blocks[middle].tolist() == [[1.0], [0.0], [0.0]]


def test_outputs_keep_all_their_directions() -> None:
    """Values that are never taken are logits all the same."""
    circuit = circuit_of(PREVIOUS, "abc", 3)
    after = prune(circuit)
    (_, variable) = after.outputs[0]
    assert list(after.kept(variable)) == list(range(variable.size))


def test_only_what_is_compared_is_kept() -> None:
    """Queries are told apart by whether the last token was a: nothing reads that it was not."""
    after_a = rasp.Map(lambda token: token == "a", PREVIOUS).named("after_a")
    program = rasp.Aggregate(rasp.Select(rasp.tokens, after_a, lambda key, query: query), rasp.indices).named("mean")
    circuit = circuit_of(program, "abc", 3)
    after = prune(circuit)
    after.verify()
    (flag,) = (variable for variable in after.variables if variable.label == "after_a")
    assert flag.values == (False, True)
    assert len(after.kept(flag)) == 1
    assert part(after, "after_a").maps[0].width < part(circuit, "after_a").maps[0].width
    assert_computes(after, program)


def assert_all_is_read(circuit: Circuit) -> None:
    """The directions that are kept are exactly those that some matrix reads; every neuron and value writes some."""
    found: dict[Variable, np.ndarray] = {}
    maps = [linear for one in circuit.components for linear in one.maps]
    for linear in (*maps, *circuit.unembedded):
        for variable, block in linear.blocks.items():
            if block.any():
                found[variable] = found.get(variable, np.zeros(variable.size, bool)) | block.any(axis=1)
    assert circuit.read is not None
    assert found.keys() == circuit.read.keys()
    for variable, rows in circuit.read.items():
        assert np.array_equal(rows, found[variable]), variable.label
    for one in circuit.components:
        written = np.concatenate([matrix for _, matrix in one.writes], axis=1)
        assert written.any(axis=1).all(), one.label
        for variable, matrix in one.writes:
            assert not matrix[:, ~circuit.read[variable]].any(), (one.label, variable.label)


@pytest.mark.parametrize("seed", range(30))
def test_in_random_circuits_all_that_is_left_is_read(seed: int) -> None:
    """And outputs hold what they held."""
    circuit = random_circuit(seed, 3 + seed)
    after = prune(circuit)
    after.verify()
    assert_all_is_read(after)
    held, left = (stream(one, ["a"]) for one in (circuit, after))
    for before_map, after_map in zip(circuit.unembedded, after.unembedded, strict=True):
        assert np.allclose(read(before_map, held), read(after_map, left))


def test_in_random_programs_all_that_is_left_is_read() -> None:
    """The same for circuits that compute something, folded or not."""
    dropped = 0
    for model in random_models(range(20), level=2):
        circuit = lower(model.circuit.rewriting.applied(model.program))
        for one in (circuit, fold(circuit)):
            after = prune(one)
            after.verify()
            assert_all_is_read(after)
            dropped += sum(v.size - len(after.kept(v)) for v in one.variables)
    assert dropped > 10
