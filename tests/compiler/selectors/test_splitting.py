"""Large comparisons are several narrow heads where that makes the model smaller, and take no layer more."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tracr
from tests.agreement import assert_agrees, compile_quietly, load_compiled
from tracr.ir.options import LEVELS
from tracr.model.compiled import CompiledModel
from tracr.rasp import programs, rasp
from tracr.rasp.rasp import Comparison, SOp
from tracr.saving.json_reader import parse
from tracr.saving.program_json import program_tables, read_program

tokens, indices = rasp.tokens, rasp.indices
SORT_UNIQUE = programs.make_sort_unique(tokens, tokens)
OTHERS = rasp.SelectorWidth(rasp.Select(tokens, tokens, Comparison.NEQ))
RANKS = rasp.SelectorWidth(rasp.Select(OTHERS, indices, Comparison.EQ))


def order(keys: SOp = tokens) -> SOp:
    """How many tokens are smaller."""
    return rasp.SelectorWidth(rasp.Select(keys, keys, Comparison.LT))


def size(model: CompiledModel) -> tuple[int, int, int, int]:
    """Layers, parameters, dimensions and heads."""
    heads = sum(len(layer.heads) for layer in model.schedule.layers)
    return model.n_layers, model.n_parameters, model.d_model, heads


def agrees(model: CompiledModel, program: SOp, vocab: int, longest: int) -> None:
    """On random inputs, some with many equal tokens."""
    rng = np.random.default_rng(0)
    inputs = [rng.integers(1, most + 1, length).tolist() for length in (1, 2, longest) for most in (2, vocab, vocab)]
    assert_agrees(model, program, inputs)


# Counts

READERS: dict[str, Callable[[SOp], SOp]] = {
    "put out": lambda count: count,
    "mapped": lambda count: rasp.Map(lambda x: x % 3, count),
    "added": lambda count: rasp.numerical(count) + 1,
    "compared": lambda count: rasp.SequenceMap(lambda x, y: x > y, count, indices),
    "copied by": lambda count: rasp.Aggregate(rasp.Select(count, indices, Comparison.EQ), tokens, 0),
    "averaged by": lambda count: rasp.Aggregate(rasp.Select(count, indices, Comparison.LEQ), tokens, 0),
    "counted by": lambda count: rasp.SelectorWidth(rasp.Select(count, indices, Comparison.EQ)),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("comparison", [Comparison.LT, Comparison.NEQ, Comparison.EQ])
@pytest.mark.parametrize(("vocab", "longest"), [(30, 20), (200, 6)])
def test_whatever_reads_a_count(reader: str, comparison: Comparison, vocab: int, longest: int) -> None:
    """Level 1 takes no more layers or parameters than level 0, level 2 no more layers, and all are right."""
    program = READERS[reader](rasp.SelectorWidth(rasp.Select(tokens, tokens, comparison)))
    models = [compile_quietly(program, range(1, vocab + 1), longest, level=level) for level in LEVELS]
    zero, one, two = map(size, models)
    assert one[0] <= zero[0]
    assert one[1] <= zero[1]
    assert two[0] <= one[0]
    for model in models:
        agrees(model, program, vocab, longest)


# What is split


@pytest.mark.parametrize(("vocab", "longest"), [(300, 10), pytest.param(1000, 6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("program", [order(), SORT_UNIQUE, programs.make_sort_composite(tokens, tokens)])
def test_an_order_of_very_many_values_is_split(program: SOp, vocab: int, longest: int) -> None:
    """Into heads of small rank, which take far fewer parameters and no layer more."""
    zero, one, two = (compile_quietly(program, range(1, vocab + 1), longest, level=level) for level in LEVELS)
    assert zero.n_layers == one.n_layers == two.n_layers
    assert 2 * one.n_parameters < zero.n_parameters
    assert 10 * two.n_parameters < zero.n_parameters
    for model in (one, two):
        assert model.program.stored.split
        assert max(head.query.width for head in model.schedule.layers[0].heads) <= 4 + longest
        agrees(model, program, vocab, longest)


def test_a_small_gain_is_not_worth_the_heads() -> None:
    """At (50, 50) a head of rank 51 stays."""
    for level, heads in ((0, 2), (1, 2), (2, 2)):
        model = compile_quietly(SORT_UNIQUE, range(1, 51), 50, level=level)
        assert size(model)[3] == heads
        assert not model.program.stored.split
        agrees(model, SORT_UNIQUE, 50, 50)


def test_a_split_takes_no_layer_more() -> None:
    """Counts that other keys are counted by must be exact: sums would have to be cleaned."""
    assert compile_quietly(OTHERS, range(1, 61), 10).program.stored.split
    for level in LEVELS:
        model = compile_quietly(RANKS, range(1, 61), 10, level=level)
        assert model.n_layers == 2
        assert not model.program.stored.split
        agrees(model, RANKS, 60, 10)


def test_one_of_two_comparisons_is_split() -> None:
    """A comparison whose count is only an output is split; one whose count selects positions keeps one head."""
    previous = rasp.Aggregate(rasp.Select(indices, indices, lambda k, q: k == q - 1), tokens, 1)
    outputs = {"order": order(previous), "ranks": RANKS}
    models = [compile_quietly(outputs, range(1, 301), 5, level=level) for level in LEVELS]
    assert [len(model.program.stored.split) for model in models] == [0, 1, 1]
    for model in models:
        assert model.n_layers <= models[0].n_layers
        assert model.verify(200)


def test_rough_counts_are_good_enough_to_copy_by() -> None:
    """Where all keys that are found hold one value, it does not matter how they share the attention."""
    model = compile_quietly(SORT_UNIQUE, range(1, 301), 12)
    assert model.program.stored.split
    assert not [variable.label for variable in model.circuit.variables if "clean" in variable.label]
    rng = np.random.default_rng(0)
    rows = [rng.integers(1, most + 1, 12).tolist() for most in (1, 2, 5, 300) for _ in range(20)]
    assert_agrees(model, SORT_UNIQUE, rows)


def test_saved_models_stay_split(tmp_path: Path) -> None:
    """A selector that does not exist is refused."""
    model = compile_quietly(order(), range(1, 301), 5)
    model.save(tmp_path / "model")
    assert load_compiled(tmp_path / "model").program.stored == model.program.stored
    program = json.loads((tmp_path / "model" / "model.json").read_text())["program"]
    program["stored"]["split"] = [99]
    with pytest.raises(tracr.FormatError, match="selector that does not exist"):
        read_program(parse(json.dumps(program).encode(), "model.json"), program_tables(model.program), model.options)


@pytest.mark.parametrize("passes", [{"rank": False}, {"match": False}, {"fold": False, "factor": False}])
def test_passes_that_are_off(passes: dict[str, bool]) -> None:
    """Without `rank` nothing is split; without others it is right as well."""
    model = compile_quietly(SORT_UNIQUE, range(1, 301), 6, level=2, passes=passes)
    assert bool(model.program.stored.split) is passes.get("rank", True)
    agrees(model, SORT_UNIQUE, 300, 6)
