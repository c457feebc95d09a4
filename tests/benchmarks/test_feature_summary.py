"""The summary of the study of features: sparsities are chosen on programs that are not scored, programs are units."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def summary(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    import feature_summary

    return feature_summary


def dictionary(summary: Any, program: int, sparsity: float, f1: float, seed: int = 0, kind: str = "sae-l1") -> Any:
    """A dictionary with this F1."""
    row = {
        "method": kind,
        "settings": f'{{"width": 1.0, "penalty": {sparsity}}}',
        "case": f"features:density=0.05:seed={program}" if program else "features:density=0.05",
        "dials": '{"ratio": 4.0}',
        "seed": seed,
        "f1": f1,
    }
    return summary.Dictionary.of(row)


def test_sparsities_are_chosen_on_the_other_programs(summary: Any) -> None:
    """If 0.2 is the best on even programs and 0.4 on odd ones, each gets the choice of the others: the worse one."""
    every = [
        dictionary(summary, program, sparsity, 1.0 if (sparsity == 0.2) == (program % 2 == 0) else 0.5)
        for program in range(6)
        for sparsity in (0.2, 0.4)
    ]
    kept = summary.chosen(every, "f1")
    assert [(one.program, one.sparsity) for one in kept] == [(p, 0.4 if p % 2 == 0 else 0.2) for p in range(6)]
    assert summary.mean(kept, "f1").mean == 0.5


def test_programs_are_the_units(summary: Any) -> None:
    """A program with many rows counts as one with few; values that are missing are left out."""
    every = [dictionary(summary, 0, 0.2, 0.0, seed) for seed in range(9)] + [dictionary(summary, 1, 0.2, 1.0)]
    found = summary.mean(every, "f1")
    assert (found.mean, found.cases, found.values) == (0.5, 2, 10)
    assert (found.low, found.high) == (0, 1)
    assert summary.mean([dictionary(summary, 0, 0.2, None)], "f1") is None  # type: ignore[arg-type]


def test_kinds_are_compared_on_the_same_subjects(summary: Any) -> None:
    """The mean of the differences of pairs."""
    first = [dictionary(summary, program, 0.2, 0.5 + 0.1 * program) for program in range(4)]
    second = [dictionary(summary, program, 0.2, 0.4 + 0.1 * program, kind="sae-jumprelu") for program in range(4)]
    found = summary.between([*first, *second], "sae-l1", "sae-jumprelu", "f1")
    assert (found.mean, found.low, found.high) == pytest.approx((0.1, 0.1, 0.1))
