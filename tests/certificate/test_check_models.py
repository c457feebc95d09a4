"""Compiled models are accepted; models with one changed weight that give a wrong answer are not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.certificate.check_cases import Exhaustive, Parsed, drawn, example, mutant
from tests.tiers import slow, usual
from tracr.rasp.programs import EXAMPLES
from tracr_check.arithmetic import ARITHMETICS


@pytest.mark.parametrize("level", [2, *slow([0, 1])])
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_library_is_accepted(name: str, level: int) -> None:
    """Every program of the library, padded, in float32."""
    assert Parsed(example(name, level)).reason() == ""


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_random_programs_are_accepted(seed: int, causal: bool) -> None:
    """Random programs with default controls."""
    assert Parsed(drawn(seed, composite=False, causal=causal)).reason() == ""


@pytest.mark.parametrize("name", ["hist", "reverse", "sort", "frac_prevs", "pair_balance"])
@pytest.mark.parametrize("arithmetic", ["float64", "float32-leak"])
def test_other_arithmetics(name: str, arithmetic: str) -> None:
    """float64, and float32 whose exponentials never vanish."""
    assert arithmetic in ARITHMETICS
    assert Parsed(example(name)).reason(arithmetic=arithmetic) == ""


@pytest.mark.parametrize(
    "case",
    [
        ("library", "hist", 20),
        ("library", "sort", 10),
        ("library", "frac_prevs", 20),
        ("library", "pair_balance", 15),
        ("library", "reverse", 12),
        ("composite", 3, 8),
        ("composite", 9, 8),
        ("causal", 2, 15),
        *slow([("library", name, 60) for name in ("dyck1", "closer", "most_freq", "hist2", "induction", "counter")]),
        *slow([("composite", seed, 60) for seed in range(20, usual(30, long=40))]),
        *slow([("causal", seed, 60) for seed in range(20, usual(25, long=30))]),
    ],
)
def test_no_harmful_mutant_is_accepted(case: tuple[str, str | int, int]) -> None:
    """If one changed weight makes any answer wrong, the checker rejects; most harmless changes pass."""
    kind, what, count = case
    model = example(str(what)) if kind == "library" else drawn(int(what), causal=kind == "causal")
    parsed, every = Parsed(model), Exhaustive(model)
    assert not every.wrong(parsed.weights)
    if parsed.reason():
        pytest.skip("the model itself is not covered")
    rng = np.random.default_rng([7, count, len(str(what))])
    harmless = accepted = 0
    for _ in range(count):
        changed = mutant(parsed.weights, rng)
        wrong, fine = every.wrong(changed), parsed.reason(changed) == ""
        assert not (wrong and fine)
        harmless, accepted = harmless + (not wrong), accepted + fine
    assert accepted >= harmless // 2
