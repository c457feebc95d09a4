"""What a head adds at BOS and at PAD.

*BOS*: its query is proved to give all weight to BOS.

*PAD*: nothing is said of which keys its queries should see. The pattern of a head may be proved (`selection.py`, with
its own mask). If it has no keys, BOS has all the weight. Else the owner is a new variable:

- *counting*: w of the n keys of tokens share the weight with BOS; the value is w.
- *copying*: BOS is `apart` below the keys of the mask, and one factor of the mask allows each query one value of a
  variable that is distinct. So at most one key of a token is selected, and it or BOS has all the weight: the value is
  what the head's values depend on at this key, or BOS.

Else: computed weights are not negative and add up to 1 within their rounding, so the result is between the smallest and
the largest value, and has their sign. Under a causal mask tokens do not see PAD; it is followed only because a number
there that overflows would reach them: 0 times infinity is no number.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from tracr_check.additions import Added
from tracr_check.aggregate import Reading, counted
from tracr_check.boxes import State, read_state
from tracr_check.head import Head, Queries, through
from tracr_check.padding import JOINT, pad_rows, pad_size
from tracr_check.scores import scores
from tracr_check.selection import Mask, Selection, is_apart
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
        keys = scores(query, head.of_classes(head.keys, head.weights.b_k, used), key.middle, a)[1]
        top = np.maximum(keys.max(), head.pad_bound(query, key.middle, used))
        own = scores(query, key, key.middle, a)[0][:, 0]
        need(is_apart(top, own, a).all(), "the BOS query sees other keys", head.where)
    return _default(head, "B")


def _default(head: Head, owner: Var) -> list[Added]:
    """What queries add that give all weight to BOS."""
    return [Added(dim, owner, *reading.values(*reading.at_bos)) for dim, reading in head.readings.items()]


def at_pad(head: Head) -> list[Added]:
    """What BOS holds, a count of 0 to n keys or a copy of one if the pattern is proved, else a mean of anything."""
    pad = head.states.pad
    if pad is None or not head.readings:
        return []
    with contextlib.suppress(Rejected):
        masks, selection = _pad_selection(head, pad)
        if selection.never:
            return _default(head, "P")
        if not head.given.program.causal:
            if selection.weight is not None:
                counts = np.arange(head.given.program.longest + 1.0)
                found = {dim: counted(one, selection, counts, head.where) for dim, one in _with_pad(head).items()}
                return [Added(dim, f"P{head.number}", *values) for dim, values in found.items()]
            if _one_key(head, masks):
                return _pad_copies(head)
    return [_pad_mean(head, dim, reading) for dim, reading in _with_pad(head).items()]


def _with_pad(head: Head) -> dict[int, Reading]:
    """What each dimension reads, at PAD too: a row more."""
    assert head.pad_value is not None
    found = {}
    for dim, reading in head.readings.items():
        lo, hi, size = map(np.append, (reading.lo, reading.hi, reading.size), head.written(dim, head.pad_value))
        found[dim] = replace(reading, lo=lo, hi=hi, size=size)
    return found


def _one_key(head: Head, masks: Sequence[Mask]) -> bool:
    """Whether no query selects two keys of tokens: a factor allows one value of a variable that is distinct."""
    return any(
        (mask.chosen.sum(1) <= 1).all() and any(head.given.facts.distinct(name) for name in mask.keys.free)
        for mask in masks
    )


def _pad_copies(head: Head) -> list[Added]:
    """What PAD queries add that copy one key or BOS, by the joint values of what the head's values depend on."""
    every = np.flatnonzero((head.weights.w_o != 0).any(1))
    vectors, _ = head.values_at(every, limit=JOINT)
    found = []
    for dim, reading in head.readings.items():
        column = head.weights.w_o[every, dim]
        used = np.flatnonzero(column)
        lo, hi, size = through(vectors.of(used), column[used])
        off, (b_lo, b_hi) = reading.alone(size), reading.at_bos
        values = reading.values(np.append(lo - off, b_lo), np.append(hi + off, b_hi))
        found.append(Added(dim, f"P{head.number}", *values))
    return found


def _pad_mean(head: Head, dim: int, reading: Reading) -> Added:
    """What PAD queries add if nothing is known of their pattern; one component keeps its sign."""
    a = head.a
    low, high = min(float(reading.lo.min()), reading.bos[0]), max(float(reading.hi.max()), reading.bos[1])
    relative = 4 * (a.gamma(2 * reading.keys + 8) + reading.tail) + 8 * a.storing
    off = relative * reading.largest + reading.flushed(None)
    least, most = low - off, high + off
    if np.count_nonzero(head.weights.w_o[:, dim]) == 1:
        least, most = max(least, 0.0) if low >= 0 else least, min(most, 0.0) if high <= 0 else most
    return Added(dim, "P", np.array([least]), np.array([most]), np.zeros(1, dtype=bool))


def _pad_selection(head: Head, pad: State) -> tuple[tuple[Mask, ...], Selection]:
    """The pattern of PAD queries, proved."""
    reads = read_state(pad, head.weights.w_q, head.weights.b_q)

    def classes(names: Iterable[Var]) -> Env:
        need(pad_size(pad, *names) <= JOINT, "too many classes of PAD", head.where)
        return pad_rows(pad, names, JOINT)

    return head.proved(Queries(reads, classes, see_pad=True), "own")
