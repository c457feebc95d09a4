"""The compiled model: activations, labels, precision, batches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracr
from tests.agreement import some_inputs
from tracr.rasp import programs, rasp
from tracr.threads import _controls, blas_threads


@pytest.fixture(scope="module")
def reverse() -> tracr.CompiledModel:
    """A model with several layers."""
    return tracr.compile(programs.make_reverse(rasp.tokens), "abc", 5)


def test_activations_have_transformer_lens_names_and_shapes(reverse: tracr.CompiledModel) -> None:
    """Every activation of a forward pass, batch axis first."""
    run = reverse.run([["a", "b"], ["c", "b", "a"]])
    batch, length, width = 2, 4, reverse.d_model
    assert run["hook_embed"].shape == run["hook_pos_embed"].shape == (batch, length, width)
    for number, layer in enumerate(reverse.parameters.layers):
        heads, d_head = layer.b_Q.shape
        block = f"blocks.{number}"
        for name in ("hook_resid_pre", "hook_attn_out", "hook_resid_mid", "hook_mlp_out", "hook_resid_post"):
            assert run[f"{block}.{name}"].shape == (batch, length, width)
        if heads:
            for name in ("hook_q", "hook_k", "hook_v", "hook_z"):
                assert run[f"{block}.attn.{name}"].shape == (batch, length, heads, d_head)
            for name in ("hook_attn_scores", "hook_pattern"):
                assert run[f"{block}.attn.{name}"].shape == (batch, heads, length, length)
        if layer.b_in.size:
            assert run[f"{block}.mlp.hook_pre"].shape == run[f"{block}.mlp.hook_post"].shape
            assert run[f"{block}.mlp.hook_pre"].shape == (batch, length, layer.b_in.size)
    assert run.logits.shape == (batch, length, reverse.outputs[0].stop)
    assert run.decoded == [["b", "a"], ["a", "b", "c"]]
    assert run.tokens[0] == ["bos", "a", "b", "pad"]


def test_the_residual_stream_is_the_sum_of_what_is_written(reverse: tracr.CompiledModel) -> None:
    """resid_mid = resid_pre + attn_out, and so on."""
    run = reverse.run("abc")
    for number in range(reverse.n_layers):
        pre, mid, post = (run[f"blocks.{number}.hook_resid_{part}"] for part in ("pre", "mid", "post"))
        assert np.array_equal(mid, pre + run[f"blocks.{number}.hook_attn_out"])
        assert np.array_equal(post, mid + run[f"blocks.{number}.hook_mlp_out"])


def test_a_hook_changes_the_computation(reverse: tracr.CompiledModel) -> None:
    """What a hook returns takes the activation's place."""
    ids, _, _ = reverse.vocabulary.encode(["abc"])

    def silence(name: str, tensor: np.ndarray) -> np.ndarray | None:
        return np.zeros_like(tensor) if name == f"blocks.{reverse.n_layers - 1}.hook_attn_out" else None

    assert reverse.logits(ids).any()
    assert not reverse.logits(ids, hook=silence).any()


def test_dimensions_know_variable_value_writer_and_readers() -> None:
    """`model.residual` maps dimension, variable, value, writer and readers to each other."""
    model = tracr.compile(programs.EXAMPLES["frac_prevs"].program, "abcx", 5, level=0)
    dimension = model.residual["tokens:x"]
    assert (dimension.variable, dimension.value, dimension.writer) == ("tokens", "x", "embed")
    assert dimension.readers == ("blocks.0.mlp",)
    assert model.residual["is_x"].writer == "blocks.0.mlp"
    assert model.residual["is_x"].is_number
    assert model.residual["is_x"].readers == ("blocks.1.attn.0.v",)
    assert model.residual["frac_prevs"].writer == "blocks.1.attn.0"
    assert model.residual["frac_prevs"].readers == ("unembed",)
    assert [dimension.value for dimension in model.residual.of("indices")] == [0, 1, 2, 3, 4]
    bos = model.residual["tokens:bos"]
    assert (bos.variable, bos.value, bos.encoding) == ("tokens", "bos", rasp.Encoding.CATEGORICAL)
    assert model.residual.indices("frac_prevs") == [13]
    assert model.residual[0].label == "tokens:a"


@pytest.mark.parametrize("name", programs.EXAMPLES)
@pytest.mark.parametrize("level", [0, 1])
def test_labels_tell_the_truth(name: str, level: int) -> None:
    """At every position every variable's directions hold the code of the interpreter's value."""
    example = programs.EXAMPLES[name]
    model = tracr.compile(example.program, example.vocab, example.max_seq_len, level=level)
    from tracr.runtime.table_interpreter import evaluate_batch

    inputs = some_inputs(example.vocab, example.max_seq_len, 20)
    evaluation = evaluate_batch(model.program, inputs)
    run = model.run(inputs)
    final = run[f"blocks.{model.n_layers - 1}.hook_resid_post"]
    checked = 0
    for variable, slots in model.layout.slots.items():
        if variable.node is None or variable.scratch or variable.label != model.program.sops[variable.node].label:
            continue
        values = evaluation.values(variable.node)
        for row, tokens in enumerate(inputs):
            if evaluation.errors[row]:
                continue
            for position in range(len(tokens)):
                code = variable.code(values[row][position])
                held = final[row, position + 1, slots[slots >= 0]]
                assert held == pytest.approx(code[slots >= 0], abs=1e-3), (variable.label, tokens, position)
                checked += 1
    assert checked


def test_float64_agrees_with_float32(reverse: tracr.CompiledModel) -> None:
    """Master weights are float64; the default run is float32."""
    ids, _, _ = reverse.vocabulary.encode(["abcab"])
    assert reverse.parameters.W_E.dtype == np.float64
    assert reverse.logits(ids).dtype == np.float32
    assert reverse.logits(ids, dtype=np.float64) == pytest.approx(reverse.logits(ids), abs=1e-5)


def test_large_batches_are_run_in_parts(reverse: tracr.CompiledModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory stays bounded, results do not change."""
    inputs = some_inputs("abc", 5, 100)
    expected = reverse(inputs)
    monkeypatch.setattr("tracr.model.running.CHUNK", 2000)
    assert reverse(inputs) == expected


def test_a_tuple_in_the_vocabulary_is_a_token_not_a_sequence() -> None:
    """Batches are told from sequences by the vocabulary."""
    model = tracr.compile(rasp.tokens, [("a", 1), "b"], 3)
    assert model([("a", 1), "b"]) == [("a", 1), "b"]
    assert model([[("a", 1)], ["b", "b"]]) == [[("a", 1)], ["b", "b"]]
    with pytest.raises(tracr.InputError, match=r"\('b', 'b'\) at position 0 is not in the vocabulary"):
        model([("b", "b")])  # not an input here, though it is no token
    plain = tracr.compile(rasp.tokens, "ab", 3)
    assert plain([("a", "b"), ("b",)]) == [["a", "b"], ["b"]]


TEXTS = st.lists(st.text("abz", max_size=3), min_size=1, max_size=4)


def outcome(action: Callable[[], Any]) -> Any:
    """What it gives, or the error."""
    try:
        return action()
    except tracr.InputError:
        return tracr.InputError


@pytest.mark.parametrize("vocab", ["ab", ["ab", "z"], ["a", "b", "ab"], [("a", "b"), "a", "b"], [1, "a", "b"]])
@pytest.mark.parametrize("use_kernel", [True, False])
def test_a_list_of_strings_is_one_input(vocab: Any, use_kernel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each string is a token, as in the program itself, or is refused with a hint."""
    model: Any = tracr.compile(rasp.tokens, vocab, 4)
    if not use_kernel:
        monkeypatch.setattr(type(model), "_kernel", lambda self, dtype: None)

    @settings(max_examples=60)
    @given(TEXTS)
    def check(texts: list[str]) -> None:
        known = all(text in model.vocabulary.tokens for text in texts)
        expected = texts if known else tracr.InputError
        assert outcome(lambda: model(texts)) == expected
        assert outcome(lambda: model(tuple(texts))) == expected
        assert outcome(lambda: model.run(texts).decoded) == expected
        assert outcome(lambda: model(iter(texts))) == expected
        assert outcome(lambda: len(model.encode(texts))) == (1 if known else tracr.InputError)

    check()


@given(TEXTS)
def test_an_answer_does_not_depend_on_the_rest_of_the_batch(texts: list[str]) -> None:
    """Batches of lists, tuples, arrays and generators: each input is answered, or refused, as it is alone."""
    model: Any = PLAIN
    alone = [outcome(partial(model, list(text))) for text in texts]
    expected = tracr.InputError if tracr.InputError in alone else alone
    batch = list(map(list, texts))
    assert outcome(lambda: model(batch)) == expected
    assert outcome(lambda: model(tuple(batch))) == expected
    assert outcome(lambda: model(list(map(tuple, texts)))) == expected
    assert outcome(lambda: model(list(map(np.array, batch)))) == expected
    assert outcome(lambda: model(list(text) for text in texts)) == expected
    assert outcome(lambda: model.run(batch).decoded) == expected


PLAIN = tracr.compile(programs.make_hist(), "ab", 3)


def test_a_string_that_is_no_token_says_how_to_write_a_batch() -> None:
    """If the characters of a string are tokens, the hint shows how to write a batch."""
    for texts in (["ab", "ba"], ["ab", "a"], ["a", "ab"]):
        with pytest.raises(tracr.InputError, match=r"'ab' at position .*(?s:.)*write \[list\('ab'\), ...\]"):
            PLAIN(texts)
    for mixed in ([["a"], "ab"], ["a", ["a", "b"]], [("a",), "b"]):
        with pytest.raises(tracr.InputError, match=r"mixes tokens and inputs(?s:.)*a batch is a list of lists"):
            PLAIN(mixed)


def test_arrays_are_inputs_or_batches_by_their_dimensions() -> None:
    """One dimension is an input, two are a batch, even of nothing; scalars of arrays are tokens."""
    model: Any = tracr.compile(programs.make_hist(), [1, 2], 3)
    assert model(np.array([1, 2, 1])) == [2, 1, 2]
    assert model(np.array([[1, 2], [1, 1]])) == [[1, 1], [2, 2]]
    assert model(np.array([[1], [2]])) == [[1], [1]]
    assert model(np.zeros((0, 3), dtype=int)) == []
    assert model.encode(np.zeros((0, 3), dtype=int)).shape[0] == 0
    assert model([np.int64(1), np.array(2)]) == [1, 1]
    assert model([]) == model(()) == model(iter([])) == []
    assert model([[]]) == [[]]
    assert model.encode([]).tolist() == [[model.vocabulary.bos_id]]
    for wrong in (np.array(1), np.zeros((1, 1, 1)), {1}, {1: 2}, 1, None, object()):
        with pytest.raises(tracr.InputError):
            model(wrong)


@pytest.mark.slow
def test_tensors_are_inputs_or_batches_by_their_dimensions() -> None:
    """Those of PyTorch and JAX as numpy's."""
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    model = tracr.compile(programs.make_hist(), [1, 2], 3)
    for array in (torch.tensor, jax.numpy.array):
        assert model(array([1, 2, 1])) == [2, 1, 2]
        assert model(array([[1, 2], [1, 1]])) == [[1, 1], [2, 2]]
        assert model([array(1), array(2)]) == [1, 1]
        assert model([array([1, 2]), array([1])]) == [[1, 1], [1]]


def test_run_takes_a_hook(reverse: tracr.CompiledModel) -> None:
    """What the hook returns takes the activation's place, in the run's record too."""
    last = f"blocks.{reverse.n_layers - 1}.hook_attn_out"
    run = reverse.run("abc", hook=lambda name, x: np.zeros_like(x) if name == last else None)
    assert not run[last].any()
    assert not run.logits.any()


def test_blas_threads_are_set_and_restored() -> None:
    """With numpy's own OpenBLAS the number of threads is under control."""
    controls = _controls()
    assert controls is not None
    before = controls[0]()
    with blas_threads(1):
        assert controls[0]() == 1
    assert controls[0]() == before


def test_weights_have_their_state_dict_names(reverse: tracr.CompiledModel) -> None:
    """Names and shapes as TransformerLens has them."""
    shapes = {name: array.shape for name, array in reverse.parameters.named()}
    assert shapes["embed.W_E"] == (5, reverse.d_model)
    assert shapes["pos_embed.W_pos"] == (6, reverse.d_model)
    heads, width, d_head = shapes["blocks.0.attn.W_Q"]
    assert shapes["blocks.0.attn.W_O"] == (heads, d_head, width)
    assert shapes["blocks.0.mlp.W_in"] == shapes["blocks.0.mlp.W_out"][::-1]
    assert shapes["unembed.W_U"] == (reverse.d_model, 3)


def test_stages_are_there_and_show_themselves(reverse: tracr.CompiledModel) -> None:
    """Every stage has text; the shape of each weight is in the last."""
    for stage in ("trace", "infer", "translate", "schedule", "construct", "assemble"):
        assert reverse.show(stage)
    assert "reverse = copy of tokens" in reverse.program.show()
    assert "blocks.0.attn.W_Q" in reverse.show()


def test_a_run_is_a_mapping() -> None:
    """Names that are not there are not in it; asking for one says which there are."""
    run = tracr.compile(rasp.indices, "ab", 3).run("ab")
    assert "logits" in run
    assert "nothing" not in run
    assert run.get("nothing") is None
    with pytest.raises(tracr.TracrError, match=r"no activation 'nothing'(?s:.)*there are hook_embed"):
        run["nothing"]
