"""One head: what its matrices read, and the pattern that is proved of its queries at token positions.

The components of queries and keys fall into groups (`groups.py`) where nothing links them: no component, and no part of
the selector that is not itself a conjunction, is about variables of two groups. They are used where the classes of all
variables together are many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from tracr_check.additions import product_error
from tracr_check.aggregate import Reading
from tracr_check.arithmetic import Arithmetic
from tracr_check.boxes import INF, Read, State, chunks, hull, joined, read_state, varying
from tracr_check.facts import Facts
from tracr_check.groups import Group, Link, fitting
from tracr_check.joint import LIMIT, joint_values
from tracr_check.padding import pad_rows, pad_size
from tracr_check.parts import Parts
from tracr_check.program import Program
from tracr_check.scores import (
    ALONE,
    Beside,
    Vectors,
    beside,
    hulls,
    largest_product,
    pad_scores,
    scores,
    stored_vectors,
)
from tracr_check.selection import Bounds, Factor, Mask, Selection, own_mask, proved_selection, reference
from tracr_check.variables import Array, Env, Var
from tracr_check.verdict import need

__all__ = ["Attention", "Head", "HeadWeights", "Queries", "States", "through"]

Ints = NDArray[np.int64]
Reads = tuple[dict[Var, Read], dict[Var, Read], dict[Var, Read]]
CELLS, PAD_CELLS = 60_000_000, 4_000_000
CLASSES = 2_000
FEW_CELLS = 2_000_000  # pairs of classes that are not merged
TINY = 2.0**-1000  # a product may be 0 in float64
VECTOR_CELLS, AT_A_TIME = 15_000_000, 30_000


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
    """The stream at token positions, at BOS (one row) and at PAD (`None` if there is no padding).

    At PAD the variables are "P", the position, and one for each head that gives PAD queries a number of keys.
    """

    tokens: State
    bos: State
    pad: State | None = None

    @property
    def kinds(self) -> dict[str, State]:
        """The states by name: "tokens", "bos", and "pad" if there is padding."""
        return {kind: state for kind, state in vars(self).items() if state is not None}


@dataclass(frozen=True, eq=False)
class Attention:
    """What the heads need: the program and its lemmas, the parts, the arithmetic, and the parts that hints name."""

    program: Program
    facts: Facts
    parts: Parts
    arithmetic: Arithmetic
    sources: Mapping[str, int | None]


@dataclass(frozen=True, eq=False)
class Queries:
    """Queries of a kind of position: what their components read, and how to list the joint values of variables.

    `see_pad`: whether they see PAD; under a causal mask, only those at PAD do.
    """

    reads: Mapping[Var, Read]
    classes: Callable[[Iterable[Var]], Env]
    see_pad: bool


class Head:
    """A head on the streams before it; `terms`: how many products each dimension's sum over all heads has."""

    def __init__(self, states: States, weights: HeadWeights, given: Attention, number: str, terms: Ints) -> None:
        self.states, self.weights, self.given, self.terms = states, weights, given, terms
        self.number, self.where = number, f"head {number}"
        self.a, self.rank = given.arithmetic, len(weights.b_q)  # the number of components of queries and keys
        w, tokens, bos, pad = weights, states.tokens, states.bos, states.pad
        self.queries, self.keys, self.values = reads = self.reads(tokens)
        self.varying = varying(self.values)
        self.bos_query, self.bos_key, self.bos_value = self.any_rows(self.reads(bos))
        own = [self.any_rows(reads), (self.bos_query, self.bos_key, self.bos_value)]
        self.pad_key: Vectors | None = None
        self.pad_value: Vectors | None = None
        if pad is not None:
            own.append(self.any_rows(self.reads(pad)))
            _, self.pad_key, self.pad_value = own[-1]
        q_most, k_most, v_most = (np.vstack([kind[place].size for kind in own]) for place in range(3))
        self.largest = float(v_most.max(initial=0.0))  # of all components of values
        most = self.a.largest / (1 + self.a.gamma(self.rank + 1))  # rounding may make a score larger
        if not q_most.max(0) @ k_most.max(0) < most:  # token positions by classes
            sides = ((self.queries, w.b_q), (self.keys, w.b_k))
            by_class = (self.of_classes(*side, np.arange(self.rank)).size for side in sides)
            q_most, k_most = (np.vstack([new, old[1:]]) for new, old in zip(by_class, (q_most, k_most), strict=True))
            need(len(q_most) * len(k_most) <= CELLS, f"{len(q_most):,} × {len(k_most):,} classes", self.where)
            need(largest_product(q_most, k_most) < most, "scores may be too large", self.where)
        written = np.flatnonzero((w.w_o != 0).any(0)).tolist()
        found = {dim: self.reading(dim, set())[0] for dim in written}
        self.readings = {dim: reading for dim, reading in found.items() if reading.largest}
        self.selections: dict[object, tuple[tuple[Mask, ...], Selection]] = {}

    # Reading

    def reads(self, state: State) -> Reads:
        """What queries, keys and values read at a kind of position."""
        w = self.weights
        return read_state(state, w.w_q, w.b_q), read_state(state, w.w_k, w.b_k), read_state(state, w.w_v, w.b_v)

    def any_rows(self, reads: Reads) -> tuple[Vectors, Vectors, Vectors]:
        """A query, a key and a value of boxes that contain those of all positions of a kind."""
        biases = self.weights.b_q, self.weights.b_k, self.weights.b_v
        q, k, v = (stored_vectors(joined(read), bias, self.a) for read, bias in zip(reads, biases, strict=True))
        return q, k, v

    def values_at(self, used: Ints, more: Iterable[Var] = (), limit: int = LIMIT) -> tuple[Vectors, Env]:
        """Some components of the values at token positions, by joint values, those of `more` included."""
        names = {name for name, columns in self.varying.items() if columns[used].any()}
        env = joint_values(self.given.program, names.union(more), self.states.tokens.dead, limit)
        return self.vectors(self.values, self.weights.b_v, env, used), env

    def reading(self, dim: int, more: set[int]) -> tuple[Reading, Env]:
        """What a written dimension reads: at keys by joint values, those of `more` included; at BOS and PAD."""
        used = np.flatnonzero(self.weights.w_o[:, dim])
        weights = self.weights.w_o[used, dim]
        at_keys, env = self.values_at(used, more)
        lo, hi, size = through(at_keys, weights)
        b_lo, b_hi, b_size = self.written(dim, self.bos_value)
        pad_size = 0.0 if self.pad_value is None else float(self.written(dim, self.pad_value)[2].max())
        power = len(used) == 1 and abs(weights[0]) >= 1 and np.frexp(abs(weights[0]))[0] == 0.5
        tail = 0.0 if power else product_error(int(self.terms[dim]), self.a)
        bos, gain, keys = (float(b_lo[0]), float(b_hi[0])), float(np.abs(weights).sum()), self.given.program.longest + 1
        terms = int(self.terms[dim])
        return Reading(lo, hi, size, bos, float(b_size[0]), pad_size, gain, tail, keys, terms, self.a), env

    def written(self, dim: int, values: Vectors) -> tuple[Array, Array, Array]:
        """What a dimension reads of values: the range, and the sum of the sizes."""
        used = np.flatnonzero(self.weights.w_o[:, dim])
        return through(values.of(used), self.weights.w_o[used, dim])

    def classes(self, names: Iterable[Var]) -> Env:
        """Classes of token positions: the different joint values of some variables."""
        env = joint_values(self.given.program, names, self.states.tokens.dead, few=CLASSES)
        need(env.rows, "no input reaches this head", self.where)
        return env.different(names)

    def vectors(self, reads: Mapping[Var, Read], bias: Array, env: Env, components: Ints) -> Vectors:
        """Components of queries, keys or values of classes; for few classes at a time, which is faster."""
        cells = env.rows * len(components)
        need(cells <= VECTOR_CELLS, f"{env.rows:,} × {len(components):,} components", self.where)
        self.given.program.spend(cells)
        kept = {
            name: read.at(slice(None), components) if name in env.codes else hull(read.at(slice(None), components))
            for name, read in reads.items()
            if name == "1" or read.count[:, components].any()
        }
        found = Vectors(*(np.empty((env.rows, len(components))) for _ in range(3)))
        for rows in chunks(env.rows, len(components), AT_A_TIME):
            part = stored_vectors(joined(kept, env.at(rows)), bias[components], self.a)
            found.lo[rows], found.hi[rows], found.grid[rows] = part.lo, part.hi, part.grid
        return found

    def of_classes(self, reads: Mapping[Var, Read], bias: Array, components: Ints) -> Vectors:
        """Some components of the queries or keys of token positions, by classes."""
        names = {name for name, columns in varying(reads).items() if columns[components].any()}
        return self.vectors(reads, bias, self.classes(names), components)

    # The pattern

    def selection(self, selector: int | str | None) -> tuple[tuple[Mask, ...], Selection]:
        """The pattern of a selector (`None`: all keys; "own": by masks of the head), proved for queries at tokens."""
        if selector not in self.selections:
            own = Queries(self.queries, self.classes, see_pad=not self.given.program.causal)
            self.selections[selector] = self.proved(own, selector)
        return self.selections[selector]

    def proved(self, queries: Queries, selector: int | str | None) -> tuple[tuple[Mask, ...], Selection]:
        """Prove the pattern of some queries, factor by factor; "own": no key, if BOS is `apart` above all keys."""
        program = self.given.program
        conjuncts = [one.number for one in program.conjuncts(selector)] if isinstance(selector, int) else []
        varied = [_variation(reads, self.rank) for reads in (queries.reads, self.keys)]
        links: list[Link] = list(zip(*varied, strict=True))
        links += [(frozenset(own), frozenset(keys)) for own, keys in map(program.sides, conjuncts)]

        def classes(group: Group) -> tuple[Env, Env]:
            return queries.classes(group.queries), self.classes(group.keys)

        groups = fitting(program, links, classes)
        factors = [self.factor(group, queries, conjuncts) for group in groups]
        pairs = math.prod(one.mask.queries.rows for one in factors)
        need(pairs <= LIMIT, f"{pairs:,} classes of queries", self.where)
        if selector == "own":
            factors = [replace(one, mask=own_mask(one, alone=len(groups) == 1)) for one in factors]
        bounds = []
        for group, one in zip(groups, factors, strict=True):
            others = [(two, self.components(more)) for more, two in zip(groups, factors, strict=True) if two is not one]
            by_keys = beside([(two.q, two.k) for two, _ in others])
            by_bos = beside([(two.q, two.bos) for two, _ in others])
            by_pad = beside([(two.q, self.pad_keys(two.q, places)) for two, places in others] if self.pad_key else [])
            ref = reference(one)
            pad = self.pad_bound(one.q, ref, self.components(group), by_pad, queries.see_pad)
            bounds.append(one.bounds(ref, pad, by_keys, by_bos, self.a))
        total = reduce(Bounds.and_, bounds)
        if selector == "own" and total.only_bos(self.a):
            factors = [replace(one, mask=replace(one.mask, chosen=one.mask.chosen & False)) for one in factors]
            selection = Selection(0.0, None, sure=False, never=True)
        else:
            sure = selector is None or (isinstance(selector, int) and self.given.facts.always(selector))
            selection = proved_selection(factors, total, sure, self.a, self.where)
        masks = [one.whole_mask(CELLS, self.where) for one in factors] if selector == "own" else []
        return tuple(masks), selection

    def components(self, group: Group) -> Ints:
        """The components of queries and keys in a group."""
        return np.array([place for place in group.links if place < self.rank], dtype=np.int64)

    def factor(self, group: Group, of: Queries, conjuncts: Sequence[int]) -> Factor:
        """The vectors of a group's classes, and the mask of the conjuncts in it.

        If there are many, classes that the conjuncts do not tell apart and whose vectors are nearly equal are one
        class, with the hulls of their boxes.
        """
        program, components = self.given.program, self.components(group)
        queries, keys = whole = of.classes(group.queries), self.classes(group.keys)
        kinds = np.arange(queries.rows), np.arange(keys.rows)
        mine = [conjuncts[place - self.rank] for place in group.links if place >= self.rank]
        q = self.vectors(of.reads, self.weights.b_q, queries, components)
        k = self.vectors(self.keys, self.weights.b_k, keys, components)
        if queries.rows * keys.rows > FEW_CELLS:
            sides = [program.sides(one) for one in mine]
            first, rows, q = hulls(q, [program.codes(name, queries) for side, _ in sides for name in side])
            second, columns, k = hulls(k, [program.codes(name, keys) for _, side in sides for name in side])
            queries, keys, kinds = queries.at(first), keys.at(second), (rows, columns)
        need(queries.rows * keys.rows <= CELLS, f"{queries.rows:,} × {keys.rows:,} classes", self.where)
        chosen = np.ones((queries.rows, keys.rows), dtype=bool)
        defined = chosen.copy()
        for conjunct in mine:
            one, fine = program.selected(conjunct, queries, keys)
            chosen, defined = chosen & one, defined & fine
        return Factor(Mask(queries, keys, chosen, defined), q, k, self.bos_key.of(components), whole, kinds)

    def pad_bound(
        self, q: Vectors, ref: Array, components: Ints, others: Beside = ALONE, see_pad: bool = True
    ) -> Array:
        """The most that components of a query add to its score at PAD; minus infinity if it sees no PAD.

        By the joint values of what the keys of PAD depend on, if they are few, and dimension by dimension. Components
        that are 0 in all of these queries are no part of their scores.
        """
        if self.states.pad is None or self.pad_key is None or not see_pad:
            return np.full(len(q.lo), -INF)
        used = q.size.any(0)
        q, ref, components = q.of(np.flatnonzero(used)), ref[:, used], components[used]
        w_k, b_k, pad = self.weights.w_k[:, components], self.weights.b_k[components], self.states.pad
        found = pad_scores(q, pad, w_k, b_k, self.pad_key.of(components), ref, self.a, self.rank - len(components))
        tops: Array = scores(q, self.pad_keys(q, components), ref, self.a, others)[1].max(1)
        return np.minimum(found, tops)

    def pad_keys(self, q: Vectors, components: Ints) -> Vectors:
        """Some components of the keys of PAD, by joint values if they are few for these queries; else a box of all."""
        assert self.states.pad is not None and self.pad_key is not None
        b_k, pad = self.weights.b_k[components], self.states.pad
        reads = read_state(pad, self.weights.w_k[:, components], b_k)
        names = {name for name, columns in varying(reads).items() if columns.any()}
        size = pad_size(pad, *names)
        if size * len(q.lo) > PAD_CELLS or size * len(components) > VECTOR_CELLS:
            return self.pad_key.of(components)
        return self.vectors(reads, b_k, pad_rows(pad, names, PAD_CELLS), np.arange(len(components)))


def _variation(reads: Mapping[Var, Read], rank: int) -> list[frozenset[Var]]:
    """For each column the variables that it depends on."""
    depends = varying(reads)
    return [frozenset(name for name, columns in depends.items() if columns[place]) for place in range(rank)]


def through(vectors: Vectors, weights: Array) -> tuple[Array, Array, Array]:
    """The range of a weighted sum of components, and the sum of the sizes; it is 0 only if all components are."""
    low = np.where(weights > 0, vectors.lo, vectors.hi) @ weights
    high = np.where(weights > 0, vectors.hi, vectors.lo) @ weights
    size = np.maximum(vectors.size @ np.abs(weights), (vectors.size > 0).any(1) * TINY)
    if len(weights) == 1:
        return low, high, size
    slack = (len(weights) + 3) * 2.0**-52 * size
    return low - slack, high + slack, size + slack
