"""Where interventions act: the activation in which a variable is written; for a folded one, what its readers compute.

`program_variables.py` says which variables can be set, `setting.py` sets them.
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
    """Where a variable lives: its directions, and the activation in which its writer has just written them."""

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
    """One input of a reader: the activation it computes (a head or neurons of it), and how a folded variable is in."""

    hook: str
    place: tuple[Any, ...]
    matrix: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Folded:
    """A variable without directions: what it is read from, other such variables among it, and all that read it."""

    variable: Variable
    linear: LinearMap
    through: LinearMap
    readings: tuple[Reading, ...]

    @property
    def made_of(self) -> tuple[str, ...]:
        """The labels of the variables that are read in its place."""
        return tuple(part.label for part in self.linear.blocks if part.node is not None)

    def obstacle(self, layout: Layout) -> tuple[str, str]:
        """Why it cannot be set for each of its readers, and for them alone, with a hint; nothing if it can."""
        merged = layout.schedule.blurred.get(self.variable)
        if merged is not None:
            return (
                f"it was folded, and a head that reads it was merged with one that does not ({merged})",
                'compile with passes={"merge_heads": False}',
            )
        used = np.any([reading.matrix.any(axis=1) for reading in self.readings], axis=0) if self.readings else False
        for variable, block in self.linear.blocks.items():
            if variable is ONE:
                continue
            slots = layout.slots.get(variable, np.full(variable.size, -1))
            if (block[slots < 0] * used).any():
                return (
                    f"it was folded into its readers, and part of its inputs was optimised away ({variable.label} is "
                    "not there)",
                    'compile with passes={"factor": False} or passes={"fold": False}, or at level 1',
                )
        return "", ""


def folded(program: Program, layout: Layout) -> dict[str, Folded]:
    """Every s-op that was folded, by its label."""
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
