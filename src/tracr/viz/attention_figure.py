"""The attention pattern of every head beside the selector the program asks for.

Rows are queries, columns keys. The pattern has BOS in front; cells that the selector selects have a dark border. A
head that averages or copies spreads its weight over them evenly, or rests on BOS if there are none; a head that counts
leaves BOS a share, from which the count is read. Of several heads for one selector each attends to a part of it; those
that add up leave BOS nearly everything, and their keys are drawn that much stronger.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from tracr.model.compiled import Run
from tracr.viz.blocks import Block, beside, evenly, figure_of, lowered, matrix, note, titled
from tracr.viz.canvas import text_width
from tracr.viz.choosing import chosen, one_run
from tracr.viz.labels import value_label
from tracr.viz.selectors import selected

if TYPE_CHECKING:
    from tracr.craft.heads import Head
    from tracr.model.compiled import CompiledModel

__all__ = ["attention_patterns"]

AGREES = 1e-3
FAINT = 1e-3  # attention to a key that nobody would see
CELL = (0.24, 0.2)

Array = NDArray[Any]
Matrix = NDArray[np.bool_]


def attention_patterns(
    model: CompiledModel,
    tokens: Sequence[Any] | Run,
    *,
    only: Sequence[str] | None = None,
    width: float = 13.0,
    ax: Axes | None = None,
) -> Figure:
    """The selector of every head beside its attention pattern, for one input.

    Args:
        model: a compiled model.
        tokens: an input, or a run of one.
        only: these heads, under their names in the ground truth (`blocks.1.attn.0`).
        width: how many inches wide it may be before heads go below each other.
        ax: draw in this axes instead of a figure of its own.
    """
    run = one_run(model, tokens)
    given = [token for token in run.tokens[0][1:] if token != model.options.pad]
    known = {
        f"blocks.{number}.attn.{place}": (number, place)
        for number, layer in enumerate(model.construction.layers)
        for place in range(len(layer.heads))
    }
    designs = selected(model, given)
    names = [value_label(token) for token in run.tokens[0][: len(given) + 1]]
    blocks = [
        _head_block(place, model.construction.layers[place[0]].heads, run, names, designs)
        for place in chosen(known, only, "head").values()
    ]
    return figure_of(blocks or [note("This model has no attention heads.")], width, ax)


def _head_block(
    place: tuple[int, int], heads: Sequence[Head], run: Run, names: Sequence[str], designs: Mapping[str, Matrix]
) -> Block:
    head = heads[place[1]]
    design = designs.get(head.selector)
    size = len(names)
    pattern = run[f"blocks.{place[0]}.attn.hook_pattern"][0, place[1], :size, :size]
    width = max(CELL[0], min(0.5, max(map(text_width, names)) + 0.06))
    rows, columns = (evenly(size, cell, names) for cell in (CELL[1], width))
    writes = ", ".join(variable.label for variable, _ in head.writes)
    if design is None:
        left, marked, remark = note("not a selector\nof the program"), None, ""
    else:
        inner = (evenly(size - 1, cell, names[1:]) for cell in (CELL[1], width))
        left = matrix("selector", design.astype(float), *inner, scale=1)
        marked = np.pad(design, ((1, 0), (1, 0)))
        remark = _remark(pattern[1:, 1:], design, sum(other.selector == head.selector for other in heads))
    right = matrix(*_visible(pattern), rows, columns, marked=marked, scale=1)
    both = beside([lowered(left, CELL[1]), right], 0.25)
    return titled(f"Attn {place[0] + 1}, head {place[1] + 1}", f"{head.selector} → {writes}", both, remark)


def _visible(pattern: Array) -> tuple[str, Array]:
    """A title and what to draw: the pattern, its keys stronger where BOS has nearly everything."""
    keys = float(pattern[:, 1:].max(initial=0.0))
    if not 0 < keys < FAINT:
        return "attention", np.round(pattern, 3)
    stronger = -round(math.log2(keys))
    shown = pattern.astype(np.float64)
    shown[:, 1:] *= 2.0**stronger
    return f"attention (keys × 2^{stronger})", np.round(shown, 3)


def _remark(keys: Array, design: Matrix, heads: int) -> str:
    """How the attention to keys [query, key] compares to the selector, which is that of so many heads."""
    largest = keys.max(initial=0.0)
    attended = keys > AGREES * largest
    if np.abs(keys - _even(attended) * keys.sum(axis=1, keepdims=True)).max(initial=0.0) <= AGREES * largest:
        if (attended == design).all():
            return "attends evenly to what is selected"
        if heads > 1:
            return f"one of {heads} heads that together make up the selector"
    total = np.maximum(keys.sum(axis=1, keepdims=True), np.finfo(np.float32).tiny)
    return f"differs from the selector by {np.abs(keys / total - _even(design)).max():.2f}"


def _even(chosen: Matrix) -> Array:
    """The same weight for every chosen key, 1 in all."""
    return np.asarray(chosen / np.maximum(chosen.sum(axis=1, keepdims=True), 1))
