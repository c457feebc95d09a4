"""A replacement counts only for what the part's program says; the stream is read as the host's layer norm gives it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracr
from tracr import zoo
from tracr.rasp import rasp

pytest.importorskip("torch")

import torch

from tracr import graft
from tracr.graft.host import HostModel
from tracr.graft.norm import HostNorm
from tracr.graft.place import place_of
from tracr.graft.recovery import ShareInterval
from tracr.graft.reporting import departure


def added(place: Callable[[int], int]) -> tracr.CompiledModel:
    """The sum, modulo 4, of a token and the one at another place."""
    there = rasp.Map(place, rasp.indices).named("there")
    other = rasp.Aggregate(rasp.Select(rasp.indices, there, rasp.Comparison.EQ), rasp.tokens, default=0).named("other")
    program = rasp.SequenceMap(lambda one, two: (one + two) % 4, other, rasp.tokens).named("sum")
    return tracr.compile(program, [0, 1, 2, 3], 6, causal=True)


def neurons_of(model: tracr.CompiledModel, name: str) -> graft.Part:
    """The MLP that adds."""
    return [one for one in graft.parts_of(model, name) if one.kind == "mlp"][-1]


def test_a_part_that_is_right_because_it_is_read_wrong_does_not_count() -> None:
    """Both parts add two tokens. The host adds the token at half the place, and the wrong part says: the token before.

    A map that should read the token before finds the other one, which the stream has: what is written is right, and
    every control loses. It is not what the part's program says.
    """
    model, other = added(lambda place: place // 2), added(lambda place: max(0, place - 1))
    true, wrong = neurons_of(model, "half"), neurons_of(other, "before")
    inputs = [one for one in graft.inputs_of(model, 900) if len(one) == 6]
    reports = [graft.replace(model.to_torch(), true.name, part, inputs, share=0.7).report() for part in (true, wrong)]
    assert reports[0].counts
    assert reports[0].excess == ShareInterval(0.0, 0.0, 0.0)
    assert reports[0].line("program").accuracy == reports[0].line("replaced").accuracy == 1.0
    assert reports[1].recovered is not None
    assert reports[1].recovered.value > 0.8
    assert all(one.beaten for one in reports[1].controls)
    assert reports[1].reads["other"] < 0.75
    assert reports[1].excess.low > 0.1
    assert not reports[1].faithful
    assert not reports[1].counts
    assert "than with the output that its program says" in str(reports[1])
    assert reports[1].to_dict()["excess"]["value"] == reports[1].excess.value


def test_the_programs_line_is_that_of_right_reads() -> None:
    """With a map that reads everything wrong, it is what the graft does if a hook says the right values."""
    model = zoo.load("hist", vocab="abc", max_seq_len=4)
    part = graft.Part(model, "blocks.0.attn.0")
    grafted: Any = graft.replace(model.to_torch(), "blocks.0.attn.0", part, graft.inputs_of(model, 120))
    grafted.compiled_parts[0].reads[0].bias.data[0] += 1e9  # every token is read as the first one
    report, bench = grafted.report(), grafted.fitted.bench
    right = bench.test_rows(grafted.fitted.observed[0].reads[0]).classes
    scores = torch.eye(3)[torch.as_tensor(np.maximum(right, 0))]
    told = grafted.run_with_hooks(torch.as_tensor(bench.test.ids), {"graft.read.tokens": lambda _: scores})
    accuracy = bench.test.score(told.detach().numpy())[0].sum() / bench.test.scored.sum()
    assert report.line("program").accuracy == pytest.approx(accuracy, abs=1e-12)
    assert report.line("replaced").accuracy < 0.7 < accuracy
    difference = report.line("replaced").accuracy - report.line("program").accuracy
    assert report.excess.value == pytest.approx(difference, abs=1e-12)
    assert report.faithful


def test_departures_need_two_points_and_certainty() -> None:
    """A few tokens are chance, and maps that write are fitted to what is read."""
    assert departure(ShareInterval(0.05, -0.01, 0.1)) is None
    assert departure(ShareInterval(0.02, 0.01, 0.03)) is None
    assert departure(ShareInterval(-0.3, -0.4, -0.2)) is None
    assert departure(ShareInterval(0.03, 0.01, 0.05)) is not None


@pytest.mark.parametrize("name", ["count", "hist"])
def test_layer_norms_with_a_large_epsilon(name: str) -> None:
    """Compiled models have layer norms that change nothing: what a component reads is the stream, at any size."""
    model = zoo.load(name, vocab="abcd", max_seq_len=5)
    variant: Any = model.with_layer_norm()
    host, inputs = variant.to_torch(), graft.inputs_of(model, 500)
    for part in graft.parts_of(model):
        grafted = graft.replace(host, part.name, part, inputs, share=0.75)
        assert grafted.sites.norm.epsilon == variant.norm.epsilon
        report = grafted.report()
        assert set(report.reads.values()) == {1.0}
        assert report.line("replaced").accuracy == 1.0


def test_the_epsilon_of_a_norm_is_the_hosts() -> None:
    """From the host's configuration, or from the norm itself; the stream is normalised with it."""
    host: Any = torch.nn.Module()
    host.blocks = torch.nn.ModuleList([torch.nn.Module()])
    for name in ("hook_resid_mid", "hook_mlp_out"):
        host.blocks[0].add_module(name, torch.nn.Identity())
    assert HostModel(host).require(place_of("blocks.0.mlp")).norm == HostNorm("")
    host.cfg = type("Config", (), {"normalization_type": "LN", "eps": 0.5})()
    assert HostModel(host).require(place_of("blocks.0.mlp")).norm == HostNorm("layer", 0.5)
    host.cfg.normalization_type = "RMS"
    host.blocks[0].ln2 = torch.nn.LayerNorm(4, eps=0.25)
    norm = HostModel(host).require(place_of("blocks.0.mlp")).norm
    assert norm == HostNorm("rms", 0.25)
    rows = np.array([[1.0, -1.0, 2.0, 0.0]])
    np.testing.assert_allclose(norm(torch.as_tensor(rows)), rows / np.sqrt(1.5 + 0.25))
    np.testing.assert_allclose(
        HostNorm("layer", 4.0, 2)(torch.as_tensor(rows)), [[2 / np.sqrt(5), -2 / np.sqrt(5), 2.0, 0.0]]
    )
