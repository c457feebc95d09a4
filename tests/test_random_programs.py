"""Random programs: interpreter = vectorised interpreter = model, at every level."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tracr
from tests.agreement import assert_agrees
from tests.strategies import VOCABULARIES, Case, cases
from tests.tally import NotCompared, Tally, compile_case, mostly_compared
from tests.tiers import slow, usual
from tracr.ir.options import LEVELS
from tracr.model.interventions import locations
from tracr.runtime.table_interpreter import evaluate_batch
from tracr.values import Value


def check(case: Case, inputs: int) -> None:
    """Compile at every level and compare."""
    models = []
    for level in LEVELS:
        model = compile_case(case, level=level)
        if not assert_agrees(model, case.program, case.inputs(inputs), singles=2):
            raise NotCompared("the program raises on every input")
        models.append(model)
    for lower, higher in itertools.pairwise(models):
        assert higher.n_layers <= lower.n_layers
        assert higher.d_model <= lower.d_model


@mostly_compared()
@given(case=cases(composite=True))
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
def test_models_compute_random_programs(case: Case) -> None:
    """Decoded output equals the interpreter's, None included; a higher level is never larger."""
    check(case, inputs=12)


@pytest.mark.parametrize(
    "case",
    [Case(501213, ("x",), 14, 7, True), Case(319, (False, True), 9, 1, True, True), Case(5748, (1, 2, 3), 11, 4)],
)
def test_sharing_costs_no_layers(case: Case) -> None:
    """Programs in which equal s-ops with different readers once made level 1 deeper than level 0."""
    check(case, inputs=12)


def test_widths_of_rough_codes() -> None:
    """A width of at most one key, over numbers made one-hot: their roughness once shifted its share."""
    check(Case(1002030, (False, True), 11, 4, True), inputs=40)


@pytest.mark.parametrize("block", [0, 1, *slow(range(2, usual(7, long=12)))])
def test_few_random_programs_are_refused(block: int) -> None:
    """Of 40 seeded programs in each block nearly all compile, and all of those agree."""
    with Tally(least=0.95) as tally:
        for seed in range(40 * block, 40 * block + 40):
            vocab, causal, composite = VOCABULARIES[seed % len(VOCABULARIES)], seed % 3 == 0, seed % 4 == 0
            with tally.draw():
                check(Case(seed, vocab, 1 + seed % 9, 1 + seed % 6, causal, composite), inputs=12)


@pytest.mark.slow
@mostly_compared(0.9)
@given(case=cases(max_ops=14, max_seq_len=10, composite=True), inputs=st.just(20))
@settings(max_examples=usual(250, long=1500), deadline=None, suppress_health_check=list(HealthCheck))
def test_models_compute_larger_random_programs(case: Case, inputs: int) -> None:
    """The same for larger programs, hundreds of them."""
    check(case, inputs)


def assert_noise_bounds_hold(model: tracr.CompiledModel, inputs: list[list[Value]]) -> None:
    """What every s-op's directions hold is within the error bound the compiler claims for it."""
    evaluation = evaluate_batch(model.program, inputs)
    run = model.run(inputs)
    for location in locations(model.program, model.layout).values():
        variable, live = location.variable, location.slots >= 0
        stream = run["hook_embed"] + run["hook_pos_embed"] if location.hook == "hook_embed" else run[location.hook]
        assert variable.node is not None
        for row, values in enumerate(evaluation.values(variable.node)):
            for position, value in enumerate([] if evaluation.errors[row] else values):
                code = variable.code(value)
                off = np.abs(stream[row, position + 1, location.slots[live]] - code[live])
                hot = (code[live] != 0) | variable.numerical
                rounding = 2e-7 * np.maximum(1, np.abs(code[live]))  # of the code itself
                allowed = np.where(hot, variable.noise.error, variable.noise.cold) + rounding
                assert (off <= allowed).all(), (variable.label, variable.noise, inputs[row], position, value, off)


@pytest.mark.parametrize("block", [0, *slow(range(1, usual(4, long=6)))])
def test_error_bounds_hold(block: int) -> None:
    """On 60 seeded programs in each block, at every level."""
    with Tally(least=0.95) as tally:
        for seed in range(60 * block, 60 * block + 60):
            case = Case(seed, VOCABULARIES[seed % len(VOCABULARIES)], 1 + seed % 9, 1 + seed % 6, seed % 3 == 0)
            for level in LEVELS:
                with tally.draw():
                    assert_noise_bounds_hold(compile_case(case, level=level), case.inputs(8))
