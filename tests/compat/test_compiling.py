"""`compile_rasp_to_model` and its result: what existing code reads off it, and that the weights really compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracr
from tests.agreement import RAW, same, some_inputs
from tests.compat.frameworks import answer
from tracr import CompiledModel
from tracr.compiler import compile_rasp_to_model, lib
from tracr.compiler.assemble import AssembledTransformerModel
from tracr.rasp import programs, rasp
from tracr.rasp.interpreter import evaluate
from tracr.rasp.traversal import topological

BOS, PAD = "compiler_bos", "compiler_pad"


def reverse() -> AssembledTransformerModel:
    return compile_rasp_to_model(lib.make_reverse(rasp.tokens), vocab={"c", "b", "a"}, max_seq_len=4)


def frac_prevs(**options: Any) -> AssembledTransformerModel:
    return compile_rasp_to_model(lib.make_frac_prevs(rasp.tokens == "x"), vocab={"x", "y"}, max_seq_len=4, **options)


# The weights compute the program


def check(model: AssembledTransformerModel, program: rasp.SOp, inputs: list[list[Any]], causal: bool) -> int:
    """Both `apply` and a framework's own forward pass give the interpreter's answer; how many inputs have one."""
    compared = 0
    longest = model.compiled.program.lengths[1]
    for xs in inputs:
        try:
            expected = evaluate(program, xs, causal=causal)
        except tracr.EvaluationError:
            continue
        compared += 1
        for padding in {0, longest - len(xs)}:
            tokens = [BOS, *xs, *[PAD] * padding]
            decoded = model.apply(tokens).decoded
            framework = answer(model, tokens)[: len(xs)]
            assert decoded[0] == BOS
            assert decoded[len(xs) + 1 :] == [PAD] * padding
            for found in (decoded[1 : len(xs) + 1], framework):
                assert len(found) == len(expected)
                assert all(map(lambda a, b: same(a, b, RAW), found, expected)), (xs, padding, found, expected)
    return compared


@pytest.mark.parametrize("name", programs.EXAMPLES)
def test_params_compute_the_program(name: str) -> None:
    """Every program of the library, at every length, padded and not."""
    example = programs.EXAMPLES[name]
    model = compile_rasp_to_model(example.program, example.vocab, example.max_seq_len)
    assert check(model, example.program, some_inputs(example.vocab, example.max_seq_len, 12), causal=False)


@pytest.mark.parametrize("name", programs.EXAMPLES)
def test_params_compute_the_program_causally(name: str) -> None:
    """The same with causal attention, for the programs that do not look at the length."""
    example = programs.EXAMPLES[name]
    if any(isinstance(expr, rasp.Length) for expr in topological([example.program])):
        with pytest.raises(tracr.CompileError, match="future"):
            compile_rasp_to_model(example.program, example.vocab, example.max_seq_len, causal=True)
        return
    model = compile_rasp_to_model(example.program, example.vocab, example.max_seq_len, causal=True)
    assert model.model_config.causal
    assert check(model, example.program, some_inputs(example.vocab, example.max_seq_len, 12), causal=True)


def test_numbers_that_may_be_none() -> None:
    """None is decoded as None, in numerical outputs too; `unembedded` has NaN there."""
    before = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LT)
    program = rasp.numerical(rasp.Aggregate(before, rasp.numerical(rasp.tokens))).named("mean_before")
    model = compile_rasp_to_model(program, [1, 2], 4)
    output = model.apply([BOS, 1, 2, 2, 1])
    assert output.decoded[:3] == [BOS, None, 1.0]
    assert output.decoded[4] == pytest.approx(5 / 3, abs=1e-6)
    assert np.isnan(output.unembedded[0, 1])
    assert check(model, program, some_inputs([1, 2], 4, 12), causal=False)


def test_the_program_tokens_needs_no_layers() -> None:
    """Nothing to compute is nothing to fail on."""
    model = compile_rasp_to_model(rasp.tokens, "ab", 3)
    assert model.model_config.num_layers == 0
    assert model.apply([BOS, "b", "a"]).decoded == [BOS, "b", "a"]


def test_edited_params_are_what_apply_runs() -> None:
    """Ablations through `params` take effect, and leave `compiled` as it was."""
    model = frac_prevs()
    assert model.apply([BOS, "x", "x"]).decoded == [BOS, 1.0, 1.0]
    last = f"transformer/layer_{model.model_config.num_layers - 1}/attn/linear"
    model.params[last]["w"] = np.zeros_like(model.params[last]["w"])
    assert model.apply([BOS, "x", "x"]).decoded == [BOS, 0.0, 0.0]
    assert model.compiled("xx") == [1, 1]


def test_the_scale_loses_nothing() -> None:
    """√key_size is a power of two, so the scores are bit for bit those of our own model."""
    model = reverse()
    ours = model.compiled.run("abca")
    theirs = model.apply([BOS, *"abca"])
    assert np.log2(np.sqrt(model.model_config.key_size)).is_integer()
    assert (theirs.transformer_output == ours[f"blocks.{model.model_config.num_layers - 1}.hook_resid_post"]).all()


# What the result has


def test_the_result_is_a_level_0_model_of_ours() -> None:
    """`compiled` is the same model under our own API."""
    model = reverse()
    assert isinstance(model.compiled, CompiledModel)
    assert model.compiled.options.level == 0
    assert model.compiled("abc") == ["c", "b", "a"]


@pytest.mark.parametrize("tokens", [[BOS], [BOS, "x"], [BOS, "x", "y", PAD, PAD]], ids=len)
@pytest.mark.parametrize("causal", [False, True])
def test_shapes_of_an_output(tokens: list[Any], causal: bool) -> None:
    """A flat list decoded; arrays with a batch axis of 1; two entries per layer, one for the logits."""
    model = frac_prevs(causal=causal)
    output, config = model.apply(tokens), model.model_config
    stream = (1, len(tokens), len(model.residual_labels))
    assert isinstance(output.decoded, list)
    assert len(output.decoded) == len(tokens)
    assert output.decoded[0] == BOS
    assert output.unembedded.shape == (1, len(tokens))
    assert [array.shape for array in output.layer_outputs] == [stream] * (2 * config.num_layers)
    assert [array.shape for array in output.residuals] == [stream] * (2 * config.num_layers)
    scores = (1, config.num_heads, len(tokens), len(tokens))
    assert [array.shape for array in output.attn_logits] == [scores] * config.num_layers
    assert output.transformer_output.shape == output.input_embeddings.shape == stream


def test_residuals_add_up() -> None:
    """Each residual is the one before plus the sub-layer's output; the last is the transformer's output."""
    output = reverse().apply([BOS, "a", "b"])
    before = output.input_embeddings
    for added, residual in zip(output.layer_outputs, output.residuals, strict=True):
        assert np.allclose(before + added, residual, atol=1e-6)
        before = residual
    assert (before == output.transformer_output).all()


@pytest.mark.parametrize("name", ["reverse", "shuffle_dyck2", "sort_freq", "pair_balance"])
def test_shapes_of_params(name: str) -> None:
    """All layers alike, each weight [in, out], in float32."""
    example = programs.EXAMPLES[name]
    model = compile_rasp_to_model(example.program, example.vocab, example.max_seq_len)
    config, width = model.model_config, len(model.residual_labels)
    inner = config.num_heads * config.key_size
    shapes: dict[str, dict[str, tuple[int, ...]]] = {
        "token_embed": {"embeddings": (len(example.vocab) + 2, width)},
        "pos_embed": {"embeddings": (example.max_seq_len + 1, width)},
    }
    for layer in range(config.num_layers):
        for part in ("query", "key", "value"):
            shapes[f"transformer/layer_{layer}/attn/{part}"] = {"w": (width, inner), "b": (inner,)}
        shapes[f"transformer/layer_{layer}/attn/linear"] = {"w": (inner, width), "b": (width,)}
        hidden = config.mlp_hidden_size
        shapes[f"transformer/layer_{layer}/mlp/linear_1"] = {"w": (width, hidden), "b": (hidden,)}
        shapes[f"transformer/layer_{layer}/mlp/linear_2"] = {"w": (hidden, width), "b": (width,)}
    found = {module: {key: array.shape for key, array in arrays.items()} for module, arrays in model.params.items()}
    assert found == shapes
    assert all(array.dtype == np.float32 for arrays in model.params.values() for array in arrays.values())


def test_model_config() -> None:
    """The fields existing code reads."""
    config = frac_prevs(causal=True).model_config
    assert (config.num_layers, config.num_heads, config.dropout_rate) == (2, 1, 0.0)
    assert (config.layer_norm, config.causal) == (False, True)
    assert config.activation_function(np.array([-1.0, 2.0])).tolist() == [0, 2]


def test_input_encoder() -> None:
    """The vocabulary (a set sorted), then BOS, PAD."""
    encoder = reverse().input_encoder
    assert encoder.encoding_map == {"a": 0, "b": 1, "c": 2, BOS: 3, PAD: 4}
    assert (encoder.bos_token, encoder.pad_token, encoder.bos_encoding, encoder.pad_encoding) == (BOS, PAD, 3, 4)
    assert encoder.encode([BOS, "c", "a", PAD]) == [3, 2, 0, 4]
    assert encoder.decode([3, 2, 0, 4]) == [BOS, "c", "a", PAD]
    assert encoder.vocab_size == 5


def test_output_encoder() -> None:
    """Categorical: the output's values and their numbers, which index `unembedded`. Numerical: numbers as they are."""
    model = compile_rasp_to_model(lib.make_hist(), "ab", 3)
    encoder = model.output_encoder
    assert encoder.encoding_map is not None
    assert set(encoder.encoding_map) >= {1, 2, 3}
    assert (encoder.bos_token, encoder.pad_token) == (None, None)
    assert encoder.decode(encoder.encode([3, 1])) == [3, 1]
    unembedded = model.apply([BOS, "a", "b", "a"]).unembedded
    assert encoder.decode(unembedded[0, 1:].tolist()) == [2, 1, 2]
    numerical = frac_prevs().output_encoder
    assert numerical.encoding_map is None
    assert numerical.decode(numerical.encode([0.5, None])) == [0.5, None]


def test_other_names_for_bos_and_pad() -> None:
    """Any value that is no token."""
    model = compile_rasp_to_model(lib.make_hist(), [1, 2], 3, compiler_bos="<s>", compiler_pad=0)
    assert model.apply(["<s>", 2, 2, 0]).decoded == ["<s>", 2, 2, 0]


def test_mlp_exactness_changes_nothing() -> None:
    """MLPs are exact; the argument is accepted for existing calls."""
    rough, fine = (compile_rasp_to_model(lib.make_hist(), "ab", 3, mlp_exactness=e) for e in (10, 1000))
    for module, arrays in rough.params.items():
        for key, array in arrays.items():
            assert (array == fine.params[module][key]).all()


# Errors


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (["a", "b"], "must start with the BOS token 'compiler_bos', not with 'a'"),
        ("ab", "must start with the BOS token"),
        ([], "not with nothing"),
        (7, "must be a list of tokens"),
        ([BOS, "z"], "'z' at position 0 is not in the vocabulary"),
        ([BOS, ["a"]], "is not in the vocabulary"),
        ([BOS, "a", BOS], "BOS token 'compiler_bos' at position 1"),
        ([BOS, PAD, "a"], "PAD token 'compiler_pad' at position 0, before the end"),
        ([BOS, *"aaaaa"], "has 5 tokens, the model takes at most 4"),
        ([BOS, *"aaa", PAD, PAD], "with its padding the input has 5 tokens"),
    ],
)
def test_wrong_inputs_are_input_errors_and_value_errors(tokens: Any, message: str) -> None:
    """Each says what is wrong; none is answered."""
    with pytest.raises(tracr.InputError, match=message) as caught:
        reverse().apply(tokens)
    assert isinstance(caught.value, ValueError)


def test_values_without_encoding_are_input_errors() -> None:
    """Both ways, for outputs too."""
    encoder: Any = reverse().output_encoder
    for value in ("z", ["a"]):
        with pytest.raises(tracr.InputError, match="has no encoding"):
            encoder.encode([value])
    for number in (-1, 99):
        with pytest.raises(tracr.InputError, match="encodes nothing"):
            encoder.decode([number])


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"compiler_bos": "a"}, tracr.VocabularyError),
        ({"compiler_pad": "a"}, tracr.VocabularyError),
        ({"vocab": ()}, tracr.VocabularyError),
        ({"max_seq_len": 0}, tracr.CompileError),
        ({"program": rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)}, tracr.ExpressionError),
        ({"program": "hist"}, tracr.ExpressionError),
    ],
)
def test_wrong_arguments_are_typed_errors_and_value_errors(arguments: Any, error: type[Exception]) -> None:
    """Before anything is built."""
    with pytest.raises(error) as caught:
        compile_rasp_to_model(**{"program": lib.make_hist(), "vocab": "ab", "max_seq_len": 3, **arguments})
    assert isinstance(caught.value, ValueError)
