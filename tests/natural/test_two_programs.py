"""Two programs in one model: `tracr.compile([a, b])`. Each output has a circuit of its own."""

from __future__ import annotations

from typing import Any

import pytest

import tracr
from tests.agreement import all_inputs
from tracr.ground_truth.data import Edge
from tracr.rasp import programs, rasp

HIST = programs.make_hist()
REPEATED = rasp.Map(lambda count: count > 1, HIST).named("repeated")
REVERSE = programs.make_reverse(rasp.tokens)
INPUTS = all_inputs("ab", 4)


def reaching(model: tracr.CompiledModel, variable: str) -> list[Edge]:
    """The edges from which a path leads to an output's own variable at the unembedding."""
    edges = model.ground_truth.edges()
    found = [edge for edge in edges if edge.target == "unembed" and edge.variable == variable]
    nodes = {edge.source for edge in found}
    while more := {edge.source for edge in edges if edge.target in nodes} - nodes:
        nodes |= more
    return [*found, *(edge for edge in edges if edge.target in nodes)]


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("pair", [(HIST, REPEATED), (HIST, REVERSE)], ids=["one reads the other", "apart"])
def test_each_output_has_its_circuit(pair: tuple[Any, Any], level: int) -> None:
    """Ablating all edges that do not lead to an output leaves it as it is; ablating those that do changes it."""
    both = tracr.compile(list(pair), "ab", 4, level=level, passes={"merge_heads": False})
    answers = both(INPUTS)
    assert answers == [{sop.name: sop(xs) for sop in pair} for xs in INPUTS]
    for sop in pair:
        inside = reaching(both, sop.name)
        outside = [edge for edge in both.ground_truth.edges() if edge not in inside]
        assert outside
        kept = both.ground_truth.ablate(outside, data=INPUTS, ablation="zero")
        assert [row[sop.name] for row in kept] == [row[sop.name] for row in answers]
        lost = both.ground_truth.ablate(inside, data=INPUTS, ablation="zero")
        assert [row[sop.name] for row in lost] != [row[sop.name] for row in answers]


@pytest.mark.parametrize(("level", "counts"), [(0, 2), (1, 1)])
def test_common_parts_are_computed_once_from_level_1_on(level: int, counts: int) -> None:
    """Two equal counts that were written separately."""
    other = rasp.Map(lambda count: count > 1, programs.make_hist()).named("repeated")
    both = tracr.compile([HIST, other], "ab", 4, level=level)
    heads = [node for node in both.ground_truth.nodes() if node.kind == "head"]
    assert len(heads) == counts
