"""Files that the documentation and the docstrings name are there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.repository

ROOT = Path(__file__).parents[1]
NAMED = re.compile(r"`((?:[\w.-]+/)*[\w-]+\.(?:py|md|c|h|js|lark|rasp))`|\]\(([\w./-]+\.md)\)")


def tracked() -> list[Path]:
    """The files of the repository; of a copy without git, all that are there."""
    try:
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is not a git checkout")
    return [ROOT / line for line in listed.splitlines()]


def test_named_files_exist() -> None:
    """`slot_reuse.py` or `compiler/pipeline.py` in a text is the end of some file's path."""
    files = tracked()
    paths = ["/" + path.relative_to(ROOT).as_posix() for path in files]
    own = {
        "tracr.rasp",
        "name.rasp",
        "file.py",
        "my_program.py",
        "program.py",
        "x.rasp",
        "file.rasp",
        "shared/LANGUAGE.md",
        "notes.md",
        "results/notes.md",
    }  # examples of a reader's own files
    missing = []
    for path in files:
        if path.suffix not in (".py", ".md") or path.name == "CHANGELOG.md" or not path.is_file():
            continue
        for match in NAMED.finditer(path.read_text()):
            name = (match[1] or match[2]).removeprefix("../").removeprefix("./")
            if name not in own and not any(known.endswith("/" + name) for known in paths):
                missing.append(f"{path.relative_to(ROOT)}: {name}")
    assert missing == []
