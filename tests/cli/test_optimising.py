"""`tracr compile` with a solver, and with bounds."""

from __future__ import annotations

import json
import sys

import pytest
from typer.testing import CliRunner

import tracr
from tests.cli.calling import invoke
from tracr.cli import app
from tracr.rasp.programs import EXAMPLES


def test_bounds() -> None:
    """The table below the model's line, or its rows as JSON."""
    example = EXAMPLES["hist"]
    bounds = tracr.compile(example.program, example.vocab, example.max_seq_len, level=2).bounds()
    lines = invoke("compile", "hist", "--level", "2", "--bounds").splitlines()
    assert lines[0].startswith("hist: ")
    assert lines[1:] == str(bounds).splitlines()
    data = json.loads(invoke("compile", "hist", "--level", "2", "--bounds", "--json"))
    assert data["bounds"] == bounds.as_json()
    assert data["bounds"]["sizes"][0]["optimal"] is True
    assert "bounds" not in json.loads(invoke("compile", "hist", "--json"))


def test_solve_without_a_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    for module in [name for name in sys.modules if name.partition(".")[0] == "ortools"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "ortools", None)
    with pytest.raises(tracr.MissingExtra, match="ortools") as error:
        CliRunner().invoke(app, ["compile", "hist", "--solve", "1"], catch_exceptions=False)
    assert "pip install 'tracr[opt]'" in str(error.value)


@pytest.mark.slow
def test_solve() -> None:
    """The schedule says what was proven; an invalid time limit is refused."""
    pytest.importorskip("ortools")
    text = invoke("compile", "shuffle_dyck2", "--level", "2", "--solve", "5", "--show", "schedule")
    assert text.splitlines()[-1].startswith("solver: optimal; ")
    with pytest.raises(tracr.CompileError, match="solve_seconds"):
        CliRunner().invoke(app, ["compile", "hist", "--solve", "0"], catch_exceptions=False)
