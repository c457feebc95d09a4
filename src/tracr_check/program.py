"""The program: its tables, which are the specification, and how to compute its variables at a position.

A variable without a way is free: attention brings it from other positions. The program is undefined on an input if it
is undefined for any s-op at any position.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tracr_check.variables import ERROR, UNREACHED, Array, Codes, Env, Selector, Sides, SOp, Truth, Var, Way, snap
from tracr_check.verdict import need, reject

__all__ = ["TABULATED", "Program", "Selected", "weighted_sum"]

CELLS = 60_000_000  # codes of joint values that are kept at a time
PAIRS = 4 * CELLS  # of queries and keys, for all parts of a selector: two truth values each
MOST = 4_000_000_000  # codes, and components of heads, that are computed in all
STEP, SELECTED = 200, 5_000  # codes that are computed in the time of a step in Python, and of a part of a selector
TRUTHS = 8  # truth values that are combined in the time of a code
TABULATED = ("inner", "fst", "snd")  # what an s-op's table is indexed by
Selected = tuple[Truth, Truth]


@dataclass(eq=False)
class Program:
    """The program, with the ways to compute its variables. `facts.py` and the heads add ways as they prove them."""

    sops: dict[int, SOp]
    selectors: dict[int, Selector]
    outputs: Sequence[tuple[str, int]]
    vocabulary: int
    longest: int
    lengths: tuple[int, int]
    causal: bool

    def __post_init__(self) -> None:
        self.assumed: set[str] = set()
        self.spent = 0
        self.sizes: dict[Var, int] = {"T": self.vocabulary, "I": self.lengths[1]}
        self.sizes["L"] = self.lengths[1] - self.lengths[0] + 1
        self.ways: dict[Var, list[Way]] = {}
        self.gaps = [number for number, sop in self.sops.items() if sop.table is None or (sop.table < 0).any()]
        for number, sop in self.sops.items():
            self.sizes[number] = len(sop.values)
            self.ways[number] = _ways(self, sop)
            if sop.op.get("assumed") and np.isfinite(self.sops[sop.op["value"]].numbers).any():
                self.assumed.add(f"{sop.label} never selects several keys")  # it could be a mean of them

    @property
    def partial(self) -> list[int]:
        """The s-ops that may be undefined where all that they are functions of is defined."""
        return [number for number in self.gaps if self.ways.get(number)]

    def name(self, variable: Var) -> str:
        """The name of a variable for messages."""
        named = {"T": "token", "I": "position", "L": "length"}
        return self.sops[variable].label if isinstance(variable, int) else named.get(variable, variable)

    def numbers(self, variable: Var) -> Array:
        """The number of each code of a variable."""
        if isinstance(variable, int):
            return self.sops[variable].numbers
        return np.arange(float(self.sizes[variable])) + (self.lengths[0] if variable == "L" else 0.0)

    def radius(self, variable: Var) -> Array:
        """How far the number of each code of a variable reaches."""
        return self.sops[variable].radius if isinstance(variable, int) else np.zeros(self.sizes[variable])

    def derivable(self, variable: Var, have: frozenset[Var], memo: dict[Var, bool] | None = None) -> bool:
        """Whether a variable is a function of others."""
        memo = {} if memo is None else memo
        if variable not in memo:
            self.spend(STEP)
            ways = self.ways.get(variable, ())
            memo[variable] = False  # while its ways are looked at
            found = variable in have or any(all(self.derivable(one, have, memo) for one in way.of) for way in ways)
            memo[variable] = found
        return memo[variable]

    def leaves(self, variable: Var) -> frozenset[Var]:
        """Variables that a variable is a function of, and that have no way themselves."""
        memo: dict[Var, frozenset[Var]] = {}
        constant: dict[Var, bool] = {}

        def found(one: Var) -> frozenset[Var]:
            if one not in memo:
                memo[one] = frozenset({one})
                if self.derivable(one, frozenset(), constant):
                    memo[one] = frozenset()
                elif self.ways.get(one):
                    memo[one] = frozenset().union(*(found(inner) for inner in self.ways[one][0].of))
            return memo[one]

        return found(variable)

    def leaf(self, variable: Var) -> Var | None:
        """The token, position or length, if a variable is a function of one of them alone."""
        leaves = self.leaves(variable)
        return next(iter(leaves)) if len(leaves) == 1 and leaves <= {"T", "I", "L"} else None

    def codes(self, variable: Var, env: Env) -> Codes:
        """The codes of a variable; negative where it is undefined. They are added to `env`."""
        if variable in env.codes:
            return env.codes[variable]
        have = frozenset(env.codes)
        way = next((w for w in self.ways.get(variable, ()) if all(self.derivable(v, have) for v in w.of)), None)
        if way is None:
            reject(f"{self.name(variable)} is not known from {', '.join(map(self.name, env.codes)) or 'nothing'}")
        self.spend(env.rows * (len(way.of) + 1))
        need(env.rows * (len(env.codes) + len(way.of) + 1) <= CELLS, "too many joint values of too many variables")
        found = env.codes[variable] = self.computed(variable, way, env)
        return found

    def spend(self, cells: int) -> None:
        """Count cells that are computed: a program that takes forever is rejected."""
        self.spent += cells
        need(self.spent <= MOST, "too many joint values in all")

    def computed(self, variable: Var, way: Way, env: Env) -> Codes:
        """The codes of a variable by one way."""
        given = [self.codes(one, env) for one in way.of]
        fine = np.logical_and.reduce([np.ones(env.rows, dtype=bool), *(codes >= 0 for codes in given)])
        found = np.asarray(way.function(env.rows, *(np.where(fine, codes, 0) for codes in given)), np.int64)
        found = np.where(fine, found, ERROR)
        if (found == UNREACHED).any():
            self.assume_unreached(self.name(variable))
        return found

    def assume_unreached(self, name: str) -> None:
        """The theorem leaves out the inputs that reach these cells; the verdict says so."""
        self.assumed.add(
            f"no input reaches what {name} has no value for: cells marked as unreached, or unlisted numbers"
        )

    # Selectors

    def literals(self, selector: int) -> list[Selector]:
        """The tables that a selector is made of, each once."""
        return self._below(selector, ("and", "or", "not"))

    def conjuncts(self, selector: int) -> list[Selector]:
        """The selectors whose conjunction a selector is, each once."""
        return self._below(selector, ("and",))

    def _below(self, selector: int, through: tuple[str, ...]) -> list[Selector]:
        """The selectors below a selector, through combinations of these kinds; every selector is visited once."""
        found, seen, waiting = [], {selector}, [selector]
        while waiting:
            one = self.selectors[waiting.pop()]
            if one.kind in through:
                waiting += [part for part in reversed(one.parts) if part not in seen]
                seen.update(one.parts)
            else:
                found.append(one)
        self.spend(STEP * len(seen))
        return found

    def sides(self, selector: int) -> Sides:
        """The s-ops that matter for queries, and for keys."""
        queries, keys = zip(*(one.sides for one in self.literals(selector)), strict=True)
        return frozenset().union(*queries), frozenset().union(*keys)

    def selected(
        self, selector: int, queries: Env, keys: Env, pairs: bool = False, known: dict[int, Selected] | None = None
    ) -> Selected:
        """[query, key] (or row by row, `pairs`): whether a key is selected; whether the program is defined there.

        `known` are parts that were computed before: each is computed once.
        """
        known = {} if known is None else known
        one = self.selectors[selector]
        self.spend(SELECTED)
        if selector not in known and one.kind == "table":
            known[selector] = self._looked_up(one, queries, keys, pairs)
        elif selector not in known:
            parts = [self.selected(part, queries, keys, pairs, known) for part in one.parts]
            chosen, defined = (list(side) for side in zip(*parts, strict=True))
            combined = (np.logical_or if one.kind == "or" else np.logical_and).reduce(chosen)
            known[selector] = ~combined if one.kind == "not" else combined, np.logical_and.reduce(defined)
            self.spend(combined.size // TRUTHS)
            need(combined.size * len(known) <= PAIRS, f"too many queries and keys for the parts of {one.label}")
        return known[selector]

    def _looked_up(self, one: Selector, queries: Env, keys: Env, pairs: bool) -> Selected:
        by_query, by_key = one.sides
        rows = self.codes(one.queries, queries) if one.queries in by_query else np.zeros(queries.rows, np.int64)
        columns = self.codes(one.keys, keys) if one.keys in by_key else np.zeros(keys.rows, np.int64)
        rows, columns = (rows, columns) if pairs else (rows[:, None], columns[None])
        cells = one.table[rows, columns]
        self.spend(cells.size)
        if (cells == UNREACHED).any():
            self.assume_unreached(one.label)
        return cells == 1, (cells >= 0) & (rows >= 0) & (columns >= 0)


def _ways(program: Program, sop: SOp) -> list[Way]:
    """The way to compute an s-op at its own position; none for what attention brings."""
    op, table = sop.op, sop.table
    match sop.kind:
        case "tokens" | "indices" | "length":  # never undefined
            leaf = {"tokens": "T", "indices": "I", "length": "L"}[sop.kind]
            return [Way((leaf,), lambda rows, codes: codes)]
        case "constant":
            return [Way((), lambda rows: np.zeros(rows, np.int64))]
        case "positions" | "lookup" | "pair_lookup":
            assert table is not None
            inputs = [op[name] for name in TABULATED if name in op] or ["I"]
            return [Way(tuple(inputs), lambda rows, *codes: table[codes])]
        case "linear" | "sum_lookup":
            if not all(program.sops[term].listed for term, _ in op["terms"]):
                return []  # its cell is not known from theirs
            return [Way(tuple(term for term, _ in op["terms"]), _weighted(program, sop))]
        case _:
            return []


def _weighted(program: Program, sop: SOp) -> Callable[..., Codes]:
    """A weighted sum, snapped to its values; or for a `sum_lookup` to its points, and looked up in its table."""
    terms = [(program.sops[term].numbers, float(factor)) for term, factor in sop.op["terms"]]
    if sop.table is None:
        return weighted_sum(sop, terms, float(sop.op["constant"]))
    found = weighted_sum(SOp(-1, sop.label, {"kind": "points"}, tuple(sop.op["points"])), terms, 0.0)
    table = np.append(sop.table, (UNREACHED, ERROR))  # the last two: of the codes UNREACHED and ERROR

    return lambda rows, *codes: table[found(rows, *codes)]


def weighted_sum(target: SOp, terms: Sequence[tuple[Array, float]], constant: float) -> Callable[..., Codes]:
    """Finds the value that is the sum of a constant and of factors times the numbers of some codes."""

    def function(rows: int, *codes: Codes) -> Codes:
        total = np.full(rows, constant)
        for (numbers, factor), places in zip(terms, codes, strict=True):
            total = total + factor * numbers[places]
        return snap(target, total)

    return function
