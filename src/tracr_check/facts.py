"""Lemmas about the program alone: no weights take part. Each is proved in its docstring and tested by brute force."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from itertools import pairwise
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from tracr_check.aggregated import aggregated
from tracr_check.joint import LIMIT, joint_values
from tracr_check.program import Program
from tracr_check.variables import ERROR, Codes, Env, Selector, SOp, Truth, Var, Way, different_rows, snap
from tracr_check.verdict import Rejected, need

__all__ = ["Facts"]

SMALL = 200_000  # joint values in a lemma
CELLS = 20_000_000  # pairs of queries and keys
SORTED = 20  # codes that are computed in the time in which a row is sorted
CLASSES = math.isqrt(CELLS)  # of an order


P = ParamSpec("P")
R = TypeVar("R")


def _once(lemma: Callable[Concatenate[Facts, P], R]) -> Callable[Concatenate[Facts, P], R]:
    """A lemma whose results are kept with the facts, as long as these."""

    @wraps(lemma)
    def kept(self: Facts, /, *about: P.args, **named: P.kwargs) -> R:
        key = lemma.__name__, about, *named.items()
        if key not in self.proved:
            self.proved[key] = lemma(self, *about, **named)
        found: R = self.proved[key]
        return found

    return kept


class Facts:
    """The lemmas. Making it adds to the program the ways of aggregates and widths that are known locally."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.proved: dict[object, Any] = {}
        self.place: tuple[Var, ...] = ("L", "I") if program.causal else ("L",)  # what tells which keys a query sees
        self.shape = _all_shapes(program)
        self.shapes: dict[Var, Codes] = dict(self.shape.codes)
        for number, sop in program.sops.items():
            if sop.kind in ("aggregation", "width"):
                program.ways[number] += self.local(sop)
            if sop.listed and program.derivable(number, frozenset(("I", "L"))):
                codes = program.codes(number, self.shape)
                if (codes >= 0).all():
                    self.shapes[number] = codes

    # Local ways

    def local(self, sop: SOp) -> list[Way]:
        """A way to compute an aggregate or a width without attention, where its keys are known *by shape*.

        If what the selector compares at keys (and the value) is a function of (position, length), the keys of an input
        are known from its length, and the result from the query's values, the length, and (if the model is causal) the
        query's position: it is the program's own definition, evaluated.

        None for an aggregate of an interval: its number is not known from cells. And none for one whose number is in
        an interval: a number where two cells meet has either, and a way would choose one by its own rounding.
        """
        queries, keys = self.program.sides(sop.op["selector"])
        attended = {sop.op["value"]} if sop.kind == "aggregation" else set()
        if not sop.listed or not all(one in self.shapes for one in keys | attended):  # no interval has a shape
            return []
        names = (*self.place, *sorted(queries))
        return [Way(names, lambda rows, *codes: self.by_definition(sop, names, codes))]

    # Lemmas

    def joint(self, names: Iterable[Var], limit: int = SMALL) -> Env | None:
        """Joint values; `None` if they are too many."""
        try:
            return joint_values(self.program, names, limit=limit)
        except Rejected:
            return None

    def compared(self, selector: int) -> set[Var]:
        """The s-ops that a selector compares."""
        return {one for part in self.program.literals(selector) for one in (part.keys, part.queries)}

    def determines(self, given: Var, variable: Var) -> bool:
        """Whether positions of one input that agree in a variable agree in another one.

        Two positions of one input have one length, so "L" may be added. By enumeration of the joint values: with the
        other variable there are as many as without it. Not for a variable of an interval: positions with one cell need
        not agree.
        """
        if self.program.radius(variable).any():
            return False
        for names in ({given}, {given, "L"}):
            env = self.joint({*names, variable})
            self.program.spend(2 * SORTED * (env.rows if env else 0))
            if env is not None and env.different(names).rows == env.different({*names, variable}).rows:
                return True
        return False

    @_once
    def distinct(self, variable: Var) -> bool:
        """Whether no two positions of an input hold one value of a variable.

        It is true of the position, and of ranks: the width of a selector that orders the positions totally. It is true
        of every variable that determines such a variable: two positions with one value of it would agree there.
        """
        if variable == "I" or self.ranks(variable) == "positions":
            return True
        roots = [one for one in self.program.leaves(variable) if one == "I" or self.ranks(one) == "positions"]
        return any(self.determines(variable, root) for root in roots)

    @_once
    def ranks(self, variable: Var) -> str | int | None:
        """What a width ranks: "positions", the s-op whose values it ranks, or `None`.

        Let s(q, k) be a total order on the values of one s-op o (s(q, k) or s(k, q) but not both for q, k different,
        transitive: a tournament whose out-degrees are all different is transitive), and s(q, q) the same for all. The
        width of q counts the keys after q, and q itself or not. If o differs at two positions, one is after the other,
        so its width is smaller by at least 1: equal widths mean equal values of o. If o is distinct, all widths are
        different. The same holds for an order on joint values of several s-ops, one of them distinct. Without a causal
        mask only: under it, positions count different keys.
        """
        selector = self.counted_by(variable)
        if selector is None:
            return None
        names = self.compared(selector)
        env = self.joint(names, CLASSES)
        if env is None or not env.rows:
            return None
        classes = env.different(names)
        chosen, defined = self.program.selected(selector, classes, classes)
        if not defined.all() or not _total_order(chosen):
            return None
        if any(self.distinct(name) for name in names):
            return "positions"
        return next(iter(names)) if len(names) == 1 else None

    @_once
    def numbers_within(self, variable: Var) -> int | None:
        """The s-op o such that no two positions hold one value of o and one value of a width; or `None`.

        The width counts the keys k with o(k) = o(q) and s(q, k), s a total order (see `ranks`) on a distinct s-op. Let
        p and p' be two positions with one value of o, and s(p, p'). Of the other keys, p counts all that p' counts:
        they hold the same value of o, and s is transitive. Both count themselves or neither does. p counts p', but p'
        does not count p. So the width is larger at p. Without a causal mask only.
        """
        selector = self.counted_by(variable)
        parts = [] if selector is None else self.program.conjuncts(selector)
        self.program.spend(sum(one.table.size for one in parts))
        tables = [one for one in parts if one.kind == "table" and one.keys == one.queries and (one.table >= 0).all()]
        for same, order in (tables, tables[::-1]) if len(tables) == len(parts) == 2 else ():
            equal = np.eye(len(same.table), dtype=bool)
            if (same.table == equal).all() and _total_order(order.table == 1) and self.distinct(order.keys):
                return same.keys
        return None

    def counted_by(self, variable: Var) -> int | None:
        """The selector whose keys a width counts, at every position the same keys: without a causal mask."""
        sop = self.program.sops.get(variable) if isinstance(variable, int) else None
        return sop.op["selector"] if sop is not None and sop.kind == "width" and not self.program.causal else None

    def conjoined(self, selector: int) -> list[Selector]:
        """Tables that all hold where a selector holds."""
        return [one for one in self.program.conjuncts(selector) if one.kind == "table"]

    @_once
    def at_most_one(self, selector: int) -> bool:
        """Whether no query selects two keys.

        Some conjuncts allow one value each: of a variable that is distinct, or of a width and of the s-op within whose
        values it numbers the positions.
        """
        single = {one.keys for one in self.conjoined(selector) if one.one_per_row}
        return any(self.distinct(one) or self.numbers_within(one) in single for one in single)

    @_once
    def equal_values(self, selector: int, value: int) -> bool:
        """Whether all keys that a query selects hold one value of an s-op.

        There is at most one key; or a conjunct allows only keys whose values (with the length) agree in it: tabulated
        for every query value, or, if the keys are ranks of another s-op and at most one rank is allowed, because that
        s-op determines the value.
        """
        if self.at_most_one(selector):
            return True
        for one in self.conjoined(selector):
            if self.agree(one, value):
                return True
            ranked = self.ranks(one.keys)
            if isinstance(ranked, int) and one.one_per_row and self.determines(ranked, value):
                return True
        return False

    def agree(self, literal: Selector, value: int) -> bool:
        """Whether the keys that a table allows a query agree in an s-op, for keys of one length."""
        env = self.joint({literal.keys, value, "L"}) if self.program.sops[value].listed else None
        if env is None or env.rows * len(literal.table) > CELLS:
            return False
        self.program.spend(env.rows * len(literal.table))
        env = env.at(np.argsort(env.codes["L"]))
        starts = np.unique(env.codes["L"], return_index=True)[1]
        chosen, held = literal.table[:, env.codes[literal.keys]] == 1, env.codes[value].astype(np.int32)
        least = np.minimum.reduceat(np.where(chosen, held, held.max(initial=0)), starts, axis=1)
        return bool((np.maximum.reduceat(np.where(chosen, held, -1), starts, axis=1) <= least).all())

    @_once
    def own(self, selector: int) -> bool:
        """Whether every query selects its own position, by enumeration of the joint values at one position."""
        env = self.joint(self.compared(selector))
        if env is None:
            return False
        chosen, defined = self.program.selected(selector, env, env, pairs=True)
        return bool((chosen | ~defined).all())

    @_once
    def always(self, selector: int) -> bool:
        """Whether every query selects something: itself, or a key by shape (counted for every query and length)."""
        if self.own(selector):
            return True
        queries, keys = self.program.sides(selector)
        if not all(key in self.shapes for key in keys):
            return False
        names = (*self.place, *sorted(queries))
        env = self.joint(names, LIMIT)
        if env is None:
            return False
        width = SOp(-1, "width", {"kind": "width", "selector": selector}, tuple(range(self.program.longest + 1)))
        return bool((self.by_definition(width, names, [env.codes[name] for name in names]) != 0).all())

    def by_definition(self, sop: SOp, names: Sequence[Var], given: Sequence[Codes]) -> Codes:
        """An aggregate or width whose keys are known by shape, as the program defines it, by what queries hold.

        The first name is "L": queries, like shapes, are sorted by length.
        """
        self.program.spend(SORTED * len(given[0]))
        rows, back = different_rows(given)
        queries = Env(len(rows[0]), dict(zip(names, rows, strict=True)))
        lengths, starts = np.unique(rows[0], return_index=True)
        inside = (np.searchsorted(self.shape.codes["L"], (length, length + 1)) for length in lengths)
        parts = zip(pairwise((*starts, queries.rows)), inside, strict=True)
        found = [self.of_length(sop, queries.at(slice(*mine)), slice(*shapes)) for mine, shapes in parts]
        return np.concatenate([np.zeros(0, np.int64), *found])[back]

    def of_length(self, sop: SOp, queries: Env, inside: slice) -> Codes:
        """The results for inputs of one length, whose positions are `inside` all."""
        keys = Env(inside.stop - inside.start, {name: codes[inside] for name, codes in self.shapes.items()})
        need(queries.rows * keys.rows <= CELLS, "too many queries and keys of one length")
        chosen, defined = self.program.selected(sop.op["selector"], queries, keys)
        if self.program.causal:
            chosen = chosen & (keys.codes["I"][None] <= queries.codes["I"][:, None])
        if sop.kind == "width":
            found = snap(sop, chosen.sum(1).astype(np.float64))
        else:
            found = aggregated(self.program.sops[sop.op["value"]], sop, chosen, keys.codes[sop.op["value"]])
        return np.where(defined.all(1), found, ERROR)


def _all_shapes(program: Program) -> Env:
    """Every (position, length)."""
    low, high = program.lengths
    places, positions = np.nonzero(np.arange(high) < np.arange(low, high + 1)[:, None])
    return Env(len(positions), {"I": positions, "L": places})


def _total_order(chosen: Truth) -> bool:
    """Whether a relation is a transitive tournament off its diagonal, and constant on it."""
    size, diagonal = len(chosen), chosen.diagonal()
    once = (chosen ^ chosen.T) | np.eye(size, dtype=bool)
    return bool(size and (diagonal == diagonal[0]).all() and once.all() and len(np.unique(chosen.sum(1))) == size)
