"""What is typed wrongly is answered in a few lines, with the exit status and with advice."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

import tracr
from tests.cli.calling import invoke, run, run_apart
from tracr.cli import app


@pytest.mark.parametrize(
    "words",
    [
        ("run", "frac_prevs", "q"),
        ("run", "nothing"),
        ("run", "hist", "abc"),
        ("run", "sort", "1", "2", "3", "4", "1"),
        ("show", "frac_prevs", "q"),
        ("info", "."),
    ],
)
def test_mistakes_get_a_few_lines_and_no_traceback(words: tuple[str, ...]) -> None:
    """Exit status 1, a message with advice."""
    done = run(*words)
    assert done.returncode == 1
    assert done.stderr.startswith("tracr: ")
    assert "hint" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "words",
    [
        ("nothing",),
        ("run",),
        ("run", "sort", "--levl", "0"),
        ("compile", "sort", "--level", "7"),
        ("compile", "sort", "--max-len", "0"),
        ("compile", "sort", "--without", "nothing"),
        ("compile", "sort", "--with", "fold", "--without", "fold"),
        ("compile", "sort", "--show", "nothing"),
        ("compile", "sort", "--vocab", '["a",]'),
    ],
)
def test_wrong_usage_exits_with_2(words: tuple[str, ...]) -> None:
    """And says how to use it."""
    done = run(*words)
    assert done.returncode == 2
    assert "Usage" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_process_of_its_own_ends_likewise() -> None:
    """With the status and the message that `run` gives for the same words."""
    for words in (("run", "frac_prevs", "q"), ("compile", "sort", "--level", "7")):
        here, apart = run(*words), run_apart(*words)
        assert (apart.returncode, apart.stdout, apart.stderr) == (here.returncode, here.stdout, here.stderr)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("run", "srot", "1"), "did you mean sort?"),
        (("info", "shuffle_dyk2"), "did you mean shuffle_dyck2 or shuffle_dyck?"),
        (("run", "sort", "1", "--levl", "0"), "did you mean --level?"),
        (("compile", "sort", "--levl", "0"), "--level"),
        (("compile", "sort", "--with", "fld"), "did you mean fold?"),
        (("compile", "sort", "--show", "infr"), "did you mean infer?"),
        (("rum", "sort"), "Did you mean 'run'?"),
        (("huggingface", "sort", "--activation", "rlu", "-o", "x"), "did you mean relu?"),
        (("compress", "sort", "--method", "fats"), "did you mean fast?"),
        (("run", "sort", "1", "2", "3", "4", "1"), "add --max-len 5"),
        (("run", "sort", "3 1 2"), "write 3 1 2"),
        (("run", "sort", "312"), "put spaces between tokens: 3 1 2"),
        (("explore", "sort", "-o", "x.png"), "must end in .html"),
        (("draw", "sort", "-o", "x.png"), "must end in .svg; `tracr figure` writes .png"),
    ],
)
def test_mistakes_are_answered_with_what_was_meant(words: tuple[str, ...], meant: str) -> None:
    """Names of programs, options, passes, stages and commands; files of the wrong kind."""
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code != 0
    assert meant in " ".join(f"{result.output} {result.exception}".split())


@pytest.mark.parametrize("words", [("--debug", "run", "frac_prevs", "q"), ("run", "frac_prevs", "q", "--debug")])
def test_debug_shows_where_an_error_comes_from(words: tuple[str, ...]) -> None:
    """Anywhere on the line."""
    assert "Traceback" in run_apart(*words).stderr


def test_help_and_version() -> None:
    """Every command explains its options."""
    assert tracr.__version__ in invoke("--version")
    assert "compile" in invoke("--help")
    for command in ("list", "compile", "run", "show", "info"):
        assert "--json" in invoke(command, "-h")
