"""The targets of the benchmark, and whether a run reaches them, for each level."""

from __future__ import annotations

from dataclasses import dataclass

from cases import SIZES, Case
from measures import Ratio, cases_of, middle, ratio, shared
from running import Results

__all__ = ["Verdict", "verdicts"]

LARGE = 1_000_000  # with at least this many parameters, compiling is compared with filling
FILLS = 5.0  # compiling may take this many times as long as filling the weights
HARD = ("reverse", "sort", "shuffle_dyck2")


@dataclass(frozen=True)
class Verdict:
    """One target, on one level."""

    target: str
    level: str
    reached: bool | None
    found: str


def verdicts(results: Results, level: str) -> list[Verdict]:
    """Every target, with what was found."""
    smallest, ten, fifty = SIZES[:1], SIZES[:2], SIZES[3:4]
    found = [
        _at_least(results, level, "cold start ≥ 10×", 10, "cold", shared(results)),
        _at_least(results, level, "compile ≥ 10× at (4, 5)", 10, "compile", shared(results, sizes=smallest)),
        _at_least(
            results,
            level,
            f"compile ≥ 100× for {', '.join(HARD)} at (50, 50)",
            100,
            "compile",
            shared(results, programs=HARD, sizes=fifty),
        ),
    ]
    for form in ("called", "jitted"):
        against = "as users call it" if form == "called" else "jitted"
        for count, text, least, cases in (
            ("one", "1 input at a time ≥ 100×", 100, shared(results)),
            ("many", "512 inputs ≥ 10× at (4, 5) and (10, 10)", 10, shared(results, sizes=ten)),
            ("many", "512 inputs ≥ 100× at (50, 50)", 100, shared(results, sizes=fifty)),
        ):
            name = f"{text}, the original {against}"
            found.append(_at_least(results, level, name, least, f"{count}, {form}", cases))
    return [
        *found,
        _mismatches(results, level),
        _filling(results, level, "filling", "filling the weights in new memory"),
        _filling(results, level, "filling_again", "filling memory that was used before"),
        _overhead(results, level),
        *_second(results, level),
    ]


def _at_least(results: Results, level: str, target: str, least: float, measure: str, cases: list[Case]) -> Verdict:
    ratios = {case: found for case in cases if (found := ratio(results, case, level, measure)) is not None}
    if not ratios:
        return Verdict(target, level, None, "not measured")
    worst = min(ratios, key=lambda case: ratios[case].value)
    reached = [case for case, found in ratios.items() if found.value >= least]
    typical = middle(list(ratios.values()))
    text = f"{len(reached)} of {len(ratios)}; median {typical}×, lowest {ratios[worst]}× ({_name(worst)})"
    return Verdict(target, level, len(reached) == len(ratios), text)


def _name(case: Case) -> str:
    return f"{case.program} at {case.size}"


def _mismatches(results: Results, level: str) -> Verdict:
    """The mismatches of our answers, which must be 0, and those of the original."""
    target = "no mismatches with the interpreter"
    cases = cases_of(results)
    counts = {
        side: sum(
            record[how]["wrong"]
            for case in chosen
            if (record := results.get(case, side)) is not None
            for how in ("unpadded", "padded")
            if how in record
        )
        for side, chosen in ((level, cases), ("original", shared(results)))
    }
    inputs = sum(
        record[how]["inputs"]
        for case in cases
        if (record := results.get(case, level)) is not None
        for how in ("unpadded", "padded")
        if how in record
    )
    text = (
        f"{counts[level]:,} of {inputs:,} answers; the original has {counts['original']:,}, on its part of the library"
    )
    return Verdict(target, level, counts[level] == 0, text)


def _own(results: Results, level: str, large: bool, fill: str = "filling") -> dict[Case, tuple[float, float]]:
    """Seconds of compiling without the program's functions, and of filling, for large or for small models."""
    found = {}
    for case in cases_of(results):
        record = results.get(case, level)
        if record and fill in record and (record["size"]["parameters"] >= LARGE) == large:
            found[case] = (max(0.0, record["compile"] - record["functions"]), record[fill])
    return found


def _filling(results: Results, level: str, fill: str, what: str) -> Verdict:
    target = f"compiling, the program's functions not counted, within 5× of {what}, over a million parameters"
    found = _own(results, level, large=True, fill=fill)
    if not found:
        return Verdict(target, level, None, "not measured")
    factors = {case: own / fill for case, (own, fill) in found.items()}
    worst = max(factors, key=lambda case: factors[case])
    reached = sum(factor <= FILLS for factor in factors.values())
    typical = middle([Ratio(factor) for factor in factors.values()])
    text = f"{reached} of {len(factors)}; median {typical}×, highest {factors[worst]:.1f}× ({_name(worst)})"
    return Verdict(target, level, reached == len(factors), text)


def _overhead(results: Results, level: str) -> Verdict:
    """The fixed overhead, in units of the time to fill a million parameters, which makes machines comparable."""
    target = "fixed overhead of smaller models (to report)"
    large, small = _own(results, level, large=True), _own(results, level, large=False)
    if not large or not small:
        return Verdict(target, level, None, "not measured")
    million = min(
        fill / record["size"]["parameters"] * LARGE
        for case, (_, fill) in large.items()
        if (record := results.get(case, level)) is not None
    )
    units = sorted((own - fill) / million for own, fill in small.values())
    text = f"{units[0]:.1f} to {units[-1]:,.0f} times filling a million parameters, median {units[len(units) // 2]:.0f}"
    return Verdict(target, level, None, text)


def _second(results: Results, level: str) -> list[Verdict]:
    if level != "level 2":
        return []
    cases = cases_of(results, sizes=SIZES[1:2])
    times = {case: record["compile"] for case in cases if (record := results.get(case, level)) and "compile" in record}
    target = "the library at (10, 10) in under 1 s each, without the solver"
    if not times:
        return [Verdict(target, level, None, "not measured")]
    worst = max(times, key=lambda case: times[case])
    return [Verdict(target, level, times[worst] < 1, f"the slowest, {worst.program}, takes {times[worst]:.0%} of it")]
