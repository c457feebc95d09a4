"""The committed twins as checkpoints, in a process with stock transformers and without tracr."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tracr
from tests.adapters.test_huggingface_stock import on_the_bare_machine
from tests.agreement import all_inputs
from tracr.natural.pretrained import twin_head
from tracr.natural.twin_model import TwinModel

pytestmark = pytest.mark.slow

FOLDERS = sorted((Path(__file__).parents[2] / "docs" / "natural" / "twins").iterdir())
LONGEST = 4


def job_of(twin: TwinModel, folder: Path) -> dict[str, Any]:
    """Save a checkpoint, and write down the twin's answers: words, or its own numbers."""
    twin.save_pretrained(folder)
    (output,) = twin.outputs
    head = twin_head(twin, output)
    inputs = [tokens for tokens in all_inputs(twin.teacher.options.vocab, LONGEST) if tokens]
    ids = twin.encode(inputs)
    logits = twin.logits(ids)
    lengths = (ids != twin.vocabulary.pad_id).sum(axis=1).tolist()
    numbers = [number for _, number in head.decoded]
    if head.kind == "column":
        expected = [logits[row, 1:length, output.start].tolist() for row, length in enumerate(lengths)]
    else:
        best = logits[..., output.start : output.stop].argmax(-1)
        expected = [[numbers[code] for code in best[row, 1:length]] for row, length in enumerate(lengths)]
    return {
        "folder": str(folder),
        "attention": "sdpa",
        "causal": twin.teacher.options.causal,
        "mask": False,  # twins learned to see no PAD themselves
        "column": head.words.words.index("<number>") if head.kind == "column" else None,
        "none": None,
        "inputs": [" ".join(head.words.words[n] for n in ids[row, 1:length]) for row, length in enumerate(lengths)],
        "expected": expected,
        "logits": [None] * len(inputs),
        "card": True,
    }


def test_answers_are_the_twins_own(tmp_path: Path) -> None:
    """Causal and bidirectional, padded and not; the example of the card runs, with the mask it shows."""
    twins = {folder.name: loaded for folder in FOLDERS if isinstance(loaded := tracr.load(folder), TwinModel)}
    assert len(twins) == len(FOLDERS)
    assert {twin.teacher.options.causal for twin in twins.values()} == {True, False}
    jobs = {name: job_of(twin, tmp_path / name) for name, twin in twins.items()}
    for name, found in zip(jobs, on_the_bare_machine(list(jobs.values()), tmp_path), strict=True):
        assert found["class"] == "GPT2LMHeadModel"
        assert found["wrong"] == 0, (name, found["examples"])
        assert found["positions"] > 100
        assert found["card"], name
        card = (tmp_path / name / "README.md").read_text(encoding="utf-8")
        assert ("attention_mask" in card) >= (not twins[name].teacher.options.causal)
        assert "It was admitted." in card
