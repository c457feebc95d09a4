"""Mutants: the checker accepts no model that is wrong on some input, and most of those that are not."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tracr
from tests.tiers import in_turn, usual
from tracr.certificate.trials.execution import ORDERS
from tracr.certificate.trials.mutants import KINDS, SavedParts, mutant, transplants
from tracr.certificate.trials.trial import EveryInput, check_parts, parts_of, trials, wrong_inputs
from tracr.certificate.trials.trial import tried as outcome_of
from tracr.rasp import rasp
from tracr.rasp.expressions import SOp
from tracr.rasp.programs import EXAMPLES

LENGTH = 3
FEW = [("hist", 2), ("frac_prevs", 0), ("reverse", 2)]


def saved(name: str, level: int) -> SavedParts:
    """A program of the library, compiled for short inputs."""
    example = EXAMPLES[name].made_for(EXAMPLES[name].vocab, LENGTH)
    return parts_of(tracr.compile(example.program, example.vocab, LENGTH, level=level))


def tried(parts: SavedParts, count: int, seed: tuple[int, ...], folder: Path, kind: str | None = None) -> Counter[str]:
    """How many mutants were harmful or harmless, accepted or rejected; none that is harmful may be accepted."""
    found: Counter[str] = Counter()
    for outcome in trials(parts, count, seed, folder, kind):
        assert not outcome.unsound, (outcome.mutant.what, outcome.wrong)
        harm = "harmful" if outcome.wrong else "harmless"
        found[f"{harm} {'accepted' if outcome.verdict.accepted else 'rejected'}"] += 1
        assert outcome.verdict.accepted or outcome.verdict.reason
    return found


@pytest.mark.parametrize(("name", "level"), FEW)
def test_no_harmful_mutant_is_accepted(name: str, level: int, tmp_path: Path) -> None:
    """Weights, neurons, heads, tables, programs and hints, against runs on every input."""
    found = tried(saved(name, level), 8, (1, level), tmp_path)
    assert found.total() >= 6


@pytest.mark.parametrize("kind", sorted(set(KINDS)))
def test_every_kind_of_mutant_harms_sometimes(kind: str, tmp_path: Path) -> None:
    """So the trials above can fail: some mutants of each kind are wrong, and some are not and are accepted."""
    found = tried(saved("hist", 1), 20, (2,), tmp_path, kind)
    assert found["harmful rejected"] >= 1
    assert found["harmless accepted"] >= 1


@pytest.mark.parametrize("kind", sorted(set(KINDS)))
def test_mutants_depend_on_the_seed_alone(kind: str) -> None:
    """Not on the order in which safetensors reads arrays, which differs from run to run."""
    parts = saved("hist", 1)
    weights, tables = (dict(reversed(list(arrays.items()))) for arrays in (parts.weights, parts.tables))
    turned = replace(parts, weights=weights, tables=tables)
    for seed in range(10):
        one, other = (mutant(given, np.random.default_rng(seed), kind) for given in (parts, turned))
        assert one.what == other.what
        assert all((one.parts.weights[name] == other.parts.weights[name]).all() for name in parts.weights)
        assert all((one.parts.tables[name] == other.parts.tables[name]).all() for name in parts.tables)


@pytest.mark.parametrize(
    ("level", "causal", "name", "place", "added"),
    [
        (1, False, "embed.W_E", (3, 11), 0.05),
        (0, True, "blocks.1.attn.b_Q", (0, 3), -0.5),
        (1, True, "blocks.1.attn.b_Q", (0, 0), 0.05),
    ],
)
def test_mutants_that_were_accepted_once(
    level: int, causal: bool, name: str, place: tuple[int, ...], added: float, tmp_path: Path
) -> None:
    """Scores of selected keys that differ: an infinite bound was taken for a value that does not occur."""
    example = EXAMPLES["hist_bos"].made_for(EXAMPLES["hist_bos"].vocab, LENGTH)
    parts = parts_of(tracr.compile(example.program, example.vocab, LENGTH, level=level, causal=causal))
    changed = parts.weights[name].copy()
    changed[place] += added
    mutant = replace(parts, weights={**parts.weights, name: changed})
    assert wrong_inputs(mutant, EveryInput(parts))
    assert not check_parts(mutant, tmp_path).accepted


COMPARED = [rasp.Comparison.EQ, rasp.Comparison.NEQ, rasp.Comparison.LT, rasp.Comparison.LEQ, rasp.Comparison.GEQ]


def near_twins() -> dict[str, SavedParts]:
    """Programs that differ in a comparison, a constant, a default, the vocabulary's order, the mask or the level."""
    found = {}
    sides = [(rasp.tokens, rasp.tokens), (rasp.indices, rasp.tokens), (rasp.indices, rasp.indices)]
    for number, (compared, (keys, queries)) in enumerate(itertools.product(COMPARED, sides)):
        level, vocab, selector = number % 3, ((1, 2), (2, 1))[number // 3 % 2], rasp.Select(keys, queries, compared)
        programs: dict[str, SOp] = {"width": rasp.SelectorWidth(selector)}
        programs |= {f"mean or {default}": rasp.Aggregate(selector, rasp.tokens, default=default) for default in (0, 1)}
        for (name, program), causal in itertools.product(programs.items(), (False, True)):
            model = tracr.compile(program, vocab, LENGTH, level=level, causal=causal)
            found[f"{name} {keys} {compared.value} {queries}, {vocab}, {level}, {causal}"] = parts_of(model)
    return {name: parts for name, parts in found.items() if parts.hints["layers"]}


def test_no_harmful_transplant_is_accepted(tmp_path: Path) -> None:
    """The program of a model, the weights of a nearly equal one, hints of either: what is accepted is right."""
    models, found, rng = near_twins(), Counter[str](), np.random.default_rng(5)
    inputs = {name: EveryInput(parts) for name, parts in models.items()}
    for one in transplants(models, rng):
        own = inputs[one.what.partition(" by ")[0]]
        if rng.integers(100) < usual(12, long=100):
            outcome = outcome_of(one, own, tmp_path)
            assert not outcome.unsound, (one.what, outcome.wrong)
            found[f"{'harmful' if outcome.wrong else 'harmless'} {outcome.verdict.accepted}"] += 1
    assert found["harmful False"] >= 40, found
    assert found["harmless True"] >= 1, found


LARGE = {"hist2", "sort_freq", "most_freq", "shuffle_dyck", "shuffle_dyck2", "dyck1", "dyck2", "closer", "induction"}
"""Programs whose checks take longest: fewer mutants of each, and more of the others."""


@pytest.mark.slow
@pytest.mark.parametrize("level", [0, 1, 2])
def test_two_thousand_mutants(level: int, tmp_path: Path) -> None:
    """Of the whole library at all levels: 0 harmful accepted, at least 80 % of the harmless weights accepted."""
    weights: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for number, name in enumerate(EXAMPLES):
        parts = saved(name, level)
        if not check_parts(parts, tmp_path).accepted or EveryInput(parts).count > 2_000:
            continue
        count = usual(6 if name in LARGE else 24, long=30)
        weights += tried(parts, count, (3, number, level), tmp_path, "weight")
        others += tried(parts, count * 3 // 4, (4, number, level), tmp_path)
    assert weights.total() + others.total() >= 2_000 / 3
    assert weights["harmful rejected"] + others["harmful rejected"] >= 400 / 3
    harmless = weights["harmless accepted"] + weights["harmless rejected"]
    assert weights["harmless accepted"] >= 0.8 * harmless, weights


def depends_on_the_order(parts: SavedParts) -> SavedParts:
    """Three more neurons add 2²⁶, −2²⁶ and −2 to the first dimension that the last MLP writes for the logits.

    From the first term to the last the −2 is left, and makes a logit of 1 the smallest of all. From the last to the
    first it is lost beside −2²⁶, and no output changes. Both orders are written in numpy, without a BLAS.
    """
    weights = dict(parts.weights)
    last = max(int(name.split(".")[1]) for name in weights if name.endswith("mlp.W_in") and weights[name].size)
    read = np.flatnonzero(weights["unembed.W_U"].any(1))[0]
    block = f"blocks.{last}.mlp"
    rows = np.zeros((3, len(weights["unembed.W_U"])))
    rows[:, read] = 2.0**26, -(2.0**26), -2.0
    weights[f"{block}.W_in"] = np.hstack([weights[f"{block}.W_in"], np.zeros((rows.shape[1], 3))])
    weights[f"{block}.b_in"] = np.append(weights[f"{block}.b_in"], np.ones(3))
    weights[f"{block}.W_out"] = np.vstack([weights[f"{block}.W_out"], rows])
    return replace(parts, weights=weights)


def test_a_model_that_is_right_in_some_orders_only_is_rejected(tmp_path: Path) -> None:
    """So the orders of the tests below are different ones, and the checker does not assume one of them."""
    parts = depends_on_the_order(saved("hist", 1))
    wrong = {order: wrong_inputs(parts, EveryInput(parts), (order,)) for order in ORDERS}
    assert wrong["fused"] == 0
    assert wrong["one by one"] > 0
    assert not check_parts(parts, tmp_path).accepted


@pytest.mark.parametrize(("name", "level"), [*FEW, ("hist_bos", 1)])
def test_accepted_models_are_right_in_every_order(name: str, level: int, tmp_path: Path) -> None:
    """Sums reversed, permuted, one by one, in blocks, with fused multiply-adds; every input, padded and not."""
    parts = saved(name, level)
    assert check_parts(parts, tmp_path).accepted
    assert wrong_inputs(parts, EveryInput(parts), tuple(ORDERS)) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("name", "level"), in_turn(EXAMPLES, (0, 1, 2)))
def test_accepted_library_models_are_right_in_every_order(name: str, level: int, tmp_path: Path) -> None:
    """The whole library."""
    parts = saved(name, level)
    inputs = EveryInput(parts)
    if check_parts(parts, tmp_path).accepted and inputs.count <= 4_000:
        assert wrong_inputs(parts, inputs, tuple(ORDERS)) == 0
