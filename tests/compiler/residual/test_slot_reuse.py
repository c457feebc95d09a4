"""Slots are reused without a change of any output: where, when, and at what cost."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings

import tracr
from tests.agreement import compile_quietly
from tests.strategies import Case, cases
from tests.tally import compile_case, mostly_compared
from tracr.craft.linear import BOS, ONE, PAD
from tracr.ir.layout import ALWAYS
from tracr.rasp import programs, rasp

DYCKS = {"shuffle_dyck2": (["()", "{}"], 5, 4, 25), "shuffle_dyck3": (["()", "{}", "[]"], 6, 5, 27)}


@pytest.mark.parametrize("name", DYCKS)
def test_a_narrow_stream(name: str) -> None:
    """Programs with many variables that do not live long; every input up to a length is right."""
    pairs, longest, layers, width = DYCKS[name]
    model = tracr.compile(programs.make_shuffle_dyck(pairs), "".join(pairs), longest, level=2)
    assert (model.n_layers <= layers, model.d_model <= width) == (True, True)
    assert model.d_model < len(model.residual.dimensions)
    assert model.verify(20_000)


def live_widths(model: tracr.CompiledModel) -> list[int]:
    """How many directions are needed after the embedding and after each sub-layer, by definition."""
    layout, circuit = model.layout, model.circuit
    reads: dict[object, int] = dict.fromkeys((BOS, PAD, ONE), ALWAYS)
    for time, parts in layout.schedule.sublayers():
        for part in parts:
            if part.writes:
                reads.update({variable: max(time, reads.get(variable, -1)) for variable in part.reads})
    for linear in circuit.unembedded:
        reads.update(dict.fromkeys(linear.blocks, ALWAYS))
    return [
        sum(one.since <= time and reads.get(one.variable, -1) > time for one in layout.directions)
        for time in range(-1, 2 * len(layout.layers))
    ]


def check_layout(model: tracr.CompiledModel) -> None:
    """Whatever is read is there: written before, and cleared, if at all, at its last reader's or later."""
    layout = model.layout
    assert max(live_widths(model), default=0) <= model.d_model
    turns = {(one.variable, one.place): one for one in layout.directions}
    for time, parts in layout.schedule.sublayers():
        for part in parts:
            for variable, block in ((v, b) for linear in part.maps for v, b in linear.blocks.items()):
                for place in np.flatnonzero(block.any(axis=1)).tolist():
                    if (variable, place) in turns:
                        assert turns[variable, place].since < time <= turns[variable, place].until
            assert all(time % 2 == 1 for _ in getattr(part, "clears", ()))


@pytest.mark.parametrize("name", programs.EXAMPLES)
def test_the_library(name: str) -> None:
    """No direction is read outside its turn, and no model is larger for reusing slots."""
    example = programs.EXAMPLES[name]
    apart, model = (
        tracr.compile(example.program, example.vocab, example.max_seq_len, level=2, passes={"reuse": on})
        for on in (False, True)
    )
    check_layout(model)
    assert model.d_model <= apart.d_model
    assert model.n_parameters <= apart.n_parameters
    assert not any(one.until < ALWAYS for one in apart.layout.directions)


@mostly_compared()
@given(case=cases(max_ops=12))
@example(case=Case(201, (1, 2, 3), 10, 1, False, False))  # a head copies a number that rounding made negative
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_programs(case: Case) -> None:
    """The same on random programs; a cleared slot is exactly zero until it is written again."""
    model = compile_case(case, level=2)
    check_layout(model)
    run = model.run(case.inputs(6))
    for number in range(model.n_layers):
        for hook in ("hook_resid_mid", "hook_resid_post"):
            name = f"blocks.{number}.{hook}"
            free = [slot for slot, held in enumerate(model.residual.at(name)) if held is None]
            assert not run[name][..., free].any()


def test_what_takes_turns_is_labelled() -> None:
    """By its own label; by what a place of the model holds; a dimension by itself is ambiguous."""
    example = programs.EXAMPLES["dyck1"]
    model = tracr.compile(example.program, example.vocab, example.max_seq_len, level=2)
    turns: dict[int, list[str]] = {}
    for one in sorted(model.residual, key=lambda one: one.since):
        turns.setdefault(one.index, []).append(one.label)
    slot, labels = next((slot, labels) for slot, labels in turns.items() if len(labels) > 1)
    assert model.residual.labels[slot] == " | ".join(labels)
    assert len(model.residual.labels) == len(model.residual) == model.d_model
    with pytest.raises(tracr.TracrError, match=re.escape(f"dimension {slot} holds {labels[0]}, then {labels[1]}")):
        model.residual[slot]
    first, second = model.residual[labels[0]], model.residual[labels[1]]
    assert first.index == second.index == slot
    assert first.until <= second.since
    assert model.residual.at("hook_embed")[slot] == first
    assert model.residual.at(f"blocks.{second.since // 2}.hook_resid_post")[slot] == second
    assert f"cleared by blocks.{first.until // 2}.mlp" in str(model.residual)
    with pytest.raises(tracr.TracrError, match="not an activation of the residual stream"):
        model.residual.at("blocks.0.attn.hook_q")


def test_a_stream_has_a_dimension() -> None:
    """Also where nothing is ever read, because the output is 0."""
    case = Case(147, ("x",), 4, 4, causal=True)
    model = compile_quietly(case.program, case.vocab, 4, causal=True, level=2)
    assert model.d_model >= 1
    assert model.verify()


def test_at_bos_nothing_is_left_behind() -> None:
    """A default carried by BOS is right in a slot that held something at BOS before: shares are 1 there."""
    counts = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)).named("counts")
    twice = (counts > 1).named("twice")
    found = rasp.Aggregate(rasp.Select(twice, twice, lambda k, q: k and not q), rasp.indices, default=7).named("found")
    model = tracr.compile(rasp.categorical(found), "ab", 4, level=2)
    assert any(one.until < ALWAYS for one in model.layout.directions)
    assert model.verify()


@pytest.mark.parametrize("name", ["hist2", "count_less_freq", "shuffle_dyck2"])
def test_what_nothing_reads_is_cleared_after_it_is_written(name: str) -> None:
    """Without pruning there are directions nobody reads: the MLP that writes one cannot clear it at the same time."""
    example = programs.EXAMPLES[name]
    model = compile_quietly(example.program, example.vocab, example.max_seq_len, level=2, passes={"prune": False})
    assert model.d_model < len(model.layout.directions)
    assert model.verify(500)
