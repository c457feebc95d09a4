"""The logits against the program.

An output is decoded from its slice of the logits: the place of the largest (categorical), or the value nearest to the
first logit, `None` if the second is larger than 1/2 (numerical). **Rule**: for every joint value of what the logits
depend on and of the output, the logit of the program's value is larger than every other by more than the bounds of
both; or the first logit lies strictly between the middles around the value, whichever way they are rounded: (a + b) / 2
and a + (b - a) / 2 are within 2^-51 (|a| + |b|) of the middle of a and b. Values that differ from it by at most 1e-9
(relative above 1) count as this value. A number of an interval is the first logit itself, right within 1e-4 (relative
above 1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr_check.arithmetic import Arithmetic
from tracr_check.boxes import INF, State, chunks, joined, read_state, rounded, varying
from tracr_check.cells import TOLERANCE
from tracr_check.joint import joint_values
from tracr_check.parts import Parts
from tracr_check.program import Program
from tracr_check.variables import Array, Codes, SOp, is_number
from tracr_check.verdict import need

__all__ = ["check_outputs"]

CHUNK = 3_000_000  # logits that are compared at a time


def check_outputs(
    program: Program,
    parts: Parts,
    read_by: tuple[State, Array, Array, Array],
    slices: list[Any],
    arithmetic: Arithmetic,
    words: NDArray[np.int64] | None = None,
) -> None:
    """Every output is decoded to the program's value.

    `read_by`: the state, the unembedding, the bias of each logit, and how far it may be off beside its own rounding.
    `words`: the logit of each value, if that must be the largest of all.
    """
    state, unembed, bias, errors = read_by
    need(len(slices) == len(program.outputs), "other outputs than the program's")
    reads = parts.improve(read_state(state, unembed, bias))
    for (name, number), (label, start, stop) in zip(program.outputs, slices, strict=True):
        need(label == name and 0 <= start < stop <= unembed.shape[1], f"output {name} has no logits")
        sop, columns = program.sops[number], np.arange(start, stop)
        names = {one for one, places in varying(reads).items() if places[columns].any()}
        env = joint_values(program, {*names, number}, state.dead)
        need(env.rows, "no input is defined", f"output {name}")
        logits = np.arange(len(sop.values)) if words is None else words
        for part in map(env.at, chunks(env.rows, len(columns), CHUNK)):
            read, codes, where = joined(reads, part, columns), part.codes[number], f"output {name}"
            off = rounded(read, arithmetic) + errors[columns]
            lo, hi = read.lo - off, read.hi + off
            if sop.categorical or words is not None:
                need(words is not None or len(columns) == len(logits), "another number of logits than values", where)
                _largest(sop, codes, logits[codes], lo, hi, where)
            else:
                _number(sop, codes, lo, hi, where)


def _largest(sop: SOp, codes: Codes, logits: Codes, lo: Array, hi: Array, where: str) -> None:
    """The logit of each value is larger than all others."""
    mine = np.take_along_axis(lo, logits[:, None], 1)[:, 0]
    others = hi.copy()
    np.put_along_axis(others, logits[:, None], -INF, 1)
    gap = mine - others.max(1, initial=-INF)
    worst = int(gap.argmin())
    need(gap[worst] > 0, f"{sop.values[codes[worst]]!r:.40} is not surely the largest logit ({gap[worst]:.3g})", where)


def _number(sop: SOp, codes: Codes, lo: Array, hi: Array, where: str) -> None:
    """The first logit is near the number, and `None` is told apart from numbers."""
    need(lo.shape[1] in (1, 2), "another number of logits than a number needs", where)
    known = np.isfinite(sop.numbers[codes])
    (_listed if sop.listed else _in_interval)(sop, codes[known], lo[known, 0], hi[known, 0], where)
    if lo.shape[1] == 1:
        need(known.all(), "None has no logit", where)
    else:
        need((lo[~known, 1] > 0.5).all() and (hi[known, 1] < 0.5).all(), "None is not told apart", where)


def _in_interval(sop: SOp, codes: Codes, lo: Array, hi: Array, where: str) -> None:
    """Every number of the cell is within the tolerance of every number that the logit can be."""
    middle, radius = sop.numbers[codes], sop.radius[codes]
    off = np.maximum(hi - middle, middle - lo) + radius
    near = off < TOLERANCE * np.maximum(1.0, np.abs(middle) - radius)
    need(near.all(), f"a number may be off by {off[~near].max(initial=0.0):.3g}", where)


def _listed(sop: SOp, codes: Codes, lo: Array, hi: Array, where: str) -> None:
    """No number that the logit can be is nearer to another value."""
    need(all(is_number(value) or value is None for value in sop.values), "a value is neither a number nor None", where)
    ordered, numbers = np.sort(sop.numbers[np.isfinite(sop.numbers)]), sop.numbers[codes]
    middles, near = (ordered[1:] + ordered[:-1]) / 2, 1e-9 * np.maximum(1.0, np.abs(numbers))
    rounding = 2.0**-50 * (np.abs(ordered[1:]) + np.abs(ordered[:-1]))
    starts = np.searchsorted(ordered, numbers - near)
    stops = np.searchsorted(ordered, numbers + near, side="right") - 1
    gap = np.minimum(lo - np.append(-INF, middles + rounding)[starts], np.append(middles - rounding, INF)[stops] - hi)
    if len(gap):
        worst = int(gap.argmin())
        read = f"[{lo[worst]}, {hi[worst]}]"
        need(gap[worst] > 0, f"{numbers[worst]} may be read as another value: {read}", where)
