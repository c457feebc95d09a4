"""Reads and writes files of circuits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tracr.arguments import path as as_path
from tracr.errors import FormatError
from tracr.lab.formats.eap_json import KEYS, eap_json, read_eap
from tracr.lab.formats.edge_list import edge_list_json, read_edge_list
from tracr.lab.formats.found_circuit import FoundCircuit
from tracr.lab.formats.naming import naming_of
from tracr.lab.formats.problems import Problems, refuse
from tracr.lab.formats.sizes import CircuitSizes
from tracr.saving.folders import read_file
from tracr.saving.json_reader import parse
from tracr.writing import write_file

__all__ = ["LARGEST", "read", "read_into", "write"]

LARGEST = 2**27  # bytes of a file


def read(path: str | Path, sizes: CircuitSizes) -> FoundCircuit:
    """The circuit in a JSON file, for a model of these sizes: an EAP circuit, or edges with scores (edge_list.py).

    Raises a `FormatError` that names the first problems of the file with their places.
    """
    problems = Problems()
    circuit = read_into(path, sizes, problems)
    refuse(str(path), problems.texts)
    assert circuit is not None
    return circuit


def read_into(path: str | Path, sizes: CircuitSizes, problems: Problems) -> FoundCircuit | None:
    """The circuit in a file, as far as it can be read; what is wrong goes to `problems`."""
    file = as_path("path", path, error=FormatError)
    with problems.at(file.name):
        top = parse(read_file(file, LARGEST), file.name, constants=True)
        if isinstance(top.data, dict) and not {*KEYS}.isdisjoint(top.data):
            return read_eap(top, sizes, problems)
        return read_edge_list(top, sizes, problems)
    return None


def write(path: str | Path, circuit: FoundCircuit, sizes: CircuitSizes, format: str = "eap") -> None:
    """Write a circuit: as an EAP circuit, or in another format as edges with scores."""
    naming_of(format)
    content: dict[str, Any] = eap_json(circuit, sizes) if format == "eap" else edge_list_json(circuit, sizes, format)
    write_file(as_path("path", path, error=FormatError), json.dumps(content, indent=1).encode() + b"\n")
