"""A file of program records, one JSON object a line. Whoever stops writing it can go on later."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from tracr.datasets.controls import Controls
from tracr.datasets.records import Record, Sampling
from tracr.datasets.workers import SERIAL, Workers
from tracr.errors import FormatError

__all__ = ["read_programs", "write_programs"]


def read_programs(path: str | Path, *, refused: bool = False) -> Iterator[Record]:
    """The records of a file; with `refused` also those of candidates that the compiler refused to tabulate."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            record = _parse(line, path, number)
            if record.meaning is not None or refused:
                yield record


def write_programs(
    path: str | Path,
    count: int,
    seed: int = 0,
    controls: Controls | None = None,
    workers: Workers = SERIAL,
    progress: Callable[[Sampling], None] | None = None,
) -> Sampling:
    """Have `path` hold the records of `sample(count, seed, controls)`, adding those that are missing.

    What was written is never written again: the file is the state. A line that a killed process left unfinished is cut
    off first. A file with records of another seed or other controls is refused.
    """
    sampling = Sampling(seed, controls or Controls())
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+b") as file, _alone(file, path):
        _resume(file, sampling, path)
        if progress is not None:
            progress(sampling)
        for record in sampling.records(count, workers):
            file.write(json.dumps(record.to_json(), allow_nan=False).encode() + b"\n")
            file.flush()
            if progress is not None:
                progress(sampling)
        os.fsync(file.fileno())
    return sampling


def _resume(file: BinaryIO, sampling: Sampling, path: Path) -> None:
    """Read what is there, and cut off an unfinished line."""
    file.seek(0)
    end = 0
    for number, line in enumerate(file, 1):
        if not line.endswith(b"\n"):
            break
        record = _parse(line, path, number)
        if record.controls != sampling.controls or record.seed[0] != sampling.seed:
            raise FormatError(
                f"{path} holds programs drawn with another seed or other options (line {number})",
                hint="give the seed and the options it was begun with, or another file",
            )
        sampling.note(record)
        end += len(line)
    file.truncate(end)
    file.seek(0, os.SEEK_END)


def _parse(line: bytes, path: str | Path, number: int) -> Record:
    try:
        data = json.loads(line)
        if not isinstance(data, dict):
            raise FormatError("it is not an object")
        return Record.from_json(data)
    except (ValueError, FormatError) as error:
        raise FormatError(
            f"line {number} of {path} is not the record of a program: {error}", hint="this file was not made by sample"
        ) from None


@contextlib.contextmanager
def _alone(file: BinaryIO, path: Path) -> Iterator[None]:
    """Keep other processes from writing the same file, where the system can."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise FormatError(f"another process is writing {path}", hint="wait for it, or choose another file") from None
    yield
