"""Writes files completely or not at all, with one error for a disk that is full or read-only.

All files that this package writes are written through this module.
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
    """Raise a WriteError for a disk that is full or read-only, an impossible path and similar failures."""
    try:
        yield
    except WriteError:
        raise
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise WriteError(
            f"{target} cannot be written: {error.strerror or error}",
            hint="free space on the disk" if full else "choose a place where you may write",
        ) from error


@contextlib.contextmanager
def replaced(path: Path, *, make_folder: bool = False) -> Iterator[Path]:
    """A temporary path. The file written there replaces `path` when the block ends without an error.

    If the process is killed at any moment, `path` is either the old or the new file. The folder must exist, unless
    `make_folder` is true.
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
    """Write this content to `path`, in one step."""
    with replaced(path, make_folder=make_folder) as temporary:
        temporary.write_bytes(content)


def sibling(path: Path) -> Path:
    """An unused path in the same folder."""
    return path.with_name(f".{path.name[:80]}.{secrets.token_hex(8)}.tmp")


def sync(folder: Path) -> None:
    """Force a folder's entries to disk, if the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
