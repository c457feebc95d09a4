"""What other projects do with a compiled model: convert it, take it apart, train on it, skip what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracr
from tests.agreement import RAW, load_compiled, same, some_inputs
from tests.compat.frameworks import residual_stream
from tracr.compiler.assemble import AssembledTransformerModel
from tracr.compiler.basis_inference import InvalidValueSetError
from tracr.compiler.compiling import compile_rasp_to_model
from tracr.compiler.craft_model_to_transformer import NoTokensError
from tracr.craft.bases import BasisDirection, VectorSpaceWithBasis
from tracr.craft.vectorspace_fns import project
from tracr.ir.options import Options
from tracr.model.compiling import compile_model
from tracr.rasp import programs, rasp
from tracr.rasp.interpreter import evaluate
from tracr.transformer.encoder import CategoricalEncoder, Encoder, NumericalEncoder
from tracr.transformer.model import CompiledTransformerModel, CompiledTransformerModelOutput, TransformerConfig

BOS, PAD = "compiler_bos", "compiler_pad"
BEFORE = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LT)
MORE_OUTPUTS = {
    "tokens": rasp.tokens,
    "indices": rasp.indices,
    "number": rasp.numerical(rasp.indices),
    "constant": rasp.Full("z"),
    "none": rasp.Aggregate(BEFORE, rasp.Full(3)),
    "maybe_none": rasp.numerical(rasp.Aggregate(BEFORE, rasp.numerical(rasp.indices))).named("mean"),
}


Compiled = tuple[AssembledTransformerModel, rasp.SOp, list[list[Any]]]


def compiled(name: str) -> Compiled:
    """A model of the library or of the programs above, with inputs."""
    if name in MORE_OUTPUTS:
        return with_inputs(MORE_OUTPUTS[name], ("a", "b"), 4)
    example = programs.EXAMPLES[name]
    return with_inputs(example.program, example.vocab, example.max_seq_len)


def with_inputs(program: rasp.SOp, vocab: tuple[rasp.Value, ...], longest: int) -> Compiled:
    return compile_rasp_to_model(program, vocab, longest), program, some_inputs(vocab, longest, 8)


def check(name: str, unembedding_of: Any) -> None:
    """The stream of a framework's own pass, unembedded as a converter does, gives the program's answers."""
    model, program, inputs = compiled(name)
    unembedding = unembedding_of(model)
    compared = 0
    for xs in inputs:
        try:
            expected = evaluate(program, xs)
        except tracr.EvaluationError:
            continue
        compared += 1
        stream = residual_stream(model.params, model.model_config, model.input_encoder.encode([BOS, *xs]))
        logits = (stream @ unembedding)[1:]
        if isinstance(model.output_encoder, CategoricalEncoder):
            found = model.output_encoder.decode(logits.argmax(axis=-1).tolist())
        else:
            found = logits[:, 0].tolist()
        for answer, value in zip(found, expected, strict=True):
            assert same(answer, value, RAW) or (value is None and isinstance(model.output_encoder, NumericalEncoder))
    assert compared


@pytest.mark.parametrize("name", [*programs.EXAMPLES, *MORE_OUTPUTS])
def test_the_first_dimensions_are_the_logits(name: str) -> None:
    """Converters unembed with the identity, cut off; the residual labels begin with the output's."""

    def identity(model: AssembledTransformerModel) -> Any:
        labels = [str(direction) for direction in model.output_encoder.basis]
        assert model.residual_labels[: len(labels)] == labels
        return np.eye(len(model.residual_labels), len(labels))

    check(name, identity)


@pytest.mark.parametrize("name", [*programs.EXAMPLES, *MORE_OUTPUTS])
def test_labels_give_the_unembedding(name: str) -> None:
    """Others project the residual space, made from the labels' text, to the output's space."""

    def value_of(text: str) -> Any:
        for number in (int, float):
            try:
                return number(text)
            except ValueError:
                pass
        return {"True": True, "False": False}.get(text, text)

    def projection(model: AssembledTransformerModel) -> Any:
        parts = [label.partition(":") for label in model.residual_labels]
        stream = [BasisDirection(name, value_of(text) if colon else None) for name, colon, text in parts]
        output = VectorSpaceWithBasis(model.output_encoder.basis)
        return project(VectorSpaceWithBasis(stream), output).matrix

    check(name, projection)


# A model in parts


@pytest.mark.parametrize("name", ["reverse", "frac_prevs", "hist", "maybe_none", "tokens"])
def test_a_model_taken_apart_computes_the_same(name: str) -> None:
    """Embedding, layers and unembedding, each called by itself, as `apply` and `forward` do it at once."""
    model, _, inputs = compiled(name)
    parts = model.get_compiled_model()
    assert isinstance(model, AssembledTransformerModel)
    assert isinstance(parts, CompiledTransformerModel)
    assert isinstance(model.model_config, TransformerConfig)
    assert parts.use_unembed_argmax == isinstance(model.output_encoder, CategoricalEncoder)
    for xs in inputs:
        whole = model.apply([BOS, *xs])
        ids = np.array([model.input_encoder.encode([BOS, *xs])])
        output = model.forward(model.params, ids)
        assert isinstance(output, CompiledTransformerModelOutput)
        embedded = parts.embed(ids)
        layers = parts.transformer(embedded, np.ones(ids.shape), use_dropout=False)
        unembedded = parts.unembed(layers.output, use_unembed_argmax=parts.use_unembed_argmax)
        assert (embedded == whole.input_embeddings).all()
        assert (layers.output == whole.transformer_output).all()
        assert [array.tolist() for array in layers.residuals] == [array.tolist() for array in whole.residuals]
        for found in (unembedded, output.unembedded_output, parts(ids).unembedded_output):
            assert np.array_equal(found, whole.unembedded, equal_nan=True)


def test_parts_can_be_replaced() -> None:
    """Compression experiments decode the stream before the unembedding."""
    model, _, _ = compiled("reverse")
    parts = model.get_compiled_model()
    ids = np.array([model.input_encoder.encode([BOS, "a", "b"])])
    doubled = CompiledTransformerModel(
        transformer=parts.transformer,
        token_embed=parts.token_embed,
        position_embed=parts.position_embed,
        unembed=lambda x, use_unembed_argmax: parts.unembed(-x, use_unembed_argmax),
        use_unembed_argmax=True,
        pad_token=model.input_encoder.pad_encoding,
    )
    assert (doubled(ids, use_dropout=False).unembedded_output != parts(ids).unembedded_output)[0, 1:].all()


def test_masked_positions_are_not_attended_to() -> None:
    """The mask of a caller; padding needs none."""
    model = compile_rasp_to_model(programs.make_length(), "a", 4)
    parts = model.get_compiled_model()
    ids = np.array([model.input_encoder.encode([BOS, "a", "a", "a"])])
    for mask, length in (([1, 1, 1, 1], 3), ([1, 1, 1, 0], 2)):
        layers = parts.transformer(parts.embed(ids), np.array([mask]))
        assert model.output_encoder.decode(parts.unembed(layers.output, True)[0, 1:3]) == [length] * 2


def test_other_weights_in_the_place_of_params() -> None:
    """`apply` runs what is assigned; `forward` what it is given."""
    model, _, _ = compiled("reverse")
    zeros = {module: {key: 0 * array for key, array in arrays.items()} for module, arrays in model.params.items()}
    ids = np.array([model.input_encoder.encode([BOS, "a", "b"])])
    assert not model.forward(zeros, ids).transformer_output.output.any()
    assert model.apply([BOS, "a", "b"]).decoded == [BOS, "b", "a"]
    model.params = zeros
    assert not model.apply([BOS, "a", "b"]).transformer_output.any()


@pytest.mark.slow
def test_forward_is_traced_by_jax() -> None:
    """Compiled, differentiated, and with the answers of numpy."""
    jax = pytest.importorskip("jax")
    model, _, inputs = compiled("reverse")
    ids = np.array([model.input_encoder.encode([BOS, *xs]) for xs in inputs if len(xs) == len(inputs[-1])])
    plain = model.forward(model.params, ids)
    traced = jax.jit(lambda params, tokens: model.forward(params, tokens).unembedded_output)(model.params, ids)
    assert (np.asarray(traced) == plain.unembedded_output).all()
    weights = jax.tree_util.tree_map(jax.numpy.asarray, model.params)
    slopes = jax.grad(lambda params: model.forward(params, ids).transformer_output.output.sum())(weights)
    assert all(np.isfinite(array).all() for arrays in slopes.values() for array in arrays.values())


# Encoders


def test_encoders_made_by_hand() -> None:
    """From a basis, as the original's are; the order of the basis is the encoding."""
    space = VectorSpaceWithBasis.from_values("x", {1, 2, 3, "bos", "pad"})
    encoder = CategoricalEncoder(space.basis, enforce_bos=True, bos_token="bos", pad_token="pad", max_seq_len=4)
    assert isinstance(encoder, Encoder)
    assert encoder.basis == space.basis
    assert encoder.encoding_map == {1: 0, 2: 1, 3: 2, "bos": 3, "pad": 4}
    assert (encoder.bos_encoding, encoder.pad_encoding, encoder.vocab_size, encoder._max_seq_len) == (3, 4, 5, 4)
    assert encoder.decode(encoder.encode(["bos", 3, 1, "pad"])) == ["bos", 3, 1, "pad"]
    for wrong in ([1, 2], [], ["bos", 4], ["bos", 1, 1, 1, 1]):
        with pytest.raises(tracr.InputError):
            encoder.encode(wrong)
    assert CategoricalEncoder(space.basis).bos_encoding is None
    assert NumericalEncoder().decode(NumericalEncoder().encode([0.5, 2])) == [0.5, 2]
    for arguments in ({"bos_token": 9}, {"pad_token": 9}, {"enforce_bos": True}):
        with pytest.raises(ValueError, match="token"):
            CategoricalEncoder(space.basis, **arguments)


def test_encoders_of_models_can_be_made_again_from_their_basis() -> None:
    """A model's encoders are of the public classes, and their bases say the same."""
    model, _, _ = compiled("reverse")
    for encoder in (model.input_encoder, model.output_encoder):
        assert isinstance(encoder, CategoricalEncoder)
        assert CategoricalEncoder(encoder.basis).encoding_map == encoder.encoding_map
    assert model.input_encoder._max_seq_len == len(model.params["pos_embed"]["embeddings"])
    assert isinstance(compiled("frac_prevs")[0].output_encoder, NumericalEncoder)


# Errors


@pytest.mark.parametrize(
    ("program", "vocab"),
    [
        (rasp.numerical(rasp.tokens * 2**25), [1, 2]),
        (rasp.Map(lambda token: 1 / token, rasp.tokens), [0, 1]),
        (rasp.numerical(rasp.tokens), "ab"),
        (rasp.length, "ab"),
    ],
)
def test_refusals_are_what_existing_code_catches(program: rasp.SOp, vocab: Any) -> None:
    """Loops over many programs skip those that are refused."""
    with pytest.raises((NoTokensError, InvalidValueSetError)):
        compile_rasp_to_model(program, vocab, 3, causal=program is rasp.length)


def test_programs_without_tokens_are_no_error() -> None:
    """The original refuses them."""
    assert compile_rasp_to_model(rasp.indices + 1, "ab", 3).apply([BOS, "a", "b"]).decoded == [BOS, 1, 2]
    assert issubclass(NoTokensError, tracr.CompileError)


def test_a_saved_model_has_the_order_it_was_compiled_with(tmp_path: Any) -> None:
    """The output's directions come first again, recompiled too; at no level does the order change an answer."""
    model = compile_rasp_to_model(programs.make_hist(), "ab", 3)
    model.compiled.save(tmp_path / "model")
    for recompile in (False, True):
        loaded = load_compiled(tmp_path / "model", recompile=recompile)
        assert loaded.residual.labels == model.residual_labels
        assert loaded("aab") == [2, 2, 1]
    for level in (0, 1, 2):
        options = Options(("a", "b"), 3, level=level, output_first=True)
        assert compile_model({"hist": programs.make_hist()}, options).verify()
