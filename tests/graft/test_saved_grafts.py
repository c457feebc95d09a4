"""Grafts on disk: what is saved is loaded, and nothing else is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import tracr
from tracr.errors import FormatError, InputError, TracrError

pytest.importorskip("torch")

import torch

from tracr import graft

TWINS = Path(__file__).parents[2] / "docs" / "natural" / "twins"


@pytest.fixture(scope="module")
def twin() -> Any:
    return tracr.load(TWINS / "hist")


def test_grafts_are_saved_and_loaded(twin: Any, tmp_path: Path) -> None:
    """A loaded graft computes the same; another host, changed maps and a missing file are refused."""
    host, inputs = twin.to_torch(), graft.inputs_of(twin.teacher, 200)
    grafted = graft.replace(host, "blocks.0.attn.0", graft.Part(twin.teacher, "blocks.0.attn.0", "hist"), inputs)
    folder = tmp_path / "graft"
    grafted.save(folder)
    grafted.save(folder)
    loaded = graft.load(folder, host)
    ids = host.encode([list("abca"), list("dd")])
    assert torch.equal(loaded(ids), grafted(ids))
    assert repr(loaded) == repr(grafted)
    with pytest.raises(TracrError, match="no data"):
        loaded.report()
    other = twin.to_torch()
    with torch.no_grad():
        other.embed.W_E.add_(1e-3)
    with pytest.raises(FormatError, match="other weights"):
        graft.load(folder, other)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(FormatError, match="something other"):
        grafted.save(tmp_path / "full")
    maps = folder / "maps.safetensors"
    maps.write_bytes(maps.read_bytes()[:-1] + b"x")
    with pytest.raises(FormatError, match="changed after it was saved"):
        graft.load(folder, host)
    maps.unlink()
    with pytest.raises(FormatError, match="not a graft that can be loaded"):
        graft.load(folder, host)


def test_saved_grafts_that_do_not_fit_together_are_refused(twin: Any, tmp_path: Path) -> None:
    """Maps and descriptions that someone wrote with right digests: every one is refused when it is loaded."""
    host, inputs = twin.to_torch(), graft.inputs_of(twin.teacher, 100)
    folder = tmp_path / "graft"
    graft.replace(host, "blocks.0.attn.0", graft.Part(twin.teacher, "blocks.0.attn.0"), inputs).save(folder)
    info, maps = (folder / "graft.json").read_text(), (folder / "maps.safetensors").read_bytes()
    arrays = safetensors.numpy.load(maps)
    wide = {f"write.{name}": arrays[f"write.{name}"] for name in ("vectors", "positions", "before", "pad")}
    wide = {name: np.concatenate([one, one], axis=-1) for name, one in wide.items()}
    wide["part0.read0.weight"] = np.concatenate([arrays["part0.read0.weight"]] * 2)
    none = {"weight": arrays["part0.read0.weight"][:, :0]}
    none |= {name: arrays[f"part0.read0.{name}"][:0] for name in ("bias", "codes")}
    changes: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        ({"at": ["blocks.0.mlp"]}, {}, "takes parts that are mlps"),
        ({"parts": []}, {}, "that do not fit together"),
        ({"at": ["blocks.0.attn." + "9" * 5000]}, {}, "no place"),
        ({}, {"extra": np.zeros(3, dtype=np.float32)}, "is no map of the graft"),
        ({}, {"part0.read0.weight": arrays["part0.read0.weight"][:-1]}, "different widths"),
        ({}, {"write.positions": arrays["write.positions"][:0]}, "do not fit together"),
        ({}, {name: arrays[name][:0] for name in ("write.codes", "write.vectors")}, "do not fit together"),
        ({}, {f"part0.read0.{name}": array for name, array in none.items()}, "do not fit together"),
        ({}, wide, "are for 128 dimensions, and the host has 64"),
    ]
    for other, held, wrong in changes:
        packed = safetensors.numpy.save({**arrays, **{name: np.ascontiguousarray(one) for name, one in held.items()}})
        (folder / "maps.safetensors").write_bytes(packed)
        digest = {"sha256": hashlib.sha256(packed).hexdigest()}
        (folder / "graft.json").write_text(json.dumps({**json.loads(info), **digest, **other}))
        with pytest.raises(FormatError, match=wrong):
            graft.load(folder, host)


VALUES: list[Any] = [None, True, -1, 2, 10**30, 1.5, "", "blocks.9.mlp", [], [[]], ["blocks.9.attn.0"], {}, "\ud800"]


def test_hostile_folders_are_refused(twin: Any, tmp_path: Path) -> None:
    """Every field with values of another kind or size, and arrays of other shapes and kinds, with right digests.

    What is loaded all the same (another place of this host, other padding) runs, or says why not.
    """
    host, inputs = twin.to_torch(), graft.inputs_of(twin.teacher, 60)
    folder = tmp_path / "graft"
    graft.replace(host, "blocks.0.attn.0", graft.Part(twin.teacher, "blocks.0.attn.0"), inputs).save(folder)
    info, packed = json.loads((folder / "graft.json").read_text()), (folder / "maps.safetensors").read_bytes()
    arrays, ids = safetensors.numpy.load(packed), host.encode([list("abca")])
    loaded = []

    def attempt(what: str) -> None:
        try:
            made = graft.load(folder, host)
        except FormatError:
            return
        loaded.append(what)
        with suppress(InputError):  # it may be for longer or shorter inputs
            made(ids)

    for name in info:
        for value in VALUES:
            (folder / "graft.json").write_text(json.dumps({**info, name: value}))
            attempt(name)
    changes: list[Callable[[Any], Any]] = [
        lambda one: one.astype(np.float64),
        lambda one: one * np.float32(np.nan),
        lambda one: one[:0],
        lambda one: one.reshape(-1)[1:],
        lambda one: one[None],
        lambda one: np.concatenate([one, one]),
    ]
    for name, array in arrays.items():
        for change in changes:
            changed = safetensors.numpy.save({**arrays, name: np.ascontiguousarray(change(array))})
            (folder / "maps.safetensors").write_bytes(changed)
            digest = hashlib.sha256(changed).hexdigest()
            (folder / "graft.json").write_text(json.dumps({**info, "sha256": digest}))
            attempt(name)
    assert set(loaded) <= {"before", "pad", "start", "write.positions"}
    (folder / "maps.safetensors").write_bytes(packed)
    (folder / "graft.json").write_text(json.dumps({**info, "at": ["blocks.0.attn.7"]}))
    with pytest.raises(FormatError, match="not a graft of this host"):
        graft.load(folder, host)
