"""Scheduling within the smallest depth: live widths, and the heuristic that lowers them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import tracr
from tests.agreement import assert_agrees, compile_quietly, some_inputs
from tests.compiler.circuits import DYCK2, DYCK3, random_circuit, random_models
from tracr.compiler.layers.assign import assign_to_layers, in_sublayers, merge_heads, stack
from tracr.compiler.layers.narrow import narrow, narrowest
from tracr.compiler.layers.placing import placing_of
from tracr.craft.linear import BOS, ONE, PAD
from tracr.craft.variables import Variable
from tracr.ir.circuit import Component, Frame
from tracr.ir.in_place import as_new, as_old
from tracr.ir.liveness import live_widths
from tracr.rasp import programs, rasp

# Live widths


def widths_by_definition(frame: Frame, sublayers: Sequence[Sequence[Component]]) -> list[int]:
    """Direction by direction and sub-layer by sub-layer: there from its write until the MLP that clears it, and in this
    one, too, unless what it writes can take its place."""
    special = [BOS, PAD, ONE] if frame.options.level == 0 else [BOS, PAD]
    written: dict[Variable, int] = dict.fromkeys((*special, *(source.variable for source in frame.embedded)), -1)
    for time, parts in enumerate(sublayers):
        written |= {variable: time for part in parts for variable, _ in part.writes}
    kept = {variable for linear in frame.unembedded for variable in linear.blocks} | set(special)
    directions = [(variable, start) for variable, start in written.items() for _ in frame.kept(variable)]

    def cleared(variable: Variable, start: int) -> float:
        if variable in kept:
            return float("inf")
        readers = [time for time, parts in enumerate(sublayers) for part in parts if variable in part.reads]
        last = max(readers, default=start + 1)
        return last if last % 2 else last + 1

    spans = [(variable, start, cleared(variable, start)) for variable, start in directions]
    widths = []
    for time in range(-1, len(sublayers)):
        there = sum(start <= time <= end for _, start, end in spans)
        old = [variable for variable, _, end in spans if end == time]
        new = [variable for variable, start, _ in spans if start == time]
        widths.append(there - most_pairs(old, new))
    return widths


def most_pairs(old: list[Variable], new: list[Variable]) -> int:
    """How many of the new directions can take the place of old ones, by augmenting paths."""
    taken: dict[int, int] = {}

    def place(number: int, tried: set[int]) -> bool:
        for slot, variable in enumerate(old):
            if slot not in tried and 0 < as_new(new[number]) <= as_old(variable):
                tried.add(slot)
                if slot not in taken or place(taken[slot], tried):
                    taken[slot] = number
                    return True
        return False

    return sum(place(number, set()) for number in range(len(new)))


@pytest.mark.parametrize("level", [0, 1, 2])
def test_live_widths_are_what_they_are_defined_as(level: int) -> None:
    """For compiled programs and for random circuits, including merged heads and unread variables."""
    schedules = [model.schedule for model in random_models(range(40), level=level)]
    schedules += [merge_heads(stack(assign_to_layers(random_circuit(seed, 9)))) for seed in range(20)]
    for schedule in schedules:
        sublayers = [components for _, components in schedule.sublayers()]
        assert list(live_widths(schedule, schedule.sublayers())) == widths_by_definition(schedule, sublayers)


@pytest.mark.slow
def test_slots_reach_the_largest_width() -> None:
    """Where slots are used again the residual stream is as wide as the peak says; elsewhere each has its own."""
    models = random_models(range(60, 120), level=2)
    for example in programs.EXAMPLES.values():
        models.append(compile_quietly(example.program, example.vocab, example.max_seq_len, level=2))
    reused = [model for model in models if model.d_model < len(model.layout.directions)]
    assert len(reused) > 20
    assert all(model.d_model == model.schedule.peak for model in reused)
    assert all(model.d_model >= model.schedule.peak for model in models)


def test_live_widths_of_a_chain() -> None:
    """tokens and BOS and PAD; then a copy; then another, for which the first is still there: only an MLP clears."""
    before = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.EQ)
    first = rasp.Aggregate(before, rasp.tokens, default="a")
    second = rasp.Aggregate(before, first, default="a")
    schedule = compile_quietly(second, "ab", 3).schedule
    stays = 2  # BOS and PAD
    widths = live_widths(schedule, schedule.sublayers())
    assert widths == tuple(stays + width for width in (5, 2 + 5, 2 + 5, 2 + 5, 2 + 5))


# The heuristic


@pytest.mark.slow
def test_the_heuristic_is_as_deep_and_never_wider() -> None:
    """Nor does it read anything before it is written."""
    circuits = [model.circuit for model in random_models(range(60), level=2)]
    circuits += [random_circuit(seed, 5 + seed % 25) for seed in range(40)]
    narrower = 0
    for circuit in circuits:
        soonest, chosen = assign_to_layers(circuit), narrow(circuit)
        chosen.verify()
        assert len(list(chosen.sublayers())) == len(list(soonest.sublayers()))
        assert chosen.placement.fewest <= chosen.peak <= soonest.peak
        assert sum(len(components) for _, components in chosen.sublayers()) == len(circuit.components)
        narrower += chosen.peak < soonest.peak
    assert narrower > 10


@pytest.mark.parametrize(("case", "layers", "width"), [(DYCK3, 5, 27), (DYCK2, 4, 25)])
def test_shuffle_dyck_is_small(case: tuple[rasp.SOp, str, int], layers: int, width: int) -> None:
    """The goals of the optimiser, which the original misses by far (9 layers and 73 dimensions, 8 and 55)."""
    program, vocab, length = case
    model = tracr.compile(program, vocab, length, level=2)
    assert model.n_layers <= layers
    assert model.d_model <= width
    assert_agrees(model, program, some_inputs(vocab, length, 200))


def test_the_pass_can_be_switched_off() -> None:
    """Then every component is as early as it can be."""
    model = tracr.compile(*DYCK3, level=2, passes={"schedule": False})
    assert model.schedule.placement == assign_to_layers(model.circuit).placement
    assert "solver" not in model.show("schedule")
    assert tracr.compile(*DYCK3, level=2).show("schedule").splitlines()[-1].startswith("solver: not run: heuristic; ")


def test_components_stand_in_sub_layers_of_their_kind() -> None:
    """Whatever a saved file says."""
    circuit = random_circuit(0, 6)
    times = assign_to_layers(circuit).placement.times
    with pytest.raises(tracr.TracrError, match="cannot be in sub-layer"):
        in_sublayers(circuit, [time + 1 for time in times])


def test_costs_are_those_of_the_merged_schedule() -> None:
    """The minimised costs are those of the final schedule: live directions, heads, heads × d_head."""
    for seed in range(30):
        circuit = random_circuit(seed, 4 + seed)
        placing = placing_of(circuit)
        for times in (placing.first, placing.last, narrowest(placing)):
            schedule = merge_heads(stack(in_sublayers(circuit, times)))
            schedule.verify()
            heads = [layer.heads for layer in schedule.layers]
            sizes = [len(part) * max((head.rank for head in part), default=0) for part in heads]
            assert placing.cost(times)[:3] == (schedule.peak, sum(map(len, heads)), sum(sizes))


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), float("inf"), "10", True])
def test_the_limit_is_a_number_of_seconds(seconds: Any) -> None:
    with pytest.raises(tracr.CompileError, match="solve_seconds must be a positive number"):
        tracr.compile(rasp.tokens, "ab", 3, solve_seconds=seconds)
