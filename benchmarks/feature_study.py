"""The study of features: sparse autoencoders on programs × density × D/d × kind × width × sparsity × seeds.

    python benchmarks/feature_study.py small OUT           # a few minutes on two CPU cores
    python benchmarks/feature_study.py full OUT --jobs 6   # for one GPU: 20 programs, 14,580 rows
    python benchmarks/feature_study.py table OUT           # the table, if the run was made where pyarrow is not

All SAEs of one kind and width, on all programs and densities of one seed and one D/d, train in one program on the
device. Processes compute scores while the next ones train; each keeps its subjects between training and scores. The
control is the same for every D/d: it is trained and scored once. A stopped run continues. Rows have the columns and
settings of those of `tracr lab run --track features`, so that `tracr lab report OUT` makes tables and the page;
`feature_summary.py` makes those of docs/lab-features.md. The run needs the extra `jax`, the table `sweep`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from tracr.compress.store import Store
from tracr.lab import Conditions, subject
from tracr.lab.choices import Configured
from tracr.lab.features import FEATURE_METHODS, Examination, FeatureDials
from tracr.lab.features.coder import SparseCoder
from tracr.lab.features.feature_rows import columns_beside
from tracr.lab.rows import KEY
from tracr.lab.selecting import named_case
from tracr.lab.subject_cache import weights_digest
from tracr.lab.track import FEATURES
from tracr.threads import blas_threads
from tracr.workers import end_with_parent
from tracr.writing import write_file

Row = dict[str, Any]
Array = np.ndarray[Any, Any]
SPARSITY = {"l1": "penalty", "topk": "k", "jumprelu": "penalty"}
TRAINED_AT_ONCE = 3  # threads: one compiles while another one trains
PRECISION = "tensorfloat32"  # of products in training, on devices that have it; scores are computed in float64


@dataclass(frozen=True)
class Grid:
    """What is varied."""

    programs: range
    features: int
    tokens: int
    densities: tuple[float, ...]
    ratios: tuple[float, ...]
    widths: tuple[float, ...]
    sparsities: Mapping[str, tuple[float, ...]]
    seeds: tuple[int, ...]
    steps: int


GRIDS = {
    "small": Grid(
        range(3),
        24,
        128,
        (0.01, 0.03),
        (4.0,),
        (1.0, 2.0),
        {"l1": (0.4,), "topk": (2,), "jumprelu": (0.05,)},
        (0,),
        600,
    ),
    "full": Grid(
        range(20),
        64,
        512,
        (0.005, 0.015, 0.05),
        (2.0, 4.0, 8.0),
        (0.5, 1.0, 2.0),
        {"l1": (0.2, 0.4, 0.8), "topk": (1, 2, 6), "jumprelu": (0.02, 0.05, 0.2)},
        (0, 1, 2),
        2_000,
    ),
}
CONDITIONS = Conditions(pairs=16, track=FEATURES.name)


@dataclass(frozen=True)
class Specimen:
    """A case and a seed: a subject for each D/d, and their control."""

    case: str
    seed: int
    ratios: tuple[float, ...]

    @property
    def file(self) -> str:
        """The name of the file of its rows."""
        return f"{self.case.replace(':', '_')}_run={self.seed}.jsonl"


@dataclass(frozen=True)
class Trained:
    """The same coder of each subject of a specimen, and of the control, which is the last."""

    method: str
    settings: dict[str, Any]
    coders: list[SparseCoder]
    seconds: float


KEPT: dict[Specimen, list[Examination]] = {}  # of a process, until they are scored


def examined(one: Specimen) -> list[Examination]:
    """The subjects, and the control at the end."""
    found: list[Examination] = []
    for ratio in one.ratios:
        made = subject(one.case, "superposed", seed=one.seed, ratio=ratio)
        found.append(Examination(made, CONDITIONS.pairs, one.seed, like=found[0] if found else None))
    return [*found, found[0].control()]


def activations(one: Specimen) -> list[Array]:
    """What coders learn from: the activations of each subject, and the control's."""
    with blas_threads(1):
        KEPT[one] = examined(one)
        return [each.training.activations.astype(np.float32) for each in KEPT[one]]


def scored(one: Specimen, coders: list[Trained]) -> list[Row]:
    """A row for each coder of each subject."""
    with blas_threads(1):
        *subjects, control = KEPT.pop(one)
        nulls = {(number, size): each.null(size) for number, each in enumerate(subjects) for size in sizes_of(coders)}
        rows = []
        for coder in coders:
            *mine, beside = coder.coders
            orthogonal = control.score(beside.found())
            for number, (examination, own) in enumerate(zip(subjects, mine, strict=True)):
                null = nulls[number, len(own.weights["W_dec"])]
                rows.append(
                    {
                        **key_of(one, one.ratios[number], coder.method, coder.settings),
                        **examination.about,
                        "status": "done",
                        "error": "",
                        **asdict(examination.score(own.found())),
                        **columns_beside({"control": orthogonal, "null": null, "ceiling": examination.ceiling}),
                        "forward_passes": 0,
                        "backward_passes": 0,
                        "seconds": coder.seconds,
                    }
                )
    return rows


def sizes_of(coders: list[Trained]) -> set[int]:
    """The numbers of atoms."""
    return {len(one.weights["W_dec"]) for coder in coders for one in coder.coders}


def key_of(one: Specimen, ratio: float, method: str, settings: dict[str, Any]) -> Row:
    """The columns that are known before the run, as `tracr lab run` writes them."""
    return {
        **asdict(replace(CONDITIONS, pairs_seed=one.seed)),
        "method": method,
        "version": str(FEATURE_METHODS[method].version),
        "settings": Configured(method, settings).as_json,
        "case": one.case,
        "realisation": "superposed",
        "dials": Configured("superposed", {"ratio": ratio}).as_json,
        "seed": one.seed,
    }


class Crew:
    """Processes; a specimen has always the same one."""

    def __init__(self, jobs: int, stack: ExitStack) -> None:
        context = multiprocessing.get_context("spawn")
        self._pools = [
            stack.enter_context(ProcessPoolExecutor(1, mp_context=context, initializer=end_with_parent))
            for _ in range(jobs)
        ]

    def submit(self, number: int, function: Any, *given: Any) -> Future[Any]:
        """Call a function in the process of a specimen, by its number."""
        return self._pools[number % len(self._pools)].submit(function, *given)


def choices(grid: Grid) -> Iterator[tuple[str, float, list[dict[str, Any]]]]:
    """Every kind and width, with the settings of its coders."""
    for (kind, values), width in product(grid.sparsities.items(), grid.widths):
        usual = {"steps": grid.steps, "rate": FEATURE_METHODS[f"sae-{kind}"].settings["rate"], "width": width}
        yield kind, width, [{**usual, SPARSITY[kind]: value} for value in values]


def trained(grid: Grid, specimens: Sequence[Specimen], sides: list[Array]) -> list[list[Trained]]:
    """All coders of each specimen. `sides` has the activations of all of them for each D/d, and for the control."""
    from tracr.lab.features.coder_training import CoderRecipe, train_coders

    seeds = [one.seed for one in specimens]
    found: list[list[Trained]] = [[] for _ in specimens]

    def run(choice: tuple[str, float, list[dict[str, Any]]]) -> tuple[list[list[list[SparseCoder]]], float]:
        kind, width, settings = choice
        atoms = max(1, round(2 * grid.features * width))
        recipe = CoderRecipe(kind, atoms, grid.steps, rate=settings[0]["rate"], precision=PRECISION)
        values = [one[SPARSITY[kind]] for one in settings]
        start = time.perf_counter()
        made = [train_coders(recipe, side, side, values, seeds) for side in sides]
        return made, (time.perf_counter() - start) / (len(sides) * len(specimens) * len(values))

    with ThreadPoolExecutor(TRAINED_AT_ONCE) as threads:
        for choice, (made, seconds) in zip(choices(grid), threads.map(run, choices(grid)), strict=True):
            kind, width, settings = choice
            for place, (number, given) in product(range(len(specimens)), enumerate(settings)):
                coders = [side[place][number] for side in made]
                found[place].append(Trained(f"sae-{kind}", given, coders, seconds))
            print(f"  {kind}, width {width:g}: {seconds:.3f} s for each coder", flush=True)
    return found


def specimens_of(grid: Grid) -> list[list[Specimen]]:
    """All specimens, those of one seed together: a run that is cut has whole seeds."""
    cases = [
        FeatureDials(features=grid.features, tokens=grid.tokens, density=density, seed=program).name
        for program, density in product(grid.programs, grid.densities)
    ]
    return [[Specimen(case, seed, grid.ratios) for case in cases] for seed in grid.seeds]


def run(grid: Grid, folder: Path, jobs: int) -> None:
    """Run what is missing. Each specimen has a file of rows, which is written as a whole."""
    import jax

    rows = folder / "rows"
    rows.mkdir(parents=True, exist_ok=True)
    device = str(jax.default_backend())
    with ExitStack() as stack:
        crew, waiting = Crew(jobs, stack), []
        groups = [[one for one in group if not (rows / one.file).exists()] for group in specimens_of(grid)]
        ahead: list[list[Future[list[Array]]]] = []
        for place, missing in enumerate(groups):
            for group in groups[len(ahead) : place + 2]:  # processes make the next group while this one is trained
                ahead.append([crew.submit(number, activations, one) for number, one in enumerate(group)])
            if not missing:
                continue
            start = time.perf_counter()
            sides = [np.stack(side) for side in zip(*(one.result() for one in ahead[place]), strict=True)]
            print(f"{len(missing)} specimens there after {time.perf_counter() - start:.0f} s", flush=True)
            coders = trained(grid, missing, sides)
            print(f"  all trained after {time.perf_counter() - start:.0f} s", flush=True)
            for number, (one, own) in enumerate(zip(missing, coders, strict=True)):
                waiting.append(crew.submit(number, scored, one, own))
                waiting[-1].add_done_callback(Kept(rows / one.file, device))
        for finished in as_completed(waiting):
            finished.result()  # raises what a process raised


@dataclass(frozen=True)
class Kept:
    """Writes the rows of a specimen when they are there."""

    path: Path
    device: str

    def __call__(self, finished: Future[list[Row]]) -> None:
        if finished.exception() is None:
            lines = [json.dumps({**row, "device": self.device}) + "\n" for row in finished.result()]
            write_file(self.path, "".join(lines).encode())


def table(folder: Path) -> Path:
    """The table of all rows, as `tracr lab run` writes it."""
    files = sorted((folder / "rows").glob("*.jsonl"))
    rows = [json.loads(line) for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    first = named_case(rows[0]["case"])  # a compiler that makes other weights makes other subjects
    settings = asdict(CONDITIONS)
    store = Store(folder, settings, {first.name: weights_digest(first.model.parameters)}, FEATURES.columns, KEY)
    there = store.done()
    store.add([row for row in rows if tuple(row[name] for name in KEY) not in there])
    return store.finish()


def main() -> None:
    """Run a grid, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grid", choices=[*GRIDS, "table"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=1, help="processes for scores")
    given = parser.parse_args()
    if given.grid != "table":
        run(GRIDS[given.grid], given.folder, given.jobs)
    if importlib.util.find_spec("pyarrow"):
        print(table(given.folder))


if __name__ == "__main__":
    main()
