"""Programs in Python files: what a file may hold, its mistakes, and its warnings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agreement import load_compiled
from tests.cli.calling import invoke, invoke_json, run, run_apart

PROGRAMS = '''
from tracr.rasp import rasp
from tracr.rasp.programs import Example, make_count

squares = rasp.Map(lambda x: x * x, rasp.tokens).named("squares")
several = {"squares": squares, "double": 2 * rasp.tokens}
ready = Example(squares, (1, 2), 3, "squares of numbers")
unreached = rasp.SequenceMap(lambda a, b: 1 / (9 - a - b), make_count(rasp.tokens, "a"), make_count(rasp.tokens, "b"))
number = 3


def make():
    """A program made by a function."""
    return squares
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of programs."""
    path = tmp_path / "my:programs.py"
    path.write_text(PROGRAMS)
    return path


def test_files_are_programs(file: Path) -> None:
    """An s-op, several, an Example, a function; the name comes after the last colon."""
    assert invoke_json("run", f"{file}:squares", "-1", "2", "--vocab=-1,2")["model"] == {"squares": [1, 4]}
    several = invoke_json("run", f"{file}:several", "2", "--vocab", "1,2")
    assert several["model"] == several["interpreter"] == {"squares": [4], "double": [4]}
    assert invoke_json("run", f"{file}:ready", "2")["model"] == {"squares": [4]}
    assert invoke_json("run", f"{file}:make", "2", "--vocab", "[2]")["model"] == {"squares": [4]}


def test_the_source_of_a_file_is_saved(file: Path, tmp_path: Path) -> None:
    """With the model."""
    invoke("compile", f"{file}:ready", "-o", str(tmp_path / "model"))
    assert load_compiled(tmp_path / "model").source == PROGRAMS


@pytest.mark.parametrize(
    ("text", "name", "status", "message"),
    [
        (PROGRAMS, "squares", 2, "add --vocab"),
        (PROGRAMS, "nothing", 1, "its programs are squares, several, ready"),
        (PROGRAMS, "number", 1, "is 3, not a program"),
        ("import missing_module", "x", 1, "programs.py:1 failed: ModuleNotFoundError"),
        ("x = (", "x", 1, "programs.py:1 failed: SyntaxError"),
        ("raise SystemExit(0)", "x", 1, "programs.py:1 failed: SystemExit"),
        ("def f(x): return x", "f", 1, "without arguments"),
    ],
)
def test_files_with_mistakes(tmp_path: Path, text: str, name: str, status: int, message: str) -> None:
    """What is wrong, and where."""
    path = tmp_path / "programs.py"
    path.write_text(text)
    done = run("run", f"{path}:{name}", "1")
    assert done.returncode == status
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_without_a_name_lists_its_programs(file: Path) -> None:
    """To choose from."""
    done = run("run", str(file))
    assert done.returncode == 1
    assert f"{file}:squares" in done.stderr


def test_warnings_are_one_line(file: Path) -> None:
    """On standard error, without Python's file and line."""
    done = run_apart("run", f"{file}:unreached", "a", "b", "--vocab", "ab", "--max-len", "5")
    assert done.returncode == 0
    assert done.stderr.startswith("tracr: warning: ")
    assert "warnings.warn" not in done.stderr
