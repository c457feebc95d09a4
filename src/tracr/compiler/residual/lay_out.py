"""The passes `layout` and `reuse`: the residual stream as the direct sum of the variables' spaces.

Every variable gets its own directions, in the order tokens, BOS, PAD, indices, one, then as written. With the option
`output_first` the outputs come first, each value's direction in the order of the unembedding. Level 0 keeps all
directions, and constants come from the direction `one`. From level 1 on, constants are biases, and unread directions
(`prune.py`) are left out. At level 2, directions that are never needed at the same time share a dimension
(`slot_reuse.py`).
"""

from __future__ import annotations

from tracr.compiler.residual.slot_reuse import Place, always, reuse
from tracr.craft.linear import BOS, ONE, PAD
from tracr.craft.variables import Variable
from tracr.ir.graph import unique_labels
from tracr.ir.layout import Direction, Layout
from tracr.ir.options import Options
from tracr.ir.schedule import Schedule
from tracr.ir.switches import PassName

__all__ = ["lay_out", "narrowest_width", "with_reuse"]


def lay_out(schedule: Schedule, options: Options) -> Layout:
    """The residual stream with its labels: a dimension for every direction."""
    places = _places(schedule, options)
    labels = unique_labels([_label(variable, place, options) for variable, place in places])
    slots = always(schedule, places)
    directions = [
        Direction(label, variable, variable.held(place), place, slot, since, until)
        for label, (variable, place), slot, since, until in zip(
            labels, places, slots.slots, slots.since, slots.until, strict=True
        )
    ]
    return Layout(schedule, tuple(directions))


def with_reuse(layout: Layout) -> Layout:
    """The layout with shared dimensions for directions that are not live at the same time, unless that is larger."""
    schedule, slots = reuse(layout.schedule, [(direction.variable, direction.place) for direction in layout.directions])
    if schedule is layout.schedule:
        return layout
    directions = tuple(
        Direction(old.label, old.variable, old.value, old.place, slot, since, until)
        for old, slot, since, until in zip(layout.directions, slots.slots, slots.since, slots.until, strict=True)
    )
    return Layout(schedule, directions)


def narrowest_width(schedule: Schedule, options: Options) -> tuple[Schedule, int]:
    """The schedule with the neurons that clear directions, and the number of dimensions it needs."""
    places = _places(schedule, options)
    if not options.on(PassName.REUSE):
        return schedule, len(places)
    schedule, slots = reuse(schedule, places)
    return schedule, slots.width


def _places(schedule: Schedule, options: Options) -> list[Place]:
    """All directions in order."""
    places = [(variable, place) for variable in _order(schedule, options) for place in schedule.kept(variable)]
    return places or [(BOS, 0)]  # a program that is always 0 reads nothing, but a stream needs at least one dimension


def _order(schedule: Schedule, options: Options) -> list[Variable]:
    """All variables in the order of their directions."""
    embedded = [source.variable for source in schedule.embedded]
    tokens = [variable for variable in embedded if variable.label == "tokens"]
    indices = [variable for variable in embedded if variable.label == "indices"]
    rest = [variable for variable in embedded if variable not in tokens and variable not in indices]
    order = [*tokens, BOS, PAD, *indices, *([ONE] if options.level == 0 else []), *rest, *schedule.variables]
    first = [variable for _, variable in schedule.outputs if variable in order] if options.output_first else []
    return list(dict.fromkeys([*first, *order]))


def _label(variable: Variable, place: int, options: Options) -> str:
    if variable is BOS or variable is PAD:
        return f"tokens:{options.bos if variable is BOS else options.pad}"
    return variable.direction_label(place)
