"""Compression without loss keeps the outputs on every input, also on inputs that nobody ran."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import tracr
from tests.agreement import compile_quietly
from tests.strategies import Case, cases
from tests.tally import NotCompared, compile_case, mostly_compared
from tracr.compress import exact_dim, exact_dims
from tracr.compress.lossless import lossless
from tracr.compress.narrow import least_dim
from tracr.compress.paper import study
from tracr.compress.readings import basis, possible, read_error, readings, seen
from tracr.compress.task import task_of
from tracr.rasp import programs
from tracr.values import Value

LEVELS = (0, 1, 2)
MORE: dict[type, tuple[Value, ...]] = {str: tuple("abcdefghijklmnop"), int: tuple(range(1, 17))}


def larger(name: str, tokens: int, length: int, level: int) -> tracr.CompiledModel:
    """A program of the library over `tokens` tokens: its own, and more of their kind."""
    example = programs.EXAMPLES[name]
    own = tuple(example.vocab)
    more = tuple(token for token in MORE.get(type(own[0]), ()) if token not in own)
    return compile_quietly(example.program, (own + more)[:tokens], length, level=level)


def check(model: tracr.CompiledModel, budget: int = 100_000, seed: int = 0) -> None:
    """The closed form (on `budget` inputs) and a superposition (on 5,000) agree with the program; every read is exact
    on all possible streams."""
    small = tracr.compress(model, method="exact")
    hidden = tracr.superpose(model, small.d_model + 1, seed=seed)
    for made, most in ((small, budget), (hidden, min(budget, 5000))):
        found = made.verify(most, seed=seed)
        if not found.inputs:
            raise NotCompared("the program raises on every input")
        assert found, found
        assert read_error(readings(model), made.projection.write(0), made.projection.read(0)) < 1e-9


@pytest.fixture
def no_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small models are treated like those with too many inputs to run them all."""
    monkeypatch.setattr(importlib.import_module("tracr.compress.task"), "MOST_INPUTS", 5)


def test_inputs_that_were_not_run_are_kept() -> None:
    """`hist` over 0 to 3, length 8: a sample of its 87,380 inputs has no count of 8, but the model has."""
    model = tracr.compile(programs.make_hist(), (0, 1, 2, 3), 8)
    small = tracr.compress(model, method="exact")
    assert small.d_model < model.d_model
    for token in range(4):
        assert small([token] * 8) == model([token] * 8) == [8] * 8
    assert small.verify(2000)


def test_reads_are_those_of_all_inputs() -> None:
    """The streams found from the weights contain those of every input, at every place."""
    for name in programs.EXAMPLES:
        for level in (0, 2):
            example = programs.EXAMPLES[name]
            assert_contains(compile_quietly(example.program, example.vocab[:3], 3, level=level))


def assert_contains(model: tracr.CompiledModel) -> None:
    """`possible` contains what `seen` saw on every input."""
    for wide, narrow in zip(possible(model), seen(task_of(model)), strict=True):
        assert wide.place == narrow.place
        outside = narrow.held - (narrow.held @ wide.held.T) @ wide.held
        assert np.abs(outside).max(initial=0.0) < 1e-6


@mostly_compared()
@given(case=cases(max_ops=6, max_seq_len=3))
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_reads_of_random_programs_are_those_of_all_inputs(case: Case) -> None:
    """The same for random programs, at every level."""
    for level in LEVELS:
        model = compile_case(case, level=level)
        try:
            assert_contains(model)
        except tracr.InputError as error:
            raise NotCompared(str(error)) from error


@mostly_compared()
@given(case=cases(max_ops=6, max_seq_len=3))
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_programs_lose_nothing(case: Case) -> None:
    """Without running all inputs first, the compressed models are right on all of them."""
    task = importlib.import_module("tracr.compress.task")
    model = compile_case(case, level=case.seed % 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task, "MOST_INPUTS", 5)
        try:
            check(model)
        except tracr.TracrError as error:  # refused: the inputs, or rounding errors of the projection
            raise NotCompared(str(error)) from error


@pytest.mark.usefixtures("no_enumeration")
@pytest.mark.parametrize("name", ["frac_prevs", "sort_unique", "hist", "reverse", "shuffle_dyck", "most_freq"])
def test_the_library_loses_nothing_without_running_its_inputs(name: str) -> None:
    """The proof from the weights, compared on every input."""
    example = programs.EXAMPLES[name]
    for level in LEVELS:
        check(compile_quietly(example.program, example.vocab[:3], 4, level=level))


def test_rounding_is_not_a_loss() -> None:
    """hist_bos multiplies what a head reads by 10⁶: in float32 its compressed model is wrong, so it runs in float64."""
    model = larger("hist_bos", 10, 10, 2)
    small = tracr.compress(model, method="exact")
    assert small.verify(2000)
    assert small.run([*"^aab"]).logits.dtype == np.float64
    assert model.run([*"^aab"]).logits.dtype == np.float32
    assert small.run([*"^aab"], dtype=np.float32).logits.dtype == np.float32


def test_hundreds_of_features_take_seconds() -> None:
    """100 tokens and length 20: no input is needed to find the projection."""
    model = compile_quietly(programs.make_hist(), range(100), 20, level=0)
    readers = readings(model)
    W = lossless(readers)
    assert W.shape[1] == exact_dim(model) < model.d_model
    assert read_error(readers, W, W) < 1e-9


# Fewer dimensions than the closed form


def test_only_reads_made_at_a_place_matter_there() -> None:
    """frac_prevs needs 7 dimensions, which is proved to be the fewest; its closed form has 9."""
    model, inputs = study("frac_prevs")
    found = exact_dims(model)
    assert (found.bound, found.found, found.closed) == (7, 7, 9)
    for dim in (7, 8):
        assert tracr.compress(model, dim, "exact").verify()
        assert tracr.superpose(model, dim, seed=2).verify()
    with pytest.raises(tracr.TracrError, match="attn alone need 7"):
        tracr.compress(model, 6, "exact")
    assert exact_dims(model, inputs) == found


def test_a_search_that_finds_nothing_says_so() -> None:
    """Between the bound and what was found: an error that does not claim a proof. A large model is not searched."""
    model, inputs = study("sort_unique")
    found = exact_dims(model, inputs)
    assert found.bound < found.found < found.closed
    with pytest.raises(tracr.TracrError, match=f"was found; the closed form has {found.closed}"):
        tracr.compress(model, found.found - 1, "exact", inputs=inputs)
    large = larger("induction", 10, 10, 0)
    with pytest.raises(tracr.TracrError, match="too large to search"):
        tracr.compress(large, large.d_model - 50, "exact")


def test_the_bound_is_a_rank() -> None:
    """A reader needs as many dimensions as what it reads has on the streams at its place."""
    model, inputs = study("sort_unique")
    readers = readings(model, inputs)
    least, place = least_dim(readers)
    (one,) = [reader for reader in readers if reader.place == place]
    assert least == len(basis((one.held @ one.reads).T)) == np.linalg.matrix_rank(one.held @ one.reads)


@mostly_compared()
@given(case=cases(max_ops=4, max_seq_len=3))
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_fewest_dimensions_of_random_programs(case: Case) -> None:
    """What the search finds is right on all inputs."""
    model = compile_case(case, level=2)
    try:
        found = exact_dims(model)
    except tracr.InputError as error:
        raise NotCompared(str(error)) from error
    assert found.bound <= found.found <= found.closed
    if found.found:
        assert tracr.compress(model, found.found, "exact").verify()


def test_rounding_errors_of_reads_are_no_directions() -> None:
    """Two columns of this model read nothing that is ever held but rounding errors, which were taken for directions."""
    model = compile_case(Case(303, (-1, 0, 0.5), 4, 5, False, False), level=0)
    check(model, 5000)
    assert exact_dim(model) == 19


# Larger


@pytest.mark.slow
@pytest.mark.parametrize("name", list(programs.EXAMPLES))
@pytest.mark.parametrize(("tokens", "length", "levels"), [(4, 8, (0, 2)), (10, 10, (2,)), (12, 12, (0,))])
def test_the_library_loses_nothing(name: str, tokens: int, length: int, levels: tuple[int, ...]) -> None:
    """All inputs at (4, 8); at the others, a sample of the inputs, and all possible streams by their bases."""
    for level in levels:
        try:
            model = larger(name, tokens, length, level)
        except tracr.FunctionError:
            pytest.skip("the program does not compile for these tokens")
        check(model, 100_000 if tokens == 4 else 5000)


@pytest.mark.slow
@mostly_compared(0.8)
@given(case=cases(max_ops=10, max_seq_len=10))
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_larger_random_programs_lose_nothing(case: Case) -> None:
    """Random programs, of up to ten operations and length ten."""
    model = compile_case(case, level=case.seed % 3)
    try:
        check(model, 5000, seed=case.seed % 1000)
    except tracr.InputError as error:
        raise NotCompared(str(error)) from error
