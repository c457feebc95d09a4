"""The study of features: sparse autoencoders on programs × density × D/d × kind × width × sparsity × seeds.

    python benchmarks/feature_study.py small OUT            # a few minutes on two CPU cores
    python benchmarks/feature_study.py full OUT --jobs 16   # for one GPU: 20 programs, 25,920 rows

All SAEs of one kind and width, on all programs, densities and seeds of a group, train in one program on the device;
scores are computed by processes. A stopped run continues. Rows have the columns and settings of those of
`tracr lab run --track features`, so that `tracr lab report OUT` makes tables and the page. Needs the extras `jax` and
`sweep`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from tracr.compress.store import Store
from tracr.lab import Conditions, subject
from tracr.lab.choices import Configured
from tracr.lab.features import FEATURE_METHODS, Examination, FeatureDials, FeatureScores
from tracr.lab.features.coder import SparseCoder
from tracr.lab.features.feature_rows import columns_beside
from tracr.lab.rows import KEY
from tracr.lab.selecting import named_case
from tracr.lab.subject_cache import weights_digest
from tracr.lab.track import FEATURES
from tracr.workers import Workers, over_processes

Row = dict[str, Any]
SPARSITY = {"l1": "penalty", "topk": "k", "jumprelu": "penalty"}


@dataclass(frozen=True)
class Grid:
    """What is varied."""

    programs: int
    features: int
    tokens: int
    densities: tuple[float, ...]
    ratios: tuple[float, ...]
    widths: tuple[float, ...]
    sparsities: dict[str, tuple[float, ...]]
    seeds: tuple[int, ...]
    steps: int
    together: int
    """Subjects whose coders train together: as many as fit into the memory."""


GRIDS = {
    "small": Grid(
        3,
        24,
        128,
        (0.01, 0.03),
        (4.0,),
        (1.0, 2.0),
        {"l1": (0.4,), "topk": (2,), "jumprelu": (0.05,)},
        (0,),
        600,
        16,
    ),
    "full": Grid(
        20,
        128,
        512,
        (0.003, 0.01, 0.03),
        (2.0, 4.0, 8.0),
        (0.5, 1.0, 2.0, 4.0),
        {"l1": (0.2, 0.4, 0.8), "topk": (1, 2, 4), "jumprelu": (0.02, 0.05, 0.2)},
        (0, 1, 2, 3),
        4_000,
        40,
    ),
}
CONDITIONS = Conditions(pairs=16, track=FEATURES.name)


@dataclass(frozen=True)
class Specimen:
    """A subject, by name."""

    case: str
    ratio: float
    seed: int

    def examined(self) -> tuple[Examination, Examination]:
        """The subject, and the control."""
        main = Examination(
            subject(self.case, "superposed", seed=self.seed, ratio=self.ratio), CONDITIONS.pairs, self.seed
        )
        return main, main.control()


@dataclass(frozen=True)
class Trained:
    """A coder of a specimen and the same coder of its control, with their settings and the seconds for each."""

    method: str
    settings: dict[str, Any]
    main: SparseCoder
    control: SparseCoder
    seconds: float


def activations(one: Specimen) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """What coders learn from: the specimen's activations, and the control's."""
    main, control = one.examined()
    return main.training.activations.astype(np.float32), control.training.activations.astype(np.float32)


def scored(task: tuple[Specimen, list[Trained]]) -> list[Row]:
    """A row for each coder of a specimen."""
    one, coders = task
    main, control = one.examined()
    nulls: dict[int, FeatureScores] = {}
    rows = []
    for coder in coders:
        found = coder.main.found()
        atoms = len(found.atoms)
        if atoms not in nulls:
            nulls[atoms] = main.null(atoms)
        beside = {"control": control.score(coder.control.found()), "null": nulls[atoms], "ceiling": main.ceiling}
        rows.append(
            {
                **key_of(one, coder.method, coder.settings),
                **main.about,
                "status": "done",
                "error": "",
                **asdict(main.score(found)),
                **columns_beside(beside),
                "forward_passes": 0,
                "backward_passes": 0,
                "seconds": coder.seconds,
            }
        )
    return rows


def key_of(one: Specimen, method: str, settings: dict[str, Any]) -> Row:
    """The columns that are known before the run, as `tracr lab run` writes them."""
    return {
        **asdict(replace(CONDITIONS, pairs_seed=one.seed)),
        "method": method,
        "version": str(FEATURE_METHODS[method].version),
        "settings": Configured(method, settings).as_json,
        "case": one.case,
        "realisation": "superposed",
        "dials": Configured("superposed", {"ratio": one.ratio}).as_json,
        "seed": one.seed,
    }


def choices(grid: Grid) -> Iterator[tuple[str, float, list[dict[str, Any]]]]:
    """Every kind and width, with the settings of its coders."""
    for (kind, values), width in product(grid.sparsities.items(), grid.widths):
        usual = {"steps": grid.steps, "rate": FEATURE_METHODS[f"sae-{kind}"].settings["rate"], "width": width}
        yield kind, width, [{**usual, SPARSITY[kind]: value} for value in values]


def trained(grid: Grid, specimens: Sequence[Specimen], workers: Workers) -> dict[Specimen, list[Trained]]:
    """All coders of some specimens, which have the same numbers of dimensions."""
    from tracr.lab.features.coder_training import CoderRecipe, train_coders

    sides = [np.stack(side) for side in zip(*workers.map(activations, specimens), strict=True)]
    seeds = [one.seed for one in specimens]
    features = 2 * grid.features
    found: dict[Specimen, list[Trained]] = {one: [] for one in specimens}
    for kind, width, settings in choices(grid):
        recipe = CoderRecipe(kind, max(1, round(features * width)), grid.steps, rate=settings[0]["rate"])
        values = [one[SPARSITY[kind]] for one in settings]
        start = time.perf_counter()
        main, control = (train_coders(recipe, side, side, values, seeds) for side in sides)
        seconds = (time.perf_counter() - start) / (2 * len(specimens) * len(values))
        for place, one in enumerate(specimens):
            for number, given in enumerate(settings):
                found[one].append(Trained(f"sae-{kind}", given, main[place][number], control[place][number], seconds))
        print(f"  {kind}, width {width:g}: {2 * len(specimens) * len(values)} coders, {seconds:.2f} s each", flush=True)
    return found


def specimens_of(grid: Grid) -> list[Specimen]:
    """All subjects; those of one D/d are neighbours."""
    cases = [
        FeatureDials(features=grid.features, tokens=grid.tokens, density=density, seed=seed).name
        for density, seed in product(grid.densities, range(grid.programs))
    ]
    return [Specimen(*one) for one in ((c, r, s) for r, c, s in product(grid.ratios, cases, grid.seeds))]


def missing(grid: Grid, specimens: Iterable[Specimen], store: Store) -> list[Specimen]:
    """The specimens that lack a row."""
    there = store.done()

    def complete(one: Specimen) -> bool:
        keys = [key_of(one, f"sae-{kind}", given) for kind, _, settings in choices(grid) for given in settings]
        return all(tuple(key[name] for name in KEY) in there for key in keys)

    return [one for one in specimens if not complete(one)]


def run(grid: Grid, folder: Path, jobs: int) -> Path:
    """Run what is missing, and write the table."""
    import jax

    specimens = specimens_of(grid)
    first = named_case(specimens[0].case)  # a compiler that makes other weights makes other subjects
    store = Store(
        folder, asdict(CONDITIONS), {first.name: weights_digest(first.model.parameters)}, FEATURES.columns, KEY
    )
    device = str(jax.default_backend())
    with over_processes(jobs) as workers:
        for ratio in grid.ratios:
            waiting = missing(grid, [one for one in specimens if one.ratio == ratio], store)
            for start in range(0, len(waiting), grid.together):
                group = waiting[start : start + grid.together]
                print(f"D/d {ratio:g}: {len(group)} subjects", flush=True)
                for rows in workers.map(scored, list(trained(grid, group, workers).items())):
                    store.add([{**row, "device": device} for row in rows])
    return store.finish()


def main() -> None:
    """Run a grid."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grid", choices=list(GRIDS))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=1, help="processes for scores")
    given = parser.parse_args()
    print(run(GRIDS[given.grid], given.folder, given.jobs))


if __name__ == "__main__":
    main()
