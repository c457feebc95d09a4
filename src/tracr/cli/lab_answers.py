"""`tracr lab explanations`, `predictions` and `replacements`: forms and questions out, answers in, scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tracr.cli.options import Json, print_json

__all__ = ["explain_components", "predict_answers", "replace_components"]

SubjectName = Annotated[
    str | None,
    typer.Option("--subject", metavar="CASE", help="A case (`tracr lab cases`).", show_default=False),
]
Realised = Annotated[
    str,
    typer.Option(metavar="NAME", help="A realisation of the case, with dials: rotated, compiled:level=2."),
]
SubjectSeed = Annotated[int, typer.Option(min=0, metavar="N", help="The seed of the realisation.")]
Twins = Annotated[Path | None, typer.Option(metavar="FOLDER", help="A folder of trained twins.", show_default=False)]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file.", show_default=False)
]


def explain_components(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Roles (FILE.json), or a program (FILE.rasp).", show_default=False),
    ] = None,
    subject: SubjectName = None,
    realisation: Realised = "compiled",
    subject_seed: SubjectSeed = 0,
    twins: Twins = None,
    output: Output = None,
    budget: Annotated[
        int, typer.Option(min=1, metavar="N", help="Inputs on which a program is compared, if there are more.")
    ] = 20_000,
    as_json: Json = False,
) -> None:
    """Score explanations of the components of a subject: roles, or a program. Without FILE, write the form to fill in.

    Roles are scored against the truth, a program by its answers and by its counts, copies and means. Texts are not
    read, and nothing in FILE is executed as Python (docs/lab-answers.md).

    Example: tracr lab explanations roles.json --subject hist
    """
    from tracr.cli.screen import waiting
    from tracr.lab import explanation_form, explanations, score_program

    if subject is None:
        raise typer.BadParameter("name a case with --subject")
    with waiting("making the subject"):
        one = _subject(subject, realisation, subject_seed, twins)
    if file is None:
        _written(explanation_form(one), output)
    elif file.suffix == ".rasp":
        _show_program(score_program(one.case, file, budget=budget).as_json(), as_json)
    else:
        _show_roles(explanations(one, file).as_json(), as_json)


def predict_answers(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A JSON file with answers.", show_default=False)
    ] = None,
    subject: SubjectName = None,
    realisation: Realised = "compiled",
    subject_seed: SubjectSeed = 0,
    twins: Twins = None,
    count: Annotated[int, typer.Option(min=1, metavar="N", help="The number of questions.")] = 64,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The seed of the questions.")] = 0,
    kinds: Annotated[str, typer.Option(metavar="LIST", help="set, patch, or both.")] = "set,patch",
    baseline: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Write the answers of program or no_change.", show_default=False),
    ] = None,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Write questions about interventions on a subject, or score the answers in FILE.

    A question sets a variable of the program, or patches an edge; answers count where they change, and overall. FILE
    says which subject and which questions it is about.

    Example: tracr lab predictions --subject hist2 -o questions.json; tracr lab predictions answers.json
    """
    from tracr.cli.screen import waiting
    from tracr.lab import predictions, read_predictions

    if file is not None:
        with waiting("drawing the questions"):
            asked = read_predictions(file, twins=twins)
            rows = {"answers": asked.score(file)}
            for name in ("program", "no_change"):
                rows[name.replace("_", " ")] = asked.score(asked.answers_json(asked.baseline(name)))
        _show_predictions({name: scores.as_json() for name, scores in rows.items()}, as_json)
        return
    if subject is None:
        raise typer.BadParameter("name a case with --subject, or a FILE with answers")
    with waiting("drawing the questions"):
        one = _subject(subject, realisation, subject_seed, twins)
        asked = predictions(one, count=count, seed=seed, kinds=[word for word in kinds.split(",") if word])
        if baseline is not None and baseline not in ("program", "no_change"):
            raise typer.BadParameter(
                "--baseline is program or no_change; for a circuit, use Python (docs/lab-answers.md)"
            )
        content = asked.as_json() if baseline is None else asked.answers_json(asked.baseline(baseline))
    _written(content, output)


def replace_components(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A JSON file with claims.", show_default=False)
    ] = None,
    subject: SubjectName = None,
    realisation: Realised = "compiled",
    subject_seed: SubjectSeed = 0,
    twins: Twins = None,
    inputs: Annotated[int, typer.Option(min=8, metavar="N", help="The number of inputs.")] = 1_500,
    refine: Annotated[int, typer.Option(min=0, metavar="N", help="Steps of refining the maps by gradient.")] = 0,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Score claims "this component computes that part". Without FILE, write the form to fill in.

    A part is a component of a program of the zoo, such as "hist2 blocks.0.attn.0". It is put in the component's place,
    and scored by the accuracy that it recovers, beside controls (docs/replacing.md). Needs the extra torch.

    Example: tracr lab replacements claims.json --subject hist
    """
    from tracr.cli.screen import waiting
    from tracr.lab import replacement_form, replacements

    if subject is None:
        raise typer.BadParameter("name a case with --subject")
    with waiting("making the subject"):
        one = _subject(subject, realisation, subject_seed, twins)
    if file is None:
        _written(replacement_form(one), output)
        return
    with waiting("replacing components"):
        found = replacements(one, file, inputs=inputs, refine=refine).as_json()
    _show_replacements(found, as_json)


def _subject(case: str, realisation: str, seed: int, twins: Path | None) -> Any:
    from tracr import lab
    from tracr.lab.choices import read_configured

    chosen = read_configured(realisation)
    return lab.subject(case.removeprefix("zoo:"), chosen.name, seed=seed, twins=twins, **dict(chosen.settings))


def _written(content: dict[str, Any], output: Path | None) -> None:
    from tracr.writing import write_file

    if output is None:
        print_json(content)
    else:
        write_file(output, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())
        typer.echo(f"wrote {output}")


def _show_roles(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        return print_json(found)
    rows = [(role, one["true"], one["answered"], one["right"]) for role, one in found["by_role"].items()]
    typer.echo(
        f"accuracy {found['accuracy']:.3f} (chance {found['chance']:.3f}), all roles right in {found['exact']:.3f} of "
        f"{found['components']} components, {found['answered']} answered"
    )
    _table(("role", "components", "answers", "right"), rows)
    return None


def _show_program(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        return print_json(found)
    scope = "all" if found["exhaustive"] else "a sample of"
    typer.echo(f"agreement {found['agreement']:.3f} on {scope} {found['inputs']:,} inputs")
    if found["counterexample"] is not None:
        tokens, wanted, got = found["counterexample"]
        typer.echo(f"on {tokens} the answer is {wanted}, not {got if got is not None else 'an error'}")
    typer.echo(f"structure {found['structure']:.3f}")
    for name in ("missing", "extra"):
        for line in found[name]:
            typer.echo(f"  {name}: {line}")
    return None


def _show_predictions(found: dict[str, dict[str, Any]], as_json: bool) -> None:
    if as_json:
        return print_json(found)
    rows = []
    for name, scores in found.items():
        for kind, one in {"all": scores, **scores["by_kind"]}.items():
            asked = (one["questions"], one["mattering"])
            rows.append((name, kind, _share(one["where_it_matters"]), _share(one["overall"]), *asked))
    _table(("", "kind", "where it matters", "overall", "questions", "that matter"), rows)
    return None


def _show_replacements(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        return print_json(found)
    means = ", ".join(f"{name} {found[name]:.3f}" for name in ("recovered", "counts", "same"))
    typer.echo(f"{means}, over {len(found['by_component'])} components")
    rows = [
        (
            name,
            one["claimed"] or "-",
            f"{one['recovered']:.3f}",
            *("yes" if one[key] else "no" for key in ("counts", "same")),
        )
        for name, one in found["by_component"].items()
    ]
    _table(("component", "claimed", "recovered", "counts", "same"), rows)
    return None


def _share(number: float | None) -> str:
    return "undefined" if number is None else f"{number:.3f}"


def _table(titles: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    from tracr.cli.screen import Screen, plain_table

    table = plain_table(*titles)
    for row in rows:
        table.add_row(*map(str, row))
    Screen().print(table)
