"""`verify` finds what is wrong, and says where it starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from numpy.typing import NDArray

import tracr
from tests.agreement import compile_quietly, same, some_inputs
from tests.strategies import Case, cases
from tracr.compiler.domains import Finite
from tracr.compiler.options import LEVELS
from tracr.compiler.vectorised import Batch, evaluate_batch
from tracr.model.interventions import Folded, folded, locations
from tracr.rasp import programs, rasp


def tampered(
    model: tracr.CompiledModel, layer: int, name: str, change: Callable[[NDArray], NDArray]
) -> tracr.CompiledModel:
    """The model with one weight matrix changed."""
    layers = list(model.parameters.layers)
    layers[layer] = replace(layers[layer], **{name: change(getattr(layers[layer], name))})
    return replace(model, parameters=replace(model.parameters, layers=tuple(layers)))


@pytest.mark.parametrize("name", programs.EXAMPLES)
@pytest.mark.parametrize("level", LEVELS)
def test_the_library_is_verified_on_all_inputs(name: str, level: int) -> None:
    """Every input, padded and not."""
    example = programs.EXAMPLES[name]
    found = tracr.compile(example.program, example.vocab, example.max_seq_len, level=level).verify()
    assert found
    assert found.exhaustive
    assert "all agree" in str(found)


def test_a_sample_has_every_token_at_every_position() -> None:
    """Where there are too many inputs, a stratified sample of about the budget."""
    model = tracr.compile(programs.make_hist(), "abcdef", 12)
    found = model.verify(budget=5000)
    assert found
    assert not found.exhaustive
    assert 4000 <= found.inputs <= 6000
    from tracr.model.verification import _sample

    batches = list(_sample(6, 1, 12, 5000, 0))
    for length in range(1, 13):
        rows = np.concatenate([batch for batch in batches if batch.shape[1] == length])
        assert all(len(np.unique(rows[:, place])) == 6 for place in range(length))


def test_a_wrong_model_is_caught_with_the_shortest_input_and_the_first_wrong_variable() -> None:
    """A changed MLP of reverse: the variable it computes is named, not the output it spoils."""
    model = tracr.compile(programs.make_reverse(rasp.tokens), "abc", 5)
    wrong = tampered(model, 1, "W_out", lambda array: -array)
    found = wrong.verify()
    assert not found
    example = found.counterexample
    assert example is not None
    assert example.variable == model.schedule.layers[1].mlps[0].label
    assert len(example.tokens) <= 2
    assert example.expected == model(example.tokens)
    assert "MISMATCH" in str(found)


def test_padding_mistakes_are_caught() -> None:
    """A model that ignores PAD keys no longer passes, and the report says it was padded."""
    model = tracr.compile(programs.make_length(), "ab", 4)
    blind = tampered(model, 0, "W_K", lambda array: array * (np.array(model.residual.labels) != "tokens:pad")[:, None])
    found = blind.verify()
    assert found.counterexample is not None
    assert found.counterexample.padded


def test_inputs_on_which_the_program_raises_are_counted_apart() -> None:
    """Two equal strings have no mean."""
    model = tracr.compile(
        rasp.Aggregate(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ), rasp.tokens), "ab", 3
    )
    found = model.verify()
    assert found
    assert (found.inputs, found.errors) == (4, 10)


def test_compile_can_verify() -> None:
    """`verify=True` returns a verified model."""
    assert tracr.compile(programs.make_hist(), "abc", 4, verify=True)("aab") == [2, 2, 1]


def settable(model: tracr.CompiledModel, one: Folded) -> bool:
    try:
        one.check(model.construction)
    except tracr.InputError:
        return False
    return True


def interventions_agree(model: tracr.CompiledModel, inputs: list[list[object]], seed: int) -> int:
    """Set each variable in turn to random values; the interpreter with it replaced says what must come out."""
    rng = np.random.default_rng(seed)
    batch = Batch.of(inputs, model.options.vocab)
    compared = 0
    known = {**locations(model.construction), **folded(model.construction)}
    for label, location in known.items():
        node = model.typed.sops[location.variable.node]
        if not isinstance(node.domain, Finite) or label in model.circuit.typed.absorbed:
            continue
        codes = np.where(batch.valid, rng.integers(len(node.domain), size=batch.codes.shape), -1).astype(np.int32)
        expected = evaluate_batch(model.typed, batch, {node.id: codes})
        values = [[node.domain.values[c] for c in row[:n]] for row, n in zip(codes, batch.lengths, strict=True)]
        if isinstance(location, Folded) and not settable(model, location):
            continue
        decoded = model.run(inputs, set={label: values}).decoded
        (outputs,) = expected.outputs().values()
        for row, failed in enumerate(expected.errors):
            if not failed:
                compared += 1
                assert all(
                    a == b or (a is not None and b is not None and not isinstance(b, str | tuple) and abs(a - b) < 1e-4)
                    for a, b in zip(decoded[row], outputs[row], strict=True)
                ), (label, inputs[row], values[row], decoded[row], outputs[row])
    return compared


@pytest.mark.parametrize("name", programs.EXAMPLES)
@pytest.mark.parametrize("level", LEVELS)
def test_setting_a_variable_does_what_the_interpreter_says(name: str, level: int) -> None:
    """For every variable of every library program that owns directions."""
    example = programs.EXAMPLES[name]
    model = tracr.compile(example.program, example.vocab, example.max_seq_len, level=level)
    inputs = [list(example.vocab[:1]) * n for n in range(1, example.max_seq_len + 1)]
    inputs += [list((example.vocab * 3)[k : k + example.max_seq_len]) for k in range(len(example.vocab))]
    assert interventions_agree(model, inputs * 4, seed=0) > 0


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


@pytest.mark.parametrize("name", programs.EXAMPLES)
def test_the_reference_interpreter_says_the_same(name: str) -> None:
    """At level 0, where every expression keeps its own variable, replaced there."""
    example = programs.EXAMPLES[name]
    model = tracr.compile(example.program, example.vocab, example.max_seq_len, level=0)
    exprs = {node.label: node.expr for node in model.graph.nodes}
    rng = np.random.default_rng(0)
    compared = 0
    for tokens in some_inputs(example.vocab, example.max_seq_len, 12):
        for label, location in locations(model.construction).items():
            if location.variable.node is None or label not in exprs:
                continue  # tokens and indices the program does not use
            node = model.typed.sops[location.variable.node]
            codes = rng.integers(len(node.domain), size=(1, len(tokens))).astype(np.int32)
            if evaluate_batch(model.typed, [tokens], {node.id: codes}).errors[0]:
                continue  # leads where no input does
            values = [node.domain.values[code] for code in codes[0]]
            results = rasp.DefaultRASPEvaluator().evaluate_all([example.program], tokens, {exprs[label]: values})
            decoded = model.run(tokens, set={label: values}).decoded
            assert all(map(same, decoded, results[example.program])), (label, tokens, values, decoded)
            compared += 1
    assert compared


@given(case=cases(max_ops=8))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_setting_variables_of_random_programs(case: Case) -> None:
    """The same on random programs."""
    for level in (1, 2):
        try:
            model = compile_quietly(
                case.program, case.vocab, case.max_seq_len, causal=case.causal, bos="<b>", pad="<p>", level=level
            )
        except tracr.CompileError:
            return
        interventions_agree(model, case.inputs(8), case.seed)


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
    with pytest.raises(tracr.InputError, match="there are tokens"):
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
    assert model.run([list("xa"), list("bbb")], set={"is_x": [[1, 1], [1, 0, 0]]}).decoded == [
        [2.0, 1.5],
        [2.0, 1.0, 2 / 3],
    ]
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


def test_a_budget_holds_for_large_vocabularies() -> None:
    """More tokens than the budget has inputs: a part of them is tried."""
    found = tracr.compile(programs.make_hist(), range(3000), 8).verify(200)
    assert found
    assert found.inputs <= 200
