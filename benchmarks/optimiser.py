"""Measures the effect of the optimiser: the tables of docs/optimiser.md, and pictures of one program, pass by pass.

    python benchmarks/optimiser.py

The original's sizes come from benchmarks/against_original.py. Needs matplotlib (extra `viz`).
"""

# ruff: noqa: E402
from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT / "benchmarks" / "sides")

from cases import PROGRAMS, Case

import tracr
from tracr.rasp import programs, rasp
from tracr.viz.blocks import figure_of
from tracr.viz.slots_figure import slots_block

PAGE = ROOT / "docs" / "optimiser.md"
PICTURE = ROOT / "docs" / "images" / "optimiser.svg"
MEASURED = ROOT / "docs" / "benchmarks" / "results.json"
START, END = "<!-- made by benchmarks/optimiser.py -->", "<!-- end of what was made -->"
SIZE = (4, 5)

STEPS = (
    ("level 0", 0, ()),
    ("level 1: shared, pruned, merged", 1, ()),
    ("fold", 1, ("fold",)),
    ("sums, fuse, simplify, share_neurons", 1, ("fold", "simplify", "fuse", "sums", "share_neurons")),
    (
        "linear_tables, match, factor, few_bits",
        1,
        ("fold", "simplify", "fuse", "sums", "share_neurons", "linear_tables", "match", "factor", "few_bits"),
    ),
    ("schedule and reuse: level 2", 2, ()),
)
"""The pictures, each with more passes than the one before: a title, the level, and passes beyond those of the level."""


def main() -> None:
    """Write the tables into the page, and the picture."""
    models = [_step(level, more) for _, level, more in STEPS]
    text = "\n".join([START, *_library(), "", *_steps(models), END])
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(START)
    PAGE.write_text(before + text + rest.partition(END)[2], encoding="utf-8")
    titles = [f"{number}. {title}" for number, (title, _, _) in enumerate(STEPS, start=1)]
    blocks = [slots_block(model, 6.0, title) for model, title in zip(models, titles, strict=True)]
    figure_of(blocks, 14.0, None).savefig(PICTURE)


def _library() -> list[str]:
    original = json.loads(MEASURED.read_text(encoding="utf-8"))["cases"]
    lines = [
        "| program | original | level 0 | level 1 | level 2 | bounds: layers, live directions, Hankel rank |",
        "|---|---|---|---|---|---|",
    ]
    for name in PROGRAMS:
        case = Case(name, *SIZE)
        theirs = original.get(f"{name} {SIZE[0]},{SIZE[1]} original", {}).get("size")
        cells = [_size(**theirs) if theirs else "–"]
        models = [_compiled(case, level) for level in (0, 1, 2)]
        cells += [_cells(model) for model in models]
        bounds = models[-1].bounds()
        found = [bounds.layers.bound, bounds.live.bound, bounds.dimensions.bound]
        lines.append(f"| {name} | {' | '.join(cells)} | {', '.join(map(str, found))} |")
    return lines


def _compiled(case: Case, level: int) -> tracr.CompiledModel:
    return tracr.compile(case.build(programs, rasp), case.vocab, case.length, level=level)


def _step(level: int, more: Sequence[str]) -> tracr.CompiledModel:
    program = programs.make_shuffle_dyck(["()", "{}"])
    return tracr.compile(program, "(){}", SIZE[1], level=level, passes=dict.fromkeys(more, True))


def _steps(models: list[tracr.CompiledModel]) -> list[str]:
    lines = ["| | with | layers | dimensions | heads | neurons | parameters |", "|---|---|---|---|---|---|---|"]
    for number, ((title, _, _), model) in enumerate(zip(STEPS, models, strict=True), start=1):
        layers = model.parameters.layers
        heads, neurons = sum(len(layer.W_Q) for layer in layers), sum(layer.W_in.shape[1] for layer in layers)
        sizes = (model.n_layers, model.d_model, heads, neurons, f"{model.n_parameters:,}")
        lines.append(f"| {number} | {title} | {' | '.join(map(str, sizes))} |")
    return lines


def _cells(model: tracr.CompiledModel) -> str:
    heads = sum(len(layer.W_Q) for layer in model.parameters.layers)
    return _size(model.n_layers, model.d_model, heads, model.n_parameters)


def _size(layers: int, dimensions: int, heads: int, parameters: int, **_: Any) -> str:
    return f"{layers}, {dimensions}, {heads}, {parameters:,}"


if __name__ == "__main__":
    main()
