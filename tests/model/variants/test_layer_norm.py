"""Models with layer norms: no bit of a code changes, and the bound on the stream holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tracr
from tests.agreement import some_inputs
from tests.library import compiled
from tests.model.variants.making import EXACT, VARIANTS
from tracr.model.variants.layer_norm import LayerNorm, largest_square
from tracr.rasp import programs, rasp
from tracr.rasp.programs import EXAMPLES


def test_a_rotated_model_with_layer_norms_keeps_its_mean() -> None:
    """The rotation leaves (1, ..., 1) alone, so the mean stays 0."""
    model = compiled("reverse").with_layer_norm().rotated(5)
    stream = model.run("abc", dtype=np.float64)["blocks.1.hook_resid_post"]
    assert np.abs(stream.mean(axis=-1)).max() < 1e-12
    ones = np.ones(model.d_model)
    assert np.array_equal(model.directions @ ones, np.zeros(len(model.directions)))


@pytest.mark.parametrize("variant", EXACT)
@pytest.mark.parametrize("name", ["shift_by", "detect_pattern", "counter"])
def test_no_bit_of_codes_changes(name: str, variant: str) -> None:
    """Where the stream holds one-hot codes and integers, logits are the same to the last bit."""
    model, example = compiled(name), EXAMPLES[name]
    ids, _, real = model.vocabulary.encode(some_inputs(example.vocab, example.max_seq_len, 30))
    before, after = model.logits(ids), VARIANTS[variant](model).logits(ids)
    for row, length in enumerate(real):
        assert np.array_equal(before[row, 1 : length + 1], after[row, 1 : length + 1])


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_bound_on_the_stream_holds(name: str) -> None:
    """No token's residual stream is larger than N, nor its variance with the balance."""
    example, model = EXAMPLES[name], compiled(name)
    normed = model.with_layer_norm()
    inputs = [xs for xs in some_inputs(example.vocab, example.max_seq_len, 60) if len(xs) == example.max_seq_len]
    bound = largest_square(model) * (1 + 1e-5)
    for number in range(model.n_layers):
        hook = f"blocks.{number}.hook_resid_post"
        assert (np.square(model.run(inputs)[hook]).sum(axis=-1) <= bound).all()
        assert (normed.run(inputs)[hook].var(axis=-1) <= bound).all()
    assert normed.variant.layer_norm == LayerNorm(2.0**80)


def test_large_numbers_get_a_larger_epsilon() -> None:
    """2**24 times the largest square, whatever that is; then they are right as well."""
    big = rasp.numerical(rasp.Map(lambda x: 100_000 * x, rasp.tokens)).named("big")
    program = rasp.numerical(rasp.LinearSequenceMap(big, rasp.numerical(rasp.indices), 1, 1)).named("sum")
    model = tracr.compile(program, (1, 2, 3), 3)
    normed = model.with_layer_norm()
    assert normed.variant.layer_norm is not None
    assert normed.variant.layer_norm.epsilon >= 2**24 * 300_000**2
    assert normed.verify()
    frozen = replace(normed, changes=replace(normed.variant, layer_norm=LayerNorm(2.0**20)))
    assert not frozen.verify()


def test_activations_after_the_norms() -> None:
    """They have TransformerLens names, are what readers read, and can be changed."""
    model = compiled("reverse").with_layer_norm()
    run = model.run("abc")
    for number, layer in enumerate(model.parameters.layers):
        block = f"blocks.{number}"
        if layer.b_Q.size:
            assert np.array_equal(run[f"{block}.ln1.hook_normalized"], model.normalised(run[f"{block}.hook_resid_pre"]))
        if layer.b_in.size:
            assert np.array_equal(run[f"{block}.ln2.hook_normalized"], model.normalised(run[f"{block}.hook_resid_mid"]))
            pre = run[f"{block}.ln2.hook_normalized"] @ layer.W_in.astype(np.float32) + layer.b_in.astype(np.float32)
            assert np.allclose(run[f"{block}.mlp.hook_pre"], pre)
    assert np.allclose(run["ln_final.hook_normalized"] @ model.parameters.W_U, run.logits)

    def silence(name: str, tensor: np.ndarray) -> np.ndarray | None:
        return np.zeros_like(tensor) if name == "ln_final.hook_normalized" else None

    assert not model.run("abc", hook=silence).logits.any()


def test_layer_norms_once() -> None:
    """They are there or they are not."""
    with pytest.raises(tracr.TracrError, match="already"):
        compiled("hist").with_layer_norm().with_layer_norm()


def test_the_bound_on_the_stream_counts_every_bit() -> None:
    """A code in bits is as long as it has directions; other features of a value, such as squares, are longer."""
    bits = tracr.compile(rasp.Map(lambda x: x % 3, rasp.tokens), range(1100), 20)
    squares = tracr.compile(programs.make_reverse(rasp.tokens), range(20), 20, level=2)
    for model in (bits, squares):
        assert any(variable.compact for variable in model.layout.slots)
        run = model.run([list(range(20))])
        streams = [run["hook_embed"] + run["hook_pos_embed"], *(run[name] for name in run if "hook_resid" in name)]
        assert max(float((stream**2).sum(axis=-1).max()) for stream in streams) <= largest_square(model)
        assert model.with_layer_norm().verify(300)
