"""What can hold together at a pair of positions: a selector, and the masks of heads.

The selector is made of tables, a mask of factors. All are evaluated on common classes of queries and keys; each
combination of truth values that occurs is kept once. If the classes are many, variables that nothing links are
enumerated apart, and all combinations of what occurs are kept (`groups.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from tracr_check.groups import Group, Link, fitting
from tracr_check.joint import joint_values
from tracr_check.program import Program, Selected
from tracr_check.selection import Mask
from tracr_check.variables import Codes, Env, Truth
from tracr_check.verdict import need

__all__ = ["patterns"]

CLASSES = 2_000
CELLS = 20_000_000
MOST = 1_000_000  # patterns
Statement = tuple[Link, Callable[[Env, Env], Selected]]
"""The variables that a statement is about, and where it holds and is defined: [query, key]."""


def patterns(
    program: Program, selector: int, masks: Sequence[Sequence[Mask]], value: int | None = None
) -> tuple[Truth, Truth, list[Truth], Codes]:
    """For each pattern: whether the selector selects, whether it is defined, whether each mask selects.

    Also the code of an s-op at the key, if a `value` is given: its bits are further statements.
    """
    literals = program.literals(selector)
    statements: list[Statement] = [
        (program.sides(one.number), partial(program.selected, one.number)) for one in literals
    ]
    for factor in (one for mask in masks for one in mask):
        about = frozenset(factor.queries.free), frozenset(factor.keys.free)
        statements.append((about, partial(_expanded, program, factor)))
    if value is not None:
        about = frozenset(), frozenset({value})
        statements += [(about, partial(_bit, program, value, bit)) for bit in range(program.sizes[value].bit_length())]
    groups = fitting(program, [link for link, _ in statements], partial(_classes, program))
    found = [_occurring(program, group, statements) for group in groups]
    sizes = [len(codes) for codes, _ in found]
    need(math.prod(sizes) <= MOST, "too many patterns in a sum of heads")
    program.spend(max(100, 2 * len(masks) ** 2) * math.prod(sizes))  # more is computed of patterns than they are
    rows = np.indices(sizes).reshape(len(sizes), -1)
    truths = {
        place: (codes[at] >> (2 * bit) & 1 == 1, codes[at] >> (2 * bit + 1) & 1 == 1)
        for (codes, group), at in zip(found, rows, strict=True)
        for bit, place in enumerate(group.links)
    }
    known = {one.number: truths[place] for place, one in enumerate(literals)}
    wanted, defined = program.selected(selector, Env(0, {}), Env(0, {}), True, known)
    others = (truths[place] for place in range(len(literals), len(statements)))
    chosen = [np.logical_and.reduce([next(others)[0] for _ in mask]) for mask in masks]
    codes = np.zeros(len(wanted), dtype=np.int64)
    for bit, (one, fine) in enumerate(others):
        codes, defined = codes + (one.astype(np.int64) << bit), defined & fine
    return wanted, defined, chosen, codes


def _classes(program: Program, group: Group) -> tuple[Env, Env]:
    """The classes of queries and of keys of a group."""
    return joint_values(program, group.queries, few=CLASSES), joint_values(program, group.keys, few=CLASSES)


def _occurring(program: Program, group: Group, statements: Sequence[Statement]) -> tuple[Codes, Group]:
    """The combinations of truth values that occur in a group, as bits: selected and defined for each statement."""
    queries, keys = _classes(program, group)
    need(queries.rows * keys.rows <= CELLS and len(group.links) <= 31, "too many classes in a sum of heads")
    program.spend(queries.rows * keys.rows * (len(group.links) + 1))
    kind = np.uint32 if len(group.links) <= 16 else np.uint64
    codes = np.zeros((queries.rows, keys.rows), dtype=kind)
    for bit, place in enumerate(group.links):
        for more, truth in enumerate(statements[place][1](queries, keys)):
            codes |= np.left_shift(truth, 2 * bit + more, dtype=kind)
    return np.unique(codes).astype(np.int64), group


def _expanded(program: Program, mask: Mask, queries: Env, keys: Env) -> Selected:
    """A mask on other classes, which list all the variables of its own."""
    rows, columns = _places(program, mask.queries, queries), _places(program, mask.keys, keys)
    chosen = mask.chosen[np.ix_(rows, columns)]
    return chosen, np.ones_like(chosen)


def _bit(program: Program, value: int, bit: int, queries: Env, keys: Env) -> Selected:
    """Whether a bit of the code of an s-op at the key is 1."""
    codes = np.broadcast_to(program.codes(value, keys), (queries.rows, keys.rows))
    return codes >> bit & 1 == 1, codes >= 0


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
