"""Setting variables: what the interpreter gives with them replaced, or a refusal that says why."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import tracr
from tests.agreement import compile_quietly, some_inputs
from tests.interventions import interventions_agree
from tests.strategies import Case, cases
from tracr.compiler.options import LEVELS
from tracr.compiler.vectorised import evaluate_batch
from tracr.model.interventions import folded, locations
from tracr.rasp import programs, rasp


@pytest.mark.parametrize("name", programs.EXAMPLES)
@pytest.mark.parametrize("level", LEVELS)
def test_setting_variables_does_what_the_interpreter_says(name: str, level: int) -> None:
    """Variables of every library program, one or several: many interventions run, and none gives anything else."""
    example = programs.EXAMPLES[name]
    model = tracr.compile(example.program, example.vocab, example.max_seq_len, level=level)
    ran, _ = interventions_agree(model, some_inputs(example.vocab, example.max_seq_len, 2), seed=level, trials=30)
    assert ran > 2


@given(case=cases(max_ops=8))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_setting_variables_of_random_programs(case: Case) -> None:
    """The same on random programs at every level, padded and causal too."""
    for level in LEVELS:
        try:
            model = compile_quietly(
                case.program, case.vocab, case.max_seq_len, causal=case.causal, bos="<b>", pad="<p>", level=level
            )
        except tracr.CompileError:
            return
        interventions_agree(model, case.inputs(3), case.seed)


@pytest.mark.parametrize("level", LEVELS)
def test_functions_of_what_is_set_follow(level: int) -> None:
    """At level 2 the embedding holds `squared`, and of the tokens only what the selector reads."""
    squared = rasp.SequenceMap(lambda x, y: x * y, rasp.tokens, rasp.tokens).named("squared")
    alike = rasp.Select(rasp.tokens, rasp.tokens, lambda key, query: (key < 0) == (query < 0))
    mean = rasp.numerical(rasp.Aggregate(alike, rasp.numerical(squared)))
    model = tracr.compile(rasp.Map(lambda x: x * x, mean), [-1, 0, 0.5], 4, level=level)
    others = [-1, 0.5, -1]
    assert model.run([0, 0, -1], set={"tokens": others}).decoded == model(others) == [1.0, 0.0625, 1.0]


@pytest.mark.parametrize("level", LEVELS)
def test_setting_a_variable_leaves_padding_alone(level: int) -> None:
    """What its directions hold at PAD is part of how heads pass PAD over."""
    model = tracr.compile(programs.EXAMPLES["reverse"].program, "abc", 4, level=level)
    inputs = [["a", "b"], ["a", "b", "c", "a"]]
    usual, changed = model.run(inputs), model.run(inputs, set={"indices": [[1, 0], [3, 2, 1, 0]]})
    for name in ("hook_embed", "hook_pos_embed"):
        np.testing.assert_array_equal(changed[name][0, 3:], usual[name][0, 3:])
    assert not np.array_equal(changed["hook_pos_embed"][0, :3], usual["hook_pos_embed"][0, :3])


def test_setting_what_breaks_a_proof_counts_as_an_error() -> None:
    """Position 0 is always there, unless positions are set otherwise: the default was proved away."""
    model = tracr.compile(rasp.Aggregate(rasp.Select(rasp.indices, 0, rasp.Comparison.EQ), rasp.tokens), "ab", 2)
    node = model.typed.sops[locations(model.construction)["indices"].variable.node]
    assert not evaluate_batch(model.typed, ["a"], {node.id: np.array([[0]], np.int32)}).errors[0]
    assert evaluate_batch(model.typed, ["a"], {node.id: np.array([[1]], np.int32)}).errors[0]


def test_setting_needs_a_known_variable_and_its_values() -> None:
    """Mistakes are named."""
    model = tracr.compile(programs.EXAMPLES["frac_prevs"].program, "abcx", 5)
    assert model.run("aa", set={"is_x": [True, True]}).decoded == [1.0, 1.0]
    with pytest.raises(tracr.InputError, match="there are indices, tokens, is_x"):
        model.run("aa", set={"nothing": [1, 1]})
    with pytest.raises(tracr.InputError, match="cannot be 7"):
        model.run("aa", set={"is_x": [7, 1]})
    with pytest.raises(tracr.InputError, match="every token"):
        model.run("aa", set={"is_x": [True]})


def test_setting_a_folded_variable() -> None:
    """In what its readers compute; several at once, one of which is read through the other."""
    is_x, is_a = (rasp.numerical(rasp.tokens == token).named(f"is_{token}") for token in "xa")
    weighted = rasp.LinearSequenceMap(is_x, is_a, 2, -1).named("weighted")
    before = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LEQ)
    program = rasp.Aggregate(before, weighted).named("mean")
    with pytest.raises(tracr.InputError, match=r"tokens is not there[\s\S]*factor"):  # only `weighted` is embedded
        tracr.compile(program, "abx", 4, level=2).run("xa", set={"is_x": [0, 1]})
    model = tracr.compile(program, "abx", 4, level=2, passes={"factor": False})
    assert set(folded(model.construction)) == {"is_x", "is_a", "weighted"}
    assert model("xa") == [2.0, 0.5]
    assert model.run("xa", set={"is_x": [0, 1]}).decoded == [0.0, 0.5]
    assert model.run("xa", set={"is_x": [0, 1], "is_a": [1, 0]}).decoded == [-1.0, 0.5]
    assert model.run("xa", set={"weighted": [0, 2]}).decoded == [0.0, 1.0]
    assert model.run("xa", set={"is_x": [1, 1], "weighted": [0, 2]}).decoded == [0.0, 1.0]
    assert model.run(["xa", "bbb"], set={"is_x": [[1, 1], [1, 0, 0]]}).decoded == [[2.0, 1.5], [2.0, 1.0, 2 / 3]]
    assert tracr.compile(is_x, "abx", 4, level=2).run("ax", set={"is_x": [1, 0]}).decoded == [1, 0]


def test_setting_a_folded_variable_that_is_not_all_there() -> None:
    """3x - 1.5 (2x - y) is 1.5y: the x that the variable is made of is nowhere."""
    x, y = rasp.numerical(rasp.tokens), rasp.numerical(rasp.indices)
    inner = rasp.LinearSequenceMap(x, y, 2, -1).named("inner")
    model = tracr.compile(rasp.LinearSequenceMap(x, inner, 3, -1.5), (1, 2), 3, level=2)
    with pytest.raises(tracr.InputError, match=r"tokens is not there[\s\S]*level 1"):
        model.run([1, 2], set={"inner": [2, 1]})


def test_setting_a_folded_variable_that_a_merged_head_blurs() -> None:
    """A head with the same weights reads the same from tokens themselves: setting the variable is refused."""
    same = rasp.Map(lambda x: x, rasp.tokens).named("same")
    one = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)).named("one")
    other = rasp.SelectorWidth(rasp.Select(same, rasp.tokens, rasp.Comparison.EQ)).named("other")
    program = rasp.SequenceMap(lambda x, y: (x, y), one, other)
    merged = tracr.compile(program, "ab", 3, level=2, passes={"share": False})
    with pytest.raises(tracr.InputError, match=r"merged with one that does not[\s\S]*merge_heads"):
        merged.run("ab", set={"same": ["a", "a"]})
    apart = tracr.compile(program, "ab", 3, level=2, passes={"share": False, "merge_heads": False})
    assert apart.run("ab", set={"same": ["a", "a"]}).decoded == [(1, 2), (1, 0)]
