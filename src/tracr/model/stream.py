"""The residual stream after every sub-layer, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr.values import Value

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel
    from tracr.model.run import Run

__all__ = ["Step", "cell", "steps", "variable_values"]


@dataclass(frozen=True, eq=False)
class Step:
    """The residual stream [position, direction] after a sub-layer, and the cells that the sub-layer changed.

    Directions are those of `Residual.dimensions`; a direction that is not in the stream at this time is 0. `time` is
    the sub-layer, in the numbering of `Dimension`.
    """

    name: str
    time: int
    computes: tuple[str, ...]
    stream: NDArray[Any]
    changed: NDArray[np.bool_]

    @property
    def idle(self) -> bool:
        """Whether the sub-layer changes nothing."""
        return not (self.name == "embed" or self.computes or self.changed.any())


def cell(number: float) -> str:
    """A number in a few characters, `.` for zero.

    >>> cell(1 / 3), cell(-1e-7), cell(12345.6)
    ('0.333', '.', '12345.6')
    """
    text = f"{number:.3f}".rstrip("0").rstrip(".")
    return "." if text in ("0", "-0") else text


def steps(model: DesignedModel, run: Run, row: int = 0) -> list[Step]:
    """The embedding and every sub-layer, for one input of a run.

    A cell counts as changed if its number differs when shown with three decimals.
    """
    stream = _labelled(model, run["hook_embed"] + run["hook_pos_embed"], -1)[row]
    found = [Step("embed", -1, (), stream, np.round(stream, 3) != 0)]
    for sublayer in model.layout.schedule.sublayers():
        hook = f"blocks.{sublayer.layer}.hook_resid_{'mid' if sublayer.kind == 'attn' else 'post'}"
        after = _labelled(model, run[hook], sublayer.number)[row]
        where = f"blocks.{sublayer.layer}.{sublayer.kind}"
        computes = tuple(model.explanations[f"{where}.{place}"].sentence for place in range(len(sublayer.components)))
        changed = np.round(after, 3) != np.round(stream, 3)
        found.append(Step(f"{sublayer.kind} {sublayer.layer}", sublayer.number, computes, after, changed))
        stream = after
    return found


def _labelled(model: DesignedModel, stream: NDArray[Any], time: int) -> NDArray[Any]:
    """The coordinate of a residual stream in each direction."""
    dimensions = model.residual.dimensions
    held = [dimension.held(time) for dimension in dimensions]
    return np.where(held, model.coordinates(stream)[..., [dimension.index for dimension in dimensions]], 0.0)


def variable_values(model: DesignedModel, tokens: list[Value]) -> dict[str, list[Value]]:
    """The interpreter's values of every variable that is an s-op of the program."""
    from tracr.runtime.table_interpreter import evaluate_batch

    evaluation = evaluate_batch(model.program, [tokens])
    return {node.label: evaluation.values(node.id)[0] for node in model.program.sops.values()}
