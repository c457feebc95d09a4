"""Candidates, and patched passes, which are compared with a transformer written by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tracr
from tests.ground_truth.pairs import NAMES, SUBJECTS, by_hand, compiled, pairs_of
from tracr.ground_truth.data import GRANULARITIES
from tracr.lab.methods import MethodData
from tracr.lab.methods.passes import patching_of
from tracr.rasp import programs


@pytest.mark.parametrize("kind", SUBJECTS)
def test_patched_passes_are_those_of_another_transformer(kind: str) -> None:
    """Every edge alone, and random sets of edges."""
    model = SUBJECTS[kind]()
    teacher = getattr(model, "teacher", getattr(model, "compiled", model))
    patching, other = patching_of(model), by_hand(model)
    data = MethodData.of(pairs_of(teacher, 3))
    clean_ids, corrupted_ids, token = data.ids(model.vocabulary)
    clean, corrupted = patching.clean(clean_ids), patching.clean(corrupted_ids)
    rng = np.random.default_rng(0)
    edges = patching.candidates
    alone = [[edges[n]] for n in rng.permutation(len(edges))[:30]]
    several = [[edge for edge in edges if rng.random() < share] for share in (0.05, 0.2, 0.5, 1.0)]
    found = patching.run(clean, corrupted.written, [*alone, [], *several], lambda logits: logits)
    scale = np.abs(clean.logits).max()
    for patched, logits in zip([*alone, [], *several], found, strict=True):
        for row, (first, second) in enumerate(zip(clean_ids, corrupted_ids, strict=True)):
            expected = other.patched(first, second, patched)
            np.testing.assert_allclose(logits[row][token[row]], expected[token[row]], atol=2e-3 * scale)
    np.testing.assert_array_equal(found[len(alone)], clean.logits)


def test_candidates_are_all_pairs_of_a_writer_and_a_later_reader() -> None:
    """One layer with a head and an MLP has 8; two such layers 23; embeddings are one writer."""
    assert compiled("hist").ground_truth.candidates() == (
        ("embed", "blocks.0.attn.0.q"),
        ("embed", "blocks.0.attn.0.k"),
        ("embed", "blocks.0.attn.0.v"),
        ("embed", "blocks.0.mlp"),
        ("embed", "unembed"),
        ("blocks.0.attn.0", "blocks.0.mlp"),
        ("blocks.0.attn.0", "unembed"),
        ("blocks.0.mlp", "unembed"),
    )
    two = tracr.compile(programs.make_count_less_freq(2), "abcd", 5).ground_truth
    assert len(two.candidates("qkv")) == 23
    with pytest.raises(tracr.TracrError, match="no granularity 'fine'"):
        two.candidates("fine")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("level", [0, 1, 2])
def test_every_edge_is_a_candidate(name: str, level: int) -> None:
    """At every granularity; the candidates with whole MLPs are those of the weights."""
    model = compiled(name, level)
    truth = model.ground_truth
    for granularity in GRANULARITIES:
        candidates = truth.candidates(granularity)
        assert len(set(candidates)) == len(candidates)
        wired, rest = truth.split(granularity)
        assert sorted([*wired, *rest]) == sorted(candidates)
        named = {(edge.source.removeprefix("pos_"), edge.target, edge.input) for edge in truth.edges(granularity)}
        assert {(w, r if into == "in" else f"{r}.{into}") for w, r, into in named} == set(wired)
    assert truth.candidates("qkv") == patching_of(model).candidates


@pytest.mark.parametrize(
    ("name", "kind"), [*itertools.product(NAMES, ("level 0", "level 1", "level 2")), ("hist2", "rotated")]
)
def test_candidates_that_are_not_wired_change_nothing(name: str, kind: str) -> None:
    """Each alone and all together, for pairs of inputs: they are inert by construction."""
    plain = compiled(name, 1 if kind == "rotated" else int(kind[-1]))
    model = plain.rotated(seed=2) if kind == "rotated" else plain
    unwired = model.ground_truth.split("qkv")[1]
    data = MethodData.of(pairs_of(model, 30))
    patching = patching_of(model)
    clean_ids, corrupted_ids, token = data.ids(model.vocabulary)
    clean, corrupted = patching.clean(clean_ids), patching.clean(corrupted_ids)
    found = patching.run(clean, corrupted.written, [*([key] for key in unwired), unwired], lambda logits: logits)
    np.testing.assert_allclose(found[:, token], np.broadcast_to(clean.logits, found.shape)[:, token], atol=1e-3)
