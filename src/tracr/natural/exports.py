"""The exports that twins and learned models share: they check the arguments, and the extra library is installed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from tracr.adapters import adapter
from tracr.arguments import flag

__all__ = ["TrainedExports"]


class TrainedExports(ABC):
    """Methods that give a trained model in other frameworks."""

    def to_torch(
        self, *, dtype: Any = "float32", device: Any = None, trainable: bool = True, check: bool = True
    ) -> Any:
        """A `torch.nn.Module`: `module(ids) -> logits`; also `module.encode(tokens)` and `module.decode(logits, ids)`.

        Parameters and activations have their TransformerLens names. A `dtype`, or a later cast, to a format shorter
        than float32 is refused, unless `check` is off: trained models are measured in float32.
        """
        adapter("torch")  # its error says how to install torch
        return self._in_torch(dtype, device, flag("trainable", trainable), flag("check", check))

    def to_transformer_lens(
        self,
        *,
        bridge: bool = False,
        dtype: Any = "float32",
        device: Any = None,
        trainable: bool = True,
        check: bool = True,
    ) -> Any:
        """A TransformerLens model: `run_with_cache`, `run_with_hooks`, and its patching and attribution tools.

        With `bridge` it is a native `TransformerBridge`, which has fewer hooks. Layers are padded with zeros to one
        size. `check` is as in `to_torch`.
        """
        adapter("transformer_lens")  # its error says how to install TransformerLens
        flags = flag("trainable", trainable), flag("check", check)
        return self._in_transformer_lens(flag("bridge", bridge), dtype, device, *flags)

    @abstractmethod
    def _in_torch(self, dtype: Any, device: Any, trainable: bool, check: bool) -> Any:
        """The model in torch."""

    @abstractmethod
    def _in_transformer_lens(self, bridge: bool, dtype: Any, device: Any, trainable: bool, check: bool) -> Any:
        """The model in TransformerLens."""
