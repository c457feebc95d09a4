"""The attention pattern of every head, next to the selector of the program.

Rows are queries, columns are keys. The pattern has BOS as its first key. Selected cells have a dark border. A head that
averages or copies spreads its weight evenly over the selected keys, or puts it on BOS if none is selected. A head that
counts leaves part of the weight on BOS, from which the count is read. If several heads compute one selector, each
attends to a part of it; heads whose outputs add up leave nearly all weight on BOS, and their keys are drawn stronger.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from tracr.model.run import Run
from tracr.viz.agreement import Agreement
from tracr.viz.blocks import Block, beside, evenly, figure_of, lowered, matrix, note, titled
from tracr.viz.canvas import text_width
from tracr.viz.choosing import chosen, one_run
from tracr.viz.labels import value_label, visible
from tracr.viz.selectors import selected

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel

__all__ = ["attention_patterns"]

FAINT = 1e-3  # attention too weak to be visible
PATTERN_CELL = (0.24, 0.2)

Array = NDArray[Any]
Matrix = NDArray[np.bool_]


def attention_patterns(
    model: DesignedModel,
    tokens: Sequence[Any] | Run,
    *,
    only: Sequence[str] | None = None,
    width: float = 13.0,
    ax: Axes | None = None,
) -> Figure:
    """Draw the selector and the attention pattern of every head, for one input.

    Args:
        model: a compiled model.
        tokens: an input, or the run of one input.
        only: draw these heads only, by their names in the ground truth (`blocks.1.attn.0`).
        width: the largest width in inches; more heads go into further rows.
        ax: draw in this axes instead of a new figure.
    """
    run = one_run(model, tokens)
    given = [token for token in run.tokens[0][1:] if token != model.options.pad]
    agreement = Agreement(model, run, designs := selected(model, given))
    heads = {f"blocks.{layer}.attn.{place}": (layer, place) for layer, place in agreement.heads}
    names = [value_label(token) for token in run.tokens[0][: len(given) + 1]]
    blocks = []
    for layer, place in chosen(heads, only, "head").values():
        head = agreement.heads[layer, place]
        pattern = run[f"blocks.{layer}.attn.hook_pattern"][0, place, : len(names), : len(names)]
        writes = ", ".join(variable.label for variable, _ in head.writes)
        title, subtitle = f"Attn {layer}, head {place}", visible(f"{head.selector} → {writes}")
        both = _pair(pattern, names, designs.get(head.selector))
        blocks.append(titled(title, subtitle, both, agreement.remark((layer, place))))
    return figure_of(blocks or [note("This model has no attention heads.")], width, ax)


def _pair(pattern: Array, names: Sequence[str], design: Matrix | None) -> Block:
    """The selector and, right of it, the pattern."""
    size = len(names)
    cells = PATTERN_CELL[1], max(PATTERN_CELL[0], min(0.5, max(map(text_width, names)) + 0.06))
    rows, columns = (evenly(size, cell, names) for cell in cells)
    title, shown = _strengthened(pattern)
    if design is None:
        right = matrix(title, shown, rows, columns, scale=1)
        return beside([lowered(note("not a selector\nof the program"), PATTERN_CELL[1]), right], 0.25)
    left = matrix("selector", design.astype(float), *(evenly(size - 1, cell, names[1:]) for cell in cells), scale=1)
    right = matrix(title, shown, rows, columns, marked=np.pad(design, ((1, 0), (1, 0))), scale=1)
    return beside([lowered(left, PATTERN_CELL[1]), right], 0.25)


def _strengthened(pattern: Array) -> tuple[str, Array]:
    """A title and the pattern to draw, with stronger keys if BOS has nearly all the weight."""
    keys = float(pattern[:, 1:].max(initial=0.0))
    if not 0 < keys < FAINT:
        return "attention", np.round(pattern, 3)
    stronger = -round(math.log2(keys))
    shown = pattern.astype(np.float64)
    shown[:, 1:] *= 2.0**stronger
    return f"attention (keys × 2^{stronger})", np.round(shown, 3)
