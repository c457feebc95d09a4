"""The command line, run as a user would."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tracr.cli import read_tokens
from tracr.errors import InputError


def tracr(*words: str) -> subprocess.CompletedProcess[str]:
    """Run `tracr` in its own process."""
    return subprocess.run([sys.executable, "-m", "tracr.cli", *words], capture_output=True, text=True, check=False)


def test_run_shows_the_model_beside_the_interpreter() -> None:
    """The demo's command."""
    done = tracr("run", "frac_prevs", "x", "a", "c", "x")
    assert done.returncode == 0
    assert "model        1     0.5  0.333333  0.5" in done.stdout


def test_list_names_the_programs() -> None:
    """All of the library."""
    assert "shuffle_dyck2" in tracr("list").stdout


@pytest.mark.parametrize("words", [("run", "frac_prevs", "q"), ("run", "nothing")])
def test_mistakes_get_one_line_and_no_traceback(words: tuple[str, ...]) -> None:
    """Exit status 1, a message with advice."""
    done = tracr(*words)
    assert done.returncode == 1
    assert done.stderr.startswith("tracr: ")
    assert "hint" in done.stderr
    assert "Traceback" not in done.stderr


def test_tokens_are_read_against_the_vocabulary() -> None:
    """Numbers where the vocabulary has numbers; an error where it is ambiguous."""
    assert read_tokens(["1", "a", "0.5"], [1, "a", 0.5]) == [1, "a", 0.5]
    with pytest.raises(InputError, match="print alike"):
        read_tokens(["1"], [1, "1"])
