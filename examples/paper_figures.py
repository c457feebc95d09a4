"""Draw the Tracr paper's figures of sections 3 and 4 and of "More Compiled Models" as PDFs, from models compiled here.

Needs matplotlib: pip install 'tracr[viz]'.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import tracr
from tracr import extras, viz
from tracr.rasp import programs

STREAMS = {"frac_prevs": "xacx", "sort_unique": (3, 4, 1, 2), "sort": (3, 1, 3, 2)}
STREAMS |= {"pair_balance": "(()a)", "shuffle_dyck2": "({)}"}  # the last is the paper's dyck-2
RASP = 'is_x = (tokens == "x")\nprevs = select(indices, indices, <=)\nfrac_prevs = aggregate(prevs, is_x)'


def stream(name: str) -> Any:
    """A program of the library at level 0, the paper's structure: the residual stream on one input."""
    example = programs.EXAMPLES[name]
    return tracr.compile(example.program, example.vocab, example.max_seq_len, level=0).figure("stream", STREAMS[name])


def side_by_side(model: tracr.CompiledModel, parts: dict[str, str], widths: list[float], height: float) -> Any:
    """Figures of these kinds, or texts, under their titles."""
    figure = extras.need("matplotlib.figure", extra="viz").Figure(figsize=(sum(widths), height), layout="constrained")
    for ax, (title, what) in zip(figure.subplots(1, len(parts), width_ratios=widths), parts.items(), strict=True):
        ax.set_title(title, fontsize=10)
        if what in viz.KINDS:
            model.figure(what, ax=ax)
        else:
            ax.axis("off")
            ax.text(0, 0.95, what, family="monospace", size=8, va="top")
    return figure


def main() -> None:
    """Write them all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default="paper_figures", help="default: paper_figures")
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    model = tracr.compile(programs.EXAMPLES["frac_prevs"].program, vocab="xy", max_seq_len=3, level=0)
    craft = model.show("lower").replace("  # ", "\n    ").replace(" where ", "\n    where ")
    analogy = {"RASP": RASP, "Craft": craft, "weights": "weights"}
    overview = {"1, 2: values": "graph", "3: components": "weights", "4, 5: layers": "layers"}
    figures = {name: stream(name) for name in STREAMS}
    figures["compiler_analogy"] = side_by_side(model, analogy, [3, 4, 5], 2)
    figures["compiler_overview"] = side_by_side(model, overview, [2.5, 5, 3], 3.2)
    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.pdf")
        print(f"{name}.pdf: {' by '.join(f'{size:.1f}' for size in figure.get_size_inches())} inches")


if __name__ == "__main__":
    main()
