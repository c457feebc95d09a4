"""Which component runs in which layer."""

from __future__ import annotations

from dataclasses import dataclass

from tracr.craft.heads import Head
from tracr.craft.mlps import MLP
from tracr.errors import InternalError
from tracr.ir.circuit import Circuit, Component
from tracr.ir.liveness import live_widths

__all__ = ["Layer", "Schedule"]


@dataclass(frozen=True, eq=False)
class Layer:
    """One block of the transformer: its heads, then its groups of neurons; either may be empty (a no-op)."""

    heads: tuple[Head, ...]
    mlps: tuple[MLP, ...]


@dataclass(frozen=True, eq=False)
class Schedule:
    """The circuit's components in layers: `sublayers` has the number of each one's sub-layer."""

    circuit: Circuit
    layers: tuple[Layer, ...]
    sublayers: tuple[int, ...]
    status: str = ""
    """What the solver did, where components that can wait were not simply put first."""
    fewest: int = 0
    """So many directions are live somewhere in every schedule of this depth."""

    def verify(self) -> None:
        """Raise if a component reads what is written in its own sub-layer or later."""
        written = dict.fromkeys((source.variable for source in self.circuit.embedded), -1)
        sublayers: list[tuple[Component, ...]] = []
        for layer in self.layers:
            sublayers += [layer.heads, layer.mlps]
        for time, components in enumerate(sublayers):
            for component in components:
                for variable, _ in component.writes:
                    written[variable] = time
        for time, components in enumerate(sublayers):
            for component in components:
                late = [v.label for v in component.reads if written.get(v, -1) >= time]
                if late:
                    raise InternalError(f"{component.label} reads {', '.join(late)} before it is written")

    def show(self) -> str:
        """Two lines per layer: what attention computes, what the MLP computes."""
        lines = []
        for number, layer in enumerate(self.layers, start=1):
            for kind, components in (("attn", layer.heads), ("mlp", layer.mlps)):
                parts = [variable.label for component in components for variable, _ in component.writes]
                parts += [component.label for component in components if not component.writes]
                lines.append(f"{kind} {number}: {', '.join(parts) or 'no-op'}")
        if self.status:
            lines.append(f"solver: {self.status}; {self.peak} directions live at most, no schedule has < {self.fewest}")
        return "\n".join(lines) or "no layers"

    @property
    def peak(self) -> int:
        """The largest number of directions live after a sub-layer."""
        return max(live_widths(self))
