"""The attention pattern of every head beside the selector the program asks for.

Rows are queries, columns keys. The pattern has BOS in front; cells that the selector selects have a dark border. A
head that averages or copies spreads its weight over them evenly, or rests on BOS if there are none; a head that counts
leaves BOS a share, from which the count is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from tracr.errors import InputError, TracrError
from tracr.model.compiled import Run
from tracr.viz.blocks import Block, beside, figure_of, labels, lowered, matrix, note, titled
from tracr.viz.canvas import text_width
from tracr.viz.labels import value_label
from tracr.viz.selectors import selected

if TYPE_CHECKING:
    from tracr.craft.heads import Head
    from tracr.model.compiled import CompiledModel

__all__ = ["attention_patterns"]

AGREES = 1e-3
CELL = (0.24, 0.2)


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
    run = tokens if isinstance(tokens, Run) else model.run(tokens)
    if len(run.tokens) != 1:
        raise InputError(
            f"the figure shows one input, not a batch of {len(run.tokens)}", hint="call it for one input at a time"
        )
    given = [token for token in run.tokens[0][1:] if token != model.options.pad]
    known = {
        f"blocks.{number}.attn.{place}": (number, place)
        for number, layer in enumerate(model.construction.layers)
        for place in range(len(layer.heads))
    }
    for name in only or ():
        if name not in known:
            raise TracrError(f"no head {name!r}", hint=f"there are {', '.join(known) or 'none'}")
    designs = selected(model, given)
    names = [value_label(token) for token in run.tokens[0][: len(given) + 1]]
    blocks = [
        _head_block(place, model.construction.layers[place[0]].heads[place[1]], run, names, designs)
        for name, place in known.items()
        if only is None or name in only
    ]
    return figure_of(blocks or [note("This model has no attention heads.")], width, ax)


def _head_block(
    place: tuple[int, int], head: Head, run: Run, names: Sequence[str], designs: Mapping[str, NDArray[np.bool_]]
) -> Block:
    design = designs.get(head.selector)
    size = len(names)
    pattern = run[f"blocks.{place[0]}.attn.hook_pattern"][0, place[1], :size, :size]
    width = max(CELL[0], min(0.5, max(map(text_width, names)) + 0.06))
    rows, columns = (labels([(name, "") for name in names], cell) for cell in (CELL[1], width))
    writes = ", ".join(variable.label for variable, _ in head.writes)
    if design is None:
        left, marked, remark = note("not a selector\nof the program"), None, ""
    else:
        inner = (labels([(name, "") for name in names[1:]], cell) for cell in (CELL[1], width))
        left = matrix("selector", design.astype(float), *inner, scale=1)
        marked = np.pad(design, ((1, 0), (1, 0)))
        off = _difference(pattern, design)
        remark = "attends evenly to what is selected" if off < AGREES else f"differs from the selector by {off:.2f}"
    right = matrix("attention", np.round(pattern, 3), rows, columns, marked=marked, scale=1)
    both = beside([lowered(left, CELL[1]), right], 0.25)
    return titled(f"Attn {place[0] + 1}, head {place[1] + 1}", f"{head.selector} → {writes}", both, remark)


def _difference(pattern: NDArray[Any], design: NDArray[np.bool_]) -> float:
    """How far a pattern is from its selector's: the same weight for every selected key, the rest on BOS."""
    counts = design.sum(axis=1, keepdims=True)
    bos = np.where(counts > 0, pattern[1:, :1], 1.0)
    even = design / np.maximum(counts, 1) * (1 - bos)
    return float(np.abs(pattern[1:] - np.concatenate([bos, even], axis=1)).max(initial=0.0))
