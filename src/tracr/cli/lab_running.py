"""`tracr lab cases`, `methods`, `realisations`, `dials` and `run`: methods on models whose circuit is known."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracr.cli.completion import among, case_words, listed
from tracr.cli.options import Json, numbers, print_json
from tracr.errors import TracrError

if TYPE_CHECKING:
    from tracr.workers import Workers

__all__ = ["list_cases", "list_dials", "list_methods", "list_realisations", "run_methods"]


def list_cases(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CASES",
            autocompletion=case_words,
            help="Names, tags, core, all, private:SEED:COUNT.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List cases: all of them, or those chosen by name, by a tag of the zoo, or by `core`.

    Edges are the pairs (writer, reader input) that the compiled model allows; methods must find the needed ones.
    `core` are the cases with 23 to 110 edges. `private:7:8` draws 8 random programs with the seed 7.

    Example: tracr lab cases ngrams
    """
    from tracr.cli.lab_screen import show_cases
    from tracr.cli.screen import waiting
    from tracr.lab import select_cases

    with waiting("compiling"):
        found = [_described(case) for case in select_cases(words or ["all"])]
    print_json(found) if as_json else show_cases(found)


def _described(case: Any) -> dict[str, Any]:
    from tracr.lab.selecting import CORE

    return {
        "name": case.name,
        "description": case.description,
        "length": case.length,
        "tokens": len(case.vocab),
        "edges": len(case.model.ground_truth.candidates()),
        "tags": [*case.entry.tags, *(["core"] if case.name in CORE else [])],
    }


def list_methods(as_json: Json = False) -> None:
    """List the methods with their settings; --methods takes NAME or NAME:setting=value.

    A method answers one track, which `tracr lab run --track` names. A method of your own is FILE.py:FUNCTION, a
    function (subject, data) that returns a number for each edge; in the track variables a FoundVariable for each
    question; in the track features a FoundDictionary; docs/lab-answers.md has the other tracks.
    """
    from tracr.cli.lab_screen import show_methods
    from tracr.lab.finding import ALL_METHODS
    from tracr.lab.methods import ALIASES

    found = [
        {
            "name": name,
            "track": one.track,
            "also": [alias for alias, meant in ALIASES.items() if meant == name],
            "version": str(one.version),
            "settings": dict(one.settings),
            "needs": list(one.needs),
        }
        for name, one in ALL_METHODS.items()
    ]
    print_json(found) if as_json else show_methods(found)


def list_realisations(as_json: Json = False) -> None:
    """List the realisations with their dials; --realisations takes NAME or NAME:dial=value.

    All realisations have the dials `level` (0, 1 or 2) and `gap` of the compiled model that they are made from.
    """
    from tracr.cli.lab_screen import show_realisations
    from tracr.lab import REALISATIONS

    found = [{"name": one.name, "says": one.says, "dials": dict(one.dials)} for one in REALISATIONS.values()]
    print_json(found) if as_json else show_realisations(found)


def list_dials(as_json: Json = False) -> None:
    """List the dials with the realisations that each stands for; --dials takes their names.

    Other values are written as realisations: --realisations compiled:gap=32,compiled:gap=128.
    """
    from tracr.cli.lab_screen import show_dials
    from tracr.lab import DIALS

    found = [{"name": one.name, "says": one.says, "realisations": list(one.realisations)} for one in DIALS.values()]
    print_json(found) if as_json else show_dials(found)


def run_methods(
    methods: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            autocompletion=listed(among("tracr.lab.methods.registry", "METHODS")),
            help="Methods, separated by commas (`tracr lab methods`), or FILE.py:FUNCTION.",
        ),
    ],
    cases: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            autocompletion=listed(case_words),
            help="Names of cases, tags, core, all, private:SEED:COUNT (`tracr lab cases`).",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="The folder of the results.")],
    realisations: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            autocompletion=listed(among("tracr.lab.realising", "REALISATIONS")),
            help="Realisations, with dials: compiled:gap=64 (`tracr lab realisations`).",
        ),
    ] = "compiled",
    dials: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            autocompletion=listed(among("tracr.lab.dials", "DIALS")),
            help="Dials, each for a few more realisations: gap,rotation (`tracr lab dials`).",
        ),
    ] = "",
    seeds: Annotated[
        str, typer.Option(metavar="LIST", help="Seeds of realisations, pairs, methods: 0,1 or 0-3.")
    ] = "0",
    pairs: Annotated[int, typer.Option(min=1, metavar="N", help="Pairs of inputs for each case.")] = 64,
    pairs_seed: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="The same pairs for all seeds, drawn with this one.", show_default=False),
    ] = None,
    track: Annotated[
        str,
        typer.Option(
            metavar="TRACK",
            autocompletion=among("tracr.lab.track", "TRACKS"),
            help="What methods are asked for: edges, variables, features, explanations, predictions or replacements.",
        ),
    ] = "edges",
    ablation: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            autocompletion=lambda: ["resample", "zero", "mean"],
            help="The ablation of the truth: resample, zero or mean.",
        ),
    ] = "resample",
    granularity: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            autocompletion=among("tracr.ground_truth.data", "GRANULARITIES"),
            help="The granularity of truth and scores: qkv, head or component.",
        ),
    ] = "qkv",
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="The folder of subjects made before; by default TRACR_CACHE, else FOLDER/subjects.",
            show_default=False,
        ),
    ] = None,
    twins: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="A folder of trained twins, FOLDER/NAME-SEED; without it and TRACR_TWINS, twins are trained.",
            show_default=False,
        ),
    ] = None,
    subset: Annotated[
        str | None,
        typer.Option(
            metavar="LIST", help="Methods that run on some of the cases, drawn at random: acdc=20.", show_default=False
        ),
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Repeat failed rows.")] = False,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, metavar="N", help="The number of processes.")] = 1,
    use_ray: Annotated[
        bool, typer.Option("--ray", help="Distribute the work with Ray (RAY_ADDRESS, else a local Ray).")
    ] = False,
) -> None:
    """Run methods on realisations of cases, and write a table of scores.

    Every method runs on every realisation of every case with every seed; each is a row of FOLDER/results.parquet. The
    same command run again does only the missing rows. A failure is a row with its error.

    The track edges asks which edges the answers need; variables, where each variable of the program is; features, which
    features the stream holds (of cases such as features:density=0.02); explanations, what each component does;
    predictions, what an intervention changes; replacements, which compiled part can take a component's place.

    Example: tracr lab run --methods eap,eap-ig --cases core --dials gap,rotation --seeds 0-3 -o results
    """
    from tqdm import tqdm

    from tracr.lab import Conditions, run
    from tracr.workers import over_processes, over_ray

    crew: AbstractContextManager[Workers] = over_ray() if use_ray else over_processes(jobs)
    with crew as workers, tqdm(unit="row", leave=False, disable=None) as bar:

        def progress(done: int, total: int, failed: int) -> None:
            if bar.total is None:
                bar.reset(total)
                bar.initial = bar.n = done
            bar.set_postfix(failed=failed, refresh=False)
            bar.update(done - bar.n)

        made = run(
            _listed(methods),
            _listed(cases),
            _listed(realisations),
            numbers(seeds, "--seeds"),
            dials=_listed(dials),
            folder=output,
            conditions=Conditions(pairs, pairs_seed, ablation, granularity, track),  # type: ignore[arg-type]
            cache=cache,
            twins=twins,
            subset=_counts(subset or ""),
            workers=workers,
            retry=retry,
            progress=progress,
        )
    typer.echo(f"{made.results}: {made.made:,} new rows, {made.found:,} found, {made.failed:,} of all failed")
    if made.failed:
        raise TracrError(
            f"{made.failed:,} rows failed",
            hint='the columns "status" and "error" of the results say which and why; --retry repeats them',
        )


def _counts(words: str) -> dict[str, int]:
    """Numbers for names, such as acdc=20,edge-probing=10."""
    found = dict(word.partition("=")[::2] for word in _listed(words))
    if not all(number.isdecimal() for number in found.values()):
        raise typer.BadParameter(f"--subset is METHOD=NUMBER, separated by commas, not {words!r}")
    return {name: int(number) for name, number in found.items()}


def _listed(words: str) -> list[str]:
    return [word.strip() for word in words.split(",") if word.strip()]
