"""Builds a folder of shards with many workers; an interrupted build can be resumed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from tracr.datasets.records import Record
from tracr.datasets.shards import Settings, Shard, ShardTask, make_shard, shard_name
from tracr.datasets.stored import read_sidecar
from tracr.errors import FormatError
from tracr.workers import SERIAL, Workers
from tracr.writing import write_file, written_to

__all__ = ["build_shards", "outcomes"]

Progress = Callable[[int], None]


def build_shards(
    folder: str | Path,
    records: Iterable[Record],
    settings: Settings | None = None,
    workers: Workers = SERIAL,
    progress: Progress | None = None,
) -> int:
    """Compile the programs into shards, and keep existing shards. Returns how many programs were compiled.

    A shard's weights are written first and its JSON file last, each in one step: a shard with a JSON file is
    complete. A folder made with other settings or other programs is refused.
    """
    folder, settings = Path(folder), settings or Settings()
    with written_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob(".shard-*.tmp"):  # left by a killed process
            left.unlink()
    compiled = 0

    def missing() -> Iterator[ShardTask]:
        for number, group in enumerate(_groups(records, settings.shard_size)):
            task = ShardTask(number, group, settings)
            if not _is_there(folder, task):
                yield task
            elif progress is not None:
                progress(len(group))

    for shard in workers.map(make_shard, missing()):
        _write(folder, shard)
        many = len(read_sidecar(folder / f"{shard_name(shard.number)}.json")["programs"])
        compiled += many
        if progress is not None:
            progress(many)
    return compiled


def outcomes(folder: str | Path) -> Counter[str]:
    """How many programs were compiled, refused, wrong (the model) or failed (the compiler)."""
    counts: Counter[str] = Counter()
    for path in Path(folder).glob("shard-*.json"):
        counts.update(entry["status"] for entry in read_sidecar(path)["programs"])
    return counts


def _groups(records: Iterable[Record], size: int) -> Iterator[tuple[Record, ...]]:
    remaining = iter(records)
    while group := tuple(islice(remaining, size)):
        yield group


def _is_there(folder: Path, task: ShardTask) -> bool:
    """Whether a shard is complete; it is not if programs were drawn since it was written."""
    path = folder / f"{shard_name(task.number)}.json"
    if not path.exists():
        return False
    data = read_sidecar(path)
    there = [(entry["id"], entry["meaning"]) for entry in data["programs"]]
    wanted = [(record.id, record.meaning) for record in task.records]
    if data["settings"] != vars(task.settings) or there[: len(wanted)] != wanted[: len(there)]:
        raise FormatError(
            f"{path} holds other programs, or was made with other settings ({data['settings']})",
            hint="use the settings it was made with, or another folder",
        )
    weights = path.with_suffix(".safetensors")
    return len(there) >= len(wanted) and weights.exists() and weights.stat().st_size == data["weights"]["bytes"]


def _write(folder: Path, shard: Shard) -> None:
    name = shard_name(shard.number)
    with written_to(folder):
        (folder / f"{name}.json").unlink(missing_ok=True)  # the shard is incomplete while it grows
    for suffix, content in ((".safetensors", shard.weights), (".json", shard.sidecar)):
        write_file(folder / f"{name}{suffix}", content)
