"""A checkpoint's folder: written all or nothing, recognised and read back.

config.json, model.safetensors, generation_config.json    GPT-2
tokenizer.json, tokenizer_config.json                     its tokenizer
README.md                                                 the model card
ground_truth.json                                         nodes, edges and directions
tracr.json                                                says that this is ours, with digests of the weights
tracr/                                                    the model itself, as `model.save` writes it
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import safetensors.numpy

from tracr.adapters.huggingface.card import card
from tracr.adapters.huggingface.gpt2 import ACTIVATIONS, Sizes, config_json, generation_json, sizes_of, tensors
from tracr.adapters.huggingface.head import Numbers, head_of
from tracr.adapters.huggingface.tokens import tokenizer_config_json, tokenizer_json
from tracr.errors import FormatError, TracrError
from tracr.model.saving.folders import read_file, write_folder
from tracr.model.saving.json_reader import parse

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel
    from tracr.model.outputs import Output

__all__ = ["FOLDER", "check_unchanged", "is_checkpoint", "save_pretrained"]

FORMAT, VERSION = "tracr checkpoint", 1
MARK, FOLDER = "tracr.json", "tracr"
CONFIG, WEIGHTS = "config.json", "model.safetensors"
SMALL = 2**16
NAMES = {
    *(CONFIG, WEIGHTS, "generation_config.json", "tokenizer.json", "tokenizer_config.json"),
    *("README.md", "ground_truth.json", MARK, FOLDER),
}
BUDGET = 1_000  # inputs the weights are checked on for the card


def save_pretrained(
    model: CompiledModel,
    folder: str | Path,
    *,
    activation: str = "relu",
    numbers: Numbers = "auto",
    output: str | None = None,
    overwrite: bool = False,
) -> None:
    """Write the model as a GPT-2 checkpoint; see `CompiledModel.save_pretrained`."""
    from tracr.model.saving.models import check_target, files_of

    if activation not in ACTIVATIONS:
        raise TracrError(f"no activation {activation!r}", hint=f"there are {', '.join(ACTIVATIONS)}")
    if numbers not in get_args(Numbers):
        raise TracrError(f"no way {numbers!r} to write numbers", hint=f"there are {', '.join(get_args(Numbers))}")
    chosen = _output(model, output)
    path = Path(folder).resolve()
    check_target(path, overwrite, _is_ours(path))
    normed = model if model.variant and model.variant.layer_norm else model.with_layer_norm()
    sizes, head = sizes_of(normed), head_of(normed, chosen, numbers)
    files = {
        CONFIG: _dump(config_json(normed, sizes, head, activation)),
        WEIGHTS: safetensors.numpy.save(tensors(normed, sizes, head, activation), metadata={"format": "pt"}),
        "generation_config.json": _dump(generation_json(sizes, head)),
        "tokenizer.json": _dump(tokenizer_json(head.words)),
        "tokenizer_config.json": _dump(tokenizer_config_json(head.words, sizes.positions)),
        "ground_truth.json": _ground_truth(normed, sizes),
        "README.md": card(normed, chosen, sizes, head, activation, normed.verify(BUDGET)).encode(),
    }
    assert {*files, MARK, FOLDER} == NAMES
    mark = {"format": FORMAT, "version": VERSION, "files": {name: _digest(files[name]) for name in (CONFIG, WEIGHTS)}}
    ours = {f"{FOLDER}/{name}": data for name, data in files_of(model).items()}
    write_folder(path, {**files, **ours, MARK: _dump(mark)})


def _output(model: CompiledModel, name: str | None) -> Output:
    names = [output.name for output in model.outputs]
    if name is None and len(names) > 1:
        raise TracrError(
            f"the model has {len(names)} outputs, GPT-2 has one head", hint=f"pass output=, one of {', '.join(names)}"
        )
    if name is not None and name not in names:
        raise TracrError(f"the model has no output {name!r}", hint=f"it has {', '.join(names)}")
    return model.outputs[0 if name is None else names.index(name)]


def _ground_truth(model: CompiledModel, sizes: Sizes) -> bytes:
    """The ground truth, its directions filled up to the dimensions of `hidden_states`."""
    directions = np.zeros((len(model.directions), sizes.d_model))
    directions[:, : model.d_model] = model.directions
    content: dict[str, Any] = {**model.ground_truth.to_dict(), "directions": directions.tolist()}
    return _dump(content)


def is_checkpoint(folder: Path) -> bool:
    """Whether a folder says that `save_pretrained` wrote it."""
    try:
        reader = parse(read_file(folder / MARK, SMALL), MARK)
    except FormatError:
        return False
    return isinstance(reader.data, dict) and reader.data.get("format") == FORMAT


def _is_ours(folder: Path) -> bool:
    """Whether a folder is a checkpoint to which nothing was added, with the weights that were written."""
    if not is_checkpoint(folder) or not {entry.name for entry in folder.iterdir()} <= NAMES:
        return False
    try:
        check_unchanged(folder)
    except FormatError:
        return False
    return True


def check_unchanged(folder: Path) -> None:
    """Raise if the checkpoint's weights or configuration are not those that were written with its program."""
    given = parse(read_file(folder / MARK, SMALL), MARK).object(("format", "version", "files"))
    if given["version"].integer() != VERSION:
        raise FormatError(f"{MARK} has a version that this tracr does not read, not {VERSION}")
    for name, digest in given["files"].object((CONFIG, WEIGHTS)).items():
        path = folder / name
        if _digest(read_file(path, path.stat().st_size if path.exists() else 0)) != digest.text():
            raise FormatError(
                f"{name} was changed after tracr wrote it, so its labels may no longer be true",
                hint=f"load the folder {FOLDER!r} in it for the model as it was compiled",
            )


def _dump(data: object) -> bytes:
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
