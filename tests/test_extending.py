"""`docs/extending.md` works: its additions are made in a copy of the package, and checked there.

Without any one of the places that a primitive needs, something fails that names it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.repository

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/extending.md"
BLOCK = re.compile(r"^```(diff|python check|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COPIED = ("src", "tests", "web/src/core/program.js")


@dataclass(frozen=True)
class Block:
    """A block of the page: a change of a file, a new file, or a check."""

    kind: str
    text: str

    @property
    def path(self) -> str:
        """The file that it changes or makes."""
        first = self.text.splitlines()[0]
        return first.removeprefix("--- " if self.kind == "diff" else "# ")

    def apply(self, root: Path) -> None:
        """Change, or make, the file."""
        target = root / self.path
        if self.kind == "python":
            target.write_text(self.text.partition("\n")[2])
            return
        source = target.read_text()
        for hunk in self.text.split("@@\n")[1:]:
            lines = [(line[:1], line[1:]) for line in hunk.splitlines(keepends=True)]
            old = "".join(text for sign, text in lines if sign in " -\n")
            assert source.count(old) == 1, f"{self.path} has {source.count(old)} times\n{old}"
            source = source.replace(old, "".join(text for sign, text in lines if sign in " +\n"))
        target.write_text(source)


def sections() -> dict[str, list[Block]]:
    parts = re.split(r"^## (.*)$", PAGE.read_text(), flags=re.MULTILINE)[1:]
    return {
        title: [Block(*found) for found in BLOCK.findall(text)]
        for title, text in zip(parts[::2], parts[1::2], strict=True)
        if title != "Tests"
    }


SECTIONS = sections()
PLACES = [block for block in SECTIONS["A primitive"] if block.kind == "diff"]


def copied(root: Path) -> Path:
    for name in COPIED:
        source, target = ROOT / name, root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        elif source.exists():
            shutil.copy(source, target)
    return root


def run(root: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}", "MPLBACKEND": "agg"}
    return subprocess.run([sys.executable, *command], cwd=root, env=environment, capture_output=True, text=True)


def run_tests(root: Path) -> subprocess.CompletedProcess[str]:
    options = ("-q", "-x", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(root))
    return run(root, "-m", "pytest", *options, "tests/test_primitives.py")


@pytest.mark.parametrize("title", SECTIONS)
def test_addition_works(title: str, tmp_path: Path) -> None:
    """The section's checks pass in a copy with its changes."""
    if title == "A figure":
        pytest.importorskip("matplotlib")
    root = copied(tmp_path)
    checks = [block for block in SECTIONS[title] if block.kind == "python check"]
    assert checks
    for block in SECTIONS[title]:
        if block.kind != "python check":
            block.apply(root)
    for check in checks:
        done = run(root, "-W", "error", "-c", check.text)
        assert done.returncode == 0, done.stderr


def test_a_primitive_changes_eight_places() -> None:
    """As the page says, one block each, each in another file."""
    assert len({block.path for block in PLACES}) == len(PLACES) == 8


@pytest.mark.slow
def test_a_complete_primitive_passes_its_tests(tmp_path: Path) -> None:
    """All that holds for the language's own expressions holds for the new one."""
    root = copied(tmp_path)
    for block in PLACES:
        block.apply(root)
    done = run_tests(root)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("place", [block.path for block in PLACES[1:]])
def test_a_forgotten_place_is_found(place: str, tmp_path: Path) -> None:
    """Without one of the places the tests fail; without the class itself there is no primitive."""
    root = copied(tmp_path)
    for block in PLACES:
        if block.path != place:
            block.apply(root)
    done = run_tests(root)
    assert done.returncode != 0
    assert re.search(r"^E .*\b(Clip|Clamp)\b|^FAILED .*\[\S*(Clip|Clamp)\]", done.stdout, re.MULTILINE), done.stdout
