"""Step 5: lay out the residual stream as the direct sum of the variables' spaces.

Every variable gets its own directions, in the order tokens, BOS, PAD, indices, one, then as written; with the option
`output_first` the outputs come before them, each value's direction in the order of the unembedding. At level 0 all of
them are there, and constants come from the direction `one`. From level 1 on, constants are biases, and directions that
nothing reads (`prune.py`) are left out. At level 2 directions that are not there at the same time share a dimension
(`reuse.py`).
"""

from __future__ import annotations

from tracr.compiler.residual.slot_reuse import Place, Slots, always, reuse
from tracr.craft.linear import BOS, ONE, PAD
from tracr.craft.variables import Variable
from tracr.ir.circuit import Circuit
from tracr.ir.graph import unique_labels
from tracr.ir.layout import Direction, Layout
from tracr.ir.options import Options
from tracr.ir.schedule import Schedule

__all__ = ["lay_out", "placed"]


def lay_out(schedule: Schedule, options: Options) -> Layout:
    """The residual stream with its labels."""
    schedule, places, slots = placed(schedule, options)
    labels = unique_labels([_label(variable, place, options) for variable, place in places])
    spans = zip(slots.slots, slots.since, slots.until, strict=True)
    directions = tuple(
        Direction(label, variable, variable.held(place), place, *span)
        for label, (variable, place), span in zip(labels, places, spans, strict=True)
    )
    return Layout(schedule, directions)


def placed(schedule: Schedule, options: Options) -> tuple[Schedule, list[Place], Slots]:
    """The schedule with what clears directions, all directions in order, and where they are."""
    circuit = schedule.circuit
    places = [(variable, place) for variable in _order(circuit, options) for place in circuit.kept(variable)]
    places = places or [(BOS, 0)]  # a program that is always 0 reads nothing, but a stream has a dimension
    if not options.on("reuse"):
        return schedule, places, always(schedule, places)
    schedule, slots = reuse(schedule, places)
    return schedule, places, slots


def _order(circuit: Circuit, options: Options) -> list[Variable]:
    """All variables in the order of their directions."""
    embedded = [source.variable for source in circuit.embedded]
    tokens = [variable for variable in embedded if variable.label == "tokens"]
    indices = [variable for variable in embedded if variable.label == "indices"]
    rest = [variable for variable in embedded if variable not in tokens and variable not in indices]
    order = [*tokens, BOS, PAD, *indices, *([ONE] if options.level == 0 else []), *rest, *circuit.variables]
    first = [variable for _, variable in circuit.outputs if variable in order] if options.output_first else []
    return list(dict.fromkeys([*first, *order]))


def _label(variable: Variable, place: int, options: Options) -> str:
    if variable is BOS or variable is PAD:
        return f"tokens:{options.bos if variable is BOS else options.pad}"
    return variable.direction_label(place)
