"""CPR and CMD against circuits that a transformer written by hand runs one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ground_truth.pairs import SUBJECTS, by_hand
from tests.lab.test_methods import linear, one_length
from tracr import lab
from tracr.errors import TracrError, UnknownName
from tracr.ground_truth.edge_keys import coarsened
from tracr.lab import faithfulness as module
from tracr.lab.faithfulness import MIB_FRACTIONS, faithfulness
from tracr.lab.methods import MethodData, exact_patching, random_edges


def by_brute_force(model: Any, data: MethodData, ranking: list[Any]) -> np.ndarray[Any, Any]:
    """f of the first k edges of a ranking, for all k."""
    other = by_hand(model)
    clean, corrupted, _ = data.ids(model.vocabulary)
    assert data.weights is not None
    metrics = []
    for size in range(len(ranking) + 1):
        runs = [other.patched(*both, ranking[size:]) for both in zip(clean, corrupted, strict=True)]
        metrics.append(np.mean([(logits * own).sum() for logits, own in zip(runs, data.weights, strict=True)]))
    return (np.array(metrics) - metrics[0]) / (metrics[-1] - metrics[0])


@pytest.mark.parametrize("kind", ["two heads", "layer norm", "compressed", "causal twin"])
def test_every_size_by_brute_force(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The curve, its areas, and those of MIB."""
    model = SUBJECTS[kind]()
    data = linear(model, one_length(model, 2))
    scores = random_edges(model, data, seed=3)
    count = len(scores)
    curve = by_brute_force(model, data, sorted(scores, key=lambda key: -scores[key]))
    found = faithfulness(model, data, scores)
    scale = max(1.0, np.abs(curve).max())
    assert found.sizes == tuple(range(count + 1))
    assert found.values == pytest.approx(curve, abs=2e-3 * scale)
    middle = curve[1:-1].sum()
    assert found.cpr == pytest.approx((middle + 0.5) / count, abs=2e-3 * scale)
    assert found.cmd == pytest.approx((np.abs(1 - curve[1:-1]).sum() + 0.5) / count, abs=2e-3 * scale)
    assert (found.mib_cpr, found.mib_cmd) == (None, None)
    monkeypatch.setattr(module, "MIB_LEAST", 1)
    mib = faithfulness(model, data, scores)
    points = [curve[int(count * fraction)] for fraction in MIB_FRACTIONS]
    assert mib.mib_cpr == pytest.approx(np.trapezoid(points, MIB_FRACTIONS), abs=2e-3 * scale)
    assert mib.mib_cmd == pytest.approx(np.trapezoid(np.abs(1 - np.array(points)), MIB_FRACTIONS), abs=2e-3 * scale)


@pytest.mark.parametrize("granularity", ["head", "component"])
@pytest.mark.parametrize("kind", ["two heads", "causal twin"])
def test_coarse_edges_are_all_their_parts(kind: str, granularity: Any) -> None:
    """The curve over coarse edges; scores of fine edges are merged by their maximum, as those against the truth."""
    model = SUBJECTS[kind]()
    data = linear(model, one_length(model, 2))
    scores = random_edges(model, data, seed=3)
    coarse: dict[Any, float] = {}
    for key, score in scores.items():
        name = coarsened(key, granularity)
        coarse[name] = max(score, coarse.get(name, 0.0))
    order = sorted(coarse, key=lambda name: -coarse[name])
    ranking = [key for name in order for key in scores if coarsened(key, granularity) == name]
    ends = np.cumsum([0, *(sum(coarsened(key, granularity) == name for key in scores) for name in order)])
    curve = by_brute_force(model, data, ranking)[ends]
    found = faithfulness(model, data, scores, granularity=granularity)
    assert found.sizes == tuple(range(len(order) + 1))
    assert found.values == pytest.approx(curve, abs=2e-3 * max(1.0, np.abs(curve).max()))
    assert faithfulness(model, data, coarse, granularity=granularity) == found
    assert set(order) == set(model.ground_truth.candidates(granularity))
    with pytest.raises(TracrError, match="granularity 'neuron_group'"):
        faithfulness(model, data, scores, granularity="neuron_group")


def test_a_grid_of_sizes() -> None:
    """With fewer circuits the curve has the same values at their sizes, evenly spaced, both ends among them."""
    case = lab.case("shuffle_dyck")
    pairs = case.pairs(8)
    data = MethodData.of(pairs, case.metric(pairs))
    scores = random_edges(case, data)
    whole, some = faithfulness(case, data, scores), faithfulness(case, data, scores, most=12)
    assert whole.sizes == tuple(range(len(scores) + 1))
    assert len(some.sizes) == 12
    assert (some.sizes[0], some.sizes[-1]) == (0, len(scores))
    assert np.ptp(np.diff(some.sizes)) <= 1
    assert some.metrics == pytest.approx([whole.metrics[size] for size in some.sizes], abs=1e-4)
    assert (some.cpr, some.cmd) == pytest.approx((whole.cpr, whole.cmd), abs=0.05)


def test_the_sizes_of_mib_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if they are not on the grid."""
    case = lab.case("shuffle_dyck")
    pairs = case.pairs(8)
    data = MethodData.of(pairs, case.metric(pairs))
    scores = random_edges(case, data)
    monkeypatch.setattr(module, "MIB_LEAST", 1)
    whole, some = faithfulness(case, data, scores), faithfulness(case, data, scores, most=5)
    assert {int(len(scores) * fraction) for fraction in MIB_FRACTIONS} <= {*some.sizes}
    assert some.mib_cpr == pytest.approx(whole.mib_cpr, abs=1e-4)


def test_ties_enter_together() -> None:
    """A method that says nothing gets 1/2, whatever the order of the edges; missing edges come last."""
    case = lab.case("hist")
    pairs = case.pairs(20)
    data = MethodData.of(pairs, case.metric(pairs))
    keys = case.model.ground_truth.candidates("qkv")
    for nothing in ({}, dict.fromkeys(keys, 0.3), set(keys)):
        found = faithfulness(case, data, nothing)
        assert (found.cpr, found.cmd, found.sizes) == (0.5, 0.5, (0, len(keys)))
    truth = case.model.ground_truth.minimal(pairs=pairs)
    found = faithfulness(case, data, set(truth.alone))
    size = len(truth.alone)
    assert found.sizes == (0, size, len(keys))
    assert found.values == pytest.approx((0, 1, 1), abs=1e-5)
    assert found.cpr == pytest.approx(1 - size / len(keys) / 2, abs=1e-5)
    with pytest.raises(UnknownName, match="no candidate"):
        faithfulness(case, data, {"embed->nothing": 1.0})


def test_answers_as_metric() -> None:
    """Without weights, the metric of a pair is whether all its answers are the clean ones."""
    case = lab.case("hist")
    pairs = case.pairs(20)
    data = MethodData.of(pairs)
    found = faithfulness(case, data, exact_patching(case, data))
    assert found.metrics[-1] == 1
    assert found.metrics[0] == np.mean([not pair.changes for pair in pairs])
    truth = case.model.ground_truth.minimal(pairs=pairs)
    assert found.values is not None
    assert found.values[found.sizes.index(len(truth.alone))] == 1


def test_undefined_without_a_difference() -> None:
    """If corrupted inputs have the metric of the clean ones, nothing can be faithful."""
    case = lab.case("hist")
    pairs = [(pair.clean, pair.clean) for pair in case.pairs(4)]
    found = faithfulness(case, MethodData.of(pairs), {})
    assert (found.cpr, found.cmd, found.values) == (None, None, None)
