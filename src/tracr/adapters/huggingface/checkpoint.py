"""The folder of a checkpoint: writes it completely or not at all, recognises it and reads it back.

config.json, model.safetensors, generation_config.json    GPT-2
tokenizer.json, tokenizer_config.json                     its tokenizer
README.md                                                 the model card
ground_truth.json                                         nodes, edges and directions
tracr.json                                                marks a folder of tracr, with digests of the weights
tracr/                                                    the model itself, as `model.save` writes it
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import safetensors.numpy

from tracr.adapters.huggingface.card import card
from tracr.adapters.huggingface.fine_tuned import with_checkpoint
from tracr.adapters.huggingface.gpt2 import ACTIVATIONS, GPT2Sizes, config_json, generation_json, sizes_of, tensors
from tracr.adapters.huggingface.head import Numbers, WordHead, head_of
from tracr.adapters.huggingface.tokens import tokenizer_config_json, tokenizer_json
from tracr.errors import FormatError, TracrError, WriteError
from tracr.saving.folders import read_file, write_folder
from tracr.saving.json_reader import parse

if TYPE_CHECKING:
    from tracr.certificate.certificate import Certificate
    from tracr.model.designed import DesignedModel
    from tracr.runtime.outputs import Output
    from tracr_check import Verdict

__all__ = [
    *("FOLDER", "as_changed", "checkpoint_files", "chosen_output", "dump", "is_checkpoint", "is_ours", "is_unchanged"),
    *("refuse_stranger", "save_pretrained"),
]

FORMAT, VERSION = "tracr checkpoint", 1
MARK, FOLDER = "tracr.json", "tracr"
CONFIG, WEIGHTS = "config.json", "model.safetensors"
SMALL = 2**16
NAMES = {
    *(CONFIG, WEIGHTS, "generation_config.json", "tokenizer.json", "tokenizer_config.json"),
    *("README.md", "ground_truth.json", MARK),
}
ARCHITECTURE = (
    *("model_type", "vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "n_inner"),
    *("activation_function", "layer_norm_epsilon", "tie_word_embeddings"),
)
RELU = 'only the architecture that tracr wrote, with activation="relu", can be read back'
BUDGET = 1_000  # inputs on which the weights are checked for the card


def save_pretrained(
    model: DesignedModel,
    folder: str | Path,
    *,
    activation: str = "relu",
    numbers: Numbers = "auto",
    output: str | None = None,
    overwrite: bool = False,
) -> None:
    """Write the model as a GPT-2 checkpoint; see `CompiledModel.save_pretrained`."""
    from tracr.certificate.certifying import shown_certificate
    from tracr.saving.models import check_target

    if activation not in ACTIVATIONS:
        raise TracrError(f"there is no activation {activation!r}", hint=f"use one of {', '.join(ACTIVATIONS)}")
    if numbers not in get_args(Numbers):
        raise TracrError(f"there is no option numbers={numbers!r}", hint=f"use one of {', '.join(get_args(Numbers))}")
    chosen = chosen_output(model.outputs, output)
    path = Path(folder).resolve()
    check_target(path, overwrite, is_ours(path, FORMAT, FOLDER))
    normed, certificate = _normed(model), shown_certificate(_checkable(model), dtype="float32")
    sizes, head = sizes_of(normed), head_of(normed, chosen, numbers)
    files = {
        **checkpoint_files(
            FORMAT,
            config_json(sizes, head, activation, _epsilon(normed)),
            tensors(normed, sizes, head, activation),
            head,
            {"output": chosen.name, "numbers": numbers},
        ),
        "ground_truth.json": _ground_truth(normed, sizes),
    }
    own = _own_files(model, certificate)
    verdict = _verdict({**files, **own})
    checked = normed.verify(BUDGET)
    files["README.md"] = card(normed, chosen, sizes, head, activation, checked, certificate, verdict).encode()
    assert set(files) == NAMES
    write_folder(path, {**files, **own})


def _own_files(model: DesignedModel, shown: Certificate | None) -> dict[str, bytes]:
    """The files of the saved model, with its certificate if one can be shown."""
    from tracr.certificate.certifying import shown_certificate
    from tracr.certificate.saving import certificate_files
    from tracr.saving.models import files_of

    own = shown if shown is None or shown.model is model else shown_certificate(model, dtype="float32")
    files = {**files_of(model), **({} if own is None else certificate_files(own))}
    return {f"{FOLDER}/{name}": data for name, data in files.items()}


def _verdict(files: dict[str, bytes]) -> Verdict | None:
    """The checker's verdict on a checkpoint; None without hints, and where the disk refuses temporary files."""
    from tracr.certificate.certifying import CERTIFICATE, files_verdict

    try:
        return files_verdict(files) if f"{FOLDER}/{CERTIFICATE}" in files else None
    except WriteError:
        return None


def checkpoint_files(
    form: str, config: dict[str, Any], weights: dict[str, Any], head: WordHead, choices: dict[str, str]
) -> dict[str, bytes]:
    """Configuration, weights and tokenizer, and the mark: the format, digests, and the `choices` of the writer."""
    files = {
        CONFIG: dump(config),
        WEIGHTS: safetensors.numpy.save(weights, metadata={"format": "pt"}),
        "generation_config.json": dump(generation_json(config["n_positions"], head)),
        "tokenizer.json": dump(tokenizer_json(head.words)),
        "tokenizer_config.json": dump(tokenizer_config_json(head.words, config["n_positions"])),
    }
    digests = {name: _digest(files[name]) for name in (CONFIG, WEIGHTS)}
    return {**files, MARK: dump({"format": form, "version": VERSION, "files": digests, **choices})}


def _epsilon(normed: DesignedModel) -> float:
    assert normed.norm is not None
    return normed.norm.epsilon


def _normed(model: DesignedModel) -> DesignedModel:
    return model if model.norm else model.with_layer_norm()


def _checkable(model: DesignedModel) -> DesignedModel:
    """The model that the card's certificate is about: the compiled one, unless weights were changed in other ways."""
    exact = model.own_weights and not model.variant.noise
    return model.plain if exact else model


def chosen_output(outputs: Sequence[Output], name: str | None) -> Output:
    """The output of that name, or the only one."""
    names = [output.name for output in outputs]
    if name is None and len(names) > 1:
        raise TracrError(
            f"the model has {len(names)} outputs, GPT-2 has one head", hint=f"pass output=, one of {', '.join(names)}"
        )
    if name is not None and name not in names:
        raise TracrError(f"the model has no output {name!r}", hint=f"it has {', '.join(names)}")
    return outputs[0 if name is None else names.index(name)]


def _ground_truth(model: DesignedModel, sizes: GPT2Sizes) -> bytes:
    """The ground truth, its directions filled up to the dimensions of `hidden_states`."""
    directions = np.zeros((len(model.directions), sizes.d_model))
    directions[:, : model.d_model] = model.directions
    content: dict[str, Any] = {**model.ground_truth.to_dict(), "directions": directions.tolist()}
    return dump(content)


def is_checkpoint(folder: Path, form: str = FORMAT) -> bool:
    """Whether a folder is marked as written by `save_pretrained`, of a compiled model unless `form` says otherwise."""
    try:
        reader = parse(read_file(folder / MARK, SMALL), MARK)
    except FormatError:
        return False
    return isinstance(reader.data, dict) and reader.data.get("format") == form


def refuse_stranger(folder: Path) -> None:
    """Refuse a folder that transformers saved without the program of the model."""
    if (folder / CONFIG).exists() and not (folder / MARK).exists():
        raise FormatError(
            f"it has a {CONFIG}, but neither {MARK} nor the folder {FOLDER!r} with the program",
            hint="save the trained model into the folder that tracr's save_pretrained wrote",
        )


def is_ours(folder: Path, form: str, inner: str) -> bool:
    """Whether a folder is a checkpoint of that format without added files (but `inner`), with unchanged weights."""
    if not is_checkpoint(folder, form) or not {entry.name for entry in folder.iterdir()} <= {*NAMES, inner}:
        return False
    try:
        return is_unchanged(folder)
    except FormatError:
        return False


def is_unchanged(folder: Path) -> bool:
    """Whether the checkpoint's weights and configuration are unchanged since they were written."""
    files = _mark(folder)["files"].object((CONFIG, WEIGHTS))
    return all(_digest(_whole_file(folder / name)) == digest.text() for name, digest in files.items())


def as_changed(model: DesignedModel, folder: Path) -> DesignedModel:
    """The model of a checkpoint with its present weights; `own_weights` is false if they were changed."""
    mark = _mark(folder)
    if "output" not in mark:
        raise FormatError(
            "its weights were changed, and an older version of tracr wrote it", hint=f"load the folder {FOLDER!r} in it"
        )
    normed = _normed(model)
    output = chosen_output(normed.outputs, mark["output"].text())
    numbers: Any = mark["numbers"].text()
    sizes, head = sizes_of(normed), head_of(normed, output, numbers)
    config = parse(_whole_file(folder / CONFIG), CONFIG).data
    written = config_json(sizes, head, "relu", _epsilon(normed))
    for name in ARCHITECTURE:
        if not isinstance(config, dict) or config.get(name) != written[name]:
            raise FormatError(f"{CONFIG} was changed: {name} is not {written[name]!r}", hint=RELU)
    given = _read_weights(_whole_file(folder / WEIGHTS))
    expected = tensors(normed, sizes, head, "relu")
    for name, array in expected.items():
        if name not in given or given[name].shape != array.shape:
            raise FormatError(
                f"{WEIGHTS} has no {name} of the shape {array.shape}",
                hint="these weights belong to another model; save this model again",
            )
        if not np.isfinite(given[name]).all():
            raise FormatError(f"{name} has weights that are not finite", hint="training diverged, or float16 was used")
    if all(np.array_equal(given[name], array) for name, array in expected.items()):
        return model
    return with_checkpoint(normed, given, sizes, head, output)


def _mark(folder: Path) -> dict[str, Any]:
    given = parse(read_file(folder / MARK, SMALL), MARK).object(
        ("format", "version", "files"), optional=("output", "numbers")
    )
    if given["version"].integer() != VERSION:
        raise FormatError(
            f"{MARK} has a version that this tracr does not read; it reads version {VERSION}",
            hint="load it with the version of tracr that saved it",
        )
    return given


def _whole_file(path: Path) -> bytes:
    return read_file(path, path.stat().st_size if path.exists() else 0)


def _read_weights(data: bytes) -> dict[str, Any]:
    try:
        return safetensors.numpy.load(data)
    except Exception as error:  # safetensors raises several kinds of errors, also for bfloat16
        raise FormatError(
            f"{WEIGHTS} cannot be read: {type(error).__name__}: {error}", hint="save the model in float32"
        ) from None


def dump(data: object) -> bytes:
    """A JSON file."""
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
