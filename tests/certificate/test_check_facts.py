"""The lemmas about programs against brute force over every input."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

import tracr
from tests.certificate.check_cases import Parsed, codes_of, drawn, evaluations, example
from tracr.model.compiled import CompiledModel
from tracr.rasp import rasp
from tracr_check.facts import Facts
from tracr_check.joint import joint_values
from tracr_check.program import Program
from tracr_check.variables import Env, Var

LIBRARY = ["sort", "sort_composite", "hist2", "reverse", "most_freq", "shuffle_dyck", "induction", "dyck2", "closer"]
MODELS = [
    *(("library", name) for name in LIBRARY),
    *(("random", seed) for seed in range(25)),
    *(("causal", seed) for seed in range(10)),
]


def model_of(kind: str, what: str | int) -> CompiledModel:
    return example(str(what)) if kind == "library" else drawn(int(what), causal=kind == "causal")


def selections(model: CompiledModel, program: Program, selector: int) -> Iterator[tuple[Env, NDArray[np.bool_]]]:
    """For every input: the codes of all s-ops, and [query, key] of what a selector selects."""
    for run in evaluations(model):
        codes = {number: codes_of(run, number) for number in model.program.sops}
        length = run.batch.codes.shape[1]
        for row in range(len(run.batch.codes)):
            env = Env(length, {number: array[row].astype(np.int64) for number, array in codes.items()})
            chosen, defined = program.selected(selector, env, env)
            assert defined.all()
            yield env, chosen & np.tril(np.ones((length, length), dtype=bool)) if program.causal else chosen


@pytest.mark.parametrize(("kind", "what"), MODELS)
def test_lemmas_hold_on_every_input(kind: str, what: str | int) -> None:
    """What a lemma says of selectors and s-ops is true of every input."""
    model = model_of(kind, what)
    program = Parsed(model).program()
    facts = Facts(program)
    aggregates = [sop for sop in program.sops.values() if sop.kind == "aggregation"]
    for selector in program.selectors:
        always, own, one = facts.always(selector), facts.own(selector), facts.at_most_one(selector)
        equal = [sop.op["value"] for sop in aggregates if sop.op["selector"] == selector]
        equal = [value for value in equal if facts.equal_values(selector, value)]
        if not (always or own or one or equal):
            continue
        for env, chosen in selections(model, program, selector):
            assert not always or chosen.any(1).all()
            assert not own or chosen.diagonal().all()
            assert not one or chosen.sum(1).max() <= 1
            for value, row in itertools.product(equal, chosen):
                assert len(set(env.codes[value][row].tolist())) <= 1


NUMBERED = {
    ("EQ", "LEQ"): True,
    ("EQ", "GT"): True,
    ("NEQ", "LEQ"): False,
    ("EQ", "NEQ"): False,
    ("LEQ", "LEQ"): False,
}
"""How tokens and how positions are compared, and whether the width numbers the positions of a token."""


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("tokens", "positions"), NUMBERED)
def test_a_width_numbers_the_positions_that_hold_one_value(tokens: str, positions: str, causal: bool) -> None:
    """Where the lemma says so, no two positions of any input agree in both; it says nothing under a causal mask."""
    same = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison[tokens])
    order = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison[positions])
    number = rasp.SelectorWidth(same & order).named("number")
    next_one = rasp.Select(number, number, lambda key, query: key == query + 1)
    here = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)
    model = tracr.compile(rasp.SelectorWidth(here & next_one).named("next"), "abc", 4, causal=causal)
    program = Parsed(model).program()
    facts = Facts(program)
    (width,) = (n for n, sop in program.sops.items() if sop.label == "number")
    (token,) = (n for n, sop in program.sops.items() if sop.kind == "tokens")
    (last,) = (sop.op["selector"] for sop in program.sops.values() if sop.label == "next")
    expected = NUMBERED[tokens, positions] and not causal
    assert facts.numbers_within(width) == (token if expected else None)
    assert facts.at_most_one(last) == expected
    agree, several = False, False
    for env, chosen in selections(model, program, last):
        pairs = list(zip(env.codes[token].tolist(), env.codes[width].tolist(), strict=True))
        agree |= len(set(pairs)) < len(pairs)
        several |= bool(chosen.sum(1).max() > 1)
    assert not (expected and (agree or several))
    assert agree or expected or causal or tokens == "LEQ"  # where the lemma is silent, mostly with reason


@pytest.mark.parametrize(("kind", "what"), MODELS)
def test_distinct_variables_and_local_ways(kind: str, what: str | int) -> None:
    """Distinct variables differ at all positions; an s-op that is known locally has the interpreter's values."""
    model = model_of(kind, what)
    program = Parsed(model).program()
    facts = Facts(program)
    distinct = [number for number in program.sops if facts.distinct(number)]
    given: tuple[Var, ...] = ("T", "I", "L")
    local = [number for number in program.sops if program.derivable(number, frozenset(given))]
    for run in evaluations(model):
        rows, length = run.batch.codes.shape
        for number in distinct:
            assert all(len(set(row.tolist())) == length for row in codes_of(run, number))
        env = Env(rows * length, {"T": run.batch.codes.reshape(-1).astype(np.int64)})
        env.codes["I"] = np.tile(np.arange(length), rows)
        env.codes["L"] = np.full(rows * length, length - program.lengths[0])
        for number in local:
            assert (program.codes(number, env) == codes_of(run, number).reshape(-1)).all()


@pytest.mark.parametrize(("kind", "what"), MODELS[:20])
def test_joint_values_miss_nothing(kind: str, what: str | int) -> None:
    """Every pair of values of two s-ops at one position is listed."""
    model = model_of(kind, what)
    program = Parsed(model).program()
    Facts(program)
    runs = evaluations(model)
    for pair in itertools.islice(itertools.combinations(program.sops, 2), 12):
        for few in (40_000, 0):
            env = joint_values(program, pair, few=few)
            listed = set(zip(*(env.codes[number].tolist() for number in pair), strict=True))
            for run in runs:
                held = (codes_of(run, number).reshape(-1).tolist() for number in pair)
                assert set(zip(*held, strict=True)) <= listed
