"""Measures how compile time, memory and the size of the model grow with vocabulary, length and depth.

    python benchmarks/scaling.py                 measure, then write the tables and plots of docs/scaling.md
    python benchmarks/scaling.py --quick         few sizes, into a temporary folder, as a test

Each size is compiled in its own process, to measure its own peak memory; the memory of Python and numpy is subtracted.
An interrupted run can be continued. Exponents are slopes of straight lines, fitted by least squares to logarithms over
the upper half of the sizes (where the growing part dominates): time ~ size^exponent. Needs matplotlib (extra `viz`).
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent / "docs"
START, END = "<!-- measured: written by benchmarks/scaling.py -->", "<!-- end of what was measured -->"
MEASURES = {"time": "compile time", "memory": "peak memory", "parameters": "parameters", "non_zeros": "non-zeros"}
COLOURS = ("#2b6cb0", "#dd6b20", "#2f855a", "#805ad5", "#b83280")


@dataclass(frozen=True)
class Series:
    """A program compiled at several sizes; `axis` is the quantity that grows."""

    axis: str
    program: str
    fixed: int
    sizes: tuple[int, ...]

    @property
    def name(self) -> str:
        """The name in the tables."""
        other = {"length": f"{self.fixed} tokens", "depth": "10 tokens, length 10"}
        return f"{self.program}, {other.get(self.axis, f'length {self.fixed}')}"

    def shape(self, size: int) -> tuple[int, int, int]:
        """Vocabulary, length and repetitions."""
        shapes = {"length": (self.fixed, size, 1), "depth": (10, 10, size)}
        return shapes.get(self.axis, (size, self.fixed, 1))


ONE_HOT, BITS = (16, 32, 64, 128, 256, 512, 1000), (2000, 4000, 8000, 16_000)  # 1025 tokens or more are stored in bits
LENGTHS = (8, 16, 32, 64, 128, 256)
CROOKED = 1.5  # a point off a fitted line by this factor makes the fit crooked
SMALLEST = 1.0  # MiB: less cannot be told from the memory that Python itself takes and frees
SERIES = (
    Series("vocabulary", "hist", 10, ONE_HOT),
    Series("vocabulary", "reverse", 10, ONE_HOT),
    Series("vocabulary", "sort", 10, ONE_HOT[:6]),
    Series("vocabulary", "detect_pattern", 10, ONE_HOT),
    Series("large vocabulary", "hist", 10, BITS),
    Series("large vocabulary", "reverse", 10, BITS),
    Series("large vocabulary", "detect_pattern", 10, BITS),
    Series("length", "hist", 10, (*LENGTHS, 512)),
    Series("length", "reverse", 10, (*LENGTHS, 512)),
    Series("length", "sort", 10, LENGTHS),
    Series("length", "frac_prevs", 10, (*LENGTHS, 512)),
    Series("length", "shuffle_dyck2", 10, LENGTHS[:5]),
    Series("depth", "chain of shifts", 10, (1, 2, 4, 8, 16, 32, 64)),
    Series("depth", "chain of maps", 10, (1, 2, 4, 8, 16, 32, 64)),
    Series("depth", "chain of counts", 10, (1, 2, 4, 8, 16, 32)),
)
LARGEST = (
    ("sort", 100, 100),
    ("sort", 200, 200),
    ("hist", 10_000, 64),
    ("reverse", 10_000, 64),
    ("shuffle_dyck2", 150, 150),
    ("frac_prevs", 100, 1000),
    ("dyck2", 100, 100),
)


# one compilation, in its own process


def _mixed(step: int, x: int, y: int) -> int:
    return (x + y * (step + 1)) % 11


def build(program: str, vocab: int, length: int, depth: int) -> tuple[Any, list[Any]]:
    """A program and its vocabulary."""
    from tracr.rasp import programs, rasp

    tokens, number = rasp.tokens, range(vocab)
    match program:
        case "chain of shifts":
            sop: Any = tokens
            for _ in range(depth):
                sop = programs.shift_by(1, sop)
            return sop, list(number)
        case "chain of maps":
            sop = rasp.indices
            for step in range(depth):
                sop = rasp.SequenceMap(partial(_mixed, step), sop, tokens)
            return sop, list(number)
        case "chain of counts":
            sop = tokens
            for _ in range(depth):
                sop = rasp.SelectorWidth(rasp.Select(sop, sop, rasp.Comparison.EQ))
            return sop, list(number)
        case "sort":
            return programs.make_sort(tokens, tokens, max_seq_len=length, min_key=1), list(range(1, vocab + 1))
        case "frac_prevs":
            return programs.make_frac_prevs((tokens == 0).named("is_0")), list(number)
        case "detect_pattern":
            return programs.detect_pattern(tokens, (0, 1)), list(number)
        case "shuffle_dyck2" | "dyck2":
            made = programs.make_shuffle_dyck2() if program == "shuffle_dyck2" else programs.make_dyck2()
            return made, ["(", ")", "{", "}", *range(vocab - 4)]
        case "reverse":
            return programs.make_reverse(tokens), list(number)
    return programs.make_hist(), list(number)


def compile_one(program: str, vocab: int, length: int, depth: int, level: int) -> dict[str, Any]:
    """Measure one compilation; `time` is processor time, the shortest of several if they are short."""
    import time

    sys.path[0] = str(Path(__file__).resolve().parent / "sides")
    from memory import peak

    import tracr
    from tracr.errors import TracrError

    tracr.compile(*build("hist", 4, 5, 1), 5)  # load and cache everything first
    before = peak()
    times: list[float] = []
    while not times or (sum(times) < 0.3 and len(times) < 50):
        sop, tokens = build(program, vocab, length, depth)
        started = time.process_time()
        try:
            model = tracr.compile(sop, tokens, length, level=level)
        except TracrError as error:
            return {"refused": str(error).splitlines()[0]}
        times.append(time.process_time() - started)
        if len(times) == 1:
            memory = peak() - before
    return {
        "time": min(times),
        **({"memory": memory} if memory > SMALLEST else {}),
        "layers": model.n_layers,
        "dimensions": model.d_model,
        "parameters": model.n_parameters,
        "non_zeros": sum(int((array != 0).sum()) for _, array in model.parameters.named()),
    }


def apart(program: str, vocab: int, length: int, depth: int, level: int) -> dict[str, Any]:
    """Measure one compilation in its own process."""
    arguments = json.dumps([program, vocab, length, depth, level])
    run = subprocess.run([sys.executable, __file__, "--one", arguments], capture_output=True, text=True)
    if run.returncode != 0:
        return {"refused": (run.stderr.strip() or "no reason").splitlines()[-1]}
    return dict(json.loads(run.stdout))


# all of them


def measure(series: tuple[Series, ...], largest: tuple[tuple[str, int, int], ...], kept: Path) -> dict[str, Any]:
    """Measure every size of every series, then the largest models, except those already in the file `kept`."""
    from tqdm import tqdm

    found: dict[str, Any] = json.loads(kept.read_text()) if kept.is_file() else {"series": {}, "largest": {}}
    jobs = [
        (f"{each.axis}: {each.name}", str(size), (each.program, *each.shape(size)))
        for each in series
        for size in each.sizes
    ]
    big = [(f"{program} ({vocab:,}, {length})", (program, vocab, length, 1)) for program, vocab, length in largest]
    with tqdm(total=len(jobs) + len(big), unit="model") as bar:
        for name, size, shape in jobs:
            bar.set_description(name)
            points = found["series"].setdefault(name, {})
            if size not in points:
                points[size] = apart(*shape, 1)
                _keep(found, kept)
            bar.update()
        for name, shape in big:
            bar.set_description(name)
            if name not in found["largest"]:
                found["largest"][name] = apart(*shape, 1)
                _keep(found, kept)
            bar.update()
    return found


def _keep(found: dict[str, Any], kept: Path) -> None:
    new = kept.with_name(kept.name + ".new")
    new.write_text(json.dumps(found, indent=1) + "\n")
    new.replace(kept)


@dataclass(frozen=True)
class Fit:
    """A straight line through logarithms, from one size to another; `crooked` if a point is far from it."""

    slope: float
    level: float
    low: int
    high: int
    crooked: bool

    def at(self, size: int) -> float:
        """The value on the line."""
        return math.exp(self.level + self.slope * math.log(size))

    def __str__(self) -> str:
        return f"{self.slope:.2f}" + (" (crooked)" if self.crooked else "")


def fitted(points: dict[str, Any], measure: str) -> Fit | None:
    """The line over the upper half of the sizes, at least three."""
    import numpy as np

    sizes = [int(size) for size, point in points.items() if measure in point]
    sizes = sizes[-max(3, math.ceil(len(sizes) / 2)) :]
    if len(sizes) < 3:
        return None
    x, y = np.log(sizes), np.log([points[str(size)][measure] for size in sizes])
    slope, level = (float(number) for number in np.polyfit(x, y, 1))
    crooked = bool(np.abs(y - slope * x - level).max() > math.log(CROOKED))
    return Fit(slope, level, sizes[0], sizes[-1], crooked)


def table(found: dict[str, Any], axis: str) -> str:
    """The exponents of the series along one axis."""
    lines = [
        f"| program | fitted on | {' | '.join(MEASURES.values())} | layers |",
        "|---|---|" + "---|" * (len(MEASURES) + 1),
    ]
    for name, points in found["series"].items():
        if not name.startswith(f"{axis}: "):
            continue
        fits = {measure: fitted(points, measure) for measure in MEASURES}
        known = next((fit for fit in fits.values() if fit), None)
        built = [(size, point["layers"]) for size, point in points.items() if "layers" in point]
        span = f"{known.low:,} to {known.high:,}" if known else "too few sizes"
        cells = [str(fit or "—") for fit in fits.values()]
        layers = (
            f"{built[0][1]} to {built[-1][1]}"
            if built and built[0][1] != built[-1][1]
            else str(built[0][1] if built else "—")
        )
        refused = [int(size) for size, point in points.items() if "refused" in point]
        note = f"; refused from {min(refused):,} on" if refused else ""
        lines.append(f"| {name.removeprefix(axis + ': ')} | {span}{note} | {' | '.join(cells)} | {layers} |")
    return "\n".join(lines)


def largest_table(found: dict[str, Any]) -> str:
    """The sizes of large models, and times relative to the first."""
    lines = [
        "| program (tokens, length) | layers | dimensions | parameters | non-zeros | compile time, relative |",
        "|---|---|---|---|---|---|",
    ]
    unit = next((point["time"] for point in found["largest"].values() if "time" in point), 1.0)
    for name, point in found["largest"].items():
        if "refused" in point:
            lines.append(f"| {name} | refused: {point['refused']} | | | | |")
            continue
        sizes = " | ".join(f"{point[key]:,}" for key in ("layers", "dimensions", "parameters", "non_zeros"))
        lines.append(f"| {name} | {sizes} | {point['time'] / unit:.2g} |")
    return "\n".join(lines)


def plot(found: dict[str, Any], axis: str, path: Path) -> None:
    """Each measure against the size, relative to the smallest, with the fitted lines."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    with matplotlib.rc_context({"svg.hashsalt": "tracr", "font.size": 8}):
        figure = Figure(figsize=(10, 3), layout="constrained", facecolor="white")
        for panel, (measure, title) in zip(figure.subplots(1, len(MEASURES)), MEASURES.items(), strict=True):
            chosen = {name: points for name, points in found["series"].items() if name.startswith(f"{axis}: ")}
            for colour, (name, points) in zip(COLOURS, chosen.items(), strict=False):
                sizes = [int(size) for size, point in points.items() if measure in point]
                if not sizes:
                    continue
                smallest = points[str(sizes[0])][measure]
                label = name.removeprefix(f"{axis}: ").partition(",")[0]
                values = [points[str(size)][measure] / smallest for size in sizes]
                panel.plot(sizes, values, "o", ms=3, color=colour, label=label)
                fit = fitted(points, measure)
                if fit:
                    ends = (fit.low, fit.high)
                    style = ":" if fit.crooked else "-"
                    panel.plot(ends, [fit.at(end) / smallest for end in ends], style, lw=1, color=colour)
            panel.set(xscale="log", yscale="log", title=title, xlabel=axis)
            shown = sorted({int(size) for points in chosen.values() for size in points})
            panel.set_xticks(shown[:: max(1, len(shown) // 4)], minor=False)
            panel.xaxis.set_major_formatter("{x:,.0f}")
            panel.xaxis.set_minor_formatter(NullFormatter())
            panel.yaxis.set_minor_formatter(NullFormatter())
            panel.grid(alpha=0.3, which="major")
        figure.axes[0].set_ylabel("relative to the smallest")
        figure.axes[0].legend(fontsize=7)
        figure.savefig(path, metadata={"Date": None})


def _file(axis: str) -> str:
    return f"scaling-{axis.replace(' ', '-')}.svg"


def write(found: dict[str, Any], folder: Path) -> None:
    """Write the tables between the marks of scaling.md, and the plots."""
    page = folder / "scaling.md"
    text = page.read_text(encoding="utf-8") if page.is_file() else f"# Scaling\n\n{START}\n{END}\n"
    before, after = text[: text.index(START)], text[text.index(END) + len(END) :]
    parts = []
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for axis in dict.fromkeys(name.partition(":")[0] for name in found["series"]):
        plot(found, axis, folder / "images" / _file(axis))
        parts.append(f"## {axis.capitalize()}\n\n{table(found, axis)}\n\n![Growth with {axis}](images/{_file(axis)})")
    parts.append(f"## The largest\n\n{largest_table(found)}")
    page.write_text(before + START + "\n\n" + "\n\n".join(parts) + "\n\n" + END + after, encoding="utf-8")


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few sizes, into a temporary folder")
    parser.add_argument("--fresh", action="store_true", help="delete earlier measurements")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(compile_one(*json.loads(options.one))))
        return
    if options.quick:
        quick = tuple(replace(each, sizes=each.sizes[:3]) for each in SERIES[::5])
        folder = Path(tempfile.mkdtemp())
        write(measure(quick, (("hist", 100, 20),), folder / "scaling.json"), folder)
        print((folder / "scaling.md").read_text())
        return
    kept = DOCS / "benchmarks" / "scaling.json"
    kept.parent.mkdir(exist_ok=True)
    if options.fresh:
        kept.unlink(missing_ok=True)
    write(measure(SERIES, LARGEST, kept), DOCS)


if __name__ == "__main__":
    main()
