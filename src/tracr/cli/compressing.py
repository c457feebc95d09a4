"""`tracr compress` and `tracr sweep`: compress models into fewer dimensions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracr.cli.completion import among, listed, program_names
from tracr.cli.drawing import picture
from tracr.cli.options import Level, MaxLen, MaxMemory, Name, Program, Vocab, With, Without, choosing, numbers
from tracr.cli.sources import GivenOptions, compiled, find, switches
from tracr.errors import TracrError

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel
    from tracr.workers import Workers

__all__ = ["compress_program", "sweep_programs"]


class CompressMethod(Enum):
    """The methods of `tracr compress`."""

    fast = "fast"
    sgd = "sgd"
    pca = "pca"
    exact = "exact"


class SweepMethod(Enum):
    """The methods of `tracr sweep`."""

    sgd = "sgd"
    fast = "fast"


Steps = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Training steps; the default depends on the method.", show_default=False),
]


def compress_program(
    program: Program,
    dim: Annotated[
        int | None,
        typer.Option(metavar="N", help="Dimensions to keep; not needed for --method exact.", show_default=False),
    ] = None,
    method: Annotated[
        CompressMethod,
        typer.Option(
            **choosing(CompressMethod),
            show_default="fast",
            help="fast: our optimiser; sgd: the paper's; pca: the paper's baseline; exact: without loss.",
        ),
    ] = CompressMethod.fast,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The seed of the random starts.")] = 0,
    steps: Steps = None,
    name: Name = None,
    vocab: Vocab = None,
    max_len: MaxLen = None,
    max_memory: MaxMemory = None,
    level: Level = 0,
    switched_on: With = None,
    switched_off: Without = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the result, as .png, .svg or .pdf.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Save the model in this folder.", show_default=False)
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the folder even if it contains something other than a model.")
    ] = False,
) -> None:
    """Compress PROGRAM's residual stream to --dim dimensions.

    Reports which features are kept, dropped and shared. Compiles at level 0, the paper's structure, unless --level is
    given. Ctrl-C stops and keeps the best result so far.

    Example: tracr compress frac_prevs --dim 8 --plot frac_prevs.png -o frac_prevs.8
    """
    from tracr.compress import compress

    if plot is not None:
        picture(plot)
    found = find(program, name, GivenOptions(vocab, max_len))
    passes = switches(switched_on, switched_off)
    model = compiled(
        found,
        GivenOptions(vocab, max_len, None if found.model is not None else level, passes=passes, max_memory=max_memory),
    )
    if dim is None and method is not CompressMethod.exact:
        raise typer.BadParameter(
            f"how many of its {model.d_model} dimensions? add --dim, such as --dim {model.d_model // 2}"
        )
    made = compress(model, dim, method.value, seed, recipe=_recipe(method.value, steps), progress=True)
    if made.training.interrupted:
        typer.echo("stopped early: this is the best result so far", err=True)
    typer.echo(str(made.report()))
    if plot is not None:
        from tracr.compress.figures import overview
        from tracr.viz.canvas import save_figure

        save_figure(overview(made), plot, dpi=150)
        typer.echo(f"drawn in {plot}")
    if output is not None:
        made.save(output, overwrite=overwrite)
        typer.echo(f"saved in {output}")


Folder = Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="The folder of the results.")]
Programs = Annotated[
    str | None,
    typer.Option(
        metavar="LIST",
        autocompletion=listed(program_names),
        help="Programs, separated by commas.",
        show_default=False,
    ),
]
Studies = Annotated[
    str | None,
    typer.Option(
        metavar="LIST",
        autocompletion=listed(among("tracr.compress.paper", "STUDIES")),
        help="The paper's case studies, with its models and inputs: frac_prevs, sort_unique.",
        show_default=False,
    ),
]
Dims = Annotated[
    str | None, typer.Option(metavar="LIST", help="Dimensions: 4,6,8 or 2-14; all by default.", show_default=False)
]
Seeds = Annotated[str, typer.Option(metavar="LIST", help="Seeds: 0,1,2 or 0-9.")]
SweptBy = Annotated[
    SweepMethod,
    typer.Option(**choosing(SweepMethod), show_default="sgd", help="sgd: the paper's recipe; fast: our optimiser."),
]
Gap = Annotated[
    float | None, typer.Option(metavar="X", help="The gap of attention logits; 256 by default.", show_default=False)
]
Init = Annotated[
    float | None,
    typer.Option(
        metavar="X", help="Standard deviation of the random starts; for sgd 1/√D by default.", show_default=False
    ),
]
Decay = Annotated[
    float | None, typer.Option(metavar="X", help="Weight decay of sgd; 0.1 by default.", show_default=False)
]
Distinct = Annotated[bool, typer.Option("--distinct", help="Only inputs without repeated tokens.")]
Lengths = Annotated[
    str | None, typer.Option(metavar="LIST", help="Only inputs of these lengths: 3 or 1-5.", show_default=False)
]
Group = Annotated[int, typer.Option(min=1, metavar="N", help="Runs trained together; on a GPU use 1024 or more.")]
Retry = Annotated[bool, typer.Option("--retry", help="Repeat failed runs.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, metavar="N", help="The number of processes.")]
UseRay = Annotated[bool, typer.Option("--ray", help="Distribute the work with Ray (RAY_ADDRESS, else a local Ray).")]


def sweep_programs(
    output: Folder,
    programs: Programs = None,
    studies: Studies = None,
    dims: Dims = None,
    seeds: Seeds = "0-4",
    method: SweptBy = SweepMethod.sgd,
    steps: Steps = None,
    gap: Gap = None,
    init: Init = None,
    decay: Decay = None,
    distinct: Distinct = False,
    lengths: Lengths = None,
    level: Level = 0,
    switched_on: With = None,
    switched_off: Without = None,
    group: Group = 64,
    retry: Retry = False,
    jobs: Jobs = 1,
    use_ray: UseRay = False,
) -> None:
    """Compress programs to all --dims with all --seeds.

    The results are Parquet. The same command run again does only the missing runs.

    Example: tracr sweep --studies frac_prevs,sort_unique --dims 12 --seeds 0 --method fast -o results
    """
    from tracr.compress import sweep
    from tracr.workers import over_processes, over_ray

    if decay is not None and method is not SweepMethod.sgd:
        raise typer.BadParameter("only sgd has weight decay; leave out --decay", param_hint="--decay")
    models, inputs = _studies(studies, gap)
    choice = GivenOptions(level=level, passes=switches(switched_on, switched_off), gap=gap)
    chosen = None if lengths is None else numbers(lengths, "--lengths")
    _add_programs(models, inputs, _names(programs), choice, chosen, distinct)
    crew: AbstractContextManager[Workers] = over_ray() if use_ray else over_processes(jobs)
    with crew as workers, _progress() as progress:
        swept = sweep(
            models,
            None if dims is None else numbers(dims, "--dims"),
            numbers(seeds, "--seeds"),
            output,
            method=method.value,
            recipe=_recipe(method.value, steps, decay),
            inputs=inputs,
            init_scale=init,
            group=group,
            workers=workers,
            retry=retry,
            progress=progress,
        )
    typer.echo(f"{swept.results}: {swept.made:,} new runs, {swept.found:,} found, {swept.failed:,} of all failed")
    if swept.failed:
        raise TracrError(
            f"{swept.failed:,} runs failed",
            hint='the columns "status" and "error" of the results say which and why; --retry repeats them',
        )


def _add_programs(
    models: dict[str, DesignedModel],
    inputs: dict[str, Any],
    names: Sequence[str],
    choice: GivenOptions,
    lengths: Sequence[int] | None,
    distinct: bool,
) -> None:
    """Compile the programs, and choose their inputs if `lengths` or `distinct` is given."""
    from tracr.compress import all_inputs

    for name in names:
        if name in models:
            raise typer.BadParameter(f"{name} is in --programs and in --studies", param_hint="--programs")
        models[name] = compiled(find(name), choice)
        if distinct or lengths is not None:
            inputs[name] = all_inputs(models[name], lengths=lengths, distinct=distinct)
    if not models:
        raise typer.BadParameter("which programs? add --programs or --studies", param_hint="--programs")


@contextmanager
def _progress() -> Iterator[Callable[[int, int, float], None]]:
    """A bar, as the function that a sweep calls with the runs done, all runs and the best loss."""
    from tqdm import tqdm

    with tqdm(unit="run", leave=False, disable=None) as bar:

        def progress(done: int, total: int, best: float) -> None:
            if bar.total is None:
                bar.reset(total)
                bar.initial = bar.n = done
            bar.set_postfix(loss=f"{best:.3g}", refresh=False)
            bar.update(done - bar.n)

        yield progress


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _studies(text: str | None, gap: float | None) -> tuple[dict[str, DesignedModel], dict[str, Any]]:
    """The models and inputs of the paper's case studies."""
    from tracr.compress.paper import study
    from tracr.craft.numerics import GAP

    found = {name: study(name, GAP if gap is None else gap) for name in _names(text)}
    return {name: model for name, (model, _) in found.items()}, {name: inputs for name, (_, inputs) in found.items()}


def _recipe(method: str, steps: int | None, decay: float | None = None) -> Any:
    from tracr.compress import FastRecipe, Recipe

    options = {"steps": steps, "weight_decay": decay}
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if not given or method not in ("sgd", "fast"):
        return None
    return Recipe(**given) if method == "sgd" else FastRecipe(**given)
