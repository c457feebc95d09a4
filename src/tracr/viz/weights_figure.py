"""The weights of every component, with labelled rows and columns.

Heads: W_QK (rows: read by the query; columns: read by the key) and W_OV (rows: read; columns: written). Groups of
neurons: W_in and W_out, one column per neuron. Only dimensions with a nonzero weight are shown; `1` is the bias.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from tracr.viz.blocks import (
    MATRIX_CELL,
    NUMBER_WIDTH,
    Block,
    beside,
    evenly,
    figure_of,
    labels,
    matrix,
    note,
    stacked,
    titled,
)
from tracr.viz.canvas import SMALL_FONT, text_width
from tracr.viz.choosing import chosen
from tracr.viz.labels import number_label, visible
from tracr.viz.rows import row_label

if TYPE_CHECKING:
    from tracr.craft.mlps import MLP
    from tracr.ir.circuit import Component
    from tracr.model.designed import DesignedModel

__all__ = ["weight_matrices"]

NEURONS = 5.0  # inches for the neurons of a group, if they fit
NEURON = 0.03  # the narrowest column
NUMBERED = 12  # with at most this many columns, weights are written into the cells

Array = NDArray[Any]
Names = dict[int, tuple[str, str]]


def weight_matrices(
    model: DesignedModel,
    *,
    only: Sequence[str] | None = None,
    width: float = 13.0,
    ax: Axes | None = None,
) -> Figure:
    """Draw W_QK and W_OV of every head, W_in and W_out of every group of neurons.

    Args:
        model: a compiled model.
        only: draw these components only, by their names in the ground truth (`blocks.1.attn.0`, `blocks.0.mlp.0`).
        width: the largest width in inches; more components go into further rows.
        ax: draw in this axes instead of a new figure.
    """
    blocks = chosen(dict(_blocks(model.labelled)), only, "component").values()
    return figure_of([block() for block in blocks] or [note("This model has no heads and no neurons.")], width, ax)


def _blocks(model: DesignedModel) -> Iterator[tuple[str, Callable[[], Block]]]:
    """A function that makes the block of each component, in the order of the forward pass."""
    basis = _DimensionNames(model)
    for number, (layer, weights) in enumerate(zip(model.layout.layers, model.parameters.layers, strict=True)):
        for place, head in enumerate(layer.heads):
            yield f"blocks.{number}.attn.{place}", partial(basis.head, number, place, head, weights)
        start = 0
        for place, group in enumerate(layer.mlps):
            part = slice(start, start + group.read.width)
            start = part.stop
            yield f"blocks.{number}.mlp.{place}", partial(basis.mlp, number, group, weights, part)


class _DimensionNames:
    """The names of the dimensions of the residual stream and of the bias, as (variable, value) pairs."""

    def __init__(self, model: DesignedModel) -> None:
        self.residual = model.residual

    def names(self, time: int) -> Names:
        """The names after a sub-layer, with the values of a variable next to each other."""
        found = {
            dimension.index: (visible(dimension.variable), "" if dimension.is_number else row_label(dimension))
            for dimension in self.residual
            if dimension.held(time)
        }
        for index in range(len(self.residual)):
            found.setdefault(index, (f"(dimension {index})", ""))
        return {**found, len(self.residual): ("1 (bias)", "")}

    def head(self, layer: int, place: int, head: Component, weights: Any) -> Block:
        queries, keys, values = (
            np.concatenate([getattr(weights, f"W_{side}")[place], getattr(weights, f"b_{side}")[place][None]])
            for side in "QKV"
        )
        read, written = self.names(2 * layer - 1), self.names(2 * layer)
        logits = self._matrix("W_QK", queries @ keys.T, read, read)
        moved = self._matrix("W_OV", values @ weights.W_O[place], read, written)
        return titled(f"Attn {layer}, head {place}", _writes(head), beside([logits, moved], 0.3))

    def mlp(self, layer: int, group: MLP, weights: Any, part: slice) -> Block:
        read = np.concatenate([weights.W_in[:, part], weights.b_in[None, part]])
        written = weights.W_out[part].T
        count = read.shape[1]
        neurons = evenly(count, min(MATRIX_CELL, max(NEURON, NEURONS / count)))
        names = self.names(2 * layer), self.names(2 * layer + (not group.clears))
        kept = [_kept(side, weight) for side, weight in zip(names, (read, written), strict=True)]
        rows = [labels([side[row] for row in some]) for side, some in zip(names, kept, strict=True)]
        left = max(row.widest for row in rows) + 0.06
        both = [
            matrix("W_in", read[kept[0]], rows[0], neurons, left=left),
            matrix("W_out", written[kept[1]], rows[1], neurons, left=left),
        ]
        size = f"{count} neuron{'s' if count != 1 else ''}"
        what = group.what if group.clears else _writes(group)
        return titled(f"MLP {layer}", f"{what}, {size}", stacked(both, 0.1))

    def _matrix(self, title: str, values: Array, across: Names, down: Names) -> Block:
        kept = _kept(across, values), _kept(down, values.T)
        values = values[np.ix_(*kept)]
        rows, columns = ([side[place] for place in some] for side, some in zip((across, down), kept, strict=True))
        widest = max((text_width(number_label(number), SMALL_FONT) for number in values.flat), default=0.0)
        numbers = len(columns) <= NUMBERED and widest < NUMBER_WIDTH - 0.02
        return matrix(title, values, labels(rows), labels(columns, NUMBER_WIDTH if numbers else MATRIX_CELL))


def _kept(names: Names, weights: Array) -> list[int]:
    """The rows that are not zero, in the order of their names."""
    return [place for place in names if place < len(weights) and weights[place].any()]


def _writes(component: Component) -> str:
    return ", ".join(variable.label for variable, _ in component.writes)
