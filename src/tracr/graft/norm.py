"""The layer norm before a component of a host, without gain and bias, which an affine map makes up for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from tracr.graft.place import GraftPlace

__all__ = ["HostNorm", "norm_before"]

EPSILON = 1e-5


@dataclass(frozen=True)
class HostNorm:
    """A layer norm ("layer"), one that subtracts no mean ("rms"), or none (""), over the first `width` dimensions."""

    kind: Literal["layer", "rms", ""]
    epsilon: float = EPSILON
    width: int | None = None

    def __call__(self, stream: torch.Tensor) -> torch.Tensor:
        """The stream as the component reads it, up to an affine map.

        With a large epsilon the numbers become small, so they are multiplied by its root.
        """
        if not self.kind:
            return stream
        rows = stream if self.width is None else stream[..., : self.width]
        rows = rows - rows.mean(dim=-1, keepdim=True) if self.kind == "layer" else rows
        found = rows / ((rows * rows).mean(dim=-1, keepdim=True) + self.epsilon).sqrt() * max(1.0, self.epsilon**0.5)
        return found if self.width is None else torch.cat([found, stream[..., self.width :]], dim=-1)


def norm_before(module: nn.Module, points: Mapping[str, nn.Module], place: GraftPlace) -> HostNorm:
    """The layer norm before the component at a place of a host."""
    config = getattr(module, "cfg", None)
    kind = str(getattr(config, "normalization_type", None) or "")
    name = f"blocks.{place.layer}.ln{1 if place.kind == 'attn' else 2}"
    if not kind and not any(point.startswith(f"{name}.") for point in points):
        return HostNorm("")
    own: Any = getattr(getattr(module, "compiled", None), "norm", None)  # of a model that tracr made
    known = (getattr(one, field, None) for one, field in ((own, "epsilon"), (points.get(name), "eps"), (config, "eps")))
    epsilon = next((float(one) for one in known if isinstance(one, int | float)), EPSILON)
    return HostNorm("rms" if "RMS" in kind.upper() else "layer", epsilon, getattr(own, "width", None))
