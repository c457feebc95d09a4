"""One type per stage: each value is complete when it is made, `verify` finds broken ones, and nothing is kept twice."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tests.agreement import compile_quietly
from tests.compiler.circuits import random_circuit, random_models
from tests.strategies import VOCABULARIES, Case
from tracr.compiler.frontend.infer import infer
from tracr.compiler.frontend.trace import TracedGraph, trace
from tracr.compiler.layers.assign import assign_to_layers, in_sublayers, stack
from tracr.compiler.program.encodings import choose_encodings
from tracr.compiler.program.rewrite import with_rewrites
from tracr.compiler.program.share import drop_unused, share
from tracr.craft.linear import LinearMap
from tracr.ir.circuit import Circuit
from tracr.ir.graph import Graph, Node
from tracr.ir.inferred import Inferred
from tracr.ir.options import LEVELS, Options
from tracr.ir.program import Program, SOpNode, Stored
from tracr.ir.rewriting import rewriting_of
from tracr.nearness import same_value
from tracr.rasp import rasp
from tracr.rasp.annotations import Encoding
from tracr.runtime.table_interpreter import evaluate_batch


@cache
def inferred_programs() -> list[tuple[TracedGraph, Inferred]]:
    """What can be inferred of some random programs, of every other one together with a copy of it."""
    found = []
    for seed in range(60):
        case = Case(seed, VOCABULARIES[seed % len(VOCABULARIES)], 4 + seed % 16, 1 + seed % 5, seed % 3 == 0)
        options = Options(case.vocab, case.max_seq_len, case.causal, bos="<b>", pad="<p>")
        outputs = {"output": case.program}
        if seed % 2:
            outputs["copy"] = case.program  # drawn anew
        traced = trace(outputs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tracr.TracrWarning)
            try:
                found.append((traced, infer(traced, options)))
            except tracr.CompileError:
                continue
    assert len(found) > 40
    return found


@cache
def models(level: int) -> list[tracr.CompiledModel]:
    """Models of random programs."""
    found = random_models(range(40), level=level)
    assert len(found) > 25
    return found


def broken(value: Any, match: str, **changes: Any) -> None:
    """`verify` says what is wrong with the value once it is changed, and nothing before."""
    value.verify()
    with pytest.raises(tracr.TracrError, match=match):
        replace(value, **changes).verify()


# Graph


def test_the_graph_of_a_loaded_model_is_the_same(tmp_path: Path) -> None:
    """Equal node for node; only the expressions are gone."""
    for number, model in enumerate(models(1)[:5]):
        model.save(tmp_path / str(number))
        loaded = tracr.load(tmp_path / str(number))
        assert isinstance(loaded, tracr.CompiledModel)
        assert loaded.graph == model.graph
        assert [type(expr).__name__ for expr in model.expressions] == [node.kind for node in loaded.graph.nodes]
        assert loaded.expressions == ()


def test_broken_graphs_are_found() -> None:
    """Edges, labels and outputs."""
    first, second = Node("tokens", "Tokens", ()), Node("same", "Select", (0, 0))
    graph = Graph((first, second), (("output", 0),))
    broken(graph, "comes before", nodes=(replace(first, children=(1,)), second))
    broken(graph, "share a label", nodes=(first, replace(second, label="tokens")))
    broken(graph, "no node for output", outputs=(("output", 2),))
    broken(graph, "not an s-op", outputs=(("output", 1),))


def test_broken_traces_are_found() -> None:
    """The numbers of nodes are their places."""
    traced = trace({"output": rasp.Map(lambda x: x, rasp.tokens)})
    broken(traced, "number of another", nodes=traced.nodes[::-1])


# Inferred and Program


def test_inferred_programs_are_complete() -> None:
    """Every node knows the first that is the same, before and after sharing and dropping; none has an encoding."""
    shared = 0
    for _, inferred in inferred_programs():
        for value in (inferred, share(inferred), drop_unused(inferred), drop_unused(share(inferred))):
            value.verify()
            assert set(value.same) >= {*value.sops, *value.selectors}
            assert not any(hasattr(node, "encoding") for node in value.sops.values())
        assert all(number == first for number, first in share(inferred).same.items())
        shared += len(share(inferred).sops) < len(inferred.sops)
    assert shared > 10


def test_encodings_make_a_program() -> None:
    """The program is complete: every s-op has an encoding, and the optimiser has made no choice yet."""
    for _, inferred in inferred_programs():
        try:
            program = choose_encodings(drop_unused(inferred))
        except tracr.CompileError:
            continue
        program.verify()
        assert isinstance(program, Program)
        assert program.stored == Stored()
        assert all(isinstance(node, SOpNode) for node in program.sops.values())
        assert program.written is inferred.written


def test_broken_programs_are_found() -> None:
    """What each stage promises beyond the tables."""
    doubled = rasp.Map(lambda x: x + x, rasp.tokens)
    inferred = infer(trace({"output": doubled}), Options(("a", "b"), 3))
    broken(inferred, "same as a node that does not exist", same={**inferred.same, 1: 7})
    broken(inferred, "no s-op for output", outputs=(("output", 7),))
    program = choose_encodings(inferred)
    numerical = {number: replace(node, encoding=Encoding.NUMERICAL) for number, node in program.sops.items()}
    broken(program, "is numerical but takes", sops=numerical)
    broken(program, "not part of the program", stored=Stored(sums=(7,)))
    broken(program, "comes before", sops=dict(reversed(program.sops.items())))


# Rewriting


def test_rewriting_is_kept_as_data() -> None:
    """What is lowered follows from the program and the changes, computes the same, and says where the rest went."""
    absorbed = 0
    for model in models(2):
        rewriting = model.circuit.rewriting
        lowered = rewriting.applied(model.program)
        lowered.verify()
        gone = {node.label for number, node in model.program.sops.items() if number not in lowered.sops}
        assert gone <= set(rewriting.absorbed) <= {node.label for node in model.program.sops.values()}
        shortest, longest = model.program.lengths
        vocab = model.options.vocab
        inputs = [[vocab[(row * place + row) % len(vocab)] for place in range(longest)] for row in range(8)]
        inputs += [[vocab[0]] * shortest]
        first, second = (evaluate_batch(one, inputs) for one in (model.program, lowered))
        assert (first.errors == second.errors).all()
        for name, rows in first.outputs().items():
            for row, own, raises in zip(rows, second.outputs()[name], first.errors, strict=True):
                assert raises or all(map(same_value, row, own))
        absorbed += bool(gone)
    assert absorbed > 5


def test_a_program_that_was_not_rewritten_has_no_changes() -> None:
    """Applied to the program they give it back, node for node."""
    for model in models(1)[:10]:
        rewriting = model.circuit.rewriting
        assert not rewriting.ops
        assert not rewriting.absorbed
        assert rewriting.applied(model.program).sops == model.program.sops


def test_a_rewrite_that_changes_what_an_s_op_holds_is_found() -> None:
    """The program that a model is made of is verified against the one it came from."""
    program = compile_quietly(rasp.Map(lambda x: x + 1, rasp.tokens), [0, 1], 3).program
    (output,) = (number for _, number in program.outputs)
    rewritten = with_rewrites(program, {output: replace(program.sops[output].op)})
    assert rewriting_of(rewritten).ops.keys() == {output}
    node = rewritten.sops[output]
    other = Encoding.NUMERICAL if node.encoding is Encoding.CATEGORICAL else Encoding.CATEGORICAL
    broken(rewritten, "changed the domain", sops={**rewritten.sops, output: replace(node, encoding=other)})


def reachable(value: object, seen: set[int]) -> Iterator[object]:
    """The value and all it refers to, through data classes, mappings and sequences."""
    if id(value) in seen:
        return
    seen.add(id(value))
    yield value
    if is_dataclass(value) and not isinstance(value, type):
        for one in fields(value):
            yield from reachable(getattr(value, one.name), seen)
    elif isinstance(value, Mapping):
        for item in value.items():
            yield from reachable(item, seen)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from reachable(item, seen)


@pytest.mark.parametrize("level", LEVELS)
def test_a_model_refers_to_one_program_and_one_circuit(level: int) -> None:
    """And the layers refer to no circuit: they hold the components."""
    for model in models(level)[:15]:
        found = list(reachable(model.compilation, set()))
        assert [one for one in found if isinstance(one, Program)] == [model.program]
        assert [one for one in found if isinstance(one, Circuit)] == [model.circuit]
        below = list(reachable(model.layout, set()))
        assert not [one for one in below if isinstance(one, Circuit | Program)]


# Circuit and Schedule


@pytest.mark.parametrize("level", LEVELS)
def test_circuits_are_complete(level: int) -> None:
    """Which directions are part of the model is known of every variable, at every level; folded variables have none."""
    for model in models(level):
        circuit = model.circuit
        circuit.verify()
        for variable in (*(source.variable for source in circuit.embedded), *circuit.variables):
            kept = list(circuit.kept(variable))
            assert kept == sorted(set(kept))
            assert set(kept) <= set(range(variable.size))
            assert level > 0 or len(kept) == variable.size
        assert not any(circuit.kept(variable) for variable in circuit.folded)


@pytest.mark.parametrize("level", LEVELS)
def test_the_layers_hold_what_the_circuit_computes(level: int) -> None:
    """Every variable that a component of the circuit writes is written in the sub-layer where it was placed."""
    for model in models(level):
        schedule = model.schedule
        schedule.verify()
        written = {
            (variable, number)
            for number, components in schedule.sublayers()
            for component in components
            for variable, _ in component.writes
        }
        assert written == {
            (variable, time)
            for component, time in zip(model.circuit.components, schedule.placement.times, strict=True)
            for variable, _ in component.writes
        }


@pytest.mark.parametrize("level", LEVELS)
def test_what_reads_folded_variables_is_known_beside_the_maps(level: int) -> None:
    """Of circuits and schedules: a map of a component, or of a folded variable, each folded variable once is read."""
    folded = 0
    for model in models(level):
        for frame in (model.circuit, model.schedule):
            assert {variable for own in frame.through.values() for variable in own.blocks} <= set(frame.folded)
        assert set(model.schedule.blurred) <= set(model.schedule.folded)
        folded += len(model.schedule.folded)
    assert (folded > 10) == (level == 2)


def test_broken_circuits_and_schedules_are_found() -> None:
    """Order, kinds of sub-layers, and matrices, also of components that were merged."""
    circuit = random_circuit(3, 8)
    broken(circuit, "before it is written", components=circuit.components[::-1])
    placed = assign_to_layers(circuit)
    times = placed.placement.times
    broken(placed, "cannot be in", placement=replace(placed.placement, times=tuple(time + 1 for time in times)))
    schedule = stack(in_sublayers(circuit, times))
    layer = next(layer for layer in schedule.layers if layer.mlps)
    part = layer.mlps[0]
    wide = replace(part, read=LinearMap({v: np.ones((v.size, 1)) for v in part.read.blocks}, 1))
    changed = tuple(replace(one, mlps=(wide, *one.mlps[1:])) if one is layer else one for one in schedule.layers)
    broken(schedule, "with a matrix", layers=changed)
    stray = LinearMap({part.writes[0][0]: np.ones((part.writes[0][0].size, 1))}, 1)
    broken(schedule, "no component has the map", through={stray: stray})
    broken(circuit, "no component has the map", through={stray: stray})
    assert len(schedule.layers) > 1
    broken(schedule, "before it is written", layers=schedule.layers[::-1])
