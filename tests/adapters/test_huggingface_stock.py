"""Checkpoints in stock transformers, in a process whose environment has no tracr (`make slow` builds it)."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tests.agreement import all_inputs, some_inputs
from tests.library import masks
from tests.tiers import in_turn
from tracr.adapters.huggingface.head import MARGIN, head_of
from tracr.rasp import programs, rasp
from tracr.rasp.programs import EXAMPLES
from tracr.runtime.table_interpreter import evaluate_batch

pytestmark = pytest.mark.slow

PYTHON = Path(os.environ.get("TRACR_BARE_PYTHON", Path(__file__).parents[2] / ".venv-bare" / "bin" / "python"))
MACHINE = Path(__file__).with_name("bare_machine.py")
MOST = 400  # inputs of one model


def on_the_bare_machine(jobs: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """What a process without tracr finds."""
    if not PYTHON.exists():
        pytest.skip("no environment with transformers and without tracr: `make slow` builds one")
    file = folder / "jobs.json"
    file.write_text(json.dumps(jobs))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [PYTHON, MACHINE, file], capture_output=True, encoding="utf-8", cwd=folder, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def inputs_for(model: tracr.DesignedModel) -> list[list[rasp.Value]]:
    """All inputs if they are few, else the short ones and random ones of all lengths."""
    vocab, longest = model.options.vocab, model.options.max_seq_len
    if sum(len(vocab) ** n for n in range(1, longest + 1)) <= MOST:
        return all_inputs(vocab, longest)
    short = all_inputs(vocab, 2)
    return short + some_inputs(vocab, longest, max(100, MOST - len(short)))


def job_of(model: tracr.DesignedModel, folder: Path, attention: str, **options: Any) -> dict[str, Any]:
    """Save a checkpoint, and write down what must come out of it."""
    model.save_pretrained(folder, **options)
    normed = model if model.norm else model.with_layer_norm()
    head = head_of(normed, model.outputs[0], options.get("numbers", "auto"))
    inputs = inputs_for(model)
    evaluation = evaluate_batch(model.program, inputs)
    (values,) = evaluation.outputs().values()
    kept = np.flatnonzero(~evaluation.errors).tolist()
    word = {(type(value), value): number for value, number in head.decoded}

    def number(value: Any) -> int:
        """The id of a value's word; the interpreter may give an equal value of another type."""
        return next(n for (kind, v), n in word.items() if v == value and (v is None) == (value is None))

    ids, _, real = model.vocabulary.encode(inputs)
    logits = model.logits(ids)
    one_hot = np.zeros((len(inputs), ids.shape[1], len(head.words.words)))
    if head.kind == "one-hot":
        one_hot[..., [n for _, n in head.decoded]] = MARGIN * logits
    column = head.words.words.index("<number>") if head.kind == "column" else None
    return {
        "folder": str(folder),
        "attention": attention,
        "causal": model.options.causal,
        "mask": attention == "sdpa",
        "column": column,
        "none": head.words.words.index("None") if column is not None and "None" in head.words.words else None,
        "inputs": [" ".join(head.words.words[n] for n in ids[row, 1 : real[row] + 1]) for row in kept],
        "expected": [values[row] if column is not None else [number(value) for value in values[row]] for row in kept],
        "logits": [one_hot[row, 1 : real[row] + 1].tolist() if head.kind == "one-hot" else None for row in kept],
    }


def library(causal: bool, level: int = 1) -> dict[str, tracr.CompiledModel]:
    """The programs of the library that compile so."""
    found = {}
    for name, example in EXAMPLES.items():
        if causal in masks(name):
            found[name] = tracr.compile(example.program, example.vocab, example.max_seq_len, causal, level)
    return found


@pytest.mark.parametrize("causal", [True, False])
def test_the_library(tmp_path: Path, causal: bool) -> None:
    """0 wrong outputs in float32, padded and not, with any activation; logits as the numpy model's, times 32."""
    models, ways = library(causal), [("relu", "sdpa"), ("gelu", "sdpa"), ("gelu_new", "eager")]
    jobs = {
        f"{name} {activation}": job_of(models[name], tmp_path / activation / name, attention, activation=activation)
        for name, (activation, attention) in in_turn(models, ways)
    }
    results = dict(zip(jobs, on_the_bare_machine(list(jobs.values()), tmp_path), strict=True))
    assert len(results) >= 15
    for name, found in results.items():
        assert found["class"] == "GPT2LMHeadModel"
        assert found["wrong"] == 0, (name, found["examples"])
        assert found["positions"] > 50
        assert found["off"] <= 1e-5 * MARGIN, name


def test_eager_attention_and_no_mask_for_padding(tmp_path: Path) -> None:
    """Nothing depends on how attention is computed, nor on the mask that the tokenizer makes for PAD."""
    models = library(True, level=0)
    jobs = [job_of(model, tmp_path / name, "eager") for name, model in models.items()]
    for name, found in zip(models, on_the_bare_machine(jobs, tmp_path), strict=True):
        assert found["wrong"] == 0, (name, found["examples"])


def test_variants_and_numbers(tmp_path: Path) -> None:
    """Rotated and noisy models; numbers as a column, `None` among them; numbers that are far apart or large."""
    frac, balance = EXAMPLES["frac_prevs"], EXAMPLES["pair_balance"]
    maybe = rasp.Aggregate(
        rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LT), rasp.numerical(rasp.tokens)
    ).named("mean_before")
    large = rasp.numerical(rasp.Map(lambda x: 1000 * x + 7, rasp.tokens)).named("large")
    base = tracr.compile(frac.program, frac.vocab, 5, causal=True)
    jobs = [
        job_of(base.rotated(1), tmp_path / "rotated", "sdpa"),
        job_of(base.with_noise(), tmp_path / "noisy", "sdpa", numbers="classes"),
        job_of(base, tmp_path / "column", "sdpa", numbers="column"),
        job_of(tracr.compile(maybe, (1, 2, 4), 4, causal=True), tmp_path / "none", "sdpa", numbers="column"),
        job_of(tracr.compile(maybe, (1, 2, 4), 4), tmp_path / "none_classes", "eager", numbers="classes"),
        job_of(tracr.compile(large, (-1, 0, 3), 4), tmp_path / "large", "sdpa", numbers="classes"),
        job_of(tracr.compile(balance.program, balance.vocab, 12, causal=True), tmp_path / "balance", "sdpa"),
        job_of(tracr.compile(rasp.tokens, ("1", 1, "a b", "", "bosom"), 3), tmp_path / "words", "sdpa"),
    ]
    for job, found in zip(jobs, on_the_bare_machine(jobs, tmp_path), strict=True):
        assert found["wrong"] == 0, (job["folder"], found["examples"])


def test_the_examples_in_model_cards(tmp_path: Path) -> None:
    """Copied from the card they run, and print the program's output."""
    frac = EXAMPLES["frac_prevs"]
    jobs = [
        job_of(tracr.compile(programs.make_induction(), "ab", 4, causal=True), tmp_path / "causal", "sdpa"),
        job_of(tracr.compile(programs.make_reverse(rasp.tokens), "abc", 4), tmp_path / "reverse", "sdpa"),
        job_of(tracr.compile(frac.program, "abcx", 4), tmp_path / "column", "sdpa", numbers="column"),
    ]
    causal, reverse, column = (
        found["card"] for found in on_the_bare_machine([{**job, "card": True} for job in jobs], tmp_path)
    )
    assert causal == "['None', 'None', 'b', 'a']\nbos a b a b a\n"
    assert reverse == "['a', 'c', 'b', 'a']\n"
    assert column == "[0.0, 0.0, 0.0, 0.25]\n"


def test_generate(tmp_path: Path) -> None:
    """Induction continues a repetition, the counter counts, the closer closes; sampling gives the same."""
    models = {
        "induction": tracr.compile(programs.make_induction(), "abcd", 12, causal=True),
        "counter": tracr.compile(programs.make_counter(9), range(10), 10, causal=True),
        "closer": tracr.compile(programs.make_closer(["()", "{}"]), "(){}", 8, causal=True),
    }
    prompts = {
        "induction": ["a b c a", "d c b a d", "a b"],
        "counter": ["0 1", "2 4", "9 6", "3"],
        "closer": ["( { (", "{ } (", "( )"],
    }
    jobs = []
    for name, model in models.items():
        job = job_of(model, tmp_path / name, "sdpa")
        job["generate"] = [(prompts[name], options) for options in ({}, {"do_sample": True}, {"use_cache": False})]
        jobs.append(job)
    for name, found in zip(models, on_the_bare_machine(jobs, tmp_path), strict=True):
        assert found["wrong"] == 0, (name, found["examples"])
        greedy, sampled, uncached = found["generated"]
        assert greedy == sampled == uncached
        assert [tuple(text.split()) for text in greedy] == [tuple(text.split()) for text in GENERATED[name]]


GENERATED = {
    "induction": ["a b c a b c a b c a b c", "d c b a d c b a d c b a d", "a b None"],  # up to the longest input
    "counter": ["0 1 2 3 4 5 6 7 8 9 None", "2 4 6 8 None", "9 6 3 0 None", "3 4 5 6 7 8 9 None"],
    "closer": ["( { ( ) } ) None", "{ } ( ) None", "( ) None"],
}
