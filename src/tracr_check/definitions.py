"""Definitions that a certificate adds to the program: pairs of s-ops, widths of selectors, sums of s-ops.

A sum of *units* adds up how far each selected number is above a given one, in whole units. A definition has the fields
of its kind and no others: its meaning is read from them, wherever it is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tracr_check.aggregated import default_code
from tracr_check.facts import Facts
from tracr_check.program import Program
from tracr_check.variables import ERROR, Array, Codes, SOp, Way, is_number, snap
from tracr_check.verdict import need

__all__ = ["MOST_SUMS", "define", "sums_of", "units_of"]

FIRST = 100_000
MOST_SUMS = 20_000
MOST_VALUES = 4_000_000  # of all definitions
NUMBER = 1_000  # codes that are computed in the time in which a number is written as a fraction
FIELDS: Mapping[str, tuple[str, ...]] = {
    "pair": ("of",),
    "width": ("selector",),
    "sum": ("selector", "of"),
    "units": ("selector", "of", "above", "times"),
}


def define(program: Program, facts: Facts, aux: Mapping[str, Any]) -> None:
    """Add the definitions of a certificate to the program.

    Only selectors of the program's own s-ops: where a cell of another one is undefined, the program may be defined.
    """
    used = {sop.op["selector"] for sop in program.sops.values() if sop.kind in ("width", "aggregation")}
    total, longest = 0, program.lengths[1]
    for text, given in aux.items():
        number, kind, ways = int(text), given["kind"], []
        need(set(given) == {"kind", *FIELDS.get(kind, ("",))}, f"{kind!r:.40} is no definition, or a malformed one")
        need(number >= FIRST and number not in program.sops, "a definition hides an s-op")
        need(kind == "pair" or given["selector"] in used, "no s-op has this selector")
        program.spend(NUMBER * len(program.sops[given["of"]].values) if kind in ("sum", "units") else 0)
        match kind:
            case "pair":
                first, second = given["of"]
                size = len(program.sops[second].values)
                values: Sequence[Any] = range(len(program.sops[first].values) * size)
                ways = [Way((first, second), lambda rows, one, two, size=size: one * size + two)]
            case "width":
                values = range(1 if facts.always(given["selector"]) else 0, longest + 1)
            case "sum":
                values = sums_of(program.sops[given["of"]], longest)
            case _:
                values = _whole_sums(units_of(program.sops[given["of"]], given).astype(int).tolist(), longest)
        total += len(values)
        need(total <= MOST_VALUES, "definitions have too many values")
        sop = SOp(number, f"{kind} of {given.get('of', given.get('selector'))}", dict(given), tuple(values))
        program.sops[number], program.sizes[number] = sop, len(values)
        program.ways[number] = facts.local(sop) if kind == "width" else ways
    _quotients(program)


def sums_of(sop: SOp, longest: int) -> tuple[float, ...]:
    """All sums of up to so many numbers of an s-op, which must be multiples of a common fraction.

    >>> sums_of(SOp(0, "half", {"kind": "tokens"}, (0, 0.5)), 3)
    (0.0, 0.5, 1.0, 1.5)
    """
    need(sop.listed, f"{sop.label} is an interval")
    numbers = sop.numbers[np.isfinite(sop.numbers)].tolist()
    need(len(numbers) < MOST_SUMS, "sums have too many values")
    fractions = [Fraction(number).limit_denominator(1000) for number in numbers]
    both = list(zip(map(float, fractions), numbers, strict=True))
    near = all(abs(f - x) <= 1e-15 * max(1.0, abs(x)) and bool(f) == bool(x) for f, x in both)
    need(numbers and near, f"the values of {sop.label} have no common fraction")
    unit = math.lcm(*(fraction.denominator for fraction in fractions))
    units = [int(fraction * unit) for fraction in fractions]
    return tuple(one / unit for one in _whole_sums(units, longest))


def _whole_sums(units: Sequence[int], longest: int) -> range:
    """All sums of up to so many whole numbers."""
    low, high = min(0, *units) * longest, max(0, *units) * longest
    need(high - low < MOST_SUMS, "sums have too many values")
    return range(low, high + 1)


def units_of(sop: SOp, op: Mapping[str, Any]) -> Array:
    """How far each number of an s-op is above a number, in units: (x - above) times, whole numbers.

    A number that is computed back from its units is within 1e-11, whatever the sizes of `above` and `times`. So is a
    mean, and its roundings, four of them, are below 2e-11: together less than what `snap` allows beyond 1e-9.

    >>> units_of(SOp(0, "third", {"kind": "tokens"}, (1, 4 / 3)), {"above": 1, "times": 3}).tolist()
    [0.0, 1.0]
    """
    above, times = op["above"], op["times"]
    need(is_number(above) and is_number(times) and times > 0, "units of no numbers")
    need(sop.listed and np.isfinite(sop.numbers).all(), f"{sop.label} is not a list of numbers")
    scaled = (sop.numbers - above) * times
    units: Array = np.rint(scaled)
    near = np.abs(units / times + above - sop.numbers) <= 1e-11
    small = 2.0**-50 * (units / times + abs(above)) <= 2e-11
    whole = near.all() and small.all() and (units >= 0).all() and units.max() < MOST_SUMS
    need(whole, f"{sop.label} has no such units")
    return units


def _quotients(program: Program) -> None:
    """A mean is the quotient of the sum (in units or not) and the width, and undefined if it is not listed.

    If sum and width are not those of any selection (a sum larger than the count allows), no input has both. A mean
    that is an interval has no such way: rounding may put the quotient into another cell than the number (`cells.py`).
    """
    every = program.sops.values()
    widths = {sop.op["selector"]: sop for sop in every if sop.kind == "width"}
    sums = {(sop.op["selector"], sop.op["of"]): sop for sop in every if sop.kind in ("sum", "units")}
    for sop in every:
        if sop.kind == "aggregation" and sop.listed:
            selector, source = sop.op["selector"], program.sops[sop.op["value"]]
            total, width = sums.get((selector, source.number)), widths.get(selector)
            if total is not None and width is not None and np.isfinite(source.numbers).all():
                way = Way((total.number, width.number), _quotient(sop, total, width, source))
                program.ways[sop.number].append(way)


def _quotient(target: SOp, total: SOp, width: SOp, source: SOp) -> Callable[..., Codes]:
    above, times = float(total.op.get("above", 0.0)), float(total.op.get("times", 1.0))
    low, high = source.numbers.min(), source.numbers.max()

    def function(rows: int, sums: Codes, counts: Codes) -> Codes:
        w = np.rint(width.numbers[counts])  # a listed value may differ from the count by 1e-9
        s = total.numbers[sums] / times + above * w
        found = snap(target, s / np.maximum(w, 1.0))
        possible = (s <= w * high + 1e-6) & (s >= w * low - 1e-6)
        found = np.where(possible & (found >= 0), found, ERROR)
        if target.op["assumed"]:
            found = np.where(w > 1, ERROR, found)
        return np.where(w == 0, np.where(s == 0, default_code(target), ERROR), found)

    return function
