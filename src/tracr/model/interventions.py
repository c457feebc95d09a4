"""The activations that an intervention changes.

For a variable with directions, this is the activation right after its writer. For a folded variable, these are the
activations of its readers. `program_variables.py` says which variables can be set; `setting.py` sets them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.craft.linear import ONE, LinearMap
from tracr.craft.variables import Variable

if TYPE_CHECKING:
    from tracr.ir.layout import Layout
    from tracr.ir.program import Program

__all__ = ["Folded", "Location", "Reading", "folded", "locations"]


@dataclass(frozen=True, eq=False)
class Location:
    """The directions of a variable, and the activation right after its writer."""

    variable: Variable
    slots: NDArray[np.intp]
    hook: str


def locations(program: Program, layout: Layout) -> dict[str, Location]:
    """The location of every s-op that owns directions, by its label; scratch variables are not s-ops."""
    written = {source.variable: "hook_embed" for source in layout.schedule.embedded}
    for sublayer in layout.schedule.sublayers():
        hook = f"blocks.{sublayer.layer}.{'hook_resid_mid' if sublayer.kind == 'attn' else 'hook_resid_post'}"
        written.update({variable: hook for component in sublayer.components for variable, _ in component.writes})
    return {
        variable.label: Location(variable, slots, written[variable])
        for variable, slots in layout.slots.items()
        if variable in written and variable.node is not None and variable.label == program.sops[variable.node].label
    }


@dataclass(frozen=True, eq=False)
class Reading:
    """One read of a folded variable: the reader's activation (of a head or of neurons), and the matrix of the read."""

    hook: str
    place: tuple[Any, ...]
    matrix: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Folded:
    """A variable without directions: the map `linear` that computes it, its part `through` folded ones, its readers."""

    variable: Variable
    linear: LinearMap
    through: LinearMap
    readings: tuple[Reading, ...]

    @property
    def made_of(self) -> tuple[str, ...]:
        """The labels of the variables that are read in its place."""
        return tuple(part.label for part in self.linear.blocks if part.node is not None)

    def obstacle(self, layout: Layout) -> tuple[str, str]:
        """Why it cannot be set for exactly its readers, and a hint; two empty strings if it can."""
        merged = layout.schedule.blurred.get(self.variable)
        if merged is not None:
            return (
                f"it was folded, and a head that reads it was merged with a head that does not ({merged})",
                'compile with passes={"merge_heads": False}',
            )
        used = np.any([reading.matrix.any(axis=1) for reading in self.readings], axis=0) if self.readings else False
        for variable, block in self.linear.blocks.items():
            if variable is ONE:
                continue
            slots = layout.slots.get(variable, np.full(variable.size, -1))
            if (block[slots < 0] * used).any():
                return (
                    "it was folded into its readers, and part of its inputs was optimised away "
                    f"(the residual stream does not have all of {variable.label})",
                    'compile with passes={"factor": False} or passes={"fold": False}, or at level 1',
                )
        return "", ""


def folded(program: Program, layout: Layout) -> dict[str, Folded]:
    """All folded s-ops, by label."""
    schedule = layout.schedule
    readings: dict[Variable, list[Reading]] = {variable: [] for variable in schedule.folded}

    def note(through: LinearMap, hook: str, *place: Any) -> None:
        for variable, block in through.blocks.items():
            readings[variable].append(Reading(hook, place, block))

    for number, place, head in layout.schedule.heads():
        for name, linear in zip("qkv", head.maps, strict=True):
            note(schedule.folded_in(linear), f"blocks.{number}.attn.hook_{name}", place, slice(0, linear.width))
    for neurons in layout.schedule.neurons():
        note(
            schedule.folded_in(neurons.group.read),
            f"blocks.{neurons.layer}.mlp.hook_pre",
            slice(neurons.start, neurons.stop),
        )
    start = 0
    for (_, variable), linear in zip(schedule.outputs, schedule.unembedded_through, strict=True):
        logits = linear if variable.codebook is None else linear.then(variable.codebook.T)
        note(logits, "logits", slice(start, start + logits.width))
        start += logits.width
    return {
        variable.label: Folded(variable, linear, schedule.folded_in(linear), tuple(readings[variable]))
        for variable, linear in schedule.folded.items()
        if variable.node is not None and variable.label == program.sops[variable.node].label
    }
