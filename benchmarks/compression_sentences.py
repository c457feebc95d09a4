"""The numbers in the text of the pages on compression, from docs/compression/data (`benchmarks/compression_data.py`).

    python benchmarks/compression_sentences.py     print the phrases, and say which of them a page lacks

A phrase is a piece of a page with its numbers computed from the data; tests/compress/test_pages.py looks for it on the
page. Needs numpy and pyarrow.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent))

from compression_data import DATA, DOCS, PLACE, STUCK, Row, cell, chosen, interval, share

CONVERGED = 1e-5  # the loss below which runs of frac_prevs are looked at
A, B, C, X, *INDICES, FRAC_PREVS = 0, 1, 2, 3, 6, 7, 8, 9, 10, 13
"""The places of features of frac_prevs: `tokens:a` to `tokens:x`, `indices`, and `frac_prevs` itself."""


def told(rows: Sequence[Row], value: Any, form: str, of: Callable[..., Any] = np.median) -> str:
    """A number with its interval, as the text writes it."""
    return cell(rows, value, form, of).replace("%", " %").replace("-", "−")


def overlap(one: Sequence[Row], other: Sequence[Row], value: str) -> bool:
    """Whether the intervals of two arms overlap."""
    (_, low, high), (_, least, most) = interval(one, value), interval(other, value)
    return low <= most and least <= high


def read_back(*places: int) -> Callable[[Row], float]:
    """The part of their size with which features are read back, the mean over some labels."""
    return lambda row: float(np.mean([row["read_back"][place] for place in places]))


def cosine(row: Row) -> float:
    """Between the directions of `tokens:x` and `is_x`."""
    return float(row["xy"] / (row["xx"] * row["yy"]) ** 0.5)


def frac_prevs() -> Iterator[str]:
    """The recipe on frac_prevs."""
    rows = chosen("paper", program="frac_prevs", dim=8)
    low = [row for row in rows if row["loss"] < CONVERGED]
    stuck = [round(100 * float(np.mean([row["loss"] >= STUCK for row in rows if row["rerun"] == n]))) for n in range(3)]
    above = told(rows, lambda row: float(row["loss"] >= STUCK), ".0%", share)
    yield f"at d = 8, {above} of the runs end above 1e-4 ({stuck[0]}, {stuck[1]} and {stuck[2]} % in the three reruns)"
    few = f"over the {len(low)} of {len(rows)} runs below 1e-5"
    yield f"they are read back with {told(low, read_back(A, B, C), '.2f')} of their size ({few})"
    kept = told(low, read_back(FRAC_PREVS), ".2f"), told(low, read_back(X), ".2f")
    yield f"`frac_prevs` ({kept[0]}) and `tokens:x` ({kept[1]}) are kept"
    yield (
        f"cosine is {told(low, cosine, '.3f')} at d = 8 over the same {len(low)} runs "
        f"({told(rows, cosine, '.3f')} over all {len(rows)})"
    )
    wide = chosen("paper", program="frac_prevs", dim=14)
    yield f"its causal effect is {told(rows, 'effect', '.2f')} at d = 8 and {told(wide, 'effect', '.2f')} at d = 14"
    yield f"`indices` are read back with {told(low, read_back(*INDICES), '.2f')} of their size"
    best = min(row["loss"] for row in chosen("paper", program="frac_prevs", dim=6))
    yield f"the best of 96 runs at 6 dimensions ended at {best:.1e}".replace("e-07", "e-7")
    falls = {dim: _fall(chosen("paper", program="frac_prevs", dim=dim)) for dim in range(2, 15)}
    late, early = [falls[dim] for dim in range(7, 15)], [falls[dim] for dim in range(2, 7)]
    yield f"falls to {min(late):.2f} to {max(late):.2f} of its size for d ≥ 7"
    yield f"to {min(early):.2f} to {max(early):.2f} for d < 7"


def _fall(rows: Sequence[Row]) -> float:
    """The median loss at the end, relative to that at half time."""
    return float(np.median([row["loss"] for row in rows]) / np.median([row["half_loss"] for row in rows]))


def sort_unique() -> Iterator[str]:
    """The recipe on sort_unique."""
    later = [row for row in chosen("paper", program="sort_unique") if row["dim"] >= 12]
    middle = float(np.median([row["cosines"][1] for row in later]))
    assert abs(middle - 1 / 3) < 0.005, middle
    yield "the cosine of the sub-layer that writes it is 1/3 (median, d ≥ 12)"
    wide = [float(np.median([row["cosine"] for row in later if row["dim"] == dim])) for dim in range(12, 21, 2)]
    yield f"stays near {np.mean(wide):.2f}, even at d = D"
    yield f"{told([row for row in later if row['dim'] == 12], 'effect', '.2f')} at d = 12. Setting `target_pos`"


def weights() -> Iterator[str]:
    """Other weights of the loss."""

    def arm(dim: int, output: float, layer: float, program: str = "sort_unique") -> list[Row]:
        return chosen("variants", program=program, dim=dim, output_weight=output, layer_weight=layer)

    both, alone = arm(8, 1.0, 1.0), arm(8, 1.0, 0.0)
    yield f"falls from {told(both, 'cosine', '.2f')} to {told(alone, 'cosine', '.2f')} at d = 8"
    yield f"the effect of `target_pos` from {told(both, 'effect', '.2f')} to {told(alone, 'effect', '.2f')}"
    yield f"{told(alone, 'accuracy', '.1%')} against {told(both, 'accuracy', '.1%')}"
    yield f"it is wrong ({told(arm(8, 0.0, 1.0), 'accuracy', '.1%')} for sort_unique at d = 8)"
    pairs = (("frac_prevs", 6), ("frac_prevs", 8), ("sort_unique", 8), ("sort_unique", 12))
    assert all(overlap(arm(dim, 0.1, 1.0, name), arm(dim, 1.0, 1.0, name), "accuracy") for name, dim in pairs)
    yield "Weight 0.1 is as accurate as weight 1 in all four rows: the intervals overlap"


def projections() -> Iterator[str]:
    """Other projections, and trained weights."""

    def one(dim: int, program: str = "sort_unique") -> list[Row]:
        return chosen("variants", program=program, dim=dim, output_weight=1.0, layer_weight=1.0)

    def other(dim: int, program: str = "sort_unique", **kind: Any) -> list[Row]:
        return chosen("sharing", program=program, dim=dim, **kind)

    pairs = (("frac_prevs", 6), ("frac_prevs", 8), ("sort_unique", 8), ("sort_unique", 12))
    kinds = ("layer", "read-write")
    assert all(overlap(one(d, name), other(d, name, sharing=kind), "accuracy") for name, d in pairs for kind in kinds)
    yield "The intervals of accuracy overlap in all eight comparisons with one W"
    each = [told(other(8, sharing=kind), "cosine", ".2f") for kind in kinds]
    yield f"({each[0]} and {each[1]} against {told(one(8), 'cosine', '.2f')} at d = 8)"
    trained, wide = other(8, train_weights=True), other(12, train_weights=True)
    yield (
        f"rises to {told(trained, 'cosine', '.2f')} and the output loss falls to "
        f"{told(trained, 'output_loss', '.2g')}; at d = 12 to {told(wide, 'output_loss', '.2g')}"
    )
    yield f"hardly changes ({told(trained, 'effect', '.2f')})"


def sweeping() -> Iterator[str]:
    """What a sweep delivers."""
    found = json.loads((DATA / "sweep.json").read_text())
    alone = found["runs"] * found["steps"] / found["training"]
    yield f"a sweep of {found['runs']:,} runs of {found['steps']:,} steps delivers {_millions(found['end_to_end'])}"
    part = f"{found['end_to_end'] / found['training']:.0%}".replace("%", " %")
    yield f"{part} of the {_millions(found['training'])} of the training alone"
    yield f"The other {found['seconds'] - alone:.1f} seconds"


def _millions(number: float) -> str:
    return f"{number / 1e6:.2f} million"


def optimiser() -> Iterator[str]:
    """Does AdamW leave the faithful solution?"""

    def arm(program: str, gap: float = 256.0, start: str = "faithful", rate: float = 1e-3, **more: Any) -> list[Row]:
        return chosen("faithful", program=program, gap=gap, start=start, rate=rate, **more)

    def ends(rows: list[Row]) -> str:
        return told(rows, "loss", ".2g")

    sort, soft = arm("sort_unique", decay=0.1), arm("sort_unique", 40.0, decay=0.1)
    yield (
        f"sort_unique ends at a loss of {ends(sort)} and a least cosine of {told(sort, 'least', '.2f')} (gap 256; "
        f"{ends(soft)} and {told(soft, 'least', '.2f')} at 40)"
    )
    yield f"hist ends at {ends(arm('hist', decay=0.1))} (gap 256)"
    prev = arm("has_prev", decay=0.1)
    yield f"has_prev at {ends(prev)} with a least cosine of {told(prev, 'least', '.2f')}"
    yield f"end at {ends(arm('reverse', start='1/√D', decay=0.1))}"
    yield f"sort_unique ends at {np.median(_losses(arm('sort_unique', 40.0, rate=1e-4, decay=0.0))):.1e}".replace(
        "e-0", "e-"
    )
    yield f"end at {ends(arm('sort_unique', 40.0, '1/√D', 1e-4, decay=0.1))}: the faithful minimum is there"
    effects = [told(arm("frac_prevs", decay=decay), "effect", ".2f") for decay in (0.1, 0.0)]
    yield f"the effect of `is_x` falls from 1 to {effects[0]}"
    yield f"without decay it stays at {effects[1]}"


def _losses(rows: Sequence[Row]) -> list[float]:
    return [row["loss"] for row in rows]


PHRASES: dict[Path, tuple[Callable[[], Iterator[str]], ...]] = {
    DOCS / "compression.md": (frac_prevs, sort_unique, weights, projections, sweeping),
    PLACE / "optimiser.md": (optimiser,),
}


def plain(text: str) -> str:
    """A text without its line breaks."""
    return re.sub(r"\s+", " ", text)


def lacking(page: Path) -> list[str]:
    """The phrases that a page lacks."""
    text = plain(page.read_text(encoding="utf-8"))
    return [phrase for phrases in PHRASES[page] for phrase in phrases() if phrase not in text]


def main() -> None:
    """Print all phrases."""
    for page, makers in PHRASES.items():
        missing = lacking(page)
        for make in makers:
            for phrase in make():
                print(f"{page.relative_to(DOCS)}{' LACKS' if phrase in missing else ''}: {phrase}")


if __name__ == "__main__":
    main()
