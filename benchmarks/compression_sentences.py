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

from compression_data import DATA, DOCS, GOLDEN, PLACE, STUCK, Row, below, cell, chosen, interval, rows_of, share
from compression_tables import arms_of, at_ratio, fast_runs

CONVERGED = 1e-5  # the loss below which runs of frac_prevs are looked at
CASES = (("frac_prevs", 6), ("frac_prevs", 8), ("sort_unique", 8), ("sort_unique", 12))
"""The programs and dims whose settings are compared."""
FAITHFUL = ("sort_unique", "frac_prevs", "hist", "reverse", "has_prev")
A, B, C, X, *INDICES, FRAC_PREVS = 0, 1, 2, 3, 6, 7, 8, 9, 10, 13
"""The places of features of frac_prevs: `tokens:a` to `tokens:x`, `indices`, and `frac_prevs` itself."""


def told(rows: Sequence[Row], value: Any, form: str, of: Callable[..., Any] = np.median) -> str:
    """A number with its interval, as the text writes it."""
    return written(cell(rows, value, form, of))


def written(number: str) -> str:
    """1e-7 for 1e-07, a space before %, and signs of minus."""
    return re.sub(r"(?<!e)-(?=\d)", "−", re.sub(r"e-0(\d)", r"e-\1", number)).replace("%", " %")


def overlap(one: Sequence[Row], other: Sequence[Row], value: Any, of: Callable[..., Any] = np.median) -> bool:
    """Whether the intervals of two arms overlap."""
    (_, low, high), (_, least, most) = interval(one, value, of), interval(other, value, of)
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
    yield f"the best of 96 runs at 6 dimensions ended at {written(f'{best:.1e}')}"
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


def settings() -> Iterator[str]:
    """Gap, scale of the start and weight decay."""
    cases = {(name, dim): dict(arms_of("settings", name, dim)) for name, dim in CASES}
    frac, sort = cases["frac_prevs", 8], cases["sort_unique", 12]

    def loss(rows: list[Row]) -> str:
        return told(rows, "loss", ".2g")

    def few(rows: list[Row]) -> str:
        return told(rows, below(STUCK), ".0%", share)

    yield (
        f"Without it, {few(frac['no decay'])} of the runs of frac_prevs at d = 8 end below 1e-4 instead of "
        f"{few(frac['the recipe'])}, and the median is {loss(frac['no decay'])} instead of {loss(frac['the recipe'])}; "
        f"sort_unique at d = 12 ends at {loss(sort['no decay'])} instead of {loss(sort['the recipe'])}"
    )
    assert all(overlap(arms["start 1"], arms["the recipe"], "loss") for arms in cases.values())
    yield "hardly matters with decay: the intervals of the losses overlap in all four cases"
    assert not any(overlap(arms["start 1, no decay"], arms["no decay"], "loss") for arms in cases.values())
    pair = loss(frac["start 1, no decay"]), loss(frac["no decay"])
    yield f"Without decay a unit normal is worse in all four (frac_prevs at d = 8: {pair[0]} against {pair[1]})"
    for (name, _), arms in cases.items():
        assert overlap(arms["gap 40"], arms["the recipe"], "loss") == (name == "frac_prevs"), name
    both = [loss(cases["sort_unique", dim][arm]) for dim in (8, 12) for arm in ("gap 40", "the recipe")]
    yield (
        f"ends lower in sort_unique: at {both[0]} with a gap of 40 against {both[1]} at d = 8, at {both[2]} against "
        f"{both[3]} at d = 12"
    )
    pairs = [(cases["frac_prevs", dim]["gap 40"], cases["frac_prevs", dim]["the recipe"]) for dim in (6, 8)]
    assert all(overlap(soft, sharp, below(STUCK), share) for soft, sharp in pairs)
    yield (
        f"In frac_prevs the intervals overlap, also those of the runs below 1e-4 (d = 8: {few(frac['gap 40'])} against "
        f"{few(frac['the recipe'])})"
    )
    low = [row["loss"] for row in cases["sort_unique", 8]["gap 40"] if row["loss"] < 0.1]
    every = [row for dim in (8, 12) for rows in cases["sort_unique", dim].values() for row in rows]
    assert len(low) == 1 == sum(row["loss"] < 0.1 for row in every)
    yield f"Of all {len(every):,} runs of sort_unique in the table, one ends below 0.1, at {written(f'{low[0]:.1e}')}"


def weights() -> Iterator[str]:
    """Other weights of the loss."""

    def arm(dim: int, output: float, layer: float, program: str = "sort_unique") -> list[Row]:
        return chosen("variants", program=program, dim=dim, output_weight=output, layer_weight=layer)

    both, alone = arm(8, 1.0, 1.0), arm(8, 1.0, 0.0)
    yield f"falls from {told(both, 'cosine', '.2f')} to {told(alone, 'cosine', '.2f')} at d = 8"
    yield f"the effect of `target_pos` from {told(both, 'effect', '.2f')} to {told(alone, 'effect', '.2f')}"
    yield f"{told(alone, 'accuracy', '.1%')} against {told(both, 'accuracy', '.1%')}"
    yield f"it is wrong ({told(arm(8, 0.0, 1.0), 'accuracy', '.1%')} for sort_unique at d = 8)"
    assert all(overlap(arm(dim, 0.1, 1.0, name), arm(dim, 1.0, 1.0, name), "accuracy") for name, dim in CASES)
    yield "Weight 0.1 is as accurate as weight 1 in all four rows: the intervals overlap"


def projections() -> Iterator[str]:
    """Other projections, and trained weights."""

    def one(dim: int, program: str = "sort_unique") -> list[Row]:
        return chosen("variants", program=program, dim=dim, output_weight=1.0, layer_weight=1.0)

    def other(dim: int, program: str = "sort_unique", **kind: Any) -> list[Row]:
        return chosen("sharing", program=program, dim=dim, **kind)

    kinds = ("layer", "read-write")
    assert all(overlap(one(d, name), other(d, name, sharing=kind), "accuracy") for name, d in CASES for kind in kinds)
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
    short = [chosen("cost", program="frac_prevs", dim=dim) for dim in (8, 14)]
    done = [f"{sum(row['loss'] < STUCK for row in rows)} of {len(rows)}" for rows in short]
    yield f"with 50,000, {done[0]} runs of frac_prevs at d = 8 and {done[1]} at d = 14 end below 1e-4"
    found = json.loads((DATA / "sweep.json").read_text())
    alone = found["runs"] * found["steps"] / found["training"]
    yield f"a sweep of {found['runs']:,} runs of {found['steps']:,} steps delivers {_millions(found['end_to_end'])}"
    part = written(f"{found['end_to_end'] / found['training']:.0%}")
    yield f"{part} of the {_millions(found['training'])} of the training alone"
    yield f"The other {found['seconds'] - alone:.1f} seconds"


def _millions(number: float) -> str:
    return f"{number / 1e6:.2f} million"


def fast() -> Iterator[str]:
    """Our optimiser."""
    cases = {(case["program"], case["dim"]): case for case in json.loads((DATA / "speed.json").read_text())["cases"]}
    alone = "without a loss to reach"
    best = min(row["loss"] for row in chosen("paper", program="frac_prevs", dim=6))
    runs = cases["frac_prevs", 6][alone]
    assert len(runs) == 4
    assert max(run["loss"] for run in runs) < best
    yield f"All four seeds of frac_prevs at d = 6 end below the best of the recipe's 96 runs ({written(f'{best:.1e}')})"
    yield f"`fast` ends at {cases['sort_unique', 12][alone][0]['loss']:.1e} at d = 12 (seed 0"
    losses = {dim: [run["loss"] for run in fast_runs(dim)] for dim in range(4, 9)}
    rows = {dim: chosen("paper", program="sort_unique", dim=dim) for dim in losses}
    recipe = {dim: [row["loss"] for row in some] for dim, some in rows.items()}
    assert all(max(losses[dim]) < min(recipe[dim]) for dim in (6, 7, 8))
    assert all(max(losses[dim]) < 2e-11 for dim in (7, 8))
    yield "In 7 and 8 dimensions every seed ends at about 1e-11"
    some = [*fast_runs(7), *fast_runs(8)]
    assert min(min(run["cosines"].values()) for run in some) > 0.9995
    effects = [run["slopes"]["target_pos"] / run["slopes"]["sort"] for run in some]
    most = f"{min(effects):.2f} to {max(effects):.2f}"
    yield f"with all cosines 1.000, the effect of `target_pos` is {most} in these {len(some)} runs"
    assert len(losses[6]) == 3
    yield "in 6, the three seeds of the table end below the best of the recipe's 96 runs"
    assert all(max(losses[dim]) < interval(rows[dim], "loss")[1] for dim in (4, 5))
    yield "In 4 and 5 every seed ends below the interval of the recipe's median"
    few = [sum(loss < np.median(losses[dim]) for loss in recipe[dim]) for dim in (4, 5)]
    yield f"{few[0]} and {few[1]} of the 96 runs end below the median of `fast`"
    assert all(min(losses[dim]) > min(recipe[dim]) for dim in (4, 5))
    yield f"The best of the 96 is lower still ({min(recipe[4]):.2f} and {min(recipe[5]):.2f})"


def shared() -> Iterator[str]:
    """Two variables that share directions."""
    part = {
        (one["decay"], overlap): runs
        for one in json.loads((DATA / "shared.json").read_text())
        for overlap, runs in zip(one["overlaps"], one["trained"], strict=True)
    }
    apart = [run for (_, p), runs in part.items() if p <= 0.999 for run in runs]
    assert max(max(abs(run[1]), abs(run[2] - 1)) for run in apart) < 0.0005
    yield "end at w_x·w_y = 0.000 and |w_y|² = 1.000"
    free = [{"rerun": 0, "xy": run[1]} for run in part[0, 1]]
    yield f"Without decay w_x·w_y stays near its start: {told(free, 'xy', '.3f')}"
    (near,) = (one for one in json.loads((DATA / "shared_rare.json").read_text()) if one["decay"] == 0.1)
    decayed = [{"rerun": 0, "xy": run[1]} for run in near["trained"][near["overlaps"].index(1)]]
    golden = told(decayed, lambda row: float(abs(row["xy"] - GOLDEN) < 0.01), ".0%", share)
    median = float(np.median([row["xy"] for row in decayed]))
    yield f"median is {median:.3f}, not the predicted 0.618: {golden} of the seeds are at 0.618 and 0.382"


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
    yield f"end at {ends(arm('reverse', start='1/√D', decay=0.1))} (gap 256)"
    back = chosen("faithful", program="reverse", start="faithful")
    assert min(row["least"] for row in back) > 0.995
    yield f"all {len(back)} runs of reverse end with a least cosine of 1.00"
    kinds = {(row["gap"], row["rate"], row["decay"]) for row in back}
    medians = [
        np.median([row["loss"] for row in back if (row["gap"], row["rate"], row["decay"]) == kind]) for kind in kinds
    ]
    assert max(medians) < 1e-7
    yield "the median loss of every arm is below 1e-7"
    slow = chosen("faithful", start="faithful", rate=1e-5)
    soft = chosen("faithful", start="faithful", rate=1e-4, gap=40.0)
    assert min(row["least"] for row in [*slow, *soft]) > 0.995
    worst = max(row["loss"] for row in slow)
    yield f"With a rate of 1e-5, all {len(slow)} runs, at both gaps"
    yield f"no loss is above {written(f'{worst:.1e}')}. With 1e-4 and a gap of 40 so do all {len(soft)} runs"
    for program in FAITHFUL:
        least = min(row["least"] for row in arm(program, rate=1e-4))
        assert (least > 0.995) == (program not in ("sort_unique", "hist")), (program, least)
    yield "frac_prevs, reverse and has_prev stay; sort_unique and hist leave"
    three = ("sort_unique", "hist", "has_prev")
    drawn = [row for row in rows_of("faithful") if row["program"] in three and row["start"] != "faithful"]
    assert min(row["loss"] for row in drawn) >= 1e-3
    yield f"of the {len(drawn):,} runs of sort_unique, hist and has_prev from random starts, none ends below 1e-3"
    random, kept = (arm("sort_unique", 40.0, *kind) for kind in (("1/√D", 1e-4), ("faithful", 1e-4)))
    found = [ends([row for row in rows if row["decay"] == decay]) for rows, decay in ((random, 0.1), (kept, 0.0))]
    yield (
        f"sort_unique from random starts ends at {found[0]}, and from the faithful solution without decay at "
        + found[1]
    )
    mixed = told([row for row in kept if row["decay"] == 0.1], "effect", ".2f")
    yield f"the effect of `target_pos` falls to {mixed}: other features are read with it"
    effects = [told(arm("frac_prevs", decay=decay), "effect", ".2f") for decay in (0.1, 0.0)]
    yield f"the effect of `is_x` falls from 1 to {effects[0]}"
    yield f"without decay it stays at {effects[1]}"


def cost() -> Iterator[str]:
    """What the recipe loses in fewer dimensions."""
    names = sorted({row["program"] for row in rows_of("cost")})

    def at(program: str, goal: float) -> list[Row]:
        dim = round(chosen("cost", program=program)[0]["width"] / goal)
        return chosen("cost", program=program, dim=dim)

    wrong = [name for name in names if np.median([row["accuracy"] for row in at(name, 1)]) < 0.99]
    yield f"{len(wrong)} of {len(names)} programs are not right at 99 % of the positions even at d = D"
    whole, third, quarter = (told(at_ratio(goal), "accuracy", ".0%") for goal in (1, 3, 4))
    yield f"the median accuracy falls from {whole} to {third}"
    few = ("no", "one", "two", "three")[sum(row["accuracy"] >= 0.99 for row in at_ratio(4))]
    yield f"At D/4 it is {quarter}, and {few} programs are right at 99 % of the positions"
    yield f"the recipe is right at {told(at('hist', 1), 'accuracy', '.0%')} of the positions with all 15"
    sorts = at("sort", 2), at("sort_composite", 2)
    right, least = (
        [told(rows, value, form) for rows in sorts] for value, form in (("accuracy", ".0%"), ("least", ".2f"))
    )
    yield (
        f"sort and sort_composite are right at {right[0]} and {right[1]} of the positions at D/2, with least cosines "
        f"of {least[0]} and {least[1]}"
    )
    means = [told([row for row in at_ratio(g) if np.isfinite(row["used"])], "used", ".0%", share) for g in (1, 2, 4)]
    yield f"the program's effect: {means[0]} at D, {means[1]} at D/2 and {means[2]} at D/4"
    pattern = at("detect_pattern", 2)
    yield (
        f"detect_pattern at D/2 writes what the program writes (least cosine {told(pattern, 'least', '.2f')}), but "
        f"uses {told(pattern, 'used', '.0%')} of its variables"
    )
    good = [name for name in names if np.median([row["accuracy"] for row in at(name, 2)]) >= 0.99]
    faithful = [name for name in good if np.median([row["least"] for row in at(name, 2)]) >= 0.97]
    yield f"{', '.join(faithful[:-1])} and {faithful[-1]} are right at D/2, with least cosines of 0.97 and more there"
    yield f"after 300,000 steps and at {told(at('sort_unique', 1), 'loss', '.2g')} here"


PHRASES: dict[Path, tuple[Callable[[], Iterator[str]], ...]] = {
    DOCS / "compression.md": (frac_prevs, sort_unique, settings, weights, projections, fast, sweeping),
    PLACE / "optimiser.md": (optimiser,),
    PLACE / "shared-information.md": (shared,),
    PLACE / "cost.md": (cost,),
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
