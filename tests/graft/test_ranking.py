"""The order of a ranking, and the measures that it uses."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import tracr
from tracr.rasp import rasp

pytest.importorskip("torch")

import torch

from tracr import graft
from tracr.graft.data import exchanged_inputs
from tracr.graft.observed import coded, observe
from tracr.graft.ranking import ExplainedBy, HostAgreement, _ordered, _worth_refining, told_of_writing
from tracr.graft.recovery import ShareInterval
from tracr.graft.refining import refine_maps
from tracr.graft.replacing import workbench

TWINS = "docs/natural/twins"


def row(name: str, *, behind: float = 0.0, faithful: float = 1.0, bits: float = 1.0) -> Any:
    """A row of a ranking with these numbers."""
    numbers = {
        "behind": ShareInterval(behind, behind, behind),
        "accuracy": 1 - behind,
        "agreement": 1 - behind,
        "faithful": faithful,
        "swapped": 1 - 2 * behind,
        "bits": bits,
        "told": 0.5,
    }
    others = dict.fromkeys(("recovered", "recovered_loss", "divergence", "reads", "equal", "output", "computed"))
    return ExplainedBy(part=name, **numbers, **others)  # type: ignore[arg-type]


def test_the_order() -> None:
    """Of the parts that agree and are faithful the simplest is first; then the others, by their agreement."""
    rows = [
        row("wrong", behind=0.2, bits=0.1),
        row("unreadable", faithful=0.9, bits=0.2),
        row("knows the answer", behind=0.1, bits=0.3),
        row("says more", bits=4.0),
        row("true", bits=2.0, faithful=0.99),
    ]
    assert [str(one.part) for one in _ordered(rows)] == ["true", "says more", "unreadable", "knows the answer", "wrong"]


def test_a_few_tokens_do_not_decide() -> None:
    """A part behind by less than two points is tied if the interval of the difference has 0, and only then."""
    best = row("right by chance", bits=2.0)
    for value, low, first in ((0.015, 0.0, "true"), (0.015, 0.001, best.part), (0.03, 0.0, best.part)):
        true = dataclasses.replace(row("true", behind=value, bits=1.0), behind=ShareInterval(value, low, 2 * value))
        assert _ordered([best, true])[0].part == first


def test_two_parts_of_equal_entropy_are_told_apart_by_what_the_component_writes() -> None:
    """Among them the one whose output tells more of it is first; a permutation of the rows changes nothing."""
    rows = [dataclasses.replace(row(str(told)), told=told) for told in (0.3, 0.9, 0.6)]
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        assert [str(one.part) for one in _ordered([rows[number] for number in order])] == ["0.9", "0.6", "0.3"]


def test_simpler_parts_are_refined_if_another_is_enough() -> None:
    """A part with more values may recover all in closed form; simpler ones that recover half are then refined."""
    shares = {"few": (1.0, 0.4), "true": (1.5, 0.9), "other": (1.2, 0.6), "more": (3.0, 1.0), "most": (4.0, 0.7)}
    rows = [
        dataclasses.replace(row(name, behind=1 - share, bits=bits), recovered=ShareInterval(share, share, share))
        for name, (bits, share) in shares.items()
    ]
    assert [str(rows[number].part) for number in _worth_refining(rows)] == ["true", "other"]
    without = [one for one in rows if str(one.part) != "more"]
    assert [str(without[number].part) for number in _worth_refining(without)] == ["true", "most", "other", "few"]


def test_parts_that_cannot_be_read_do_not_crowd_out_the_true_one() -> None:
    """A part of a later layer knows the answer but reads a variable that is not there yet: it goes behind."""
    twin: Any = tracr.load(f"{TWINS}/hist")
    inputs = graft.inputs_of(twin.teacher, 300)
    options = twin.teacher.options
    count = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)).named("count")
    here = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.EQ)
    later = rasp.Aggregate(here, count).named("later")
    model = tracr.compile(later, options.vocab, options.max_seq_len, level=0)
    copies = [one for one in graft.parts_of(model, "later") if one.kind == "head" and one.layer > 0]
    assert copies
    parts = [*copies, graft.Part(twin.teacher, "blocks.0.attn.0")]
    ranking = graft.explain(twin.to_torch(), "blocks.0.attn.0", parts, inputs, grafted=1)
    assert ranking.best.part is parts[-1]
    assert ranking.best.recovered is not None
    assert ranking.best.recovered.value >= 0.99


def test_measures_of_the_true_part() -> None:
    """In the compiled model itself the true part is faithful, tells all that is written, and agrees if interchanged."""
    opened = rasp.SelectorWidth(rasp.Select(rasp.tokens, "(", rasp.Comparison.EQ)).named("opened")
    model = tracr.compile(opened, "()", 5, causal=True)
    parts = graft.parts_of(model, "own")
    best = graft.explain(model.to_torch(), "blocks.0.mlp", parts, graft.inputs_of(model)).best
    assert best.part.title == "own blocks.0.mlp"
    assert best.faithful == best.swapped == best.accuracy == best.agreement == 1.0
    assert best.told == pytest.approx(1.0)
    assert best.divergence == pytest.approx(0.0, abs=1e-6)


def test_agreement_asks_what_the_host_answers_with_its_own_component() -> None:
    """The component's own output agrees everywhere, also interchanged; its output on another input does not.

    With right answers as the aim, there are no interchanges, and agreement is accuracy.
    """
    twin: Any = tracr.load(f"{TWINS}/hist")
    host, inputs = twin.to_torch(), graft.inputs_of(twin.teacher, 300)
    for aim in ("host", "answers"):
        bench = workbench(host, "blocks.0.mlp", inputs, share=0.5, seed=0, aim=aim, interchanged=True)
        assert bench.interchanged == (aim == "host")
        data, written = bench.test, bench.test_record.written
        asked = HostAgreement.of(bench, data, bench.test_record.logits, written, 2)
        both, swapped = asked.with_written(written)
        np.testing.assert_array_equal(both, data.scored)
        np.testing.assert_array_equal(swapped, data.scored)
        assert len(asked.sources) == (2 if aim == "host" else 0)
        other = written[exchanged_inputs(data, np.random.default_rng(5))]
        both, swapped = asked.with_written(other)
        right = data.score(bench.logits(data, other))[0]
        if aim == "answers":
            np.testing.assert_array_equal(both, right)
            continue
        own = data.same(bench.test_record.logits, bench.logits(data, other))
        np.testing.assert_allclose(both, (own + swapped) / 2)
        assert 0.1 < both.sum() / data.scored.sum() < 0.9


def test_a_part_that_knows_the_answer_is_behind_the_step_that_it_replaces() -> None:
    """The count at tokens "a", 0 at others: a part that says this is right in the place of the count, and simpler."""
    count = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)).named("count")
    answer = rasp.SequenceMap(lambda number, token: number * (token == "a"), count, rasp.tokens).named("answer")
    model = tracr.compile(answer, "ab", 5, level=0)
    parts = [graft.Part(model, "blocks.0.mlp"), graft.Part(model, "blocks.1.mlp")]
    first, second = graft.explain(model.to_torch(), "blocks.0.mlp", parts, graft.inputs_of(model)).rows
    assert (first.part, second.part) == tuple(parts)
    assert first.accuracy == second.accuracy == first.agreement == 1.0
    assert second.bits < first.bits
    assert second.swapped < 0.9
    assert second.behind.low > 0.02


def test_interchanges_teach_vectors_that_inputs_as_they_are_do_not_need() -> None:
    """Only tokens "a" are scored: what is written for the others is learned from interchanges alone."""
    twin: Any = tracr.load(f"{TWINS}/hist")
    options = twin.teacher.options
    count = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)).named("count")
    pair = rasp.SequenceMap(lambda number, token: f"{token}{number}", count, rasp.tokens).named("pair")
    part = graft.Part(tracr.compile(pair, options.vocab, options.max_seq_len, level=0), "blocks.1.mlp")
    every = graft.data_of_program(twin.teacher, graft.inputs_of(twin.teacher))
    tokens = np.array([[*one, *[""] * (every.longest - len(one))] for one in every.inputs])
    answers = tuple(dataclasses.replace(one, scored=one.scored & (tokens == "a")) for one in every.answers)
    data, found = dataclasses.replace(every, answers=answers), {}
    for interchanged in (False, True):
        bench = workbench(twin.to_torch(), "blocks.0.mlp", data, share=0.6, seed=0, interchanged=interchanged)
        (observed,) = bench.observed([part])
        grafted = bench.graft([observed], observed.output)
        grafted.write.vectors.data[:] = 0
        refine_maps(grafted, 60)
        asked = HostAgreement.of(bench, bench.test, bench.test_record.logits, bench.test_record.written, 4)
        made = bench.computed(grafted.compiled_parts, grafted.write, bench.test, bench.test_record.stream)
        both, swapped = asked.with_written(grafted.write.map.written(made))
        found[interchanged] = swapped.sum() / bench.test.scored.sum()
        assert 2 * both.sum() - swapped.sum() > 0.9 * bench.test.scored.sum()  # inputs as they are
    assert found[True] > 0.9
    assert found[False] < 0.8


def test_maps_that_write_are_compared_on_interchanged_inputs_too() -> None:
    """Nothing is missed by the component's own output, whichever input it computes on."""
    twin: Any = tracr.load(f"{TWINS}/hist")
    inputs = graft.inputs_of(twin.teacher, 300)
    bench = workbench(twin.to_torch(), "blocks.0.mlp", inputs, share=0.5, seed=0, interchanged=True)
    own = bench.record.written[: len(bench.few), : bench.few.ids.shape[1]]
    source, wanted = bench.few_interchanged
    assert bench.missed(own) == pytest.approx(0.0, abs=1e-3)
    np.testing.assert_allclose(bench.logits(bench.few, own[source]), wanted.numpy(), atol=1e-5)
    assert (source != np.arange(len(source))).mean() > 0.9
    assert bench.missed(own * 0) > 1.0


def test_what_is_told_of_writing_is_a_share_on_inputs_that_were_not_fitted() -> None:
    """Noise tells nothing; the component's own value, recomputed from its output, tells all."""
    twin: Any = tracr.load(f"{TWINS}/hist")
    inputs = graft.inputs_of(twin.teacher, 400)
    bench = workbench(twin.to_torch(), "blocks.0.attn.0", inputs, share=0.5, seed=0)
    real = graft.data_of_program(twin.teacher, bench.inputs).real
    noise = np.random.default_rng(0).integers(0, 3, real.shape)[..., None].astype(float)
    (true,) = observe([graft.Part(twin.teacher, "blocks.0.attn.0")], bench.inputs)
    assert told_of_writing(bench, coded(noise, real)) < 0.05
    assert told_of_writing(bench, true.output) > 0.5


def test_exchanged_inputs_have_the_same_length() -> None:
    """So that an interchange is between the same positions."""
    twin: Any = tracr.load(f"{TWINS}/hist")
    data = graft.data_of_program(twin.teacher, graft.inputs_of(twin.teacher, 200))
    other = exchanged_inputs(data, np.random.default_rng(0))
    lengths = data.real.sum(axis=1)
    assert (lengths[other] == lengths).all()
    assert (other != np.arange(len(other)))[lengths > 1].all()


def test_refining_only_where_it_is_needed() -> None:
    """If the simplest part recovers 99 % in closed form, `refine` changes nothing."""
    torch.manual_seed(0)
    twin: Any = tracr.load(f"{TWINS}/shift_by")
    inputs = graft.inputs_of(twin.teacher, 200)
    parts = graft.parts_of(twin.teacher, "own")
    closed, refined = (
        graft.explain(twin.to_torch(), "blocks.0.attn.0", parts, inputs, refine=steps).to_dict() for steps in (0, 50)
    )
    assert closed == refined


def test_outputs_that_tell_each_other_given_the_length() -> None:
    """Counts of some keys and of all others are the same at each length, and not at each position alone."""
    inputs = [tuple(word) for word in ("ab", "aab", "bba", "abab", "bbbb", "aabb", "baba")]
    real = np.arange(4) < np.array([len(one) for one in inputs])[:, None]
    counts = np.array([[one.count("a")] * 4 for one in inputs])[..., None].astype(float)
    others = np.array([[one.count("b")] * 4 for one in inputs])[..., None].astype(float)
    first, second = coded(counts, real), coded(others, real)
    assert first.key_at_lengths == second.key_at_lengths
    assert first.key_at_positions != second.key_at_positions
    assert coded(counts * 0, real).key_at_lengths != first.key_at_lengths
