"""The scores of injected heads: columns that add 0 where a condition holds, and at most -1 where it does not.

A condition on the distance of two positions is a rotation: positions lie on a circle, and a key is compared with the
place that its query looks for. Other conditions are sums over kinds of queries, or of keys, whichever are fewer.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tracr.graft.injection.circuit import CIRCLE, HERE, Column

if TYPE_CHECKING:
    from tracr.graft.injection.demands import Demands
    from tracr.graft.injection.steps import Dims
    from tracr.ir.program import Tables

__all__ = ["circle_columns", "period_of", "selecting_columns"]


def selecting_columns(selected: NDArray[np.bool_], queries: Dims, keys: Dims) -> list[Column]:
    """The columns of a table [query code, key code] of selected pairs."""
    by_rows = _one_sided(selected, queries, keys)
    by_columns = [Column(one.key, one.query) for one in _one_sided(selected.T, keys, queries)]
    columns = min(by_rows, by_columns, key=len)
    return [Column(one.query, {dim: -weight for dim, weight in one.key.items()}) for one in columns]


def _one_sided(selected: NDArray[np.bool_], rows: Dims, columns: Dims) -> list[Column]:
    """For each kind of row, the product of "is of this kind" and "is a column that it does not select"."""
    patterns, kinds = np.unique(selected, axis=0, return_inverse=True)
    found = []
    for kind, pattern in enumerate(patterns):
        if not pattern.all():
            row = {rows(int(code)): 1.0 for code in np.flatnonzero(kinds.ravel() == kind)}
            found.append(Column(row, {columns(int(code)): 1.0 for code in np.flatnonzero(~pattern)}))
    return found


def period_of(program: Tables, demands: Demands) -> int:
    """The number of places on the circle: no two positions, looking back, meet on it by accident."""
    return int(program.options.max_seq_len + max(demands.shifts) + 1)


def circle_columns(distance: int, period: int) -> list[Column]:
    """cos(angle between the key and the place looked for) - 1, scaled so that neighbours get -1."""
    angle, cosine, sine = 2 * math.pi / period, (CIRCLE, 0), (CIRCLE, 1)
    turn, scale = angle * distance, 1 / (1 - math.cos(angle))
    back = {cosine: math.cos(turn), sine: math.sin(turn)}  # cos(a - t) = cos a cos t + sin a sin t
    across = {cosine: -math.sin(turn), sine: math.cos(turn)}
    return [Column(back, {cosine: scale}), Column(across, {sine: scale}), Column({HERE: 1.0}, {HERE: -scale})]
