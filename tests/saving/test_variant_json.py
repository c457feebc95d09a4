"""Saved variants come back; those whose weights or files do not fit are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

import tracr
from tests.agreement import load_compiled
from tests.library import compiled
from tests.model.variants.making import VARIANTS
from tracr.model.variants.basis import Directions
from tracr.saving import models


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_saved_variant_comes_back(tmp_path: Path, variant: str) -> None:
    """Weights, directions and steps; saved again, the same bytes."""
    model = VARIANTS[variant](compiled("hist2"))
    model.save(tmp_path / "a")
    loaded = load_compiled(tmp_path / "a")
    assert repr(loaded) == repr(model)
    assert np.array_equal(loaded.directions, model.directions)
    for (_, before), (_, after) in zip(model.parameters.named(), loaded.parameters.named(), strict=True):
        assert np.array_equal(before, after)
    assert loaded("abcab") == model("abcab")
    loaded.save(tmp_path / "b")
    for name in models.CONTENT:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert load_compiled(tmp_path / "a", recompile=True).variant.steps == ()


def resaved(folder: Path, model: tracr.DesignedModel) -> Path:
    """A folder whose digests are right, for a model whose weights or basis need not be."""
    model.save(folder)
    return folder


def test_weights_that_are_not_the_variants_are_refused(tmp_path: Path) -> None:
    """Changed weights, a basis that does not fit them, more noise than is told."""
    rotated = compiled("hist").rotated(1)
    other = compiled("hist").rotated(2)
    with pytest.raises(tracr.FormatError, match="differs from the weights its program compiles to"):
        load_compiled(resaved(tmp_path / "a", replace(rotated, weights=other.parameters)))
    noisy = compiled("hist").with_noise(1e-2)
    with pytest.raises(tracr.FormatError, match="differs from the weights its program compiles to"):
        load_compiled(resaved(tmp_path / "b", replace(noisy, changes=replace(noisy.variant, noise=1e-5))))
    basis = Directions(rotated.basis.write, np.ones_like(rotated.basis.read))
    with pytest.raises(tracr.FormatError, match="does not read what"):
        load_compiled(resaved(tmp_path / "c", replace(rotated, changes=replace(rotated.variant, basis=basis))))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"noise": -1}, "below 0"),
        ({"epsilon": 0}, "below 0"),
        ({"noise": "1"}, "not a finite number"),
        ({"steps": [1]}, "not a string"),
        ({"more": 1}, "unknown"),
    ],
)
def test_what_a_variant_says_is_checked(tmp_path: Path, change: dict[str, object], message: str) -> None:
    """The fields of a saved variant are checked; unknown or invalid ones are refused."""
    files = models.files_of(compiled("hist").with_layer_norm())
    content = json.loads(files[models.MODEL])
    content["variant"] |= change
    _write(tmp_path, {**files, models.MODEL: json.dumps(content).encode()})
    with pytest.raises(tracr.FormatError, match=message):
        load_compiled(tmp_path)


@pytest.mark.parametrize("name", ["variant.write", "variant.read"])
def test_a_basis_must_be_there(tmp_path: Path, name: str) -> None:
    """And be of the right shape."""
    files = models.files_of(compiled("hist").with_layer_norm())
    tables = safetensors.numpy.load(files[models.TABLES])
    for broken in (None, tables[name][:-1], tables[name].astype(np.float32)):
        given = {key: array for key, array in tables.items() if key != name}
        given = given if broken is None else {**given, name: np.ascontiguousarray(broken)}
        _write(tmp_path, {**files, models.TABLES: safetensors.numpy.save(given)})
        with pytest.raises(tracr.FormatError, match=r"variant\."):
            load_compiled(tmp_path)
    smaller = {"variant.write": np.eye(3), "variant.read": np.eye(3)}
    _write(tmp_path, {**files, models.TABLES: safetensors.numpy.save({**tables, **smaller})})
    with pytest.raises(tracr.FormatError, match="a basis of 3 labels"):
        load_compiled(tmp_path)


def _write(folder: Path, files: dict[str, bytes]) -> None:
    """The files, and a manifest that is right."""
    content = dict(files)
    manifest = json.loads(content[models.MANIFEST])
    for name in models.CONTENT:
        manifest["files"][name] = {"bytes": len(content[name]), "sha256": models._digest(content[name])}
    content[models.MANIFEST] = json.dumps(manifest).encode()
    for name, data in content.items():
        (folder / name).write_bytes(data)
