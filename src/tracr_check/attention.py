"""An attention sub-layer: the stream after what its heads add, at token positions, at BOS and at PAD.

At token positions the hints name an owner of each written dimension: a width, the length, an aggregate, or a part of
one of these. The head must have the pattern of the owner's selector, or (for a part) a pattern of its own that is
proved; `aggregate.py` then gives the range for each of the owner's values.
"""

from __future__ import annotations

import numpy as np

from tracr_check.additions import Added, added_to
from tracr_check.aggregate import Values, copied, counted, parted, summed
from tracr_check.elsewhere import at_bos, at_pad
from tracr_check.head import Attention, Head, HeadWeights, States
from tracr_check.variables import Array, Var
from tracr_check.verdict import need, reject

__all__ = ["after_attention"]


def after_attention(
    states: States, heads: list[HeadWeights], bias: Array, owners: list[dict[int, Var]], given: Attention, layer: int
) -> States:
    """The stream after the heads of a layer and their bias."""
    need(len(owners) == len(heads), f"hints for {len(owners)} heads, not {len(heads)}", f"layer {layer}")
    terms = np.sum([(one.w_o != 0).sum(0) for one in heads], axis=0) if heads else np.zeros(len(bias), int)
    found = [Head(states, one, given, f"{layer}.{place}", terms) for place, one in enumerate(heads)]
    _no_overflow(found, bias, int(terms.max(initial=0)), given, layer)
    at_tokens = [one for head, own in zip(found, owners, strict=True) for one in _at_tokens(head, own)]
    bos = [one for head in found for one in at_bos(head)]
    pad = [one for head in found for one in at_pad(head)]
    a = given.arithmetic
    return States(
        added_to(states.tokens, at_tokens, bias, terms, a, "1"),
        added_to(states.bos, bos, bias, terms, a, "B"),
        None if states.pad is None else added_to(states.pad, pad, bias, terms, a, "P"),
    )


def _no_overflow(heads: list[Head], bias: Array, terms: int, given: Attention, layer: int) -> None:
    """No weighted sum of values overflows, at any position, and no partial sum of the products with W_O and the bias.

    Not even one that others cancel: their sizes add up to at most the largest sizes of what each head reads. A weighted
    sum of values is larger than these only by the rounding of the weights and of itself.
    """
    a, sizes = given.arithmetic, np.abs(bias)
    for dim, reading in (pair for head in heads for pair in head.readings.items()):
        sizes[dim] += reading.largest
    most = max([float(sizes.max(initial=0.0)), *(head.largest for head in heads)])
    rounded = most * (1 + a.gamma(terms + 2 * given.program.longest + 30) + 4 * a.storing)
    need(rounded < a.largest, "numbers too large", f"layer {layer}")


def _at_tokens(head: Head, owners: dict[int, Var]) -> list[Added]:
    """What a head adds to each dimension, by the values of its owner."""
    found = []
    for dim in head.readings:
        need(dim in owners, f"no hint for dimension {dim}", head.where)
        owner = owners[dim]
        where = f"{head.where}, dimension {dim}, {head.given.program.name(owner)}"
        is_part = isinstance(owner, str) and owner[:1] in ("c", "s", "p")
        lo, hi, gone = (_of_part if is_part else _of_sop)(head, owner, dim, where)
        need(np.isfinite(lo).all() and np.isfinite(hi).all(), "numbers too large", where)
        found.append(Added(dim, owner, lo, hi, gone))
    return found


def _of_sop(head: Head, owner: Var, dim: int, where: str) -> Values:
    """The range for each value of a length, a width or an aggregate."""
    program, facts = head.given.program, head.given.facts
    kind = "length" if owner == "L" else program.sops[owner].kind  # type: ignore[index]
    if kind == "length":
        need(not program.causal, "a causal head cannot count all keys", where)
        return counted(head.readings[dim], head.selection(None)[1], program.numbers("L"), where)
    sop = program.sops[owner]  # type: ignore[index]
    if kind not in ("width", "aggregation"):
        reject(f"a head cannot compute {sop.label}", where)
    selector = sop.op["selector"]
    _, selection = head.selection(selector)
    if kind == "width":
        return counted(head.readings[dim], selection, np.rint(sop.numbers), where)  # widths are near listed values
    value = sop.op["value"]
    reading, env = head.reading(dim, {value})
    equal, one = facts.equal_values(selector, value), facts.at_most_one(selector)
    return copied(reading, selection, program.sops[value], sop, env.codes[value], equal, one, where)


def _of_part(head: Head, owner: Var, dim: int, where: str) -> Values:
    """The range for each value of a count, a sum or a copy by the head's own pattern."""
    name, parts, facts = str(owner), head.given.parts, head.given.facts
    source = head.given.sources.get(name)
    own = head.number if source is None else f"{head.number}.{source}"
    need(name[1:] == own and name in head.given.sources, "a part of another head", where)
    masks, selection = head.selection("own")
    if source is None and name[0] != "c":
        reject("a part without a source", where)
    parts.add(name, masks, source)
    if source is None or name[0] == "c":
        return counted(head.readings[dim], selection, parts.numbers(name), where)
    reading, env = head.reading(dim, {source})
    codes, sop = env.codes[source], head.given.program.sops[source]
    if name[0] == "s":
        return summed(reading, selection, sop.numbers, codes, parts.numbers(name), where)
    whole = parts.whole_of(name)
    equal, one = facts.equal_values(whole.op["selector"], source), facts.at_most_one(whole.op["selector"])
    one = one or whole.op["assumed"] or not np.isfinite(sop.numbers).any()
    return parted(reading, selection, codes, len(sop.values), equal, one, where)
