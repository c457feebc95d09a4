"""Exact patching as a method, and on twins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tracr
from tests.ground_truth.pairs import by_hand, compiled, pairs_of
from tests.natural.twins import untrained
from tracr import lab
from tracr.lab.methods import MethodData, exact_patching
from tracr.lab.methods.passes import patching_of
from tracr.natural.admission import Rate


def test_exact_patching_finds_the_edges_needed_alone() -> None:
    """On compiled models by definition; its score is the share of pairs, and with weights a distance of the metric."""
    for name, model in (("hist2", compiled("hist2")), ("rotated", compiled("hist2").rotated(seed=3))):
        pairs = pairs_of(model, 50)
        found = exact_patching(model, MethodData.of(pairs))
        truth = model.ground_truth.minimal(pairs=pairs)
        assert {edge for edge, share in found.items() if share} == set(truth.alone), name
        assert truth.score(found).auroc == 1
        heads = exact_patching(model, MethodData.of(pairs), granularity="head")
        assert {edge for edge, share in heads.items() if share} == set(truth.at("head").alone)


def test_cases_of_the_laboratory() -> None:
    """The pairs and the metric of a case are data for a method, and its pairs name a truth."""
    case = lab.case("hist")
    pairs = case.pairs(40)
    truth = case.model.ground_truth.minimal(pairs=pairs)
    for data in (MethodData.of(pairs), MethodData.of(pairs, case.metric(pairs))):
        assert truth.score(exact_patching(case, data)).exact


def test_exact_patching_with_a_linear_metric() -> None:
    """The mean distance of the sum of weights times logits, by hand."""
    model = compiled("hist")
    pairs = [pair for pair in pairs_of(model, 12) if len(pair[0]) == model.options.max_seq_len]
    ids = model.encode([clean for clean, _ in pairs])
    weights = np.random.default_rng(0).normal(size=(*ids.shape, model.parameters.W_U.shape[1]))
    found = exact_patching(model, MethodData.of(pairs, weights))
    other = by_hand(model)
    for edge, score in found.items():
        moved = []
        for row, (clean, corrupted) in enumerate(pairs):
            first, second = model.encode(clean)[0], model.encode(corrupted)[0]
            moved.append(abs((weights[row] * (other.patched(first, second, [edge]) - other.run(first)[1])).sum()))
        assert score == pytest.approx(np.mean(moved), abs=1e-3)


def test_twins_have_more_candidates_than_their_teachers() -> None:
    """The further heads and MLPs are inert; truth and scores know them."""
    model = compiled("hist")
    twin = untrained(model)
    measured = tuple(replace(site, agreement=Rate(9, 9)) for site in twin.admission.sites)
    twin = replace(twin, admission=replace(twin.admission, sites=measured))
    truth, sites = twin.ground_truth, twin.architecture.sites
    assert ["->".join(key) for key in truth.candidates()] == [str(site) for site in sites.edges]
    assert set(truth.candidates()) == set(patching_of(twin).candidates)
    pairs = pairs_of(model, 40)
    mine, teachers = truth.minimal(pairs=pairs), model.ground_truth.minimal(pairs=pairs)
    assert (mine.alone, mine.jointly) == (teachers.alone, teachers.jointly)
    assert sorted([*mine.alone, *mine.jointly, *mine.inert]) == sorted(truth.candidates())
    assert mine.score(dict.fromkeys(truth.candidates(), 1.0)).auroc == 0.5
    assert mine.at("head").score(mine.at("head").alone).exact
    assert truth.score(truth.split("qkv")[0]).exact
    found = exact_patching(twin, MethodData.of(pairs))
    assert set(found) == set(truth.candidates())
    for granularity in ("neuron_group", "fine"):
        with pytest.raises(tracr.TracrError, match="a twin has no granularity"):
            truth.candidates(granularity)  # type: ignore[arg-type]
