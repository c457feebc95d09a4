"""The program in Craft: variables with their directions, and the heads and MLPs that compute them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tracr.craft.heads import Head
from tracr.craft.linear import BOS, ONE, PAD, LinearMap
from tracr.craft.mlps import MLP
from tracr.craft.variables import Array, Variable
from tracr.errors import InternalError
from tracr.ir.program import Program

__all__ = ["Circuit", "Component", "Embedded"]

Component = Head | MLP


@dataclass(frozen=True, eq=False)
class Embedded:
    """A variable the embedding writes: a row for each token, or for each position (BOS, then 0, 1, ...)."""

    variable: Variable
    by_token: Array | None = None
    by_position: Array | None = None


@dataclass(frozen=True, eq=False)
class Circuit:
    """Components in topological order over named variables; nothing is placed in a layer yet."""

    program: Program
    embedded: tuple[Embedded, ...]
    variables: tuple[Variable, ...]
    components: tuple[Component, ...]
    outputs: tuple[tuple[str, Variable], ...]
    read: Mapping[Variable, NDArray[np.bool_]] | None = None
    """Which directions are read, once the rest is pruned."""
    folded: Mapping[Variable, LinearMap] = field(default_factory=dict)
    """Variables that are no directions: what their readers read instead."""
    choices: tuple[str, ...] = ()
    """How selectors that are not simply one head were translated, and what that costs."""

    @property
    def unembedded(self) -> tuple[LinearMap, ...]:
        """What each output is read off."""
        found = []
        for _, variable in self.outputs:
            code = np.eye(variable.size)
            linear = LinearMap.of(variable, code)
            if variable in self.folded:
                linear = self.folded[variable] + LinearMap({}, variable.size, {variable: code})
            found.append(linear)
        return tuple(found)

    @property
    def nbytes(self) -> int:
        """How much memory the matrices take; those that several components have count once."""
        maps = {id(linear): linear for component in self.components for linear in component.maps}
        written = (matrix for component in self.components for _, matrix in component.writes)
        embedded = (rows for one in self.embedded for rows in (one.by_token, one.by_position) if rows is not None)
        read = sum(linear.nbytes for linear in (*maps.values(), *self.folded.values()))
        return read + sum(matrix.nbytes for matrix in (*written, *embedded))

    def kept(self, variable: Variable) -> Sequence[int]:
        """The directions of a variable that are part of the model."""
        if self.read is None:
            return range(variable.size)
        return self.read[variable].nonzero()[0].tolist() if variable in self.read else ()

    def verify(self) -> None:
        """Raise if a component reads what is not yet written, or its matrices do not fit their variables."""
        written = {ONE, BOS, PAD, *(source.variable for source in self.embedded)}
        for component in self.components:
            for variable in component.reads:
                if variable not in written:
                    raise InternalError(f"{component.label} reads {variable.label} before it is written")
            for linear in component.maps:
                for variable, block in linear.blocks.items():
                    if block.shape != (variable.size, linear.width):
                        raise InternalError(f"{component.label} reads {variable.label} with a matrix {block.shape}")
            width = component.maps[-1].width
            for variable, matrix in component.writes:
                if matrix.shape != (width, variable.size) or not np.isfinite(matrix).all():
                    raise InternalError(f"{component.label} writes {variable.label} with a matrix {matrix.shape}")
                written.add(variable)
        for name, variable in self.outputs:
            if variable not in written and variable not in self.variables and variable not in self.folded:
                raise InternalError(f"output {name} is never written")

    def show(self) -> str:
        """One line per component: what it reads, its size, what it writes."""
        lines = [f"embedding writes {', '.join(_space(source.variable) for source in self.embedded)}"]
        lines += [_component_line(component) for component in self.components]
        lines += [self._folded_line(variable) for variable in self.folded]
        lines += [f"absorbed {label}: {where}" for label, where in self.program.absorbed.items()]
        lines += [f"choice {choice}" for choice in self.choices]
        lines += [f"output {name}: {variable.label}" for name, variable in self.outputs]
        return "\n".join(lines)

    def _folded_line(self, variable: Variable) -> str:
        readers = [part.label for part in self.components if any(variable in one.through for one in part.maps)]
        readers += [f"output {name}" for name, output in self.outputs if output is variable]
        by = f" by {', '.join(readers)}" if readers else ""
        return f"folded {variable.label}: read from {_labels(self.folded[variable].blocks) or 'a constant'}{by}"


def _component_line(component: Component) -> str:
    writes = ", ".join(_space(variable) for variable, _ in component.writes)
    if isinstance(component, Head):
        size = f"head of rank {component.rank}"
    else:
        size = f"MLP of {component.read.width} neuron{'s' if component.read.width != 1 else ''}"
    return f"{size}: {_labels(component.reads) or 'BOS'} -> {writes}  # {component.what}"


def _labels(variables: Iterable[Variable]) -> str:
    return ", ".join(variable.label for variable in variables if variable not in (ONE, BOS, PAD))


def _space(variable: Variable) -> str:
    return f"{variable.label}[{variable.size}]"
