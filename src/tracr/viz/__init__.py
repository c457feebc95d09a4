"""Publication figures (extra `viz`), the notebook display of models and runs, and the explorer page.

stream_figure.py      the residual stream after each sub-layer, for one input
graph_figure.py       the program as a graph, with the domain of each s-op; layering.py places the boxes
attention_figure.py   the attention pattern and the selector of each head; selectors.py computes the selectors,
                      agreement.py compares the two
weights_figure.py     W_QK and W_OV of heads, W_in and W_out of neurons, with labelled rows and columns
layers_figure.py      the components of each layer
slots_figure.py       the variable stored in each dimension, sub-layer by sub-layer
canvas.py             the drawing surface of all figures; blocks.py: pieces of known size; choosing.py: parts to draw
labels.py, rows.py    the labels of values and dimensions
notebook.py           models, runs and verification reports as HTML
explorer/             one self-contained HTML page that runs the model and its program; `gallery` shows several models

Every figure function returns a matplotlib Figure and displays nothing. It draws into `ax` if one is given.
"""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING, Any

from tracr.errors import InputError, TracrError
from tracr.spelling import did_you_mean

__all__ = [
    "KINDS",
    "attention_patterns",
    "computational_graph",
    "dimension_use",
    "figure",
    "gallery",
    "layer_allocation",
    "residual_stream",
    "weight_matrices",
]

KINDS = {
    "stream": "residual_stream",
    "graph": "computational_graph",
    "attention": "attention_patterns",
    "weights": "weight_matrices",
    "layers": "layer_allocation",
    "slots": "dimension_use",
}
"""The short names of the figures: those of `model.figure` and `tracr figure`."""

OF_AN_INPUT = ("stream", "attention")

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tracr.model.designed import DesignedModel
    from tracr.viz.attention_figure import attention_patterns
    from tracr.viz.explorer.gallery import gallery
    from tracr.viz.graph_figure import computational_graph
    from tracr.viz.layers_figure import layer_allocation
    from tracr.viz.slots_figure import dimension_use
    from tracr.viz.stream_figure import residual_stream
    from tracr.viz.weights_figure import weight_matrices
else:

    def __getattr__(name: str) -> Any:
        """A figure function, imported (with matplotlib) on first use; or `gallery`."""
        if name == "gallery":
            return importlib.import_module(f"{__name__}.explorer.gallery").gallery
        kinds = {function: kind for kind, function in KINDS.items()}
        if name not in kinds:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from tracr.extras import need

        need("matplotlib", extra="viz")
        return getattr(importlib.import_module(f"{__name__}.{kinds[name]}_figure"), name)


def figure(model: DesignedModel, kind: str, tokens: Any = None, **options: Any) -> Figure:
    """Draw the figure of a kind, as `model.figure` and `tracr figure` do."""
    if kind not in KINDS:
        raise TracrError(f"no figure {kind!r}", hint=did_you_mean(str(kind), KINDS, f"there are {', '.join(KINDS)}"))
    if (tokens is not None) != (kind in OF_AN_INPUT):
        raise InputError(
            f"the figure {kind!r} {'needs an input' if tokens is None else 'takes no input'}",
            hint="add the tokens (--input on the command line)" if tokens is None else "leave the tokens out",
        )
    draw = getattr(importlib.import_module(__name__), KINDS[kind])
    known = [name for name, p in inspect.signature(draw).parameters.items() if p.kind is p.KEYWORD_ONLY]
    for name in options:
        if name not in known:
            raise TracrError(f"the figure {kind!r} has no option {name!r}", hint=f"it has {', '.join(known)}")
    return draw(model, **options) if tokens is None else draw(model, tokens, **options)  # type: ignore[no-any-return]
