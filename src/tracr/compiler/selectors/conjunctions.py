"""Boolean combinations of selectors as disjoint conjunctions. One attention head can compute each conjunction.

The logit of a head is a sum, and a sum can express "and": let each literal add 0 where it holds and -GAP where it does
not; the sum is 0 exactly where all literals hold. A sum cannot express "or". But every formula is a union of disjoint
conjunctions (no two hold for the same query and key), and counts of keys and sums over keys add up over disjoint parts.

Literals over the same keys and queries are one table. The *class* of a (query, key) pair is the set of literals that
hold there. The formula becomes a truth table with one axis for each pair of inputs, and a conjunction is a box in
it: a set of classes on each axis.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracr.caching import cached_property
from tracr.craft.heads import LEGIBLE, SelectorClasses, selector_classes, selector_rank
from tracr.ir.selectors import CompositeNode, Selector, SelectorNode, parts_of

__all__ = ["Axis", "Conjunction", "SelectorLiteral", "axes_of", "cover", "truth_of"]

Bools = NDArray[np.bool_]
TRUTH_CELLS = 2**16
AXES_PERMUTED = 4


@dataclass(frozen=True, eq=False)
class SelectorLiteral:
    """The condition on one pair of inputs: `selected[query code, key code]`.

    A matching of up to `legible` classes is kept one-hot.
    """

    keys: int
    queries: int
    selected: Bools
    legible: int = LEGIBLE

    @cached_property
    def classes(self) -> SelectorClasses:
        """The classes of queries and of keys that it treats alike."""
        return selector_classes(self.selected)

    @cached_property
    def rank(self) -> int:
        """The d_head that a head needs for it."""
        return selector_rank(self.selected, self.classes, compact=True, legible=self.legible)

    @property
    def one_hot_rank(self) -> int:
        """The d_head that a head needs for it with one-hot codes."""
        return selector_rank(self.selected, self.classes)


@dataclass(frozen=True, eq=False)
class Conjunction:
    """Keys for which all literals hold; they have different inputs. Without literals, all keys."""

    literals: tuple[SelectorLiteral, ...]


def cover(selectors: Mapping[int, Selector], number: int, *, holds: bool = True) -> tuple[Conjunction, ...] | None:
    """The disjoint conjunctions of a selector (of its complement, if not `holds`); `None` if its formula is too large.

    A conjunction of literals (and its complement, a disjunction) may have any number of inputs; any other formula at
    most `TRUTH_CELLS` combinations of classes.
    """
    for side in (True, False):
        literals = _conjunction(selectors, number, side)
        if literals is not None:
            all_of = _merged(selectors, literals)
            return (Conjunction(tuple(all_of)),) if side is holds else tuple(_failing(all_of))
    parts = parts_of(selectors, number)
    axes = axes_of(parts)
    if math.prod(len(axis.holds) for axis in axes) > TRUTH_CELLS:
        return None
    truth = truth_of(parts, axes)
    return _best_boxes(truth if holds else ~truth, axes)


def _conjunction(selectors: Mapping[int, Selector], number: int, holds: bool) -> list[tuple[int, bool]] | None:
    """The literals, with signs, if the selector (or its complement, if not `holds`) is a conjunction of literals."""
    found: dict[tuple[int, bool], None] = {}
    seen: set[tuple[int, bool]] = set()
    stack = [(number, holds)]
    while stack:
        place = stack.pop()
        if place in seen:
            continue
        seen.add(place)
        part, sign = selectors[place[0]], place[1]
        if isinstance(part, SelectorNode):
            found[place] = None
        elif part.kind == "not":
            stack.append((part.parts[0], not sign))
        elif (part.kind == "and") == sign:
            stack.extend((inner, sign) for inner in reversed(part.parts))
        else:
            return None
    return list(found)


def _merged(selectors: Mapping[int, Selector], literals: Sequence[tuple[int, bool]]) -> list[SelectorLiteral]:
    """One literal for each pair of inputs, without the literals that always hold."""
    tables: dict[tuple[int, int], Bools] = {}
    for number, sign in literals:
        part = selectors[number]
        assert isinstance(part, SelectorNode)
        inputs, table = (part.keys, part.queries), (part.table == 1) == sign
        tables[inputs] = tables[inputs] & table if inputs in tables else table
    return [SelectorLiteral(*inputs, table) for inputs, table in tables.items() if not table.all()]


def _failing(literals: Sequence[SelectorLiteral]) -> Iterator[Conjunction]:
    """The complement of a conjunction as disjoint parts: one for each literal that may be the first to fail."""
    for place, literal in enumerate(literals):
        fails = SelectorLiteral(literal.keys, literal.queries, ~literal.selected)
        yield Conjunction((*literals[:place], fails))


@dataclass(frozen=True, eq=False)
class Axis:
    """A pair of inputs: the class of every (query, key), and for each literal the classes where it holds."""

    keys: int
    queries: int
    classes: NDArray[np.integer]
    holds: NDArray[np.bool_]  # [class, literal]
    literals: tuple[int, ...]


def axes_of(parts: Sequence[Selector]) -> list[Axis]:
    """The pairs of inputs that these selectors compare, with their classes."""
    groups: dict[tuple[int, int], list[SelectorNode]] = {}
    for part in parts:
        if isinstance(part, SelectorNode):
            groups.setdefault((part.keys, part.queries), []).append(part)
    axes = []
    for (keys, queries), group in groups.items():
        classes: NDArray[np.integer] = np.zeros(group[0].table.shape, dtype=np.uint8)
        holds = np.zeros((1, 0), dtype=bool)
        for literal in group:
            size = 2 * len(holds)
            cells = 2 * classes.astype(np.min_scalar_type(size), copy=False) + (literal.table == 1)
            seen = np.zeros(size, dtype=bool)
            seen[cells] = True
            pairs = np.flatnonzero(seen)
            classes = np.searchsorted(pairs, np.arange(size)).astype(cells.dtype)[cells]
            holds = np.column_stack([holds[pairs // 2], pairs % 2 == 1])
        axes.append(Axis(keys, queries, classes, holds, tuple(literal.id for literal in group)))
    return axes


def truth_of(parts: Sequence[Selector], axes: Sequence[Axis]) -> Bools:
    """Whether the last of the parts holds, for each combination of classes."""
    values: dict[int, Bools] = {}
    for place, axis in enumerate(axes):
        shape = [1] * len(axes)
        shape[place] = len(axis.holds)
        for column, literal in enumerate(axis.literals):
            values[literal] = axis.holds[:, column].reshape(shape)
    for part in parts:
        if isinstance(part, CompositeNode):
            values[part.id] = part.combined([values[inner] for inner in part.parts])
    return np.broadcast_to(values[parts[-1].id], tuple(len(axis.holds) for axis in axes))


def _best_boxes(truth: Bools, axes: Sequence[Axis]) -> tuple[Conjunction, ...]:
    """Disjoint boxes whose union is the set of true cells: the fewest, over the orders of the axes."""
    identity = tuple(range(len(axes)))
    orders = itertools.permutations(identity) if len(axes) <= AXES_PERMUTED else (identity, identity[::-1])
    best: list[Conjunction] | None = None
    for order in orders:
        chosen = [axes[place] for place in order]
        found = [_box(box, chosen) for box in _boxes(truth.transpose(order))]
        if best is None or (len(found), _literals(found)) < (len(best), _literals(best)):
            best = found
    assert best is not None
    return tuple(best)


def _literals(conjunctions: Sequence[Conjunction]) -> int:
    return sum(len(conjunction.literals) for conjunction in conjunctions)


def _boxes(truth: Bools) -> Iterator[tuple[Bools, ...]]:
    """The boxes of a truth table: equal slices along the first axis are grouped, then split along the other axes."""
    if truth.ndim == 0:
        if truth:
            yield ()
        return
    alike: dict[bytes, list[int]] = {}
    for place, part in enumerate(truth):
        alike.setdefault(np.ascontiguousarray(part).tobytes(), []).append(place)
    for places in alike.values():
        members = np.zeros(len(truth), dtype=bool)
        members[places] = True
        for rest in _boxes(truth[places[0]]):
            yield (members, *rest)


def _box(box: Sequence[Bools], axes: Sequence[Axis]) -> Conjunction:
    literals = [
        SelectorLiteral(axis.keys, axis.queries, members[axis.classes])
        for members, axis in zip(box, axes, strict=True)
        if not members.all()
    ]
    return Conjunction(tuple(literals))
