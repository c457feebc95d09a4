"""docs/for-reviewers.md quotes README.md as it is, and its commands exist; the quick ones are run."""

from __future__ import annotations

import ast
import importlib.util
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.docs.command_line import parse
from tracr.cli import app

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/for-reviewers.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
LINES = re.findall(r"^    (\S.*)$", PAGE, re.MULTILINE)
SLOW = ("minutes", "slow tier")


def words(line: str) -> list[str]:
    """The words of a command; two spaces or more begin an explanation."""
    return shlex.split(re.split(r"\s{2,}", line)[0])


def commands(program: str) -> list[str]:
    return [line for line in LINES if words(line)[0] == program]


def test_all_lines_are_commands() -> None:
    """Nothing is left out of the tests below."""
    assert {words(line)[0] for line in LINES} == {"make", "python", "tracr"}


def test_quotations_are_in_the_readme() -> None:
    """A claim that README.md no longer makes, or makes in other words, is found."""
    quoted = re.findall(r"^> (.*)$", PAGE, re.MULTILINE)
    assert len(quoted) > 20
    text = " ".join(README.split())
    assert [claim for claim in quoted if " ".join(claim.split()) not in text] == []


def test_every_part_of_the_readme_has_its_claims() -> None:
    """Each paragraph of "What it does" begins with words that are a heading of the page."""
    inside = README.partition("## What it does")[2].partition("\n## ")[0]
    leads = re.findall(r"^\*\*([^*]+)\.\*\*", inside, re.MULTILINE)
    assert len(leads) > 5
    assert set(leads) <= set(re.findall(r"^## (.*)$", PAGE, re.MULTILINE))


@pytest.mark.parametrize("line", commands("make"))
def test_targets_of_make_exist(line: str) -> None:
    _, target = words(line)
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("line", commands("python"))
def test_python_commands_name_what_exists(line: str) -> None:
    """A script, or a module; the files, folders and tests that pytest is given, and their tier."""
    _, *rest = words(line)
    if rest[0] != "-m":
        assert (ROOT / rest[0]).is_file()
        return
    assert importlib.util.find_spec(rest[1])
    if rest[1] == "pytest":
        given = [word for word in rest[2:] if not word.startswith("-") and word != "slow"]
        assert given
        for one in given:
            path, _, name = one.partition("::")
            assert (ROOT / path).exists(), one
            assert not name or name in names_of_tests(ROOT / path), one


def names_of_tests(path: Path) -> set[str]:
    """The names of the tests in a file."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return {node.name for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


@pytest.mark.parametrize("line", commands("tracr"))
def test_options_of_tracr_exist(line: str) -> None:
    """The command and its options can be read, whether it is run or not."""
    parse(words(line)[1:])


def test_quick_commands_of_tracr_end_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = [line for line in commands("tracr") if not any(word in line for word in SLOW) and words(line)[1] != "lab"]
    assert len(quick) > 8
    run(quick, tmp_path, monkeypatch)


@pytest.mark.slow
def test_commands_of_the_laboratory_end_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They need a library for tables."""
    pytest.importorskip("pyarrow")
    run([line for line in commands("tracr") if words(line)[1] == "lab"], tmp_path, monkeypatch)


def run(lines: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run commands in a folder, in their order."""
    monkeypatch.chdir(folder)
    (folder / "examples").symlink_to(ROOT / "examples")
    for line in lines:
        result = CliRunner().invoke(app, words(line)[1:], catch_exceptions=False)
        assert result.exit_code == 0, (line, result.output)
