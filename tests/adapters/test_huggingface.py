"""GPT-2 checkpoints, as files: outputs (GPT-2 written in numpy), words, the card, reading back."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import tracr
from tests.adapters.gpt2_in_numpy import logits
from tests.agreement import load_compiled, same, some_inputs
from tests.library import masks
from tests.strategies import Case, cases
from tests.tally import compile_case, inputs_for, mostly_compared
from tests.tiers import mostly_slow, usual
from tracr.adapters.huggingface.gpt2 import sizes_of
from tracr.adapters.huggingface.head import head_of
from tracr.adapters.huggingface.tokens import Words
from tracr.cli import app
from tracr.ir.options import LEVELS
from tracr.rasp import programs, rasp
from tracr.rasp.programs import EXAMPLES
from tracr.runtime.table_interpreter import evaluate_batch
from tracr.runtime.vocabulary import Vocabulary


def compiled(name: str, **options: Any) -> tracr.CompiledModel:
    example = EXAMPLES[name]
    return tracr.compile(example.program, example.vocab, example.max_seq_len, **options)


def wrong_outputs(model: tracr.DesignedModel, folder: Path, inputs: list[Any], **options: Any) -> list[Any]:
    """The inputs, run in one padded batch, on which the checkpoint does not give the program's output."""
    normed = model if model.norm else model.with_layer_norm()
    normed.save_pretrained(folder, **options)
    head = head_of(normed, model.outputs[0], options.get("numbers", "auto"))
    evaluation = evaluate_batch(model.program, inputs)
    expected = evaluation.outputs()[model.outputs[0].name]
    ids, _, real = model.vocabulary.encode(inputs)
    found = logits(folder, ids)[:, 1:]
    values: dict[int, Any] = {}
    for value, number in head.decoded:
        values.setdefault(number, value)
    wrong = []
    for row, tokens in enumerate(inputs):
        got: list[Any]
        if head.kind == "column":
            got = found[row, : real[row], -1].tolist()
            for value, number in head.decoded:
                assert value is None
                got = [None if flag > 0.5 else n for n, flag in zip(got, found[row, :, number], strict=False)]
        else:
            got = [values[number] for number in found[row, : real[row]].argmax(axis=-1).tolist()]
        if not evaluation.errors[row] and not all(same(a, b, 1e-4) for a, b in zip(got, expected[row], strict=True)):
            wrong.append((tokens, got, expected[row]))
    return wrong


@pytest.mark.parametrize(("name", "activation"), mostly_slow(EXAMPLES, ["relu", "gelu_new"]))
def test_the_library(tmp_path: Path, name: str, activation: str) -> None:
    """Every program, causal where it can be: 0 wrong outputs in float32."""
    example = EXAMPLES[name]
    inputs = some_inputs(example.vocab, example.max_seq_len, 30)
    for causal in masks(name):
        model = compiled(name, causal=causal)
        assert wrong_outputs(model, tmp_path / str(causal), inputs, activation=activation) == []


DRAWN = given(case=cases(composite=True), level=st.sampled_from(LEVELS), numbers=st.sampled_from(("auto", "column")))
TO_ONE_FOLDER = [HealthCheck.function_scoped_fixture]


@pytest.mark.slow
@mostly_compared()
@settings(max_examples=30, deadline=None, suppress_health_check=TO_ONE_FOLDER)
@DRAWN
def test_random_programs(tmp_path: Path, case: Case, level: int, numbers: str) -> None:
    """Any program, categorical and numerical outputs, `None` included."""
    check(tmp_path, case, level, numbers)


@pytest.mark.slow
@mostly_compared()
@settings(max_examples=usual(100, long=200), deadline=None, suppress_health_check=TO_ONE_FOLDER)
@DRAWN
def test_many_random_programs(tmp_path: Path, case: Case, level: int, numbers: str) -> None:
    """The same for hundreds of them."""
    check(tmp_path, case, level, numbers)


def check(tmp_path: Path, case: Case, level: int, numbers: str) -> None:
    """The checkpoint gives the program's outputs."""
    model = compile_case(case, level=level)
    inputs = inputs_for(model, case, 12)
    assert wrong_outputs(model, tmp_path / "model", inputs, numbers=numbers, overwrite=True) == []


@pytest.mark.parametrize("name", ["hist", "frac_prevs", "reverse"])
def test_layer_norms_are_added_when_a_model_has_none(tmp_path: Path, name: str) -> None:
    """The checkpoint of a model is that of its variant with layer norms, which is what the other tests save."""
    compiled(name).save_pretrained(tmp_path / "plain")
    compiled(name).with_layer_norm().save_pretrained(tmp_path / "normed")
    files = [path for path in (tmp_path / "plain").iterdir() if path.is_file()]
    assert "model.safetensors" in {path.name for path in files}
    for path in files:
        assert path.read_bytes() == (tmp_path / "normed" / path.name).read_bytes(), path.name


# Words


def test_words_are_the_values() -> None:
    """Tokens first, with the model's ids, then BOS and PAD, then outputs that are no tokens."""
    words = Words.of(Vocabulary(("a", 1, True), "bos", "pad", 1, 3), ["a", None, 0.5, True, 1])
    assert words.words == ("a", "1", "True", "bos", "pad", "None", "0.5")
    assert [words.id_of(value) for value in ("a", 1, True, None, 0.5)] == [0, 1, 2, 5, 6]
    assert [words.is_input(number) for number in range(7)] == [True] * 3 + [False] * 4


def test_no_two_values_share_a_word_and_none_has_a_space() -> None:
    """Values that would look alike are told apart by their type, then by a number."""
    tokens = ("1", 1, "1:int", "a b", "a\tb", "", "None", ("a", 1))
    words = Words.of(Vocabulary(tokens, "bos", "pad", 1, 3), [None, 1.0, "bos"], ["<number>"]).words
    assert len(set(words)) == len(words) == len(tokens) + 2 + 3 + 1
    assert not any(re.search(r"\s", word) or not word for word in words)
    assert words[:5] == ("1", "1:int", "1:int:str", "a␣b", "a␣b:str")
    assert words[-2:] == ("bos:str", "<number>")


def test_a_tokenizer_that_splits_at_spaces(tmp_path: Path) -> None:
    """BOS in front, PAD behind, no word for what is unknown."""
    compiled("sort").save_pretrained(tmp_path / "sort")
    content = json.loads((tmp_path / "sort" / "tokenizer.json").read_text())
    assert content["model"]["vocab"] == {"1": 0, "2": 1, "3": 2, "4": 3, "bos": 4, "pad": 5, "None": 6}
    assert content["model"]["unk_token"] not in content["model"]["vocab"]
    assert content["pre_tokenizer"] == {"type": "WhitespaceSplit"}
    assert content["post_processor"]["single"][0]["SpecialToken"]["id"] == "bos"
    config = json.loads((tmp_path / "sort" / "tokenizer_config.json").read_text())
    assert (config["bos_token"], config["pad_token"], config["padding_side"]) == ("bos", "pad", "right")


# Numbers


def test_numbers_are_classes_where_they_can_be_told_apart(tmp_path: Path) -> None:
    """Up to some hundred fractions; beyond, or without a list of values, a column."""
    is_x = (rasp.tokens == "x").named("is_x")
    model = tracr.compile(programs.make_frac_prevs(is_x), "ax", 12)
    assert head_of(model, model.outputs[0], "auto").kind == "classes"
    assert head_of(model, model.outputs[0], "column").kind == "column"
    fine = tracr.compile(programs.make_frac_prevs(is_x), "ax", 30)
    assert head_of(fine, fine.outputs[0], "auto").kind == "column"
    with pytest.raises(tracr.CompileError, match=r"(?s)squares.*categorical"):
        fine.save_pretrained(tmp_path / "fine", numbers="classes")
    assert not (tmp_path / "fine").exists()
    assert wrong_outputs(model, tmp_path / "twelve", some_inputs("ax", 12, 60)) == []
    assert wrong_outputs(fine, tmp_path / "thirty", some_inputs("ax", 30, 60)) == []


def test_large_and_lonely_numbers(tmp_path: Path) -> None:
    """The margin is measured by the smallest gap, whatever the size; one value is always right."""
    for name, f in (("large", lambda x: 1000 * x + 7), ("far", lambda x: x + 1000), ("same", lambda x: 3.0)):
        program = rasp.numerical(rasp.Map(f, rasp.tokens)).named(name)
        model = tracr.compile(program, (-1, 0, 3), 3)
        assert wrong_outputs(model, tmp_path / name, some_inputs((-1, 0, 3), 3, 20), numbers="classes") == []


def test_a_token_called_like_the_column(tmp_path: Path) -> None:
    """Keeps its meaning."""
    program = rasp.numerical(rasp.tokens == "<number>").named("is_it")
    model = tracr.compile(program, ("<number>", "None"), 3)
    assert wrong_outputs(model, tmp_path / "it", some_inputs(("<number>", "None"), 3, 20), numbers="column") == []


# Sizes


@pytest.mark.parametrize("name", EXAMPLES)
def test_gpt2_is_hardly_wider_than_the_model(name: str) -> None:
    """d_head a power of 4 (so that its root is a power of 2), room for all heads, at most 25% wider than need be."""
    model = compiled(name).with_layer_norm()
    sizes = sizes_of(model)
    assert 4 ** round(np.log(sizes.d_head) / np.log(4)) == sizes.d_head
    assert sizes.heads >= max(layer.b_Q.shape[0] for layer in model.parameters.layers)
    assert sizes.d_head >= max(layer.b_Q.shape[1] for layer in model.parameters.layers)
    assert model.d_model + 1 <= sizes.d_model
    smallest = 4 ** int(np.ceil(np.log(max(layer.b_Q.shape[1] for layer in model.parameters.layers)) / np.log(4)))
    assert sizes.d_model <= 1.25 * max(sizes.heads, -(-(model.d_model + 1) // smallest)) * smallest


# The folder


def test_a_checkpoint_is_json_and_safetensors_and_comes_back(tmp_path: Path) -> None:
    """`tracr.load` gives the labelled model that was saved; the same model gives the same bytes."""
    model = compiled("hist2").rotated(3)
    model.save_pretrained(tmp_path / "a")
    loaded = load_compiled(tmp_path / "a")
    assert repr(loaded) == repr(model)
    assert loaded.residual == model.residual
    loaded.save_pretrained(tmp_path / "b")
    for path in sorted((tmp_path / "a").rglob("*")):
        assert path.is_dir() or path.suffix in (".json", ".safetensors", ".md")
        assert path.is_dir() or path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes()


def test_directions_in_hidden_states(tmp_path: Path) -> None:
    """`ground_truth.json` has a direction for each label, as wide as the residual stream of GPT-2."""
    compiled("reverse").save_pretrained(tmp_path / "reverse")
    truth = json.loads((tmp_path / "reverse" / "ground_truth.json").read_text())
    config = json.loads((tmp_path / "reverse" / "config.json").read_text())
    assert np.array(truth["directions"]).shape == (len(truth["dimensions"]), config["n_embd"])
    weights = safetensors.numpy.load_file(tmp_path / "reverse" / "model.safetensors")
    place = truth["dimensions"].index("tokens:b")
    assert np.allclose(weights["transformer.wte.weight"][1], truth["directions"][place])


@pytest.mark.parametrize("name", ["config.json", "tracr/weights.safetensors", "tracr.json"])
def test_a_damaged_checkpoint_is_not_taken_for_the_program(tmp_path: Path, name: str) -> None:
    """Files that were tampered with are refused; so are files that are gone."""
    folder = tmp_path / "hist"
    compiled("hist").save_pretrained(folder)
    data = bytearray((folder / name).read_bytes())
    data[-2] ^= 1
    (folder / name).write_bytes(data)
    with pytest.raises(tracr.FormatError, match=r"changed|JSON|missing|unknown"):
        load_compiled(folder)
    (folder / name).unlink()
    with pytest.raises(tracr.FormatError):
        load_compiled(folder)
    if not name.startswith("tracr"):
        assert load_compiled(folder / "tracr")("abca") == [2, 1, 1, 2]


def test_a_folder_is_replaced_only_if_it_is_ours(tmp_path: Path) -> None:
    """A checkpoint as it was written is; one with anything added, or trained further, and anything else is not."""
    folder = tmp_path / "model"
    compiled("hist").save_pretrained(folder)
    compiled("sort").save_pretrained(folder)
    assert repr(load_compiled(folder)) == repr(compiled("sort"))
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(tracr.FormatError, match="overwrite"):
        compiled("hist").save_pretrained(folder)
    with pytest.raises(tracr.FormatError, match="overwrite"):
        compiled("hist").save(folder)
    (folder / "notes.txt").unlink()
    (folder / "config.json").write_text("{}")
    with pytest.raises(tracr.FormatError, match="overwrite"):
        compiled("hist").save_pretrained(folder)
    compiled("hist").save_pretrained(folder, overwrite=True)
    assert repr(load_compiled(folder)) == repr(compiled("hist"))


def test_what_cannot_be_asked_for(tmp_path: Path) -> None:
    """The error says what can."""
    model = compiled("hist")
    with pytest.raises(tracr.TracrError, match=r"(?s)swish.*relu, gelu, gelu_new"):
        model.save_pretrained(tmp_path / "m", activation="swish")
    with pytest.raises(tracr.TracrError, match=r"(?s)words.*auto, classes, column"):
        model.save_pretrained(tmp_path / "m", numbers="words")  # type: ignore[arg-type]
    two = tracr.compile({"first": programs.make_hist(), "second": programs.make_length()}, "ab", 3)
    with pytest.raises(tracr.TracrError, match=r"(?s)2 outputs.*output=, one of first, second"):
        two.save_pretrained(tmp_path / "m")
    with pytest.raises(tracr.TracrError, match="no output 'third'"):
        two.save_pretrained(tmp_path / "m", output="third")
    assert not list(tmp_path.iterdir())
    two.save_pretrained(tmp_path / "m", output="second")
    found = logits(tmp_path / "m", two.vocabulary.encode(["aab"])[0])[0, 1:].argmax(axis=-1)
    assert json.loads((tmp_path / "m" / "tokenizer.json").read_text())["model"]["vocab"]["3"] in found
    assert load_compiled(tmp_path / "m")("aab") == {"first": [2, 2, 1], "second": [3, 3, 3]}


# The card


def card(folder: Path, model: tracr.DesignedModel, **options: Any) -> str:
    model.save_pretrained(folder, **options)
    return (folder / "README.md").read_text(encoding="utf-8")


def test_the_card_says_what_is_needed(tmp_path: Path) -> None:
    """The program, how to run it, words, dimensions, ground truth, and how exact it is."""
    text = card(tmp_path / "a", compiled("induction", causal=True))
    assert text.startswith("---\nlibrary_name: transformers\n")
    assert "induction = copy of tokens where follows" in text
    assert "| 5 | `None` | `None` |  | x |" in text
    assert "   0  tokens:a" in text
    assert re.search(
        r"blocks.\d.attn.0: Head 0 of layer \d writes induction: copies tokens from the positions so far", text
    )
    assert "epsilon is 2^80" in text
    assert "all 363 inputs compared, padded and unpadded: all agree" in text
    assert "model.generate(" in text
    assert "torch.zeros" not in text


def test_the_card_of_other_models(tmp_path: Path) -> None:
    """The mask of bidirectional programs, GELU's bound, noise, columns, a source text, awkward names."""
    assert "torch.zeros(1, 1, length, length)" in card(tmp_path / "a", compiled("reverse"))
    assert "0.1701 / 2^24" in card(tmp_path / "b", compiled("hist"), activation="gelu")
    noisy = card(tmp_path / "c", compiled("hist").rotated(1).with_noise(1e-6))
    assert "standard deviation 1e-06" in noisy
    assert "rotated(seed=1)" in noisy
    assert "logit of the word `<number>`" in card(tmp_path / "d", compiled("frac_prevs"), numbers="column")
    awkward = tracr.compile((rasp.tokens == "|").named("a `b`\n# c"), ["|", "`", "\n"], 2)
    text = card(tmp_path / "e", awkward)
    assert "# a 'b' # c" in text
    assert "| 0 | `\\|` | `'\\|'` | x |  |" in text


# The command line


def test_tracr_huggingface(tmp_path: Path) -> None:
    """Writes a checkpoint that `tracr` itself reads too."""
    folder = str(tmp_path / "counter")
    words = ["huggingface", "counter", "--causal", "--max-len", "4", "--activation", "gelu", "-o", folder]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0
    assert f"saved for transformers in {folder}" in done.output
    assert json.loads((tmp_path / "counter" / "config.json").read_text())["activation_function"] == "gelu"
    done = CliRunner().invoke(app, ["run", folder, "2", "4"], catch_exceptions=False)
    assert re.search(r"model +3 +6", done.output)


def test_the_residual_stream_of_a_variant_is_shown_by_its_labels(tmp_path: Path) -> None:
    """`tracr show` prints a rotated model as it prints the model."""
    model = compiled("frac_prevs")
    model.save(tmp_path / "a" / "model")
    model.rotated(1).with_layer_norm().save(tmp_path / "b" / "model")
    shown = [CliRunner().invoke(app, ["show", str(tmp_path / name / "model"), "x", "a"]).output for name in "ab"]
    assert shown[0] == shown[1]
    assert "is_x" in shown[0]
