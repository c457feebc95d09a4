"""Twins in PyTorch: the module of `adapters/torch.py` with the twin's layer norms and activation function."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from torch.nn import functional

from tracr.adapters.torch import Origin, TorchModel
from tracr.errors import TracrError
from tracr.natural.formats import require_format

if TYPE_CHECKING:
    from pathlib import Path

    from tracr.model.compiled import CompiledModel
    from tracr.natural.twin_model import TwinModel

__all__ = ["OfTwin", "TorchTwin", "to_torch"]

ACTIVATIONS = {
    "gelu": partial(functional.gelu, approximate="none"),
    "gelu_new": partial(functional.gelu, approximate="tanh"),
    "relu": functional.relu,
}


def to_torch(twin: TwinModel, dtype: Any, device: Any, trainable: bool, check: bool) -> TorchTwin:
    """The twin as a module."""
    return TorchTwin(twin, twin.parameters, dtype, device, trainable, check)


class OfTwin:
    """What differs from the module of a compiled model."""

    if TYPE_CHECKING:
        _origin: Origin

    @property
    def twin(self) -> TwinModel:
        """The twin that this module was made from, unchanged."""
        return self._origin.model  # type: ignore[no-any-return]

    @property
    def compiled(self) -> CompiledModel:
        """The twin's teacher: it has the same tokens and outputs."""
        return self.twin.teacher

    def _functions(self) -> dict[str, Any]:
        architecture = self.twin.architecture
        causal = self.compiled.options.causal
        return {"causal": causal, "norm": architecture.norm, "activation": ACTIVATIONS[architecture.activation]}

    def _require_format(self, dtype: Any) -> None:
        require_format(dtype)

    def to_compiled(self) -> CompiledModel:
        """Refused: a compiled model has other weights."""
        raise TracrError("the weights of a twin are not those of a compiled model", hint="use module.twin.teacher")

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Refused: the measurements of the twin are of its own weights, which may have been changed here."""
        raise TracrError(
            "a twin is saved with its measurements, which are not of a module's present weights",
            hint="use module.twin.save for the twin, torch.save(module.state_dict(), ...) for the present weights",
        )


class TorchTwin(OfTwin, TorchModel):
    """A twin; `module(ids)` gives logits [batch, position, d_vocab_out] for ids that start with BOS."""
