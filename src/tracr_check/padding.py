"""PAD positions as cases: a row of boxes is split where the neurons that read it bend.

At PAD nothing is known of where queries look, so what a head writes is an interval. An MLP turns such a number into
several dimensions that depend on each other (the coordinates of a code; a number and its square), which one box by
dimension would forget. **Rule**: if a set of rows contains every stream at PAD positions, so does the set in which a
row is replaced by rows whose boxes cover it. A row is cut along one dimension at the kinks of the neurons that read it
with dimensions that are points in the row, and at powers of two, where the grid of floats changes. Equal rows are one.
"""

from __future__ import annotations

import itertools

import numpy as np

from tracr_check.arithmetic import Arithmetic
from tracr_check.boxes import Boxes, State, natural
from tracr_check.mlp import Neurons
from tracr_check.program import Array, Var

__all__ = ["split_rows"]

MOST_ROWS = 6_000
MOST_CUTS = 400


def split_rows(state: State, name: Var, neurons: Neurons, arithmetic: Arithmetic) -> State:
    """The state with rows cut where neurons bend."""
    boxes = state.tables[name]
    lo, hi = np.zeros((len(boxes.lo), state.width)), np.zeros((len(boxes.lo), state.width))
    lo[:, boxes.dims], hi[:, boxes.dims] = boxes.lo, boxes.hi
    read = (neurons.w_in != 0).any(1)
    for dim in np.flatnonzero(((lo != hi).any(0)) & read).tolist():
        lo, hi = _merged(lo, hi)
        lo, hi = _cut(lo, hi, dim, neurons)
    lo, hi = _merged(lo, hi)
    grid = natural(lo, hi, arithmetic.stored_bits)
    return State(state.width, {name: Boxes(np.arange(state.width), lo, hi, grid)})


def _merged(lo: Array, hi: Array) -> tuple[Array, Array]:
    """Each row once."""
    both = np.unique(np.hstack([lo, hi]), axis=0)
    return both[:, : lo.shape[1]], both[:, lo.shape[1] :]


def _cut(lo: Array, hi: Array, dim: int, neurons: Neurons) -> tuple[Array, Array]:
    """Rows cut along one dimension; as they were if there would be too many."""
    rows: list[tuple[int, float, float]] = []
    for row in range(len(lo)):
        cuts = _cuts(lo[row], hi[row], dim, neurons) if lo[row, dim] < hi[row, dim] else []
        if len(cuts) > MOST_CUTS:
            return lo, hi
        ends = [lo[row, dim], *cuts, hi[row, dim]]
        rows += [(row, a, b) for a, b in itertools.pairwise(ends)]
        if len(rows) > MOST_ROWS:
            return lo, hi
    places = [row for row, _, _ in rows]
    new_lo, new_hi = lo[places], hi[places]
    new_lo[:, dim], new_hi[:, dim] = [a for _, a, _ in rows], [b for _, _, b in rows]
    return new_lo, new_hi


def _cuts(lo: Array, hi: Array, dim: int, neurons: Neurons) -> list[float]:
    """Where the neurons that read a dimension, and else only points, bend; and powers of two."""
    others = neurons.w_in.copy()
    others[dim] = 0.0
    alone = (neurons.w_in[dim] != 0) & ~(others[lo != hi] != 0).any(0)
    kinks = -(neurons.b_in[alone] + lo @ others[:, alone]) / neurons.w_in[dim, alone]
    points = np.unique(np.concatenate([kinks, [0.25, 0.5, 1.0]]))
    return [float(point) for point in points if lo[dim] < point < hi[dim]]
