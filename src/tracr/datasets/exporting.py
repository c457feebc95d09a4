"""Writes the models of a folder of shards as arrays of numpy or as Parquet files; reading them needs no tracr.

Both have one row for each model. A folder appears in one step when it is complete; an existing one is never changed.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from tracr.datasets.table_rows import AXES, ModelTable, TableRow
from tracr.errors import FormatError, LimitError
from tracr.extras import need
from tracr.writing import sibling, sync, written_to

__all__ = ["check_target", "write_padded", "write_parquet"]

Progress = Callable[[int], None]
MOST = 8 * 2**30  # bytes of padded arrays, unless more are allowed
GROUP = 32  # models of one row group of a Parquet file
FILE = 2_000  # models of one Parquet file


def check_target(kind: str, folder: Path) -> None:
    """Refuse a folder that exists, or "parquet" without pyarrow: before the work, not after it."""
    if folder.exists():
        raise FormatError(f"{folder} exists", hint="delete it, or choose another folder")
    if kind == "parquet":
        need("pyarrow.parquet", "parquet")


def write_padded(
    table: ModelTable, folder: str | Path, *, max_bytes: int = MOST, progress: Progress | None = None
) -> Path:
    """Write one array for each kind of weight, `W_Q.npy` [model, layer, head, dimension, inside], and its mask.

    `rows.jsonl` has the facts of each model, in the order of the arrays, `axes.json` the names and sizes of the axes,
    and `train.npy` (for each split) the numbers of its rows.
    """
    if table.bytes > max_bytes:
        raise LimitError(
            f"the padded arrays of {table.models:,} models take {table.bytes / 2**30:.1f} GiB, more than "
            f"{max_bytes / 2**30:.1f} GiB: every model takes as much as the largest sizes of all",
            hint="bound the models (tracr sample --max-parameters N --max-layers N), or write Parquet, whose zeros are "
            "compressed",
        )
    with _new_folder(Path(folder)) as made:
        arrays: dict[str, NDArray[Any]] = {}
        for kind, shape in table.shapes.items():
            for name, dtype in ((kind, np.float32), (f"{kind}.mask", np.bool_)):
                full = table.models, *shape
                arrays[name] = open_memmap(made / f"{name}.npy", mode="w+", dtype=dtype, shape=full)
        splits: dict[str, list[int]] = {name: [] for name in sorted(set(table.splits.values()))}
        with open(made / "rows.jsonl", "w", encoding="utf-8") as file:
            for number, row in enumerate(table.rows()):
                for kind, weights in row.weights.items():
                    arrays[kind][number], arrays[f"{kind}.mask"][number] = weights, row.masks[kind]
                file.write(json.dumps({"row": number, **row.facts}) + "\n")
                splits[row.facts["split"]].append(number)
                _advance(progress)
        for array in arrays.values():
            array.flush()  # type: ignore[attr-defined]
        for name, numbers in splits.items():
            np.save(made / f"{name}.npy", np.array(numbers, dtype=np.int64))
        _describe(made, table)
    return Path(folder)


def write_parquet(table: ModelTable, folder: str | Path, *, progress: Progress | None = None) -> Path:
    """Write `train/part-00000.parquet` and so on, for each split; `datasets.load_dataset("parquet", ...)` reads them.

    The columns are the facts of a model, its weights as nested lists of one shape, and the sizes of their used part.
    """
    arrow, parquet = need("pyarrow", "parquet"), need("pyarrow.parquet", "parquet")
    with _new_folder(Path(folder)) as made, contextlib.ExitStack() as stack:
        files: dict[str, _Parts] = {}
        remaining = table.rows()
        while rows := list(islice(remaining, GROUP)):
            for name in dict.fromkeys(row.facts["split"] for row in rows):
                if name not in files:
                    files[name] = stack.enter_context(_Parts(made / name, parquet))
                own = [row for row in rows if row.facts["split"] == name]
                files[name].write(_arrow_table(arrow, own, table))
            for _ in rows:
                _advance(progress)
        stack.close()
        _describe(made, table)
    return Path(folder)


class _Parts(contextlib.AbstractContextManager["_Parts"]):
    """The Parquet files of a split, each with at most about `FILE` models."""

    def __init__(self, folder: Path, parquet: Any) -> None:
        folder.mkdir()
        self.folder, self.parquet = folder, parquet
        self.number = self.held = 0
        self.file: Any = None

    def write(self, rows: Any) -> None:
        if self.file is None:
            path = self.folder / f"part-{self.number:05d}.parquet"
            self.file = self.parquet.ParquetWriter(path, rows.schema, compression="zstd")
        self.file.write_table(rows)
        self.held += rows.num_rows
        if self.held >= FILE:
            self._close()

    def _close(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file, self.held, self.number = None, 0, self.number + 1

    def __exit__(self, *_: object) -> None:
        self._close()


def _arrow_table(arrow: Any, rows: list[TableRow], table: ModelTable) -> Any:
    """Some models as a table of pyarrow."""
    texts, whole = arrow.string(), arrow.int64()
    known = {str: texts, int: whole, bool: arrow.bool_(), float: arrow.float64(), list: arrow.list_(whole)}
    columns, names = [], []
    for name in rows[0].facts:
        kind = {"amount": float, "realisation_seed": str}.get(name) or type(rows[0].facts[name])
        columns.append(arrow.array([row.facts[name] for row in rows], type=known[kind]))
        names.append(name)
    for name, shape in table.shapes.items():
        stacked = arrow.array(np.concatenate([row.weights[name].ravel() for row in rows]))
        for length in reversed(shape):
            stacked = arrow.FixedSizeListArray.from_arrays(stacked, length)
        columns.append(stacked)
        names.append(name)
    return arrow.Table.from_arrays(columns, names=names)


def _describe(folder: Path, table: ModelTable) -> None:
    content = {
        "format": "tracr models",
        "version": 1,
        "models": table.models,
        "canonical_order": table.in_order,
        "sizes": table.sizes,
        "axes": {kind: list(axes) for kind, axes in AXES.items()},
    }
    (folder / "axes.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


@contextlib.contextmanager
def _new_folder(target: Path) -> Iterator[Path]:
    """A temporary folder that becomes `target` if the block ends without an error."""
    check_target("", target)
    temporary = sibling(target)
    try:
        with written_to(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            for left in target.parent.glob(f".{target.name[:80]}.*.tmp"):  # left by a killed process
                shutil.rmtree(left, ignore_errors=True)
            temporary.mkdir()
            yield temporary
            temporary.rename(target)
        sync(target.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _advance(progress: Progress | None) -> None:
    if progress is not None:
        progress(1)
