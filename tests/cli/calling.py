"""Ways to call the command line: the commands alone, `main` in this process, and a process of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from typing import Any
from unittest import mock

from typer.testing import CliRunner

from tracr.cli import app, main

Done = subprocess.CompletedProcess[str]


def invoke(*words: object) -> str:
    """What a command prints; it must succeed."""
    result = CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return str(result.output)


def invoke_json(*words: object) -> Any:
    """What a command prints with `--json`."""
    return json.loads(invoke(*words, "--json"))


def run(*words: str, **variables: str) -> Done:
    """Run `tracr` in this process, with its messages and its exit status: as a user would, but quicker."""
    status: object = 0
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["tracr", *words]),
        mock.patch.dict(os.environ, variables),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            status = end.code
    assert isinstance(status, int)
    return subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue())


def run_apart(*words: str, **variables: str) -> Done:
    """Run `tracr` in a process of its own."""
    environment = {**os.environ, **variables}
    return subprocess.run(
        [sys.executable, "-m", "tracr.cli", *words], capture_output=True, text=True, check=False, env=environment
    )
