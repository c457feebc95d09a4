"""Scores of found edges."""

from __future__ import annotations

from typing import Any

import pytest

import tracr
from tests.ground_truth.pairs import compiled, pairs_of
from tracr.ground_truth.data import GRANULARITIES


def test_found_edges_in_all_spellings() -> None:
    """Edges of the ground truth, pairs and strings; numbers, booleans and sets."""
    truth = compiled("hist").ground_truth
    circuit = truth.minimal(pairs=[("aab", "abb"), ("abc", "aac")])
    pairs = list(circuit.alone)
    strings = [f"{writer} -> {reader}" for writer, reader in pairs]
    for found in (
        set(pairs),
        [list(pair) for pair in pairs],
        strings,
        dict.fromkeys(pairs, True),
        dict.fromkeys(strings, 0.1),
        dict.fromkeys(pairs, 2),
    ):
        scores = circuit.score(found)
        assert (scores.exact, scores.auroc, scores.average_precision, scores.precision_at_size) == (True, 1, 1, 1)
    everything = truth.score(truth.edges())
    assert everything.exact
    assert everything.size == len(truth.split("qkv")[0])
    mixed = {key: key in pairs for key in truth.candidates()}
    assert circuit.score(mixed) == circuit.score(pairs)
    nothing = circuit.score({})
    assert (nothing.auroc, nothing.precision_at_size, len(nothing.missed), nothing.extra) == (0.5, 0, 4, ())


@pytest.mark.parametrize("granularity", GRANULARITIES)
@pytest.mark.parametrize("name", ["hist2", "sort_freq"])
def test_edges_of_a_circuit_score_fully(name: str, granularity: Any) -> None:
    """A minimal circuit's own edges, given at the finest granularity, are all of it and nothing else."""
    model = compiled(name)
    data = [pair[0] for pair in pairs_of(model, 40)]
    circuit = model.ground_truth.minimal(data=data)
    assert circuit.score(circuit.inside, granularity).exact
    assert circuit.score(circuit.edges(granularity), granularity).exact
    missing = circuit.score(circuit.inside[:-1], granularity)
    assert not missing.extra


def test_merged_edges_have_the_largest_number() -> None:
    """Numbers of q, k and v give the number of the head."""
    truth = compiled("hist").ground_truth
    found = {"embed->blocks.0.attn.0.q": 0.2, "embed->blocks.0.attn.0.k": 0.9, "embed->blocks.0.mlp": 0.5}
    merged = {"embed->blocks.0.attn.0": 0.9, "embed->blocks.0.mlp": 0.5}
    assert truth.score(found, "head") == truth.score(merged, "head")
    assert truth.score(dict(reversed(found.items())), "head") == truth.score(merged, "head")


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"embed->blocks.0.atn.0.q": 1.0}, r"did you mean embed->blocks\.0\.attn\.0\.q"),
        ({("blocks.0.mlp", "blocks.0.attn.0.q"): 1.0}, "no candidate blocks.0.mlp->blocks.0.attn.0.q"),
        ({"embed->blocks.0.attn.0": 1.0}, "no candidate"),
        ({"embed": 1.0}, "not an edge"),
        ({3: 1.0}, "not an edge"),
        ([["embed"]], "not an edge"),
        ({"embed->unembed": float("nan")}, "finite number"),
        ({"embed->unembed": "much"}, "finite number"),
        ("embed->unembed", "a mapping to numbers or as a set"),
        (None, "a mapping to numbers or as a set"),
    ],
)
def test_unusable_edges_are_refused(found: Any, message: str) -> None:
    """With near matches."""
    with pytest.raises(tracr.TracrError, match=message):
        compiled("hist").ground_truth.score(found)
