"""`make demo`: what it runs works, and what it tells to type does too."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tracr.cli import app

MAKEFILE = Path(__file__).parents[1] / "Makefile"


def commands(text: str) -> list[list[str]]:
    """The words after `tracr` on each line; two spaces or more begin an explanation."""
    lines = re.findall(r"^\s+\$\(BIN\)/tracr (.*?)(?:\s{2,}.*)?$", text, re.MULTILINE)
    return [shlex.split(line) for line in lines]


def test_the_demo_ends_with_a_page_and_three_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page is a file to open; the steps can be typed."""
    text = MAKEFILE.read_text()
    recipe = re.search(r"^demo:.*\n((?:\t.*\n)+)", text, re.MULTILINE)
    steps = re.search(r"^define NEXT_STEPS\n(.*?)^endef", text, re.MULTILINE | re.DOTALL)
    assert recipe is not None
    assert steps is not None
    shown, told = commands(recipe[1]), commands(steps[1])
    assert [words[0] for words in shown] == ["run", "show", "explore"]
    assert len(told) == 3
    monkeypatch.chdir(tmp_path)
    (tmp_path / "build").mkdir()
    for words in [*shown, *told]:
        result = CliRunner().invoke(app, words, input="", catch_exceptions=False)
        assert result.exit_code == 0, (words, result.output)
    assert "build/demo.html" in steps[1]
    assert (tmp_path / "build" / "demo.html").read_text(encoding="utf-8").startswith("<!")
