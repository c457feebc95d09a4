"""The schedule: which component runs in which layer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tracr.craft.heads import Head
from tracr.craft.mlps import MLP
from tracr.craft.variables import Variable
from tracr.errors import InternalError
from tracr.ir.circuit import Circuit, Component, Frame, check_matrices, check_through
from tracr.ir.liveness import live_widths

__all__ = [
    "LIMIT",
    "OPTIMAL",
    "Layer",
    "PlacedCircuit",
    "PlacedHead",
    "PlacedNeurons",
    "Placement",
    "Schedule",
    "Sublayer",
]

OPTIMAL, LIMIT = "optimal", "feasible, limit reached"
"""The two results of a solver: proved to be the best placement, or stopped at the limit before a proof."""


@dataclass(frozen=True, eq=False)
class Layer:
    """One block of the transformer: its heads, then its groups of neurons; either may be empty (a no-op)."""

    heads: tuple[Head, ...]
    mlps: tuple[MLP, ...]

    @property
    def components(self) -> tuple[Component, ...]:
        """Its heads, then its groups of neurons."""
        return (*self.heads, *self.mlps)


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

    @property
    def title(self) -> str:
        """Its name in tables and figures: `Attn 0` or `MLP 0`."""
        return f"{'MLP' if self.number % 2 else 'Attn'} {self.layer}"


class PlacedHead(NamedTuple):
    """A head, its layer, and its place among the heads of the layer."""

    layer: int
    place: int
    head: Head

    @property
    def name(self) -> str:
        """Its name in the ground truth."""
        return f"blocks.{self.layer}.attn.{self.place}"


class PlacedNeurons(NamedTuple):
    """A group of neurons, its layer, its place among the groups of the layer, and the number of its first neuron."""

    layer: int
    place: int
    start: int
    group: MLP

    @property
    def name(self) -> str:
        """Its name in the ground truth."""
        return f"blocks.{self.layer}.mlp.{self.place}"

    @property
    def stop(self) -> int:
        """The number of its last neuron, plus 1."""
        return self.start + self.group.read.width


@dataclass(frozen=True)
class Placement:
    """The number of the sub-layer of each component of a circuit, and how the numbers were chosen."""

    times: tuple[int, ...]
    status: str
    """The result of the search or the solver; "" if every component is in its earliest sub-layer."""
    fewest: int
    """A proved lower bound on the peak: every schedule of this depth has a point with so many live directions."""


@dataclass(frozen=True, eq=False)
class PlacedCircuit:
    """A circuit, and the sub-layer chosen for each of its components."""

    circuit: Circuit
    placement: Placement

    def sublayers(self) -> Iterator[Sublayer]:
        """Every sub-layer, in the order of the forward pass."""
        found: dict[int, list[Component]] = {}
        for component, time in zip(self.circuit.components, self.placement.times, strict=True):
            found.setdefault(time, []).append(component)
        for number in range((max(found, default=-1) // 2 + 1) * 2):
            yield Sublayer(number, tuple(found.get(number, ())))

    @property
    def peak(self) -> int:
        """The largest number of directions live after a sub-layer."""
        return max(live_widths(self.circuit, self.sublayers()))

    def verify(self) -> None:
        """Raise if a component is in a sub-layer of the other kind, or not after its inputs."""
        self.circuit.verify()
        for number, components in self.sublayers():
            for component in components:
                if number % 2 != (0 if isinstance(component, Head) else 1):
                    raise InternalError(f"{component.label} cannot be in sub-layer {number}")
        _check_order(self.circuit, list(self.sublayers()))

    def show(self) -> str:
        """Two lines per layer: what attention computes, what the MLP computes."""
        return "\n".join([*map(_line, self.sublayers()), *_solved(self.placement, self.peak)]) or "no layers"


@dataclass(frozen=True, eq=False)
class Schedule(Frame):
    """The layers with their components, after merging, and with the neurons that clear dimensions.

    `placement` gives the sub-layers of the components of the circuit.
    """

    layers: tuple[Layer, ...]
    placement: Placement
    blurred: Mapping[Variable, str]
    """Folded variables that only some of the heads merged into one read with queries or keys; the merged head."""

    @property
    def status(self) -> str:
        """The result of the search or the solver; "" if every component is in its earliest sub-layer."""
        return self.placement.status

    @property
    def fewest(self) -> int:
        """A proved lower bound on the peak of live directions of every schedule of this depth."""
        return self.placement.fewest

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

    @property
    def nbytes(self) -> int:
        """How much memory the matrices take; matrices shared by several components count once."""
        return self.bytes_with(component for layer in self.layers for component in layer.components)

    def verify(self, checked: Collection[Component] = ()) -> None:
        """Raise if a component reads a variable written in its own sub-layer or later, or a matrix does not fit.

        The matrices of `checked` components are known to fit.
        """
        _check_order(self, list(self.sublayers()))
        components = [component for layer in self.layers for component in layer.components]
        for component in components:
            if component not in checked:
                check_matrices(component)
        check_through(self, components)

    def show(self) -> str:
        """Two lines per layer: what attention computes, what the MLP computes."""
        return "\n".join([*map(_line, self.sublayers()), *_solved(self.placement, self.peak)]) or "no layers"

    @property
    def peak(self) -> int:
        """The largest number of directions live after a sub-layer."""
        return max(live_widths(self, self.sublayers()))


def _check_order(frame: Frame, sublayers: Sequence[Sublayer]) -> None:
    """Raise if a component reads a variable written in its own sub-layer or later."""
    written = dict.fromkeys((source.variable for source in frame.embedded), -1)
    for number, components in sublayers:
        written.update({variable: number for component in components for variable, _ in component.writes})
    for number, components in sublayers:
        for component in components:
            late = [v.label for v in component.reads if written.get(v, -1) >= number]
            if late:
                raise InternalError(f"{component.label} reads {', '.join(late)} before it is written")


def _line(sublayer: Sublayer) -> str:
    parts = [variable.label for component in sublayer.components for variable, _ in component.writes]
    parts += [component.label for component in sublayer.components if not component.writes]
    return f"{sublayer.kind} {sublayer.layer}: {', '.join(parts) or 'no-op'}"


def _solved(placement: Placement, peak: int) -> list[str]:
    if not placement.status:
        return []
    return [f"solver: {placement.status}; at most {peak} directions live, lower bound {placement.fewest}"]
