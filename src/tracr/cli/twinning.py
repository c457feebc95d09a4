"""`tracr twin`: trains natural models of programs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from tracr.cli.completion import program_names
from tracr.cli.inputs import read_vocabulary
from tracr.cli.options import PROGRAM_HELP, Causal, MaxLen, MaxMemory, Name, Vocab, numbers
from tracr.cli.sources import ZOO, Found, GivenOptions, compiled, find
from tracr.errors import TracrError

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel
    from tracr.natural.many import ProgramTwins
    from tracr.workers import Workers

__all__ = ["twin"]


def twin(
    programs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PROGRAM",
            help=f"{PROGRAM_HELP} Also the programs of the zoo.",
            autocompletion=program_names,
            show_default=False,
        ),
    ] = None,
    *,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="The folder to write: a subfolder per seed; with several programs, one per program with these in it.",
        ),
    ],
    everything: Annotated[bool, typer.Option("--all", help="All programs of the library (`tracr list`).")] = False,
    width: Annotated[int, typer.Option(min=1, metavar="N", help="The width of the residual stream.")] = 64,
    d_head: Annotated[int, typer.Option(min=1, metavar="N", help="The width of a head.")] = 16,
    d_mlp: Annotated[int, typer.Option(min=1, metavar="N", help="The neurons of each MLP.")] = 128,
    seeds: Annotated[
        str, typer.Option(metavar="LIST", help="Seeds: 0,1,2 or 0-7; those of a program are trained together.")
    ] = "0",
    steps: Annotated[int, typer.Option(min=1, metavar="N", help="The most training steps.")] = 20_000,
    batch: Annotated[int, typer.Option(min=1, metavar="N", help="Interventions per step.")] = 512,
    start: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            autocompletion=lambda: ["random", "compiled"],
            help="The first weights: random, or compiled (rotated into the width).",
        ),
    ] = "random",
    hint: Annotated[
        float,
        typer.Option(
            min=0, metavar="X", help="The weight of hints; 5 for programs of several layers (docs/natural.md)."
        ),
    ] = 1.0,
    spare: Annotated[
        float,
        typer.Option(min=0, metavar="X", help="1: keep heads and MLPs quiet that the compiled model does not have."),
    ] = 0.0,
    name: Name = None,
    vocab: Vocab = None,
    max_len: MaxLen = None,
    max_memory: MaxMemory = None,
    causal: Causal = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=1, metavar="N", help="Programs trained side by side, in processes.")
    ] = 1,
    use_ray: Annotated[
        bool,
        typer.Option("--ray", help="Distribute programs with Ray (RAY_ADDRESS, else a local Ray); a GPU for each."),
    ] = False,
) -> None:
    """Train twins of programs.

    A twin is a standard transformer that computes a program by the compiled model's mechanism. It learns to answer like
    the compiled model when heads, MLPs and single edges are patched. Training ends when every seed is admitted
    (measured to agree at every node and edge), or after --steps. Some programs of the library have a larger vocabulary
    than in `tracr list`, because twins need it; --vocab and --max-len set both. A table shows the progress and what is
    not admitted. The same command run again skips finished twins and continues a stopped training. Needs JAX and Optax
    (extra `jax`).

    Example: tracr twin hist --seeds 0-3 -o hist.twins

    Example: tracr twin --all --seeds 0-3 -o twins
    """
    from tracr.cli.twin_table import TwinTable

    choice = GivenOptions(vocab, max_len, causal=causal, max_memory=max_memory)
    names = _names(programs or [], everything)
    models, refused = _teachers(names, name, choice)
    from tracr.natural.many import (
        TwinTask,
        train_many,
    )  # needs JAX: wrong programs are told first

    several = len(names) > 1
    settings: dict[str, int | float | str] = {"width": width, "d_head": d_head, "d_mlp": d_mlp}
    settings |= {"steps": steps, "batch": batch, "start": start, "hint": hint, "spare": spare}
    chosen = tuple(numbers(seeds, "--seeds"))
    tasks = [
        TwinTask(one, model, chosen, (output / _folder(one) if several else output).resolve(), settings)
        for one, model in models.items()
    ]
    ended: list[ProgramTwins] = []
    with (
        _workers(jobs, use_ray) as workers,
        TwinTable({task.name: task.model.n_layers for task in tasks}, len(chosen)) as table,
    ):
        for one, problem in refused.items():
            table.refused(one, problem)
        for made in train_many(tasks, workers=workers, progress=table.progress):
            table.ended(made)
            ended.append(made)
    _summary(ended, {**refused, **{made.task.name: made.problem for made in ended if made.problem}}, output)


def _names(programs: Sequence[str], everything: bool) -> list[str]:
    """The programs to train."""
    from tracr import zoo

    if everything and programs:
        raise typer.BadParameter(f"--all names all programs; leave it out, or {', '.join(programs)}")
    if everything:
        return zoo.names("library")
    if not programs:
        raise typer.BadParameter("which program? name one or more, such as hist, or add --all")
    return list(dict.fromkeys(programs))


def _teachers(
    names: Sequence[str], name: str | None, choice: GivenOptions
) -> tuple[dict[str, CompiledModel], dict[str, str]]:
    """The models, and the reasons why others are refused; a single program that is refused is an error."""
    models: dict[str, CompiledModel] = {}
    refused: dict[str, str] = {}
    for one in names:
        try:
            found, model = _teacher(one, name, choice)
        except TracrError as error:
            if len(names) == 1:
                raise
            refused[one] = f"refused: {error}"
            continue
        if _folder(found) in map(_folder, models):
            raise typer.BadParameter(f"two of the programs would be written to the folder {_folder(found)}")
        models[found] = model
    return models, refused


def _teacher(program: str, name: str | None, choice: GivenOptions) -> tuple[str, CompiledModel]:
    """The name and the model of a program; one of the zoo has the size of `case_of`, unless another is given."""
    from tracr import zoo
    from tracr.natural.cases import case_of
    from tracr.zoo.spec import read_spec

    if program.startswith(ZOO):
        program, level = read_spec(program)
        if level not in (None, 1):
            raise typer.BadParameter(f"the models that twins learn from have level 1; write {ZOO}{program}")
    if program in zoo.ENTRIES and name is None:
        case = case_of(program, None if choice.vocab is None else read_vocabulary(choice.vocab), choice.max_len)
        found = Found(program, program=case.program, vocab=case.vocab, max_seq_len=case.max_seq_len)
        choice = replace(choice, level=1, causal=choice.causal or case.causal)
    else:
        found = find(program, name, choice)
        choice = replace(choice, level=None if found.model is not None else 1)
    return found.name, cast("CompiledModel", compiled(found, choice))  # any other model is refused as a teacher


def _folder(name: str) -> str:
    """The folder of a program among several.

    >>> _folder("../my programs")
    '..-my-programs'
    """
    return re.sub(r"[^\w.+-]+", "-", name)


def _workers(jobs: int, use_ray: bool) -> AbstractContextManager[Workers]:
    from tracr.workers import over_processes, over_ray

    return over_ray(gpus=True) if use_ray else over_processes(jobs)


def _summary(ended: Sequence[ProgramTwins], refused: dict[str, str], output: Path) -> None:
    """Print what was made; raise an error if programs were refused or failed."""
    made = [one for one in ended if not one.problem]
    twins: list[Any] = [twin for one in made for twin in one.twins]
    admitted = sum(twin.admitted for twin in twins)
    whole = sum(one.admitted == len(one.twins) for one in made)
    typer.echo(
        f"{output}: {admitted:,} of {len(twins):,} twins admitted; every seed of {whole} of {len(made)} "
        f"program{'s' if len(made) != 1 else ''}"
    )
    if len(ended) == 1:
        for one in twins:
            typer.echo(f"{output / ended[0].task.place(one.seed).name}: {one}")
            for site in one.admission.missed:
                typer.echo(f"  {site}")
    for name, problem in refused.items():
        typer.echo(f"{name}: {problem}")
    if refused:
        count = f"{len(refused)} program{'s have' if len(refused) != 1 else ' has'}"
        raise TracrError(f"{count} no twins: {', '.join(refused)}", hint="the reasons are above")
