"""Softened models pass gradients: edge attribution patching, and the parameters without gradient."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tracr
from tracr import natural
from tracr.rasp import programs

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.slow

jnp = jax.numpy
PAIRS = 64
Key = tuple[str, str, str]  # writer, reader, input of the reader
PROGRAMS = {"hist": programs.make_hist(), "count_less_freq": programs.EXAMPLES["count_less_freq"].program}
NEEDED: dict[str, set[Key]] = {
    "hist": {
        ("embed", "blocks.0.attn.0", "q"),
        ("embed", "blocks.0.attn.0", "k"),
        ("blocks.0.attn.0", "blocks.0.mlp", "in"),
        ("blocks.0.mlp", "unembed", "in"),
    }
}
NEEDED["count_less_freq"] = {
    *(NEEDED["hist"] - {("blocks.0.mlp", "unembed", "in")}),
    ("blocks.0.mlp", "blocks.1.attn.0", "k"),
    ("blocks.1.attn.0", "blocks.1.mlp", "in"),
    ("blocks.1.mlp", "unembed", "in"),
}


class Patching:
    """Edge attribution patching of a model with independent code: (corrupted - clean) times the reader's gradient."""

    def __init__(self, model: tracr.CompiledModel) -> None:
        self.model, self.weights = model, model.cast(np.float32)
        vocabulary, tokens = model.vocabulary, len(model.options.vocab)
        rows = np.array(list(itertools.product(range(tokens), repeat=model.options.max_seq_len)))
        chosen = rows[np.random.default_rng(0).permutation(len(rows))[: 2 * PAIRS]]
        ids = np.concatenate([np.full((2 * PAIRS, 1), vocabulary.bos_id), chosen], axis=1)
        self.clean, self.corrupted = ids[:PAIRS], ids[PAIRS:]
        self.codes = jnp.asarray(model.codes(self.clean)[0][:, 1:])

    def run(self, ids: Any, shifts: dict[tuple[str, str], Any]) -> tuple[Any, dict[str, Any]]:
        """The logits, and what each node writes; `shifts` are added to the inputs of readers."""
        weights = self.weights

        def seen(stream: Any, reader: str, into: str) -> Any:
            return stream + shifts[reader, into] if shifts else stream

        written = {"embed": weights.W_E[ids], "pos_embed": weights.W_pos[: ids.shape[1]][None]}
        stream = written["embed"] + written["pos_embed"]
        for number, layer in enumerate(weights.layers):
            for head in range(len(layer.W_Q)):
                name = f"blocks.{number}.attn.{head}"
                q, k, v = (
                    seen(stream, name, side.lower()) @ getattr(layer, f"W_{side}")[head]
                    + getattr(layer, f"b_{side}")[head]
                    for side in "QKV"
                )
                written[name] = jax.nn.softmax(q @ k.swapaxes(1, 2), axis=-1) @ v @ layer.W_O[head]
            stream = stream + sum(written[f"blocks.{number}.attn.{head}"] for head in range(len(layer.W_Q)))
            name = f"blocks.{number}.mlp"
            written[name] = jax.nn.relu(seen(stream, name, "in") @ layer.W_in + layer.b_in) @ layer.W_out
            stream = stream + written[name]
        return seen(stream, "unembed", "in") @ weights.W_U, written

    def loss(self, shifts: dict[tuple[str, str], Any]) -> Any:
        right = jax.nn.log_softmax(self.run(self.clean, shifts)[0][:, 1:])
        return -jnp.take_along_axis(right, self.codes[..., None], axis=-1).sum()

    def scores(self) -> dict[Key, float]:
        """The attribution of every edge of the ground truth."""
        edges = {(edge.source, edge.target, edge.input) for edge in self.model.ground_truth.edges("qkv")}
        shape = (PAIRS, self.clean.shape[1], self.model.d_model)
        readers = {(f"blocks.{n}.attn.0", side) for n in range(self.model.n_layers) for side in "qkv"}
        readers |= {(f"blocks.{n}.mlp", "in") for n in range(self.model.n_layers)} | {("unembed", "in")}
        slopes = jax.grad(self.loss)({reader: jnp.zeros(shape) for reader in readers})
        one, other = (self.run(ids, {})[1] for ids in (self.clean, self.corrupted))
        return {
            (writer, reader, into): float(
                np.abs(((other[writer] - one[writer]) * slopes[reader, into]).sum(axis=(1, 2))).mean()
            )
            for writer, reader, into in edges
        }


@pytest.mark.parametrize("name", PROGRAMS)
def test_edge_attribution(name: str) -> None:
    """At gap 256 every needed edge but the last has an attribution of exactly 0; in the softened model none has."""
    model = tracr.compile(PROGRAMS[name], "abcd", 5)
    hard, soft = (Patching(one).scores() for one in (model, natural.soften(model)))
    last = (f"blocks.{model.n_layers - 1}.mlp", "unembed", "in")
    assert {edge for edge, score in hard.items() if score} == {last}
    assert {edge for edge, score in soft.items() if score} == NEEDED[name]
    assert min(soft[edge] for edge in NEEDED[name]) > 0.1
    circuit = model.ground_truth.minimal(data=["abcda", "abcab", "aabbc", "ddcba", "aaaab", "dcbaa"])
    needed = {(edge.source, edge.target, edge.input) for edge in circuit.edges("qkv")}
    assert needed <= NEEDED[name]


@pytest.mark.parametrize("name", PROGRAMS)
def test_parameters_of_attention_get_gradients(name: str) -> None:
    """None of W_Q, W_K and W_V has a gradient in the compiled model; in the softened model a part of each has."""
    model = tracr.compile(PROGRAMS[name], "abcd", 5)
    before, after = (
        {one.name: one.share for one in natural.gradients(each).matrices} for each in (model, natural.soften(model))
    )
    for matrix in ("W_Q", "W_K", "W_V"):
        assert before[f"blocks.0.attn.{matrix}"] == 1
        assert after[f"blocks.0.attn.{matrix}"] < 1
