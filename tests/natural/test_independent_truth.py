"""The committed twins, judged by a transformer in plain torch that shares no code with tracr.

The weights come from the safetensors file. The layer norms, the attention, the neurons and the patches of edges are
written again here, and the needed edges are listed by hand from what each program says.
"""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch")
safetensors_torch = pytest.importorskip("safetensors.torch")

TWINS = Path(__file__).parents[2] / "docs" / "natural" / "twins"
PAIRS = 192
Tensor = Any


class Known(NamedTuple):
    """A program: its number of tokens, its longest input, its mask, and the edges whose patches change its answers."""

    tokens: int
    longest: int
    causal: bool
    numerical: bool
    needed: set[str]


HEAD, MLP = "blocks.0.attn.0", "blocks.0.mlp"
COUNTED = {f"{HEAD}->{MLP}", f"{MLP}->unembed"}
KNOWN = {
    # which keys are counted depends on both tokens
    "hist": Known(4, 5, False, False, {f"embed->{HEAD}.q", f"embed->{HEAD}.k", *COUNTED}),
    "hist_so_far": Known(3, 6, True, False, {f"embed->{HEAD}.q", f"embed->{HEAD}.k", *COUNTED}),
    # every query counts the same token
    "count": Known(3, 5, False, False, {f"embed->{HEAD}.k", *COUNTED}),
    # every query attends to all keys, or to the key before: only the copied values differ between inputs of one length
    "mean_so_far": Known(4, 5, True, True, {f"embed->{HEAD}.v", f"{HEAD}->unembed"}),
    "shift_by": Known(3, 5, False, False, {f"embed->{HEAD}.v", f"{HEAD}->unembed"}),
}


class PlainTransformer:
    """A pre-norm transformer that can show one reader another value of one writer's output."""

    def __init__(self, folder: Path, causal: bool) -> None:
        self.sizes = json.loads((folder / "twin.json").read_text())["architecture"]
        loaded = safetensors_torch.load_file(folder / "twin.safetensors")
        self.weights = {name: tensor.double() for name, tensor in loaded.items()}
        self.heads = self.sizes["width"] // self.sizes["d_head"]
        self.causal = causal

    def edges(self) -> list[str]:
        """All pairs of a writer and a later reader."""
        found, writers = [], ["embed"]
        for layer in range(self.sizes["layers"]):
            names = [f"blocks.{layer}.attn.{head}" for head in range(self.heads)]
            found += [f"{writer}->{name}.{part}" for writer in writers for name in names for part in "qkv"]
            writers += names
            found += [f"{writer}->blocks.{layer}.mlp" for writer in writers]
            writers.append(f"blocks.{layer}.mlp")
        return [*found, *(f"{writer}->unembed" for writer in writers)]

    def run(self, ids: Tensor, patch: tuple[str, Tensor] | None = None) -> tuple[Tensor, dict[str, Tensor]]:
        """Logits, and what each writer writes; with `patch`, the reader of an edge sees another output."""
        w, length = self.weights, ids.shape[1]
        wrote = {"embed": w["embed.W_E"][ids] + w["pos_embed.W_pos"][:length]}
        biases = torch.zeros(self.sizes["width"], dtype=torch.float64)

        def read(reader: str) -> Tensor:
            stream = sum(wrote.values()) + biases
            if patch is not None and patch[0].split("->")[1] == reader:
                stream = stream - wrote[patch[0].split("->")[0]] + patch[1]
            centred = stream - stream.mean(-1, keepdim=True)
            return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()

        for layer in range(self.sizes["layers"]):
            attn, mlp = f"blocks.{layer}.attn", f"blocks.{layer}.mlp"
            fresh = {}
            for head in range(self.heads):
                q, k, v = (
                    read(f"{attn}.{head}.{part}") @ w[f"{attn}.W_{part.upper()}"][head]
                    + w[f"{attn}.b_{part.upper()}"][head]
                    for part in "qkv"
                )
                scores = q @ k.transpose(1, 2)
                if self.causal:
                    scores = scores + torch.full((length, length), -math.inf, dtype=torch.float64).triu(1)
                fresh[f"{attn}.{head}"] = scores.softmax(-1) @ v @ w[f"{attn}.W_O"][head]
            wrote |= fresh
            biases = biases + w[f"{attn}.b_O"]
            inner = read(mlp) @ w[f"{mlp}.W_in"] + w[f"{mlp}.b_in"]
            wrote[mlp] = inner * (1 + torch.erf(inner / math.sqrt(2))) / 2 @ w[f"{mlp}.W_out"]
            biases = biases + w[f"{mlp}.b_out"]
        return read("unembed") @ w["unembed.W_U"], wrote


def shares(model: PlainTransformer, known: Known) -> dict[str, float]:
    """For each edge, the share of pairs of one length in which patching it changes an answer."""
    rng = torch.Generator().manual_seed(5)
    changed = dict.fromkeys(model.edges(), 0)
    lengths = range(2, known.longest + 1)
    for length in lengths:
        ids = torch.randint(known.tokens, (2, PAIRS, length), generator=rng)
        bos = torch.full((2, PAIRS, 1), known.tokens)
        base, source = torch.cat([bos, ids], dim=2)
        logits, _ = model.run(base)
        _, other = model.run(source)
        for edge in changed:
            patched, _ = model.run(base, (edge, other[edge.split("->")[0]]))
            if known.numerical:
                moved = (patched - logits).abs()[:, 1:, 0] > 0.04 * (known.tokens - 1)
            else:
                moved = (patched.argmax(-1) != logits.argmax(-1))[:, 1:]
            changed[edge] += int(moved.any(1).sum())
    return {edge: count / (PAIRS * len(lengths)) for edge, count in changed.items()}


@pytest.mark.parametrize("name", KNOWN)
def test_needed_edges_are_separate_from_all_others(name: str) -> None:
    """Every needed edge changes answers in more pairs than any other edge does; the others change hardly any."""
    known = KNOWN[name]
    model = PlainTransformer(TWINS / name, known.causal)
    found = shares(model, known)
    needed = {edge: found.pop(edge) for edge in known.needed}
    assert min(needed.values()) > 0.04, needed
    assert max(found.values()) < 0.01, found
    assert len(found) > 8


def test_the_list_has_all_twins() -> None:
    """A new folder needs a line above."""
    assert set(KNOWN) == {folder.name for folder in TWINS.iterdir()}


def test_another_mechanism_is_seen() -> None:
    """With the values of two heads exchanged, edges of the wrong head are needed: the test can fail."""
    known = KNOWN["hist"]
    model = PlainTransformer(TWINS / "hist", known.causal)
    for name, tensor in model.weights.items():
        if ".attn." in name and len(tensor) == model.heads:
            model.weights[name] = tensor.flip(0)
    found = shares(model, known)
    assert found[f"embed->{HEAD}.q"] < 0.01
    assert found[f"embed->blocks.0.attn.{model.heads - 1}.q"] > 0.04
