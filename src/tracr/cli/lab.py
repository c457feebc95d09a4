"""`tracr lab`: the commands of the laboratory."""

from __future__ import annotations

import typer

from tracr.cli.lab_answers import explain_components, predict_answers, replace_components
from tracr.cli.lab_reporting import report_scores
from tracr.cli.lab_running import list_cases, list_dials, list_methods, list_realisations, run_methods
from tracr.cli.lab_submissions import check_submission, score_submission

__all__ = ["lab"]

lab = typer.Typer(
    help="Score methods that look for circuits, on models whose circuit is known.",
    epilog=(
        "Start with: tracr lab run --methods exact,random --cases hist,ngrams --realisations compiled,rotated "
        "-o results; then: tracr lab report results -o report.html"
    ),
    no_args_is_help=True,
    rich_markup_mode=None,
)
lab.command("cases")(list_cases)
lab.command("methods")(list_methods)
lab.command("realisations")(list_realisations)
lab.command("dials")(list_dials)
lab.command("run")(run_methods)
lab.command("report")(report_scores)
lab.command("check")(check_submission)
lab.command("score")(score_submission)
lab.command("explanations")(explain_components)
lab.command("predictions")(predict_answers)
lab.command("replacements")(replace_components)
