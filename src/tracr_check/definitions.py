"""Definitions that a certificate adds to the program: pairs of s-ops, widths of selectors, sums of s-ops."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tracr_check.aggregated import default_code
from tracr_check.facts import Facts
from tracr_check.program import Program
from tracr_check.variables import ERROR, Codes, SOp, Way, snap
from tracr_check.verdict import need, reject

__all__ = ["define", "sums_of"]

FIRST = 100_000
MOST_SUMS = 20_000


def define(program: Program, facts: Facts, aux: Mapping[str, Any]) -> None:
    """Add the definitions of a certificate to the program: pairs of s-ops, widths of selectors, sums of s-ops."""
    for text, given in aux.items():
        number, kind = int(text), given["kind"]
        need(number >= FIRST and number not in program.sops, "a definition hides an s-op")
        ways: list[Way] = []
        match kind:
            case "pair":
                first, second = given["of"]
                size = len(program.sops[first].values), len(program.sops[second].values)
                need(math.prod(size) <= MOST_SUMS * 50, "a pair has too many values")
                values: Sequence[Any] = range(math.prod(size))
                ways = [Way((first, second), _pairing(size[1]))]
            case "width":
                need(given["selector"] in program.selectors, "no such selector")
                least = 1 if facts.always(given["selector"]) else 0
                values = range(least, program.lengths[1] + 1)
            case "sum":
                need(given["selector"] in program.selectors, "no such selector")
                values = sums_of(program.sops[given["of"]], program.lengths[1])
            case _:
                reject(f"no definition {kind!r:.40}")
        label = f"{kind} of {given.get('of', given.get('selector'))}"
        program.sops[number] = SOp(number, label, dict(given), tuple(values))
        program.sizes[number], program.ways[number] = len(values), ways
        if kind == "width":
            program.ways[number] = facts.local(program.sops[number])
    _quotients(program)


def _pairing(size: int) -> Any:
    return lambda rows, first, second: first * size + second


def sums_of(sop: SOp, longest: int) -> tuple[float, ...]:
    """All sums of up to so many numbers of an s-op, which must be multiples of a common fraction.

    >>> sums_of(SOp(0, "half", {"kind": "tokens"}, (0, 0.5)), 3)
    (0.0, 0.5, 1.0, 1.5)
    """
    need(sop.listed, f"{sop.label} is an interval")
    numbers = sop.numbers[np.isfinite(sop.numbers)].tolist()
    fractions = [Fraction(number).limit_denominator(1000) for number in numbers]
    need(
        numbers
        and all(
            abs(float(f) - x) <= 1e-15 * max(1.0, abs(x)) and bool(f) == bool(x)
            for f, x in zip(fractions, numbers, strict=True)
        ),
        f"the values of {sop.label} have no common fraction",
    )
    unit = math.lcm(*(fraction.denominator for fraction in fractions))
    units = [int(fraction * unit) for fraction in fractions]
    low, high = min(0, *units) * longest, max(0, *units) * longest
    need(high - low < MOST_SUMS, f"sums of {sop.label} have too many values")
    return tuple(one / unit for one in range(low, high + 1))


def _quotients(program: Program) -> None:
    """A mean is the quotient of the sum and the width, where both are defined; undefined if it is not listed.

    If the sum or width is not that of any selection (a sum larger than the count allows), no input has both.
    """
    widths = {sop.op["selector"]: number for number, sop in program.sops.items() if sop.kind == "width"}
    sums = {(sop.op["selector"], sop.op["of"]): number for number, sop in program.sops.items() if sop.kind == "sum"}
    for number, sop in list(program.sops.items()):
        if sop.kind == "aggregation":
            total, width = sums.get((sop.op["selector"], sop.op["value"])), widths.get(sop.op["selector"])
            source = program.sops[sop.op["value"]]
            if total is not None and width is not None and np.isfinite(source.numbers).all():
                function = _quotient(sop, program.sops[total], program.sops[width], source)
                program.ways[number] = [*program.ways[number], Way((total, width), function)]


def _quotient(target: SOp, total: SOp, width: SOp, source: SOp) -> Any:
    low, high = source.numbers.min(), source.numbers.max()

    def function(rows: int, sums: Codes, counts: Codes) -> Codes:
        w, s = width.numbers[counts], total.numbers[sums]
        found = snap(target, s / np.maximum(w, 1.0))
        possible = (s <= w * high + 1e-6) & (s >= w * low - 1e-6)
        found = np.where(possible & (found >= 0), found, ERROR)
        if target.op["assumed"]:
            found = np.where(w > 1, ERROR, found)
        return np.where(w == 0, np.where(s == 0, default_code(target), ERROR), found)

    return function
