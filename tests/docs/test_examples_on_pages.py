"""Examples on pages: doctests are run by pytest (pyproject.toml); here are the commands and the code without `>>>`."""

from __future__ import annotations

import contextlib
import doctest
import pkgutil
import re
import shlex
import tomllib
from pathlib import Path

import pytest

import tracr
from tests.docs.command_line import parse

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMAND = re.compile(r"^ {4,}tracr (?!\[)(.*)$", re.MULTILINE)
CALL = re.compile(r"\b(tracr|lab|learn|natural|programs|rasp|zoo)((?:\.\w+)+)\(")
MODULES = {"programs": "tracr.rasp.programs", "rasp": "tracr.rasp.rasp", "tracr": "tracr"}


def commands(text: str) -> list[str]:
    """What follows `tracr` on a line of its own, without its explanation, pipes and redirections."""
    joined = re.sub(r"\\\n\s*", "", text)
    return [re.split(r"\s{2,}|\s+[#|>]", line)[0] for line in COMMAND.findall(joined)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_can_be_typed(page: Path) -> None:
    """Every command of `tracr` on a page has arguments and options that exist."""
    for line in commands(page.read_text(encoding="utf-8")):
        parse(shlex.split(line))


def test_commands_are_found_and_wrong_ones_refused() -> None:
    text = "    tracr run sort 3 1    run it\n    tracr lab run --cases core \\\n        -o out  # all\n    tracr x > y"
    assert commands(text) == ["run sort 3 1", "lab run --cases core -o out", "x"]
    with pytest.raises(AssertionError, match="no-such-option"):
        parse(["run", "sort", "--no-such-option"])
    with pytest.raises(Exception, match="No such option"):
        parse(["zoo", "--no-such-option"])


OWN = {"extending", "explorer"}  # it adds functions, and tests/test_extending.py runs it; functions of JavaScript


@pytest.mark.parametrize("page", [one for one in PAGES if one.stem not in OWN], ids=lambda page: page.stem)
def test_functions_that_are_called_exist(page: Path) -> None:
    """Code that is not run, because it takes minutes or needs files, calls functions that exist."""
    for module, path in CALL.findall(page.read_text(encoding="utf-8")):
        with contextlib.suppress(tracr.MissingExtra):  # a library that is not installed here
            pkgutil.resolve_name(MODULES.get(module, f"tracr.{module}") + path)


def test_pages_with_examples_are_run() -> None:
    """Every page with an example is where pytest looks, or one of those of the slow tier."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"]
    assert {"docs", "README.md"} <= set(settings["testpaths"])
    assert "--doctest-glob=*.md" in settings["addopts"]
    with_examples = [page for page in PAGES if doctest.DocTestParser().get_examples(page.read_text("utf-8"))]
    assert len(with_examples) > 25
