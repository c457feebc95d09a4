"""Trains hosts without known answers: standard transformers on the answers of tasks, full batch, with AdamW.

    python benchmarks/plain_training.py FOLDER [--tasks sort add_mod_113] [--seeds 0 1 2] [--steps 4000] [--device cuda]

The hosts of a task are trained together, one for each seed, as one computation with an axis for the seeds: each has its
own first weights, its own inputs and its own gradient. Each is written to FOLDER/TASK-SEED: `STAGE.safetensors`,
rounded to float16, and `training.json` (the inputs it was trained on, the curves). 20 % of a task's inputs are held
out; of modular addition, 70 % of the pairs. Modular addition has weight decay 1, a ReLU and no layer norm, and trains
until 5,000 steps after its held-out accuracy reached 99.9 %; the stages "half" and "most" are its weights when that
accuracy first passed 50 % and 90 %. A host whose folder is complete is skipped.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

import tracr
from tracr import graft, zoo
from tracr.rasp import rasp

Weights = dict[str, torch.Tensor]
EVERY, AFTER, REACHED = 100, 5_000, 0.999
STAGES = {"half": 0.5, "most": 0.9}


class HostTask(NamedTuple):
    """A task: a compiled model that has the tokens and the right answers, the inputs, and the sizes of a host."""

    model: Any
    inputs: list[Any]
    layers: int
    trained: float = 0.8
    decay: float = 0.01
    width: int = 64
    norm: bool = True
    steps: int = 4_000


SIZES: dict[str, tuple[Any, int, int]] = {
    "hist": ("abcd", 5, 1),
    "sort": (range(4), 5, 2),
    "induction_head": ("abcd", 7, 2),
    "depth": ("()a", 6, 2),
    "dyck1": ("()a", 6, 2),
}


def task_of(name: str) -> HostTask:
    """A program of the zoo, or addition modulo a prime."""
    if name.startswith("add_mod_"):
        return modular(int(name.removeprefix("add_mod_")))
    vocab, length, layers = SIZES[name]
    model = zoo.load(name, vocab=vocab, max_seq_len=length)
    return HostTask(model, graft.inputs_of(model, 4_000), layers)


def modular(prime: int) -> HostTask:
    """a b = -> (a + b) mod p at the last position: compiled, two heads copy and a table adds."""
    at = {place: rasp.Select(rasp.indices, rasp.Full(place), rasp.Comparison.EQ) for place in (0, 1)}
    first, second = (rasp.Aggregate(at[place], rasp.tokens, default=0).named(f"term{place}") for place in (0, 1))

    def added(one: Any, other: Any) -> Any:
        return (one + other) % prime if isinstance(one, int) and isinstance(other, int) else 0

    program = rasp.SequenceMap(added, first, second).named("sum")
    model = tracr.compile(program, [*range(prime), "="], 3)
    inputs = [(one, other, "=") for one in range(prime) for other in range(prime)]
    return HostTask(model, inputs, 1, 0.3, 1.0, 128, False, 40_000)


def data_of(task: HostTask) -> Any:
    """The inputs with answers; of modular addition only the answer at the last position counts."""
    data = graft.data_of_program(task.model, task.inputs)
    if task.norm:
        return data
    last = np.zeros_like(data.scored)
    last[:, -1] = True
    answers = tuple(
        graft.data.HostAnswers(one.start, one.stop, one.wanted, one.scored & last, one.output) for one in data.answers
    )
    return graft.GraftData(data.inputs, data.ids, data.start, data.pad, answers, data.longest)


def sample_of(data: Any, most: int) -> Any:
    """All data, or a random sample of so many inputs.

    The generator is not the one that `graft` divides inputs with (seed 0): the division would undo the permutation, and
    the last inputs, which are the longest, would be those to test with.
    """
    if len(data) <= most:
        return data
    return data.rows(np.random.default_rng([0, 1]).permutation(len(data))[:most])


class PlainBlock(nn.Module):  # type: ignore[misc]
    """Attention and an MLP, with TransformerLens's hook points."""

    def __init__(self, task: HostTask, heads: int) -> None:
        super().__init__()
        width = task.width
        self.heads = heads
        self.attn, self.mlp = nn.Module(), nn.Module()
        self.attn.qkv, self.attn.o = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.attn.hook_z = nn.Identity()
        self.mlp.into, self.mlp.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.ln1, self.ln2 = (norm_of(task) for _ in range(2))
        self.act = nn.GELU() if task.norm else nn.ReLU()
        for name in ("resid_pre", "attn_out", "resid_mid", "mlp_out", "resid_post"):
            self.add_module(f"hook_{name}", nn.Identity())

    def forward(self, stream: torch.Tensor, seen: torch.Tensor, *, last: bool = False) -> torch.Tensor:
        """The stream after the block, at all positions or at the last one; `seen` [batch, 1, query, key]."""
        stream = self.hook_resid_pre(stream)
        batch, length, width = stream.shape
        q, k, v = self.attn.qkv(self.ln1(stream)).reshape(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])).masked_fill(~seen, -torch.inf)
        z = self.attn.hook_z((scores.softmax(dim=-1) @ v).transpose(1, 2)).reshape(batch, length, width)
        if last:
            stream, z = stream[:, -1:], z[:, -1:]
        stream = self.hook_resid_mid(stream + self.hook_attn_out(self.attn.o(z)))
        neurons = self.act(self.mlp.into(self.ln2(stream)))
        found: torch.Tensor = self.hook_resid_post(stream + self.hook_mlp_out(self.mlp.out(neurons)))
        return found


def norm_of(task: HostTask) -> nn.Module:
    """A layer norm without gain and bias, or nothing."""
    return nn.LayerNorm(task.width, elementwise_affine=False) if task.norm else nn.Identity()


class PlainHost(nn.Module):  # type: ignore[misc]
    """A transformer from ids to logits; no head sees padding."""

    def __init__(self, task: HostTask, heads: int = 4) -> None:
        super().__init__()
        vocabulary, options, width = task.model.vocabulary, task.model.options, task.width
        self.cfg = SimpleNamespace(n_heads=heads, normalization_type="LNPre" if task.norm else None)
        self.pad = vocabulary.pad_id
        self.embed = nn.Embedding(self.pad + 1, width)
        nn.init.normal_(self.embed.weight, std=1 / math.sqrt(width))
        self.pos_embed = nn.Parameter(torch.randn(options.max_seq_len + 1, width) / math.sqrt(width))
        self.blocks = nn.ModuleList(PlainBlock(task, heads) for _ in range(task.layers))
        self.ln_final = norm_of(task)
        self.unembed = nn.Linear(width, task.model.parameters.W_U.shape[1], bias=False)
        self.causal = options.causal

    def forward(self, ids: torch.Tensor, *, last: bool = False) -> torch.Tensor:
        """Logits [batch, position, d_vocab_out], at all positions or at the last one."""
        seen = (ids != self.pad)[:, None, None, :].expand(-1, 1, ids.shape[1], -1)
        seen = seen.tril() if self.causal else seen
        stream = self.embed(ids) + self.pos_embed[: ids.shape[1]]
        for number, block in enumerate(self.blocks, 1):
            stream = block(stream, seen, last=last and number == len(self.blocks))
        found: torch.Tensor = self.unembed(self.ln_final(stream))
        return found


class Batch:
    """Inputs of all seeds on the device, and the losses and accuracies of their hosts; `last`: at the last position."""

    def __init__(self, data: list[Any], device: str, *, last: bool) -> None:
        self.data, self.last = data, last
        place = slice(-1, None) if last else slice(None)
        self.ids = torch.as_tensor(np.stack([one.ids for one in data]), device=device)
        self.scored = torch.as_tensor(np.stack([one.scored[:, place] for one in data]), device=device)
        every = [[one.wanted[:, place] for one in mine.answers] for mine in data]
        self.wanted = [torch.as_tensor(np.stack(one), device=device) for one in zip(*every, strict=True)]

    def losses(self, host: PlainHost, weights: Weights) -> torch.Tensor:
        """The mean loss of each seed over its scored tokens."""
        found: torch.Tensor = vmap(partial(self._loss, host))(weights, self.ids, self.scored, *self.wanted)
        return found

    def _loss(
        self, host: PlainHost, weights: Weights, ids: torch.Tensor, scored: torch.Tensor, *answers: torch.Tensor
    ) -> torch.Tensor:
        logits = functional_call(host, weights, (ids,), {"last": self.last})
        logits, total = logits if self.last else logits[:, self.data[0].start :], torch.zeros((), device=ids.device)
        for one, wanted in zip(self.data[0].answers, answers, strict=True):
            mine = logits[..., one.start : one.stop]
            if wanted.ndim == 2:
                logs = mine.double().log_softmax(dim=-1)
                losses = -logs.gather(-1, wanted.clamp(min=0)[..., None])[..., 0]
            else:
                losses = ((mine - wanted.to(mine)) ** 2).sum(dim=-1)
            total = total + (losses * scored).sum() / scored.sum()
        return total

    def measured(self, host: PlainHost, weights: Weights) -> list[tuple[float, float]]:
        """Loss and accuracy of each seed."""
        with torch.no_grad():
            losses = self.losses(host, weights).tolist()
            logits = [
                functional_call(host, {name: one[number] for name, one in weights.items()}, (self.ids[number],))
                for number in range(len(losses))
            ]
        rights = [
            one.score(mine.float().cpu().numpy())[0].sum() / one.scored.sum()
            for one, mine in zip(self.data, logits, strict=True)
        ]
        return [(loss, float(right)) for loss, right in zip(losses, rights, strict=True)]


class Training:
    """The hosts of all seeds, their optimiser, and the curves so far."""

    def __init__(self, hosts: list[PlainHost], batches: tuple[Batch, Batch], decay: float, *, graph: bool) -> None:
        self.host, self.batches = hosts[0], batches
        self.weights: Weights = stack_module_state(hosts)[0]
        self.curves: list[list[list[float]]] = [[] for _ in hosts]
        cuda = batches[0].ids.is_cuda
        given: dict[str, Any] = {"capturable": True, "foreach": True} if cuda else {}
        self.optimiser = torch.optim.AdamW(
            list(self.weights.values()), lr=1e-3, weight_decay=decay, betas=(0.9, 0.98), **given
        )
        self.replay = self._captured() if graph and cuda else self._step

    def _step(self) -> None:
        self.optimiser.zero_grad(set_to_none=True)
        self.batches[0].losses(self.host, self.weights).sum().backward()
        self.optimiser.step()

    def _captured(self) -> Any:
        """The step as a CUDA graph: many small kernels started together."""
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(3):
                self._step()
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        self.optimiser.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            self._step()
        return graph.replay

    def measure(self, step: int) -> list[float]:
        """Add to the curves; the held-out accuracies."""
        both = [one.measured(self.host, self.weights) for one in self.batches]
        for curve, trained, held in zip(self.curves, *both, strict=True):
            curve.append([step, *trained, *held])
        return [held[1] for held in both[1]]


def train(name: str, seeds: list[int], given: argparse.Namespace) -> None:
    """Train the hosts of a task that are missing and write them, stage by stage."""
    folders = {seed: given.folder / f"{name}-{seed}" for seed in seeds}
    seeds = [seed for seed in seeds if not (folders[seed] / "training.json").exists()]
    if not seeds:
        return
    task, began = task_of(name), time.time()
    data = data_of(task)
    orders = {seed: np.random.default_rng(seed).permutation(len(data)) for seed in seeds}
    middle = round(task.trained * len(data))
    sides = ([one[:middle] for one in orders.values()], [one[middle:] for one in orders.values()])
    batches = [
        Batch([data.rows(np.sort(one), cut=False) for one in side], given.device, last=not task.norm) for side in sides
    ]
    hosts = []
    for seed in seeds:
        folders[seed].mkdir(parents=True, exist_ok=True)
        torch.manual_seed(seed)
        hosts.append(PlainHost(task).to(given.device))
    training = Training(hosts, (batches[0], batches[1]), task.decay, graph=given.graph)
    runs = {
        seed: SeedRun(folders[seed], number, {} if task.norm else dict(STAGES), given.steps or task.steps)
        for number, seed in enumerate(seeds)
    }
    end = max(one.last for one in runs.values())
    for step in range(end + 1):
        if step % EVERY == 0 or step == end:
            training.measure(step)
            for seed in [seed for seed, run in runs.items() if run.finished(training, task, step)]:
                del runs[seed]
                about = {"task": name, "seed": seed, "steps": step, "seconds": round(time.time() - began, 1)}
                curve = training.curves[seeds.index(seed)]
                about |= {"together": len(seeds), "trained_on": np.sort(orders[seed][:middle]).tolist()}
                about["curves"] = [[float(f"{one:.6g}") for one in row] for row in curve]
                (folders[seed] / "training.json").write_text(json.dumps(about) + "\n")
            if step % (10 * EVERY) == 0:
                print(name, step, *(f"{curve[-1][4]:.4f}" for curve in training.curves), flush=True)
            if not runs:
                break
        training.replay()
    print(name, "done", step, *(f"{curve[-1][4]:.4f}" for curve in training.curves), flush=True)


@dataclass
class SeedRun:
    """The training of one seed: its folder, its number, the stages to come, its last step."""

    folder: Path
    number: int
    pending: dict[str, float]
    last: int

    def finished(self, training: Training, task: HostTask, step: int) -> bool:
        """Write the stages that are reached; whether the training is over."""
        curve = training.curves[self.number]
        for stage in [stage for stage, least in self.pending.items() if curve[-1][4] >= least]:
            del self.pending[stage]
            write(self.folder, stage, training.weights, self.number)
        if not task.norm and curve[-1][4] >= REACHED:
            self.last = min(self.last, next(int(row[0]) for row in curve if row[4] >= REACHED) + AFTER)
        if step >= self.last or step % (10 * EVERY) == 0:
            write(self.folder, "final", training.weights, self.number)
        return step >= self.last


def write(folder: Path, stage: str, weights: Weights, number: int) -> None:
    """The weights of a stage of one seed."""
    rounded = {name: one[number].detach().half().cpu().contiguous() for name, one in weights.items()}
    save_file(rounded, folder / f"{stage}.part")
    (folder / f"{stage}.part").replace(folder / f"{stage}.safetensors")


def load_host(folder: Path, stage: str = "final") -> tuple[HostTask, PlainHost]:
    """A host that was trained, and its task."""
    task = task_of(folder.name.rpartition("-")[0])
    host = PlainHost(task)
    host.load_state_dict(load_file(folder / f"{stage}.safetensors"))
    return task, host.requires_grad_(False).eval()


def main() -> None:
    """Train the hosts that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tasks", nargs="+", default=["sort", "hist", "induction_head", "depth", "dyck1"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=0, help="by default 4,000; 40,000 at most of modular addition")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--no-graph", dest="graph", action="store_false", help="without CUDA graphs")
    given = parser.parse_args()
    for name in given.tasks:
        train(name, given.seeds, given)


if __name__ == "__main__":
    main()
