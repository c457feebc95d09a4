"""Reads the files of a folder: JSON and safetensors, with every size checked before anything is allocated."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr_check.verdict import need, reject

__all__ = [
    "CERTIFICATE",
    "CONTENT",
    "MODEL",
    "TABLES",
    "WEIGHTS",
    "alone",
    "numbers_sha256",
    "parse_json",
    "parse_tensors",
    "read_bytes",
    "sha256",
]

MODEL, TABLES, WEIGHTS, CERTIFICATE = "model.json", "tables.safetensors", "weights.safetensors", "certificate.json"
CONTENT = (MODEL, TABLES, WEIGHTS)
BESIDE = {"manifest.json", "verdict.json", "README.md", "LICENSE"}  # what a saved model has besides
LARGEST = {MODEL: 2**25, TABLES: 2**27, WEIGHTS: 2**29, CERTIFICATE: 2**22}
HEADER = 2**22
EMPTY = 2**16  # rows, of arrays without numbers
NUMBERS = 2**26  # of all arrays in a file: they become float64
KINDS = {"F64": "<f8", "F32": "<f4", "I32": "<i4", "I8": "|i1"}


def read_bytes(folder: Path, name: str, kind: str = "") -> bytes:
    """The content of a plain file that is not larger than files of its name (or of another kind) may be."""
    path, most = folder / name, LARGEST[kind or name]
    need(folder.is_dir(), f"there is no folder {folder.name!r:.100}")
    missing = "; a model is saved with one by model.save(folder, certificate=True)" if name == CERTIFICATE else ""
    need(path.is_file(), f"there is no file {name}{missing}")
    with path.open("rb") as file:
        data = file.read(most + 1)
    need(len(data) <= most, f"{name} has more than {most:,} bytes")
    return data


def alone(folder: Path, names: Iterable[str]) -> None:
    """A folder holds files of these names only: of any other one a program may read another model.

    With `compression.json`, say, `tracr.load` reads a compressed model, and transformers reads `pytorch_model.bin`.
    """
    others = {one.name for one in folder.iterdir() if not one.name.startswith(".")} - BESIDE - set(names)
    need(not others, f"the model and {min(others, default='')!r:.100} are in one folder")


def sha256(data: bytes) -> str:
    """The digest of a file."""
    return hashlib.sha256(data).hexdigest()


def numbers_sha256(
    arrays: Mapping[str, NDArray[Any]], cast: Callable[[NDArray[Any]], NDArray[Any]] = np.asarray
) -> str:
    """The digest of the numbers of some arrays, cast to a format, whatever kind of file holds them.

    It is that of the name and shape (as JSON) and the numbers (float64, in order; -0 counts as 0) of each array, in the
    order of the names. Arrays with one digest have the same names, shapes and numbers.

    >>> numbers_sha256({"a": np.ones(2, np.float32)}) == numbers_sha256({"a": np.ones(2)})
    True
    """
    total = hashlib.sha256()
    for name in sorted(arrays):
        total.update(json.dumps([name, list(arrays[name].shape)]).encode("ascii"))
        total.update((np.ascontiguousarray(cast(arrays[name]), "<f8") + 0.0).tobytes())
    return total.hexdigest()


def parse_json(data: bytes, name: str) -> Any:
    """JSON in UTF-8 without names given twice, NaN or infinite numbers."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        need(len(found) == len(pairs), f"{name} has a name twice in one object")
        return found

    def finite(text: str) -> float:
        number = float(text)
        need(math.isfinite(number), f"{name} has the number {text[:20]}")
        return number

    def refuse(text: str) -> Any:
        reject(f"{name} has the number {text}")

    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=unique, parse_float=finite, parse_constant=refuse)
    except ValueError as error:
        reject(f"{name} is no JSON: {error}")


def parse_tensors(data: bytes, name: str) -> dict[str, NDArray[Any]]:
    """The arrays of a safetensors file. They must fill the file without gaps, in the order of their offsets."""
    need(len(data) >= 8, f"{name} is too short")
    (size,) = struct.unpack("<Q", data[:8])
    need(size <= min(HEADER, len(data) - 8), f"{name} has a header of {size:,} bytes")
    header = parse_json(data[8 : 8 + size], name)
    need(isinstance(header, dict), f"{name} has no header")
    need(header.pop("__metadata__", {}).get("format", "pt") == "pt", f"{name} has the arrays of another framework")
    entries = [(tuple(entry["data_offsets"]), key, entry) for key, entry in header.items()]
    arrays, place, numbers = {}, 0, 0
    for (start, stop), key, entry in sorted(entries, key=lambda one: one[0]):
        kind, shape = np.dtype(KINDS[entry["dtype"]]), entry["shape"]
        whole = all(type(one) is int and 0 <= one <= 2**31 for one in (*shape, stop)) and len(shape) <= 4
        need(whole and start == place, f"{name}: {key} has offsets {start}, {stop}")
        need(math.prod(one or 1 for one in shape) <= max(len(data), EMPTY), f"{name}: {key} has too many empty rows")
        need(math.prod(shape) * kind.itemsize == stop - start, f"{name}: {key} has another size than its shape")
        need(8 + size + stop <= len(data), f"{name}: {key} lies outside the file")
        arrays[key] = np.frombuffer(data, kind, math.prod(shape), 8 + size + start).reshape(shape)
        place, numbers = stop, numbers + math.prod(shape)
        need(numbers <= NUMBERS, f"{name} has more than {NUMBERS:,} numbers")
    need(8 + size + place == len(data), f"{name} has bytes that belong to no array")
    return arrays
