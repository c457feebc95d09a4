"""The program: its tables, which are the specification, and the values of its variables as codes.

A *variable* is a number (an s-op of the program, or a definition that the certificate adds) or a name: "T" the token,
"I" the position, "L" the length of the input, and parts of heads ("c0.1"). A *way* computes the codes of a variable
from those of other variables at the same position. A variable without a way is free: attention brings it from other
positions. Codes are places in the list of a variable's values; a negative code means that the program is undefined.
The program is undefined on an input if it is undefined for any s-op at any position.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr_check.cells import cells
from tracr_check.verdict import need, reject

__all__ = [
    "ERROR",
    "UNREACHED",
    "Array",
    "Codes",
    "Env",
    "Program",
    "SOp",
    "Selector",
    "Var",
    "Way",
    "read_program",
    "snap",
]

Var = int | str
Codes = NDArray[np.int64]
Array = NDArray[np.float64]
ERROR, UNREACHED = -1, -2
NEAR = 1e-9
LONGEST = 4096


@dataclass
class Env:
    """Joint values: the codes of some variables, row by row. All are functions of the `free` ones."""

    rows: int
    codes: dict[Var, Codes]
    free: tuple[Var, ...] = ()

    def where(self, kept: NDArray[np.bool_]) -> Env:
        """Only some rows."""
        return Env(int(kept.sum()), {name: codes[kept] for name, codes in self.codes.items()}, self.free)

    def rows_at(self, places: Codes) -> Env:
        """Some rows, by their numbers."""
        return Env(len(places), {name: codes[places] for name, codes in self.codes.items()}, self.free)

    def part(self, start: int, stop: int) -> Env:
        """A range of rows."""
        codes = {name: codes[start:stop] for name, codes in self.codes.items()}
        return Env(min(stop, self.rows) - start, codes, self.free)

    def different(self, names: Iterable[Var]) -> Env:
        """The different joint values of some variables."""
        ordered = tuple(sorted(names, key=str))
        if not ordered:
            return Env(1, {})
        stacked = np.unique(np.stack([self.codes[name] for name in ordered]), axis=1)
        return Env(stacked.shape[1], dict(zip(ordered, stacked, strict=True)), ordered)

    def only(self, names: Iterable[Var]) -> Env:
        """Only some variables, and the free ones."""
        kept = {*names, *self.free}
        return Env(self.rows, {name: codes for name, codes in self.codes.items() if name in kept}, self.free)


@dataclass(frozen=True, eq=False)
class Way:
    """Computes a variable from the codes of others. The function gets their codes, none of them negative."""

    of: tuple[Var, ...]
    function: Callable[..., Codes]


@dataclass(frozen=True, eq=False)
class SOp:
    """An s-op or a definition: its operation, its values, and their numbers (NaN for values that are not numbers).

    `radius`: how far its number can be from that of its value (`cells.py`); 0 if the values are listed.
    """

    number: int
    label: str
    op: Mapping[str, Any]
    values: tuple[Any, ...]
    table: Codes | None = None
    categorical: bool = True
    cell_radius: Array | None = None
    numbers: Array = field(init=False)
    index: Mapping[Any, int] = field(init=False)

    def __post_init__(self) -> None:
        numbers = [float(value) if is_number(value) else math.nan for value in self.values]
        object.__setattr__(self, "numbers", np.array(numbers, dtype=np.float64))
        object.__setattr__(self, "index", {value: code for code, value in reversed(list(enumerate(self.values)))})

    @property
    def kind(self) -> str:
        """The name of its operation."""
        return str(self.op["kind"])

    @property
    def listed(self) -> bool:
        """Whether its values are listed, not cells of an interval."""
        return self.cell_radius is None

    @property
    def radius(self) -> Array:
        """How far the number of each value reaches."""
        return np.zeros(len(self.values)) if self.cell_radius is None else self.cell_radius


@dataclass(frozen=True, eq=False)
class Selector:
    """A table [query, key] over the codes of two s-ops, or ("and", "or", "not") a combination of selectors."""

    number: int
    label: str
    kind: str
    parts: tuple[int, ...]
    keys: int = -1
    queries: int = -1
    table: NDArray[np.int8] = field(default_factory=lambda: np.zeros((0, 0), np.int8))


Selected = tuple[NDArray[np.bool_], NDArray[np.bool_]]


class Program:
    """The program, with the ways to compute its variables. `facts.py` and the heads add ways as they prove them."""

    def __init__(
        self,
        sops: Mapping[int, SOp],
        selectors: Mapping[int, Selector],
        outputs: Sequence[tuple[str, int]],
        vocabulary: int,
        longest: int,
        lengths: tuple[int, int],
        causal: bool,
    ) -> None:
        self.sops, self.selectors, self.outputs = dict(sops), dict(selectors), tuple(outputs)
        self.vocabulary, self.longest, self.lengths, self.causal = vocabulary, longest, lengths, causal
        self.assumed: set[str] = set()
        self.sizes: dict[Var, int] = {"T": vocabulary, "I": lengths[1], "L": lengths[1] - lengths[0] + 1}
        self.ways: dict[Var, list[Way]] = {}
        self.gaps = [number for number, sop in self.sops.items() if sop.table is None or (sop.table < 0).any()]
        for number, sop in self.sops.items():
            self.sizes[number] = len(sop.values)
            self.ways[number] = _ways(self, sop)

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
            ways = self.ways.get(variable, ())
            memo[variable] = False  # while its ways are looked at
            memo[variable] = variable in have or any(
                all(self.derivable(one, have, memo) for one in way.of) for way in ways
            )
        return memo[variable]

    def leaves(self, variable: Var, have: frozenset[Var] = frozenset()) -> frozenset[Var]:
        """Variables that must be added to some others so that a variable is a function of all of them."""
        memo: dict[Var, frozenset[Var]] = {}

        def found(one: Var) -> frozenset[Var]:
            if one not in memo:
                memo[one] = frozenset({one})
                if self.derivable(one, have):
                    memo[one] = frozenset()
                elif self.ways.get(one):
                    memo[one] = frozenset().union(*(found(inner) for inner in self.ways[one][0].of))
            return memo[one]

        return found(variable)

    def codes(self, variable: Var, env: Env) -> Codes:
        """The codes of a variable; negative where it is undefined. They are added to `env`."""
        if variable in env.codes:
            return env.codes[variable]
        have = frozenset(env.codes)
        way = next((w for w in self.ways.get(variable, ()) if all(self.derivable(v, have) for v in w.of)), None)
        if way is None:
            reject(f"{self.name(variable)} is not known from {', '.join(map(self.name, env.codes)) or 'nothing'}")
        given = [self.codes(one, env) for one in way.of]
        fine = np.ones(env.rows, dtype=bool)
        for codes in given:
            fine &= codes >= 0
        found = np.asarray(way.function(env.rows, *(np.where(fine, codes, 0) for codes in given)), np.int64)
        found = np.where(fine, found, ERROR)
        if (found == UNREACHED).any():
            self.assumed.add(f"no input reaches the cells of {self.name(variable)} that its table marks as unreached")
        env.codes[variable] = found
        return found

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
        return found

    def sides(self, selector: int) -> tuple[set[int], set[int]]:
        """The s-ops that matter for queries, and for keys: a table with equal rows does not depend on the query."""
        queries, keys = set(), set()
        for one in self.literals(selector):
            if not (one.table == one.table[:1]).all():
                queries.add(one.queries)
            if not (one.table == one.table[:, :1]).all():
                keys.add(one.keys)
        return queries, keys

    def selected(
        self, selector: int, queries: Env, keys: Env, pairs: bool = False, known: dict[int, Selected] | None = None
    ) -> Selected:
        """[query, key] (or row by row, `pairs`): whether a key is selected; whether the program is defined there.

        `known` are parts that were computed before: each is computed once.
        """
        known = {} if known is None else known
        if selector not in known:
            known[selector] = self._selected(self.selectors[selector], queries, keys, pairs, known)
        return known[selector]

    def _selected(
        self, one: Selector, queries: Env, keys: Env, pairs: bool, found_before: dict[int, Selected]
    ) -> Selected:
        if one.kind == "table":
            by_query, by_key = self.sides(one.number)
            rows = self.codes(one.queries, queries) if one.queries in by_query else np.zeros(queries.rows, np.int64)
            columns = self.codes(one.keys, keys) if one.keys in by_key else np.zeros(keys.rows, np.int64)
            cells = one.table[rows, columns] if pairs else one.table[np.ix_(rows, columns)]
            known = (rows >= 0) & (columns >= 0) if pairs else (rows >= 0)[:, None] & (columns >= 0)[None]
            return cells == 1, (cells >= 0) & known
        found = [self.selected(part, queries, keys, pairs, found_before) for part in one.parts]
        chosen, defined = found[0]
        for other, fine in found[1:]:
            chosen, defined = (chosen & other if one.kind == "and" else chosen | other), defined & fine
        return (~chosen if one.kind == "not" else chosen), defined


def is_number(value: Any) -> bool:
    """Whether a value counts as a number."""
    return isinstance(value, int | float) and math.isfinite(value)


def snap(sop: SOp, numbers: Array) -> Codes:
    """The codes of numbers (NaN: of `None`): the nearest value, if it is within 1e-9 and its radius; else unreached."""
    known = np.flatnonzero(np.isfinite(sop.numbers))
    none = sop.index.get(None, ERROR)
    if not len(known):
        return np.where(np.isnan(numbers), none, UNREACHED)
    order = known[np.argsort(sop.numbers[known], kind="stable")]
    ordered = sop.numbers[order]
    nearest = order[np.searchsorted((ordered[1:] + ordered[:-1]) / 2, np.nan_to_num(numbers))]
    off = np.abs(sop.numbers[nearest] - numbers) > sop.radius[nearest] + NEAR * np.maximum(1.0, np.abs(numbers))
    return np.where(np.isnan(numbers), none, np.where(off, UNREACHED, nearest))


def _ways(program: Program, sop: SOp) -> list[Way]:
    """The way to compute an s-op at its own position; none for what attention brings."""
    op, table = sop.op, sop.table
    match sop.kind:
        case "tokens" | "indices" | "length":  # never undefined
            leaf = {"tokens": "T", "indices": "I", "length": "L"}[sop.kind]
            return [Way((leaf,), lambda rows, codes: codes)]
        case "constant":
            return [Way((), lambda rows: np.zeros(rows, np.int64))]
        case "positions":
            assert table is not None
            return [Way(("I",), lambda rows, codes: table[codes])]
        case "lookup":
            assert table is not None
            return [Way((op["inner"],), lambda rows, codes: table[codes])]
        case "pair_lookup":
            assert table is not None
            return [Way((op["fst"], op["snd"]), lambda rows, first, second: table[first, second])]
        case "linear" | "sum_lookup":
            if not all(program.sops[term].listed for term, _ in op["terms"]):
                return []  # its cell is not known from theirs
            return [Way(tuple(term for term, _ in op["terms"]), _weighted(program, sop))]
        case _:
            return []


def _weighted(program: Program, sop: SOp) -> Callable[..., Codes]:
    """A weighted sum, snapped to its values; then, for a `sum_lookup`, its table."""
    factors = [(program.sops[term].numbers, float(factor)) for term, factor in sop.op["terms"]]
    constant = float(sop.op.get("constant", 0.0))
    points = sop if sop.kind == "linear" else SOp(-1, sop.label, {"kind": "points"}, tuple(sop.op["points"]))

    def function(rows: int, *codes: Codes) -> Codes:
        total = np.full(rows, constant)
        for (numbers, factor), places in zip(factors, codes, strict=True):
            total = total + factor * numbers[places]
        found = snap(points, total)
        return found if sop.table is None else np.where(found < 0, found, sop.table[found])

    return function


# Reading


def read_program(model: Any, tables: Mapping[str, NDArray[Any]]) -> Program:
    """The program of a `model.json` and its tables; every table must have the shape and codes that its place needs."""
    options, given = model["options"], model["program"]
    longest, causal, (low, high) = options["max_seq_len"], options["causal"], given["lengths"]
    need(all(type(one) is int for one in (longest, low, high)) and type(causal) is bool, "malformed options")
    need(1 <= low <= high <= longest <= LONGEST, f"lengths {low} to {high} of {longest}")
    need(not causal or not any(s["op"]["kind"] == "length" for s in given["sops"]), "a causal model reads the length")
    vocabulary = tuple(_value(token) for token in options["vocab"])
    left = {name: array for name, array in tables.items() if name.startswith(("sops.", "selectors."))}
    sops: dict[int, SOp] = {}
    selectors: dict[int, Selector] = {}
    given_selectors = list(given["selectors"])
    for entry in given["sops"]:
        sop = _read_sop(entry, left, sops, longest)
        _check_values(sop, vocabulary, longest, (low, high))
        need(sop.number not in sops and type(sop.number) is int, f"two s-ops have the number {sop.number}")
        sops[sop.number] = sop
    for entry in given_selectors:
        selector = _read_selector(entry, left, sops, selectors)
        need(selector.number not in selectors, f"two selectors have the number {selector.number}")
        selectors[selector.number] = selector
    need(not left, "there are tables without an s-op or selector")
    outputs = [(str(name), number) for name, number in given["outputs"]]
    need(outputs and all(number in sops for _, number in outputs), "an output is not an s-op")
    _check_order(sops, selectors)
    return Program(sops, selectors, outputs, len(vocabulary), longest, (low, high), causal)


def _value(data: Any, depth: int = 0) -> Any:
    """A value of the program; values of types that JSON lacks are told apart by their text."""
    if isinstance(data, dict):
        need(len(data) == 1 and depth < 100, "malformed value")
        ((kind, content),) = data.items()
        if kind == "tuple":
            return tuple(_value(one, depth + 1) for one in content)
        if kind == "int":
            return int(str(content)[:2000], 16)
        return (f"a {kind}", repr(content))
    need(data is None or isinstance(data, str | int | float), "malformed value")
    return data


def _read_sop(entry: Any, left: dict[str, NDArray[Any]], sops: Mapping[int, SOp], longest: int) -> SOp:
    op = dict(entry["op"])
    values, radius = _domain(entry["domain"])
    need(radius is None or op["kind"] in ("linear", "aggregation"), f"{entry['label']} cannot be an interval")
    need(all(sops[op[name]].listed for name in ("inner", "fst", "snd") if name in op), "a table of an interval")
    shape: tuple[int, ...] | None = None
    match op["kind"]:
        case "positions":
            shape = (longest,)
        case "lookup":
            shape = (len(sops[op["inner"]].values),)
        case "pair_lookup":
            shape = (len(sops[op["fst"]].values), len(sops[op["snd"]].values))
        case "sum_lookup":
            op["points"] = [_value(value) for value in op["points"]["values"]]
            shape = (len(op["points"]),)
        case "aggregation":
            op["default"] = _value(op["default"])
            need(type(op["assumed"]) is bool, "malformed aggregation")
        case kind:
            need(kind in ("tokens", "indices", "length", "constant", "linear", "width"), f"no operation {kind!r:.40}")
    table = None
    if shape is not None:
        table = left.pop(f"sops.{entry['id']}").astype(np.int64)
        need(table.shape == shape, f"the table of {entry['label']} has another shape than its inputs")
        need(table.size == 0 or -2 <= table.min() <= table.max() < len(values), f"codes of {entry['label']}")
    need(entry["encoding"] in ("categorical", "numerical"), "malformed encoding")
    need(radius is None or entry["encoding"] == "numerical", "an interval is not one-hot")
    return SOp(entry["id"], str(entry["label"]), op, values, table, entry["encoding"] == "categorical", radius)


def _domain(given: Any) -> tuple[tuple[Any, ...], Array | None]:
    """The values of a domain; of an interval the cells and their radii, and `None` if it may be that."""
    if given["kind"] == "finite":
        return tuple(_value(value) for value in given["values"]), None
    need(given["kind"] == "interval", "malformed domain")
    middles, radii = cells(given["low"], given["high"])
    none = (None,) if given["maybe_none"] else ()
    return (*middles.tolist(), *none), np.append(radii, np.zeros(len(none)))


def _check_values(sop: SOp, vocabulary: tuple[Any, ...], longest: int, lengths: tuple[int, int]) -> None:
    """Inputs have the values that they are read as."""
    expected: Iterable[Any] | None = None
    match sop.kind:
        case "tokens":
            expected = vocabulary
        case "indices":
            expected = range(longest)
        case "length":
            expected = range(lengths[0], lengths[1] + 1)
    need(expected is None or sop.values == tuple(expected), f"{sop.label} has other values than the input")
    need(sop.kind != "constant" or len(sop.values) >= 1, f"{sop.label} has no value")
    need(len(sop.values) >= 1, f"{sop.label} has no values")


def _read_selector(
    entry: Any, left: dict[str, NDArray[Any]], sops: Mapping[int, SOp], known: Mapping[int, Selector]
) -> Selector:
    number, label = entry["id"], str(entry["label"])
    if "kind" in entry:
        kind, parts = entry["kind"], tuple(entry["parts"])
        need((kind in ("and", "or") and len(parts) == 2) or (kind == "not" and len(parts) == 1), f"selector {label}")
        need(all(part in known for part in parts), f"selector {label} is made of later selectors")
        return Selector(number, label, kind, parts)
    table = left.pop(f"selectors.{number}")
    need(table.dtype == np.int8, f"the table of {label} has another type")
    need(sops[entry["queries"]].listed and sops[entry["keys"]].listed, f"selector {label} compares an interval")
    shape = (len(sops[entry["queries"]].values), len(sops[entry["keys"]].values))
    need(table.shape == shape and table.min() >= -2 and table.max() <= 1, f"the table of {label} is malformed")
    return Selector(number, label, "table", (), entry["keys"], entry["queries"], table)


def _check_order(sops: Mapping[int, SOp], selectors: Mapping[int, Selector]) -> None:
    """Every s-op comes after those it depends on, through selectors too."""
    compared: dict[int, set[int]] = {}
    for number, one in selectors.items():
        own = {one.keys, one.queries} if one.kind == "table" else set()
        compared[number] = own.union(*(compared[part] for part in one.parts))
    before: set[int] = set()
    for number, sop in sops.items():
        op = sop.op
        needed = {op[name] for name in ("inner", "fst", "snd", "value") if name in op}
        needed |= {term for term, _ in op.get("terms", ())}
        needed |= compared[op["selector"]] if "selector" in op else set()
        need(needed <= before, f"{sop.label} comes before what it depends on")
        before.add(number)
