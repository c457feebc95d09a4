"""`tracr lab`: the commands of the laboratory."""

from __future__ import annotations

import typer

from tracr.cli.lab_submissions import check_submission, score_submission

__all__ = ["lab"]

lab = typer.Typer(help="The laboratory: circuit discovery scored against known circuits.", no_args_is_help=True)
lab.command("check")(check_submission)
lab.command("score")(score_submission)
