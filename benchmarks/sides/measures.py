"""Ratios between the two sides' measurements of a case; larger is better for us."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low

from cases import OURS_ONLY, PROGRAMS, SIZES, Case
from running import Record, Results

__all__ = ["SPEED", "Ratio", "cases_of", "middle", "ratio", "shared"]

Size = tuple[int, int]
SPEED = {
    "cold": "cold start",
    "compile": "compile",
    "memory": "memory",
    "one, called": "1 input, called",
    "one, jitted": "1 input, jitted",
    "many, called": "512 inputs, called",
    "many, jitted": "512 inputs, jitted",
}
RATES = {
    "one, called": ("called_1", "called_1"),
    "one, jitted": ("called_1", "jitted_1"),
    "many, called": ("called_512", "called_1"),  # it takes one input at a time
    "many, jitted": ("called_512", "jitted_512"),
}  # ours, the original's


@dataclass(frozen=True)
class Ratio:
    """How many times better we are; `least` if the original was stopped, so that the ratio is a lower bound."""

    value: float
    least: bool = False

    def __str__(self) -> str:
        digits = 0 if self.value >= 9.95 else 1
        return f"{'>' if self.least else ''}{self.value:,.{digits}f}"


def ratio(results: Results, case: Case, level: str, measure: str) -> Ratio | None:
    """Original / ours for a time or for memory, ours / original for a rate; `None` if one is missing."""
    original, ours = results.get(case, "original"), results.get(case, level)
    if original is None or ours is None:
        return None
    if measure in RATES:
        mine, its = (record.get(name) for record, name in zip((ours, original), RATES[measure], strict=True))
        return Ratio(mine / its) if mine and its else None
    if not ours.get(measure):
        return None
    if original.get(measure):
        return Ratio(original[measure] / ours[measure])
    bound = _spent(results, original, measure)
    return Ratio(bound / ours[measure], least=True) if bound else None


def _spent(results: Results, original: Record, measure: str) -> float | None:
    """The least time or memory of a side that was stopped."""
    if original["status"] != "stopped" or measure == "memory":
        return None
    if measure == "compile":
        return float(original.get("first_compile") or results.data["limit"] - original.get("start", 0))
    return float(results.data["limit"])


def cases_of(results: Results, *, programs: Sequence[str] = PROGRAMS, sizes: Sequence[Size] = SIZES) -> list[Case]:
    """The cases that were measured, in order."""
    every = [Case(name, *size) for size in sizes for name in programs]
    return [case for case in every if results.get(case, "level 1") is not None]


def shared(results: Results, *, programs: Sequence[str] = PROGRAMS, sizes: Sequence[Size] = SIZES) -> list[Case]:
    """Those whose program both libraries have."""
    return [case for case in cases_of(results, programs=programs, sizes=sizes) if case.program not in OURS_ONLY]


def middle(ratios: list[Ratio]) -> Ratio | None:
    """The median; of an even number the lower."""
    if not ratios:
        return None
    value = median_low(each.value for each in ratios)
    return Ratio(value, any(each.least and each.value <= value for each in ratios))
