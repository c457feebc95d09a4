"""Compiled models in other frameworks, one file each; a framework is imported only when its adapter is used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tracr.errors import MissingExtra
from tracr.extras import need

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel

__all__ = ["adapter", "to_jax", "to_onnx", "to_torch", "to_transformer_lens"]

NEEDS = {  # by adapter: its library, and the extra that installs it
    "jax": ("jax", "jax"),
    "torch": ("torch", "torch"),
    "transformer_lens": ("transformer_lens", "lens"),
    "onnx": ("onnx", "onnx"),
}


def adapter(name: str) -> Any:
    """The module of an adapter, if its library is installed."""
    library, extra = NEEDS[name]
    need(library, extra)
    try:
        return importlib.import_module(f"tracr.adapters.{name}")
    except ImportError as error:
        raise MissingExtra(
            f"the installed {library} cannot be used: {error}", hint=f"pip install -U 'tracr[{extra}]'"
        ) from error


def to_jax(model: DesignedModel, *options: Any) -> tuple[Any, dict[str, Any]]:
    """`model.to_jax`."""
    return adapter("jax").to_jax(model, *options)  # type: ignore[no-any-return]


def to_torch(model: DesignedModel, *options: Any) -> Any:
    """`model.to_torch`."""
    return adapter("torch").to_torch(model, *options)


def to_transformer_lens(model: DesignedModel, *options: Any) -> Any:
    """`model.to_transformer_lens`."""
    return adapter("transformer_lens").to_transformer_lens(model, *options)


def to_onnx(model: DesignedModel, *options: Any) -> None:
    """`model.to_onnx`."""
    adapter("onnx").to_onnx(model, *options)
