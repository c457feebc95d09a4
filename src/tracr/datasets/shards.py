"""A shard: the models of some programs in one safetensors file, and their descriptions in a JSON file beside it.

This module reads and writes no files, so a shard can be made on any machine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from tracr.datasets.outcomes import ProgramOutcome, remade
from tracr.datasets.packed_weights import safetensors_of
from tracr.datasets.records import Record
from tracr.datasets.settings import Settings
from tracr.version import __version__

__all__ = ["FORMAT", "VERSIONS", "Settings", "Shard", "ShardTask", "assembled", "make_shard", "shard_name"]

FORMAT, VERSIONS = "tracr shard", (1, 2)
"""Version 2 has realisations, version 1 has none."""


@dataclass(frozen=True)
class ShardTask:
    """A shard to make."""

    number: int
    records: tuple[Record, ...]
    settings: Settings


@dataclass(frozen=True)
class Shard:
    """The content of a shard's two files, and how many programs it has."""

    number: int
    weights: bytes
    sidecar: bytes
    programs: int


def shard_name(number: int) -> str:
    """The name of the files of a shard, without suffix."""
    return f"shard-{number:05d}"


def make_shard(task: ShardTask) -> Shard:
    """Draw the programs again, compile them, check the models, and gather them. The same task gives the same bytes."""
    return assembled(task, [remade(record, task.settings) for record in task.records])


def assembled(task: ShardTask, outcomes: Sequence[ProgramOutcome]) -> Shard:
    """The shard of programs whose outcomes are known."""
    pairs = list(zip(task.records, outcomes, strict=True))
    weights = safetensors_of(
        (f"{record.id}{prefix}", model) for record, outcome in pairs for prefix, model in outcome.weights.items()
    )
    head = {
        "format": FORMAT,
        "version": VERSIONS[bool(task.settings.realisations)],
        "tracr": __version__,
        "settings": task.settings.to_json(),
        "weights": {
            "file": f"{shard_name(task.number)}.safetensors",
            "bytes": len(weights),
            "sha256": hashlib.sha256(weights).hexdigest(),
        },
    }
    sidecar = [json.dumps(head, allow_nan=False)[:-1], ', "programs": [']
    for number, (record, outcome) in enumerate(pairs):
        sidecar += [', {"id": ' if number else '{"id": ', f"{record.id}, ", outcome.entry]
    sidecar.append("]}\n")
    return Shard(task.number, weights, "".join(sidecar).encode(), len(pairs))
