"""Hosts of TransformerLens: hooked models, its bridge, and a Hugging Face GPT-2 through it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tracr.rasp import rasp

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
    assert theirs.sites.norm.kind == "layer"
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


def test_a_plainly_trained_gpt2_and_a_part_of_its_own() -> None:
    """A GPT-2 that learned a task of no program of the zoo: its heads are explained by a part that was written for it.

    The task: the token two before, or the first token if there is none. A part for the token before loses, and says so.
    """
    transformers = pytest.importorskip("transformers")
    from transformer_lens.model_bridge import TransformerBridge

    torch.manual_seed(1)
    rows = np.unique(np.random.default_rng(0).integers(0, 4, (900, 6)), axis=0)
    ids = np.concatenate([np.full((len(rows), 1), 4), rows], axis=1)
    answers = np.stack([rows[:, max(0, place - 2)] for place in range(6)], axis=1)
    sizes = {"vocab_size": 5, "n_positions": 7, "n_embd": 32, "n_layer": 1, "n_head": 2, "bos_token_id": 4}
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(**sizes, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, eos_token_id=4)
    )
    adam = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _step in range(350):
        some = torch.randint(0, len(rows), (128,))
        logits = model(torch.as_tensor(ids)[some]).logits[:, 1:]
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, 5), torch.as_tensor(answers)[some].reshape(-1))
        adam.zero_grad()
        loss.backward()
        adam.step()
    with tempfile.TemporaryDirectory() as folder:
        model.eval().save_pretrained(folder)
        host = TransformerBridge.boot_transformers(folder)
    heads = {back: graft.parts_of(looking_back(back), f"back {back}") for back in (1, 2)}
    parts = {back: next(one for one in found if one.kind == "head") for back, found in heads.items()}
    data = graft.data_of_ids([tuple("pqrs"[one] for one in row) for row in rows], ids, answers, start=1)
    right = graft.replace(host, "blocks.0.attn", parts[2], data, share=0.75).report(others=[parts[1]])
    assert right.counts
    assert right.recovered is not None
    assert right.recovered.value > 0.99
    wrong = graft.replace(host, "blocks.0.attn", parts[1], data, share=0.75).report()
    assert not wrong.counts
    ranking = graft.explain(host, "blocks.0.attn", [*heads[1], *heads[2]], data, share=0.75)
    assert ranking.best.part.title == parts[2].title


def looking_back(back: int) -> tracr.CompiledModel:
    """The token so many before, or the first token."""
    target = rasp.Map(lambda place: max(0, place - back), rasp.indices).named("target")
    program = rasp.Aggregate(rasp.Select(rasp.indices, target, rasp.Comparison.EQ), rasp.tokens, default="p")
    return tracr.compile(program.named(f"back {back}"), "pqrs", 6, causal=True)
