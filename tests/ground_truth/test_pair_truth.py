"""The truth for pairs: edges needed alone and jointly, and what is inert."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import pytest

import tracr
from tests.ground_truth.pairs import NAMES, Pair, by_hand, compiled, pairs_of
from tracr.ground_truth.ablations import without_near_ties
from tracr.ground_truth.data import GRANULARITIES
from tracr.ground_truth.pair_truth import PairTruth
from tracr.ground_truth.patching import EdgePatching
from tracr.lab.methods import MethodData
from tracr.lab.methods.passes import patching_of
from tracr.model.verification import differs
from tracr.rasp import programs, rasp
from tracr.rasp.annotations import Encoding


def changes_by_hand(model: tracr.DesignedModel, pairs: list[Pair], edges: Any) -> bool:
    """Whether patching these edges changes an answer, one pair at a time."""
    other = by_hand(model)
    for first, second in pairs:
        ids, corrupted = model.encode(first)[0], model.encode(second)[0]
        before, after = (
            without_near_ties(model.outputs, logits)[1:]
            for logits in (other.run(ids)[1], other.patched(ids, corrupted, edges))
        )
        for output in model.outputs:
            if differs(output.domain, output.codes(before), output.codes(after)).any():
                return True
    return False


@pytest.mark.parametrize("name", ["hist", "hist2", "reverse", "pair_balance", "induction"])
def test_edges_needed_alone_change_an_answer_alone(name: str) -> None:
    """For every wired edge, by hand; all others together change nothing."""
    model = compiled(name)
    pairs = [pair for pair in pairs_of(model, 24, seed=1) if len(pair[0]) == model.options.max_seq_len]
    found = model.ground_truth.minimal(pairs=pairs)
    assert found.pairs == tuple(pairs)
    for edge in model.ground_truth.split("qkv")[0]:
        assert changes_by_hand(model, pairs, [edge]) == (edge in found.alone), edge
    assert not changes_by_hand(model, pairs, found.inert)
    assert sorted([*found.alone, *found.jointly, *found.inert]) == sorted(found.candidates())


def check_claims(found: PairTruth, patching: EdgePatching, model: tracr.DesignedModel) -> None:
    """Every statement of a truth for pairs of whole edges (granularity "qkv", resample), by patches."""
    data = MethodData.of(found.pairs)
    clean_ids, corrupted_ids, token = data.ids(model.vocabulary)
    clean, corrupted = patching.clean(clean_ids), patching.clean(corrupted_ids)

    def changes(*patches: Any) -> list[bool]:
        moved = patching.run(
            clean, corrupted.written, patches, lambda logits: data.change(model.outputs, token, clean.logits, logits)
        )
        return [bool(pair.any()) for pair in moved]

    assert all(changes(*([edge] for edge in found.alone)))
    assert not any(changes(*([edge] for edge in [*found.inert, *found.jointly])))
    assert changes(found.inert) == [False]
    assert {edge for one in found.sets for edge in one} == set(found.jointly)
    for one in found.sets:
        assert changes(one) == [True]
        assert not any(changes(*([edge for edge in one if edge != gone] for gone in one)))


@cache
def either() -> tracr.CompiledModel:
    """Whether one of the first three tokens is an "a": a head for each, joined by `or`."""
    is_a = (rasp.tokens == "a").named("is_a")

    def at(place: int) -> rasp.SOp:
        head = rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == place)
        return rasp.Aggregate(head, is_a, False).named(f"at{place}")

    first, second, third = map(at, range(3))
    return tracr.compile(((first | second) | third).named("either"), "ab", 3)


def test_redundant_edges_are_needed_jointly() -> None:
    """If all three tokens change from "a" to "b", no head is needed alone, and all three are together."""
    model = either()
    found = model.ground_truth.minimal(pairs=[("aaa", "bbb")])
    assert {(w, r) for w, r in found.jointly if r.endswith(".v")} == {
        (w, r) for w, r in found.candidates() if r.endswith(".v") and w == "blocks.0.mlp"
    }
    assert {len(one) for one in found.sets} == {2, 3}
    check_claims(found, patching_of(model), model)
    assert found.score(found.alone).exact  # edges needed jointly are neither missed nor extra
    assert found.score([*found.alone, *found.jointly]).exact


@pytest.mark.parametrize("name", NAMES)
def test_claims_hold_on_the_library(name: str) -> None:
    """What is said about alone, jointly and inert edges."""
    model = compiled(name)
    found = model.ground_truth.minimal(pairs=pairs_of(model, 60))
    assert found.alone
    if model.outputs[0].encoding is Encoding.CATEGORICAL:  # for numbers methods have another tolerance
        check_claims(found, patching_of(model), model)


@pytest.mark.parametrize("ablation", ["zero", "mean"])
def test_patches_agree_with_ablations(ablation: Any) -> None:
    """An edge is needed alone just if `ablate` changes an output when it ablates all variables of the edge."""
    model = compiled("hist2")
    truth = model.ground_truth
    pairs = [pair for pair in pairs_of(model, 40) if len(pair[0]) == model.options.max_seq_len]
    found = truth.minimal(pairs=pairs, ablation=ablation)
    data = [clean for clean, _ in pairs]
    expected = truth.ablate([], data=data, ablation=ablation)
    for key in truth.split("qkv")[0]:
        edges = [e for e in truth.edges("qkv") if (e.source.removeprefix("pos_"), _reader(e)) == key]
        assert (truth.ablate(edges, data=data, ablation=ablation) != expected) == (key in found.alone), key


def _reader(edge: Any) -> str:
    return edge.target if edge.input == "in" else f"{edge.target}.{edge.input}"


@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_granularities(granularity: Any) -> None:
    """Every truth has one verdict for each of its candidates; `at` computes another granularity."""
    truth = compiled("hist2").ground_truth
    pairs = pairs_of(compiled("hist2"), 40)
    found = truth.minimal(pairs=pairs, granularity=granularity)
    assert sorted([*found.alone, *found.jointly, *found.inert]) == sorted(truth.candidates(granularity))
    again = truth.minimal(pairs=pairs).at(granularity)
    assert (again.alone, again.jointly, again.inert) == (found.alone, found.jointly, found.inert)
    perfect = dict.fromkeys(found.alone, 1.0)
    assert found.score(perfect).exact
    assert truth.minimal(pairs=pairs).score(perfect, granularity).exact


def test_known_sizes() -> None:
    """`hist` needs 4 edges under resample and more under zero (the embedding's part that finds BOS)."""
    truth = tracr.compile(programs.make_hist(), "abcd", 5).ground_truth
    pairs = pairs_of(truth.model, 60)
    resampled, zero = truth.minimal(pairs=pairs), truth.minimal(pairs=pairs, ablation="zero")
    assert resampled.alone == (
        ("embed", "blocks.0.attn.0.q"),
        ("embed", "blocks.0.attn.0.k"),
        ("blocks.0.attn.0", "blocks.0.mlp"),
        ("blocks.0.mlp", "unembed"),
    )
    assert set(resampled.alone) < set(zero.alone)
    assert repr(resampled) == (
        "PairTruth(4 edges needed alone, 0 jointly, 4 inert; resample ablation, 60 pairs, granularity qkv)"
    )


def test_refusals() -> None:
    """Pairs that never change the answer, that are no pairs, or on which the program raises."""
    truth = compiled("hist").ground_truth
    wrong: list[tuple[Any, str]] = [
        ([("ab", "ba")], "the same in all pairs"),
        ([("ab", "abc")], "has 2 and 3 tokens"),
        ([("", "")], "has 0 and 0 tokens"),
        ([], "there are no pairs"),
        ("ab", "there are no pairs"),
        (["ab"], "not a pair of inputs"),
        ([("aa", "a\0")], "vocabulary"),
    ]
    for pairs, message in wrong:
        with pytest.raises(tracr.TracrError, match=message):
            truth.minimal(pairs=pairs)
    with pytest.raises(tracr.TracrError, match="no ablation 'noise'"):
        truth.minimal(pairs=[("aa", "ab")], ablation="noise")  # type: ignore[call-overload]
    with pytest.raises(tracr.TracrError, match=r"data= .* or pairs="):
        truth.minimal(pairs=[("aa", "ab")], data=["aa"])  # type: ignore[call-overload]
    length = tracr.compile(programs.make_length(), "abc", 4).ground_truth
    with pytest.raises(tracr.InputError, match="the same in all pairs"):
        length.minimal(pairs=pairs_of(length.model, 20))


def test_pairs_on_which_the_program_raises_are_counted() -> None:
    """They are left out."""
    model = compiled("induction")
    truth = model.ground_truth
    pairs = pairs_of(model, 30)
    found = truth.minimal(pairs=pairs)
    assert len(found.pairs) + found.skipped == len(pairs)


def test_all_subsets_of_few_edges() -> None:
    """For the model with three heads: an edge is needed jointly just if there is a set of edges that it decides."""
    model = either()
    pairs = [("aaa", "bbb")]
    found = model.ground_truth.minimal(pairs=pairs)
    idle = [edge for edge in model.ground_truth.split("qkv")[0] if edge in found.inert]
    rest = [*found.jointly, *idle[::3]]
    patching, data = patching_of(model), MethodData.of(pairs)
    clean_ids, corrupted_ids, token = data.ids(model.vocabulary)
    clean, corrupted = patching.clean(clean_ids), patching.clean(corrupted_ids)
    subsets = [set(one) for size in range(len(rest) + 1) for one in itertools.combinations(rest, size)]
    moved = patching.run(
        clean,
        corrupted.written,
        [list(one) for one in subsets],
        lambda logits: data.change(model.outputs, token, clean.logits, logits),
    )
    changes = {frozenset(one): bool(pair.any()) for one, pair in zip(subsets, moved, strict=True)}
    decides = {
        edge
        for edge in rest
        for one in subsets
        if edge not in one and changes[frozenset(one | {edge})] > changes[frozenset(one)]
    }
    assert decides == set(found.jointly)
