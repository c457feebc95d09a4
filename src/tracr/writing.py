"""Writing files: all or nothing, with one error for a disk that is full or read-only.

Everything in this package that writes a file does it through this module.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from tracr.errors import FormatError, WriteError

__all__ = ["replaced", "sibling", "sync", "write_file", "written_to"]


@contextlib.contextmanager
def written_to(target: Path) -> Iterator[None]:
    """Raise a WriteError for a disk that is full or read-only, a path that cannot be, and the like."""
    try:
        yield
    except WriteError:
        raise
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise WriteError(
            f"{target} cannot be written: {error.strerror or error}",
            hint="make room on the disk" if full else "choose a place where you may write",
        ) from error


@contextlib.contextmanager
def replaced(path: Path, *, make_folder: bool = False) -> Iterator[Path]:
    """A temporary path. The file written there takes the place of `path` when the block ends without an error.

    Killed at any moment, `path` is what it was or what it shall be. The folder must exist, unless it is made.
    """
    if path.is_dir():
        raise FormatError(f"{path} is a folder", hint="name a file")
    if not make_folder and not path.parent.is_dir():
        raise WriteError(f"there is no such folder: {path.parent}", hint="make the folder first")
    temporary = sibling(path)
    try:
        with written_to(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            with open(temporary, "rb+") as file:
                os.fsync(file.fileno())
            temporary.replace(path)
        sync(path.parent)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_file(path: Path, content: bytes, *, make_folder: bool = False) -> None:
    """Make `path` a file with this content, in one step."""
    with replaced(path, make_folder=make_folder) as temporary:
        temporary.write_bytes(content)


def sibling(path: Path) -> Path:
    """A path next to another one that nothing has yet."""
    return path.with_name(f".{path.name[:80]}.{secrets.token_hex(8)}.tmp")


def sync(folder: Path) -> None:
    """Force a folder's entries to disk, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
