"""Hosts of TransformerLens: hooked models, its bridge, and a Hugging Face GPT-2 through it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tracr

pytest.importorskip("torch")
pytest.importorskip("transformer_lens")

import torch

from tracr import graft

TWINS = Path(__file__).parents[2] / "docs" / "natural" / "twins"
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", ["hooked", "bridge"])
@pytest.mark.parametrize("at", ["blocks.0.attn.0", "blocks.0.mlp"])
def test_all_frameworks_give_the_same_graft(kind: str, at: str) -> None:
    """The same maps and the same logits in a module of TransformerLens as in our own."""
    twin: Any = tracr.load(TWINS / "hist")
    data = graft.data_of_program(twin.teacher, graft.inputs_of(twin.teacher, 300))
    part = graft.Part(twin.teacher, at)
    ours = graft.replace(twin.to_torch(), at, part, data)
    theirs = graft.replace(twin.to_transformer_lens(bridge=kind == "bridge"), at, part, data)
    ids = torch.as_tensor(data.ids[:50])
    assert theirs.sites.norm == "layer"
    assert torch.allclose(ours(ids), theirs(ids), atol=1e-2)


def test_a_gpt2_of_hugging_face_is_a_host(tmp_path: Path) -> None:
    """A GPT-2 checkpoint, read by TransformerLens alone: its head is replaced and counts."""
    transformers = pytest.importorskip("transformers")
    from transformer_lens.model_bridge import TransformerBridge

    twin: Any = tracr.load(TWINS / "hist_so_far")
    twin.save_pretrained(tmp_path / "gpt2")
    assert type(transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "gpt2")).__name__ == "GPT2LMHeadModel"
    host = TransformerBridge.boot_transformers(str(tmp_path / "gpt2"))
    inputs = graft.inputs_of(twin.teacher, 600)
    ids = twin.teacher.encode([list(one) for one in inputs])
    with torch.no_grad():
        words = host(torch.as_tensor(ids)).argmax(dim=-1)[:, 1:].numpy()  # a trained model's own answers
    answers = words.copy()
    for row, one in enumerate(inputs):
        answers[row, len(one) :] = -1
    data = graft.data_of_ids(inputs, ids, answers, start=1, pad=twin.teacher.vocabulary.pad_id)
    part = graft.Part(twin.teacher, "blocks.0.attn.0")
    report = graft.replace(host, "blocks.0.attn.0", part, data, refine=50).report()
    assert report.counts
    assert report.recovered is not None
    assert report.recovered.value > 0.98
