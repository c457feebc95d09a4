"""What every dimension of the residual stream means, who writes it and who reads it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tracr.compiler.circuit import Component
from tracr.compiler.construct import Construction
from tracr.craft.heads import Head
from tracr.craft.linear import BOS, ONE, PAD, LinearMap
from tracr.craft.variables import Bit, Number, Variable
from tracr.errors import TracrError
from tracr.rasp.annotations import Encoding
from tracr.rasp.values import Value

__all__ = ["Dimension", "Residual", "residual_of"]


@dataclass(frozen=True)
class Dimension:
    """One dimension: label, variable, the value it stands for (`None` also for a number or a bit), writer and readers.

    `bit`, if not `None`, says which bit of the number of the value it holds: +1 for 0, -1 for 1.
    """

    index: int
    label: str
    variable: str
    encoding: Encoding
    value: Value
    is_number: bool
    writer: str
    readers: tuple[str, ...]
    bit: int | None = None


@dataclass(frozen=True)
class Residual:
    """The labelled residual stream: look a dimension up by index or label, a variable with `of`."""

    dimensions: tuple[Dimension, ...]

    @property
    def labels(self) -> list[str]:
        """The label of each dimension."""
        return [dimension.label for dimension in self.dimensions]

    def __len__(self) -> int:
        return len(self.dimensions)

    def __iter__(self) -> Iterator[Dimension]:
        return iter(self.dimensions)

    def __getitem__(self, key: int | str) -> Dimension:
        if isinstance(key, str):
            for dimension in self.dimensions:
                if dimension.label == key:
                    return dimension
            raise TracrError(f"the residual stream has no dimension {key!r}", hint=f"it has {', '.join(self.labels)}")
        return self.dimensions[key]

    def of(self, variable: str) -> tuple[Dimension, ...]:
        """The dimensions of one variable."""
        found = tuple(dimension for dimension in self.dimensions if dimension.variable == variable)
        if not found:
            names = dict.fromkeys(dimension.variable for dimension in self.dimensions)
            raise TracrError(f"no variable {variable!r} in the residual stream", hint=f"it has {', '.join(names)}")
        return found

    def indices(self, variable: str) -> list[int]:
        """The numbers of the dimensions of one variable."""
        return [dimension.index for dimension in self.of(variable)]

    def __str__(self) -> str:
        return self.show()

    def show(self) -> str:
        """One line per dimension."""
        width = max((len(label) for label in self.labels), default=0)
        return "\n".join(
            f"{dimension.index:4d}  {dimension.label:<{width}}  written by {dimension.writer or '-'}, "
            f"read by {', '.join(dimension.readers) or '-'}"
            for dimension in self.dimensions
        )


def residual_of(construction: Construction) -> Residual:
    """Collect writers and readers from the maps that become weights."""
    circuit = construction.schedule.circuit
    writers: dict[tuple[Variable, int], str] = {}
    readers: dict[tuple[Variable, int], list[str]] = {}

    def note_reads(name: str, linear: LinearMap) -> None:
        for variable, block in linear.blocks.items():
            for place, row in enumerate(block):
                names = readers.setdefault((variable, place), [])
                if row.any() and name not in names:
                    names.append(name)

    def note(name: str, component: Component) -> None:
        for variable, matrix in component.writes:
            for place in range(variable.size):
                if matrix[:, place].any():
                    writers[variable, place] = name
        if isinstance(component, Head):
            for part, linear in (("q", component.query), ("k", component.key), ("v", component.value)):
                note_reads(f"{name}.{part}", linear)
        else:
            note_reads(name, component.read)

    for source in circuit.embedded:
        for place in range(source.variable.size):
            writers[source.variable, place] = "embed" if source.by_token is not None else "pos_embed"
    for number, layer in enumerate(construction.layers):
        for place, head in enumerate(layer.heads):
            note(f"blocks.{number}.attn.{place}", head)
        for part in layer.mlps:
            note(f"blocks.{number}.mlp", part)
    for _, variable in circuit.outputs:
        note_reads("unembed", circuit.folded.get(variable, LinearMap.of(variable, np.eye(variable.size))))
    options = circuit.typed.options
    special = {BOS: options.bos, PAD: options.pad}
    dimensions = []
    for index, direction in enumerate(construction.directions):
        key = (direction.variable, direction.place)
        variable, value = direction.variable, direction.value
        label, encoding, writer = variable.label, variable.encoding, writers.get(key, "")
        if variable in special:
            label, encoding, writer, value = "tokens", Encoding.CATEGORICAL, "embed", special[variable]
        dimensions.append(
            Dimension(
                index,
                direction.label,
                label,
                encoding,
                None if isinstance(value, Number | Bit) else value,
                isinstance(value, Number),
                "embed" if variable is ONE else writer,
                tuple(readers.get(key, ())),
                value.place if isinstance(value, Bit) else None,
            )
        )
    return Residual(tuple(dimensions))
