"""The logits against the program.

An output is decoded from its slice of the logits: the place of the largest (categorical), or the value nearest to the
first logit, `None` if the second is larger than 1/2 (numerical). **Rule**: for every joint value of what the logits
depend on and of the output, the logit of the program's value is larger than every other by more than the bounds of
both; or the first logit lies strictly between the middles around the value. Values that differ from it by at most 1e-9
(relative above 1) count as this value. A number of an interval is the first logit itself, right within 1e-4 (relative
above 1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr_check.arithmetic import Arithmetic
from tracr_check.boxes import INF, State, joined, read_state, rounded, varying
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
        compare = _categorical if sop.categorical else _numerical if sop.listed else _in_interval
        step = max(1, CHUNK // len(columns))
        for part in (env.at(slice(start, start + step)) for start in range(0, env.rows, step)):
            read, codes, where = joined(reads, set(part.codes), part, columns), part.codes[number], f"output {name}"
            off = rounded(read, arithmetic) + errors[columns]
            if words is not None:
                _largest(sop, codes, words[codes], read.lo - off, read.hi + off, where)
            else:
                compare(sop, codes, read.lo - off, read.hi + off, where)


def _categorical(sop: SOp, codes: Codes, lo: Array, hi: Array, where: str) -> None:
    need(lo.shape[1] == len(sop.values), "another number of logits than values", where)
    _largest(sop, codes, codes, lo, hi, where)


def _largest(sop: SOp, codes: Codes, logits: Codes, lo: Array, hi: Array, where: str) -> None:
    """The logit of each value is larger than all others."""
    mine = np.take_along_axis(lo, logits[:, None], 1)[:, 0]
    others = hi.copy()
    np.put_along_axis(others, logits[:, None], -INF, 1)
    gap = mine - others.max(1, initial=-INF)
    worst = int(gap.argmin())
    need(gap[worst] > 0, f"{sop.values[codes[worst]]!r:.40} is not surely the largest logit ({gap[worst]:.3g})", where)


def _in_interval(sop: SOp, codes: Codes, lo: Array, hi: Array, where: str) -> None:
    """Every number of the cell is within the tolerance of every number that the logit can be."""
    need(lo.shape[1] in (1, 2), "another number of logits than a number needs", where)
    middle, radius = sop.numbers[codes], sop.radius[codes]
    known = np.isfinite(middle)
    off = np.maximum(hi[known, 0] - middle[known], middle[known] - lo[known, 0]) + radius[known]
    near = off < TOLERANCE * np.maximum(1.0, np.abs(middle[known]) - radius[known])
    need(near.all(), f"a number may be off by {off[~near].max(initial=0.0):.3g}", where)
    _check_none(known, lo, hi, where)


def _check_none(known: NDArray[np.bool_], lo: Array, hi: Array, where: str) -> None:
    """`None` is told apart from numbers."""
    if lo.shape[1] == 1:
        need(known.all(), "None has no logit", where)
    else:
        need((lo[~known, 1] > 0.5).all() and (hi[known, 1] < 0.5).all(), "None is not told apart", where)


def _numerical(sop: SOp, codes: Codes, lo: Array, hi: Array, where: str) -> None:
    need(lo.shape[1] in (1, 2), "another number of logits than a number needs", where)
    need(all(is_number(value) or value is None for value in sop.values), "a value is neither a number nor None", where)
    ordered = np.sort(sop.numbers[np.isfinite(sop.numbers)])
    middles = (ordered[1:] + ordered[:-1]) / 2
    numbers = sop.numbers[codes]
    known = np.isfinite(numbers)
    near = 1e-9 * np.maximum(1.0, np.abs(numbers[known]))
    starts = np.searchsorted(ordered, numbers[known] - near)
    stops = np.searchsorted(ordered, numbers[known] + near, side="right") - 1
    below, above = np.append(-INF, middles)[starts], np.append(middles, INF)[stops]
    gap = np.minimum(lo[known, 0] - below, above - hi[known, 0])
    if len(gap):
        worst = int(gap.argmin())
        text = f"{numbers[known][worst]} may be read as another value: [{lo[known, 0][worst]}, {hi[known, 0][worst]}]"
        need(gap[worst] > 0, text, where)
    _check_none(known, lo, hi, where)
