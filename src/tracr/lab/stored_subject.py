"""Subjects as folders: a checkpoint that stock `transformers` loads, with the pairs of its case.

config.json, model.safetensors, ...   the checkpoint, as `model.save_pretrained` writes it
ground_truth.json                     nodes and edges
pairs.json                            clean and corrupted inputs, and the answers
pairs.parquet                         the same, if asked for
README.md                             the model card
"""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracr.adapters.huggingface.checkpoint import FOLDER, dump, is_unchanged
from tracr.arguments import path as as_path
from tracr.errors import FormatError
from tracr.extras import need
from tracr.ground_truth.ablations import Ablation
from tracr.ground_truth.data import Granularity
from tracr.ground_truth.pair_truth import PairTruth
from tracr.lab.one_case import Case
from tracr.lab.sampling import InputPair
from tracr.natural.pretrained import FOLDER as TWIN
from tracr.natural.pretrained import load as load_twin
from tracr.saving import models
from tracr.saving.folders import read_file, write_folder
from tracr.saving.json_reader import Reader, parse
from tracr.saving.values_json import encode_value

__all__ = ["StoredSubject", "is_subject", "read_subject", "write_subject"]

FORMAT, VERSION = "tracr pairs", 1
PAIRS, TABLE = "pairs.json", "pairs.parquet"
COLUMNS = ("clean", "corrupted", "clean_answer", "corrupted_answer")
LARGEST = 2**26


@dataclass(frozen=True, eq=False)
class StoredSubject:
    """A model and the pairs of its case, as `write_subject` wrote them."""

    name: str
    model: Any = field(repr=False)
    pairs: tuple[InputPair, ...] = field(repr=False)

    def minimal(self, ablation: Ablation = "resample", granularity: Granularity = "qkv") -> PairTruth:
        """The truth for the pairs."""
        found: PairTruth = self.model.ground_truth.minimal(pairs=self.pairs, ablation=ablation, granularity=granularity)
        return found


def write_subject(
    folder: str | Path,
    case: Case,
    model: Any = None,
    *,
    pairs: Sequence[InputPair] | None = None,
    parquet: bool = False,
    overwrite: bool = False,
) -> None:
    """Write a model of a case as a folder, completely or not at all.

    Args:
        folder: the folder; an existing one is replaced if it is a subject's.
        case: the case.
        model: a model of the case: the compiled one (the default), a variant, or a twin.
        pairs: the pairs; by default 64 of the case.
        parquet: write the pairs as Parquet too; needs pyarrow.
        overwrite: replace the folder, whatever its contents.
    """
    path = as_path("folder", folder, error=FormatError).resolve()
    models.check_target(path, overwrite, is_subject(path))
    chosen = tuple(case.pairs(64) if pairs is None else pairs)
    with tempfile.TemporaryDirectory() as temporary:
        inner = Path(temporary) / "model"
        (case.model if model is None else model).save_pretrained(inner)
        files = {
            str(file.relative_to(inner).as_posix()): file.read_bytes()
            for file in sorted(inner.rglob("*"))
            if file.is_file()
        }
    files["README.md"] += _about(case, len(chosen)).encode()
    files[PAIRS] = dump(_pairs_json(case.name, chosen))
    if parquet:
        files[TABLE] = _parquet(chosen)
    write_folder(path, files)


def is_subject(folder: Path) -> bool:
    """Whether a folder holds a subject."""
    return (folder / PAIRS).is_file() and (folder / "tracr.json").is_file()


def read_subject(folder: str | Path) -> StoredSubject:
    """The subject that `write_subject` wrote; raises a `FormatError` for anything else, and for changed weights."""
    path = as_path("folder", folder, error=FormatError)
    try:
        name, pairs = _read_pairs(path)
        if not is_unchanged(path):
            raise FormatError(
                "its weights were changed, and its truth is that of the weights that were written",
                hint="write it with lab.write_subject",
            )
        model: Any = load_twin(path) if (path / TWIN / "twin.json").is_file() else models.load(path / FOLDER)
    except FormatError as error:
        raise FormatError(
            f"{path} is not a subject that can be read: {error.diagnostic.what}", hint="write it with lab.write_subject"
        ) from None
    return StoredSubject(name, model, pairs)


def _read_pairs(path: Path) -> tuple[str, tuple[InputPair, ...]]:
    """The name of the case, and the pairs."""
    given = parse(read_file(path / PAIRS, LARGEST), PAIRS).object(("format", "version", "case", "pairs"))
    given["format"].choice((FORMAT,))
    if given["version"].integer() != VERSION:
        given["version"].fail(f"is not {VERSION}, which this tracr reads")
    return given["case"].text(), tuple(map(_pair, given["pairs"].items()))


def _pair(reader: Reader) -> InputPair:
    pair = InputPair(*(part.values() for part in reader.items(count=len(COLUMNS))))
    lengths = {len(getattr(pair, column)) for column in COLUMNS}
    if len(lengths) != 1 or lengths == {0}:
        reader.fail("has inputs and answers of different lengths, or empty ones")
    return pair


def _rows(pairs: Iterable[InputPair]) -> list[list[Any]]:
    return [[[encode_value(value) for value in getattr(pair, column)] for column in COLUMNS] for pair in pairs]


def _pairs_json(name: str, pairs: Sequence[InputPair]) -> dict[str, Any]:
    return {"format": FORMAT, "version": VERSION, "case": name, "pairs": _rows(pairs)}


def _parquet(pairs: Sequence[InputPair]) -> bytes:
    """A table with a row per pair; each cell is a list of values in JSON."""
    arrow, parquet = need("pyarrow", "lab"), need("pyarrow.parquet", "lab")
    columns = zip(*_rows(pairs), strict=True)
    cells = {name: list(map(json.dumps, column)) for name, column in zip(COLUMNS, columns, strict=True)}
    buffer = io.BytesIO()
    parquet.write_table(arrow.table(cells), buffer)
    return buffer.getvalue()


def _about(case: Case, count: int) -> str:
    return (
        f"\n## Pairs\n\n`{PAIRS}` has {count} pairs of a clean and a corrupted input of the case {case.name} "
        f"({case.description}), each with the right answers. Patch edges with the activations on the corrupted input.\n"
    )
