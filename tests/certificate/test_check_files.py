"""Malformed and hostile folders are rejected, in bounded time."""

from __future__ import annotations

import ast
import gc
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import tracr
import tracr_check
from tests.certificate.check_cases import example, write
from tracr.compress import compress
from tracr.rasp import rasp
from tracr_check import checking
from tracr_check.aggregated import moved_codes
from tracr_check.files import CERTIFICATE, CONTENT, MODEL, TABLES, WEIGHTS, parse_json, parse_tensors, sha256
from tracr_check.program import Program
from tracr_check.program_file import read_program, read_value
from tracr_check.variables import SOp
from tracr_check.verdict import Rejected


def saved(tmp_path: Path, change: Callable[[dict[str, bytes]], None] | None = None, honest: bool = True) -> Path:
    """A folder with changed files; `honest`: with the digests of the changed files."""
    folder = tmp_path / "model"
    content = write(example("hist"), folder)
    if change is not None:
        change(content)
        if honest:
            hints = json.loads(content[CERTIFICATE])
            hints["sha256"] = {name: sha256(content[name]) for name in CONTENT}
            content[CERTIFICATE] = json.dumps(hints).encode()
        for name, data in content.items():
            (folder / name).write_bytes(data)
    return folder


def in_json(name: str, change: Callable[[Any], None]) -> Callable[[dict[str, bytes]], None]:
    def changed(content: dict[str, bytes]) -> None:
        data = json.loads(content[name])
        change(data)
        content[name] = json.dumps(data).encode()

    return changed


def in_weights(name: str, value: float) -> Callable[[dict[str, bytes]], None]:
    """Put a number into the first place of an array."""

    def changed(content: dict[str, bytes]) -> None:
        data = bytearray(content[WEIGHTS])
        (size,) = struct.unpack("<Q", data[:8])
        start = 8 + size + json.loads(data[8 : 8 + size])[name]["data_offsets"][0]
        data[start : start + 8] = struct.pack("<d", value)
        content[WEIGHTS] = bytes(data)

    return changed


def test_a_saved_model_is_accepted(tmp_path: Path) -> None:
    """The verdict names the arithmetic, the lengths and the digests."""
    verdict = tracr_check.check_folder(saved(tmp_path))
    assert verdict.accepted
    assert verdict.lengths == (1, 4)
    assert verdict.arithmetic == "float32"
    assert verdict.padded
    assert set(verdict.sha256) == set(CONTENT)
    assert "1 to 4 tokens" in verdict.theorem


def delete(*path: str) -> Callable[[Any], None]:
    def change(data: Any) -> None:
        for step in path[:-1]:
            data = data[step]
        del data[path[-1]]

    return change


def put(value: Any, *path: Any) -> Callable[[Any], None]:
    def change(data: Any) -> None:
        for step in path[:-1]:
            data = data[step]
        data[path[-1]] = value

    return change


BAD_JSON = [
    (MODEL, delete("program")),
    (MODEL, put(10**9, "options", "max_seq_len")),
    (MODEL, put([1, 10**9], "program", "lengths")),
    (MODEL, put([0, 4], "program", "lengths")),
    (MODEL, put([2, 1], "program", "lengths")),
    (MODEL, put([], "program", "outputs")),
    (MODEL, put([["hist", 0, 10**6]], "outputs")),
    (MODEL, put("none", "program", "sops", 0, "op", "kind")),
    (MODEL, put(["z"], "options", "vocab")),
    (MODEL, put(0, "program", "sops", 1, "id")),
    (MODEL, put({}, "variant")),
    (CERTIFICATE, put(1, "version")),
    (CERTIFICATE, put("float8", "arithmetic")),
    (CERTIFICATE, put(None, "padded")),
    (CERTIFICATE, put([], "layers")),
    (CERTIFICATE, put({"99": "c9.9"}, "layers", 0, "heads", 0)),
    (CERTIFICATE, put({"100000": {"kind": "pair", "of": [100000, 0]}}, "aux")),
    (CERTIFICATE, put({"0": {"kind": "width", "selector": 0}}, "aux")),
    (CERTIFICATE, delete("sums")),
]


@pytest.mark.parametrize(("name", "change"), BAD_JSON)
def test_changed_json_is_rejected(tmp_path: Path, name: str, change: Callable[[Any], None]) -> None:
    """A changed description of the program, or hints that lead nowhere."""
    verdict = tracr_check.check_folder(saved(tmp_path, in_json(name, change)))
    assert not verdict.accepted
    assert verdict.reason


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300, 1e-310])
def test_extreme_weights_are_rejected(tmp_path: Path, value: float) -> None:
    """NaN, infinite, huge and tiny weights."""
    assert not tracr_check.check_folder(saved(tmp_path, in_weights("embed.W_E", value))).accepted


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("table", ["sops", "selectors"])
def test_tables_of_fractions_are_rejected(tmp_path: Path, table: str, kind: type[np.floating[Any]]) -> None:
    """A code between two codes would be cut off here, and could be rounded elsewhere: the program would be two."""
    content = write(example("frac_prevs"), tmp_path)
    tables = parse_tensors(content[TABLES], TABLES)
    name = next(name for name in tables if name.startswith(table))
    for added in (0.0, 0.4):
        changed = tables[name].astype(kind) + kind(added)
        data = safetensors.numpy.save({**tables, name: changed})
        hints = json.loads(content[CERTIFICATE])
        hints["sha256"][TABLES] = sha256(data)
        (tmp_path / TABLES).write_bytes(data)
        (tmp_path / CERTIFICATE).write_text(json.dumps(hints))
        verdict = tracr_check.check_folder(tmp_path)
        assert not verdict.accepted
        assert "type" in verdict.reason


@pytest.mark.parametrize("name", [*CONTENT, CERTIFICATE])
@pytest.mark.parametrize("size", [0, 7, 60])
def test_short_files_are_rejected(tmp_path: Path, name: str, size: int) -> None:
    """Files that end early."""

    def change(content: dict[str, bytes]) -> None:
        content[name] = content[name][:size]

    assert not tracr_check.check_folder(saved(tmp_path, change, honest=name != CERTIFICATE)).accepted


def test_changed_files_are_rejected(tmp_path: Path) -> None:
    """The digests of the certificate must be those of the files."""
    verdict = tracr_check.check_folder(saved(tmp_path, in_weights("embed.W_E", 0.75), honest=False))
    assert not verdict.accepted
    assert "not the file" in verdict.reason


@pytest.mark.parametrize("name", ["compression.json", "twin.json", "learned.json", "twin", "tracr", "tracr.json"])
def test_a_folder_in_which_another_model_would_be_read_is_rejected(tmp_path: Path, name: str) -> None:
    """`tracr.load` reads a compressed model, a twin, a learned model or a checkpoint there."""
    folder = saved(tmp_path)
    (folder / "README.md").write_text("")
    assert tracr_check.check_folder(folder).accepted
    (folder / name).mkdir()
    assert tracr_check.check_folder(folder).reason == f"the model and {name!r} are in one folder"


def test_a_certificate_beside_a_compressed_model_is_rejected(tmp_path: Path) -> None:
    """The folder of a compressed model has the files of the model that it was made from; `tracr.load` reads both."""
    model = tracr.compile(rasp.Map(lambda token: {"a": "x", "b": "y"}[token], rasp.tokens).named("out"), "ab", 3)
    compress(model, 1, "pca").save(tmp_path / "compressed")
    model.save(tmp_path / "plain", certificate=True)
    shutil.copy(tmp_path / "plain" / CERTIFICATE, tmp_path / "compressed")
    assert tracr_check.check_folder(tmp_path / "plain").accepted
    assert tracr.load(tmp_path / "compressed")("ab") != model("ab")
    assert not tracr_check.check_folder(tmp_path / "compressed").accepted


def test_json_has_each_name_once() -> None:
    """A name twice, NaN, infinite numbers and deep nesting."""
    for text in ('{"a": 1, "a": 2}', '{"a": NaN}', '{"a": 1e999}', '{"a": -Infinity}'):
        with pytest.raises(Rejected):
            parse_json(text.encode(), "x")
    with pytest.raises(RecursionError):
        parse_json(b"[" * 10**6, "x")


def header(entries: dict[str, Any], data: bytes = b"") -> bytes:
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text + data


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<Q", 2**60),
        header({"a": {"dtype": "F64", "shape": [2**31, 2**31], "data_offsets": [0, 8]}}, b"x" * 8),
        header({"a": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}),
        header({"a": {"dtype": "F64", "shape": [1], "data_offsets": [8, 16]}}, b"x" * 16),
        header({"a": {"dtype": "F64", "shape": [-1], "data_offsets": [0, 8]}}, b"x" * 8),
        header(
            {
                "a": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]},
                "b": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]},
            },
            b"x" * 8,
        ),
        header({"a": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}, b"x" * 9),
        header({"__metadata__": {"format": "flax"}, "a": {"dtype": "I8", "shape": [1], "data_offsets": [0, 1]}}, b"x"),
    ],
)
def test_arrays_fill_the_file(data: bytes) -> None:
    """Huge, missing, overlapping and unused parts of a file; arrays that transformers reads as another framework's."""
    with pytest.raises((Rejected, KeyError, ValueError)):
        parse_tensors(data, TABLES)


def test_the_command(tmp_path: Path) -> None:
    """Exit 0 and ACCEPTED, or exit 1 and REJECTED; without numpy's or tracr's help in the source."""
    folder = saved(tmp_path)
    run = subprocess.run([sys.executable, "-m", "tracr_check", str(folder)], capture_output=True, text=True)
    assert run.returncode == 0
    assert run.stdout.startswith("ACCEPTED")
    run = subprocess.run([sys.executable, "-m", "tracr_check", str(tmp_path), "--json"], capture_output=True, text=True)
    assert run.returncode == 1
    assert not json.loads(run.stdout)["accepted"]


def test_characters_that_the_terminal_lacks_are_escaped(tmp_path: Path) -> None:
    """The verdict is printed whole, and no traceback."""
    command = [sys.executable, "-m", "tracr_check", str(tmp_path / "größe")]
    found = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert (found.returncode, found.stderr) == (1, "")
    assert found.stdout == "REJECTED: there is no folder 'gr\\xf6\\xdfe'\n"


def test_the_checker_imports_numpy_only() -> None:
    """No file of the checker imports the compiler or any other package."""
    allowed = {"tracr_check", "numpy", *sys.stdlib_module_names}
    for path in Path(tracr_check.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert {name.split(".")[0] for name in names} <= allowed, path


def test_the_files_are_listed_in_reading_order() -> None:
    """The package's docstring lists every file once, and each imports only files that are listed before it."""
    listed = re.findall(r"^    (\w+)\.py ", str(tracr_check.__doc__), re.M)
    folder = Path(str(tracr_check.__file__)).parent
    assert sorted(listed) == sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("__"))
    for place, name in enumerate(listed):
        used = re.findall(r"^from tracr_check\.(\w+) import", (folder / f"{name}.py").read_text(encoding="utf-8"), re.M)
        assert set(used) <= set(listed[:place]), name


def test_a_reason_cannot_look_like_a_verdict(tmp_path: Path) -> None:
    """Names in the folder are quoted in reasons and assumptions, but cannot begin a line."""

    def change(content: dict[str, bytes]) -> None:
        entry = {"dtype": "I8", "shape": [1], "data_offsets": [5, 6]}
        content[WEIGHTS] = header({"x\nACCEPTED\x1b[2J": entry}, b"x" * 6)

    text = str(tracr_check.check_folder(saved(tmp_path, change)))
    assert text.startswith("REJECTED: ")
    assert "ACCEPTED" in text
    assert text.isprintable()


def test_a_check_keeps_nothing_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program and its tables are freed: a process may check many folders."""
    programs: list[weakref.ref[Program]] = []

    def read(*given: Any) -> Program:
        program = read_program(*given)
        programs.append(weakref.ref(program))
        return program

    monkeypatch.setattr(checking, "read_program", read)
    assert tracr_check.check_folder(saved(tmp_path)).accepted
    gc.collect()
    assert [program() for program in programs] == [None]


def test_old_hints_are_refused_with_what_to_do(tmp_path: Path) -> None:
    """Version 1 had other hints: the reason says so."""
    verdict = tracr_check.check_folder(saved(tmp_path, in_json(CERTIFICATE, put(1, "version"))))
    assert verdict.reason == (
        "the certificate has version 1, and this checker reads version 2: certify the model again"
    )


def test_values_are_compared_as_python_compares_them() -> None:
    """Values of types that JSON lacks are no tuples; (1,), (1.0,) and (True,) are one value, so are 1 and 2/2."""
    given: list[Any] = [{"tuple": ["a set", "[1]"]}, {"frozenset": [1]}, {"tuple": [1]}, {"fraction": [1, 2]}]
    alike: list[Any] = [{"fraction": [2, 4]}, {"tuple": [True]}, {"frozenset": [1.0]}, given[0]]
    source, target = (SOp(0, "x", {"kind": "tokens"}, tuple(map(read_value, order))) for order in (given, alike))
    assert moved_codes(source, target).tolist() == [3, 2, 1, 0]
    for other in ({"set": [1]}, {"fraction": "1"}, {"decimal": "NaN"}, {"decimal": "1e99999"}, {"bytes": "?"}, [1]):
        with pytest.raises((Rejected, ValueError)):
            read_value(other)
