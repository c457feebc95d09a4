"""`tracr twin`: trains natural models of programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracr.cli.options import Causal, MaxLen, MaxMemory, Name, Program, Vocab, numbers
from tracr.cli.sources import GivenOptions, compiled, find

if TYPE_CHECKING:
    from tracr.natural import Progress

__all__ = ["twin"]


def twin(
    program: Program,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="The folder to write: a subfolder per seed.")
    ],
    width: Annotated[int, typer.Option(min=1, metavar="N", help="The width of the residual stream.")] = 64,
    d_head: Annotated[int, typer.Option(min=1, metavar="N", help="The width of a head.")] = 16,
    d_mlp: Annotated[int, typer.Option(min=1, metavar="N", help="The neurons of each MLP.")] = 128,
    seeds: Annotated[str, typer.Option(metavar="LIST", help="Seeds: 0,1,2 or 0-7, trained together.")] = "0",
    steps: Annotated[int, typer.Option(min=1, metavar="N", help="The most training steps.")] = 20_000,
    batch: Annotated[int, typer.Option(min=1, metavar="N", help="Interventions per step.")] = 512,
    name: Name = None,
    vocab: Vocab = None,
    max_len: MaxLen = None,
    max_memory: MaxMemory = None,
    causal: Causal = None,
) -> None:
    """Train twins of PROGRAM.

    A twin is a standard transformer that computes PROGRAM by the compiled model's mechanism. It learns to answer like
    the compiled model when heads, MLPs and single edges are patched. Training ends when every seed is admitted
    (measured to agree at every node and edge), or after --steps. The same command run again continues a stopped
    training. Needs JAX and Optax (extra `jax`).

    Example: tracr twin hist --seeds 0-3 -o hist.twins
    """
    from tqdm import tqdm

    from tracr.natural import twins

    found = find(program, name, GivenOptions(vocab, max_len, causal=causal, max_memory=max_memory))
    model = compiled(
        found,
        GivenOptions(vocab, max_len, None if found.model is not None else 1, causal=causal, max_memory=max_memory),
    )
    with tqdm(total=steps, unit="step", leave=False, disable=None) as bar:

        def show(progress: Progress) -> None:
            bar.set_postfix(worst=f"{min(progress.worst):.3f}", admitted=len(progress.admitted), refresh=False)
            bar.update(progress.done - bar.n)

        made = twins(
            model,
            numbers(seeds, "--seeds"),
            width=width,
            d_head=d_head,
            d_mlp=d_mlp,
            steps=steps,
            batch=batch,
            checkpoint=output / "training",
            progress=show,
        )
    for one in made:
        one.save(output / f"seed{one.seed}")
        typer.echo(f"{output / f'seed{one.seed}'}: {one}")
        for site in one.admission.missed:
            typer.echo(f"  {site}")
