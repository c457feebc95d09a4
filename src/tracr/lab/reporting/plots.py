"""The plots of the page, as SVG whose colours are those of the page, light or dark."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise

from tracr.lab.bootstrap import Estimate
from tracr.lab.reporting.sentences import estimate_text

__all__ = ["Limits", "interval_panel", "limits_of", "line_panel", "scatter_plot"]

Limits = tuple[float, float]
WIDTH, LABEL, ROW, TOP, BOTTOM = 360, 128, 21, 6, 26
LONGEST, LONGER = 18, 40  # characters of a label; those of methods with settings
LETTER = 7.4  # pixels
SQUARE = 300
CELL = 2  # pixels: dots closer than that are one
DENSITIES = (1, 2, 5, 15, math.inf)


def limits_of(estimates: Iterable[Estimate | None]) -> Limits:
    """From 0 to 1, or as far as the estimates and their intervals go."""
    ends = [end for one in estimates if one for end in (one.mean, one.low, one.high) if end is not None]
    return min([0.0, *ends]), max([1.0, *ends])


def interval_panel(title: str, items: Sequence[tuple[str, Estimate | None]], limits: Limits) -> str:
    """A dot with its interval for each item, below each other."""
    height = TOP + ROW * len(items) + BOTTOM
    longest = max([LONGEST, *(min(len(label), LONGER) for label, _ in items)])
    more = round(LETTER * (longest - LONGEST))
    left, right = LABEL + more, WIDTH + more - 14
    parts = [_grid(limits, left, right, TOP, TOP + ROW * len(items))]
    for number, (label, estimate) in enumerate(items):
        y = TOP + ROW * (number + 0.5)
        parts.append(f'<text class="label" x="{left - 8}" y="{y + 4:.1f}">{_short(label, longest)}</text>')
        parts.append(_interval(estimate, limits, left, right, y))
    said = "; ".join(f"{label} {estimate_text(estimate)}" for label, estimate in items)
    return _svg(f"{title}: {said}", WIDTH + more, height, parts)


def _interval(estimate: Estimate | None, limits: Limits, left: float, right: float, y: float) -> str:
    if estimate is None or estimate.low is None or estimate.high is None:
        return f'<text class="none" x="{left + 6}" y="{y + 4:.1f}">{estimate_text(estimate)}</text>'
    low, mean, high = (_at(value, limits, left, right) for value in (estimate.low, estimate.mean, estimate.high))
    return (
        f'<path class="interval" d="M{low:.1f} {y:.1f}H{high:.1f}M{low:.1f} {y - 4:.1f}v8M{high:.1f} {y - 4:.1f}v8"/>'
        f'<circle class="mean" cx="{mean:.1f}" cy="{y:.1f}" r="4"/>'
    )


def line_panel(title: str, axis: str, items: Sequence[tuple[str, Estimate | None]], limits: Limits) -> str:
    """Estimates over the values of a dial, with their intervals."""
    width, height, left, bottom = 260, 170, 40, 128
    step = (width - left - 12) / max(1, len(items))
    parts = []
    for value in _ticks(limits):
        y = _at(value, limits, bottom, 10)
        parts.append(f'<path class="grid" d="M{left} {y:.1f}H{width - 6}"/>')
        parts.append(f'<text class="label" x="{left - 6}" y="{y + 4:.1f}">{value:g}</text>')
    joined = []
    for number, (value_text, estimate) in enumerate(items):
        x = left + step * (number + 0.5)
        parts.append(f'<text class="tick" x="{x:.1f}" y="{bottom + 17}">{_short(value_text)}</text>')
        if estimate is None or estimate.low is None or estimate.high is None:
            parts.append(f'<text class="tick" x="{x:.1f}" y="{bottom - 4}">–</text>')
            continue
        low, mean, high = (_at(one, limits, bottom, 10) for one in (estimate.low, estimate.mean, estimate.high))
        joined.append(f"{x:.1f} {mean:.1f}")
        parts.append(f'<path class="interval" d="M{x:.1f} {low:.1f}V{high:.1f}m-4 0h8M{x - 4:.1f} {low:.1f}h8"/>')
        parts.append(f'<circle class="mean" cx="{x:.1f}" cy="{mean:.1f}" r="4"/>')
    if len(joined) > 1:
        parts.insert(0, f'<path class="joined" d="M{"L".join(joined)}"/>')
    parts.append(f'<text class="tick" x="{(left + width) / 2:.0f}" y="{height - 6}">{escape(axis)}</text>')
    said = "; ".join(f"{value} {estimate_text(estimate)}" for value, estimate in items)
    return _svg(f"{title}, by {axis}: {said}", width, height, parts)


def scatter_plot(title: str, names: tuple[str, str], points: Sequence[tuple[float, float, bool]]) -> str:
    """A dot for each circuit: (x, y, whether it is exactly the truth). A dot for several circuits is darker.

    The x axis leaves out the most extreme hundredth of the circuits; their dots are at its border.
    """
    across = sorted(x for x, _, _ in points)
    edge = len(across) // 200
    limits = (min(0.0, across[edge]), max(1.0, across[-1 - edge])) if across else (0.0, 1.0)
    left, bottom, right, top = 44, SQUARE - 40, SQUARE - 10, 10
    parts = []
    for value in _ticks((0.0, 1.0)):
        y = _at(value, (0.0, 1.0), bottom, top)
        parts.append(f'<path class="grid" d="M{left} {y:.1f}H{right}"/>')
        parts.append(f'<text class="label" x="{left - 6}" y="{y + 4:.1f}">{value:g}</text>')
    for value in _ticks(limits):
        x = _at(value, limits, left, right)
        parts.append(f'<path class="grid" d="M{x:.1f} {top}V{bottom}"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{bottom + 15}">{value:g}</text>')
    for exact in (False, True):
        chosen = [(x, y) for x, y, is_exact in points if is_exact == exact]
        inside = [(_at(min(max(x, limits[0]), limits[1]), limits, left, right), y) for x, y in chosen]
        parts += _dots([(x, _at(y, (0.0, 1.0), bottom, top)) for x, y in inside], "exact" if exact else "inexact")
    parts.append(f'<text class="tick" x="{(left + right) / 2:.0f}" y="{SQUARE - 6}">{escape(names[0])}</text>')
    middle = (top + bottom) / 2
    parts.append(
        f'<text class="tick" transform="rotate(-90 12 {middle:.0f})" x="12" y="{middle:.0f}">{escape(names[1])}</text>'
    )
    return _svg(f"{title}: {len(points):,} circuits", SQUARE, SQUARE, parts)


def _dots(places: Sequence[tuple[float, float]], kind: str) -> list[str]:
    """One path for all cells of the plane with about as many dots: more dots, more colour."""
    counts = Counter((round(x / CELL) * CELL, round(y / CELL) * CELL) for x, y in places)
    found = []
    for level, (least, most) in enumerate(pairwise(DENSITIES)):
        cells = sorted(place for place, count in counts.items() if least <= count < most)
        if cells:
            path = "".join(f"M{x} {y}h0" for x, y in cells)
            found.append(f'<path class="dots {kind} density-{level}" d="{path}"/>')
    return found


def _at(value: float, limits: Limits, start: float, stop: float) -> float:
    low, high = limits
    return start + (value - low) / (high - low) * (stop - start)


def _ticks(limits: Limits) -> list[float]:
    """Round numbers between the limits."""
    span = limits[1] - limits[0]
    step = next((step for step in (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0) if span / step <= 6), span / 4)
    first = int(limits[0] / step) - 1
    found = [step * number for number in range(first, first + 12)]
    return [value for value in found if limits[0] - 1e-9 <= value <= limits[1] + 1e-9]


def _grid(limits: Limits, left: float, right: float, top: float, bottom: float) -> str:
    parts = []
    for value in _ticks(limits):
        x = _at(value, limits, left, right)
        parts.append(f'<path class="grid" d="M{x:.1f} {top}V{bottom}"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{bottom + 16}">{value:g}</text>')
    return "".join(parts)


def _short(label: str, longest: int = LONGEST) -> str:
    """A label that fits, with the whole one as its tooltip."""
    if len(label) <= longest:
        return escape(label)
    return f"<title>{escape(label)}</title>{escape(label[: longest - 1])}…"


def _svg(said: str, width: float, height: float, parts: Iterable[str]) -> str:
    return (
        f'<svg class="plot" role="img" aria-label="{escape(said)}" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">{"".join(parts)}</svg>'
    )
