"""`assert_solves`: tests of a class."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tracr import learn
from tracr.errors import UnknownName

REVERSE = "answer = aggregate(select(indices, length - 1 - indices, ==), tokens);"
ROTATE = "answer = aggregate(select(indices, (indices + 1) % length, ==), tokens);"


def test_a_solution_passes() -> None:
    learn.assert_solves("reverse", REVERSE)
    learn.assert_solves(3, REVERSE, "answer", within=2)


def test_a_wrong_program_fails_with_the_verdict() -> None:
    with pytest.raises(AssertionError, match=r'puzzle 3 \(reverse\): Not yet: on \["a", "b"\]'):
        learn.assert_solves("reverse", "answer = tokens;")


def test_a_program_that_cannot_be_read_fails_with_the_place() -> None:
    with pytest.raises(AssertionError, match=r"1:10: the name lenght is not defined"):
        learn.assert_solves("reverse", "answer = lenght;")


def test_too_many_layers_fail() -> None:
    learn.assert_solves("rotate", ROTATE)
    with pytest.raises(AssertionError, match="solved with 3 layers, and at most 1 are allowed"):
        learn.assert_solves("rotate", ROTATE, within=1)


def test_an_unknown_puzzle_is_the_teachers_error() -> None:
    with pytest.raises(UnknownName):
        learn.assert_solves("revers", REVERSE)


@pytest.mark.slow
def test_pytest_shows_the_verdict_and_not_our_code(tmp_path: Path) -> None:
    """As docs/teaching.md writes it, in a folder of a student."""
    (tmp_path / "reverse.rasp").write_text("answer = tokens;")
    (tmp_path / "test_homework.py").write_text(
        "from pathlib import Path\n"
        "from tracr import learn\n\n"
        "HERE = Path(__file__).parent\n\n"
        "def test_reverse():\n"
        '    learn.assert_solves("reverse", HERE / "reverse.rasp")\n'
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert 'on ["a", "b"] it should give ["b", "a"]' in done.stdout
    assert "grading.py" not in done.stdout
