"""The results of many runs: one Parquet file per finished group of runs, and one file of all results.

A file is written completely or not at all.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tracr.errors import FormatError
from tracr.extras import need
from tracr.writing import replaced, written_to

__all__ = ["Store"]

Row = dict[str, Any]
Key = tuple[Any, ...]
SETTINGS, PARTS, RESULTS = "settings.json", "parts", "results.parquet"
ROWS_TOGETHER = 2_000  # rows in one group of the file: small groups make it large


class Store:
    """A folder of results. A run whose result is in the folder is not repeated.

    `settings`, and the digest of each model by its name, prevent mixing two sweeps; models may be added.

    Args:
        folder: the folder.
        settings: what all runs have in common.
        models: the digest of each model, by its name.
        columns: the columns, each with its type: "string", "int64", "float64", "bool" or `["float32"]`, a list of such.
            There are the columns "status" ("done" or "failed") and "error".
        key: the columns that tell runs apart.
    """

    def __init__(
        self,
        folder: str | Path,
        settings: Mapping[str, Any],
        models: Mapping[str, str],
        columns: Mapping[str, str | list[str]],
        key: Sequence[str],
    ) -> None:
        self.folder, self._columns, self._key = Path(folder), columns, list(key)
        self.parts = self.folder / PARTS
        with written_to(self.parts):
            self.parts.mkdir(parents=True, exist_ok=True)
        self._arrow, self._parquet = need("pyarrow", "sweep"), need("pyarrow.parquet", "sweep")
        before = self._settings()
        for name, value in {**{f"model {name}": digest for name, digest in models.items()}, **settings}.items():
            if before.setdefault(name, value) != value:
                raise FormatError(
                    f"{self.folder} has results of a sweep with another {name}",
                    hint="choose another folder, or the settings in its settings.json",
                )
        self._write(self.folder / SETTINGS, lambda path: path.write_text(json.dumps(before, indent=1) + "\n"))

    def _settings(self) -> dict[str, Any]:
        known = self.folder / SETTINGS
        try:
            given: dict[str, Any] = json.loads(known.read_text()) if known.exists() else {}
        except ValueError:
            raise FormatError(f"{known} is damaged", hint="choose another folder") from None
        return given

    @property
    def schema(self) -> Any:
        """The columns."""
        return self._arrow.schema([(name, self._type(kind)) for name, kind in self._columns.items()])

    def _type(self, kind: str | list[str]) -> Any:
        if isinstance(kind, list):
            return self._arrow.list_(self._type(kind[0]))
        return self._arrow.type_for_alias(kind)

    def done(self, *, retry: Collection[Key] = ()) -> set[Key]:
        """The runs with a result; failed ones among `retry` are deleted first, all others stay."""
        found: set[Key] = set()
        for path in self._files():
            rows = self._parquet.read_table(path, columns=[*self._key, "status"]).to_pylist()
            again = [row["status"] != "done" and self._key_of(row) in retry for row in rows]
            if any(again):
                whole = self._parquet.read_table(path).to_pylist()
                rows = [row for row, left_out in zip(whole, again, strict=True) if not left_out]
                self._write(path, lambda place, rows=rows: self._table(rows, place))
            found |= set(map(self._key_of, rows))
        return found

    def _key_of(self, row: Row) -> Key:
        return tuple(row[name] for name in self._key)

    def add(self, rows: list[Row]) -> None:
        """Write the results of a group."""
        path = self.parts / f"{secrets.token_hex(8)}.parquet"
        self._write(path, lambda place: self._table(rows, place))

    def rows(self) -> Iterator[Row]:
        """Every result, read one file at a time."""
        for path in self._files():
            yield from self._parquet.read_table(path).to_pylist()

    def finish(self) -> Path:
        """Write all results into one Parquet file, without holding them all in memory."""

        def write(path: Path) -> None:
            with self._parquet.ParquetWriter(path, self.schema, compression="zstd") as writer:
                waiting: list[Any] = []
                for part in self._files():
                    waiting.append(self._with_all_columns(self._parquet.read_table(part)))
                    if sum(map(len, waiting)) >= ROWS_TOGETHER:
                        writer.write_table(self._arrow.concat_tables(waiting))
                        waiting = []
                if waiting:
                    writer.write_table(self._arrow.concat_tables(waiting))

        target = self.folder / RESULTS
        self._write(target, write)
        return target

    def _files(self) -> list[Path]:
        return sorted(self.parts.glob("*.parquet"))

    def _table(self, rows: list[Row], path: Path) -> None:
        self._parquet.write_table(self._arrow.Table.from_pylist(rows, schema=self.schema), path)

    def _with_all_columns(self, table: Any) -> Any:
        """A table of an earlier version with the columns that were added since, empty."""
        for field in self.schema:
            if field.name not in table.schema.names:
                table = table.append_column(field, self._arrow.nulls(table.num_rows, field.type))
        return table.select(self.schema.names)

    def _write(self, path: Path, write: Any) -> None:
        with replaced(path) as temporary:
            write(temporary)
