"""The circuit: variables with their directions, and the heads and groups of neurons that compute them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracr.craft.heads import Head
from tracr.craft.linear import BOS, ONE, PAD, LinearMap
from tracr.craft.mlps import MLP
from tracr.craft.variables import Array, Variable
from tracr.errors import InternalError
from tracr.ir.domains import Finite
from tracr.ir.options import Options
from tracr.ir.program import Program
from tracr.ir.rewriting import Rewriting, rewriting_of

__all__ = ["Circuit", "Component", "Embedded", "Frame", "check_matrices", "check_through", "through_used"]

Component = Head | MLP


@dataclass(frozen=True, eq=False)
class Embedded:
    """A variable written by the embedding: a row for each token, or for each position (BOS, then 0, 1, ...)."""

    variable: Variable
    by_token: Array | None = None
    by_position: Array | None = None


@dataclass(frozen=True, eq=False)
class Frame:
    """The parts of a circuit that do not depend on layers: embedded variables, other variables, and outputs."""

    options: Options
    embedded: tuple[Embedded, ...]
    variables: tuple[Variable, ...]
    """The variables written by components."""
    outputs: tuple[tuple[str, Variable], ...]
    read: Mapping[Variable, NDArray[np.bool_]]
    """Which directions are part of the model: all of them, or after `prune` those that are read."""
    folded: Mapping[Variable, LinearMap]
    """Variables without directions of their own, each with the map that its readers read instead."""
    through: Mapping[LinearMap, LinearMap]
    """For each map that reads folded variables (of a component or in `folded`): its matrices over these variables."""
    tables: int
    """How much memory the tables of the program take."""

    @property
    def unembedded(self) -> tuple[LinearMap, ...]:
        """The map that reads each output."""
        found = []
        for _, variable in self.outputs:
            found.append(self.folded.get(variable) or LinearMap.of(variable, np.eye(variable.size)))
        return tuple(found)

    @property
    def unembedded_through(self) -> tuple[LinearMap, ...]:
        """For each output, the matrices over the folded variables that it is read from, itself included."""
        found = []
        for (_, variable), linear in zip(self.outputs, self.unembedded, strict=True):
            own = LinearMap.of(variable, np.eye(variable.size)) if variable in self.folded else None
            found.append(self.folded_in(linear) + own if own else self.folded_in(linear))
        return tuple(found)

    def folded_in(self, linear: LinearMap) -> LinearMap:
        """The matrices with which a map reads folded variables."""
        return self.through.get(linear) or LinearMap({}, linear.width)

    def kept(self, variable: Variable) -> Sequence[int]:
        """The directions of a variable that are part of the model."""
        return self.read[variable].nonzero()[0].tolist() if variable in self.read else ()

    def bytes_with(self, components: Iterable[Component]) -> int:
        """How much memory the matrices take; matrices shared by several components count once."""
        components = tuple(components)
        maps = {id(linear): linear for component in components for linear in component.maps}
        written = (matrix for component in components for _, matrix in component.writes)
        embedded = (rows for one in self.embedded for rows in (one.by_token, one.by_position) if rows is not None)
        read = sum(linear.nbytes for linear in (*maps.values(), *self.folded.values(), *self.through.values()))
        return read + sum(matrix.nbytes for matrix in (*written, *embedded))


@dataclass(frozen=True, eq=False)
class Circuit(Frame):
    """Components in topological order over named variables. No component is in a layer yet."""

    components: tuple[Component, ...]
    rewriting: Rewriting
    """How the program was rewritten before it was lowered."""
    listed: frozenset[int]
    """The s-ops whose values are listed."""
    choices: tuple[str, ...]
    """How selectors that need more than one plain head were lowered, and the cost."""

    @staticmethod
    def of(
        program: Program,
        embedded: Sequence[Embedded],
        variables: Iterable[Variable],
        components: Iterable[Component],
        outputs: tuple[tuple[str, Variable], ...],
        choices: Iterable[str] = (),
    ) -> Circuit:
        """The circuit of a program right after lowering: no variable is folded, all directions are in the model."""
        written = tuple(variables)
        everything = (BOS, PAD, ONE, *(source.variable for source in embedded), *written)
        all_read = np.ones(max(variable.size for variable in everything), dtype=bool)
        return Circuit(
            program.options,
            tuple(embedded),
            written,
            outputs,
            read={variable: all_read[: variable.size] for variable in everything},
            folded={},
            through={},
            tables=program.nbytes,
            components=tuple(components),
            rewriting=rewriting_of(program),
            listed=frozenset(node.id for node in program.sops.values() if isinstance(node.domain, Finite)),
            choices=tuple(choices),
        )

    @property
    def nbytes(self) -> int:
        """How much memory the matrices take; matrices shared by several components count once."""
        return self.bytes_with(self.components)

    def verify(self) -> None:
        """Raise if a component reads a variable before it is written, or its matrices do not fit their variables."""
        written = {ONE, BOS, PAD, *(source.variable for source in self.embedded)}
        for component in self.components:
            for variable in component.reads:
                if variable not in written:
                    raise InternalError(f"{component.label} reads {variable.label} before it is written")
            check_matrices(component)
            written.update(variable for variable, _ in component.writes)
        check_through(self, self.components)
        for name, variable in self.outputs:
            if variable not in written and variable not in self.variables and variable not in self.folded:
                raise InternalError(f"output {name} is never written")

    def show(self) -> str:
        """One line per component: its inputs, its size, its outputs."""
        lines = [f"embedding writes {', '.join(self._space(source.variable) for source in self.embedded)}"]
        lines += [self._component_line(component) for component in self.components]
        lines += [self._folded_line(variable) for variable in self.folded]
        lines += [f"absorbed {label}: {where}" for label, where in self.rewriting.absorbed.items()]
        lines += [f"choice {choice}" for choice in self.choices]
        lines += [f"output {name}: {variable.label}" for name, variable in self.outputs]
        return "\n".join(lines)

    def _space(self, variable: Variable) -> str:
        kept = len(self.kept(variable))
        return f"{variable.label}[{variable.size if kept == variable.size else f'{kept} of {variable.size}'}]"

    def _folded_line(self, variable: Variable) -> str:
        readers = [
            part.label for part in self.components if any(variable in self.folded_in(one).blocks for one in part.maps)
        ]
        readers += [f"output {name}" for name, output in self.outputs if output is variable]
        by = f" by {', '.join(readers)}" if readers else ""
        return f"folded {variable.label}: read from {_labels(self.folded[variable].blocks) or 'a constant'}{by}"

    def _component_line(self, component: Component) -> str:
        writes = ", ".join(self._space(variable) for variable, _ in component.writes)
        if isinstance(component, Head):
            size = f"head of rank {component.rank}"
        else:
            size = f"MLP of {component.read.width} neuron{'s' if component.read.width != 1 else ''}"
        return f"{size}: {_labels(component.reads) or 'BOS'} -> {writes}  # {component.what}"


def _labels(variables: Iterable[Variable]) -> str:
    return ", ".join(variable.label for variable in variables if variable not in (ONE, BOS, PAD))


def through_used(
    folded: Mapping[Variable, LinearMap], through: Mapping[LinearMap, LinearMap], maps: Iterable[LinearMap]
) -> dict[LinearMap, LinearMap]:
    """The entries of `through` for these maps and for the maps of folded variables."""
    if not through:
        return {}
    used = dict.fromkeys((*folded.values(), *maps))
    return {linear: through[linear] for linear in used if linear in through and through[linear].blocks}


def check_through(frame: Frame, components: Iterable[Component]) -> None:
    """Raise if an entry of `through` belongs to no map of the frame, or does not fit its map."""
    if not frame.through:
        return
    used = {*frame.folded.values(), *(linear for component in components for linear in component.maps)}
    for linear, own in frame.through.items():
        if linear not in used or own.width != linear.width or not frame.folded.keys() >= own.blocks.keys():
            raise InternalError(f"no component has the map that reads {', '.join(part.label for part in own.blocks)}")


def check_matrices(component: Component) -> None:
    """Raise if the matrices of a component do not fit its variables."""
    for linear in component.maps:
        for variable, block in linear.blocks.items():
            if block.shape != (variable.size, linear.width):
                raise InternalError(f"{component.label} reads {variable.label} with a matrix {block.shape}")
    width = component.maps[-1].width
    for variable, matrix in component.writes:
        if matrix.shape != (width, variable.size) or not np.isfinite(matrix).all():
            raise InternalError(f"{component.label} writes {variable.label} with a matrix {matrix.shape}")
