"""`tracr certify`: runs the checker on a model, or probes a backend for what an arithmetic assumes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tracr.cli.compiling import Overwrite
from tracr.cli.completion import among, program_names
from tracr.cli.options import (
    Causal,
    Dtype,
    Json,
    Level,
    MaxLen,
    MaxMemory,
    Name,
    Vocab,
    With,
    Without,
    print_json,
)
from tracr.cli.sources import IN_CHECKPOINT, Found, GivenOptions, compiled, find, switches
from tracr.errors import Unavailable
from tracr.spelling import did_you_mean

__all__ = ["certify"]


def _arithmetic(name: str | None) -> str | None:
    from tracr_check import ARITHMETICS

    if name is not None and name not in ARITHMETICS:
        meant = did_you_mean(name, [*ARITHMETICS], f"there are {', '.join(ARITHMETICS)}")
        raise typer.BadParameter(f"there is no arithmetic {name}; {meant}")
    return name


def _backend(name: str | None) -> str | None:
    from tracr.certificate.backends import BACKENDS

    if name is not None and name not in BACKENDS:
        meant = did_you_mean(name, [*BACKENDS], f"there are {', '.join(BACKENDS)}")
        raise typer.BadParameter(f"there is no backend {name}; {meant}")
    return name


def certify(
    program: Annotated[
        str | None,
        typer.Argument(
            metavar="PROGRAM",
            help="The program or saved model, as for `compile`.",
            autocompletion=program_names,
            show_default=False,
        ),
    ] = None,
    name: Name = None,
    vocab: Vocab = None,
    max_len: MaxLen = None,
    max_memory: MaxMemory = None,
    level: Level = None,
    switched_on: With = None,
    switched_off: Without = None,
    causal: Causal = None,
    dtype: Dtype = None,
    arithmetic: Annotated[
        str | None,
        typer.Option(
            callback=_arithmetic,
            autocompletion=among("tracr_check", "ARITHMETICS"),
            metavar="NAME",
            help="What to assume of the backend: float64, float32, float32-leak, float32-fused, float16 or bfloat16; "
            "by default the format that the model is compiled for.",
            show_default=False,
        ),
    ] = None,
    unpadded: Annotated[bool, typer.Option("--unpadded", help="Prove it only for inputs without padding.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Save the model and its certificate in this folder.", show_default=False),
    ] = None,
    overwrite: Overwrite = False,
    probe: Annotated[
        str | None,
        typer.Option(
            callback=_backend,
            autocompletion=among("tracr.certificate.backends", "BACKENDS"),
            metavar="BACKEND",
            help="Instead of a model, probe a backend: numpy, kernel, torch, torch-sdpa, jax or onnxruntime.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Prove that the model of PROGRAM computes it on every input.

    The independent checker `tracr_check` reads the weights and the tables of the program. The exit status is 1 if it
    finds no proof. With --probe it is 1 if the backend, run in the format of --arithmetic (float32 if not given),
    violates --arithmetic.

    Example: tracr certify sort --level 2
    """
    if (program is None) == (probe is None):
        raise typer.BadParameter("name either a PROGRAM or, with --probe, a backend")
    choice = GivenOptions(
        vocab, max_len, level, causal, passes=switches(switched_on, switched_off), max_memory=max_memory, dtype=dtype
    )
    if probe is not None:
        others = {"--name": name, "--unpadded": unpadded, "--output": output, "--overwrite": overwrite}
        if given := [*choice.given, *(option for option, value in others.items() if value)]:
            raise typer.BadParameter(f"a probe is about no model; leave out {', '.join(given)}")
        _probe(probe, arithmetic or "float32", as_json)
        return
    if overwrite and output is None:
        raise typer.BadParameter("--overwrite replaces the folder of --output; name one")
    assert program is not None
    _certify(program, find(program, name, choice), choice, arithmetic, not unpadded, (output, overwrite), as_json)


def _certify(
    program: str,
    found: Found,
    choice: GivenOptions,
    arithmetic: str | None,
    padded: bool,
    target: tuple[Path | None, bool],
    as_json: bool,
) -> None:
    """Compile, check and print; exit with status 1 unless accepted."""
    from tracr.cli.screen import waiting
    from tracr.model.designed import DesignedModel

    with waiting(f"compiling {found.name}"):
        model = compiled(found, choice)
    if not isinstance(model, DesignedModel):
        raise Unavailable(
            f"{found.name} is not a compiled model, and the checker has rules for those only",
            hint=f"`tracr verify {program}` compares it with its program",
        )
    with waiting(f"checking {found.name}"):
        certificate = model.certify(arithmetic or model.options.dtype, padded)
    output, overwrite = target
    if output is not None:
        certificate.save(output, overwrite=overwrite)
    if as_json:
        print_json({"program": found.name, **certificate.as_json(), **({"saved": str(output)} if output else {})})
    else:
        typer.echo(f"{found.name}: {certificate}")
        if output is not None:
            typer.echo(f"saved in {output}")
    if found.description == IN_CHECKPOINT:
        typer.echo(f"the verdict is about the saved model; `tracr-check {program}` checks the GPT-2", err=True)
    if not certificate.accepted:
        raise typer.Exit(1)


def _probe(backend: str, arithmetic: str, as_json: bool) -> None:
    """Probe a backend and print what it does; exit with status 1 if it violates the arithmetic."""
    from tracr.certificate.arithmetic_probe import probe

    found = probe(backend, dtype=arithmetic.partition("-")[0])
    violated = found.violations(arithmetic)
    if as_json:
        print_json({**found.as_json(), "arithmetic": arithmetic, "violations": violated})
    else:
        typer.echo(str(found))
        for line in violated or [f"no violation of {arithmetic} was found"]:
            typer.echo(f"  {line}")
    if violated:
        raise typer.Exit(1)
