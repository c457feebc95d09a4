"""Methods with gradients against finite differences, against PyTorch, and against exact patches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ground_truth.pairs import SUBJECTS, by_hand, pairs_of
from tracr import lab
from tracr.compress.model import CompressedModel
from tracr.errors import InputError
from tracr.ground_truth.scores import EdgeKey
from tracr.lab.methods import MethodData, eap, eap_ig_activations, eap_ig_inputs, edge_probing, node_probing


def given_data(model: Any, count: int = 3) -> MethodData:
    """Pairs of mixed lengths (of one length, if the model cuts PAD) with a random metric of the tokens."""
    teacher = getattr(model, "teacher", model)
    pairs = pairs_of(teacher, count, seed=5)
    if isinstance(model, CompressedModel):
        pairs = [pair for pair in pairs_of(teacher, 20) if len(pair[0]) == 4][:count]
    shape = (*model.encode([clean for clean, _ in pairs]).shape, model.parameters.W_U.shape[1])
    token = MethodData.of(pairs).ids(model.vocabulary)[2]
    return MethodData.of(pairs, np.random.default_rng(1).normal(size=shape) * token[..., None])


def finite_differences(model: Any, data: MethodData, size: float = 1e-4) -> dict[EdgeKey, float]:
    """EAP by its definition: a small part of the writer's change, in the reader's input only."""
    other, (clean_ids, corrupted_ids, _) = by_hand(model), data.ids(model.vocabulary)
    found: dict[EdgeKey, float] = {}
    assert data.weights is not None
    for clean, corrupted, metric in zip(clean_ids, corrupted_ids, data.weights, strict=True):
        first, second = other.run(clean)[0], other.run(corrupted)[0]
        for key in model.ground_truth.candidates("qkv"):
            logits = [
                other.run(clean, [key], {key[0]: first[key[0]] + part * (second[key[0]] - first[key[0]])})[1]
                for part in (size, -size)
            ]
            found[key] = found.get(key, 0) + ((logits[0] - logits[1]) * metric).sum() / (2 * size)
    return {key: abs(total) / len(clean_ids) for key, total in found.items()}


def test_eap_is_the_derivative_of_a_patch() -> None:
    """On a network where all functions are smooth."""
    model = SUBJECTS["causal twin"]()
    data = given_data(model)
    found = eap(model, data)
    assert found == pytest.approx(finite_differences(model, data), rel=2e-3, abs=2e-5)
    assert min(found.values()) > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", SUBJECTS)
def test_gradients_are_those_of_pytorch(kind: str) -> None:
    """EAP and EAP-IG, for all kinds of models."""
    torch = pytest.importorskip("torch", exc_type=ImportError)
    from tests.lab.edges_in_torch import EdgesInTorch

    model = SUBJECTS[kind]()
    data, other, steps = given_data(model), EdgesInTorch(model), 3
    keys = list(eap(model, data))
    expected: dict[str, dict[EdgeKey, float]] = {name: dict.fromkeys(keys, 0.0) for name in ("eap", "in", "act")}
    clean_ids, corrupted_ids, _ = data.ids(model.vocabulary)
    assert data.weights is not None
    for clean, corrupted, metric in zip(clean_ids, corrupted_ids, data.weights, strict=True):
        with torch.no_grad():
            first, second = other.run(clean)[0], other.run(corrupted)[0]
        sublayers: dict[str, list[str]] = {}
        for writer in first:
            sublayers.setdefault(writer.partition(".attn.")[0] + (".attn" * (".attn." in writer)), []).append(writer)

        def between(k: int, names: list[str], first: Any = first, second: Any = second) -> dict[str, Any]:
            return {name: second[name] + k / steps * (first[name] - second[name]) for name in names}

        passes: dict[str, list[dict[str, Any]]] = {
            "eap": [{}],
            "in": [between(k, ["embed"]) for k in range(1, steps + 1)],
        }
        passes["act"] = [between(k, names) for k in range(1, steps + 1) for names in sublayers.values()]
        for name, many in passes.items():
            for given in many:
                gradients = other.gradients(clean, metric, given)
                for writer, reader in keys:
                    product = ((second[writer] - first[writer]) * gradients[reader]).sum().item()
                    expected[name][writer, reader] += product / len(many) / len(clean_ids)
    wanted = {name: {key: abs(value) for key, value in scores.items()} for name, scores in expected.items()}
    scale = max(max(scores.values()) for scores in wanted.values())
    noise = 1e-5 if "twin" in kind else 1e-3  # keys that differ by 256 leave gradients that cancel in float32
    close: dict[str, Any] = {"rel": 2e-3, "abs": noise * max(1.0, scale)}
    assert eap(model, data) == pytest.approx(wanted["eap"], **close)
    assert eap_ig_inputs(model, data, steps=steps) == pytest.approx(wanted["in"], **close)
    assert eap_ig_activations(model, data, steps=steps) == pytest.approx(wanted["act"], **close)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SUBJECTS)
def test_masked_passes(kind: str) -> None:
    """With random shares they are PyTorch's, with shares 0 and 1 exact patches."""
    pytest.importorskip("jax", exc_type=ImportError)
    torch = pytest.importorskip("torch", exc_type=ImportError)
    from tests.lab.edges_in_torch import EdgesInTorch
    from tracr.lab.methods.edge_network import in_jax, masked_logits, metric_of

    model = SUBJECTS[kind]()
    data = given_data(model)
    own, other, hand = in_jax(model, data), EdgesInTorch(model), by_hand(model)
    rng = np.random.default_rng(3)
    shape = len(own.writers), len(own.readers)
    clean_ids, corrupted_ids, _ = data.ids(model.vocabulary)
    assert data.weights is not None
    for shares in (rng.random(shape), rng.integers(2, size=shape).astype(float)):
        many = np.tile(shares, (len(clean_ids), 1, 1))
        found = metric_of(masked_logits(own.network, own.weights, own.written[0], own.instead, many), own.metric)
        by_edge = own.by_edge(shares)
        patched = [key for key, share in by_edge.items() if share == 1]
        for row, (clean, corrupted) in enumerate(zip(clean_ids, corrupted_ids, strict=True)):
            with torch.no_grad():
                logits = other.run(clean, None, by_edge, other.run(corrupted)[0])[2].numpy()
            wanted = (logits * data.weights[row]).sum()
            assert float(found[row]) == pytest.approx(wanted, rel=1e-3, abs=1e-3)
            if len(patched) + list(by_edge.values()).count(0) == len(by_edge):
                assert wanted == pytest.approx((hand.patched(clean, corrupted, patched) * data.weights[row]).sum())


def test_gates_have_the_distribution_they_are_said_to_have() -> None:
    """The share of gates that are 0 or 1 for sure."""
    jax = pytest.importorskip("jax", exc_type=ImportError)
    pytest.importorskip("optax")

    from tracr.lab.methods.hard_concrete import BETA, GAMMA, ZETA, _gates

    for theta in (-1.0, 0.0, 2.0):
        drawn = np.asarray(_gates(np.full(100, theta, np.float32), jax.random.key(0), 1000))
        is_open = 1 / (1 + np.exp(BETA * np.log(-GAMMA / ZETA) - theta))
        is_full = 1 / (1 + np.exp(BETA * np.log((1 - GAMMA) / (ZETA - 1)) - theta))
        assert (drawn > 0).mean() == pytest.approx(is_open, abs=0.006)
        assert (drawn == 1).mean() == pytest.approx(is_full, abs=0.006)


@pytest.mark.slow
def test_probing_finds_the_circuit_of_hist() -> None:
    """Edge probing finds it; node probing knows nothing of edges. Both are the same for the same seed."""
    pytest.importorskip("jax", exc_type=ImportError)
    pytest.importorskip("optax")
    case = lab.case("hist")
    pairs = case.pairs(48)
    data = MethodData.of(pairs, case.metric(pairs))
    truth = case.model.ground_truth.minimal(pairs=pairs)
    found = edge_probing(case, data)
    assert truth.score(found).auroc == 1
    assert found == edge_probing(case, data) != edge_probing(case, data, seed=1)
    nodes = node_probing(case, data)
    assert nodes == node_probing(case, data)
    head, mlp = nodes["embed", "blocks.0.attn.0.q"], nodes["blocks.0.mlp", "unembed"]
    assert nodes["blocks.0.attn.0", "blocks.0.mlp"] == min(head, mlp)
    assert nodes["embed", "unembed"] == max(head, mlp)


@pytest.mark.slow
def test_eap_misses_the_queries_and_keys_of_compiled_hist() -> None:
    """Their scores are exactly 0: attention is saturated and the neurons' steps are flat. Exact patching finds all."""
    case = lab.case("hist")
    pairs = case.pairs(64)
    data = MethodData.of(pairs, case.metric(pairs))
    truth = case.model.ground_truth.minimal(pairs=pairs)
    found = eap(case, data)
    queries_and_keys = [key for key in truth.alone if key[1].endswith((".q", ".k"))]
    assert len(queries_and_keys) == 2
    assert all(found[key] == 0 for key in queries_and_keys)
    auroc = truth.score(found).auroc
    assert auroc is not None
    assert auroc < 0.7
    assert truth.score(lab.methods.exact_patching(case, data)).auroc == 1


def test_answers_have_no_gradient() -> None:
    """Gradient methods refuse data without weights."""
    case = lab.case("hist")
    with pytest.raises(InputError, match="needs a metric with a gradient"):
        eap(case, MethodData.of(case.pairs(4)))
