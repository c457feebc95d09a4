"""`tracr sample`: makes datasets of random programs and of their models."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracr.cli.inputs import read_vocabulary
from tracr.errors import TracrError

if TYPE_CHECKING:
    from tracr.datasets.sampling import Sampling
    from tracr.datasets.settings import Settings
    from tracr.workers import Workers

__all__ = ["sample"]


def _count(default: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(min=0, metavar="N", help=default, show_default=False)
    return option


def sample(
    count: Annotated[int, typer.Option(min=1, metavar="N", help="The number of programs.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The JSON Lines file to write.")],
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The random seed.")] = 0,
    vocab: Annotated[str, typer.Option(metavar="TOKENS", help="The vocabulary: abc, 1,2,x or a JSON list.")] = "abc",
    max_len: Annotated[int, typer.Option(min=1, metavar="N", help="The longest input, in tokens.")] = 5,
    causal: Annotated[bool, typer.Option("--causal", help="Make programs for causal attention.")] = False,
    min_ops: Annotated[int, typer.Option(min=0, metavar="N", help="The fewest s-ops of a program.")] = 0,
    max_ops: Annotated[int, typer.Option(min=0, metavar="N", help="The most s-ops of a program.")] = 6,
    min_depth: Annotated[
        int, typer.Option(min=0, metavar="N", help="The least depth: the longest chain of s-ops.")
    ] = 0,
    max_depth: Annotated[int | None, _count("The greatest depth.")] = None,
    min_selectors: Annotated[int, typer.Option(min=0, metavar="N", help="The fewest selectors of a program.")] = 0,
    max_selectors: Annotated[int | None, _count("The most selectors of a program.")] = None,
    composite: Annotated[bool, typer.Option("--composite", help="Combine selectors over different s-ops.")] = False,
    compiling: Annotated[
        bool, typer.Option("--compile", help="Also compile the programs and check the models.")
    ] = False,
    level: Annotated[int, typer.Option(min=0, metavar="N", help="The optimisation level.")] = 1,
    budget: Annotated[int, typer.Option(min=1, metavar="N", help="The most inputs to check a model on.")] = 2_000,
    shards: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="The folder of the models; by default FILE.levelN.", show_default=False),
    ] = None,
    shard_size: Annotated[int, typer.Option(min=1, metavar="N", help="Programs per shard.")] = 100,
    max_parameters: Annotated[
        int | None, _count("Draw another program if the model at --level has more parameters.")
    ] = None,
    max_layers: Annotated[int | None, _count("Draw another program if the model at --level has more layers.")] = None,
    realise: Annotated[
        str,
        typer.Option(
            metavar="KINDS", help="More models of each program: rotated*2,noisy:1e-4,superposed:0.8,softened."
        ),
    ] = "",
    truth: Annotated[
        bool,
        typer.Option("--truth/--no-truth", help="Store labels and ground truth of the models.", show_default=False),
    ] = True,
    padded: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Also write numpy arrays, one for each kind of weight.", show_default=False
        ),
    ] = None,
    parquet: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also write Parquet files.", show_default=False)
    ] = None,
    splits: Annotated[
        str, typer.Option(metavar="SHARES", help="The splits of --padded and --parquet; no function is in two.")
    ] = "train=0.8,validation=0.1,test=0.1",
    as_compiled: Annotated[
        bool, typer.Option("--as-compiled", help="Keep the compiler's order of weights in --padded and --parquet.")
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, metavar="N", help="The number of processes.")] = 1,
    use_ray: Annotated[
        bool, typer.Option("--ray", help="Distribute the work with Ray (RAY_ADDRESS, else a local Ray).")
    ] = False,
) -> None:
    """Make a dataset of random programs.

    No two programs have the same meaning. With --compile, also compile the programs and check the models. The same
    command run again adds only the missing ones.

    Example: tracr sample --count 10000 -o programs.jsonl --compile --jobs 8
    """
    from tracr.datasets import Controls, ModelBounds
    from tracr.datasets.exporting import check_target
    from tracr.datasets.realisations import read_realisations
    from tracr.datasets.sampling import Sampling
    from tracr.datasets.settings import Settings
    from tracr.datasets.splits import read_splits
    from tracr.workers import over_processes, over_ray

    controls = Controls(
        tuple(read_vocabulary(vocab)),
        max_len,
        causal,
        min_ops,
        max_ops,
        min_depth,
        max_depth,
        min_selectors,
        max_selectors,
        composite,
    )
    controls.options(level)  # refuses an unknown level
    bounded = max_parameters is not None or max_layers is not None
    sampling = Sampling(seed, controls, ModelBounds(level, max_parameters, max_layers) if bounded else None)
    settings = Settings(level, budget, shard_size, read_realisations(realise), truth)
    shares = read_splits(splits)
    exports = [(kind, target) for kind, target in (("padded", padded), ("parquet", parquet)) if target is not None]
    for kind, target in exports:
        check_target(kind, target)
    compiling = compiling or bool(realise) or bool(exports)
    crew: AbstractContextManager[Workers] = over_ray() if use_ray else over_processes(jobs)
    with crew as workers:
        if not compiling:
            _draw(output, count, sampling, workers)
            return
        folder = shards or output.with_name(f"{output.stem}.level{level}")
        _compile(output, folder, count, sampling, settings, workers)
    for kind, target in exports:
        _export(kind, folder, target, shares, seed, in_order=not as_compiled)


def _draw(output: Path, count: int, sampling: Sampling, workers: Workers) -> None:
    from tracr.datasets.program_file import drawn_into

    start, before = time.perf_counter(), _Before()
    with _bar(count, "programs") as advance:
        for _ in islice(drawn_into(output, sampling, count, workers, progress=before), count):
            advance(1)
    _report(output, sampling, before.found, start)


def _compile(output: Path, folder: Path, count: int, sampling: Sampling, settings: Settings, workers: Workers) -> None:
    """Draw the programs and compile them; those of an earlier run are drawn again from their seeds."""
    from tracr.datasets.building import build_shards, outcomes
    from tracr.datasets.program_file import drawn_into

    start, before = time.perf_counter(), _Before()
    with _bar(count, "models") as advance:
        drawn = drawn_into(output, sampling, count, workers, settings, before)
        with closing(drawn):
            made = build_shards(folder, islice(drawn, count), settings, workers, advance)
            next(drawn, None)  # complete the file of programs
    _report(output, sampling, before.found, start)
    found = outcomes(folder)
    typer.echo(
        f"{folder}: {found['compiled']:,} models compiled and checked, {found['refused']:,} programs refused, "
        f"{found['wrong']:,} models wrong, {found['failed']:,} failures; {_rate(made, start)}"
    )
    if settings.realisations:
        typer.echo(_realised(folder))
    if found["wrong"] or found["failed"]:
        raise TracrError(
            f"{folder} has wrong models, or programs on which the compiler failed",
            hint='"status" and "reason" in its JSON files say which and why; this is a bug in tracr: please report it',
        )


class _Before:
    """Notes how many programs the file had before any was drawn."""

    found = -1

    def __call__(self, sampling: Sampling) -> None:
        if self.found < 0:
            self.found = sampling.found


def _report(output: Path, sampling: Sampling, before: int, start: float) -> None:
    same = sampling.next - sampling.found - sampling.refused - sampling.over
    over = "" if sampling.bounds is None else f"{sampling.over:,} over the bounds, "
    typer.echo(
        f"{output}: {sampling.found:,} programs ({same:,} with the meaning of another left out, {over}"
        f"{sampling.refused:,} refused); {_rate(sampling.found - before, start)}"
    )


def _realised(folder: Path) -> str:
    """For each realisation how many models were made, and how many of them are right on all checked inputs."""
    from tracr.datasets.building import realisations

    lines = [
        f"  {name}: {counts['made']:,} models, {counts['right']:,} of them right on all checked inputs, "
        f"{counts['refused']:,} refused"
        for name, counts in realisations(folder).items()
    ]
    return "\n".join(lines)


def _export(kind: str, folder: Path, target: Path, shares: dict[str, float], seed: int, *, in_order: bool) -> None:
    from tracr.datasets.exporting import write_padded, write_parquet
    from tracr.datasets.table_rows import table_of

    table = table_of(folder, shares, seed, in_order=in_order)
    write = write_padded if kind == "padded" else write_parquet
    with _bar(table.models, "models") as advance:
        write(table, target, progress=advance)
    counts = Counter(table.splits.values())
    typer.echo(
        f"{target}: {table.models:,} models; programs: {', '.join(f'{name} {counts[name]:,}' for name in shares)}; "
        f"{len(set(table.groups.values())):,} different functions"
    )


@contextmanager
def _bar(total: int, unit: str) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error, if that is a terminal."""
    from tqdm import tqdm

    with tqdm(total=total, unit=f" {unit}", leave=False, disable=None) as bar:

        def advance(steps: int) -> None:
            bar.update(steps)

        yield advance


def _rate(number: int, start: float) -> str:
    seconds = time.perf_counter() - start
    return f"{number:,} in {seconds:.1f} s, {number / max(seconds, 1e-9):,.0f} a second"
