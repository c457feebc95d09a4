"""Which component runs in which layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tracr.craft.heads import Head
from tracr.craft.mlps import MLP
from tracr.errors import InternalError
from tracr.ir.circuit import Circuit, Component
from tracr.ir.liveness import live_widths

__all__ = ["Layer", "PlacedHead", "PlacedNeurons", "Schedule", "Sublayer"]


@dataclass(frozen=True, eq=False)
class Layer:
    """One block of the transformer: its heads, then its groups of neurons; either may be empty (a no-op)."""

    heads: tuple[Head, ...]
    mlps: tuple[MLP, ...]


class Sublayer(NamedTuple):
    """The heads or the groups of neurons of a layer; attention of layer l is number 2l, its MLP number 2l + 1."""

    number: int
    components: tuple[Component, ...]

    @property
    def layer(self) -> int:
        """The layer it belongs to, counted from 0."""
        return self.number // 2

    @property
    def kind(self) -> str:
        """`attn` or `mlp`."""
        return "mlp" if self.number % 2 else "attn"


class PlacedHead(NamedTuple):
    """A head, its layer, and its place among the heads of the layer."""

    layer: int
    place: int
    head: Head

    @property
    def name(self) -> str:
        """What the ground truth calls it."""
        return f"blocks.{self.layer}.attn.{self.place}"


class PlacedNeurons(NamedTuple):
    """A group of neurons, its layer, its place among the groups of the layer, and the number of its first neuron."""

    layer: int
    place: int
    start: int
    group: MLP

    @property
    def name(self) -> str:
        """What the ground truth calls it."""
        return f"blocks.{self.layer}.mlp.{self.place}"

    @property
    def stop(self) -> int:
        """The number after that of its last neuron."""
        return self.start + self.group.read.width


@dataclass(frozen=True, eq=False)
class Schedule:
    """The circuit's components in layers: `placement` has the number of the sub-layer of each of them."""

    circuit: Circuit
    layers: tuple[Layer, ...]
    placement: tuple[int, ...]
    status: str = ""
    """What the solver did, where components that can wait were not simply put first."""
    fewest: int = 0
    """So many directions are live somewhere in every schedule of this depth."""

    def sublayers(self) -> Iterator[Sublayer]:
        """Every sub-layer, in the order of the forward pass."""
        for number, layer in enumerate(self.layers):
            yield Sublayer(2 * number, layer.heads)
            yield Sublayer(2 * number + 1, layer.mlps)

    def heads(self) -> Iterator[PlacedHead]:
        """Every head, in the order of the forward pass."""
        for number, layer in enumerate(self.layers):
            for place, head in enumerate(layer.heads):
                yield PlacedHead(number, place, head)

    def neurons(self) -> Iterator[PlacedNeurons]:
        """Every group of neurons, in the order of the forward pass."""
        for number, layer in enumerate(self.layers):
            start = 0
            for place, group in enumerate(layer.mlps):
                yield (placed := PlacedNeurons(number, place, start, group))
                start = placed.stop

    def verify(self) -> None:
        """Raise if a component reads what is written in its own sub-layer or later."""
        written = dict.fromkeys((source.variable for source in self.circuit.embedded), -1)
        for number, components in self.sublayers():
            written.update({variable: number for component in components for variable, _ in component.writes})
        for number, components in self.sublayers():
            for component in components:
                late = [v.label for v in component.reads if written.get(v, -1) >= number]
                if late:
                    raise InternalError(f"{component.label} reads {', '.join(late)} before it is written")

    def show(self) -> str:
        """Two lines per layer: what attention computes, what the MLP computes."""
        lines = []
        for sublayer in self.sublayers():
            parts = [variable.label for component in sublayer.components for variable, _ in component.writes]
            parts += [component.label for component in sublayer.components if not component.writes]
            lines.append(f"{sublayer.kind} {sublayer.layer}: {', '.join(parts) or 'no-op'}")
        if self.status:
            lines.append(f"solver: {self.status}; {self.peak} directions live at most, no schedule has < {self.fewest}")
        return "\n".join(lines) or "no layers"

    @property
    def peak(self) -> int:
        """The largest number of directions live after a sub-layer."""
        return max(live_widths(self))
