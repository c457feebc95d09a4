"""Folders that were changed on purpose and signed again are refused."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.agreement import load_compiled
from tests.saving.saved import assert_same, refused, sign
from tracr.errors import FormatError


def edit(path: str, value: Any) -> Callable[[Any], None]:
    """Put a value at a dotted path of a document; `...` deletes."""

    def apply(document: Any) -> None:
        *parents, last = (int(part) if part.isdigit() else part for part in path.split("."))
        for part in parents:
            document = document[part]
        if value is ...:
            del document[last]
        else:
            document[last] = value

    return apply


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("extra", 1, "unknown 'extra'"),
        ("options", ..., "lacks 'options'"),
        ("options", [], "not a JSON object"),
        ("options.max_seq_len", 10**12, "positions.*memory"),
        ("options.max_seq_len", 0, "rows|positive"),
        ("options.max_seq_len", True, "not an integer"),
        ("options.level", 7, "level"),
        ("options.level", 1, "labels|shape|lacks|compiles"),
        ("options.vocab", [], "vocabulary is empty"),
        ("options.vocab", ["a", "a"], "twice"),
        ("options.vocab", ["(", "a"], "not those of the input"),
        ("options.vocab.0", {"tuple": "x"}, "not a value"),
        ("options.vocab.0", {"pickle": "gASV"}, "not a value"),
        ("options.vocab.0", [1], "not a value"),
        ("options.bos", "(", "BOS"),
        ("options.causal", 1, "true or false"),
        ("program.lengths", [1, 99], "not between"),
        ("program.lengths", [1], "elements"),
        ("program.outputs", [], "outputs"),
        ("program.outputs.0.1", 999, "outputs"),
        ("program.sops.0.id", 1, "another s-op|does not exist|before"),
        ("program.sops.0.id", -1, "not between"),
        ("program.sops.0.op.kind", "eval", "not one of"),
        ("program.sops.0.op", None, "not one of"),
        ("program.sops.0.op.code", "import os", "unknown 'code'"),
        ("program.sops.0.domain.kind", "any", "not one of"),
        ("program.sops.0.domain.values", ["(", "("], "twice"),
        ("program.sops.0.domain.values", [], "not those of the input"),
        ("program.sops.0.encoding", "binary", "not one of"),
        ("program.sops.0.label", 3, "not a string"),
        ("program.sops", [], "outputs|tables without an s-op"),
        ("program.selectors", [], "tables without an s-op|does not exist"),
        ("program.selectors.0.keys", 77, "does not exist"),
        ("program.selectors.0.counts", [3, 1], "ascending"),
        ("residual", [], "labels are not"),
        ("residual.0", "tokens:x", "labels are not"),
        ("outputs.0.2", 3, "labels are not"),
        ("graph.nodes.0.2", [5], "before one of its inputs"),
        ("options.passes", ["share", "share"], "has a name twice"),
        ("graph.outputs.0.1", 99, "no node"),
        ("source", 3, "not a string"),
    ],
)
def test_hostile_programs_are_refused(folder: Path, path: str, value: Any, message: str) -> None:
    """Signed as if they had been saved like that."""
    document = json.loads((folder / "model.json").read_text())
    edit(path, value)(document)
    (folder / "model.json").write_text(json.dumps(document))
    sign(folder)
    refused(folder, message)


@pytest.mark.parametrize(
    "text",
    ["", "null", "{}", "[" * 200_000, '{"a":' * 50_000, "NaN", '{"options": Infinity}', "1" * 10_000, '"\\ud800"'],
)
def test_json_that_is_no_model_is_refused(folder: Path, text: str) -> None:
    """Nested without end, not a number, no object."""
    (folder / "model.json").write_text(text)
    sign(folder)
    refused(folder, r"model\.json")


def change(folder: Path, name: str, f: Callable[[dict[str, Any]], None]) -> None:
    tensors = safetensors.numpy.load_file(folder / name)
    f(tensors)
    safetensors.numpy.save_file(tensors, folder / name)
    sign(folder)


def weaken(tensors: dict[str, Any]) -> None:
    tensors["unembed.W_U"] = tensors["unembed.W_U"] * 0.999


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda t: t.pop("embed.W_E"), "no embed.W_E"),
        (lambda t: t.pop("unembed.W_U"), "lacks or should not have unembed.W_U"),
        (lambda t: t.update(extra=np.zeros(3)), "lacks or should not have extra"),
        (lambda t: t.update({"unembed.W_U": t["unembed.W_U"].astype(np.float32)}), "float32, not float64"),
        (lambda t: t.update({"unembed.W_U": t["unembed.W_U"][:, :1].copy()}), "shape"),
        (lambda t: t.update({"unembed.W_U": np.full_like(t["unembed.W_U"], np.nan)}), "not finite"),
        (lambda t: t.update({"embed.W_E": np.zeros(3)}), "no embed.W_E"),
        (weaken, "differs from the weights"),
    ],
)
def test_weights_that_are_not_the_programs_are_refused(folder: Path, f: Any, message: str) -> None:
    """Missing, of another shape or type, not finite, or simply changed; the program can still be compiled anew."""
    original = load_compiled(folder)
    change(folder, "weights.safetensors", f)
    refused(folder, message)
    if message == "differs from the weights":
        assert_same(original, load_compiled(folder, recompile=True))


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda t: t.clear(), "no table"),
        (lambda t: t.update(extra=np.zeros(3, dtype=np.int32)), "tables without an s-op"),
        (lambda t: t.update({k: v.astype(np.int64) for k, v in t.items()}), "of type int64"),
        (lambda t: t.update({k: v - 9 for k, v in t.items()}), "without a meaning"),
        (lambda t: t.update({k: v + 99 for k, v in t.items()}), "outside its domain|neither 0 nor 1"),
        (lambda t: t.update({k: v[:1].copy() for k, v in t.items()}), "shape"),
    ],
)
def test_hostile_tables_are_refused(folder: Path, f: Any, message: str) -> None:
    """Cells outside the domain, other shapes and types."""
    change(folder, "tables.safetensors", f)
    refused(folder, message)


@pytest.mark.parametrize("name", ["weights.safetensors", "tables.safetensors"])
@pytest.mark.parametrize(
    "data", [b"", b"\x00" * 8, b"\xff" * 64, b"\x02" + b"\x00" * 7 + b"{}", b"\x80\x04K\x01.", b"PK\x03\x04" * 9]
)
def test_what_is_no_safetensors_is_refused(folder: Path, name: str, data: bytes) -> None:
    """Pickles, archives, headers that lie about their length."""
    (folder / name).write_bytes(data)
    sign(folder)
    refused(folder)


def leaves(document: Any, path: str = "") -> list[str]:
    """The paths of everything in a document."""
    if isinstance(document, dict | list):
        items = document.items() if isinstance(document, dict) else enumerate(document)
        found = [leaf for key, value in items for leaf in leaves(value, f"{path}.{key}" if path else str(key))]
        return [*found, path] if path else found
    return [path]


JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [..., None, True, 0, -1, 3, 10**30, 0.5, 1e308, "", "x", [], {}, [0], {"tuple": []}, {"int": "x"}]
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_any_change_to_the_program_loads_or_is_refused(pristine: Path, tmp_path: Path, data: st.DataObject) -> None:
    """Whatever is put wherever: a model comes out or a FormatError, never another exception."""
    folder = tmp_path / "model"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(pristine, folder)
    document = json.loads((folder / "model.json").read_text())
    edit(data.draw(st.sampled_from(leaves(document))), data.draw(JUNK))(document)
    (folder / "model.json").write_text(json.dumps(document))
    sign(folder)
    for recompile in (False, True):
        with contextlib.suppress(FormatError):
            load_compiled(folder, recompile=recompile)
