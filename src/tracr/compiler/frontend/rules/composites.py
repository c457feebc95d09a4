"""Facts about combined selectors: how many keys they select, and whether they order the positions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.frontend.rules.counts import Table, Widths, masks
from tracr.compiler.frontend.rules.facts import strict_order
from tracr.compiler.frontend.rules.state import Inference
from tracr.compiler.selectors.conjunctions import Axis, axes_of, truth_of
from tracr.ir.selectors import CompositeNode, Selector, SelectorNode, parts_of

__all__ = ["composite_widths", "implied", "orders_positions", "selection_masks"]


def _sign(difference: int) -> int:
    return (difference > 0) - (difference < 0)


MOST_COMPARED = 3  # s-ops: all combinations of their signs are tried
Sign = int  # of the difference of two values
SIGNS: tuple[Sign, ...] = (-1, 0, 1)
TRIPLES = sorted(  # the signs of a - b, b - c and a - c for three numbers
    {(_sign(a - b), _sign(b - c), _sign(a - c)) for a, b, c in itertools.product(range(3), repeat=3)}
)


def selection_masks(inference: Inference, number: int) -> list[Table] | None:
    """The selection matrix for each length, if it depends only on the shape of the input."""
    found: dict[int, list[NDArray[np.bool_]]] = {}
    for part in parts_of(inference.selectors, number):
        if isinstance(part, SelectorNode):
            sides = inference.facts[part.keys], inference.facts[part.queries]
            own = masks(part.table, *sides, inference.shape, causal=False)
            if own is None:
                return None
            found[part.id] = [mask == 1 for mask in own]
        else:
            inner = [found[other] for other in part.parts]
            found[part.id] = [part.combined(sides) for sides in zip(*inner, strict=True)]
    seen = (np.tril(mask) if inference.options.causal else mask for mask in found[number])
    return [mask.astype(np.int8) for mask in seen]


def composite_widths(inference: Inference, composite: CompositeNode) -> Widths:
    """How many keys a combination can select: exactly from the shape of the input, or by bounds from its parts."""
    exact = selection_masks(inference, composite.id)
    if exact is not None:
        by_shape = np.concatenate([mask.sum(axis=1, dtype=np.int32) for mask in exact])
        return Widths(tuple(np.unique(by_shape).tolist()), by_shape)
    low, high = _bounds(inference, composite)
    if low == 0 and high > 0 and _selects_itself(inference, composite.id):
        low = 1
    if orders_positions(inference, composite.id):
        longest = inference.lengths[1]
        low, high = (1, longest) if _selects_itself(inference, composite.id) else (0, longest - 1)
    return Widths(tuple(range(low, high + 1)), None)


def _bounds(inference: Inference, composite: CompositeNode) -> tuple[int, int]:
    """Bounds on the number of keys that a combination can select, from those of its parts."""
    shortest, longest = inference.lengths
    counts = [inference.widths[part].counts for part in composite.parts]
    least, most = [c[0] if c else 0 for c in counts], [c[-1] if c else 0 for c in counts]
    match composite.kind:
        case "not":
            return max(0, (1 if inference.options.causal else shortest) - most[0]), longest - least[0]
        case "and":
            return 0, min(most)
        case "or":
            return max(least), min(longest, sum(most))


def _selects_itself(inference: Inference, number: int) -> bool:
    """Whether every position surely selects itself: the formula, with each literal applied to a value and itself."""
    known: dict[int, bool | None] = {}
    for part in parts_of(inference.selectors, number):
        if isinstance(part, SelectorNode):
            same = inference.facts[part.keys].canon == inference.facts[part.queries].canon
            cells = (part.table.diagonal() if same else part.table) == 1
            known[part.id] = bool(cells.all()) if cells.all() or not cells.any() else None
            continue
        sides = [known[inner] for inner in part.parts]
        if part.kind == "not":
            known[part.id] = None if sides[0] is None else not sides[0]
        else:
            decided = part.kind == "or"  # one true side decides an or, one false side an and
            unknown = None if None in sides else not decided
            known[part.id] = decided if decided in sides else unknown
    return known[number] is True


def implied(inference: Inference, number: int) -> Iterator[SelectorNode]:
    """Literals that hold wherever the selector holds: itself, or the sides of a conjunction."""
    stack = [number]
    while stack:
        part: Selector = inference.selectors[stack.pop()]
        if isinstance(part, SelectorNode):
            yield part
        elif part.kind == "and":
            stack.extend(part.parts)


def orders_positions(inference: Inference, number: int) -> bool:
    """Whether the selector is a total order of the positions of any input; then no two have the same width.

    Every literal must compare an s-op with itself, and depend only on which value is larger (or on equality). Then the
    formula is a function of one sign for each s-op. At least one s-op must be `distinct`, so any two positions differ
    there. A total order holds for exactly one of (a, b) and (b, a), and is transitive: both are checked for all
    combinations of signs that two, or three, positions can have.
    """
    if number not in inference.orders:
        inference.orders[number] = _is_order(inference, parts_of(inference.selectors, number))
    return inference.orders[number]


def _is_order(inference: Inference, parts: Sequence[Selector]) -> bool:
    literals = [part for part in parts if isinstance(part, SelectorNode)]
    if inference.options.causal or not _compares_with_itself(inference, literals):
        return False
    if all((part.table == part.table.T).all() for part in literals):  # as with ==: it holds both ways, or neither
        return False
    axes = axes_of(parts)
    if len(axes) > MOST_COMPARED:
        return False
    by_sign = [classes for axis in axes if (classes := _classes_by_sign(axis, literals))]
    if len(by_sign) < len(axes):
        return False
    holds = truth_of(parts, axes)[np.ix_(*by_sign)].ravel().tolist()
    relation = dict(zip(itertools.product(SIGNS, repeat=len(axes)), holds, strict=True))
    return _is_total_order(relation, [inference.facts[axis.keys].distinct for axis in axes])


def _compares_with_itself(inference: Inference, literals: Sequence[SelectorNode]) -> bool:
    """Whether every literal compares an s-op with itself, and one of these s-ops differs at any two positions."""
    facts = [(inference.facts[part.keys], inference.facts[part.queries]) for part in literals]
    return all(keys.canon == queries.canon for keys, queries in facts) and any(keys.distinct for keys, _ in facts)


def _is_total_order(holds: Mapping[tuple[Sign, ...], bool], differs: Sequence[bool]) -> bool:
    """Whether a relation of signs is total and transitive; `differs` says which signs are never 0."""
    pairs = itertools.product(*((-1, 1) if differ else SIGNS for differ in differs))
    if any(holds[signs] == holds[tuple([-s for s in signs])] for signs in pairs):
        return False
    triples = [[t for t in TRIPLES if 0 not in t] if differ else TRIPLES for differ in differs]
    combinations = (zip(*combination, strict=True) for combination in itertools.product(*triples))
    return all(holds[both] or not (holds[first] and holds[second]) for first, second, both in combinations)


def _classes_by_sign(axis: Axis, literals: Sequence[SelectorNode]) -> tuple[int, ...] | None:
    """The class of a (query, key) pair for each sign of query minus key, if some order of the values allows this."""
    size = len(axis.classes)
    order: NDArray[np.intp] = np.arange(size)
    for part in literals:
        if part.id in axis.literals and strict_order(part.table):
            order = np.argsort((part.table == 1).sum(axis=1), kind="stable")
            break
    classes = axis.classes[np.ix_(order, order)]
    if size < 2:
        return (0,) * len(SIGNS)
    smaller, equal, larger = int(classes[0, -1]), int(classes[0, 0]), int(classes[-1, 0])
    expected = np.full_like(classes, smaller)
    expected[np.tri(size, k=-1, dtype=bool)] = larger
    np.fill_diagonal(expected, equal)
    return (smaller, equal, larger) if (classes == expected).all() else None
