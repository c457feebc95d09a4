"""The rows of the residual stream: its dimensions grouped by variable; if there are many, without those always zero."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tracr.errors import TracrError
from tracr.ir.layout import ALWAYS
from tracr.viz.labels import value_label, visible

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel
    from tracr.model.residual import Dimension
    from tracr.model.stream import Step

__all__ = ["Group", "Row", "Rows", "grouped", "row_label"]

Rows = Literal["auto", "all", "used"]
MANY_ROWS = 40  # with more rows than this, "auto" leaves out those that are always zero


@dataclass(frozen=True)
class Row:
    """The row of a direction, or (`dimension` is None) a note about the directions left out.

    `number`: the direction's size is the value. If dimensions are shared, the direction is in use from sub-layer
    `since` until before sub-layer `until`.
    """

    label: str
    dimension: int | None
    number: bool = False
    since: int = -1
    until: int = ALWAYS

    def there(self, step: Step) -> bool:
        """Whether the direction is in use after a sub-layer."""
        return self.since <= step.time < self.until


@dataclass(frozen=True)
class Group:
    """The rows of one variable. `scale` is its largest number, at least 1."""

    variable: str
    rows: tuple[Row, ...]
    scale: float
    output: bool

    @property
    def single(self) -> bool:
        """Whether the variable is one number."""
        return len(self.rows) == 1 and self.rows[0].number


def grouped(
    model: DesignedModel, steps: Collection[Step], rows: Rows = "auto", variables: Collection[str] | None = None
) -> tuple[Group, ...]:
    """The rows of all (or only some) variables, for the values of the residual stream."""
    if rows not in get_args(Rows):
        raise TracrError(f"no rows {rows!r}", hint=f"there are {', '.join(get_args(Rows))}")
    found: dict[str, list[Dimension]] = {}
    for dimension in model.residual:
        if variables is None or dimension.variable in variables:
            found.setdefault(dimension.variable, []).append(dimension)
    hide = rows == "used" or (rows == "auto" and sum(map(len, found.values())) > MANY_ROWS)
    largest = np.max([np.abs(step.stream).max(axis=0) for step in steps], axis=0)
    outputs = {variable.label for _, variable in model.circuit.outputs}
    shared = model.residual.shared
    return tuple(_group(name, held, largest, hide, name in outputs, shared) for name, held in found.items())


def _group(name: str, held: list[Dimension], largest: NDArray[Any], hide: bool, output: bool, shared: bool) -> Group:
    zero = [dimension for dimension in held if largest[dimension.number] < 5e-4]
    hidden = zero if hide and len(zero) > 1 else []
    rows = [
        Row(
            row_label(dimension),
            dimension.number,
            dimension.is_number,
            *((dimension.since, dimension.until) if shared else ()),
        )
        for dimension in held
        if dimension not in hidden
    ]
    if hidden:
        rows.append(Row(f"{len(hidden)} more: 0" if rows else f"all {len(hidden)}: 0", None))
    return Group(visible(name), tuple(rows), max(1.0, *(float(largest[d.number]) for d in held)), output)


def row_label(dimension: Dimension) -> str:
    """The value that a dimension represents."""
    if dimension.is_number:
        return "number"
    prefix = f"{dimension.variable}:"
    if dimension.value is None or not dimension.label.startswith(prefix):
        return visible(dimension.label.removeprefix(prefix))
    return value_label(dimension.value)
