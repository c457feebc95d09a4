"""Files are written whole or not at all, and a disk that refuses is a WriteError; missing libraries are named."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tracr
from tracr.datasets.building import build_shards
from tracr.datasets.program_file import read_programs, write_programs
from tracr.errors import MissingExtra, WriteError
from tracr.rasp import programs
from tracr.text.drawing import draw
from tracr.writing import replaced, write_file

MODEL = tracr.compile(programs.make_hist(), "ab", 3)


def figure(path: Path) -> None:
    pytest.importorskip("matplotlib")
    MODEL.figure("graph").savefig(path)


def command_figure(path: Path) -> None:
    pytest.importorskip("matplotlib")
    from tracr.viz.canvas import save_figure

    save_figure(MODEL.figure("graph"), path)


def shards(path: Path) -> None:
    records = path.with_name("records.jsonl")
    build_shards(path, read_programs(records))


WRITERS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "model": (lambda path: MODEL.save(path), "model"),
    "drawing": (lambda path: draw(programs.make_hist(), "aab").save(path), "x.svg"),
    "explorer": (lambda path: MODEL.explore().save(path), "x.html"),
    "figure": (figure, "x.png"),
    "figure of a command": (command_figure, "x.png"),
    "programs": (lambda path: write_programs(path, 1), "x.jsonl"),
    "shards": (shards, "shards"),
    "file": (lambda path: write_file(path, b"new"), "x.txt"),
}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
@pytest.mark.parametrize("name", WRITERS)
def test_a_disk_that_refuses_is_a_write_error(
    name: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For every writer, the error names the place and says what to do, and no part of a file is left."""
    write, target = WRITERS[name]
    write_programs(tmp_path / "records.jsonl", 1)
    there = sorted(tmp_path.iterdir())

    def refuse(path: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if any(letter in mode for letter in "wxa+"):
            raise OSError(number, "the disk refuses", str(path))
        return opened(path, mode, *arguments, **options)

    opened = open
    monkeypatch.setattr("builtins.open", refuse)
    monkeypatch.setattr("io.open", refuse)
    with pytest.raises(WriteError, match=r"cannot be written: the disk refuses\n  hint: ") as refusal:
        write(tmp_path / target)
    assert target in str(refusal.value)
    monkeypatch.undo()
    left = [path for path in tmp_path.rglob("*") if path not in there and path.is_file()]
    assert left == []


def test_a_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    """If writing fails midway the old file is still there, and nothing else."""
    path = tmp_path / "x.txt"
    write_file(path, b"old")

    def stop_midway() -> None:
        with replaced(path) as temporary:
            temporary.write_bytes(b"half of it")
            raise OSError(errno.ENOSPC, "no room")

    with pytest.raises(WriteError, match="no room"):
        stop_midway()
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.txt"]
    assert path.read_bytes() == b"old"


def test_a_missing_folder_and_a_folder_for_a_file_are_refused(tmp_path: Path) -> None:
    """With errors of this package."""
    with pytest.raises(WriteError, match="no such folder"):
        draw(programs.make_hist(), "ab").save(tmp_path / "none" / "x.svg")
    with pytest.raises(tracr.FormatError, match="is a folder"):
        write_file(tmp_path, b"")


def without(libraries: str, code: str) -> subprocess.CompletedProcess[str]:
    """Run Python code where some libraries are not installed."""
    block = f"import sys\nfor name in {libraries.split()!r}: sys.modules[name] = None\n"
    return subprocess.run([sys.executable, "-c", block + code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("library", ["typer", "rich", "lark"])
def test_the_command_line_names_a_missing_library_in_one_line(library: str, tmp_path: Path) -> None:
    """No traceback, status 1."""
    program = tmp_path / "x.rasp"
    program.write_text("y = indices + 1;")
    words = ["tracr", *(("run", str(program), "ab") if library == "lark" else ("info", "hist"))]
    done = without(library, f"sys.argv = {words!r}\nfrom tracr.cli import main\nmain()")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert f"needs {library}" in done.stderr
    assert f"pip install {library}" in done.stderr


@pytest.mark.parametrize(
    ("library", "code"),
    [
        ("lark", "tracr.parse('y = indices;')"),
        ("safetensors", "tracr.load('nowhere')"),
        ("safetensors", "tracr.compile(tracr.rasp.tokens, 'ab', 2).save('nowhere')"),
        ("tqdm", "tracr.compile(tracr.rasp.tokens, 'ab', 2).verify(progress=True)"),
    ],
)
def test_a_missing_library_is_a_missing_extra(library: str, code: str) -> None:
    """With the command that installs it."""
    done = without(library, f"import tracr\ntry:\n    {code}\nexcept tracr.MissingExtra as error:\n    print(error)")
    assert done.stdout == f"this needs {library}\n  hint: pip install {library}\n", done.stderr
    assert issubclass(MissingExtra, ImportError)


@pytest.mark.parametrize(
    ("library", "words", "extra"),
    [
        ("matplotlib", "figure hist -o x.svg", "viz"),
        ("jax", "twin hist -o x", "jax"),
        ("jax", "compress frac_prevs --dim 8", "jax"),
        ("starlette", "playground --port 0", "web"),
        ("pyarrow", "lab run --methods exact --cases hist -o x", "sweep"),
    ],
)
def test_commands_name_the_extra_they_need(library: str, words: str, extra: str, tmp_path: Path) -> None:
    """Where pip installed the package alone: no internal error."""
    code = f"import os; os.chdir({str(tmp_path)!r}); sys.argv = {['tracr', *words.split()]!r}"
    done = without(library, f"{code}\nfrom tracr.cli import main\nmain()")
    assert (done.returncode, done.stderr) == (1, f"tracr: this needs {library}\n  hint: pip install 'tracr[{extra}]'\n")
