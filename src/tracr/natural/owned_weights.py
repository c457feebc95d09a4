"""Which component owns which weight of a compiled model.

Heads own their slices of the attention matrices, groups of neurons their columns and rows of the MLP. A bias of the
residual stream (`b_O`, `b_out`) belongs to the component that writes the dimension; entries for other dimensions are
one more part of the sub-layer, `blocks.0.attn.bias` or `blocks.0.mlp.bias`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.craft.variables import Variable
from tracr.ir.circuit import Component
from tracr.model.compiled import CompiledModel

__all__ = ["Mask", "owned_weights", "written_by"]

Mask = Mapping[str, NDArray[np.bool_]]
"""For some weight matrices, by their TransformerLens names: the entries that belong to a part."""


def owned_weights(model: CompiledModel) -> dict[str, Mask]:
    """The weights of every part of the model, in the order in which the parts compute; each weight has one owner."""
    shapes = {name: array.shape for name, array in model.parameters.named()}
    found: dict[str, Mask] = {
        "embed": _entries(shapes, ("embed.W_E", ...)),
        "pos_embed": _entries(shapes, ("pos_embed.W_pos", ...)),
    }
    for sublayer in model.schedule.sublayers():
        block = f"blocks.{sublayer.layer}.{sublayer.kind}"
        for one in (one for one in model.schedule.heads() if (one.layer, "attn") == (sublayer.layer, sublayer.kind)):
            slices = [(f"{block}.{name}_{part}", one.place) for part in "QKV" for name in "Wb"]
            own = (f"{block}.b_O", _slots(model, [one.head]))
            found[one.name] = _entries(shapes, *slices, (f"{block}.W_O", one.place), own)
        for group in (one for one in model.schedule.neurons() if (one.layer, "mlp") == (sublayer.layer, sublayer.kind)):
            span = slice(group.start, group.stop)
            inward = ((f"{block}.W_in", (slice(None), span)), (f"{block}.b_in", span))
            own = (f"{block}.b_out", _slots(model, [group.group]))
            found[group.name] = _entries(shapes, *inward, (f"{block}.W_out", span), own)
        bias = f"{block}.b_{'O' if sublayer.kind == 'attn' else 'out'}"
        found[f"{block}.bias"] = _rest(shapes, bias, _slots(model, sublayer.components))
    found["unembed"] = _entries(shapes, ("unembed.W_U", ...))
    return found


def written_by(component: Component) -> Iterator[Variable]:
    """The variables that a component writes."""
    return (variable for variable, _ in component.writes)


def _slots(model: CompiledModel, components: Iterable[Component]) -> NDArray[np.intp]:
    """The dimensions that the components write."""
    every = [model.layout.slots[one] for part in components for one in written_by(part) if one in model.layout.slots]
    joined = np.concatenate(every) if every else np.empty(0, dtype=np.intp)
    return joined[joined >= 0]


def _entries(shapes: Mapping[str, tuple[int, ...]], *places: tuple[str, Any]) -> Mask:
    """The masks of these entries."""
    found = {}
    for name, index in places:
        found[name] = np.zeros(shapes[name], dtype=bool)
        found[name][index] = True
    return found


def _rest(shapes: Mapping[str, tuple[int, ...]], name: str, owned: NDArray[np.intp]) -> Mask:
    mask = np.ones(shapes[name], dtype=bool)
    mask[owned] = False
    return {name: mask}
