"""An attention sub-layer: what each head adds at token positions, at BOS and at PAD, and the stream after it.

Token positions: `selection.py` and `aggregate.py`, by the owner of each written dimension. BOS: its query is proved to
give all weight to BOS. PAD: nothing is proved of where its queries look, only of how much weight is not at BOS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tracr_check.aggregate import Reading, Values, copied, counted, parted, summed
from tracr_check.arithmetic import Arithmetic
from tracr_check.boxes import Boxes, State, grid_of, joined, natural, read_state, varies
from tracr_check.facts import Facts
from tracr_check.joint import joint_values
from tracr_check.parts import Parts
from tracr_check.program import Array, Env, Program, Var
from tracr_check.scores import Vectors, pad_scores, scores, stored_vectors
from tracr_check.selection import Mask, Selection, merged, own_mask, proved_selection, reference
from tracr_check.verdict import Rejected, need, reject

__all__ = ["Attention", "HeadWeights", "States", "after_attention", "pad_rows"]

Ints = NDArray[np.int64]
CELLS = 60_000_000
CLASSES = 2_000


@dataclass(frozen=True, eq=False)
class HeadWeights:
    """The weights of one head."""

    w_q: Array
    b_q: Array
    w_k: Array
    b_k: Array
    w_v: Array
    b_v: Array
    w_o: Array


@dataclass(frozen=True, eq=False)
class States:
    """The stream at token positions, at BOS (one row) and at PAD (`None` if nothing sees it).

    At PAD the variables are "P", the position, and one for each head that gives PAD queries a number of keys.
    """

    tokens: State
    bos: State
    pad: State | None


@dataclass(frozen=True, eq=False)
class Added:
    """What a head adds to a dimension, by the value of a variable, and the values that do not occur."""

    dim: int
    owner: Var
    lo: Array
    hi: Array
    gone: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Attention:
    """What the heads need: the program and its lemmas, the parts, the arithmetic, and the parts that hints name."""

    program: Program
    facts: Facts
    parts: Parts
    arithmetic: Arithmetic
    sources: Mapping[str, int | None]


def after_attention(
    states: States, heads: list[HeadWeights], bias: Array, owners: list[dict[int, Var]], given: Attention, layer: int
) -> States:
    """The stream after the heads of a layer and their bias."""
    need(len(owners) == len(heads), f"hints for {len(owners)} heads, not {len(heads)}", f"layer {layer}")
    terms = np.sum([(one.w_o != 0).sum(0) for one in heads], axis=0) if heads else np.zeros(len(bias), int)
    found = [
        _Head(states, one, own, given, f"{layer}.{place}", terms)
        for place, (one, own) in enumerate(zip(heads, owners, strict=True))
    ]
    added = [one for head in found for one in head.at_tokens()]
    at_bos = [one for head in found for one in head.at_bos()]
    at_pad = [one for head in found for one in head.at_pad()]
    a = given.arithmetic
    pad = None if states.pad is None else _plus(states.pad, at_pad, bias, terms, a, "P")
    tokens, bos = _plus(states.tokens, added, bias, terms, a, "1"), _plus(states.bos, at_bos, bias, terms, a, "B")
    return States(tokens, bos, pad)


def _plus(state: State, added: list[Added], bias: Array, terms: Ints, a: Arithmetic, base: Var) -> State:
    """The stream with what heads and the bias add to it; the error of the sum, and the bias, belong to `base`.

    If one head writes into an empty dimension, the number is what the head gives. Otherwise a sum is exact if all its
    terms are points on a grid and few enough. If not: the product with W_O is one sum over the `terms` products of
    all heads, in any order, so that each product passes through at most terms + 3 roundings (its own, the sum's, the
    bias's, the stream's). The error is gamma(terms + 3) of the sizes of all products: `_Head.reading` counts those of
    a head with several terms, here is the size of the others and of the stream.
    """
    dims = sorted({one.dim for one in added} | set(np.flatnonzero(bias).tolist()))
    new = state.without(dims)
    columns: dict[Var, list[tuple[int, Column]]] = {}
    for dim in dims:
        mine = [one for one in added if one.dim == dim]
        for owner, column in _column(state, mine, float(bias[dim]), dim, int(terms[dim]), a, base).items():
            columns.setdefault(owner, []).append((dim, column))
    for owner, found in columns.items():
        rows = len(state.tables[owner].lo) if owner in state.tables else max(len(column[0]) for _, column in found)
        lo, hi, grid = (
            np.stack([np.broadcast_to(column[place], rows) for _, column in found], axis=1) for place in range(3)
        )
        new = new.plus(owner, Boxes(np.array([dim for dim, _ in found]), lo, hi, grid))
    for one in added:
        new = new.dying(one.owner, one.gone)
    return new


def product_error(terms: int, a: Arithmetic) -> float:
    """The error of the product with W_O, relative to the sizes of a head's products.

    A product of any head may be added before or after those of this one: see `_plus`.
    """
    return float(a.gamma(terms + 3)) + (a.stored_unit if a.narrow else 0.0)


Column = tuple[Array, Array, Array]


def _column(
    state: State, added: list[Added], bias: float, dim: int, count: int, a: Arithmetic, base: Var
) -> dict[Var, Column]:
    """What a dimension holds after some additions, by variable; the heads' sum has `count` products."""
    held = {name: (lo, hi) for name, (lo, hi, _) in state.column(dim).items() if lo.any() or hi.any()}
    if len(added) == 1 and not held and not bias:
        one = added[0]
        return {one.owner: (one.lo, one.hi, natural(one.lo, one.hi, a.stored_bits))}
    terms = {name: [pair] for name, pair in held.items()}
    for one in added:
        terms.setdefault(one.owner, []).append((one.lo, one.hi))
    terms.setdefault(base, []).append((np.array([bias]), np.array([bias])))
    every = [pair for pairs in terms.values() for pair in pairs]
    size = sum(float(np.maximum(np.abs(lo), np.abs(hi)).max()) for lo, hi in every)
    point = all((lo == hi).all() for lo, hi in every)
    grid = min(float(grid_of(lo).min()) for lo, _ in every) if point else 0.0
    exact = point and size <= 2.0 ** min(a.stored_bits, 52) * grid and grid >= a.stored_tiny
    stored = 2 * (a.stored_unit * size + a.stored_tiny) if a.narrow else 0.0
    roundings = count + len(every) + 3
    off = 0.0 if exact else a.gamma(roundings) * size + stored + roundings * (2.0**-50 * size + a.tiny)
    found: dict[Var, Column] = {}
    for name, pairs in terms.items():
        lo, hi = np.asarray(sum(pair[0] for pair in pairs)), np.asarray(sum(pair[1] for pair in pairs))
        lo, hi = (lo - off, hi + off) if name == base else (lo, hi)
        found[name] = lo, hi, np.where(lo == hi, grid_of(lo), 0.0)
    if len(found) == 1:
        lo, hi, _ = found[base]
        found[base] = lo, hi, natural(lo, hi, a.stored_bits)
    return found


class _Head:
    def __init__(
        self, states: States, weights: HeadWeights, owners: dict[int, Var], given: Attention, number: str, terms: Ints
    ) -> None:
        self.states, self.weights, self.owners, self.given = states, weights, owners, given
        self.terms = terms
        self.number, self.where = number, f"head {number}"
        self.a = given.arithmetic
        w = weights
        self.bos_query, self.bos_key, self.bos_value = (
            self.solo(states.bos, "B", *pair) for pair in ((w.w_q, w.b_q), (w.w_k, w.b_k), (w.w_v, w.b_v))
        )
        pad = states.pad
        self.pad_key = None if pad is None else self.any_row(pad, w.w_k, w.b_k)
        self.pad_value = None if pad is None else self.any_row(pad, w.w_v, w.b_v)
        self.values = read_state(states.tokens, w.w_v, w.b_v)
        self.readings: dict[int, Reading] = {}
        for dim in np.flatnonzero((w.w_o != 0).any(0)).tolist():
            reading, _ = self.reading(dim, set())
            if reading.largest:
                self.readings[dim] = reading
        self.selections: dict[object, tuple[Mask, Selection]] = {}

    # Reading

    def solo(self, state: State, name: Var, matrix: Array, bias: Array) -> Vectors:
        """Vectors of BOS or PAD, row by row."""
        rows = len(state.tables[name].lo)
        env = Env(rows, {name: np.arange(rows)})
        return stored_vectors(joined(read_state(state, matrix, bias), {name}, env, np.arange(matrix.shape[1])), self.a)

    def any_row(self, state: State, matrix: Array, bias: Array) -> Vectors:
        """One vector of boxes that contains those of all PAD positions."""
        reads = read_state(state, matrix, bias)
        return stored_vectors(joined(reads, (), Env(1, {}), np.arange(matrix.shape[1])), self.a)

    def side(self, matrix: Array, bias: Array, more: set[int]) -> tuple[Env, Vectors]:
        """Classes of queries or keys: joint values of what the matrix reads, and of `more`."""
        reads = read_state(self.states.tokens, matrix, bias)
        names: set[Var] = {name for name, read in reads.items() if len(read.lo) > 1 and varies(read).any()}
        env = joint_values(self.given.program, names | more, self.states.tokens.dead, few=CLASSES)
        need(env.rows, "no input reaches this head", self.where)
        env = env.only({*reads, *more})
        return env, stored_vectors(joined(reads, set(env.codes), env, np.arange(matrix.shape[1])), self.a)

    def reading(self, dim: int, more: set[int]) -> tuple[Reading, Env]:
        """What a written dimension reads: at keys by joint values, those of `more` included; at BOS and PAD."""
        column = self.weights.w_o[:, dim]
        used = np.flatnonzero(column)
        weights = column[used]
        names = {name for name, read in self.values.items() if len(read.lo) > 1 and varies(read)[used].any()}
        env = joint_values(self.given.program, names | more, self.states.tokens.dead)
        at_keys = stored_vectors(joined(self.values, set(env.codes), env, used), self.a)
        lo, hi, size = _through(at_keys.lo, at_keys.hi, weights)
        b_lo, b_hi, b_size = _through(self.bos_value.lo[:, used], self.bos_value.hi[:, used], weights)
        pad_size = 0.0
        if self.pad_value is not None:
            pad_size = float(_through(self.pad_value.lo[:, used], self.pad_value.hi[:, used], weights)[2].max())
        power = len(used) == 1 and abs(weights[0]) >= 1 and np.frexp(abs(weights[0]))[0] == 0.5
        tail = 0.0 if power else product_error(int(self.terms[dim]), self.a)
        keys = self.given.program.longest + 1
        return Reading(lo, hi, size, (float(b_lo[0]), float(b_hi[0])), float(b_size[0]), pad_size, tail, keys), env

    # Token positions

    def at_tokens(self) -> list[Added]:
        found = []
        for dim in self.readings:
            need(dim in self.owners, f"no hint for dimension {dim}", self.where)
            owner = self.owners[dim]
            where = f"{self.where}, dimension {dim}, {self.given.program.name(owner)}"
            lo, hi, gone = self.of_part(owner, dim, where) if _is_part(owner) else self.of_sop(owner, dim, where)
            need(np.isfinite(lo).all() and np.isfinite(hi).all(), "numbers too large", where)
            found.append(self.canonical(Added(dim, owner, lo, hi, gone)))
        return found

    def canonical(self, added: Added) -> Added:
        """In terms of the token, position or length, if the owner is a function of one of them."""
        program = self.given.program
        leaves = program.leaves(added.owner)
        if len(leaves) == 1 and leaves <= {"T", "I", "L"}:
            (leaf,) = leaves
            env = Env(program.sizes[leaf], {leaf: np.arange(program.sizes[leaf])})
            codes = program.codes(added.owner, env)
            fine = codes >= 0
            lo, hi = (np.where(fine, part[codes], 0.0) for part in (added.lo, added.hi))
            return Added(added.dim, leaf, lo, hi, ~fine | added.gone[codes])
        return added

    def of_sop(self, owner: Var, dim: int, where: str) -> Values:
        program, facts, reading = self.given.program, self.given.facts, self.readings[dim]
        if owner == "L":
            need(not program.causal, "a causal head cannot count all keys", where)
            _, selection = self.selection(None)
            return counted(reading, selection, program.numbers("L"), self.a, where)
        sop = program.sops[owner]  # type: ignore[index]
        if sop.kind == "width":
            _, selection = self.selection(sop.op["selector"])
            return counted(reading, selection, sop.numbers, self.a, where)
        if sop.kind == "length":
            _, selection = self.selection(None)
            return counted(reading, selection, sop.numbers, self.a, where)
        if sop.kind != "aggregation":
            reject(f"a head cannot compute {sop.label}", where)
        _, selection = self.selection(sop.op["selector"])
        value = sop.op["value"]
        source = program.sops[value]
        equal, one = facts.equal_values(sop.op["selector"], value), facts.at_most_one(sop.op["selector"])
        reading, codes = self.by_value(dim, value)
        return copied(reading, selection, source, sop, codes, equal, one, self.a, where)

    def by_value(self, dim: int, value: int) -> tuple[Reading, NDArray[np.int64]]:
        """What a dimension reads at keys, with the code of an attended s-op for each row."""
        reading, env = self.reading(dim, {value})
        return reading, env.codes[value]

    def of_part(self, owner: Var, dim: int, where: str) -> Values:
        name, parts, facts, reading = str(owner), self.given.parts, self.given.facts, self.readings[dim]
        need(name[1:] == self.number and name in self.given.sources, "a part of another head", where)
        source = self.given.sources[name]
        mask, selection = self.selection("own")
        parts.add(name, mask, source)
        if name[0] == "c":
            return counted(reading, selection, parts.numbers(name), self.a, where)
        need(source is not None, "a part without a source", where)
        assert source is not None
        reading, codes = self.by_value(dim, source)
        sop = self.given.program.sops[source]
        if name[0] == "s":
            return summed(reading, selection, sop.numbers, codes, parts.numbers(name), self.a, where)
        whole = parts.whole_of(name)
        equal, one = facts.equal_values(whole.op["selector"], source), facts.at_most_one(whole.op["selector"])
        one = one or whole.op["assumed"] or not np.isfinite(sop.numbers).any()
        return parted(reading, selection, codes, len(sop.values), equal, one, self.a, where)

    def selection(self, selector: int | str | None) -> tuple[Mask, Selection]:
        """The mask of a selector (`None`: all keys; "own": the head's own), proved."""
        if selector not in self.selections:
            self.selections[selector] = self.proved(selector)
        return self.selections[selector]

    def proved(self, selector: int | str | None) -> tuple[Mask, Selection]:
        program, w = self.given.program, self.weights
        by_query, by_key = program.sides(selector) if isinstance(selector, int) else (set(), set())
        queries, q = self.side(w.w_q, w.b_q, by_query)
        keys, k = self.side(w.w_k, w.b_k, by_key)
        need(queries.rows * keys.rows <= CELLS, f"{queries.rows:,} × {keys.rows:,} classes", self.where)
        sure = False
        if isinstance(selector, int):
            chosen, defined = program.selected(selector, queries, keys)
            mask, sure = Mask(queries, keys, chosen, defined), self.given.facts.always(selector)
        elif selector is None:
            every = np.ones((queries.rows, keys.rows), dtype=bool)
            mask, sure = Mask(queries, keys, every, every), True
        else:
            mask = own_mask(queries, keys, q, k, self.bos_key)
        few, q, k = merged(mask, q, k)
        ref = reference(few, k, self.bos_key)
        pad = None
        if self.states.pad is not None:
            assert self.pad_key is not None
            pad = pad_scores(q, self.states.pad, w.w_k, w.b_k, self.pad_key, ref, self.a)
        return mask, proved_selection(few, q, k, self.bos_key, pad, ref, sure, self.a, self.where)

    # BOS and PAD

    def at_bos(self) -> list[Added]:
        """BOS sees itself only: all other keys are `apart` below."""
        if not self.readings:
            return []
        if not self.given.program.causal:
            _, k = self.side(self.weights.w_k, self.weights.b_k, set())
            ref = self.bos_key.middle
            tops = [scores(self.bos_query, k, ref, self.a)[1].max()]
            if self.pad_key is not None and self.states.pad is not None:
                w = self.weights
                tops.append(pad_scores(self.bos_query, self.states.pad, w.w_k, w.b_k, self.pad_key, ref, self.a).max())
            own = scores(self.bos_query, self.bos_key, ref, self.a)[0][0, 0]
            need(max(tops) <= own - self.a.apart, "the BOS query sees other keys", self.where)
        found = []
        for dim, reading in self.readings.items():
            lo, hi = reading.at_bos(self.a)
            leak = reading.leak(self.a)
            found.append(Added(dim, "B", np.array([lo - leak]), np.array([hi + leak]), np.zeros(1, dtype=bool)))
        return found

    def at_pad(self) -> list[Added]:
        """PAD: if the pattern of its queries is proved, like a count of 0 to n keys; else a mean of anything.

        *Counted*: each key is near BOS (tokens and PAD, by the mask of the query's class) or `apart` below; so w of the
        n keys share the weight with BOS, and the owner is a new variable whose value is w. *Else*: computed weights are
        not negative and add up to 1 within their rounding, so the result is between the smallest and the largest value,
        and has their sign.
        """
        if self.states.pad is None or self.pad_value is None or not self.readings:
            return []
        try:
            selection: Selection | None = self.pad_selection()
        except Rejected:
            selection = None
        return [self.pad_added(dim, reading, selection) for dim, reading in self.readings.items()]

    def pad_added(self, dim: int, reading: Reading, selection: Selection | None) -> Added:
        """What PAD queries add to a dimension."""
        assert self.pad_value is not None
        a, n = self.a, self.given.program.longest
        used = np.flatnonzero(self.weights.w_o[:, dim])
        p_lo, p_hi, _ = _through(self.pad_value.lo[:, used], self.pad_value.hi[:, used], self.weights.w_o[used, dim])
        lo, hi = np.append(reading.lo, p_lo), np.append(reading.hi, p_hi)
        if selection is not None and (selection.weight is not None or selection.never):
            size = np.append(reading.size, reading.pad_size)
            everything = replace(reading, lo=lo, hi=hi, size=size)
            return Added(dim, f"P{self.number}", *counted(everything, selection, np.arange(n + 1.0), a, self.where))
        low, high = min(float(lo.min()), reading.bos[0]), max(float(hi.max()), reading.bos[1])
        relative = 4 * (a.gamma(2 * reading.keys + 8) + reading.tail) + (8 * a.stored_unit if a.narrow else 0.0)
        off = relative * reading.largest + 8 * a.stored_tiny
        signed = len(used) == 1
        low = max(low - off, 0.0) if signed and low >= 0 else low - off
        high = min(high + off, 0.0) if signed and high <= 0 else high + off
        return Added(dim, "P", np.array([low]), np.array([high]), np.zeros(1, dtype=bool))

    def pad_selection(self) -> Selection:
        """The pattern of PAD queries, proved: by the mask of tokens, and PAD keys near BOS or `apart` below."""
        assert self.states.pad is not None and self.pad_key is not None
        w, pad = self.weights, self.states.pad
        reads = read_state(pad, w.w_q, w.b_q)
        names = [name for name, read in reads.items() if len(read.lo) > 1 and varies(read).any()]
        queries = pad_rows(pad, names, CLASSES)
        q = stored_vectors(joined(reads, set(queries.codes), queries, np.arange(w.w_q.shape[1])), self.a)
        keys, k = self.side(w.w_k, w.b_k, set())
        need(queries.rows * keys.rows <= CELLS, "too many classes", self.where)
        mask, q, k = merged(own_mask(queries, keys, q, k, self.bos_key), q, k)
        ref = np.broadcast_to(self.bos_key.middle, q.lo.shape)
        top = pad_scores(q, pad, w.w_k, w.b_k, self.pad_key, ref, self.a)
        bottom = scores(q, self.bos_key, ref, self.a)[0][:, 0] - self.a.apart
        need((top <= bottom).all(), "PAD queries see PAD", self.where)
        return proved_selection(mask, q, k, self.bos_key, top, ref, False, self.a, self.where)


def pad_rows(pad: State, names: Iterable[Var], most: int) -> Env:
    """Joint values of variables at PAD; all combinations, without some variables (covered by hulls) if too many."""
    kept: list[Var] = []
    rows = 1
    for name in sorted(names, key=lambda one: (len(pad.tables[one].lo), str(one))):
        if rows * len(pad.tables[name].lo) <= most:
            kept.append(name)
            rows *= len(pad.tables[name].lo)
    grid = np.indices([len(pad.tables[name].lo) for name in kept]).reshape(len(kept), -1) if kept else np.zeros((0, 1))
    return Env(rows, dict(zip(kept, grid.astype(np.int64), strict=True)), tuple(kept))


def _through(lo: Array, hi: Array, weights: Array) -> tuple[Array, Array, Array]:
    """The range of a weighted sum of components, and the sum of the sizes."""
    low = np.where(weights > 0, lo, hi) @ weights
    high = np.where(weights > 0, hi, lo) @ weights
    size = np.maximum(np.abs(lo), np.abs(hi)) @ np.abs(weights)
    if len(weights) == 1:
        return low, high, size
    slack = (len(weights) + 3) * 2.0**-52 * size
    return low - slack, high + slack, size + slack


def _is_part(owner: Var) -> bool:
    return isinstance(owner, str) and owner[:1] in ("c", "s", "p")
