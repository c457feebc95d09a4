"""Rotated models, layer norms and GPT-2 checkpoints: accepted where the rules reach, never where they are wrong."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import tracr
from tests.agreement import load_compiled
from tests.certificate.gpt2_in_numpy import gpt2_logits
from tests.tiers import in_turn, slow, usual
from tracr.certificate.trials.mutants import SavedParts, mutant
from tracr.certificate.trials.trial import EveryInput, check_parts, parts_of, trials, wrong_inputs
from tracr.model.variants.layer_norm import LayerNorm
from tracr.rasp import programs, rasp
from tracr.rasp.programs import EXAMPLES
from tracr_check import Verdict, check_folder

HIST = tracr.compile(programs.make_hist(), "abc", 4)
NORMS = {"shift_by": 1, "hist": 2, "reverse": 1, "induction": 0, "frac_prevs": 2}


def library(name: str, level: int, length: int | None = None) -> tracr.CompiledModel:
    """A program of the library at its own size, or for shorter inputs."""
    example = EXAMPLES[name] if length is None else EXAMPLES[name].made_for(EXAMPLES[name].vocab, length)
    return tracr.compile(example.program, example.vocab, length or example.max_seq_len, level=level)


# Rotations


@pytest.mark.parametrize(("name", "level"), [("hist", 0), ("reverse", 1), ("detect_pattern", 2)])
def test_rotated_models_are_accepted(name: str, level: int) -> None:
    """At their own size."""
    certificate = library(name, level).rotated(seed=level).certify()
    assert certificate.accepted, certificate.headline
    assert "float32" in certificate.theorem


@pytest.mark.slow
@pytest.mark.parametrize(("name", "level"), in_turn(EXAMPLES, (0, 1, 2)))
def test_the_rotated_library_is_accepted(name: str, level: int) -> None:
    """Every program of the library at its own size."""
    assert library(name, level).rotated(seed=5).certify().accepted


@pytest.mark.parametrize("variant", ["rotated", "with_layer_norm"])
def test_variants_are_saved_with_their_certificates(variant: str, tmp_path: Path) -> None:
    """The folder is checked as it is, and a changed weight is refused."""
    getattr(HIST, variant)().save(tmp_path / "variant", certificate=True)
    loaded = load_compiled(tmp_path / "variant")
    assert check_folder(tmp_path / "variant").accepted
    assert loaded.certificate is not None
    assert loaded.certificate.accepted
    assert loaded.certify().accepted
    weights = {name: array.copy() for name, array in loaded.parameters.named()}
    weights["unembed.W_U"][:, 0] += 3.0
    assert not loaded.with_weights(weights).certify().accepted


def test_the_rotations_are_real() -> None:
    """The models that are accepted have dimensions that hold several labels."""
    rotated = library("sort", 1).rotated(seed=1)
    assert (np.count_nonzero(rotated.directions, axis=0) > 1).sum() > 20
    assert rotated.certify().accepted


def test_a_wrong_rotation_is_rejected(tmp_path: Path) -> None:
    """One that is not orthogonal by name; another orthogonal one because nothing can be proved with it."""
    parts = parts_of(HIST.rotated(seed=1))
    assert check_parts(parts, tmp_path).accepted
    for change, reason in ((_nudged, "not orthogonal"), (_swapped, ".")):
        write = parts.tables["variant.write"].copy()
        change(write)
        verdict = check_parts(replace(parts, tables={**parts.tables, "variant.write": write}), tmp_path)
        assert not verdict.accepted
        assert reason in verdict.reason or reason == "."


def _nudged(write: np.ndarray) -> None:
    write[0, 0] += 2.0**-10


def _swapped(write: np.ndarray) -> None:
    write[[0, 7]] = write[[7, 0]]


# Layer norms


@pytest.mark.parametrize(("name", "level"), NORMS.items())
def test_layer_norms_are_accepted(name: str, level: int) -> None:
    """The verdict names what is assumed of a layer norm."""
    certificate = library(name, level).with_layer_norm().certify()
    assert certificate.accepted, certificate.headline
    assert any("layer norm" in one for one in certificate.assumptions)


@pytest.mark.parametrize(("epsilon", "reason"), [(2.0**41, "power of 4"), (2.0**20, "variance"), (1e-5, "power of 4")])
def test_a_wrong_epsilon_is_rejected(epsilon: float, reason: str, tmp_path: Path) -> None:
    """A small epsilon lets the norm divide by the size of the stream."""
    parts = parts_of(HIST.with_layer_norm())
    model = {**parts.model, "variant": {**parts.model["variant"], "epsilon": epsilon}}
    verdict = check_parts(replace(parts, model=model), tmp_path)
    assert not verdict.accepted
    assert reason in verdict.reason


def test_norms_without_their_anchor_are_rejected(tmp_path: Path) -> None:
    """Without the balance the mean is large; without the anchor readers see it."""
    parts = parts_of(HIST.with_layer_norm())
    weights = {name: array.copy() for name, array in parts.weights.items()}
    weights["embed.W_E"][:, -2] = 1000.0
    for name in ("W_Q", "W_K"):
        weights[f"blocks.0.attn.{name}"][:, -1] = 0.0
    assert not check_parts(replace(parts, weights=weights), tmp_path).accepted


def test_noise_and_rotated_norms_are_refused() -> None:
    """There are no rules for them, and the verdict says so, or that no proof was found."""
    assert "no rules for noise" in HIST.with_noise(1e-6).certify().reason
    assert not HIST.with_layer_norm().rotated(seed=1).certify().accepted
    assert "no rules for layer norms in bfloat16" in HIST.with_layer_norm().certify("bfloat16").reason


@pytest.mark.parametrize("name", ["hist", "reverse", *slow(["shuffle_dyck"])])
@pytest.mark.parametrize("arithmetic", ["float32", "float64"])
def test_epsilon_is_large_enough(name: str, arithmetic: str) -> None:
    """For sums of 53 bits, and for what the checker knows of PAD; one that is smaller is refused."""
    normed = library(name, 2).with_layer_norm()
    assert normed.certify(arithmetic).accepted
    small = replace(normed, changes=replace(normed.variant, layer_norm=LayerNorm(2.0**20)))
    assert "variance" in small.certify(arithmetic).reason


# Mutants of both


VARIANTS: dict[str, Callable[[tracr.CompiledModel], Any]] = {
    "rotated": lambda model: model.rotated(seed=3),
    "with_layer_norm": lambda model: model.with_layer_norm(),
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", ["hist", pytest.param("reverse", marks=pytest.mark.slow)])
def test_no_harmful_mutant_of_a_variant_is_accepted(variant: str, name: str, tmp_path: Path) -> None:
    """Weights and hints, against runs on every input with the layer norms."""
    parts = parts_of(VARIANTS[variant](library(name, 1, 3)))
    found = [one for kind in ("weight", "weights", "hints") for one in trials(parts, 8, (7,), tmp_path, kind)]
    assert not [(one.mutant.what, one.wrong) for one in found if one.unsound]
    assert any(one.wrong for one in found)
    assert any(one.verdict.accepted for one in found)


def test_wrong_norms_are_seen_by_the_trials() -> None:
    """A norm with a small epsilon changes answers, so the trials above run the norms."""
    parts = parts_of(HIST.with_layer_norm())
    assert not wrong_inputs(parts, EveryInput(parts))
    model = {**parts.model, "variant": {**parts.model["variant"], "epsilon": 2.0**-20}}
    small = SavedParts(parts.weights, parts.tables, model, parts.hints)
    assert wrong_inputs(small, EveryInput(small))


# GPT-2


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of the program that counts equal tokens."""
    folder = tmp_path_factory.mktemp("gpt2") / "hist"
    HIST.save_pretrained(folder)
    return folder


def altered(folder: Path, to: Path, change: Callable[[dict[str, np.ndarray], dict[str, Any]], None]) -> Verdict:
    """The verdict on a checkpoint after a change of its tensors and configuration."""
    for path in folder.rglob("*"):
        if path.is_file():
            target = to / path.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    tensors = {name: array.copy() for name, array in safetensors.numpy.load_file(to / "model.safetensors").items()}
    config = json.loads((to / "config.json").read_text())
    change(tensors, config)
    (to / "model.safetensors").write_bytes(safetensors.numpy.save(tensors))
    (to / "config.json").write_text(json.dumps(config))
    return check_folder(to)


def test_a_checkpoint_is_accepted(checkpoint: Path, tmp_path: Path) -> None:
    """The tensors of the GPT-2, not those of the saved model; the card shows the verdict."""
    verdict = check_folder(checkpoint)
    assert verdict.accepted, verdict.reason
    assert "model.safetensors" in verdict.sha256
    assert "word with the largest logit" in verdict.theorem
    assert altered(checkpoint, tmp_path, lambda tensors, config: None).accepted
    card = (checkpoint / "README.md").read_text(encoding="utf-8")
    assert "on the tensors of this GPT-2, layer norms included: **ACCEPTED in float32" in card


def _set(name: str, place: Any, value: float) -> Callable[[dict[str, np.ndarray], dict[str, Any]], None]:
    def change(tensors: dict[str, np.ndarray], config: dict[str, Any]) -> None:
        tensors[name][place] = value

    return change


def _configured(**changes: Any) -> Callable[[dict[str, np.ndarray], dict[str, Any]], None]:
    return lambda tensors, config: config.update(changes)


NEEDLES = {
    "a gain": (_set("transformer.h.0.ln_1.weight", 3, 2.0**20 * 1.0001), "gain"),
    "the gain of the last norm": (_set("transformer.ln_f.weight", 0, 1.0), "gain"),
    "a bias": (_set("transformer.h.0.ln_2.bias", 3, 0.01), "bias"),
    "the bias of the last norm": (_set("transformer.ln_f.bias", 0, 0.5), "bias"),
    "a token's embedding": (_set("transformer.wte.weight", (0, 1), 0.4), ""),
    "the balance": (_set("transformer.wte.weight", (0, 11), 5000.0), ""),
    "an anchor": (_set("transformer.h.0.mlp.c_fc.weight", (12, 0), 3e6), ""),
    "a word's row": (_set("lm_head.weight", (6, 5), 40.0), ""),
    "epsilon": (_configured(layer_norm_epsilon=1e-5), "epsilon"),
    "a gelu": (_configured(activation_function="gelu_new"), "activation_function"),
    "tied words": (_configured(tie_word_embeddings=True), "tie_word_embeddings"),
    "scores by layer": (_configured(scale_attn_by_inverse_layer_idx=True), "scale_attn_by_inverse"),
    "scores not scaled": (_configured(scale_attn_weights=False), "scale_attn_weights"),
    "heads": (_configured(n_head=4), ""),
    "sixteen bits": (_configured(torch_dtype="bfloat16"), "float32"),
    "a quantisation": (_configured(quantization_config={"bits": 4}), "quantization_config"),
}


@pytest.mark.parametrize("name", NEEDLES)
def test_altered_checkpoints_are_rejected(name: str, checkpoint: Path, tmp_path: Path) -> None:
    """Gains, biases, epsilon, weights and the configuration."""
    change, reason = NEEDLES[name]
    verdict = altered(checkpoint, tmp_path, change)
    assert not verdict.accepted
    assert reason in verdict.reason


def test_exchanged_words_are_rejected(checkpoint: Path, tmp_path: Path) -> None:
    """The words of two outputs, or of two tokens."""
    altered(checkpoint, tmp_path, lambda tensors, config: None)
    path = tmp_path / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    vocab = content["model"]["vocab"]
    for one, other in (("1", "2"), ("a", "b")):
        changed = {**vocab, one: vocab[other], other: vocab[one]}
        path.write_text(json.dumps({**content, "model": {**content["model"], "vocab": changed}}), encoding="utf-8")
        assert not check_folder(tmp_path).accepted


def test_a_tokenizer_that_decodes_ids_to_other_words_is_rejected(checkpoint: Path, tmp_path: Path) -> None:
    """Words that are added over others, replaced when decoded, or changed before they are looked up."""
    assert altered(checkpoint, tmp_path, lambda tensors, config: None).accepted
    path = tmp_path / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    vocab = content["model"]["vocab"]
    over = {**content["added_tokens"][0], "id": vocab["1"], "content": "2"}
    swap = {"type": "Replace", "pattern": {"String": "1"}, "content": "2"}
    for key, changed in (
        ("added_tokens", [*content["added_tokens"], over]),
        ("decoder", {"type": "Sequence", "decoders": [swap, *content["decoder"]["decoders"]]}),
        ("normalizer", {"type": "Lowercase"}),
        ("more", {}),
    ):
        path.write_text(json.dumps({**content, key: changed}), encoding="utf-8")
        assert key in check_folder(tmp_path).reason


LOADERS: dict[str, dict[str, Any]] = {
    "fast_tokenizer_files": {"fast_tokenizer_files": ["tokenizer.4.0.0.json"]},
    "added_tokens_decoder": {"added_tokens_decoder": {"0": {"content": "b"}}},
    "tokenizer_class": {"tokenizer_class": "BertTokenizer"},
    "bos_token": {"bos_token": "a"},
}


@pytest.mark.parametrize("key", LOADERS)
def test_another_tokenizer_than_that_of_its_file_is_rejected(key: str, checkpoint: Path, tmp_path: Path) -> None:
    """`tokenizer_config.json` may name another file, class or words, and transformers would use these."""
    altered(checkpoint, tmp_path, lambda tensors, config: None)
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | LOADERS[key]))
    assert key in check_folder(tmp_path).reason


def test_a_checkpoint_that_transformers_has_saved_again_is_accepted(checkpoint: Path, tmp_path: Path) -> None:
    """It writes other names for the same tokenizer, and more settings."""
    transformers = pytest.importorskip("transformers")
    altered(checkpoint, tmp_path, lambda tensors, config: None)
    transformers.AutoTokenizer.from_pretrained(checkpoint).save_pretrained(tmp_path)
    transformers.AutoModelForCausalLM.from_pretrained(checkpoint).save_pretrained(tmp_path)
    verdict = check_folder(tmp_path)
    assert verdict.accepted, verdict.reason


@pytest.mark.parametrize("name", ["model.json", "adapter_config.json", "added_tokens.json", "special_tokens_map.json"])
def test_a_checkpoint_beside_other_files_is_rejected(name: str, checkpoint: Path, tmp_path: Path) -> None:
    """A saved model that would be checked instead, other weights to add, other words."""
    altered(checkpoint, tmp_path, lambda tensors, config: None)
    (tmp_path / name).write_text("{}")
    assert f"a checkpoint and {name} are in one folder" in check_folder(tmp_path).reason


def test_a_checkpoint_runs_in_float32(checkpoint: Path) -> None:
    """transformers loads it in the format of its configuration, whatever the hints say."""
    assert "runs in float32" in check_folder(checkpoint, "float64").reason
    assert check_folder(checkpoint, "float32-leak").accepted


def test_special_words_inside_a_token_are_rejected(tmp_path: Path) -> None:
    """A tokenizer finds PAD inside `a-b`. `save_pretrained` gives PAD another word; with `a` the model is rejected."""
    transformers = pytest.importorskip("transformers")
    model = tracr.compile(rasp.tokens.named("same"), ["pad-b", "a-b", "-b"], 3)
    model.save_pretrained(tmp_path / "own")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "own")
    assert tokenizer("pad-b a-b -b").input_ids == [3, 0, 1, 2]
    assert check_folder(tmp_path / "own").accepted
    for name in ("tokenizer.json", "tokenizer_config.json"):
        path = tmp_path / "own" / name
        path.write_text(path.read_text(encoding="utf-8").replace(tokenizer.pad_token, "a"), encoding="utf-8")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "own")
    assert tokenizer("a-b").input_ids == [3, 4, 2]
    assert "is split off" in check_folder(tmp_path / "own").reason


def test_numbers_that_a_layer_norm_loses_are_rejected(tmp_path: Path) -> None:
    """Divided by the root of epsilon they are below the smallest number, and two tokens look alike."""
    tracr.compile(rasp.tokens.named("same"), "ab", 3).save_pretrained(tmp_path / "own")
    small, epsilon = 2.0**-100, 2.0**98

    def change(tensors: dict[str, np.ndarray], config: dict[str, Any]) -> None:
        config["layer_norm_epsilon"] = epsilon
        for name, tensor in tensors.items():
            if ".ln_" in name and name.endswith("weight"):
                tensor[:] = np.sqrt(epsilon)
        embed, unembed = tensors["transformer.wte.weight"], tensors["lm_head.weight"]
        embed[:], unembed[:], tensors["transformer.ln_f.bias"][:] = 0.0, 0.0, 0.0
        for token, number in enumerate((1.5, 2.0)):  # a value, a constant and the balance
            embed[token, :3] = np.array([number, 7.0, -number - 7.0]) * small
        unembed[0, [1, 3]], unembed[1, [0, 3]] = np.array([0.25, -0.25]) * 2.0**99, np.array([1.0, -1.0]) * 2.0**99

    assert "largest logit" in altered(tmp_path / "own", tmp_path / "small", change).reason


def test_extra_and_missing_tensors_are_rejected(checkpoint: Path, tmp_path: Path) -> None:
    """A tensor that no rule covers, and one that is not there."""
    extra = altered(checkpoint, tmp_path, lambda tensors, _: tensors.update({"more.weight": np.ones(2, np.float32)}))
    assert "no rule covers" in extra.reason
    assert not altered(checkpoint, tmp_path, lambda tensors, _: tensors.pop("lm_head.weight")).accepted  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["hist", *slow(["shift_by", "reverse", "frac_prevs", "induction"])])
def test_no_harmful_mutant_of_a_checkpoint_is_accepted(name: str, tmp_path: Path) -> None:
    """Tensors of the GPT-2, norms included, against runs on every input."""
    model = library(name, 1, 3)
    model.save_pretrained(tmp_path / "gpt2")
    inputs = EveryInput(parts_of(model))
    config = json.loads((tmp_path / "gpt2" / "config.json").read_text())
    vocab = json.loads((tmp_path / "gpt2" / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    words = np.array([vocab[str(value)] for value in model.outputs[0].domain.values])  # type: ignore[union-attr]

    def wrong(tensors: Mapping[str, np.ndarray]) -> int:
        found = 0
        for ids, length, (expected,) in inputs.batches:
            logits = gpt2_logits(tensors, config, ids, inputs.causal)[:, 1 : length + 1]
            right = np.isfinite(logits).all(-1) & (logits.argmax(-1) == words[expected])
            found += int((~right).any(1).sum())
        return found

    given = safetensors.numpy.load_file(tmp_path / "gpt2" / "model.safetensors")
    assert wrong(given) == 0
    rng, seen = np.random.default_rng(9), Counter[tuple[bool, bool]]()
    for number in range(usual(24, long=200)):
        one = mutant(SavedParts(given, {}, {}, {}), rng, "weights" if number % 3 == 0 else "weight")
        tensors = {key: array.astype(np.float32) for key, array in one.parts.weights.items()}
        (tmp_path / "gpt2" / "model.safetensors").write_bytes(safetensors.numpy.save(tensors))
        with np.errstate(all="ignore"):
            harmful = wrong(tensors) > 0
        accepted = check_folder(tmp_path / "gpt2").accepted
        assert not (harmful and accepted), one.what
        seen[harmful, accepted] += 1
    assert seen[True, False] >= 1
    assert seen[False, True] >= seen[False, False] / 2


def test_layer_norms_of_torch_do_what_is_assumed() -> None:
    """x - m rounded once, for a mean within (D + 8) units of the largest number; nothing else is rounded."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    for size in (13, 20, 64, 257):
        x = np.where(rng.random((200, size)) < 0.5, 0, rng.random((200, size)) * 2.0 ** rng.integers(0, 6, (200, 1)))
        x = x.astype(np.float32)
        x[:, -1], x[:, -2] = 0, -x[:, :-2].sum(1)
        gain = torch.full((size,), 2.0**40)
        y = torch.nn.functional.layer_norm(torch.tensor(x), (size,), gain, 0 * gain, 2.0**80).numpy()
        mean = -y[:, -1:]
        assert np.array_equal(y, x - mean)
        off = np.abs(mean[:, 0].astype(float) - x.astype(float).mean(1))
        assert (off <= (size + 8) * 2.0**-24 * np.abs(x).max(1)).all()
