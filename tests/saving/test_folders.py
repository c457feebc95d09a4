"""Where models are saved: nothing else is replaced, nothing is half-written."""

from __future__ import annotations

import builtins
import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.agreement import load_compiled
from tests.saving.saved import FILES, assert_same, contents, example
from tracr.errors import FormatError


def test_only_saved_models_are_replaced(tmp_path: Path) -> None:
    """A folder with other things in it, or a file, is left alone."""
    first, second = example("length"), example("hist")
    folder = tmp_path / "deep" / "model"
    first.save(folder)
    second.save(folder)
    assert_same(second, load_compiled(folder))
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(FormatError, match="something other than a saved model"):
        first.save(folder)
    assert (folder / "notes.txt").exists()
    first.save(folder, overwrite=True)
    assert sorted(contents(folder)) == list(FILES)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FormatError, match="is a file"):
        first.save(tmp_path / "file", overwrite=True)
    (tmp_path / "empty").mkdir()
    first.save(tmp_path / "empty")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["deep", "empty", "file"]


def test_the_working_folder_is_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor any folder above it."""
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    for folder in (".", ".."):
        with pytest.raises(FormatError, match="in use"):
            example("length").save(folder, overwrite=True)


def test_folders_change_places_where_the_system_has_no_exchange(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two renames instead of one step."""
    monkeypatch.setattr("tracr.saving.folders._swap", lambda first, second: False)
    example("length").save(tmp_path / "model")
    example("hist").save(tmp_path / "model")
    assert_same(example("hist"), load_compiled(tmp_path / "model"))
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


KILL = """
import os, sys
from pathlib import Path
import tracr
from tracr.rasp import programs
from tracr import saving

folder = Path(sys.argv[1]) / "model"
models = [tracr.compile(programs.EXAMPLES[n].program, "abc", 5) for n in ("length", "hist")]
EVENTS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree", "ctypes.dlsym", "ctypes.dlopen"}

for moment in range(1, 1000):
    models[0].save(folder, overwrite=True)
    child = os.fork()
    if child == 0:
        left = moment

        def hook(event, arguments):
            global left
            if event in EVENTS:
                left -= 1
                if left == 0:
                    os._exit(9)

        sys.addaudithook(hook)
        models[1].save(folder)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    names = [output.name for output in tracr.load(folder).outputs]
    print(os.waitstatus_to_exitcode(status), *names)
    if os.waitstatus_to_exitcode(status) == 0:
        break
"""


@pytest.mark.skipif(not hasattr(os, "fork") or not sys.platform.startswith("linux"), reason="kills forked processes")
def test_a_killed_save_leaves_the_old_model_or_the_new_one(tmp_path: Path) -> None:
    """Killed before each of its dealings with the file system in turn; the folder always loads."""
    done = subprocess.run([sys.executable, "-c", KILL, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    outcomes = done.stdout.splitlines()
    assert outcomes[-1] == "0 hist"
    assert outcomes[0] == "9 length"
    assert set(outcomes) == {"9 length", "9 hist", "0 hist"}
    assert len(outcomes) > 8


def refuse_writing(monkeypatch: pytest.MonkeyPatch, moment: int, number: int) -> list[str]:
    """Let the file system fail at its `moment`-th operation that writes, with this errno; the operations so far."""
    seen: list[str] = []

    def failing(module: Any, name: str) -> None:
        original = getattr(module, name)

        def operation(*args: Any, **options: Any) -> Any:
            seen.append(name)
            if len(seen) == moment:
                raise OSError(number, os.strerror(number))
            return original(*args, **options)

        monkeypatch.setattr(module, name, operation)

    for module, name in ((os, "mkdir"), (os, "fsync"), (os, "rename"), (os, "replace"), (builtins, "open")):
        failing(module, name)
    monkeypatch.setattr("tracr.saving.folders._swap", lambda first, second: False)
    return seen


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_disk_that_is_full_or_read_only_is_told_of(tmp_path: Path, number: int) -> None:
    """Whenever it fails: the error names the folder, the old model is still there, and nothing else is."""
    old, new = example("length"), example("hist")
    moments = 0
    for moment in range(1, 100):
        folder = tmp_path / "model"
        old.save(folder, overwrite=True)
        with pytest.MonkeyPatch.context() as patch:
            seen = refuse_writing(patch, moment, number)
            refusal = None
            try:
                new.save(folder)
            except FormatError as error:
                refusal = error
        if len(seen) < moment:
            break
        if refusal is not None:  # a folder that cannot be forced to disk is none of the user's business
            moments += 1
            assert isinstance(refusal, OSError)
            assert str(folder) in str(refusal)
            assert refusal.diagnostic.hint
            assert_same(old, load_compiled(folder))
        assert [entry.name for entry in tmp_path.iterdir()] == ["model"]
    assert moments > 6


def test_paths_that_cannot_be_are_refused(tmp_path: Path) -> None:
    """Too long, or below a file."""
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / ("x" * 300), tmp_path / "file" / "model", "/proc/nothing/model"):
        with pytest.raises(FormatError, match=r"cannot be written|is a file") as refusal:
            example("length").save(folder)
        assert refusal.value.diagnostic.hint
        with pytest.raises(FormatError, match="there is no folder"):
            load_compiled(folder)
