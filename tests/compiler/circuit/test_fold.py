"""fold: linear functions have no component; their readers read the inputs of these functions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.by_hand import assert_computes, circuit_of, part, read, stream
from tests.compiler.circuits import random_models
from tracr.compiler.circuit.fold import fold
from tracr.compiler.lower.lower import lower
from tracr.craft.heads import Head
from tracr.craft.linear import BOS, ONE
from tracr.craft.mlps import MLP
from tracr.ir.circuit import Circuit
from tracr.rasp import rasp
from tracr.rasp.rasp import Comparison, SOp

VOCAB = (1, 2, 5)
BEFORE = rasp.Select(rasp.indices, rasp.indices, Comparison.LEQ).named("before")
SQUARE = rasp.numerical(rasp.Map(lambda x: x * x, rasp.tokens)).named("square")
MEAN = rasp.Aggregate(BEFORE, SQUARE).named("mean")


def labels(circuit: Circuit) -> list[str]:
    return [one.label for one in circuit.components]


def test_a_table_of_a_code_is_read_through_its_reader() -> None:
    """A head averages squares: it reads them off the tokens, with the squares as weights."""
    before = circuit_of(MEAN, VOCAB)
    after = fold(before)
    after.verify()
    assert labels(before) == ["square", "mean"]
    assert labels(after) == ["mean"]
    head = part(after, "mean")
    assert isinstance(head, Head)
    assert {variable.label for variable in head.value.blocks} == {"tokens"}
    (block,) = head.value.blocks.values()
    assert block[:, 0].tolist() == [1, 4, 25]
    (square,) = after.folded
    assert square.label == "square"
    assert square not in after.variables
    assert np.array_equal(after.folded_in(head.value).blocks[square], part(before, "mean").maps[-1].blocks[square])
    assert_computes(after, MEAN)


def test_functions_of_functions_are_folded_through_both() -> None:
    """A weighted sum of a square and a mean of squares: two functions, no MLP left before the last."""
    total = rasp.LinearSequenceMap(SQUARE, MEAN, 2, -3).named("total")
    program = rasp.Aggregate(BEFORE, total).named("again")
    after = fold(circuit_of(program, VOCAB))
    after.verify()
    assert labels(after) == ["mean", "again"]
    assert {variable.label for variable in after.folded} == {"square", "total"}
    again = part(after, "again").maps[-1]
    weights = {variable.label: block[:, 0].tolist() for variable, block in again.blocks.items()}
    assert (weights["tokens"], weights["mean"]) == ([2, 8, 50], [-3])
    assert_computes(after, program)


@pytest.mark.parametrize(
    "program",
    [
        rasp.numerical(rasp.Map(lambda x: x * x, MEAN)).named("stays"),
        rasp.SequenceMap(lambda x, i: x * i, rasp.tokens, rasp.indices).named("stays"),
        rasp.Map(lambda x: x > 3, MEAN).named("stays"),
    ],
    ids=["of a number", "of two codes", "threshold"],
)
def test_what_is_not_linear_stays(program: SOp) -> None:
    """It keeps its neurons, and reads folded variables through its own matrix."""
    after = fold(circuit_of(program, VOCAB))
    after.verify()
    assert isinstance(part(after, "stays"), MLP)
    assert not {"stays", "mean"} & {variable.label for variable in after.folded}
    assert_computes(after, program)


def test_an_output_without_a_constant_is_folded_into_the_unembedding() -> None:
    """The unembedding has no bias: one with a constant keeps its component."""
    plain = rasp.LinearSequenceMap(SQUARE, MEAN, 1, 1).named("plain")
    shifted = (MEAN + 7).named("shifted")
    program: dict[str, SOp] = {"plain": plain, "shifted": shifted}
    after = fold(circuit_of(program, VOCAB))
    after.verify()
    assert {variable.label for variable in after.folded} == {"square", "plain"}
    assert "shifted" in labels(after)
    reads = after.unembedded[0]
    assert {variable.label for variable in reads.blocks} == {"tokens", "mean"}
    assert ONE not in reads.blocks
    assert_computes(after, program)


def test_a_circuit_without_linear_functions_is_the_same() -> None:
    """Nothing is folded; components keep their very maps."""
    before = circuit_of(rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, Comparison.LT)), VOCAB)
    after = fold(before)
    assert not after.folded
    assert [one.maps for one in after.components] == [one.maps for one in before.components]


def test_folding_changes_no_variable() -> None:
    """On random programs: what is left holds what it held, and what is folded can be computed from it."""
    count = 0
    for model in random_models(range(24), level=2):
        if model.options.causal:
            continue
        before = lower(model.circuit.rewriting.applied(model.program))
        after = fold(before)
        after.verify()
        tokens = list(model.options.vocab)[: model.program.lengths[1]]
        if len(tokens) < model.program.lengths[0]:
            continue
        held, left = stream(before, tokens), stream(after, tokens)
        for variable in after.variables:
            assert np.allclose(left[variable], held[variable], atol=1e-5), variable.label
        for variable, linear in after.folded.items():
            assert np.allclose(read(linear, left), held[variable], atol=1e-5), variable.label
            assert variable not in {v for one in after.components for v in one.reads}
            count += 1
        assert BOS not in after.folded
    assert count > 20
