"""Nodes and edges are what the weights and the construction say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tracr
from tests.ground_truth.construction import check_edges
from tests.library import compiled
from tracr.ground_truth.data import GRANULARITIES, Attends
from tracr.ir.options import LEVELS
from tracr.rasp import programs, rasp

library = pytest.mark.parametrize(("name", "level"), [(name, level) for name in programs.EXAMPLES for level in LEVELS])


@library
def test_edges_are_those_of_the_construction(name: str, level: int) -> None:
    """What the weights say and what the compiler meant is the same."""
    model = compiled(name, level)
    check_edges(model)


def test_edges_follow_the_weights() -> None:
    """A head whose key weights for PAD are deleted has that edge no more."""
    model = compiled("hist")
    before = {str(edge) for edge in model.ground_truth.edges()}
    layer = model.parameters.layers[0]
    blind = layer.W_K * (np.array(model.residual.labels) != "tokens:pad")[:, None]
    parameters = replace(model.parameters, layers=(replace(layer, W_K=blind),))
    changed = replace(model, compilation=replace(model.compilation, parameters=parameters))
    assert before - {str(edge) for edge in changed.ground_truth.edges()} == {"embed -> blocks.0.attn.0.k: tokens:pad"}


@library
def test_nodes_are_all_parts_and_say_what_they_compute(name: str, level: int) -> None:
    """Every head and neuron is in one node; the variables that nodes write are those of `model.residual`."""
    model = compiled(name, level)
    truth = model.ground_truth
    nodes = {node.id: node for node in truth.nodes()}
    for number, layer in enumerate(model.parameters.layers):
        here = [node for node in nodes.values() if node.layer == number]
        assert [node.head for node in here if node.kind == "head"] == list(range(len(layer.W_Q)))
        ranges = [range(*node.neurons) for node in here if node.neurons is not None]
        assert [neuron for part in ranges for neuron in part] == list(range(len(layer.b_in)))
    for node in nodes.values():
        assert node.computes.endswith(".")
        for written in node.writes:
            assert written.expression
            for slot in written.slots:
                turns = [dimension for dimension in model.residual if dimension.index == slot]
                if node.clears:
                    assert any(node.id.startswith(f"blocks.{(one.until - 1) / 2:g}.mlp") for one in turns)
                else:
                    assert any(one.writer and node.id.startswith(one.writer) for one in turns)
    for edge in truth.edges():
        assert edge.variable in nodes[edge.source].variables
        assert dict(nodes[edge.target].inputs)[edge.input] == edge.target_place


@library
def test_granularities_are_the_same_edges(name: str, level: int) -> None:
    """Coarser edges merge finer ones, and together carry the same slots into the same layers."""
    model = compiled(name, level)
    truth = model.ground_truth
    hooks = set(model.run(list(model.options.vocab[:1]) * model.program.lengths[0]))
    sizes = []
    for granularity in GRANULARITIES:
        nodes = {node.id: node for node in truth.nodes(granularity)}
        edges = truth.edges(granularity)
        sizes.append(len(edges))
        assert truth.finest(edges) == set(range(len(truth.edges())))
        for edge in edges:
            assert edge.source_place == nodes[edge.source].output
            assert edge.target_place == dict(nodes[edge.target].inputs)[edge.input]
            if not edge.source_place.hook.endswith("hook_result"):
                assert edge.source_place.hook in hooks
    assert sizes == sorted(sizes)


def test_fixed_positions() -> None:
    """A shift has an offset, the first token a position; heads that look at tokens or lengths have neither."""
    first = rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == 0), rasp.tokens)
    after = rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == q + 1), rasp.tokens)
    moved = rasp.Aggregate(
        rasp.Select(rasp.indices, (rasp.indices * 1 - 2).named("two"), rasp.Comparison.EQ), rasp.tokens
    )
    for program, expected in (
        (first, Attends(position=1)),
        (after, Attends(offset=1)),
        (moved, Attends(offset=-2)),
        (programs.make_reverse(rasp.tokens), None),
        (programs.make_hist(), None),
    ):
        truth = tracr.compile(program, "ab", 4).ground_truth
        (*_, head) = (node for node in truth.nodes() if node.kind == "head")
        assert head.attends == expected
        positions = {edge.positions for edge in truth.edges() if edge.target == head.id and edge.input == "v"}
        assert (positions == {None}) == (expected is None)
        assert all(edge.positions is None for edge in truth.edges() if edge.input != "v")
    causal = tracr.compile(first, "ab", 4, causal=True).ground_truth
    assert [n.attends for n in causal.nodes() if n.kind == "head"] == [Attends(position=1)]
