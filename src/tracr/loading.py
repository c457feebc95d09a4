"""Reads any saved model: a compiled, compressed or trained one, a folder for Hugging Face or an .onnx file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tracr.adapters import adapter
from tracr.arguments import flag, path, whole
from tracr.errors import FormatError
from tracr.extras import need
from tracr.model.designed import DesignedModel

if TYPE_CHECKING:
    from tracr.compress import CompressedModel
    from tracr.natural import LearnedModel, TwinModel

__all__ = ["load"]


def load(
    folder: str | Path, *, recompile: bool = False, max_parameters: int = 250_000_000
) -> DesignedModel | CompressedModel | TwinModel | LearnedModel:
    """The model that `model.save(folder)` or `model.to_onnx(path)` wrote, or a model of the zoo.

    >>> load("zoo:reverse@level2")("abc")
    ['c', 'b', 'a']

    Args:
        folder: the folder, or the .onnx file; or `zoo:NAME` or `zoo:NAME@levelN`, which is compiled (level 1 if none is
            written).
        recompile: compile the saved tabulated program again instead of using the saved weights: for a folder that
            another version of the compiler wrote.
        max_parameters: the largest model to load.

    A compressed model is loaded as one, and so are twins and learned models (`tracr.natural`). The certificate of a
    compiled model, if the folder has one, is `model.certificate`; one that belongs to other files is refused.

    Raises a `FormatError` for files that are damaged, tampered with or of another format version; no code is run.
    """
    flag("recompile", recompile, error=FormatError)
    max_parameters = whole("max_parameters", max_parameters, 1, error=FormatError)
    if isinstance(folder, str) and folder.startswith("zoo:"):
        return _of_the_zoo(folder, max_parameters)
    folder = path("folder", folder, error=FormatError)
    need("safetensors")
    if os.path.isfile(folder / "compression.json"):
        from tracr.compress import saving

        return saving.load(folder, max_parameters=max_parameters)
    if os.path.isfile(folder / "twin.json"):
        from tracr.natural import saving as twins

        return twins.load(folder, max_parameters=max_parameters)
    if os.path.isfile(folder / "learned.json"):
        from tracr.natural.learned import saving as learned

        return learned.load(folder, max_parameters=max_parameters)
    if os.path.isfile(folder / "twin" / "twin.json"):
        from tracr.natural import pretrained

        return pretrained.load(folder, max_parameters=max_parameters)
    return _compiled(folder, recompile, max_parameters)


def _of_the_zoo(text: str, max_parameters: int) -> DesignedModel:
    """The compiled model of `zoo:NAME@levelN`."""
    from tracr import zoo  # imported only when used: it builds all its programs
    from tracr.zoo.spec import read_spec

    spec = read_spec(text)
    model = zoo.get(spec.name).load(1 if spec.level is None else spec.level)
    if model.n_parameters > max_parameters:
        raise FormatError(
            f"{text} has {model.n_parameters:,} parameters, more than {max_parameters:,}",
            hint=f"pass max_parameters={model.n_parameters}",
        )
    return model


def _compiled(path: Path, recompile: bool, max_parameters: int) -> DesignedModel:
    """A compiled model, in its own folder, in a GPT-2 checkpoint or in an .onnx file."""
    from tracr.adapters.huggingface import checkpoint  # imported only when used: needs safetensors
    from tracr.certificate.saving import read_certificate
    from tracr.saving.models import naming, read_folder

    if not os.path.isdir(path) and path.suffix != ".onnx":
        raise FormatError(f"there is no folder {path}", hint="pass the folder that model.save wrote, or an .onnx file")
    with naming(path):
        if path.suffix == ".onnx":
            return adapter("onnx").from_onnx(path, recompile, max_parameters)  # type: ignore[no-any-return]
        if checkpoint.is_checkpoint(path):
            model = read_folder(path / checkpoint.FOLDER, recompile, max_parameters)
            if not recompile and not checkpoint.is_unchanged(path):
                return checkpoint.as_changed(model, path)
            path = path / checkpoint.FOLDER
        else:
            checkpoint.refuse_stranger(path)
            model = read_folder(path, recompile, max_parameters)
        if not recompile:
            read_certificate(model, path)
        return model
