"""What a head adds at BOS and at PAD.

*BOS*: its query is proved to give all weight to BOS.

*PAD*: nothing is proved of which keys its queries should see. If their pattern is proved, each key of a token is near
BOS (by the mask of the query's class) or `apart` below, as PAD is; so w of the n keys share the weight with BOS, and
the owner is a new variable whose value is w. Else: computed weights are not negative and add up to 1 within their
rounding, so the result is between the smallest and the largest value, and has their sign. Under a causal mask tokens do
not see PAD; it is followed only because a number there that overflows would reach them: 0 times infinity is no number.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from tracr_check.additions import Added
from tracr_check.aggregate import Reading, counted
from tracr_check.boxes import State, read_state
from tracr_check.head import Head, Queries, through
from tracr_check.padding import JOINT, pad_rows, pad_size
from tracr_check.scores import scores
from tracr_check.selection import Selection
from tracr_check.variables import Env, Var
from tracr_check.verdict import Rejected, need

__all__ = ["at_bos", "at_pad"]


def at_bos(head: Head) -> list[Added]:
    """BOS sees itself only: all other keys are `apart` below. Components that are 0 in its query do not matter."""
    if not head.readings:
        return []
    a = head.a
    if not head.given.program.causal:
        used = np.flatnonzero(head.bos_query.size.any(0))
        query, key = head.bos_query.of(used), head.bos_key.of(used)
        tops = [scores(query, head.all_keys(used), key.middle, a)[1].max()]
        pad = head.pad_bound(query, key.middle, used)
        tops += [] if pad is None else [pad.max()]
        own = scores(query, key, key.middle, a)[0][0, 0]
        need(max(tops) <= own - a.apart, "the BOS query sees other keys", head.where)
    found = []
    for dim, reading in head.readings.items():
        (lo, hi), leak = reading.at_bos(a), reading.leak(a)
        found.append(Added(dim, "B", np.array([lo - leak]), np.array([hi + leak]), np.zeros(1, dtype=bool)))
    return found


def at_pad(head: Head) -> list[Added]:
    """A count of 0 to n keys if the pattern is proved, else a mean of anything."""
    if head.states.pad is None or not head.readings:
        return []
    selection: Selection | None = None
    if not head.given.program.causal:
        with contextlib.suppress(Rejected):
            selection = _pad_selection(head, head.states.pad)
    return [_pad_added(head, dim, reading, selection) for dim, reading in head.readings.items()]


def _pad_added(head: Head, dim: int, reading: Reading, selection: Selection | None) -> Added:
    """What PAD queries add to a dimension."""
    assert head.pad_value is not None
    a, n = head.a, head.given.program.longest
    used = np.flatnonzero(head.weights.w_o[:, dim])
    p_lo, p_hi, _ = through(head.pad_value.of(used), head.weights.w_o[used, dim])
    lo, hi = np.append(reading.lo, p_lo), np.append(reading.hi, p_hi)
    if selection is not None and (selection.weight is not None or selection.never):
        everything = replace(reading, lo=lo, hi=hi, size=np.append(reading.size, reading.pad_size))
        return Added(dim, f"P{head.number}", *counted(everything, selection, np.arange(n + 1.0), a, head.where))
    low, high = min(float(lo.min()), reading.bos[0]), max(float(hi.max()), reading.bos[1])
    relative = 4 * (a.gamma(2 * reading.keys + 8) + reading.tail) + (8 * a.stored_unit if a.narrow else 0.0)
    off = relative * reading.largest + reading.flushed(None, a)
    signed = len(used) == 1
    low = max(low - off, 0.0) if signed and low >= 0 else low - off
    high = min(high + off, 0.0) if signed and high <= 0 else high + off
    return Added(dim, "P", np.array([low]), np.array([high]), np.zeros(1, dtype=bool))


def _pad_selection(head: Head, pad: State) -> Selection:
    """The pattern of PAD queries, proved."""
    reads = read_state(pad, head.weights.w_q, head.weights.b_q)

    def classes(names: Iterable[Var]) -> Env:
        need(pad_size(pad, *names) <= JOINT, "too many classes of PAD", head.where)
        return pad_rows(pad, names, JOINT)

    return head.proved(Queries(reads, classes), "own")[1]
