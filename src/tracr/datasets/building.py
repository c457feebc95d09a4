"""Builds a folder of shards with many workers; an interrupted build can be resumed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from tracr.datasets.candidates import Candidate
from tracr.datasets.records import Record
from tracr.datasets.settings import Settings
from tracr.datasets.shards import Shard, ShardTask, assembled, make_shard, shard_name
from tracr.datasets.stored import read_sidecar
from tracr.errors import FormatError
from tracr.workers import SERIAL, Workers
from tracr.writing import write_file, written_to

__all__ = ["build_shards", "outcomes", "realisations"]

Progress = Callable[[int], None]


def build_shards(
    folder: str | Path,
    programs: Iterable[Record | Candidate],
    settings: Settings | None = None,
    workers: Workers = SERIAL,
    progress: Progress | None = None,
) -> int:
    """Compile the programs into shards, and keep existing shards. Returns how many programs the new shards have.

    Candidates whose outcomes are known are not compiled again. A shard's weights are written first and its JSON file
    last, each in one step: a shard with a JSON file is complete. A folder made with other settings or other programs is
    refused.
    """
    folder, settings = Path(folder), settings or Settings()
    with written_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob(".shard-*.tmp"):  # left by a killed process
            left.unlink()
    made = 0

    def finish(shard: Shard) -> None:
        nonlocal made
        _write(folder, shard)
        made += shard.programs
        if progress is not None:
            progress(shard.programs)

    def unknown() -> Iterator[ShardTask]:
        for number, group in enumerate(_groups(programs, settings.shard_size)):
            task = ShardTask(number, tuple(one.record for one in group), settings)
            known = [one.outcome for one in group if one.outcome is not None]
            if _is_there(folder, task):
                if progress is not None:
                    progress(len(group))
            elif len(known) == len(group):
                finish(assembled(task, known))
            else:
                yield task

    for shard in workers.map(make_shard, unknown()):
        finish(shard)
    return made


def outcomes(folder: str | Path) -> Counter[str]:
    """How many programs were compiled, refused, wrong (the model) or failed (the compiler)."""
    counts: Counter[str] = Counter()
    for path in Path(folder).glob("shard-*.json"):
        counts.update(entry["status"] for entry in read_sidecar(path)["programs"])
    return counts


def realisations(folder: str | Path) -> dict[str, Counter[str]]:
    """For each realisation how many models were `made` or `refused`, and how many are `right` on all checked inputs."""
    found: dict[str, Counter[str]] = {}
    for path in sorted(Path(folder).glob("shard-*.json")):
        for entry in read_sidecar(path)["programs"]:
            for one in entry.get("realisations", ()):
                counts = found.setdefault(one["name"], Counter())
                counts[one["status"]] += 1
                counts["right"] += one["status"] == "made" and not one["measured"]["wrong"]
    return found


def _groups(programs: Iterable[Record | Candidate], size: int) -> Iterator[tuple[Candidate, ...]]:
    remaining = (Candidate(one) if isinstance(one, Record) else one for one in programs)
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
    if data["settings"] != task.settings.to_json() or there[: len(wanted)] != wanted[: len(there)]:
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
