"""GPT-2 checkpoints: tensors, configuration, words, tokenizer and the files beside them."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import tracr
from tests.certificate.gpt2_in_numpy import gpt2_logits
from tests.certificate.test_check_variants import HIST, library
from tests.tiers import slow, usual
from tracr.certificate.trials.mutants import SavedParts, mutant
from tracr.certificate.trials.trial import EveryInput, parts_of
from tracr.rasp import rasp
from tracr.saving.models import files_of
from tracr_check import Verdict, check_folder
from tracr_check.gpt2 import word_ids
from tracr_check.variables import SOp
from tracr_check.verdict import Rejected


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


def _to_float64(tensors: dict[str, np.ndarray], config: dict[str, Any]) -> None:
    """transformers runs these in float64 if the configuration names no format."""
    del config["torch_dtype"]
    tensors.update({name: array.astype(np.float64) for name, array in tensors.items()})


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
    "another class": (_configured(architectures=["GPT2ForSequenceClassification"]), "architectures"),
    "float64": (_to_float64, "not in float32"),
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
    "model_input_names": {"model_input_names": ["input_ids", "token_type_ids", "attention_mask"]},
    "fast_tokenizer_files": {"fast_tokenizer_files": ["tokenizer.4.0.0.json"]},
    "added_tokens_decoder": {"added_tokens_decoder": {"0": {"content": "b"}}},
    "tokenizer_class": {"tokenizer_class": "BertTokenizer"},
    "bos_token": {"bos_token": "a"},
}


@pytest.mark.parametrize("key", LOADERS)
def test_another_tokenizer_than_that_of_its_file_is_rejected(key: str, checkpoint: Path, tmp_path: Path) -> None:
    """`tokenizer_config.json` may name another file, class or words, and transformers would use these.

    For token types GPT-2 adds rows of the embedding. They are given unless the names of the inputs leave them out.
    """
    altered(checkpoint, tmp_path, lambda tensors, config: None)
    path = tmp_path / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps(settings | LOADERS[key]))
    assert key in check_folder(tmp_path).reason
    path.write_text(json.dumps({name: value for name, value in settings.items() if name != key}))
    assert check_folder(tmp_path).accepted == (key not in ("model_input_names", "tokenizer_class"))


def test_a_checkpoint_that_transformers_has_saved_again_is_accepted(checkpoint: Path, tmp_path: Path) -> None:
    """It writes other names for the same tokenizer, and more settings."""
    transformers = pytest.importorskip("transformers")
    altered(checkpoint, tmp_path, lambda tensors, config: None)
    transformers.AutoTokenizer.from_pretrained(checkpoint).save_pretrained(tmp_path)
    transformers.AutoModelForCausalLM.from_pretrained(checkpoint).save_pretrained(tmp_path)
    verdict = check_folder(tmp_path)
    assert verdict.accepted, verdict.reason


OTHERS = ["model.json", "adapter_config.json", "added_tokens.json", "special_tokens_map.json", "tokenizer.model"]


@pytest.mark.parametrize("name", OTHERS)
def test_a_checkpoint_beside_other_files_is_rejected(name: str, checkpoint: Path, tmp_path: Path) -> None:
    """A saved model that would be checked instead, other weights to add, other words."""
    altered(checkpoint, tmp_path, lambda tensors, config: None)
    (tmp_path / name).write_text("{}")
    assert f"the model and {name!r} are in one folder" in check_folder(tmp_path).reason


def test_a_checkpoint_with_another_model_inside_is_rejected(checkpoint: Path, tmp_path: Path) -> None:
    """`tracr.load` reads the weights in the folder `tracr` if the GPT-2 is as it was saved."""
    altered(checkpoint, tmp_path, lambda tensors, config: None)
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((checkpoint / name).read_bytes())  # byte for byte, as `tracr.json` says
    weights = {name: array.copy() for name, array in HIST.parameters.named()}
    weights["unembed.W_U"][:, :2] = weights["unembed.W_U"][:, 1::-1]
    files = files_of(HIST.with_weights(weights))
    hints = json.loads((tmp_path / "tracr" / "certificate.json").read_text())
    hints["sha256"] = {name: hashlib.sha256(files[name]).hexdigest() for name in hints["sha256"]}
    for name, data in {**files, "certificate.json": json.dumps(hints).encode()}.items():
        (tmp_path / "tracr" / name).write_bytes(data)
    (tmp_path / "tracr" / "verdict.json").unlink()
    verdict = check_folder(tmp_path)
    assert not verdict.accepted
    assert "largest logit" in verdict.reason
    (tmp_path / "tracr" / "certificate.json").unlink()
    assert tracr.load(tmp_path)("aab") != HIST("aab")


def test_the_theorem_names_the_output_of_the_checkpoint(tmp_path: Path) -> None:
    """One of several; what is assumed of a program is listed once, for both models."""
    equal = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)
    both = {"hist": rasp.SelectorWidth(equal).named("hist"), "same": rasp.tokens.named("same")}
    tracr.compile(both, "ab", 3).save_pretrained(tmp_path / "own", output="same")
    verdict = check_folder(tmp_path / "own")
    assert verdict.accepted, verdict.reason
    assert "The only output here is 'same'" in verdict.theorem
    assert len(set(verdict.assumptions)) == len(verdict.assumptions)


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


def test_words_of_many_values_are_found_in_time() -> None:
    """A value without a word of its own has that of the nearest value, if they count as one."""
    values = (None, "x", *(number / 7 for number in range(100_000)), 3 / 7 + 1e-10, True)
    vocab = {"x": 0, "bos": 1, "pad": 2, "None": 3} | {repr(number / 7): 4 + number for number in range(100_000)}
    start = time.process_time()
    found = word_ids(vocab, ["x"], SOp(0, "x", {"kind": "tokens"}, values))
    assert time.process_time() - start < 10
    assert found.tolist() == [3, 0, *range(4, 100_004), 4 + 3, vocab["1.0"]]
    for bad in (3 / 7 + 1e-5, "bos", "y"):
        with pytest.raises(Rejected, match="no word"):
            word_ids(vocab, ["x"], SOp(0, "x", {"kind": "tokens"}, (*values, bad)))


def test_the_kernel_that_scales_queries_and_keys_apart_is_excluded(checkpoint: Path) -> None:
    """Two keys with equal scores, and d_head = 4: torch's MATH does not give them equal weights."""
    torch = pytest.importorskip("torch")
    attention = pytest.importorskip("torch.nn.attention")
    queries = torch.tensor([211.0, 97.0, 5.0, 3.0]).expand(1, 1, 2, 4)
    keys = torch.tensor([[150.0, -271.0, 99.0, 1.0], [150.0 + 97.0, -271.0 - 211.0, 99.0, 1.0]])[None, None]
    values = torch.eye(2, 4)[None, None]
    with attention.sdpa_kernel(attention.SDPBackend.MATH):
        found = torch.nn.functional.scaled_dot_product_attention(queries, keys, values)
    assert float((found[0, 0, 0, :2] - 0.5).abs().max()) > 1e-6
    assert any("kernel MATH" in one for one in check_folder(checkpoint).assumptions)
