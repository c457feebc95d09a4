"""Ablated edges are invisible to their reader alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tracr
from tests.agreement import inputs_of
from tests.library import compiled
from tracr.ground_truth.ablations import Ablations
from tracr.ground_truth.data import Edge

Array = NDArray[Any]


def reference(model: tracr.DesignedModel, ablated: set[Edge], data: list[list[Any]], ablation: str) -> Array:
    """The logits with edges ablated, by a transformer of its own: every reader adds up what it is shown, in float64."""
    truth, weights = model.ground_truth, model.parameters
    ids, _, real = model.vocabulary.encode(data)
    nodes = truth.nodes()
    shown: dict[str, Array] = {}

    def run(cut: set[Edge], instead: dict[str, Array]) -> tuple[dict[str, Array], Array]:
        outputs: dict[str, Array] = {}

        def read(node: str, into: str) -> Array:
            total = sum(outputs.values())
            assert isinstance(total, np.ndarray)
            for edge in cut:
                if (edge.target, edge.input) == (node, into):
                    slots = list(edge.slots)
                    total[..., slots] += instead[edge.source][..., slots] - outputs[edge.source][..., slots]
            return total

        def head(node: Any, w: Any) -> Array:
            h = node.head
            q = read(node.id, "q") @ w.W_Q[h] + w.b_Q[h]
            k = read(node.id, "k") @ w.W_K[h] + w.b_K[h]
            v = read(node.id, "v") @ w.W_V[h] + w.b_V[h]
            scores = q @ k.transpose(0, 2, 1)
            pattern = np.exp(scores - scores.max(axis=-1, keepdims=True))
            return np.asarray(pattern / pattern.sum(axis=-1, keepdims=True) @ v @ w.W_O[h])

        pending: dict[str, Array] = {}
        stage: object = None
        for node in nodes:
            if (node.kind, node.layer) != stage:
                stage = (node.kind, node.layer)
                outputs.update(pending)
                pending = {}
            if node.id == "embed":
                pending[node.id] = weights.W_E[ids]
            elif node.id == "pos_embed":
                pending[node.id] = np.broadcast_to(weights.W_pos[: ids.shape[1]], (*ids.shape, model.d_model))
            elif node.kind == "head":
                assert node.layer is not None
                pending[node.id] = head(node, weights.layers[node.layer])
            elif node.kind == "neurons":
                assert node.layer is not None
                assert node.neurons is not None
                w, part = weights.layers[node.layer], slice(*node.neurons)
                hidden = np.maximum(read(node.id, "in") @ w.W_in[:, part] + w.b_in[part], 0)
                pending[node.id] = hidden @ w.W_out[part]
            else:
                return outputs, read(node.id, "in") @ weights.W_U
        raise AssertionError

    clean, _ = run(set(), {})
    for name, tensor in clean.items():
        if ablation == "zero":
            shown[name] = np.zeros_like(tensor)
        else:
            means = np.zeros(tensor.shape[1:])
            for position in range(ids.shape[1]):
                rows = [r for r, n in enumerate(real) if position <= n]
                means[position] = tensor[rows, position].mean(axis=0)
            shown[name] = np.broadcast_to(means, tensor.shape)
    _, logits = run(ablated, shown)
    return logits


@pytest.mark.parametrize("name", ["hist2", "reverse", "sort_freq", "induction", "pair_balance", "shuffle_dyck"])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_ablated_edges_are_invisible_to_their_reader_alone(name: str, level: int) -> None:
    """Random edges ablated in the forward pass, and in a transformer that adds up what each reader is shown."""
    model = compiled(name, level)
    data = inputs_of(model, 20)
    edges = model.ground_truth.edges()
    rng = np.random.default_rng(0)
    changed = 0
    for ablation in ("zero", "mean"):
        runs = Ablations(model.ground_truth, data, ablation, 0)
        for share in (0.0, 0.05, 0.1, 0.3):
            cut = [number for number in range(len(edges)) if rng.random() < share]
            stream = runs.run(frozenset(cut), runs.clean)
            expected = reference(model, {edges[number] for number in cut}, data, ablation)
            np.testing.assert_allclose(stream.logits[runs.token], expected[runs.token], atol=1e-3)
            changed += runs.changed(stream)
    assert changed
