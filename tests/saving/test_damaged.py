"""Folders that are damaged, or that hold files of another kind, are refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.agreement import load_compiled
from tests.saving.saved import FILES, refused
from tracr.errors import FormatError
from tracr.saving.models import is_saved_model


@pytest.mark.parametrize("name", FILES)
def test_damaged_files_are_refused(folder: Path, name: str) -> None:
    """Missing, empty, cut short, with a bit flipped, a folder instead of a file."""
    data = (folder / name).read_bytes()
    for cut in (0, 1, 7, 8, 9, len(data) // 2, len(data) - 1):
        (folder / name).write_bytes(data[:cut])
        if name != "manifest.json" or cut < len(data) - 1:
            refused(folder)
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 4
    (folder / name).write_bytes(bytes(flipped))
    refused(folder)
    (folder / name).unlink()
    refused(folder, "is missing")
    (folder / name).mkdir()
    refused(folder, "not a regular file|cannot be read")


def test_no_folder_no_model(tmp_path: Path) -> None:
    """A clear message for a wrong path."""
    with pytest.raises(FormatError, match="there is no folder"):
        load_compiled(tmp_path / "nothing")
    refused(tmp_path, r"manifest\.json is missing")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "does not say"),
        ("{", "is not JSON"),
        ("\xff", "does not say|is not JSON"),
        ("[" * 50_000, "nested too deep|is not JSON"),
        ('{"format": "tracr model", "version": 2}', "format version 2"),
        ('{"format": "tracr model", "version": "1"}', "format version '1'"),
        ('{"format": "tracr model", "version": 1}', "lacks 'files'"),
        ('{"format": "tracr model", "version": 1, "version": 1}', "twice"),
        ('{"format": "tracr model", "version": 1, "tracr": "0", "files": {}}', "lacks"),
        (" " * 70_000, "bytes, more than"),
    ],
)
def test_bad_manifests_are_refused(folder: Path, text: str, message: str) -> None:
    """Broken, of another version, too large."""
    (folder / "manifest.json").write_text(text, encoding="latin-1")
    refused(folder, message)
    assert not is_saved_model(folder) or "lacks" in message


def test_files_outside_the_folder_are_not_read(folder: Path, tmp_path: Path) -> None:
    """The names of the files are fixed; a path in the manifest is an unknown name."""
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["../secret"] = manifest["files"].pop("model.json")
    (folder / "manifest.json").write_text(json.dumps(manifest))
    refused(folder, "lacks 'model.json'")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes and devices")
@pytest.mark.parametrize("name", FILES)
def test_devices_and_pipes_are_refused_without_waiting(folder: Path, name: str) -> None:
    """A file that never ends, a pipe nobody writes to."""
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")
    refused(folder, "not a regular file")
    (folder / name).unlink()
    os.mkfifo(folder / name)
    refused(folder, "not a regular file")


def test_a_file_that_is_too_large_is_not_read(folder: Path) -> None:
    """Sparse files of terabytes; models above the limit."""
    os.truncate(folder / "weights.safetensors", 2**40)
    refused(folder, "bytes, more than")
    os.truncate(folder / "weights.safetensors", 2**27)
    with pytest.raises(FormatError, match="bytes, more than"):
        load_compiled(folder, max_parameters=1000)
