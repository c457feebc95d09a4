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

__all__ = ["OfTrained", "OfTwin", "TorchTwin", "to_torch"]

ACTIVATIONS = {
    "gelu": partial(functional.gelu, approximate="none"),
    "gelu_new": partial(functional.gelu, approximate="tanh"),
    "relu": functional.relu,
}


def to_torch(twin: TwinModel, dtype: Any, device: Any, trainable: bool, check: bool) -> TorchTwin:
    """The twin as a module."""
    return TorchTwin(twin, twin.parameters, dtype, device, trainable, check)


class OfTrained:
    """What differs from the module of a compiled model: the functions, and what a module of changed weights lacks."""

    kind: str
    """The kind of model, in words."""

    if TYPE_CHECKING:
        _origin: Origin

        @property
        def compiled(self) -> CompiledModel:
            """The compiled model that has the same tokens and outputs."""

    def _activation(self) -> str:
        raise NotImplementedError

    def _norm(self) -> Any:
        return None

    def _functions(self) -> dict[str, Any]:
        causal = self.compiled.options.causal
        return {"causal": causal, "norm": self._norm(), "activation": ACTIVATIONS[self._activation()]}

    def _require_format(self, dtype: Any, *, stored: bool = True) -> None:
        require_format(dtype, f"the {self.kind}")

    def to_compiled(self) -> CompiledModel:
        """Refused: a compiled model has other weights."""
        raise TracrError(f"the weights of a {self.kind} are not those of a compiled model", hint="use module.compiled")

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Refused: the measurements of the model are of its own weights, which may have been changed here."""
        raise TracrError(
            f"a {self.kind} is saved with its measurements, which are not of a module's present weights",
            hint=f"use module.{self.kind.split()[0]}.save for the model itself, "
            "torch.save(module.state_dict(), ...) for the present weights",
        )


class OfTwin(OfTrained):
    """What differs from the module of a compiled model, for a twin."""

    kind = "twin"

    @property
    def twin(self) -> TwinModel:
        """The twin that this module was made from, unchanged."""
        return self._origin.model  # type: ignore[no-any-return]

    @property
    def compiled(self) -> CompiledModel:
        """The twin's teacher: it has the same tokens and outputs."""
        return self.twin.teacher

    def _activation(self) -> str:
        return self.twin.architecture.activation

    def _norm(self) -> Any:
        return self.twin.architecture.norm


class TorchTwin(OfTwin, TorchModel):
    """A twin; `module(ids)` gives logits [batch, position, d_vocab_out] for ids that start with BOS."""
