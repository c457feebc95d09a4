"""The digest of the weights of an export: a module, parameters, or a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.errors import CertificateError, InputError
from tracr.extras import need
from tracr.saving.folders import read_file
from tracr_check import ARITHMETICS
from tracr_check.files import LARGEST, WEIGHTS, numbers_sha256, parse_tensors
from tracr_check.verdict import Rejected

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel

__all__ = ["exported_sha256", "require_norms"]

CHECKPOINT = "a Hugging Face checkpoint is another network: it has layer norms"
OF_THE_MODEL = "tracr-check FOLDER checks the tensors of the checkpoint themselves"


def require_norms(model: DesignedModel, exported: Any) -> None:
    """Refuse an ONNX file for a model with layer norms: its graph has none, and the theorem is about them, too."""
    if model.norm is not None and isinstance(exported, str | Path) and Path(exported).suffix == ".onnx":
        raise CertificateError(
            "an ONNX file is another network than a model with layer norms: it has none",
            hint="certify the model without layer norms, and export that",
        )


def exported_sha256(exported: Any, arithmetic: str) -> str:
    """The digest of the weights of an export, cast to the format of an arithmetic; see `Certificate.covers`."""
    cast = ARITHMETICS[arithmetic].cast
    with np.errstate(over="ignore"):
        return numbers_sha256(_arrays(exported), cast)


def _arrays(exported: Any) -> dict[str, NDArray[Any]]:
    """The arrays of an export, by name."""
    if isinstance(exported, str | Path):
        return _file_arrays(Path(exported))
    if hasattr(exported, "config") and hasattr(exported, "save_pretrained"):
        raise CertificateError(CHECKPOINT, hint=OF_THE_MODEL)
    if hasattr(exported, "state_dict"):
        return {name: tensor.detach().cpu().double().numpy() for name, tensor in exported.state_dict().items()}
    named = isinstance(exported, Mapping) and all(isinstance(name, str) for name in exported)
    if named and not any(map(np.iscomplexobj, exported.values())):
        return {name: np.asarray(array, np.float64) for name, array in exported.items()}
    raise InputError(f"{type(exported).__name__} is no export", hint="pass a module, a dict of real arrays, or a file")


def _file_arrays(path: Path) -> dict[str, NDArray[Any]]:
    if path.is_dir() or path.name == "model.safetensors":
        raise CertificateError(CHECKPOINT, hint=OF_THE_MODEL)
    if path.suffix == ".onnx":
        onnx = need("onnx", "onnx")
        graph = onnx.load_model_from_string(read_file(path, LARGEST[WEIGHTS])).graph
        found = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
        if len(found) < len(graph.initializer):
            raise InputError(f"{path} has two arrays of one name", hint="pass a file that to_onnx wrote")
        return {name: array for name, array in found.items() if array.dtype.kind == "f"}  # the others are sizes
    try:
        return parse_tensors(read_file(path, LARGEST[WEIGHTS]), path.name)
    except (Rejected, AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}", hint="pass an .onnx or a .safetensors file") from None
