"""The exports that twins and learned models share: they check the arguments, and that the library is installed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from tracr.adapters import adapter
from tracr.arguments import flag
from tracr.errors import CertificateError, FormatError

__all__ = ["TrainedExports"]


class TrainedExports:
    """Methods that save a trained model, and give it in other frameworks."""

    PACKAGE: ClassVar[str]
    """The package with the modules saving, in_torch and in_transformer_lens for this kind of model."""

    def save(self, folder: str | Path, *, overwrite: bool = False, certificate: bool = False) -> None:
        """Write the model with its compiled model as a folder of safetensors and JSON; `tracr.load` reads it back.

        With `certificate` it is refused: the checker has no rules for trained weights.
        """
        if flag("certificate", certificate, error=FormatError):
            raise CertificateError(
                "a trained model has no certificate to save: the checker has no rules for trained weights",
                hint="save it without certificate=True; the compiled model that it was trained from can have one",
            )
        self._module("saving").save(self, folder, overwrite=overwrite)

    def to_torch(
        self, *, dtype: Any = "float32", device: Any = None, trainable: bool = True, check: bool = True
    ) -> Any:
        """A `torch.nn.Module`: `module(ids) -> logits`; also `module.encode(tokens)` and `module.decode(logits, ids)`.

        Parameters and activations have their TransformerLens names. A `dtype`, or a later cast, to a format shorter
        than float32 is refused, unless `check` is off: trained models are measured in float32.
        """
        adapter("torch")  # its error says how to install torch
        flags = flag("trainable", trainable), flag("check", check)
        return self._module("in_torch").to_torch(self, dtype, device, *flags)

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
        made = self._module("in_transformer_lens").to_transformer_lens
        return made(self, flag("bridge", bridge), dtype, device, *flags)

    def _module(self, name: str) -> Any:
        """A module of the package, imported only when it is used: it needs a library."""
        return import_module(f"{self.PACKAGE}.{name}")
