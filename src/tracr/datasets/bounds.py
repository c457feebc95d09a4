"""Bounds on the models of sampled programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracr.arguments import whole
from tracr.errors import FormatError, TracrError

if TYPE_CHECKING:
    from tracr.model.compiled import CompiledModel

__all__ = ["ModelBounds"]


@dataclass(frozen=True)
class ModelBounds:
    """The largest model that a program may have, compiled at `level`; another program is drawn for a larger one."""

    level: int = 1
    max_parameters: int | None = None
    max_layers: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_parameters", "max_layers"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name))
        if self.max_parameters is None and self.max_layers is None:
            raise TracrError("these bounds allow every model", hint="give max_parameters or max_layers, or no bounds")

    def excess(self, model: CompiledModel) -> str:
        """How the model exceeds the bounds; "" if it does not."""
        over = [
            f"{has:,} {what}, more than {most:,}"
            for has, what, most in (
                (model.n_parameters, "parameters", self.max_parameters),
                (model.n_layers, "layers", self.max_layers),
            )
            if most is not None and has > most
        ]
        return f"its model at level {self.level} has {' and '.join(over)}" if over else ""

    def to_json(self) -> dict[str, Any]:
        """The bounds by name."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ModelBounds:
        """The bounds that `to_json` wrote."""
        try:
            return cls(**data)
        except (TypeError, TracrError):
            raise FormatError(
                f"these are not bounds of models: {', '.join(map(str, data))}", hint="sample the programs again"
            ) from None
