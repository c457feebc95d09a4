"""Writes a folder of files completely or not at all, and reads untrusted files."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tracr.errors import FormatError
from tracr.writing import sibling, sync, written_to

__all__ = ["read_file", "write_folder"]

AT_FDCWD, RENAME_EXCHANGE = -100, 2  # Linux, <fcntl.h> and <linux/fs.h>
RENAME_SWAP = 2  # macOS, <sys/stdio.h>


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Make `folder` hold these files (`name`, or `subfolder/name`) and nothing else, in one step.

    The old content is deleted. The files are written into a temporary folder next to it and forced to disk; then the
    two folders change places. If the process is killed, the folder has either the old or the new content. (A temporary
    folder may be left next to it.)
    """
    with written_to(folder):
        _write_folder(folder, files)


def _write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = sibling(folder)
    temporary.mkdir()
    try:
        for name, content in files.items():
            (temporary / name).parent.mkdir(parents=True, exist_ok=True)
            with open(temporary / name, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for written in {(temporary / name).parent for name in files} | {temporary}:
            sync(written)
        if folder.exists():
            _exchange(temporary, folder)
        else:
            temporary.rename(folder)
        sync(folder.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _exchange(new: Path, old: Path) -> None:
    """Replace an old folder with a new one: in one step if the system can, else with two renames."""
    if _swap(os.fsencode(new), os.fsencode(old)):
        return
    aside = sibling(old)
    old.rename(aside)
    try:
        new.rename(old)
    except OSError:
        aside.rename(old)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _swap(first: bytes, second: bytes) -> bool:
    """Exchange two paths atomically; false if the system cannot."""
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            return bool(library.renamex_np(first, second, RENAME_SWAP) == 0)
        return bool(library.renameat2(AT_FDCWD, first, AT_FDCWD, second, RENAME_EXCHANGE) == 0)
    except (OSError, AttributeError, TypeError):  # no such function, no such library
        return False


def read_file(path: Path, most: int) -> bytes:
    """The content of a regular file of at most `most` bytes."""
    with _opened(path) as handle:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise FormatError(f"{path} is not a regular file")
        if status.st_size > most:
            raise FormatError(f"{path} has {status.st_size:,} bytes, more than the {most:,} that are read at most")
        with open(handle, "rb", closefd=False) as file:
            return file.read(min(most, status.st_size + 1))


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Open a file without waiting, also if it is a pipe without a writer."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        missing = error.errno == errno.ENOENT
        raise FormatError(f"{path} {'is missing' if missing else f'cannot be read: {error.strerror}'}") from None
    try:
        yield handle
    finally:
        os.close(handle)
