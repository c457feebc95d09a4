"""Learned models in PyTorch: the module of `adapters/torch.py` with GELU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracr.adapters.torch import TorchModel
from tracr.natural.in_torch import OfTrained
from tracr.natural.learned.model import ACTIVATION

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel
    from tracr.natural.learned.model import LearnedModel

__all__ = ["OfLearned", "TorchLearned", "to_torch"]


def to_torch(learned: LearnedModel, dtype: Any, device: Any, trainable: bool, check: bool) -> TorchLearned:
    """The learned model as a module."""
    return TorchLearned(learned, learned.parameters, dtype, device, trainable, check)


class OfLearned(OfTrained):
    """What differs from the module of a compiled model, for a learned model."""

    kind = "learned model"

    @property
    def learned(self) -> LearnedModel:
        """The learned model that this module was made from, unchanged."""
        return self._origin.model  # type: ignore[no-any-return]

    @property
    def compiled(self) -> CompiledModel:
        """The compiled model, with the same tokens and outputs."""
        return self.learned.compiled

    def _activation(self) -> str:
        return ACTIVATION


class TorchLearned(OfLearned, TorchModel):
    """A learned model; `module(ids)` gives logits [batch, position, d_vocab_out] for ids that start with BOS."""
