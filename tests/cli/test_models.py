"""Models on the command line: made in a Python file, or saved; compressed ones too."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

import tracr
from tests.cli.calling import invoke, invoke_json
from tests.natural.twins import untrained
from tracr.cli import app
from tracr.rasp import programs

RUNNER = CliRunner()


def test_a_model_of_a_python_file_is_run(tmp_path: Path) -> None:
    """`file.py:name` may be a model: it is no program to compile, though it has one."""
    path = tmp_path / "mine.py"
    path.write_text("import tracr\nmodel = tracr.compile(tracr.rasp.tokens, 'ab', 3)\n")
    done = RUNNER.invoke(app, ["run", f"{path}:model", "a", "b"])
    assert done.exit_code == 0
    assert "model        a  b" in done.output


def test_a_compressed_model_is_run_and_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    """From its folder: `run` and `verify` work, and `show` says why there is nothing to show."""
    model = tracr.compile(programs.make_hist(), "abc", 3, level=0)
    folder = str(tmp_path / "small")
    tracr.compress(model, method="exact").save(folder)
    assert "model        2  2  1" in RUNNER.invoke(app, ["run", folder, "a", "a", "b"]).output
    assert "not the compiler's own" in RUNNER.invoke(app, ["verify", folder]).output
    shown = RUNNER.invoke(app, ["show", folder, "a", "a", "b"])
    assert shown.exit_code != 0
    assert isinstance(shown.exception, SystemExit | tracr.TracrError)


def test_info_of_a_twin_says_whether_it_is_admitted(tmp_path: Path) -> None:
    """Its measurements and its ground truth, as a text and as data; other commands name the teacher."""
    folder = Path(__file__).parents[2] / "docs" / "natural" / "twins" / "count"
    shown = invoke("info", folder)
    assert shown.startswith("TwinModel(count_a: 1 layer, width 32")
    assert "admitted: right on 100.00%" in shown
    assert "blocks.0.attn.0->blocks.0.mlp: admitted" in shown
    assert "NOT ADMITTED" not in shown
    untrained(tracr.compile(programs.make_hist(), "ab", 2)).save(tmp_path / "twin")
    assert "NOT ADMITTED" in invoke("info", tmp_path / "twin")
    data = invoke_json("info", tmp_path / "twin")
    assert data["admitted"] is False
    assert "blocks.0.attn.1" in data["missed"]
