"""Rules that few library models need: biases of heads, split copies, means that share a count, intervals, 16 bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracr
from tests.certificate.check_cases import Exhaustive, Parsed, example, network
from tests.tiers import slow
from tracr.certificate.hints import hints
from tracr.certificate.trials.trial import EveryInput, parts_of, trials
from tracr.model.compiled import CompiledModel
from tracr.rasp import rasp
from tracr.rasp.programs import EXAMPLES
from tracr_check.cells import cells
from tracr_check.variables import SOp, snap

T, INDEX = rasp.tokens, rasp.indices
SAME, LESS = rasp.Select(T, T, rasp.Comparison.EQ), rasp.Select(T, T, rasp.Comparison.LT)
UP_TO = rasp.Select(INDEX, INDEX, rasp.Comparison.LEQ)
ORDER = LESS | (SAME & UP_TO)
IS_A, NOT_A = rasp.Select(T, T, lambda k, q: q == "a"), rasp.Select(T, T, lambda k, q: q != "a")
BEFORE, AFTER = rasp.Select(INDEX, INDEX, lambda k, q: k == q - 1), rasp.Select(INDEX, INDEX, lambda k, q: k == q + 1)
ONE = rasp.numerical(rasp.Map(lambda token: {"a": 1, "b": 0, "c": 2}[token], T))
TWO = rasp.numerical(rasp.Map(lambda token: {"a": 0, "b": 1, "c": 1}[token], T))


def mean(values: rasp.SOp) -> rasp.SOp:
    """A mean over a selector that needs two heads."""
    return rasp.numerical(rasp.Aggregate(ORDER, values))


SPLIT = {
    "copy": rasp.Aggregate((IS_A & BEFORE) | (NOT_A & AFTER), T).named("neighbour"),
    "means": rasp.numerical(rasp.LinearSequenceMap(mean(ONE), mean(TWO), 1, 1)).named("two"),
}
"""A copy by two heads, and two means that share the count of two heads."""


def harm(model: CompiledModel, names: tuple[str, ...], seed: int, count: int, arithmetic: str = "float32") -> int:
    """Change single weights of some arrays; every change that makes an answer wrong is rejected. How many did."""
    parsed, every = Parsed(model), Exhaustive(model)
    assert parsed.reason(arithmetic=arithmetic) == ""
    rng = np.random.default_rng(seed)
    chosen = [name for name in parsed.weights if name.endswith(names) and parsed.weights[name].any()]
    harmful = 0
    for _ in range(count):
        name = chosen[rng.integers(len(chosen))]
        array = parsed.weights[name].copy()
        place = rng.choice(np.flatnonzero(array.reshape(-1)))
        array.reshape(-1)[place] *= rng.choice([0.0, -1.0, 0.5, 1.5, 1.01, 1 + 1e-6])
        changed = {**parsed.weights, name: array}
        if every.wrong(changed):
            harmful += 1
            assert parsed.reason(changed, arithmetic=arithmetic)
    return harmful


@pytest.mark.parametrize("level", [2, *slow([0, 1])])
@pytest.mark.parametrize("kind", SPLIT)
def test_split_copies_and_means_that_share_a_count(kind: str, level: int) -> None:
    """They are accepted at every level; of changed weights, none that is harmful."""
    model = tracr.compile(SPLIT[kind], "abc", 3, level=level)
    assert {name[0] for name in hints(model)["parts"]} == ({"p"} if kind == "copy" else {"c", "s"})
    assert harm(model, ("W_Q", "W_K", "W_V", "W_O", "b_K", "b_Q", "W_in", "b_in", "W_out"), level, 10)


def test_parts_of_another_sum_are_rejected() -> None:
    """Hints that call one sum the other: the values do not fit."""
    parsed = Parsed(tracr.compile(SPLIT["means"], "abc", 3, level=2))
    first, second = (name for name, one in parsed.hints["aux"].items() if one["kind"] == "sum")
    parsed.hints["sums"][first], parsed.hints["sums"][second] = (parsed.hints["sums"][one] for one in (second, first))
    assert "parts sum other values" in parsed.reason()


@pytest.mark.parametrize("name", ["hist", *slow(["reverse"])])
def test_biases_of_heads(name: str) -> None:
    """A bias that a later bias takes back is accepted; one that makes an answer wrong is not."""
    model = example(name, 2, 3)
    parsed, every = Parsed(model), Exhaustive(model)
    accepted = rejected = 0
    for dim in range(parsed.weights["embed.W_E"].shape[1]):
        for layer in range(model.n_layers):
            bias = parsed.weights[f"blocks.{layer}.attn.b_O"].copy()
            bias[dim] += 0.5
            taken = parsed.weights[f"blocks.{layer}.mlp.b_in"] - 0.5 * parsed.weights[f"blocks.{layer}.mlp.W_in"][dim]
            out = parsed.weights[f"blocks.{layer}.mlp.b_out"].copy()
            out[dim] -= 0.5
            changed = {**parsed.weights, f"blocks.{layer}.attn.b_O": bias}
            back = {**changed, f"blocks.{layer}.mlp.b_in": taken, f"blocks.{layer}.mlp.b_out": out}
            for weights in (changed, back):
                wrong, fine = every.wrong(weights), parsed.reason(weights) == ""
                assert not (wrong and fine)
                accepted, rejected = accepted + fine, rejected + wrong
    assert accepted
    assert rejected


# Intervals


@settings(max_examples=10)
@given(ends=st.tuples(st.floats(-2, 2), st.floats(-2, 2)), share=st.floats(0, 1))
def test_every_number_of_an_interval_has_a_cell(ends: tuple[float, float], share: float) -> None:
    """The cell that a number snaps to contains it; numbers outside have none."""
    low, high = min(ends), max(ends)
    middles, radii = cells(low, high)
    sop = SOp(0, "x", {"kind": "linear"}, tuple(middles.tolist()), cell_radius=radii)
    number = min(high, low + (high - low) * share)
    code = int(snap(sop, np.array([number]))[0])
    assert code >= 0
    assert abs(middles[code] - number) <= radii[code] + 1e-9 * max(1.0, abs(number))
    assert snap(sop, np.array([high + 1.0]))[0] < 0


def test_an_interval_and_its_needle() -> None:
    """A difference of means is accepted, as an interval. Three neurons more, on only for 99 of 100: it is rejected."""
    made = EXAMPLES["pair_balance"].made_for(EXAMPLES["pair_balance"].vocab, 100)
    model = tracr.compile(made.program, made.vocab, 100, level=2)
    assert model.program.sops[model.program.outputs[0][1]].domain.size == 0
    parsed = Parsed(model)
    assert parsed.reason() == ""
    opens = next(number for number, node in model.program.sops.items() if node.label == "opens")
    layer, dim = next(
        (place, int(dim))
        for place, one in enumerate(parsed.hints["layers"])
        for head in one["heads"]
        for dim, owner in head.items()
        if owner == opens
    )
    weights, mlp = dict(parsed.weights), f"blocks.{layer}.mlp."
    more = np.zeros((weights[mlp + "W_in"].shape[0], 3))
    more[dim] = 2.0**17
    kinks = -(2.0**17) * np.array([0.98995, 0.99, 0.99005])
    weights[mlp + "W_in"] = np.hstack([weights[mlp + "W_in"], more])
    weights[mlp + "b_in"] = np.append(weights[mlp + "b_in"], kinks)
    weights[mlp + "W_out"] = np.vstack([weights[mlp + "W_out"], more.T * np.array([[1], [-2], [1]]) * 2.0**-26])
    parsed.hints["layers"][layer]["mlp"][str(dim)] = opens
    ids = np.stack([model.encode("(" * count + ")" * (100 - count))[0] for count in (100, 99, 98, 50)])
    wrong = np.abs(network(weights, ids) - network(parsed.weights, ids))[:, 1:, 0] > 1e-3
    assert wrong.sum(1).tolist() == [0, 1, 0, 0]
    assert "a number may be off by 0.01" in parsed.reason(weights)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sum", "mean"])
def test_mutants_of_what_is_made_of_intervals(kind: str, tmp_path: Path) -> None:
    """A sum, and a mean, of numbers that are means themselves: 0 harmful mutants accepted."""
    before = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LEQ)
    equal = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)
    share = rasp.numerical(
        rasp.Aggregate(before, rasp.numerical(rasp.Map(lambda token: float(token == "a"), rasp.tokens)))
    )
    place = rasp.numerical(rasp.Aggregate(equal, rasp.numerical(rasp.Map(float, rasp.indices))))
    made = (
        rasp.LinearSequenceMap(share, place, 1, -1) if kind == "sum" else rasp.numerical(rasp.Aggregate(equal, share))
    )
    model = tracr.compile(made, "ab", 3, max_values=3)
    parts = parts_of(model)
    assert all(model.program.sops[number].domain.size == 0 for _, number in model.program.outputs)
    assert EveryInput(parts).count == 2 * 3 + 4 * 2 + 8  # each length with every padding
    outcomes = list(trials(parts, 20, (3,), tmp_path))
    assert any(one.wrong for one in outcomes)
    assert any(one.verdict.accepted for one in outcomes)
    assert not [one.mutant.what for one in outcomes if one.unsound]


@pytest.mark.slow
def test_mutants_of_an_interval(tmp_path: Path) -> None:
    """A random program whose output is an interval: 0 harmful mutants accepted, of all kinds."""
    parts = parts_of(tracr.compile(tracr.random_program([8642, 740]), "abc", 4, level=2))
    assert EveryInput(parts).count
    outcomes = list(trials(parts, 8, (6,), tmp_path))
    assert not [one.mutant.what for one in outcomes if one.unsound]
