"""Hosts without known answers: transformers trained plainly on tasks, and which of their components parts explain.

    python benchmarks/plain_hosts.py [-o docs/replacing/plain.json] [--tasks hist sort] [--seeds 1] [--steps 2000]
    python benchmarks/plain_hosts.py --tasks add_mod_113 --steps 40000 --device cuda      # needs a GPU

A host is a standard pre-norm transformer (GELU, layer norms without gain) that was trained on a task's answers only.
For every head and MLP whose mean ablation costs at least 5 points of accuracy, a row has the part of the library (and
of the task's own compiled model) that `explain` puts first, its report, and whether the replacement is more accurate
than the host. Modular addition is trained on 30 % of the pairs with weight decay, past its generalisation; parts and
reports use all pairs. Rows that the file already has are kept.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

import tracr
from tracr import graft, zoo
from tracr.graft.controls import ablations_of
from tracr.graft.replacing import workbench
from tracr.rasp import rasp

COSTS, SHARE = 0.05, 0.75
WEIGHT_DECAY = 1.0  # of modular addition: without it the host learns its examples by heart


class HostTask(NamedTuple):
    """A task: a compiled model that has the tokens and the right answers, the inputs, and the sizes of a host."""

    model: Any
    inputs: list[Any]
    layers: int
    trained: float = 1.0
    decay: float = 1e-3


def task_of(name: str) -> HostTask:
    """A program of the zoo, or addition modulo a prime."""
    if name.startswith("add_mod_"):
        return modular(int(name.removeprefix("add_mod_")))
    sizes: dict[str, tuple[Any, int, int]] = {
        "hist": ("abcd", 5, 1),
        "sort": (range(4), 5, 2),
        "induction_head": ("abcd", 7, 2),
        "depth": ("()a", 6, 2),
        "dyck1": ("()a", 6, 2),
    }
    vocab, length, layers = sizes[name]
    model = zoo.load(name, vocab=vocab, max_seq_len=length)
    return HostTask(model, graft.inputs_of(model, 4_000), layers)


def modular(prime: int) -> HostTask:
    """a b = -> (a + b) mod p at the last position: two heads copy, a table adds."""
    at = {place: rasp.Select(rasp.indices, rasp.Full(place), rasp.Comparison.EQ) for place in (0, 1)}
    first, second = (rasp.Aggregate(at[place], rasp.tokens, default=0).named(f"term{place}") for place in (0, 1))

    def added(one: Any, other: Any) -> Any:
        return (one + other) % prime if isinstance(one, int) and isinstance(other, int) else 0

    program = rasp.SequenceMap(added, first, second).named("sum")
    model = tracr.compile(program, [*range(prime), "="], 3)
    inputs = [(one, other, "=") for one in range(prime) for other in range(prime)]
    return HostTask(model, inputs, 1, 0.3, WEIGHT_DECAY)


class PlainBlock(nn.Module):  # type: ignore[misc]
    """Attention and an MLP, with TransformerLens's hook points."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.attn, self.mlp = nn.Module(), nn.Module()
        self.attn.qkv, self.attn.o = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.attn.hook_z = nn.Identity()
        self.mlp.into, self.mlp.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.ln1, self.ln2 = (nn.LayerNorm(width, elementwise_affine=False) for _ in range(2))
        for name in ("resid_pre", "attn_out", "resid_mid", "mlp_out", "resid_post"):
            self.add_module(f"hook_{name}", nn.Identity())

    def forward(self, stream: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """The stream after the block; `seen` [batch, 1, query, key]."""
        stream = self.hook_resid_pre(stream)
        batch, length, width = stream.shape
        q, k, v = self.attn.qkv(self.ln1(stream)).reshape(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])).masked_fill(~seen, -torch.inf)
        z = self.attn.hook_z((scores.softmax(dim=-1) @ v).transpose(1, 2))
        stream = self.hook_resid_mid(stream + self.hook_attn_out(self.attn.o(z.reshape(batch, length, width))))
        neurons = nn.functional.gelu(self.mlp.into(self.ln2(stream)))
        found: torch.Tensor = self.hook_resid_post(stream + self.hook_mlp_out(self.mlp.out(neurons)))
        return found


class PlainHost(nn.Module):  # type: ignore[misc]
    """A transformer from ids to logits; no head sees padding."""

    def __init__(self, task: HostTask, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        vocabulary, options = task.model.vocabulary, task.model.options
        self.cfg = SimpleNamespace(n_heads=heads, normalization_type="LNPre")
        self.pad = vocabulary.pad_id
        self.embed = nn.Embedding(self.pad + 1, width)
        self.pos_embed = nn.Parameter(torch.randn(options.max_seq_len + 1, width) * 0.02)
        self.blocks = nn.ModuleList(PlainBlock(width, heads, options.causal) for _ in range(task.layers))
        self.ln_final = nn.LayerNorm(width, elementwise_affine=False)
        self.unembed = nn.Linear(width, task.model.parameters.W_U.shape[1], bias=False)
        self.causal = options.causal

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits [batch, position, d_vocab_out]."""
        seen = (ids != self.pad)[:, None, None, :].expand(-1, 1, ids.shape[1], -1)
        seen = seen.tril() if self.causal else seen
        stream = self.embed(ids) + self.pos_embed[: ids.shape[1]]
        for block in self.blocks:
            stream = block(stream, seen)
        found: torch.Tensor = self.unembed(self.ln_final(stream))
        return found


def trained(task: HostTask, seed: int, steps: int, device: str) -> tuple[PlainHost, float]:
    """A host trained on the answers, and its accuracy on all inputs."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    data = graft.data_of_program(task.model, task.inputs)
    host = PlainHost(task).to(device)
    training = torch.optim.AdamW(host.parameters(), lr=1e-3, weight_decay=task.decay, betas=(0.9, 0.98))
    chosen = rng.permutation(len(data))[: max(1, round(task.trained * len(data)))]
    for _step in range(steps):
        batch = data.rows(rng.choice(chosen, size=min(512, len(chosen)), replace=False), cut=False)
        loss = batch.losses(host(torch.as_tensor(batch.ids, device=device))).sum() / batch.scored.sum()
        training.zero_grad()
        loss.backward()
        training.step()
    host.requires_grad_(False)
    right = [
        batch.score(host(torch.as_tensor(batch.ids, device=device)).cpu().numpy())[0].sum()
        for batch in (data.rows(np.arange(at, min(at + 512, len(data))), cut=False) for at in range(0, len(data), 512))
    ]
    return host.eval(), float(sum(right) / data.scored.sum())


def rows_of(name: str, seed: int, given: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each component of a host."""
    task = task_of(name)
    began = time.time()
    host, accuracy = trained(task, seed, given.steps, given.device)
    about = {"task": name, "seed": seed, "steps": given.steps, "accuracy": round(accuracy, 4)}
    print(f"{name} {seed}: accuracy {accuracy:.4f} after {time.time() - began:.0f} s", flush=True)
    options = task.model.options
    own = graft.parts_of(task.model, f"{name} (own)")
    library = (
        [] if name.startswith("add_mod") else graft.library(options.vocab, options.max_seq_len, causal=options.causal)
    )
    heads = host.cfg.n_heads
    places = [[f"blocks.{layer}.attn.{head}" for head in range(heads)] for layer in range(task.layers)]
    every = [place for layer in range(task.layers) for place in (*places[layer], f"blocks.{layer}.mlp")]
    inputs = task.inputs[:4_000]
    data = graft.data_of_program(task.model, inputs)
    return [{**about, "at": at, **explained(host, at, [*own, *library], data)} for at in every]


def explained(host: PlainHost, at: str, parts: list[Any], data: Any) -> dict[str, Any]:
    """What the best part recovers at a component that matters."""
    bench = workbench(host, at, data, share=SHARE, seed=0)

    def rights(logits: Any) -> float:
        return float(bench.test.score(logits)[0].sum() / bench.test.scored.sum())

    cost = rights(bench.test_record.logits) - rights(ablations_of(bench, np.random.default_rng(0))["mean"])
    found: dict[str, Any] = {"cost": round(cost, 4)}
    if cost < COSTS:
        return found
    best = graft.explain(host, at, parts, data, share=SHARE).best
    report = graft.replace(host, at, best.part, data, share=SHARE).report()
    share = None if report.recovered is None else report.recovered.to_dict()
    raises = report.line("replaced").accuracy - report.line("host").accuracy
    print(f"  {at}: costs {cost:.3f}; {best.part.title} recovers {report.recovered}; {report.verdict}", flush=True)
    return {
        **found,
        "part": best.part.title,
        "does": best.part.sentence,
        "recovered": share,
        "counts": report.counts,
        "verdict": report.verdict,
        "raises": round(raises, 4),
        "reads": report.reads,
    }


def main() -> None:
    """Train the hosts that are missing, and explain them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, default=Path("docs/replacing/plain.json"))
    parser.add_argument("--tasks", nargs="+", default=["hist", "sort", "induction_head", "depth"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--steps", type=int, default=2_000)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = json.loads(given.out.read_text()) if given.out.exists() else []
    done = {(row["task"], row["seed"]) for row in rows}
    for name in given.tasks:
        for seed in range(given.seeds):
            if (name, seed) in done:
                continue
            rows += rows_of(name, seed, given)
            given.out.parent.mkdir(parents=True, exist_ok=True)
            aside = given.out.with_suffix(".tmp")
            aside.write_text(json.dumps(rows, indent=1) + "\n")
            aside.replace(given.out)


if __name__ == "__main__":
    main()
