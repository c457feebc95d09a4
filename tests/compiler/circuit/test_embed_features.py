"""factor: the embedding writes what is read of tokens and positions, exactly, in fewer directions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.compiler.by_hand import assert_computes, circuit_of, read, stream
from tests.compiler.circuits import random_models, some_program
from tracr.compiler.circuit.embed_features import embed_functions, factor
from tracr.compiler.circuit.fold import fold
from tracr.compiler.circuit.prune import prune
from tracr.compiler.lower.lower import lower
from tracr.craft.linear import ONE, LinearMap
from tracr.craft.mlps import MLP
from tracr.craft.numerics import Noise
from tracr.craft.variables import NUMBER, Array, Feature, Variable
from tracr.ir.circuit import Circuit, Embedded
from tracr.rasp import rasp
from tracr.rasp.annotations import Encoding
from tracr.rasp.rasp import Comparison, Value


def reading(values: tuple[Value, ...], *columns: list[float], noise: Noise | None = None) -> Circuit:
    """Tokens of these values, and neurons that read each column of them."""
    tokens = Variable("tokens", Encoding.CATEGORICAL, values)
    rough = Variable("rough", Encoding.NUMERICAL, (NUMBER,), noise) if noise else None
    block = np.array(columns, dtype=np.float64).T
    blocks = {tokens: block} | ({rough: np.ones((1, len(columns)))} if rough else {})
    end = Variable("end", Encoding.CATEGORICAL, tuple(range(len(columns))))
    part = MLP("end", LinearMap(blocks, len(columns)), ((end, np.eye(len(columns))),), "")
    sources = [Embedded(tokens, by_token=np.eye(len(values)))]
    sources += [Embedded(rough, by_position=np.ones((2, 1)))] if rough else []
    return Circuit.of(some_program(), tuple(sources), (end,), (part,), (("end", end),))


def columns_read(circuit: Circuit) -> Array:
    """What the neurons read of every token (but at BOS and PAD), [tokens, neurons]."""
    tokens, linear = circuit.embedded[0], circuit.components[0].maps[0]
    assert tokens.by_token is not None
    return np.asarray(tokens.by_token @ linear.blocks[tokens.variable] + linear.blocks.get(ONE, 0.0))


def features(circuit: Circuit) -> tuple[object, ...]:
    """What the directions of the embedded tokens hold."""
    variable = circuit.embedded[0].variable
    return variable.features or variable.values


def assert_factored(circuit: Circuit, *expected: object) -> Circuit:
    """The tokens have exactly these features, and their readers read the same numbers as before, bit for bit."""
    after = factor(circuit)
    after.verify()
    assert features(after) == expected
    assert np.array_equal(columns_read(after), circuit.components[0].maps[0].blocks[circuit.embedded[0].variable])
    return after


VALUES = ("a", "b", "c", "d")


def test_equal_columns_are_one_direction() -> None:
    """A flag that two neurons read, one of them twice as much, is one feature with the names of its values."""
    after = assert_factored(reading(VALUES, [1, 1, 0, 0], [2, 2, 0, 0]), Feature(":a|b"))
    assert after.embedded[0].variable.label == "tokens"
    assert after.components[0].maps[0].blocks[after.embedded[0].variable].tolist() == [[1.0, 2.0]]


def test_a_constant_is_a_bias() -> None:
    """Columns that differ by a constant, where all that is read is exact."""
    after = assert_factored(reading(VALUES, [0, 1, 0, 0], [3, 5, 3, 3]), Feature(":b"))
    assert after.components[0].maps[0].blocks[ONE].tolist() == [[0.0, 3.0]]
    rough = reading(VALUES, [0, 1, 0, 0], [3, 5, 3, 3], noise=Noise(error=0.1))
    assert len(features(factor(rough))) == 2
    assert ONE not in factor(rough).components[0].maps[0].blocks


def test_polynomials_are_read_from_the_number_and_its_square() -> None:
    """Four columns over six numbers, two directions."""
    x = np.arange(6.0)
    polynomials = [(2 * x).tolist(), (x**2 - 3 * x + 1).tolist(), (x**2).tolist(), (5 - x).tolist()]
    assert_factored(reading(tuple(range(6)), *polynomials), NUMBER, Feature("^2"))


def test_a_number_alone_is_a_numerical_variable() -> None:
    """With the range of its values."""
    variable = assert_factored(reading((1, 2, 5), [1, 2, 5], [2, 4, 10]), NUMBER).embedded[0].variable
    assert (variable.encoding, variable.low, variable.high) == (Encoding.NUMERICAL, 1.0, 5.0)


@pytest.mark.parametrize(
    "columns",
    [np.eye(4).tolist(), [[0, 1, 2, 4], [1, 0, 7, 3], [5, 2, 1, 9], [3, 3, 0, 8]]],
    ids=["one-hot", "anything"],
)
def test_as_many_directions_as_values_are_left_alone(columns: list[list[float]]) -> None:
    """The circuit is the very same."""
    circuit = reading(VALUES, *columns)
    assert factor(circuit) is circuit


def test_outputs_keep_their_code() -> None:
    """An output is read off its one-hot directions."""
    circuit = reading(VALUES, [1, 1, 0, 0])
    assert factor(circuit) is not circuit
    tokens = circuit.embedded[0].variable
    with_output = replace(circuit, outputs=(("tokens", tokens),))
    assert factor(with_output) is with_output


@pytest.mark.parametrize(
    ("values", "columns"),
    [
        ((10**400, 1, 2), [[0, 1, 0], [0, 3, 0]]),
        ((1e-320, 1, 2), [[1e-320, 1, 2], [2e-320, 2, 4]]),
        ((1, 2, 3), [[1e-320, 1, 0], [1e-320, 2, 0]]),
        ((1e300, 2e300, 3e300), [[1, 2, 3], [2, 4, 6]]),
    ],
    ids=["no float", "tiny", "tiny factor", "no float32"],
)
def test_numbers_that_floats_cannot_work_with(values: tuple[Value, ...], columns: list[list[float]]) -> None:
    """There is no warning and no overflow, and readers read the same numbers as before."""
    circuit = reading(values, *columns)
    after = factor(circuit)
    after.verify()
    assert np.array_equal(columns_read(after), np.array(columns).T)


def test_functions_of_tokens_are_embedded() -> None:
    """As the variable that they are; functions of positions only if these are asked for."""
    same = rasp.Map(lambda x: x in "ab", rasp.tokens).named("early")
    late = rasp.Map(lambda i: i > 1, rasp.indices).named("late")
    program = rasp.SelectorWidth(rasp.Select(same, late, Comparison.EQ)).named("width")
    circuit = circuit_of(program, "abc", 3, level=2)
    by_token = embed_functions(circuit, {"token"})
    by_token.verify()
    assert [one.variable.label for one in by_token.embedded][2:] == ["early"]
    assert "late" in [one.label for one in by_token.components]
    assert "early" not in [one.label for one in by_token.components]
    both = embed_functions(circuit, {"token", "position"})
    assert [one.variable.label for one in both.embedded][2:] == ["early", "late"]
    for one in (by_token, both):
        assert_computes(one, program)


def test_random_programs_keep_what_they_compute() -> None:
    """Folded, pruned and factored: what is left holds what it held, in fewer embedded directions."""
    fewer = 0
    for model in random_models(range(40), level=2):
        tokens = list(model.options.vocab)[: model.program.lengths[1]]
        if model.options.causal or len(tokens) < model.program.lengths[0]:
            continue
        before = prune(fold(lower(model.circuit.rewriting.applied(model.program))))
        after = factor(before)
        after.verify()
        sizes = [sum(len(one.kept(source.variable)) for source in one.embedded) for one in (before, after)]
        assert sizes[1] <= sizes[0]
        fewer += sizes[0] - sizes[1]
        held, left = stream(before, tokens), stream(after, tokens)
        for old, new in zip(before.unembedded, after.unembedded, strict=True):
            assert np.allclose(read(old, held)[1:], read(new, left)[1:], atol=1e-5)
    assert fewer > 20
