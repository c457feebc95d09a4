"""Two programs in one model: `tracr.compile([a, b])`. Each output has a circuit of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

import tracr
from tests.agreement import all_inputs, compile_quietly
from tests.tally import Tally
from tracr import natural
from tracr.errors import TracrError
from tracr.ground_truth.data import Edge
from tracr.rasp import programs, rasp

HIST = programs.make_hist()
REPEATED = rasp.Map(lambda count: count > 1, HIST).named("repeated")
REVERSE = programs.make_reverse(rasp.tokens)
INPUTS = all_inputs("ab", 4)


def answers_of(model: tracr.CompiledModel, edges: Iterable[Edge], output: str, ablation: Any, inputs: Any) -> list[Any]:
    """The answers of one output with edges ablated; `None` for inputs on which the program raises."""
    rows = model.ground_truth.ablate(list(edges), data=inputs, ablation=ablation)
    return [row and row[output] for row in rows]


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("pair", [(HIST, REPEATED), (HIST, REVERSE)], ids=["one reads the other", "apart"])
def test_each_output_has_its_circuit(pair: tuple[Any, Any], level: int) -> None:
    """Ablating all edges that do not lead to an output leaves it as it is; ablating those that do changes it."""
    both = tracr.compile(list(pair), "ab", 4, level=level, passes={"merge_heads": False})
    answers = both(INPUTS)
    assert answers == [{sop.name: sop(xs) for sop in pair} for xs in INPUTS]
    for sop in pair:
        inside = natural.output_edges(both, sop.name)
        outside = set(both.ground_truth.edges()) - set(inside)
        assert outside or level == 2
        expected = [row[sop.name] for row in answers]
        for ablation in ("zero", "resample"):
            assert answers_of(both, outside, sop.name, ablation, INPUTS) == expected
        assert answers_of(both, inside, sop.name, "zero", INPUTS) != expected


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(6, 60), marks=pytest.mark.slow)], ids=["few", "many"])
def test_circuits_of_random_programs(seeds: range, level: int) -> None:
    """With all passes, merged heads too: the edges that lead elsewhere do not change an output."""
    inputs = all_inputs("ab", 3)[1:]
    with Tally(0.8) as tally:
        for seed in seeds:
            with tally.draw():
                given: dict[str, Any] = {"vocab": "ab", "max_seq_len": 3, "causal": bool(seed % 2)}
                pair = [tracr.random_program([seed, 11, part], max_ops=4, **given) for part in (1, 2)]
                both = compile_quietly(pair, **given, level=level)
                edges = set(both.ground_truth.edges())
                for output in both.outputs:
                    outside = edges - set(natural.output_edges(both, output.name))
                    for ablation in ("zero", "resample"):
                        found, expected = (
                            answers_of(both, some, output.name, ablation, inputs) for some in (outside, ())
                        )
                        assert found == expected, (seed, output.name, ablation)


def test_at_level_2_an_output_can_be_folded_into_the_unembedding() -> None:
    """The unembedding reads `hist`, from which it computes the other output: the edge leads to both."""
    more = rasp.Map(lambda count: 2 * count + 1, HIST).named("more")
    both = tracr.compile([HIST, more], "ab", 4, level=2)
    variables = {edge.variable for edge in both.ground_truth.edges() if edge.target == "unembed"}
    assert "hist" in variables
    assert "more" not in variables
    for output in ("hist", "more"):
        assert "hist" in {edge.variable for edge in natural.output_edges(both, output) if edge.target == "unembed"}


def test_refused() -> None:
    """Outputs that the model does not have, and what is not a compiled model."""
    both = tracr.compile([HIST, REPEATED], "ab", 2)
    assert natural.output_edges(both.rotated(seed=1), "hist") == natural.output_edges(both, "hist")
    output_edges: Any = natural.output_edges
    for wrong in ("hits", 3, None):
        with pytest.raises(TracrError, match="no output") as error:
            output_edges(both, wrong)
        assert error.value.diagnostic.hint
    with pytest.raises(TracrError, match="compiled model"):
        output_edges(3, "hist")


@pytest.mark.parametrize(("level", "counts"), [(0, 2), (1, 1)])
def test_common_parts_are_computed_once_from_level_1_on(level: int, counts: int) -> None:
    """Two equal counts that were written separately."""
    other = rasp.Map(lambda count: count > 1, programs.make_hist()).named("repeated")
    both = tracr.compile([HIST, other], "ab", 4, level=level)
    heads = [node for node in both.ground_truth.nodes() if node.kind == "head"]
    assert len(heads) == counts
