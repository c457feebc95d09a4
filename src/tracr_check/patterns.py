"""What can hold together at a pair of positions: a selector, and the masks of heads.

The selector is made of tables, a mask of factors. All are evaluated on common classes of queries and keys; each
combination of truth values that occurs is kept once. If the classes are many, variables that nothing links are
enumerated apart, and all combinations of what occurs are kept (`groups.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tracr_check.groups import Group, Link, fitting
from tracr_check.joint import joint_values
from tracr_check.program import Program, Selected
from tracr_check.selection import Mask
from tracr_check.variables import Codes, Env
from tracr_check.verdict import need

__all__ = ["patterns"]

Truth = NDArray[np.bool_]
CLASSES = 2_000
CELLS = 20_000_000
MOST = 1_000_000  # patterns


def patterns(
    program: Program, selector: int, masks: Sequence[Sequence[Mask]], value: int | None = None
) -> tuple[Truth, Truth, list[Truth], Codes]:
    """For each pattern: whether the selector selects, whether it is defined, whether each mask selects.

    Also the code of an s-op at the key, if a `value` is given: its bits are further statements.
    """
    literals = program.literals(selector)
    factors = [one for mask in masks for one in mask]
    bits = 0 if value is None else program.sizes[value].bit_length()

    def evaluated(place: int, queries: Env, keys: Env) -> Selected:
        if place < len(literals):
            return program.selected(literals[place].number, queries, keys)
        if place >= len(literals) + len(factors):
            assert value is not None
            codes = program.codes(value, keys)
            bit = codes >> (place - len(literals) - len(factors)) & 1
            shape = queries.rows, keys.rows
            return np.broadcast_to(bit == 1, shape), np.broadcast_to(codes >= 0, shape)
        chosen = _expanded(program, factors[place - len(literals)], queries, keys)
        return chosen, np.ones_like(chosen)

    links: list[Link] = [(frozenset(q), frozenset(k)) for q, k in (program.sides(one.number) for one in literals)]
    links += [(frozenset(one.queries.free), frozenset(one.keys.free)) for one in factors]
    links += [(frozenset(), frozenset({value}))] * bits if value is not None else []
    found = [_occurring(program, group, evaluated) for group in fitting(program, links, lambda g: _classes(program, g))]
    sizes = [len(codes) for codes, _ in found]
    need(math.prod(sizes) <= MOST, "too many patterns in a sum of heads")
    program.spend(100 * math.prod(sizes))  # what is computed of them is more than the patterns
    rows = np.indices(sizes).reshape(len(sizes), -1)
    truths = {
        place: (codes[at] >> (2 * bit) & 1 == 1, codes[at] >> (2 * bit + 1) & 1 == 1)
        for (codes, group), at in zip(found, rows, strict=True)
        for bit, place in enumerate(group.links)
    }
    known = {one.number: truths[place] for place, one in enumerate(literals)}
    wanted, defined = program.selected(selector, Env(0, {}), Env(0, {}), True, known)
    chosen = iter([truths[len(literals) + place][0] for place in range(len(factors))])
    codes = np.zeros(len(wanted), dtype=np.int64)
    for bit in range(bits):
        one, fine = truths[len(literals) + len(factors) + bit]
        codes, defined = codes + (one.astype(np.int64) << bit), defined & fine
    return wanted, defined, [np.logical_and.reduce([next(chosen) for _ in mask]) for mask in masks], codes


def _classes(program: Program, group: Group) -> tuple[Env, Env]:
    """The classes of queries and of keys of a group."""
    return joint_values(program, group.queries, few=CLASSES), joint_values(program, group.keys, few=CLASSES)


def _occurring(program: Program, group: Group, evaluated: Callable[[int, Env, Env], Selected]) -> tuple[Codes, Group]:
    """The combinations of truth values that occur in a group, as bits: selected and defined for each statement."""
    queries, keys = _classes(program, group)
    need(queries.rows * keys.rows <= CELLS and len(group.links) <= 31, "too many classes in a sum of heads")
    program.spend(queries.rows * keys.rows * (len(group.links) + 1))
    codes = np.zeros((queries.rows, keys.rows), dtype=np.int64)
    for bit, place in enumerate(group.links):
        chosen, defined = evaluated(place, queries, keys)
        codes |= (chosen.astype(np.int64) << (2 * bit)) | (defined.astype(np.int64) << (2 * bit + 1))
    return np.unique(codes), group


def _expanded(program: Program, mask: Mask, queries: Env, keys: Env) -> Truth:
    """A mask on other classes, which list all the variables of its own."""
    rows, columns = _places(program, mask.queries, queries), _places(program, mask.keys, keys)
    return mask.chosen[np.ix_(rows, columns)]


def _places(program: Program, small: Env, big: Env) -> Codes:
    """The row of `small` that agrees with each row of `big`."""
    names = small.free
    if not names:
        need(small.rows == 1, "classes of a part")
        return np.zeros(big.rows, np.int64)
    sizes = [program.sizes[name] for name in names]
    own = np.ravel_multi_index([small.codes[name] for name in names], sizes)
    wanted = np.ravel_multi_index([program.codes(name, big) for name in names], sizes)
    order = np.argsort(own)
    places = np.searchsorted(own[order], wanted)
    found = order[np.minimum(places, len(order) - 1)]
    need((own[found] == wanted).all(), "classes of a part are missing")
    return found
