"""Setting a variable: write the code of another value where the variable lives, and run on from there.

What must come out is what the interpreter computes with the same variable replaced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.domains import Finite
from tracr.craft.variables import Variable
from tracr.errors import InputError
from tracr.rasp.values import Value, is_number

if TYPE_CHECKING:
    from tracr.compiler.construct import Construction
    from tracr.model.compiled import CompiledModel
    from tracr.model.forward import Hook

__all__ = ["Location", "locations", "setting_hook"]


@dataclass(frozen=True, eq=False)
class Location:
    """Where a variable lives: its directions, and the activation in which its writer has just written them."""

    variable: Variable
    slots: NDArray[np.intp]
    hook: str


def locations(construction: Construction) -> dict[str, Location]:
    """The location of every s-op that owns directions, by its label; scratch variables are not s-ops."""
    typed = construction.schedule.circuit.typed
    written = {source.variable: "hook_embed" for source in construction.schedule.circuit.embedded}
    for number, layer in enumerate(construction.layers):
        for components, hook in ((layer.heads, "hook_resid_mid"), (layer.mlps, "hook_resid_post")):
            for component in components:
                written.update({variable: f"blocks.{number}.{hook}" for variable, _ in component.writes})
    return {
        variable.label: Location(variable, slots, written[variable])
        for variable, slots in construction.slots.items()
        if variable in written and variable.node is not None and variable.label == typed.sops[variable.node].label
    }


def setting_hook(
    model: CompiledModel, changes: Mapping[str, Sequence[Any]], lengths: Sequence[int], single: bool
) -> Hook:
    """A hook that writes the given values; `changes` maps a variable to a value per token (of each input)."""
    known = locations(model.construction)
    writes: dict[str, list[tuple[Location, NDArray[Any]]]] = {}
    for label, values in changes.items():
        if label not in known:
            raise InputError(
                f"no variable {label!r} with directions of its own", hint=f"there are {', '.join(known) or 'none'}"
            )
        rows = [values] if single else values
        codes = _codes(known[label], model, rows, lengths)
        writes.setdefault(known[label].hook, []).append((known[label], codes))

    def hook(name: str, tensor: NDArray[Any]) -> NDArray[Any] | None:
        embedded = writes.get("hook_embed", ()) if name == "hook_pos_embed" else ()
        if name not in writes and not embedded:
            return None
        changed, basis = np.array(tensor), model.basis
        for location, _ in embedded:  # positions are added to tokens: what the one writes the other leaves alone
            changed[:, 1:] = basis.put(changed[:, 1:], location.slots[location.slots >= 0], 0.0)
        for location, codes in writes.get(name, ()):
            live = location.slots >= 0
            held = basis.get(changed[:, 1:], location.slots[live])
            wanted = np.where(np.isnan(codes[..., live]), held, codes[..., live])
            changed[:, 1:] = basis.put(changed[:, 1:], location.slots[live], wanted)
        return changed

    return hook


def _codes(
    location: Location, model: CompiledModel, rows: Sequence[Sequence[Value]], lengths: Sequence[int]
) -> NDArray[Any]:
    """Coordinates [input, position, direction] of the values; NaN at padding, which is left as it is."""
    variable = location.variable
    assert variable.node is not None
    domain = model.typed.sops[variable.node].domain
    codes = np.full((len(lengths), max(lengths, default=0), variable.size), np.nan)
    if len(rows) != len(lengths) or any(len(row) != length for row, length in zip(rows, lengths, strict=True)):
        raise InputError(
            f"{variable.label} needs a value for every token: {list(lengths)} of them, not {[len(row) for row in rows]}"
        )
    for number, row in enumerate(rows):
        for position, value in enumerate(row):
            fits = value in domain.index if isinstance(domain, Finite) else value is None or is_number(value)
            if not fits:
                raise InputError(f"{variable.label} cannot be {value!r}", hint=f"its values are {domain}")
            codes[number, position] = variable.code(value)
    return codes
