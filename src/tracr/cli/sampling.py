"""`tracr sample`: makes datasets of random programs and of their models."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracr.cli.inputs import read_vocabulary
from tracr.errors import TracrError

if TYPE_CHECKING:
    from tracr.datasets import Controls
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
    from tracr.datasets import Controls
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
    crew: AbstractContextManager[Workers] = over_ray() if use_ray else over_processes(jobs)
    with crew as workers:
        _draw(output, count, seed, controls, workers)
        if compiling:
            folder = shards or output.with_name(f"{output.stem}.level{level}")
            _compile(output, folder, count, (level, budget, shard_size), workers)


def _draw(output: Path, count: int, seed: int, controls: Controls, workers: Workers) -> None:
    from tracr.datasets import write_programs
    from tracr.datasets.records import Sampling

    start, before = time.perf_counter(), -1
    with _bar(count, "programs") as advance:

        def progress(sampling: Sampling) -> None:
            nonlocal before
            if before < 0:
                before = sampling.found
                advance(min(count, before))
            else:
                advance(1)

        done = write_programs(output, count, seed, controls, workers, progress)
    same = done.next - done.found - done.refused
    typer.echo(
        f"{output}: {done.found:,} programs ({same:,} with the meaning of another left out, {done.refused:,} refused); "
        f"{_rate(done.found - before, start)}"
    )


def _compile(output: Path, folder: Path, count: int, how: tuple[int, int, int], workers: Workers) -> None:
    from itertools import islice

    from tracr.datasets import read_programs
    from tracr.datasets.building import build_shards, outcomes
    from tracr.datasets.shards import Settings

    start = time.perf_counter()
    with _bar(count, "models") as advance:
        made = build_shards(folder, islice(read_programs(output), count), Settings(*how), workers, advance)
    found = outcomes(folder)
    typer.echo(
        f"{folder}: {found['compiled']:,} models compiled and checked, {found['refused']:,} programs refused, "
        f"{found['wrong']:,} models wrong, {found['failed']:,} failures; {_rate(made, start)}"
    )
    if found["wrong"] or found["failed"]:
        raise TracrError(
            f"{folder} has wrong models, or programs on which the compiler failed",
            hint='"status" and "reason" in its JSON files say which and why; this is a bug in tracr: please report it',
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
