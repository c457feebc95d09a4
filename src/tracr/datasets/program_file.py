"""A file of program records, one JSON object per line. Writing can be interrupted and resumed.

Each line ends with a checksum of its record, under `check`. Records are in the order of their seeds. Reading
and resuming both detect a record that was changed, repeated or moved. Files of older versions have no checksums:
a changed record is not detected there.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from tracr.datasets.bounds import ModelBounds
from tracr.datasets.candidates import Candidate
from tracr.datasets.controls import Controls
from tracr.datasets.records import Record
from tracr.datasets.sampling import Sampling
from tracr.datasets.settings import Settings
from tracr.errors import FormatError
from tracr.workers import SERIAL, Workers
from tracr.writing import written_to

__all__ = ["drawn_into", "read_programs", "write_programs"]

CHECK, DIGITS = "check", 16


def read_programs(path: str | Path, *, refused: bool = False) -> Iterator[Record]:
    """The records of a file; with `refused`, also the candidates that the compiler refused to tabulate.

    A record that was changed, repeated or moved is an error. Lines may be missing.
    """
    before: Record | None = None
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            record = _parse(line, path, number)
            _check_order(record, before, path, number)
            before = record
            if record.meaning is not None or refused:
                yield record


def write_programs(
    path: str | Path,
    count: int,
    seed: int = 0,
    controls: Controls | None = None,
    workers: Workers = SERIAL,
    progress: Callable[[Sampling], None] | None = None,
    bounds: ModelBounds | None = None,
) -> Sampling:
    """Write the records of `sample(count, seed, controls, bounds=bounds)` to `path`, adding those that are missing.

    Existing records are never written again: the file is the state. An unfinished line of a killed process is removed
    first. A file with records of another seed, other controls or other bounds is refused.
    """
    sampling = Sampling(seed, controls or Controls(), bounds)
    for _ in drawn_into(path, sampling, count, workers, progress=progress):
        pass
    return sampling


def drawn_into(
    path: str | Path,
    sampling: Sampling,
    count: int,
    workers: Workers = SERIAL,
    settings: Settings | None = None,
    progress: Callable[[Sampling], None] | None = None,
) -> Generator[Candidate, None, None]:
    """The programs of a file, then those that are drawn and added to it until it has `count`; without refused ones.

    With settings, the models of programs that are drawn are made too. Closing the iterator closes the file.
    """
    path = Path(path)
    with _opened(path) as file, _alone(file, path):
        with written_to(path):
            there = _resume(file, sampling, path)
        if progress is not None:
            progress(sampling)
        for record in there:
            yield Candidate(record)
        for candidate in sampling.candidates(count, workers, settings):
            with written_to(path):
                file.write(_line(candidate.record))
                file.flush()
            if progress is not None:
                progress(sampling)
            if candidate.record.meaning is not None:
                yield candidate
        with written_to(path):
            os.fsync(file.fileno())


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """The file, open for reading and appending. Closing it writes the buffered rest, which may fail on a full disk."""
    with written_to(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open(path, "a+b")  # noqa: SIM115
    try:
        yield file
    finally:
        with written_to(path):
            file.close()


def _resume(file: BinaryIO, sampling: Sampling, path: Path) -> list[Record]:
    """The existing records, without refused ones; an unfinished line is removed."""
    file.seek(0)
    end = 0
    there: list[Record] = []
    before: Record | None = None
    for number, line in enumerate(file, 1):
        if not line.endswith(b"\n"):
            break
        record = _parse(line, path, number)
        _check_order(record, before, path, number)
        before = record
        drawn_with = record.seed[0], record.controls, record.bounds
        if drawn_with != (sampling.seed, sampling.controls, sampling.bounds):
            raise FormatError(
                f"{path} holds programs drawn with another seed or other options (line {number})",
                hint="use the seed and the options it was made with, or another file",
            )
        if record.id is not None and record.id != sampling.found:
            raise FormatError(
                f"line {number} of {path} is program {record.id}, not {sampling.found}: lines before it are missing",
                hint="write to another file, or delete this line and all lines after it",
            )
        sampling.note(record)
        if record.meaning is not None:
            there.append(record)
        end += len(line)
    file.truncate(end)
    file.seek(0, os.SEEK_END)
    return there


def _line(record: Record) -> bytes:
    data = record.to_json()
    return json.dumps({**data, CHECK: _checksum(data)}, allow_nan=False).encode() + b"\n"


def _checksum(data: dict[str, Any]) -> str:
    """The checksum of a record as JSON, independent of the order of its keys."""
    return hashlib.sha256(json.dumps(data, allow_nan=False, sort_keys=True).encode()).hexdigest()[:DIGITS]


def _parse(line: bytes, path: str | Path, number: int) -> Record:
    try:
        data = json.loads(line)
        if not isinstance(data, dict):
            raise FormatError("it is not an object", hint="each line is a JSON object")
        check = data.pop(CHECK, None)
        record = Record.from_json(data)
        known = record.to_json()
    except (ValueError, FormatError) as error:
        raise FormatError(
            f"line {number} of {path} is not the record of a program: {error}", hint="this file was not made by sample"
        ) from None
    unknown = sorted(data.keys() - known.keys())
    if unknown or (check is not None and check != _checksum(data)):
        why = f"it has {', '.join(unknown)}, which no record has" if unknown else "its checksum does not match"
        raise FormatError(
            f"line {number} of {path} was changed after it was written: {why}",
            hint=f"tracr.random_program({list(record.seed)}, ...) draws the program again; or sample into another file",
        )
    return record


def _check_order(record: Record, before: Record | None, path: str | Path, number: int) -> None:
    if before is not None and record.seed <= before.seed:
        repeated = "repeats the record before it" if record.seed == before.seed else "belongs further up"
        raise FormatError(
            f"line {number} of {path} {repeated}: seed {list(record.seed)} after {list(before.seed)}",
            hint="delete the line, or restore the order of the seeds",
        )


@contextlib.contextmanager
def _alone(file: BinaryIO, path: Path) -> Iterator[None]:
    """Keep other processes from writing the same file, if the system supports locks."""
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
