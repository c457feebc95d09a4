"""The tables of docs/injecting.md, from docs/injecting/results.json.

python benchmarks/injection_tables.py docs/injecting/results.json
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WIDTH = 96  # of the host
SMALLEST = "0.001"
Row = dict[str, Any]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def answers(injections: list[Row]) -> str:
    """What host and injected model answer, at the smallest scale."""
    head = [
        "task",
        "dimensions",
        "parameters",
        "host right",
        "host, among answers",
        "injected right (95 % interval)",
    ]
    return table(head, [_answered(one) for one in injections if f"{one['scale']:g}" == SMALLEST])


def _answered(one: Row) -> list[str]:
    low, high = (f"{100 * share:.1f}".removesuffix(".0") for share in one["after_interval"])
    right = f"{one['after']['right']} of {one['after']['asked']} ({low} % to {high} %)"
    return [
        one["task"],
        f"{WIDTH} → {one['sizes']['width']}",
        f"{one['sizes']['parameters'] / 1e6:.2f} million",
        f"{one['before']['right']} of {one['before']['asked']}",
        f"{one['before_among_answers']:.0%}".replace("%", " %"),
        right,
    ]


def elsewhere(injections: list[Row]) -> str:
    """What changes where nothing is asked, for each scale."""
    head = ["scale", "task", "perplexity before", "after", "largest change of a logit", "largest divergence, nats"]
    rows = []
    for one in injections:
        found = one["elsewhere"]
        before, after = (f"{math.exp(found[name]):.5f}" for name in ("loss_before", "loss_after"))
        sizes = [f"{found[name]:.0g}" for name in ("largest_logit_change", "largest_divergence")]
        rows.append([f"{one['scale']:g}", one["task"], before, after, *sizes, _other(found)])
    return table([*head, "other first choice"], rows)


def _other(found: Row) -> str:
    return f"{found['other_first_choice']:,} of {found['positions']:,}"


def unused(rows: list[Row]) -> str:
    """Circuits in heads and neurons that were freed."""
    head = ["tolerance", "task", "freed heads", "freed neurons", "heads, neurons a layer", "right"]
    lines = []
    for one in rows:
        found = one["elsewhere"]
        heads = sum(len(own) for _, *own in one["freed_heads"])
        lines.append(
            [
                f"{one['tolerance']:g}",
                one["task"],
                str(heads),
                str(sum(one["freed_neurons"].values())),
                f"{one['sizes']['heads']}, {one['sizes']['inner']}",
                f"{one['after']['right']} of {one['after']['asked']}",
                *(f"{math.exp(found[name]):.3f}" for name in ("loss_before", "loss_after")),
                f"{found['mean_divergence']:.4f}",
                _other(found),
            ]
        )
    return table([*head, "perplexity before", "after", "mean divergence", "other first choice"], lines)


def training(runs: list[Row]) -> str:
    """What survives further training; three seeds."""
    head = ["added weights", "scale, boost", "rate", "task", "right after 10 steps", "after 30"]
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for run in runs:
        how = run["training"]
        groups.setdefault((how["frozen"], how["scale"], how["boost"], how["rate"], run["task"]), []).append(run)
    lines = []
    for (frozen, scale, boost, rate, task), mine in groups.items():
        steps = [{row["step"]: row for row in run["rows"]} for run in mine]
        right = {step: [one[step]["right"] for one in steps] for step in (10, 30, 100)}
        asked = sum(one[100]["asked"] for one in steps)
        low, high = wilson(sum(right[100]), asked)
        lines.append(
            [
                "frozen" if frozen else "trained",
                f"{scale:g}, {'proved' if boost is None else f'{boost:g}'}",
                f"{rate:g}",
                task,
                *(", ".join(map(str, right[step])) for step in (10, 30)),
                f"{', '.join(map(str, right[100]))} ({100 * low:.0f} to {100 * high:.0f} %)",
                _between([one[0]["loss"] for one in steps]),
                _between([one[100]["loss"] for one in steps]),
            ]
        )
    return table([*head, "after 100 (95 % interval)", "loss at the start", "after 100"], lines)


def wilson(right: int, tried: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    share, z = right / tried, 1.959964
    middle = (share + z * z / (2 * tried)) / (1 + z * z / tried)
    half = z / (1 + z * z / tried) * math.sqrt(share * (1 - share) / tried + z * z / (4 * tried * tried))
    return max(0.0, middle - half), min(1.0, middle + half)


def _between(losses: list[float | None]) -> str:
    """The smallest and the largest loss; each loss, if one is not finite."""
    finite = [one for one in losses if one is not None and math.isfinite(one)]
    if len(finite) < len(losses):
        shown = [_loss(one) if one is not None and math.isfinite(one) else "not finite" for one in losses]
        return "not finite" if not finite else ", ".join(shown)
    low, high = _loss(min(finite)), _loss(max(finite))
    return low if low == high else f"{low} to {high}"


def _loss(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def tables(found: Row) -> list[str]:
    """All tables of the page."""
    return [
        answers(found["injections"]),
        elsewhere(found["injections"]),
        unused(found["unused"]),
        training(found["fine_tuning"]),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    print("\n\n".join(tables(json.loads(parser.parse_args().results.read_text()))))
