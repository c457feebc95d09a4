"""Variants: the same outputs, activations, interventions, saving and ground truth, along other directions."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

import tracr
from tests.agreement import assert_agrees, load_compiled, same, some_inputs
from tests.library import masks
from tests.strategies import Case, cases
from tests.tally import NotCompared, Tally, compile_case, inputs_for, mostly_compared
from tests.tiers import pairwise
from tracr.ir.options import LEVELS
from tracr.model.variants.exactness import Exactness
from tracr.model.variants.layer_norm import LayerNorm, largest_square
from tracr.model.variants.readback import first_problem
from tracr.rasp import programs, rasp
from tracr.rasp.programs import EXAMPLES
from tracr.runtime.table_interpreter import evaluate_batch
from tracr.saving import models

Make = Callable[[tracr.CompiledModel], tracr.CompiledModel]
VARIANTS: dict[str, Make] = {
    "rotated": lambda model: model.rotated(1),
    "layer_norm": lambda model: model.with_layer_norm(),
    "rotated, layer_norm": lambda model: model.rotated(2).with_layer_norm(),
    "layer_norm, rotated": lambda model: model.with_layer_norm().rotated(3),
    "noise": lambda model: model.with_noise(),
    "all": lambda model: model.rotated(4).with_layer_norm().with_noise(1e-7, seed=1),
}
VARIANTS = {name: cache(make) for name, make in VARIANTS.items()}
EXACT = [name for name in VARIANTS if name not in ("noise", "all")]


@cache
def compiled(name: str, level: int = 1, causal: bool = False) -> tracr.CompiledModel:
    example = EXAMPLES[name]
    return tracr.compile(example.program, example.vocab, example.max_seq_len, level=level, causal=causal)


# Outputs


@pytest.mark.parametrize(("name", "variant", "level"), pairwise(EXAMPLES, EXACT, LEVELS))
def test_decoded_outputs_are_the_same(name: str, variant: str, level: int) -> None:
    """On the library, in float32, bidirectional and causal, padded and not, as the interpreter says."""
    example = EXAMPLES[name]
    inputs = some_inputs(example.vocab, example.max_seq_len, 60)
    for causal in masks(name):
        model = VARIANTS[variant](compiled(name, level, causal))
        assert assert_agrees(model, example.program, inputs, reference=10) == len(inputs)
        assert model.verify(budget=200)


@pytest.mark.parametrize("variant", EXACT)
@pytest.mark.parametrize("name", EXAMPLES)
def test_logits_are_the_same_in_float64(name: str, variant: str) -> None:
    """To 1e-9, numbers that are huge aside: what differs in float32 is rounding."""
    model = compiled(name)
    ids, _, real = model.vocabulary.encode(some_inputs(EXAMPLES[name].vocab, EXAMPLES[name].max_seq_len, 30))
    before = model.logits(ids, np.float64)
    after = VARIANTS[variant](model).logits(ids, np.float64)
    for row, length in enumerate(real):
        assert np.allclose(before[row, 1 : length + 1], after[row, 1 : length + 1], rtol=1e-9, atol=1e-9)


DRAWN = given(case=cases(composite=True), level=st.sampled_from(LEVELS), variant=st.sampled_from(EXACT))


@mostly_compared()
@settings(max_examples=70, deadline=None)
@DRAWN
def test_random_programs(case: Case, level: int, variant: str) -> None:
    """Any program, in float32, by the kernel and by products of matrices; numbers without a list of values to 1e-4."""
    check(case, level, variant)


@pytest.mark.slow
@mostly_compared()
@settings(max_examples=400, deadline=None)
@DRAWN
def test_many_random_programs(case: Case, level: int, variant: str) -> None:
    """The same for hundreds of them."""
    check(case, level, variant)


def check(case: Case, level: int, variant: str) -> None:
    """The variant gives the program's outputs."""
    model = compile_case(case, level=level)
    inputs = inputs_for(model, case, 12)
    evaluation = evaluate_batch(model.program, inputs)
    (expected,) = evaluation.outputs().values()
    other = VARIANTS[variant](model)
    for got in (other(inputs), other.run(inputs).decoded):
        for row, raises in enumerate(evaluation.errors):
            if not raises:
                assert all(same(a, b, 1e-4) for a, b in zip(got[row], expected[row], strict=True))


# Activations


@pytest.mark.parametrize("variant", EXACT)
def test_activations_are_the_same_along_other_directions(variant: str) -> None:
    """Heads and neurons hold what they held; the residual stream does, read along its directions."""
    model = compiled("sort_freq")
    other = VARIANTS[variant](model)
    before, after = (m.run("abca", dtype=np.float64) for m in (model, other))
    for name, activation in before.items():
        if "hook_resid" in name or name in ("hook_embed", "hook_pos_embed") or name.endswith("_out"):
            assert after[name].shape[-1] == other.d_model
            assert np.allclose(other.coordinates(after[name]), activation, atol=1e-9), name
        elif not np.isinf(activation).any():
            assert np.allclose(after[name], activation, atol=1e-8), name


def test_the_directions_of_a_model_are_its_axes() -> None:
    """Of a compiled model `coordinates` changes nothing."""
    model = compiled("reverse")
    stream = model.run("abc")["blocks.0.hook_resid_post"]
    assert np.array_equal(model.directions, np.eye(model.d_model))
    assert np.array_equal(model.coordinates(stream), stream)
    assert model.plain is model


@pytest.mark.parametrize("variant", EXACT)
def test_weights_along_the_labels(variant: str) -> None:
    """`labelled` undoes rotations and layer norms, which is what figures and the explorer show."""
    model = compiled("hist2")
    found = VARIANTS[variant](model).labelled
    for (name, before), (_, after) in zip(model.parameters.named(), found.parameters.named(), strict=True):
        assert np.allclose(before, after, atol=1e-9), name
    noisy = model.rotated(1).with_noise(1e-3).labelled
    assert 0 < np.abs(noisy.parameters.W_E - model.parameters.W_E).max() < 1e-2


def test_figures_of_a_variant_are_the_models() -> None:
    """The residual stream read off by its labels, the weights along them."""
    pytest.importorskip("matplotlib")
    model = compiled("frac_prevs")
    for kind, tokens in (("stream", "xax"), ("weights", None)):
        first, second = (m.figure(kind, tokens) for m in (model, model.rotated(1).with_layer_norm()))
        words = [
            list(map(_text, figure.findobj(match=lambda artist: bool(_text(artist))))) for figure in (first, second)
        ]
        assert words[0] == words[1]
        assert "is_x" in words[0]


def _text(artist: Any) -> str:
    return str(artist.get_text()) if type(artist).__name__ == "Text" else ""


def alone(model: tracr.CompiledModel) -> list[str]:
    """The labels that have a dimension of their own."""
    write = model.directions != 0
    own = (write.sum(axis=1) == 1) & (write[:, write.sum(axis=0) == 1].sum(axis=1) == 1)
    return [label for label, single in zip(model.residual.labels, own.tolist(), strict=True) if single]


def test_dimensions_of_a_rotated_model_hold_several_labels() -> None:
    """Directions are orthonormal to the last bit; but for BOS and a share of attention no label has a dimension."""
    model = compiled("hist")
    one, other = model.rotated(1), model.rotated(2)
    assert np.array_equal(one.directions @ one.directions.T, np.eye(model.d_model))
    assert not np.allclose(one.directions, other.directions)
    assert np.array_equal(one.directions, model.rotated(1).directions)
    for rotated in (one, other):
        assert alone(rotated) == ["tokens:bos", "hist_share"]
        mixed = (rotated.directions != 0).sum(axis=0) > 1
        assert mixed.sum() == model.d_model - 2
        assert ((rotated.directions != 0).sum(axis=0)[mixed] >= 4).all()
        assert np.abs(rotated.directions[:, mixed]).max() <= 0.75


@pytest.mark.parametrize("name", ["shift_by", "detect_pattern", "counter", "nary_sequencemap", "frac_prevs"])
@pytest.mark.parametrize("level", LEVELS)
def test_no_label_has_a_dimension_where_nothing_is_sensitive(name: str, level: int) -> None:
    """Where codes and integers are all that is read before the output, every label is mixed."""
    for seed in range(3):
        assert alone(compiled(name, level).rotated(seed)) == []


@pytest.mark.parametrize("size", [300, pytest.param(1_000, marks=pytest.mark.slow)])
def test_a_large_vocabulary(size: int) -> None:
    """Squares of hundreds times a gap of 256 leave few bits: every token is right, by the kernel and without it."""
    model = tracr.compile(programs.make_hist(), range(size), 3)
    for seed in range(2):
        rotated = model.rotated(seed)
        every = [[token] for token in range(size)]
        assert rotated(every) == [[1]] * size
        assert rotated.run(every).decoded == [[1]] * size
        assert all(rotated([token]) == [1] for token in range(0, size, 7))
        assert rotated([5, 7, 5]) == [2, 1, 2]
        assert len(alone(rotated)) <= 2
        assert rotated.verify(300)


@pytest.mark.parametrize("variant", EXACT)
@pytest.mark.parametrize("length", [40, pytest.param(100, marks=pytest.mark.slow)])
def test_long_inputs(length: int, variant: str) -> None:
    """Many steps of a staircase, of all lengths, padded and not."""
    other = VARIANTS[variant](tracr.compile(programs.make_hist(), "abcd", length))
    assert other.verify(length)
    tokens = list("abca" * (length // 4))
    assert other.run([tokens, tokens[:5]]).decoded[0][:3] == [length // 2, length // 4, length // 4]


@pytest.mark.parametrize("level", LEVELS)
def test_exact_models_are_rotated_without_a_trace(level: int) -> None:
    """Where every label is exact, no bit of a query, key, value or neuron changes, whatever the batch."""
    with Tally(least=0.15) as tally:  # four programs
        for name in EXAMPLES:
            with tally.draw():
                check_rotated_without_a_trace(name, level)


def check_rotated_without_a_trace(name: str, level: int) -> None:
    model, example = compiled(name, level), EXAMPLES[name]
    if not Exactness(model).exact.all():
        raise NotCompared("some labels are not exact")
    other = model.rotated(level)
    for count in (1, 3, 50):  # BLAS has other ways for other shapes
        ids, _, _ = model.vocabulary.encode(some_inputs(example.vocab, example.max_seq_len, count))
        before: dict[str, np.ndarray] = {}
        after: dict[str, np.ndarray] = {}
        model.logits(ids, hook=before.__setitem__)
        other.logits(ids, hook=after.__setitem__)
        there = ids != model.vocabulary.pad_id
        for hook, values in before.items():
            if hook.endswith(("hook_q", "hook_k", "hook_v", "hook_pre")):
                assert np.array_equal(values[there], after[hook][there]), hook


def test_a_basis_with_too_few_bits_is_found_out() -> None:
    """Many rounds on a large vocabulary, or mixing what holds a share of attention: labels offend."""
    model = tracr.compile(programs.make_hist(), range(300), 3)
    exactness = Exactness(model)
    rng = np.random.default_rng(0)
    rotation = np.eye(model.d_model)
    for _ in range(8):
        groups = rng.permutation(model.d_model)[:304].reshape(-1, 4)
        rotation[:, groups] = rotation[:, groups] @ (np.full((4, 4), 0.5) - np.eye(4))
    assert exactness.offending(rotation, rotation.T)[:300].any()
    share = model.residual.labels.index("hist_share")
    single = np.eye(model.d_model)
    single[:, [0, 1, 2, share]] = single[:, [0, 1, 2, share]] @ (np.full((4, 4), 0.5) - np.eye(4))
    assert exactness.offending(single, single.T)[share]
    assert not exactness.offending(np.eye(model.d_model), np.eye(model.d_model)).any()


@pytest.mark.parametrize("variant", EXACT)
@pytest.mark.parametrize("name", EXAMPLES)
def test_values_at_bos_are_the_same_to_the_last_bit(name: str, variant: str) -> None:
    """Heads that add up weigh them 2**34 times as much as other values, so nothing may be off."""
    model = compiled(name)
    ids, _, _ = model.vocabulary.encode(some_inputs(EXAMPLES[name].vocab, EXAMPLES[name].max_seq_len, 10))
    seen: list[dict[str, np.ndarray]] = [{}, {}]
    for each, kept in zip((model, VARIANTS[variant](model)), seen, strict=True):
        each.logits(ids, hook=kept.__setitem__)
    for hook, values in seen[0].items():
        if hook.endswith("hook_v"):
            assert np.array_equal(values[:, 0], seen[1][hook][:, 0]), hook


def test_a_rotated_model_with_layer_norms_keeps_its_mean() -> None:
    """The rotation leaves (1, ..., 1) alone, so the mean stays 0."""
    model = compiled("reverse").with_layer_norm().rotated(5)
    stream = model.run("abc", dtype=np.float64)["blocks.1.hook_resid_post"]
    assert np.abs(stream.mean(axis=-1)).max() < 1e-12
    ones = np.ones(model.d_model)
    assert np.array_equal(model.directions @ ones, np.zeros(len(model.directions)))


@pytest.mark.parametrize("variant", VARIANTS)
def test_setting_a_variable(variant: str) -> None:
    """`run(set=)` writes along the variable's directions."""
    model = compiled("frac_prevs")
    other = VARIANTS[variant](model)
    for change in ({"is_x": [True, False, True]}, {"indices": [2, 1, 0]}, {"tokens": ["x", "a", "x"]}):
        expected = model.run("aab", set=change).decoded
        close = 2e-2 if variant == "noise" else 1e-3  # numbers are not rounded to values
        assert other.run("aab", set=change).decoded == pytest.approx(expected, abs=close)
    assert model.run("aab", set={"is_x": [True, False, True]}).decoded == [1.0, 0.5, 2 / 3]


# Layer norms


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
    assert normed.variant is not None
    assert normed.variant.layer_norm == LayerNorm(2.0**40)


def test_large_numbers_get_a_larger_epsilon() -> None:
    """2**24 times the largest square, whatever that is; then they are right as well."""
    big = rasp.numerical(rasp.Map(lambda x: 100_000 * x, rasp.tokens)).named("big")
    program = rasp.numerical(rasp.LinearSequenceMap(big, rasp.numerical(rasp.indices), 1, 1)).named("sum")
    model = tracr.compile(program, (1, 2, 3), 3)
    normed = model.with_layer_norm()
    assert normed.variant is not None
    assert normed.variant.layer_norm is not None
    assert normed.variant.layer_norm.epsilon >= 2**24 * 300_000**2
    assert normed.verify()
    frozen = replace(normed, variant=replace(normed.variant, layer_norm=LayerNorm(2.0**20)))
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


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_model_without_layers(variant: str) -> None:
    """The embedding is all there is."""
    model = VARIANTS[variant](tracr.compile(rasp.tokens, "ab", 2))
    assert model.n_layers == 0
    assert model("ba") == ["b", "a"]
    assert model.run("ba").decoded == ["b", "a"]


def test_layer_norms_once() -> None:
    """They are there or they are not."""
    with pytest.raises(tracr.TracrError, match="already"):
        compiled("hist").with_layer_norm().with_layer_norm()


# Noise


@pytest.mark.parametrize("name", EXAMPLES)
def test_as_much_noise_as_a_model_bears(name: str) -> None:
    """Without a scale outputs and variables are the same; with 1,000 times as much, some is found that is not."""
    model = compiled(name)
    noisy = model.with_noise(seed=3)
    assert noisy.verify(budget=2_000)
    assert noisy.variant is not None
    assert noisy.variant.noise > 0
    assert (noisy.parameters.W_E != model.parameters.W_E).all()
    assert (noisy.parameters.W_U != model.parameters.W_U).all()
    assert first_problem(model.with_noise(min(1_000 * noisy.variant.noise, 10.0), seed=3))


def test_noise_and_its_effect_shrink_together() -> None:
    """The logits of the longest input move in proportion, for small noise."""
    model = compiled("frac_prevs")
    ids, _, _ = model.vocabulary.encode(["axbxc"])
    clean = model.logits(ids, np.float64)
    off = [np.abs(model.with_noise(scale).logits(ids, np.float64) - clean)[:, 1:].max() for scale in (1e-8, 1e-9)]
    assert off[0] / off[1] == pytest.approx(10, rel=0.05)
    assert np.array_equal(model.with_noise(0).logits(ids, np.float64), clean)


@pytest.mark.parametrize("scale", [-1.0, float("nan"), float("inf"), True, "0.1"])
def test_the_scale_of_noise_is_a_number_from_0_on(scale: float) -> None:
    """Anything else is refused."""
    with pytest.raises(tracr.TracrError, match="scale of the noise"):
        compiled("hist").with_noise(scale)


# Ground truth


@pytest.mark.parametrize("variant", VARIANTS)
def test_ground_truth_is_the_models_along_directions(variant: str) -> None:
    """The same nodes and edges; the JSON has a direction for each slot."""
    model = compiled("sort_freq")
    other = VARIANTS[variant](model)
    assert other.ground_truth.nodes() == model.ground_truth.nodes()
    assert other.ground_truth.edges() == model.ground_truth.edges()
    given, plain = (json.loads(m.ground_truth.to_json()) for m in (other, model))
    assert given.pop("variant") == list(other.variant.steps if other.variant else ())
    directions = np.array(given.pop("directions"))
    assert directions.shape == (len(given["dimensions"]), other.d_model)
    assert np.array_equal(directions, other.directions)
    assert given == plain


@pytest.mark.parametrize("variant", EXACT)
@pytest.mark.parametrize("ablation", ["zero", "mean", "resample"])
@pytest.mark.parametrize("name", ["frac_prevs", "shuffle_dyck", "hist2"])
def test_minimal_circuits_are_the_same(name: str, ablation: str, variant: str) -> None:
    """Ablating an edge along its directions does to a variant what it does to the model."""
    model, example = compiled(name), EXAMPLES[name]
    data = some_inputs(example.vocab, example.max_seq_len, 20)
    other = VARIANTS[variant](model)
    before, after = (m.ground_truth.minimal(data=data, ablation=ablation) for m in (model, other))  # type: ignore[arg-type]
    assert after.inside == before.inside
    assert after.inert == before.inert
    edges = [before.inside[0]]
    for kept, again in zip(
        model.ground_truth.ablate(edges, data=data), other.ground_truth.ablate(edges, data=data), strict=True
    ):
        assert all(same(a, b, 1e-3) for a, b in zip(kept, again, strict=True))


# Saving


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_saved_variant_comes_back(tmp_path: Path, variant: str) -> None:
    """Weights, directions and steps; saved again, the same bytes."""
    model = VARIANTS[variant](compiled("hist2"))
    model.save(tmp_path / "a")
    loaded = load_compiled(tmp_path / "a")
    assert repr(loaded) == repr(model)
    assert np.array_equal(loaded.directions, model.directions)
    for (_, before), (_, after) in zip(model.parameters.named(), loaded.parameters.named(), strict=True):
        assert np.array_equal(before, after)
    assert loaded("abcab") == model("abcab")
    loaded.save(tmp_path / "b")
    for name in models.CONTENT:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert load_compiled(tmp_path / "a", recompile=True).variant is None


def resaved(folder: Path, model: tracr.CompiledModel) -> Path:
    """A folder whose digests are right, for a model whose weights or basis need not be."""
    model.save(folder)
    return folder


def test_weights_that_are_not_the_variants_are_refused(tmp_path: Path) -> None:
    """Changed weights, a basis that does not fit them, more noise than is told."""
    rotated = compiled("hist").rotated(1)
    other = compiled("hist").rotated(2)
    with pytest.raises(tracr.FormatError, match="differs from the weights its program compiles to"):
        load_compiled(resaved(tmp_path / "a", replace(rotated, changed=other.parameters)))
    noisy = compiled("hist").with_noise(1e-2)
    assert noisy.variant is not None
    with pytest.raises(tracr.FormatError, match="differs from the weights its program compiles to"):
        load_compiled(resaved(tmp_path / "b", replace(noisy, variant=replace(noisy.variant, noise=1e-5))))
    assert rotated.variant is not None
    basis = replace(rotated.variant.basis, read=np.ones_like(rotated.variant.basis.read))
    with pytest.raises(tracr.FormatError, match="does not read what"):
        load_compiled(resaved(tmp_path / "c", replace(rotated, variant=replace(rotated.variant, basis=basis))))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"noise": -1}, "below 0"),
        ({"epsilon": 0}, "below 0"),
        ({"noise": "1"}, "not a finite number"),
        ({"steps": [1]}, "not a string"),
        ({"more": 1}, "unknown"),
    ],
)
def test_what_a_variant_says_is_checked(tmp_path: Path, change: dict[str, object], message: str) -> None:
    """The fields of a saved variant are checked; unknown or invalid ones are refused."""
    files = models.files_of(compiled("hist").with_layer_norm())
    content = json.loads(files[models.MODEL])
    content["variant"] |= change
    _write(tmp_path, {**files, models.MODEL: json.dumps(content).encode()})
    with pytest.raises(tracr.FormatError, match=message):
        load_compiled(tmp_path)


@pytest.mark.parametrize("name", ["variant.write", "variant.read"])
def test_a_basis_must_be_there(tmp_path: Path, name: str) -> None:
    """And be of the right shape."""
    files = models.files_of(compiled("hist").with_layer_norm())
    tables = safetensors.numpy.load(files[models.TABLES])
    for broken in (None, tables[name][:-1], tables[name].astype(np.float32)):
        given = {key: array for key, array in tables.items() if key != name}
        given = given if broken is None else {**given, name: np.ascontiguousarray(broken)}
        _write(tmp_path, {**files, models.TABLES: safetensors.numpy.save(given)})
        with pytest.raises(tracr.FormatError, match=r"variant\."):
            load_compiled(tmp_path)
    smaller = {"variant.write": np.eye(3), "variant.read": np.eye(3)}
    _write(tmp_path, {**files, models.TABLES: safetensors.numpy.save({**tables, **smaller})})
    with pytest.raises(tracr.FormatError, match="a basis of 3 labels"):
        load_compiled(tmp_path)


def _write(folder: Path, files: dict[str, bytes]) -> None:
    """The files, and a manifest that is right."""
    content = dict(files)
    manifest = json.loads(content[models.MANIFEST])
    for name in models.CONTENT:
        manifest["files"][name] = {"bytes": len(content[name]), "sha256": models._digest(content[name])}
    content[models.MANIFEST] = json.dumps(manifest).encode()
    for name, data in content.items():
        (folder / name).write_bytes(data)


# Together


def test_a_variant_says_what_was_done() -> None:
    """In the order in which it was."""
    model = tracr.compile(programs.make_hist(), "ab", 3).rotated(7).with_layer_norm().with_noise(1e-6)
    assert repr(model).endswith("level 1, rotated(seed=7), with_layer_norm(), with_noise(1e-06, seed=0))")
    assert repr(model.plain).endswith("level 1)")
    assert model.residual.labels == model.plain.residual.labels


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
