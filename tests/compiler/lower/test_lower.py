"""lower: a component for each operation, whose variable holds the operation's value."""

from __future__ import annotations

import numpy as np
import pytest

import tracr
from tests.agreement import all_inputs
from tests.compiler.by_hand import assert_computes, circuit_of, encoded, part, stream
from tests.compiler.circuits import random_models
from tracr.compiler.lower.lower import lower
from tracr.craft.heads import Head
from tracr.rasp import rasp
from tracr.rasp.annotations import Encoding
from tracr.rasp.rasp import Comparison, SOp
from tracr.runtime.table_interpreter import evaluate_batch

BEFORE = rasp.Select(rasp.indices, rasp.indices, Comparison.LEQ).named("before")
SAME = rasp.Select(rasp.tokens, rasp.tokens, Comparison.EQ).named("same")
IS_A = rasp.numerical(rasp.tokens == "a").named("is_a")
SHARE = rasp.Aggregate(BEFORE, IS_A).named("share")
COUNT = rasp.SelectorWidth(SAME).named("count")
PROGRAMS: dict[str, tuple[SOp, list[str]]] = {
    "a map": (rasp.Map(lambda x: x * 2, rasp.tokens).named("twice"), ["MLP twice"]),
    "a mean of a map": (SHARE, ["MLP is_a", "Head share"]),
    "a width is a head and its decoder": (COUNT, ["Head count_share", "MLP count"]),
    "a pair": (
        rasp.SequenceMap(lambda x, n: f"{x}{n}", rasp.tokens, COUNT).named("pair"),
        ["Head count_share", "MLP count", "MLP pair"],
    ),
    "a weighted sum": (
        rasp.LinearSequenceMap(SHARE, IS_A, 2, -1).named("sum"),
        ["MLP is_a", "Head share", "MLP sum"],
    ),
    "a copy": (
        rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == q - 1), rasp.tokens, "-").named(
            "last"
        ),
        ["Head last"],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_operation_is_a_component(name: str) -> None:
    """At level 0: of its kind, in the order of the program; and the outputs are the interpreter's."""
    program, expected = PROGRAMS[name]
    circuit = circuit_of(program, level=0)
    circuit.verify()
    assert [f"{type(one).__name__} {one.label}" for one in circuit.components] == expected
    assert {source.variable.label for source in circuit.embedded} == {"tokens", "indices"}
    assert_computes(circuit, program)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_variable_holds_its_s_op(name: str) -> None:
    """At every position the code of the interpreter's value, and at BOS what the variable says is there."""
    program = encoded(PROGRAMS[name][0], level=0)
    circuit, checked = lower(program), 0
    for tokens in all_inputs("ab", 3):
        evaluation, held = evaluate_batch(program, [tokens]), stream(circuit, tokens)
        for variable in (*circuit.variables, *(source.variable for source in circuit.embedded)):
            assert np.allclose(held[variable][0], variable.bos_code(), atol=1e-6), variable.label
            if variable.node is not None and variable.label == program.sops[variable.node].label:
                codes = variable.codes(evaluation.values(variable.node)[0])
                assert np.allclose(held[variable][1:], codes, atol=1e-6), (variable.label, tokens)
                checked += 1
    assert checked >= 2 * len(all_inputs("ab", 3))


def test_the_embedding_writes_tokens_and_positions() -> None:
    """One-hot codes; constants are a direction by position where they are no biases."""
    circuit = circuit_of(rasp.SequenceMap(lambda x, i: (x, i), rasp.tokens, rasp.indices), "abc", 2)
    tokens, indices = circuit.embedded
    assert (tokens.variable.label, indices.variable.label) == ("tokens", "indices")
    assert np.array_equal(tokens.by_token if tokens.by_token is not None else (), np.eye(3))
    assert np.array_equal(indices.by_position if indices.by_position is not None else (), np.eye(2))


def test_a_number_is_converted_once_for_readers_that_need_classes() -> None:
    """Two selectors compare a number in the same way: one MLP makes it one-hot, before both."""
    number = rasp.numerical(COUNT)
    first, second = (rasp.SelectorWidth(rasp.Select(number, number, Comparison.EQ)).named(f"w{n}") for n in (1, 2))
    program = {"first": first, "second": rasp.Map(lambda n: n + 1, second).named("more")}
    circuit = circuit_of(program)
    circuit.verify()
    made = [one.label for one in circuit.components if "count" in one.label]
    assert part(circuit, "count").writes[0][0].encoding is Encoding.NUMERICAL
    assert made == ["count_share", "count", "count_onehot", "count_onehot_clean"]
    heads = [one for one in circuit.components if isinstance(one, Head) and one.label.startswith("w")]
    assert len({frozenset(v.label for v in head.query.blocks) for head in heads}) == 1
    assert_computes(circuit, program)


def test_an_output_that_float32_cannot_hold_is_refused() -> None:
    """Large numbers that cancel leave their rounding errors."""
    mean = rasp.Aggregate(rasp.Select(1, 1, Comparison.EQ), rasp.tokens)
    with pytest.raises(tracr.CompileError, match=r"may be off by .* in float32"):
        circuit_of(rasp.LinearSequenceMap(mean, rasp.tokens, 1000, -1000), (1e6, 1e6 + 1, 1e6 + 2), 4)


def test_circuits_of_random_programs_compute_them() -> None:
    """Every level, lowered alone: no pass over circuits has seen them."""
    for level in (0, 1, 2):
        for model in random_models(range(12), level=level):
            typed = model.circuit.rewriting.applied(model.program)
            if model.options.causal:
                continue
            circuit = lower(typed)
            circuit.verify()
            for tokens in all_inputs(typed.options.vocab, min(2, typed.lengths[1])):
                evaluation, held = evaluate_batch(typed, [tokens]), stream(circuit, tokens)
                for name, variable in circuit.outputs:
                    (values,) = evaluation.outputs()[name]
                    assert np.allclose(held[variable][1:], variable.codes(values), atol=1e-4), (tokens, name)
