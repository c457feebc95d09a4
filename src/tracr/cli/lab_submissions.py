"""`tracr lab check` and `tracr lab score`: files with circuits, compared with the truth of a subject."""

from __future__ import annotations

from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from tracr.cli.options import Json, Level, choosing, print_json
from tracr.errors import InputError

if TYPE_CHECKING:
    from tracr.ground_truth.scoring import EdgeTruth
    from tracr.lab.formats import ScoredSubmission

__all__ = ["check_submission", "score_submission"]


class ScoredGranularity(Enum):
    """The granularities at which files are scored."""

    qkv = "qkv"
    head = "head"
    component = "component"


class TruthKind(Enum):
    """What a found edge is compared with."""

    pairs = "pairs"
    wiring = "wiring"


class FoundBy(Enum):
    """The fields of an EAP circuit that say which edges were found."""

    score = "score"
    in_graph = "in_graph"


class Ablated(Enum):
    """The kinds of ablation."""

    resample = "resample"
    zero = "zero"
    mean = "mean"


File = Annotated[Path, typer.Argument(metavar="FILE", help="A JSON file with a circuit.", show_default=False)]
SubjectName = Annotated[
    str,
    typer.Option(
        "--subject", metavar="NAME", help="A case (`tracr zoo`), or the folder of a model.", show_default=False
    ),
]
AtGranularity = Annotated[
    ScoredGranularity,
    typer.Option(**choosing(ScoredGranularity), help="What the edges connect."),
]


def check_submission(
    file: File,
    subject: SubjectName,
    level: Level = None,
    granularity: AtGranularity = ScoredGranularity.qkv,
    as_json: Json = False,
) -> None:
    """Say what is wrong with FILE, a circuit found in a subject.

    Exits with status 1 if the file cannot be scored. FILE is an EAP or MIB circuit, or JSON that maps edges to scores
    (docs/lab-formats.md).

    Example: tracr lab check circuit.json --subject hist
    """
    from tracr.lab.formats import check, sizes_of

    model, _, _ = _subject(subject, level)
    found = check(file, model.ground_truth, sizes_of(model), granularity=cast("Any", granularity.value))
    if as_json:
        print_json({"valid": found.valid, "problems": list(found.problems), "notes": list(found.notes)})
    else:
        for problem in found.problems:
            typer.echo(f"problem: {problem}")
        for note in found.notes:
            typer.echo(f"note: {note}")
        typer.echo(
            f"{file}: {_counted(found.problems)}" if found.problems else f"{file}: {found.circuit}, can be scored"
        )
    if not found.valid:
        raise typer.Exit(1)


def _counted(problems: tuple[str, ...]) -> str:
    return f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"


def score_submission(
    file: File,
    subject: SubjectName,
    level: Level = None,
    granularity: AtGranularity = ScoredGranularity.qkv,
    truth: Annotated[
        TruthKind | None,
        typer.Option(
            **choosing(TruthKind),
            help="Edges needed on pairs of inputs (the default, if there are pairs), or all edges of the model.",
            show_default=False,
        ),
    ] = None,
    pairs: Annotated[int, typer.Option(min=1, metavar="N", help="The number of pairs, of a case.")] = 64,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The seed of the pairs, of a case.")] = 0,
    ablation: Annotated[Ablated, typer.Option(**choosing(Ablated), help="How edges are ablated.")] = Ablated.resample,
    by: Annotated[
        FoundBy | None,
        typer.Option(
            **choosing(FoundBy),
            help="Rank edges by score, or take the set of edges in the graph. By default the scores, if there are any.",
            show_default=False,
        ),
    ] = None,
    absolute: Annotated[
        bool | None,
        typer.Option(
            "--absolute/--signed",
            help="Rank by absolute value or not; by default as the tool does that writes the format.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Score FILE, a circuit found in a subject, against the truth.

    Example: tracr lab score circuit.json --subject hist --granularity head
    """
    from tracr.cli.screen import waiting
    from tracr.lab.formats import score, sizes_of

    with waiting("computing the truth"):
        model, own, case = _subject(subject, level)
        compared, about = _truth(model, own, case, truth, pairs, seed, ablation, granularity)
        found = score(
            file,
            compared,
            sizes_of(model),
            granularity=cast("Any", granularity.value),
            by=cast("Any", by and by.value),
            absolute=absolute,
        )
    if as_json:
        print_json({"file": str(file), "subject": subject, "truth": about, **_scores_json(found)})
    else:
        _show(found, subject, about)


def _subject(name: str, level: int | None) -> tuple[Any, Any, Any]:
    """The model that `--subject` names, its own pairs if it is a subject's folder, and its case if it is one's name."""
    from tracr import lab, load
    from tracr.lab.stored_subject import is_subject

    folder = Path(name)
    if folder.is_dir():
        if level is not None:
            raise typer.BadParameter(f"{name} is compiled already; leave out --level")
        stored = lab.read_subject(folder) if is_subject(folder) else None
        model: Any = stored.model if stored else load(folder)
        return getattr(model, "compiled", model), stored, None  # a compressed model has the truth of the compiled one
    if folder.name != name:
        raise InputError(f"there is no folder {name}", hint="name a case (`tracr zoo`) or the folder of a model")
    case = lab.case(name.removeprefix("zoo:"))
    return case.model if level is None else case.entry.load(level), None, case


def _truth(
    model: Any,
    stored: Any,
    case: Any,
    kind: TruthKind | None,
    count: int,
    seed: int,
    ablation: Ablated,
    granularity: ScoredGranularity,
) -> tuple[EdgeTruth, str]:
    """The truth, and what it is in a few words."""
    pairs = stored.pairs if stored else case.pairs(count, seed) if case else None
    if kind is TruthKind.wiring or (kind is None and pairs is None):
        return model.ground_truth, "the edges of the model"
    if pairs is None:
        raise InputError(
            "the folder has no pairs", hint="use --truth wiring, or write the folder with lab.write_subject"
        )
    found = model.ground_truth.minimal(pairs=pairs, ablation=ablation.value, granularity=granularity.value)
    return found, f"edges needed alone on {len(found.pairs)} pairs, {ablation.value} ablation"


def _scores_json(found: ScoredSubmission) -> dict[str, Any]:
    scores = asdict(found.scores)
    edges = {name: ["->".join(edge) for edge in scores.pop(name)] for name in ("missed", "extra")}
    how = {"by": found.by, "absolute": found.absolute, "granularity": found.granularity, "left_out": found.padding}
    return {**how, **scores, **edges}


def _show(found: ScoredSubmission, subject: str, about: str) -> None:
    from rich.text import Text

    from tracr.cli.screen import Screen, plain_table

    row = _scores_json(found)
    ranked = "in_graph" if found.by == "in_graph" else f"score{', absolute' if found.absolute else ''}"
    table = plain_table("", "")
    table.show_header = False
    table.add_row("subject", Text(subject))
    table.add_row("truth", f"{about}, granularity {found.granularity}")
    table.add_row("found by", ranked)
    for name in ("auroc", "average_precision", "precision_at_size"):
        table.add_row(name.replace("_", " "), "undefined" if row[name] is None else f"{row[name]:.4f}")
    exact = {None: "undefined", True: "yes", False: "no"}[found.scores.exact]
    table.add_row("exact", exact)
    table.add_row("edges", f"{row['size']} needed, {row['inert']} inert, {row['left_out']} left out")
    for name in ("missed", "extra"):
        table.add_row(name, Text("\n".join(row[name]) or "none"))
    Screen().print(table)
