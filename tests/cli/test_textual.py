"""The command line for .rasp files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tracr
from tests.cli.calling import invoke
from tracr.cli import app
from tracr.errors import TracrError

HIST = 'set example "hello"\nsame = select(tokens, tokens, ==);\nhist = selector_width(same);\ntwice = 2 * hist;\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A program."""
    path = tmp_path / "hist.rasp"
    path.write_text(HIST)
    return path


def run(*words: object) -> dict[str, object]:
    """`tracr run`, as data."""
    answer: dict[str, object] = json.loads(invoke("run", *words, "--json"))
    return answer


def test_run_takes_a_name_and_characters_words_or_json(file: Path) -> None:
    """Like the library's programs; without a name the last s-op is meant."""
    assert run(file, "--name", "hist", "hello")["model"] == {"hist": [1, 1, 2, 2, 1]}
    assert run(f"{file}:hist", "abca", "--vocab", "abc", "--max-len", 4)["model"] == {"hist": [2, 1, 1, 2]}
    assert run(file, "l", "o", "l")["model"] == {"twice": [4, 2, 4]}
    assert run(file, "[1, 2, 1]", "--vocab", "1,2")["interpreter"] == {"twice": [4, 2, 4]}
    assert run(file, "hex")["tokens"] == ["h", "e", "x"]


def test_vocabulary_and_length_come_from_the_example_or_the_input(file: Path) -> None:
    """`set example` says what a program is for; the input adds to it."""
    described = json.loads(invoke("compile", file, "--name", "hist", "--json"))
    assert described["vocab"] == ["h", "e", "l", "o"]
    file.write_text("y = tokens_int + 1;\n")
    assert run(file, "12")["model"] == {"y": [2, 3]}
    result = CliRunner().invoke(app, ["info", str(file), "--vocab", "12"], catch_exceptions=False)
    assert result.exit_code == 0
    with pytest.raises(TracrError, match='on the example "hello"'):
        CliRunner().invoke(app, ["info", str(file)], catch_exceptions=False)


def test_compile_verify_info_and_show(file: Path, tmp_path: Path) -> None:
    """All commands that take a program take a file."""
    invoke("compile", file, "-o", tmp_path / "model")
    assert tracr.load(tmp_path / "model")("hello") == [2, 2, 4, 4, 2]
    assert "all agree" in invoke("verify", file, "--max-len", 4)
    assert "layers" in invoke("info", file, "--name", "hist")
    assert "hist" in invoke("show", file, "hel")


def test_what_is_not_there_is_said(file: Path) -> None:
    """Names, files, and names for what is no file."""
    for words, message in (
        (["run", f"{file}:nope", "a"], "defines no nope"),
        (["run", "nowhere.rasp", "a"], "no file nowhere.rasp"),
        (["run", f"{file}:hist", "--name", "twice", "a"], "both name a program"),
        (["run", f"{file}:same", "a"], "is not an s-op"),
    ):
        with pytest.raises(TracrError, match=message):
            CliRunner().invoke(app, words, catch_exceptions=False)
    assert CliRunner().invoke(app, ["run", "hist", "--name", "y", "a"]).exit_code == 2


def test_fmt_rewrites_checks_and_pipes(tmp_path: Path) -> None:
    """Only what changes is written; a file that cannot be read is left alone."""
    path = tmp_path / "a.rasp"
    path.write_text("y=1;# one\n")
    result = CliRunner().invoke(app, ["fmt", "--check", str(path)])
    assert (result.exit_code, path.read_text()) == (1, "y=1;# one\n")
    assert "changed" in invoke("fmt", path)
    assert path.read_text() == "y = 1;  # one\n"
    assert invoke("fmt", path) == ""
    result = CliRunner().invoke(app, ["fmt", "-"], input="y  =  2 ;")
    assert result.output == "y = 2;\n"
    path.write_text("y = (;\n")
    with pytest.raises(tracr.SourceError):
        CliRunner().invoke(app, ["fmt", str(path)], catch_exceptions=False)
    assert path.read_text() == "y = (;\n"


def test_draw_writes_svg(file: Path, tmp_path: Path) -> None:
    """Of a file's s-op or selector, or of a library program."""
    out = tmp_path / "out.svg"
    assert "1 layer, 1 head" in invoke("draw", file, "hist", "--input", "abca", "-o", out)
    assert out.read_text().startswith("<svg")
    assert invoke("draw", file, "same").startswith("<svg")
    assert invoke("draw", "hist", "--input", "aab").startswith("<svg")


@pytest.mark.parametrize(
    ("command", "written"),
    [(("figure", "--input", "h,e"), "out.svg"), (("explore",), "out.html"), (("huggingface",), "out")],
    ids=lambda given: given[0] if isinstance(given, tuple) else None,
)
def test_every_command_takes_a_name(file: Path, tmp_path: Path, command: tuple[str, ...], written: str) -> None:
    """Figures, pages and checkpoints of one s-op of a file."""
    verb, *options = command
    invoke(verb, file, *options, "--name", "hist", "--vocab", "helo", "--max-len", 4, "-o", tmp_path / written)
    assert (tmp_path / written).exists()
