"""Saving a graft: its maps and its parts. The host is not saved; loading needs it, and checks that it is the same.

graft.json          format, version, place, the digest of the host's weights, the parts, the digest of the maps
maps.safetensors    the maps that read and write
part0/, part1/ ...  the compiled model of each part, as `model.save` writes it
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
import torch
from numpy.typing import NDArray
from torch import nn

from tracr.arguments import flag
from tracr.arguments import path as as_path
from tracr.errors import FormatError, TracrError
from tracr.graft.fitting import ReadMap, WriteMap
from tracr.graft.grafted import Grafted
from tracr.graft.host import HostModel
from tracr.graft.modules import PartModule, WriteModule
from tracr.graft.part import Part
from tracr.graft.place import place_of
from tracr.graft.replacing import check_kinds
from tracr.saving import models
from tracr.saving.folders import read_file, write_folder
from tracr.saving.json_reader import Reader, parse

__all__ = ["load", "save"]

FORMAT, VERSION = "tracr graft", 1
INFO, MAPS = "graft.json", "maps.safetensors"
AGAIN = "save the graft again"
LARGEST_JSON, LARGEST_MAPS = 2**22, 2**31
WRITES = ("codes", "vectors", "positions", "before", "pad")

Arrays = dict[str, NDArray[np.float32]]


def save(grafted: Grafted, folder: str | Path, *, overwrite: bool = False) -> None:
    """Write a graft into `folder`, completely or not at all."""
    path = as_path("folder", folder, error=FormatError).resolve()
    models.check_target(path, flag("overwrite", overwrite, error=FormatError), (path / INFO).is_file())
    packed = safetensors.numpy.save(_arrays(grafted))
    place = grafted.sites.place
    info = {
        "format": FORMAT,
        "version": VERSION,
        "at": [f"blocks.{place.layer}.attn.{head}" for head in place.heads] or [place.name],
        "start": grafted.start,
        "pad": grafted.pad,
        "before": None if grafted.before is None else list(grafted.before),
        "host": host_digest(grafted.host),
        "parts": [[part.name, part.program] for part in grafted.parts],
        "sha256": hashlib.sha256(packed).hexdigest(),
    }
    files = {INFO: json.dumps(info, indent=1).encode() + b"\n", MAPS: packed}
    for number, part in enumerate(grafted.parts):
        files |= {f"part{number}/{name}": data for name, data in models.files_of(part.model).items()}
    write_folder(path, files)


def _arrays(grafted: Grafted) -> Arrays:
    held = {f"write.{name}": getattr(grafted.write, name) for name in WRITES}
    for number, module in enumerate(grafted.compiled_parts):
        for place, read in enumerate(module.reads):
            held |= {f"part{number}.read{place}.{name}": getattr(read, name) for name in ("weight", "bias", "codes")}
    return {name: np.ascontiguousarray(one.detach().cpu().numpy(), dtype=np.float32) for name, one in held.items()}


def host_digest(module: nn.Module) -> str:
    """A digest of a host's weights: their names, shapes and values in float32."""
    found = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        if isinstance(tensor, torch.Tensor):
            found.update(f"{name} {tuple(tensor.shape)} ".encode())
            found.update(tensor.detach().to(torch.float32).cpu().contiguous().numpy().tobytes())
    return found.hexdigest()


def load(folder: str | Path, host: nn.Module) -> Grafted:
    """The graft that `save` wrote, in its host; another host is refused.

    A loaded graft runs and hooks. It has no data: `replace` makes a graft with a report.
    """
    path = as_path("folder", folder, error=FormatError)
    try:
        keys = ("format", "version", "at", "start", "pad", "host", "parts", "sha256")
        given = parse(read_file(path / INFO, LARGEST_JSON), INFO).object(keys, ("before",))
        given["format"].choice((FORMAT,))
        if given["version"].integer() != VERSION:
            given["version"].fail(f"is not {VERSION}, which this tracr reads")
        place = place_of([one.text() for one in given["at"].items()])
        parts = [_part(path, number, one) for number, one in enumerate(given["parts"].items())]
        packed = read_file(path / MAPS, LARGEST_MAPS)
        if hashlib.sha256(packed).hexdigest() != given["sha256"].text():
            raise FormatError(f"{MAPS} was changed after it was saved", hint=AGAIN)
        arrays = models.tensors(packed, MAPS)
        start, pad = _small(given["start"]), None if given["pad"].data is None else _small(given["pad"])
        before = _before(given, start)
        modules = [PartModule(part, _reads(arrays, number, part)) for number, part in enumerate(parts)]
        write = _write(arrays, start, sum(len(part.weights.writes) for part in parts))
        check_kinds(place, parts)
        _check_arrays(arrays, modules, len(write.pad))
    except TracrError as error:
        raise FormatError(f"{path} is not a graft that can be loaded: {error.diagnostic.what}", hint=AGAIN) from None
    hosted = HostModel(host)
    if host_digest(host) != given["host"].text():
        raise FormatError(
            f"the graft in {path} belongs to a host with other weights", hint="pass the host that it was made for"
        )
    try:
        sites = hosted.require(place)
        _check_width(hosted, len(write.pad))
    except TracrError as error:
        raise FormatError(f"{path} is not a graft of this host: {error.diagnostic.what}", hint=AGAIN) from None
    return Grafted(hosted, sites, modules, WriteModule(write), start, pad, before=before)


def _before(given: dict[str, Reader], start: int) -> tuple[int, ...] | None:
    """The ids before the first token; grafts saved by older versions have none."""
    if "before" not in given or given["before"].data is None:
        return None
    return tuple(_small(one) for one in given["before"].items(count=start))


def _check_width(host: HostModel, width: int) -> None:
    """Refuse maps for a stream that is not the host's."""
    own = host.width
    if own is not None and own != width:
        raise FormatError(f"its maps are for {width} dimensions, and the host has {own}", hint=AGAIN)


def _small(reader: Reader) -> int:
    """A number of positions, or an id."""
    found = reader.integer()
    if not 0 <= found < 2**31:
        reader.fail("is not between 0 and 2^31")
    return found


def _part(path: Path, number: int, reader: Reader) -> Part:
    name, program = (one.text() for one in reader.items(count=2))
    return Part(models.load_compiled(path / f"part{number}"), name, program)


def _reads(arrays: dict[str, Any], number: int, part: Part) -> list[ReadMap]:
    found = []
    for place, variable in enumerate(part.inputs):
        weight, bias, codes = (
            _array(arrays, f"part{number}.read{place}.{name}", dims)
            for name, dims in (("weight", 2), ("bias", 1), ("codes", 2))
        )
        if not len(bias) or weight.shape[1] != len(bias) or codes.shape != (len(bias), len(variable.slots)):
            raise FormatError(f"{MAPS} has maps for {variable.label} that do not fit together", hint=AGAIN)
        found.append(ReadMap(weight, bias, codes))
    return found


def _write(arrays: dict[str, Any], start: int, width: int) -> WriteMap:
    held = {name: _array(arrays, f"write.{name}", 1 if name == "pad" else 2) for name in WRITES}
    model = len(held["pad"])
    fits = held["codes"].shape[1] == width and 0 < len(held["codes"]) == len(held["vectors"])
    fits = fits and len(held["before"]) == start and len(held["positions"]) > 0
    if not fits or any(held[name].shape[1] != model for name in WRITES[1:4]):
        raise FormatError(f"{MAPS} has maps for writing that do not fit together", hint=AGAIN)
    return WriteMap(**held)


def _check_arrays(arrays: dict[str, Any], modules: list[PartModule], width: int) -> None:
    """Refuse arrays that nothing uses, and maps that read a stream of another width than the graft writes to."""
    used = {f"write.{name}" for name in WRITES}
    for number, module in enumerate(modules):
        for place, read in enumerate(module.reads):
            used |= {f"part{number}.read{place}.{name}" for name in ("weight", "bias", "codes")}
            if read.weight.shape[0] != width:
                raise FormatError(f"{MAPS} has maps that read and write streams of different widths", hint=AGAIN)
    if unused := sorted(set(arrays) - used):
        raise FormatError(f"{MAPS} has the array {unused[0][:60]!r}, which is no map of the graft", hint=AGAIN)


def _array(arrays: dict[str, Any], name: str, dims: int) -> NDArray[Any]:
    array = arrays.get(name)
    if array is None or array.ndim != dims or array.dtype != np.float32 or not np.isfinite(array).all():
        raise FormatError(f"{MAPS} has no finite float32 array {name} with {dims} axes", hint=AGAIN)
    return np.asarray(array)
