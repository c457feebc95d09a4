"""Lower bounds: below what is reached, tight where that is known, and right by other ways of computing them."""

from __future__ import annotations

import numpy as np
import pytest

import tracr
from tests.agreement import compile_quietly
from tests.compiler.circuits import every_schedule, few_schedules, random_circuit, random_models
from tracr.compiler.layers.assign import in_sublayers
from tracr.compiler.layers.placing import placing_of
from tracr.compiler.optimal.bounds import WritesAndReads, kinks, product_rank
from tracr.rasp import programs, rasp


@pytest.mark.parametrize("name", programs.EXAMPLES)
@pytest.mark.parametrize("level", [0, 1, 2])
def test_bounds_of_the_library(name: str, level: int) -> None:
    """None exceeds what is reached; depth is always optimal."""
    example = programs.EXAMPLES[name]
    bounds = compile_quietly(example.program, example.vocab, example.max_seq_len, level=level).bounds()
    assert [str(one) for one in bounds if one.reached < one.bound] == []
    assert bounds.layers.optimal
    assert bounds.anywhere.bound <= bounds.dimensions.bound <= bounds.live.reached


@pytest.mark.parametrize("level", [0, 1, 2])
def test_bounds_of_random_programs(level: int) -> None:
    """None exceeds what is reached."""
    for model in random_models(range(100, 150), level=level):
        bounds = model.bounds()
        assert [str(one) for one in bounds if one.reached < one.bound] == []
        assert bounds.anywhere.bound <= bounds.dimensions.bound <= bounds.live.reached


@pytest.mark.slow
def test_bounds_hold_for_every_schedule() -> None:
    """What is said of any schedule is true of all: live directions and Hankel rank."""
    tried = 0
    circuits = [random_circuit(seed, 4 + seed % 6) for seed in range(60)]
    circuits += [model.circuit for model in random_models(range(40), level=2)]
    for circuit in circuits:
        placing, stream = placing_of(circuit), WritesAndReads(circuit)
        if placing.first == placing.last or not few_schedules(placing, 300):
            continue
        rank, _ = stream.widest_cut(placing.last, placing.first, placing.depth)
        for times in every_schedule(circuit, placing.depth):
            peak = in_sublayers(circuit, times).peak
            here, _ = stream.widest_cut(times, times, placing.depth)
            assert rank <= here <= peak
            assert placing.fewest <= peak
            tried += 1
    assert tried > 200


def test_hankel_rank_from_the_weights() -> None:
    """The ranks are those of the products of the model's own matrices, where every direction has its dimension."""
    for model in random_models(range(200, 230), level=1):
        weights = model.parameters
        writes = [np.concatenate([weights.W_E, weights.W_pos])]
        reads = []
        for layer in weights.layers:
            shape = (-1, model.d_model)
            reads.append(
                np.concatenate([w.transpose(0, 2, 1).reshape(shape) for w in (layer.W_Q, layer.W_K, layer.W_V)])
            )
            writes.append(layer.W_O.reshape(shape))
            reads.append(layer.W_in.T)
            writes.append(layer.W_out)
        reads.append(weights.W_U.T)
        ranks = [
            np.linalg.matrix_rank(np.concatenate(reads[cut:]) @ np.concatenate(writes[: cut + 1]).T, tol=1e-7)
            for cut in range(len(reads))
        ]
        assert model.bounds().dimensions.bound == max(ranks)


def test_tight_where_it_is_known() -> None:
    """A table of a number needs its kinks, equality of n tokens a rank of n and one for BOS; copies need all of it."""
    bounds = tracr.compile(programs.make_hist(), "abcd", 5, level=2).bounds()
    assert all(one.optimal for one in (*bounds.heads, *bounds.neurons, bounds.live))
    reverse = tracr.compile(programs.make_reverse(rasp.tokens), "abc", 4, level=2).bounds()
    assert all(one.optimal for one in reverse.heads)
    unchanged = tracr.compile(rasp.tokens, "abc", 4, level=2)
    assert unchanged.bounds().dimensions.optimal
    assert unchanged.bounds().layers.bound == 0


def test_a_narrower_stream_is_seen() -> None:
    """A one-hot code that is only read as a number has rank 1, however many directions it takes."""
    length = rasp.Map(lambda n: n % 5, programs.make_length()).named("length_mod")
    bounds = tracr.compile(length, "ab", 9, level=0).bounds()
    assert bounds.dimensions.bound < bounds.dimensions.reached


def test_kinks() -> None:
    """Hyperplanes count once, whatever the scale and orientation of neurons; constants and cancelled ones do not."""
    rng = np.random.default_rng(0)
    read, bias, write = rng.normal(size=(4, 6)), rng.normal(size=6), rng.normal(size=(6, 3))
    assert kinks(read, bias, write) == (6, 0)
    scales = np.array([3.0, -0.5, 2.0, -1.0, 7.0, -7.0])
    twice = np.concatenate([read, read * scales], axis=1), np.concatenate([bias, bias * scales])
    assert kinks(*twice, rng.normal(size=(12, 3))) == (6, 0)
    assert kinks(read * 0, bias, write) == (0, 0)
    cancelled = np.concatenate([write, -write / np.abs(scales)[:, None]])
    straight = [number for number, scale in enumerate(scales) if scale < 0]
    assert kinks(*twice, cancelled) == (0, np.linalg.matrix_rank(read[:, straight]))
    assert kinks(np.zeros((0, 2)), np.ones(2), np.ones((2, 1))) == (0, 0)


def test_product_rank() -> None:
    """As numpy has it, whatever the sizes of rows."""
    rng = np.random.default_rng(1)
    for rank in range(6):
        left, right = rng.normal(size=(40, 7)), rng.normal(size=(7, rank)) @ rng.normal(size=(rank, 30))
        assert product_rank(left * rng.choice([1e-5, 1.0, 1e5], size=(40, 1)), right.T) == rank
    assert product_rank(np.zeros((3, 2)), np.ones((1, 2))) == 0


def test_the_table_can_be_read() -> None:
    """A row each: what, reached, bound, whether that is optimal, and why."""
    lines = str(tracr.compile(programs.make_hist(), "ab", 3, level=2).bounds()).splitlines()
    assert lines[0].split() == ["reached", "bound", "optimal", "because"]
    assert lines[1].split()[:4] == ["layers", "1", "1", "yes"]
    assert lines[-1] == "solver: not run: heuristic"
    assert max(map(len, lines)) <= 120


def test_bounds_of_variants() -> None:
    """They are those of the model a variant was made from."""
    model = tracr.compile(programs.make_hist(), "ab", 3, level=2)
    assert model.rotated().bounds() == model.with_layer_norm().bounds() == model.bounds()
