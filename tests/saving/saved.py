"""Saved models to compare, to spoil and to sign again; what a spoiled folder is answered with."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tests.agreement import compile_quietly, load_compiled
from tracr.errors import FormatError
from tracr.rasp import programs

STAGES = ("trace", "infer", "translate", "schedule", "construct", "assemble")
FILES = ("manifest.json", "model.json", "tables.safetensors", "weights.safetensors")


def example(name: str, **options: Any) -> tracr.CompiledModel:
    chosen = programs.EXAMPLES[name]
    return compile_quietly(chosen.program, chosen.vocab, chosen.max_seq_len, **options)


def assert_same(saved: tracr.DesignedModel, loaded: tracr.DesignedModel) -> None:
    """Options, stages, labels, outputs and every weight."""
    assert loaded.options == saved.options
    for stage in STAGES:
        assert loaded.show(stage) == saved.show(stage)
    assert loaded.residual == saved.residual
    for (name, before), (other, after) in zip(saved.parameters.named(), loaded.parameters.named(), strict=True):
        assert name == other
        assert after.dtype == np.float64
        assert np.array_equal(before, after), name


def contents(folder: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in folder.iterdir()}


def sign(folder: Path) -> None:
    """Make the manifest agree with the files, as an attacker would."""
    manifest = json.loads((folder / "manifest.json").read_text())
    for name in manifest["files"]:
        data = (folder / name).read_bytes()
        manifest["files"][name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def refused(folder: Path, match: str = ".") -> str:
    with pytest.raises(FormatError, match=match) as caught:
        load_compiled(folder)
    assert str(folder) in str(caught.value)
    return str(caught.value)
