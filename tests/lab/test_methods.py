"""Methods without gradients against direct computations, the registry, and costs."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import tracr
from tests.ground_truth.pairs import SUBJECTS, by_hand, pairs_of
from tracr import lab
from tracr.errors import InputError, TracrError, UnknownName
from tracr.ground_truth.edge_keys import key_of_edge
from tracr.ground_truth.scores import EdgeKey
from tracr.lab.methods import (
    METHODS,
    MethodData,
    acdc,
    count_passes,
    downstream,
    exact_patching,
    information_flow,
    random_edges,
    run_method,
    weight_norm,
)
from tracr.lab.methods.passes import patching_of

PLAIN = [name for name, method in METHODS.items() if not method.needs]


def one_length(model: Any, count: int) -> list[Any]:
    """Pairs of the longest length, which all kinds of models take."""
    teacher = getattr(model, "teacher", model)
    longest = teacher.options.max_seq_len
    return [pair for pair in pairs_of(teacher, 12 * count, seed=2) if len(pair[0]) == longest][:count]


def linear(model: Any, pairs: list[Any]) -> MethodData:
    """With a random metric."""
    shape = (*model.encode([clean for clean, _ in pairs]).shape, model.parameters.W_U.shape[1])
    return MethodData.of(pairs, np.random.default_rng(0).normal(size=shape))


@pytest.mark.parametrize("kind", SUBJECTS)
def test_methods_score_all_candidates(kind: str) -> None:
    """Those without an optional library, on all kinds of models."""
    model = SUBJECTS[kind]()
    data = linear(model, one_length(model, 3))
    candidates = patching_of(model).candidates
    if kind != "compressed":
        assert set(candidates) == set(model.ground_truth.candidates("qkv"))
    for name in PLAIN:
        found = run_method(name, model, data)
        assert list(found.scores) == list(candidates), name
        assert np.isfinite(list(found.scores.values())).all(), name
        assert dict(found.scores) == dict(run_method(name, model, data).scores), name


def test_acdc_is_its_definition() -> None:
    """One threshold at a time, with a transformer written by hand."""
    model = SUBJECTS["causal twin"]()
    data = linear(model, one_length(model, 2))
    other = by_hand(model)
    clean, corrupted, _ = data.ids(model.vocabulary)
    keys = list(model.ground_truth.candidates("qkv"))
    readers = [reader for writer, reader in keys if writer == "embed"]
    writers = list(dict.fromkeys(writer for writer, _ in keys))
    order = [(w, r) for r in reversed(readers) for w in reversed(writers) if (w, r) in keys]
    assert data.weights is not None
    weights = data.weights

    def distance(edges: list[EdgeKey]) -> float:
        moved = [other.patched(*both, edges) - other.patched(*both, []) for both in zip(clean, corrupted, strict=True)]
        return float(np.mean([abs((one * metric).sum()) for one, metric in zip(moved, weights, strict=True)]))

    shares, whole = [0.01, 0.1], distance(keys)
    expected = dict.fromkeys(keys, 2 * max(shares))
    for share in sorted(shares, reverse=True):
        removed: list[EdgeKey] = []
        for edge in order:
            if distance([*removed, edge]) - distance(removed) < share * whole:
                removed.append(edge)
                expected[edge] = share
    assert acdc(model, data, thresholds=shares) == pytest.approx(expected)
    assert len(set(expected.values())) == 3
    for wrong in ([], [0.1, -1], [float("nan")]):
        with pytest.raises(InputError, match="thresholds are positive numbers"):
            acdc(model, data, thresholds=wrong)


@pytest.mark.parametrize("kind", ["two heads", "twin"])
def test_information_flow_is_its_definition(kind: str) -> None:
    """With the outputs of a transformer written by hand, position by position."""
    model = SUBJECTS[kind]()
    pairs = pairs_of(getattr(model, "teacher", model), 3)
    data, other = MethodData.of(pairs), by_hand(model)
    found, keys = information_flow(model, data), model.ground_truth.candidates("qkv")
    expected = dict.fromkeys(keys, 0.0)
    for ids, (clean, _) in zip(data.ids(model.vocabulary)[0], pairs, strict=True):
        written = other.run(ids)[0]
        for reader in dict.fromkeys(reader for _, reader in keys):
            before = [writer for writer, target in keys if target == reader]
            layer = len(other.weights.layers) if reader == "unembed" else int(reader.split(".")[1])
            stream: Any = sum(written[writer] for writer in before)
            stream = stream + sum(one.b_O + one.b_out for one in other.weights.layers[:layer])
            stream = stream + (other.weights.layers[layer].b_O if reader.endswith("mlp") else 0)
            for position in range(len(clean) + 1):
                y = stream[position]
                near = [max(0.0, np.abs(y).sum() - np.abs(y - written[w][position]).sum()) for w in before]
                for writer, one in zip(before, near, strict=True):
                    share = one / sum(near) if sum(near) else 0.0
                    expected[writer, reader] += share / (len(clean) + 1) / len(pairs)
    assert found == pytest.approx(expected, abs=1e-4)


def test_null_methods() -> None:
    """Random numbers by seed; the order of readers; the norm of a product of weights."""
    model = SUBJECTS["twin"]()
    data = linear(model, one_length(model, 2))
    assert random_edges(model, data) == random_edges(model, data) != random_edges(model, data, seed=1)
    far = downstream(model, data)
    assert max(far, key=lambda key: far[key])[1] == "unembed"
    assert far["embed", "blocks.0.attn.1.k"] == 0 < far["embed", "blocks.0.mlp"] < far["embed", "unembed"] == 1
    norms, layer = weight_norm(model, data), model.parameters.layers[0]
    product = layer.W_O[0] @ layer.W_in
    assert norms["blocks.0.attn.0", "blocks.0.mlp"] == pytest.approx(np.sqrt((product**2).sum()), rel=1e-5)
    square = (model.parameters.W_E @ layer.W_K[1]) ** 2, (model.parameters.W_pos @ layer.W_K[1]) ** 2
    assert norms["embed", "blocks.0.attn.1.k"] == pytest.approx(np.sqrt(sum(one.sum() for one in square)), rel=1e-5)
    compiled = SUBJECTS["two heads"]()
    wired = {key_of_edge(edge) for edge in compiled.ground_truth.edges("qkv")}
    assert {key for key, norm in weight_norm(compiled, data).items() if norm} <= wired


def test_the_settings_of_a_method_are_the_parameters_of_its_function() -> None:
    """With their defaults, so that a function and its entry are the same method. Structure is no setting."""
    for name, method in METHODS.items():
        parameters = inspect.signature(method.run).parameters.values()
        own = {one.name: one.default for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY}
        own = {key: value for key, value in own.items() if key not in ("granularity", "thresholds")}
        assert dict(method.settings) == own, name
        assert method.name == name
        assert method.run.__module__ != "tracr.lab.methods.registry"


def test_costs_are_counted() -> None:
    """In passes of one input, also for a user's function."""
    case = lab.case("hist")
    pairs = case.pairs(5)
    data = MethodData.of(pairs, case.metric(pairs))
    edges = len(case.model.ground_truth.candidates("qkv"))
    found = run_method("exact", case, data)
    assert (found.forwards, found.backwards) == (5 * (edges + 2), 0)
    assert found.scores == exact_patching(case.model, data)
    assert found.seconds > 0
    assert run_method("random", case, data).forwards == 0

    def mine(subject: Any, data: MethodData) -> dict[str, float]:
        count_passes(3, 2)
        return {"embed->unembed": 1.0}

    own = run_method(mine, case, data)
    assert (own.forwards, own.backwards, own.scores) == (3, 2, {"embed->unembed": 1.0})
    count_passes(1)  # outside a run it does nothing


def test_methods_are_found_by_name() -> None:
    """Unknown names and settings are refused, with what there is."""
    case = lab.case("hist")
    data = MethodData.of(case.pairs(2))
    with pytest.raises(UnknownName, match="there is no method eap-jg"):
        run_method("eap-jg", case, data)
    with pytest.raises(UnknownName, match="random has no setting sed"):
        METHODS["random"].with_settings(sed=1)
    with pytest.raises(InputError, match="is no method"):
        run_method(3, case, data)  # type: ignore[arg-type]
    other = METHODS["random"].with_settings(seed=4)
    assert run_method(other, case, data).scores == random_edges(case, data, seed=4)


def test_unknown_networks_are_refused() -> None:
    """A model whose logits are not those of the network that is patched; no model; no pairs."""
    model = tracr.compress(SUBJECTS["compiled"](), method="exact")
    mixed = MethodData.of(pairs_of(model.compiled, 6))
    with pytest.raises(TracrError, match="cannot be patched on these inputs"):
        exact_patching(model, mixed)
    with pytest.raises(TracrError, match="str is no model"):
        exact_patching("hist", mixed)
    with pytest.raises(InputError, match="needs pairs"):
        exact_patching(model, MethodData((), ()))
