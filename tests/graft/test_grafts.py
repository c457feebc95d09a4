"""Grafts: compiled parts inside hosts. Hosts are compiled models, their variants, and a committed twin."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tracr.errors import InputError, TracrError, UnknownName
from tracr.rasp import programs, rasp

pytest.importorskip("torch")

import torch

from tracr import graft
from tracr.graft.modules import PartModule
from tracr.graft.recovery import ShareInterval

TWINS = Path(__file__).parents[2] / "docs" / "natural" / "twins"


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small tensors are faster with one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def twin() -> Any:
    return tracr.load(TWINS / "hist")


def compiled(name: str, **options: Any) -> tracr.CompiledModel:
    numbers = rasp.numerical(rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LEQ), rasp.tokens))
    two = {"hist": programs.make_hist(), "before": programs.shift_by(1, rasp.tokens)}
    made: dict[str, tuple[Any, Any, int]] = {
        "hist": (programs.make_hist(), "abc", 4),
        "hist2": (programs.make_hist2(), "abc", 4),
        "sort_unique": (programs.make_sort_unique(rasp.tokens, rasp.tokens), [1, 2, 3, 4], 3),
        "shift": (programs.shift_by(1, rasp.tokens), "abc", 4),
        "mean": (numbers, [0, 1, 2], 4),
        "two outputs": (two, "abc", 4),
    }
    program, vocab, length = made[name]
    return tracr.compile(program, vocab, length, **options)


HOSTS = [
    ("hist", {}),
    ("hist", {"level": 0}),
    ("hist", {"level": 2}),
    ("hist", {"causal": True}),
    ("hist2", {}),
    ("sort_unique", {}),
    ("shift", {}),
    ("mean", {}),
    ("two outputs", {}),
]


@pytest.mark.parametrize(("name", "options"), HOSTS, ids=str)
def test_parts_compute_what_the_compiled_model_does(name: str, options: dict[str, Any]) -> None:
    """On the program's values, a part alone writes what the whole model's component writes, padded inputs included."""
    model = compiled(name, **options)
    inputs = graft.inputs_of(model, 200)
    from tracr.graft.observed import observe

    for one in observe(graft.parts_of(model), inputs):
        maps = [fake_map(values.codes) for values in one.reads]
        module = PartModule(one.part, maps)
        values = [torch.as_tensor(np.maximum(values.classes, 0)) for values in one.reads]
        real = one.output.classes >= 0
        out = module.compute(values, torch.as_tensor(real)).numpy()
        expected = one.output.codes[np.maximum(one.output.classes, 0)]
        assert np.abs(out - expected)[real].max() < 1e-4, one.part


def fake_map(codes: Any) -> Any:
    from tracr.graft.fitting import ReadMap

    return ReadMap(np.zeros((1, len(codes))), np.zeros(len(codes)), codes)


@pytest.mark.parametrize(("name", "options"), HOSTS, ids=str)
def test_a_compiled_model_with_its_own_parts_is_right(name: str, options: dict[str, Any]) -> None:
    """Every component of a compiled model can be replaced by its own part: all answers stay right."""
    model = compiled(name, **options)
    host, inputs = model.to_torch(), graft.inputs_of(model, 150)
    whole = [part for part in graft.parts_of(model) if part.kind == "head" or part.name.endswith(".mlp")]
    for part in whole:
        assert_right_where_fitted(graft.replace(host, part.name, part, inputs, share=0.8))


def assert_right_where_fitted(grafted: Any) -> None:
    """All answers are right to inputs whose values all occur in the inputs that were fitted on."""
    bench, observed = grafted.fitted.bench, grafted.fitted.observed
    known = np.ones(len(bench.test), dtype=bool)
    for values in [grafted.fitted.output, *(one for part in observed for one in part.reads)]:
        seen = np.unique(bench.fitted_rows(values).classes)
        known &= np.isin(bench.test_rows(values).classes, [-1, *seen]).all(axis=1)
    assert known.sum() > 5
    right, _ = bench.test.score(grafted.logits(bench.test.ids))
    assert (right == bench.test.scored)[known].all(), grafted


@pytest.mark.parametrize("change", ["rotated", "with_layer_norm"])
def test_variants_are_hosts(change: str) -> None:
    """Variables are found in any basis, and through layer norms."""
    model = compiled("hist")
    variant = model.rotated(seed=3) if change == "rotated" else model.with_layer_norm()
    host, inputs = variant.to_torch(), graft.inputs_of(model)
    for part in graft.parts_of(model):
        grafted = graft.replace(host, part.name, part, inputs, share=0.8)
        assert grafted.sites.norm.kind == ("" if change == "rotated" else "layer")
        assert_right_where_fitted(grafted)


def test_several_heads_are_replaced_together() -> None:
    """A list of heads of a layer is replaced by several parts whose outputs are written together."""
    model = compiled("two outputs")
    heads = [part for part in graft.parts_of(model) if part.kind == "head" and part.layer == 0]
    assert len(heads) == 2
    inputs = graft.inputs_of(model)
    for at in ([part.name for part in heads], "blocks.0.attn"):
        assert_right_where_fitted(graft.replace(model.to_torch(), at, heads, inputs, share=0.8))
        alone: Any = graft.replace(model.to_torch(), at, heads[:1], inputs)
        test = alone.fitted.bench.test
        assert (test.score(alone.logits(test.ids))[0] != test.scored).any()


def test_a_host_is_not_changed(twin: Any) -> None:
    """Neither replacing nor running a graft leaves hooks or other weights."""
    host = twin.to_torch()
    ids = host.encode([list("abca"), list("bd")])
    before, logits = {name: one.clone() for name, one in host.state_dict().items()}, host(ids)
    grafted = graft.replace(host, "blocks.0.attn.0", graft.Part(twin.teacher, "blocks.0.attn.0"), INPUTS, refine=2)
    grafted(ids)
    assert all(torch.equal(before[name], one) for name, one in host.state_dict().items())
    assert torch.equal(logits, host(ids))
    assert not any(module._forward_hooks for module in host.modules())


INPUTS = [
    tuple(word) for word in ("abca", "bd", "ccc", "abcd", "a", "dd", "abab", "bcbcb", "dcba", "aab", "cd", "bbbb")
]


def test_hooks_see_and_change_a_graft(twin: Any) -> None:
    """The graft's own points and the host's are there; a changed read changes the answer, and only through the part."""
    host = twin.to_torch()
    inputs = graft.inputs_of(twin.teacher, 300)
    grafted = graft.replace(host, "blocks.0.attn.0", graft.Part(twin.teacher, "blocks.0.attn.0"), inputs)
    ids = host.encode([list("abca")])
    logits, cache = grafted.run_with_cache(ids)
    assert torch.allclose(logits, grafted(ids))
    assert cache["graft.read.tokens"].shape == (1, 4, 4)
    assert cache["graft.out"].shape == (1, 4, 1)
    rest = host.run(list("abca"))["blocks.0.hook_attn_out"]
    z = host.run(list("abca"))["blocks.0.attn.hook_z"][:, :, :1]
    own = torch.einsum("bphk,hkd->bpd", z, host.blocks[0].attn.W_O[:1])
    seen = cache["blocks.0.hook_attn_out"]
    assert torch.allclose(seen, rest - own + cache["graft.written"], atol=1e-4)
    swapped = grafted.run_with_hooks(ids, {"graft.read.tokens": lambda scores: scores[:, [0, 0, 0, 0]]})
    assert host.decode(grafted(ids).detach(), ids) == [[2, 1, 1, 2]]
    assert host.decode(swapped.detach(), ids) == [[4, 4, 4, 4]]  # as if the input were aaaa
    with pytest.raises(UnknownName, match="no hook point"):
        grafted.run_with_hooks(ids, {"graft.red.tokens": lambda scores: scores})


def test_a_true_part_counts_and_a_wrong_one_does_not(twin: Any) -> None:
    """The report has ablations, controls that lose, intervals around their values, and is JSON."""
    host, inputs = twin.to_torch(), graft.inputs_of(twin.teacher)
    true = graft.Part(twin.teacher, "blocks.0.attn.0", "hist")
    wrong = next(one for one in graft.library("abcd", 5, names=["shift_by"]) if one.kind == "head")
    report = graft.replace(host, "blocks.0.attn.0", true, inputs).report(others=[wrong, true])
    assert report.counts
    assert report.recovered is not None
    assert report.recovered.value > 0.99
    kinds = [line.kind for line in report.controls]
    assert kinds.count("other part") == 1
    assert {"another function", "shuffled", "linear"} < set(kinds)
    for line in report.lines:
        assert line.recovered is not None
        assert line.recovered.low <= line.recovered.value <= line.recovered.high
    assert report.line("zeroed").accuracy < 0.9 > report.line("resampled").accuracy
    assert len(report.positions) == 5
    assert report.reads == {"tokens": 1.0}
    assert report.unseen == 0.0
    assert json.loads(json.dumps(report.to_dict()))["counts"] is True
    assert "counts: better than every control" in str(report)
    partly = ShareInterval(0.131, 0.119, 0.143)
    lines = tuple(replace(one, recovered=partly) if one.kind == "replaced" else one for one in report.lines)
    assert replace(report, lines=lines).verdict == "counts: better than every control, though it recovers only 13%"
    other = report.line(wrong.title)
    assert other.recovered is not None
    assert other.recovered.value < 0.5
    with pytest.raises(UnknownName, match="no line 'mean-ablated'") as caught:
        report.line("mean-ablated")
    assert "zeroed, mean, resampled" in str(caught.value)


def test_a_report_on_other_inputs(twin: Any) -> None:
    """Inputs may be given; the graft is the same, so it is as right on them as on its own."""
    teacher = twin.teacher
    inputs = graft.inputs_of(teacher)
    part = graft.Part(teacher, "blocks.0.mlp")
    grafted = graft.replace(twin.to_torch(), "blocks.0.mlp", part, inputs[:-200], refine=3)
    data = graft.data_of_program(teacher, inputs[-200:])
    report = grafted.report(data)
    right, _ = data.score(grafted.logits(data.ids))
    assert report.inputs == 200
    assert report.line("replaced").accuracy == right.sum() / data.scored.sum()
    assert report.reads["hist_share"] > 0.9


def test_an_unneeded_component_has_nothing_to_recover(twin: Any) -> None:
    """A head that the teacher does not have may be replaced by anything; that does not count."""
    part = graft.Part(twin.teacher, "blocks.0.attn.0")
    report = graft.replace(twin.to_torch(), "blocks.0.attn.1", part, graft.inputs_of(twin.teacher, 300)).report()
    assert report.recovered is None
    assert not report.counts
    assert "nothing to recover" in report.verdict


def test_a_cost_that_may_be_chance_does_not_count(twin: Any) -> None:
    """Both ablations must cost half a point for certain; the verdict names the one that may not."""
    report = graft.replace(twin.to_torch(), "blocks.0.mlp", graft.Part(twin.teacher, "blocks.0.mlp")).report()
    assert report.counts
    assert {name: one.value for name, one in report.costs.items()} == {
        name: pytest.approx(report.line("host").accuracy - report.line(name).accuracy) for name in ("mean", "resampled")
    }
    for name, words in (("mean", "the mean ablation costs"), ("resampled", "on another input costs")):
        small = dataclasses.replace(report, costs={**report.costs, name: ShareInterval(0.02, 0.004, 0.04)})
        assert not small.counts
        assert small.verdict.startswith("does not count: ")
        assert f"{words} 0.020 [0.004, 0.040]" in small.verdict


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_nothing_counts_in_an_untrained_host(twin: Any, seed: int) -> None:
    """A host with random weights: maps trained on the right answers teach it something, but replace nothing."""
    host, part = twin.to_torch(), graft.Part(twin.teacher, "blocks.0.attn.0")
    torch.manual_seed(seed)
    with torch.no_grad():
        for one in host.parameters():
            one.normal_(std=0.3)
    grafted: Any = graft.replace(
        host, "blocks.0.attn", part, graft.inputs_of(twin.teacher, 400), refine=30, aim="answers"
    )
    report = grafted.report()
    assert not report.counts
    assert report.raises.low > 0
    assert "right more often than the host" in str(report)


def test_explain_puts_the_true_part_first(twin: Any) -> None:
    """Among the parts of a few programs, the head that counts equal tokens is first, with its equals named."""
    names = ["count", "shift_by", "hist2", "reverse", "hist_bos", "sort_unique", "length"]
    parts = graft.library("abcd", 5, names=names)
    ranking = graft.explain(twin.to_torch(), "blocks.0.attn.0", parts, graft.inputs_of(twin.teacher), grafted=4)
    best = ranking.best
    assert "hist2 blocks.0.attn.0" in (best.part.title, *best.equal)
    assert best.recovered is not None
    assert best.recovered.low > 0.98
    assert all(row.part.kind == "head" for row in ranking.rows)
    assert len(ranking.rows) == 4
    assert json.loads(json.dumps(ranking.to_dict()))["rows"][0]["part"] == best.part.title
    assert "1  1.000" in str(ranking)
    with pytest.raises(TracrError, match="no part"):
        graft.explain(twin.to_torch(), "blocks.0.mlp", parts[:1], graft.inputs_of(twin.teacher, 100))


def test_wrong_hosts_places_and_data_are_refused(twin: Any) -> None:
    """Each message names what is wrong."""
    host, part = twin.to_torch(), graft.Part(twin.teacher, "blocks.0.attn.0")
    cases: list[tuple[Any, Any, Any, Any, str]] = [
        (twin, "blocks.0.attn.0", part, INPUTS, "torch module"),
        (host, "blocks.1.attn.0", part, INPUTS, "no hook blocks.1"),
        (host, "blocks.0.attn.4", part, INPUTS, "4 heads"),
        (host, "blocks.0.mlp", part, INPUTS, "takes parts that are mlps"),
        (host, "blocks.0.attn.0", [], INPUTS, "no part"),
        (host, "blocks.0.attn.0", part, [], "no inputs"),
        (host, "blocks.0.attn.0", part, INPUTS[:1], "1 different inputs"),
        (torch.nn.Linear(2, 2), "blocks.0.mlp", part, INPUTS, "no hook"),
    ]
    for module, at, given, inputs, message in cases:
        with pytest.raises(TracrError, match=message):
            graft.replace(module, at, given, inputs)
    with pytest.raises(InputError, match="needs data with ids"):
        graft.replace(hooked(torch.nn.Linear(2, 2)), "blocks.0.mlp", graft.Part(twin.teacher, "blocks.0.mlp"), INPUTS)
    grafted = graft.replace(host, "blocks.0.attn.0", part, [one for one in INPUTS if len(one) < 4])
    with pytest.raises(InputError, match="fitted on up to 4 positions"):
        grafted(host.encode([list("abcd")]))


def hooked(module: Any) -> Any:
    for name in ("hook_resid_mid", "hook_mlp_out"):
        block = torch.nn.Module()
        module.blocks = getattr(module, "blocks", torch.nn.ModuleList([block]))
        module.blocks[0].add_module(name, torch.nn.Identity())
    return module


def test_data_of_ids() -> None:
    """Hosts that tracr did not make: ids, answers, positions before the tokens, padding."""
    data = graft.data_of_ids([(1, 2), (3,)], [[9, 1, 2], [9, 3, 0]], [[5, -1], [4, -1]], start=1, pad=0)
    assert data.scored.tolist() == [[True, False], [True, False]]
    logits = np.zeros((2, 3, 6))
    logits[0, 1, 5] = logits[1, 1, 3] = 20.0
    right, losses = data.score(logits)
    assert right.tolist() == [[True, False], [False, False]]
    assert losses[0, 0] < 1e-6 < losses[1, 0]
    assert losses[0, 1] == 0
    for ids, answers in (([[9, 1, 2], [9, 3]], [[5, -1], [4, -1]]), ([[9, 1, 2], [9, 3, 0]], [[5, "x"], [4, -1]])):
        with pytest.raises(InputError, match="tables of whole numbers"):
            graft.data_of_ids([(1, 2), (3,)], ids, answers, start=1, pad=0)
    with pytest.raises(InputError, match="need ids"):
        graft.data_of_ids([(1, 2)], [[1, 2, 3]], [[1, 2]])
    with pytest.raises(TracrError, match="different lengths"):
        graft.data_of_ids([(1, 2), (3,)], [[1, 2], [3, 0]], [[1, 2], [3, -1]])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["count", "hist", "hist_so_far", "mean_so_far", "shift_by"])
def test_known_answers(name: str) -> None:
    """In every committed twin, every true part recovers at least 99 %, and its function is first in the library."""
    twin: Any = tracr.load(TWINS / name)
    teacher, host = twin.teacher, twin.to_torch()
    options, inputs = teacher.options, graft.inputs_of(teacher, 1500)
    own = graft.parts_of(teacher, "true")
    parts = [*graft.library(options.vocab, options.max_seq_len, causal=options.causal), *own]
    for part in own:
        report = graft.replace(host, part.name, part, inputs, refine=100).report()
        assert report.cost > 0.05
        assert report.recovered is not None
        assert report.recovered.value >= 0.99
        ranking = graft.explain(host, part.name, parts, inputs)
        assert part.title in (ranking.best.part.title, *ranking.best.equal)


@pytest.mark.slow
@pytest.mark.parametrize("at", ["blocks.0.attn.0", "blocks.0.mlp"])
def test_a_damaged_twin_is_repaired(twin: Any, at: str) -> None:
    """Noise on all weights of one component costs accuracy; its part brings it back."""
    host = twin.to_torch()
    torch.manual_seed(0)
    attention, neurons = host.blocks[0].attn, host.blocks[0].mlp
    held = [neurons.W_in, neurons.W_out] if at.endswith("mlp") else [attention.W_Q, attention.W_K, attention.W_V]
    with torch.no_grad():
        for weights in held if at.endswith("mlp") else [one[0] for one in held]:
            weights.add_(torch.randn_like(weights) * weights.std() * 3)
    part = graft.Part(twin.teacher, at)
    grafted: Any = graft.replace(host, at, part, graft.inputs_of(twin.teacher), refine=200, aim="answers")
    test = grafted.fitted.bench.test
    before = test.score(grafted.fitted.bench.test_record.logits)[0].sum() / test.scored.sum()
    after = test.score(grafted.logits(test.ids))[0].sum() / test.scored.sum()
    assert before < 0.8
    assert after > 0.99


def test_positions_where_nothing_is_asked(twin: Any) -> None:
    """A report on data that asks at one position only: the others have no recovered share."""
    inputs = [one for one in graft.inputs_of(twin.teacher, 1500) if len(one) == 5]
    known = graft.data_of_program(twin.teacher, inputs)
    answers = np.full(known.real.shape, -1)
    answers[:, 2:4] = known.answers[0].wanted[:, 2:4]
    data = graft.data_of_ids(inputs, known.ids, answers, start=1)
    for tokens in ("all", "scored"):
        part = graft.Part(twin.teacher, "blocks.0.mlp")
        report = graft.replace(twin.to_torch(), "blocks.0.mlp", part, data, tokens=tokens).report()
        assert [one is None for one in report.positions] == [True, True, False, False, True]
        assert report.recovered is not None
        assert report.recovered.value > 0.9


def test_maps_at_scored_tokens_know_nothing_of_the_others(twin: Any) -> None:
    """If the answers at the last token only count, its maps are fitted there: nothing else is written right."""
    inputs = [one for one in graft.inputs_of(twin.teacher, 600) if len(one) == 4]
    known = graft.data_of_program(twin.teacher, inputs)
    answers = np.full(known.real.shape, -1)
    answers[:, 3] = known.answers[0].wanted[:, 3]
    data = graft.data_of_ids(inputs, known.ids, answers, start=1)
    grafts = [
        graft.replace(twin.to_torch(), "blocks.0.mlp", graft.Part(twin.teacher, "blocks.0.mlp"), data, tokens=tokens)
        for tokens in ("all", "scored")
    ]
    rows = [one.fitted.bench.gram.rows for one in grafts if one.fitted is not None]
    assert len(rows[0]) == 4 * len(rows[1])
    with pytest.raises(TracrError, match="tokens"):
        graft.replace(twin.to_torch(), "blocks.0.mlp", grafts[0].parts, data, tokens="last")


def test_inputs_to_fit_with_may_all_be_shorter_than_one_to_test_with(twin: Any) -> None:
    """One long input among short ones, on either side of the division: the graft runs and reports."""
    inputs = [one for one in graft.inputs_of(twin.teacher, 600) if len(one) < 4] + [tuple("abcab")]
    sides = set()
    for seed in range(6):
        grafted = graft.replace(
            twin.to_torch(), "blocks.0.mlp", graft.Part(twin.teacher, "blocks.0.mlp"), inputs, seed=seed
        )
        assert grafted.fitted is not None
        sides.add(inputs[-1] in grafted.fitted.bench.fit.inputs)
        assert grafted.report().line("replaced").accuracy > 0.8
    assert sides == {True, False}
    short = graft.data_of_program(twin.teacher, inputs[:-1])
    other = graft.replace(twin.to_torch(), "blocks.0.mlp", grafted.parts, short)
    with pytest.raises(InputError, match="up to 3 tokens, not 5"):
        other.report(graft.data_of_program(twin.teacher, inputs))
