"""Writes the measured tables of docs/certificate.md from docs/certificate/coverage.json and mutants.json.

    python benchmarks/certificate_page.py

A table stands between `<!-- NAME -->` and `<!-- end -->`; the rest of the page is kept. A test compares them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
PAGE, COVERAGE, MUTANTS = (
    DOCS / name for name in ("certificate.md", "certificate/coverage.json", "certificate/mutants.json")
)
GROUPS = {
    "library": "the library at its own sizes",
    "large": "the library at (30, 30)",
    "long": "the library at length 100",
    "thousand": "the library at length 1,000",
    "random": "random programs, default controls, a new seed",
    "composite": "random programs with composite selectors",
    "causal": "random programs under a causal mask",
}
VARIANTS = {
    "rotated": "rotated (seed 1), at their own sizes",
    "norms": "with layer norms, at their own sizes",
    "gpt2": 'GPT-2 checkpoints, `activation="relu"`, at their own sizes',
    "rotated16": "rotated (seed 1), at (8, 16)",
    "norms16": "with layer norms, at (8, 16)",
}
FORMATS = ("bfloat16", "float16")


def _levels(name: str, group: Mapping[str, Any]) -> str:
    """The levels of a group of the library."""
    levels = list(group["levels"]) if GROUPS[name].startswith("the library") else []
    text = " and ".join(levels) if len(levels) == 2 else ", ".join(levels)
    return f", level{'s' * (len(levels) > 1)} {text}" if levels else ""


def coverage(found: Mapping[str, Any]) -> Iterator[str]:
    """The table of groups, then the models that are slow, rejected or not compiled."""
    yield "| models, padded | accepted | under 10 s | seconds, 95 % | most megabytes |"
    yield "|---|---|---|---|---|"
    known = {name: found[name] for name in GROUPS if name in found}
    for name, one in known.items():
        accepted, quick = (f"{one[key]:,} of {one['models']:,}" for key in ("accepted", "under 10 seconds"))
        times = f"{one['seconds, 95 %']:g} | {one['megabytes, most']:,}"
        yield f"| {GROUPS[name]}{_levels(name, one)} | {accepted} | {quick} | {times} |"
    yield ""
    models, quick = (sum(one[key] for one in known.values()) for key in ("models", "under 10 seconds"))
    yield f"In all, {quick:,} of {models:,} checks ({quick / max(1, models):.1%}) take less than 10 seconds."
    slow = [
        f"`{name}` {level} ({group}, {seconds:g})" for group in known for name, level, seconds in known[group]["slow"]
    ]
    yield f"Ten seconds or more (program, level, group, seconds): {', '.join(slow) or 'none'}."
    rejected = [(group, *row) for group in known for row in known[group]["rejected"]]
    yield f"Rejected: {len(rejected)}."
    yield ""
    for group, name, level, reason in rejected:
        yield f"- {group}, `{name}`, level {level}: {reason.removeprefix('REJECTED: ')[:160]}"
    for group in known:
        for name, level, reason in known[group]["not compiled"]:
            yield f"- {group}, `{name}`, level {level}, does not compile: {' '.join(reason.split())[:120]}"
    checkers = sorted({digest[:12] for one in found.values() for digest in one["checker"]})
    yield ""
    yield f"Digest of the checker's files: {', '.join(checkers)}."


def variants(found: Mapping[str, Any]) -> Iterator[str]:
    """How many models of each variant are accepted, by level."""
    yield "| the library, float32, padded | level 0 | level 1 | level 2 |"
    yield "|---|---|---|---|"
    for name, label in VARIANTS.items():
        if name in found:
            levels = found[name]["levels"]
            cells = [f"{levels[one][0]} of {levels[one][1]}" if one in levels else "not measured" for one in "012"]
            yield f"| {label} | {' | '.join(cells)} |"
    if "norms" in found:
        names = [f"`{name}`" for name, level, _ in found["norms"]["rejected"] if level == 1]
        yield ""
        yield f"Rejected with layer norms, at their own sizes and level 1: {', '.join(names) or 'none'}."


def sixteen(found: Mapping[str, Any]) -> Iterator[str]:
    """How many models compiled for a format are accepted in it, by level; which are not, and times and memory."""
    groups = {name: found[name] for name in FORMATS if name in found}
    yield "| the library at (8, 16), padded | level 0 | level 1 | level 2 | under 10 s | most s | most megabytes |"
    yield "|---|---|---|---|---|---|---|"
    for name, one in groups.items():
        levels = " | ".join("{} of {}".format(*one["levels"][level]) for level in "012")
        yield (
            f"| compiled for {name} and checked in it | {levels} | {one['under 10 seconds']} of {one['models']} "
            f"| {one['seconds, most']:g} | {one['megabytes, most']:,} |"
        )
    yield ""
    for what in ("slow", "rejected", "not compiled"):
        rows = [f"`{name}` ({group}, {level})" for group in groups for name, level, _ in groups[group][what]]
        label = "Ten seconds or more (program, format, level)" if what == "slow" else what.capitalize()
        yield f"{label}: {', '.join(rows) or 'none'}."


def mutants(found: Mapping[str, Any]) -> Iterator[str]:
    """What the campaign found."""
    total, counts = found["total"], found["total"]["counts"]
    kept = counts.get("weight, harmless, accepted", 0)
    share = kept / max(1, kept + counts.get("weight, harmless, rejected", 0))
    yield (
        f"{total['mutants']:,} mutants of {len(found['models'])} models, {total['harmful']:,} of them harmful, "
        f"{total['harmful and accepted']:,} of those accepted; {share:.1%} of the single weights whose change is "
        f"harmless are accepted. Digest of the checker's files: {found['checker'][:12]}."
    )


def written(page: str) -> str:
    """The page with its measured parts as the data have them."""
    data = json.loads(COVERAGE.read_text(encoding="utf-8"))
    parts = {
        "coverage": "\n".join(coverage(data)),
        "variants": "\n".join(variants(data)),
        "sixteen": "\n".join(sixteen(data)),
        "mutants": "\n".join(mutants(json.loads(MUTANTS.read_text(encoding="utf-8")))),
    }
    for name, text in parts.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.S)
        page, count = pattern.subn(lambda match, text=text: f"{match[1]}\n{text}\n\n{match[2]}", page)  # type: ignore[misc]
        if count != 1:
            raise SystemExit(f"{PAGE.name} has {count} places for {name}")
    return page


def main() -> None:
    """Write the page."""
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
