"""Candidates, truth for pairs, and scores of found edges; patches are compared with a transformer written by hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import tracr
from tests.ground_truth.by_hand import ByHand, gelu, plain_norm
from tests.natural.twins import untrained
from tracr import lab
from tracr.ground_truth.ablations import without_near_ties
from tracr.ground_truth.data import GRANULARITIES
from tracr.ground_truth.pair_truth import PairTruth
from tracr.ground_truth.patching import EdgePatching
from tracr.lab.methods import MethodData, exact_patching
from tracr.lab.methods.passes import patching_of
from tracr.model.verification import differs
from tracr.natural.twin_model import TwinModel
from tracr.rasp import programs, rasp
from tracr.rasp.annotations import Encoding

Pair = tuple[list[Any], list[Any]]
NAMES = ("hist2", "reverse", "sort_freq", "pair_balance", "induction")


@cache
def compiled(name: str, level: int = 1) -> tracr.CompiledModel:
    example = programs.EXAMPLES[name]
    return tracr.compile(example.program, example.vocab, example.max_seq_len, level=level)


def pairs_of(model: tracr.DesignedModel, count: int, seed: int = 0) -> list[Pair]:
    """Random pairs of mixed lengths."""
    rng, vocab = np.random.default_rng(seed), model.options.vocab
    lengths = rng.integers(max(1, model.program.lengths[0]), model.program.lengths[1] + 1, size=count).tolist()

    def drawn(length: int) -> list[Any]:
        return [vocab[code] for code in rng.integers(len(vocab), size=length).tolist()]

    return [(drawn(length), drawn(length)) for length in lengths]


def by_hand(model: Any) -> ByHand:
    """The same model in other code."""
    if isinstance(model, TwinModel):
        assert model.architecture.activation == "gelu"
        causal = model.teacher.options.causal
        return ByHand(model.parameters, causal=causal, norm=lambda x: plain_norm(x, 1e-5), activation=gelu)
    if model.norm is None:
        return ByHand(model.parameters, causal=model.options.causal)
    epsilon = model.norm.epsilon
    return ByHand(model.parameters, causal=model.options.causal, norm=lambda x: plain_norm(x, epsilon, epsilon**0.5))


@cache
def causal() -> tracr.CompiledModel:
    return tracr.compile(programs.make_hist(), "abc", 4, causal=True)


SUBJECTS: dict[str, Callable[[], Any]] = {
    "compiled": lambda: compiled("hist2"),
    "two heads": lambda: compiled("sort_freq", 0),
    "level 2": lambda: compiled("hist2", 2),
    "causal": causal,
    "rotated": lambda: compiled("hist2").rotated(seed=1),
    "layer norm": lambda: compiled("hist").with_layer_norm(),
    "compressed": lambda: tracr.compress(compiled("hist"), method="exact"),
    "twin": lambda: untrained(compiled("hist2")),
    "causal twin": lambda: untrained(causal()),
}
"""Models of each kind whose edges can be patched."""


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


# The truth for pairs


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


# Scores of found edges


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


# The method, and twins


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
