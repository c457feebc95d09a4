"""Parts: what single heads of a split selector count, sum or copy, and the identities that make wholes of them.

A head with its own mask M defines a variable at each query: its *count* (how many visible keys M selects), its *sum*
(of an s-op's numbers there) or its *copy* (the value there, or nothing). A hint says which variable of the program (or
definition) the parts make up. **Rule**, proved for every pair of joint values of a query and a key where the program is
defined: if factors exist with sum of factor M = selector, the counts (sums) times their factors add up to the width
(sum) of the selector, because each key adds the same to both sides. If the union of the masks is the selector, and all
keys that it selects hold one value, then each copy is that value or nothing, and all are nothing only if nothing is
selected.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr_check.aggregated import default_code, moved_codes
from tracr_check.boxes import INF, Read, add_reads
from tracr_check.definitions import MOST_SUMS, sums_of, units_of
from tracr_check.facts import Facts
from tracr_check.joint import FINE
from tracr_check.patterns import patterns
from tracr_check.piecewise import bits_of
from tracr_check.program import Program, weighted_sum
from tracr_check.selection import Mask
from tracr_check.variables import ERROR, Array, Codes, SOp, Var, Way
from tracr_check.verdict import need, reject

__all__ = ["Parts"]

MOST_PARTS, MOST_WHOLES = 16, 1000
ROUGH = 1e-4  # of the largest number of a whole: a column that reads it only so far
NOTHING = (0.0, 0.0, 0.0, 0.0, 0.0, INF)  # the parts of a `Read` of nothing


@dataclass(frozen=True, eq=False)
class Identity:
    """The number of the whole is the constant plus the sum of each factor times the number of its term."""

    whole: Var
    terms: Sequence[tuple[Var, float]]
    constant: float


@dataclass(eq=False)
class Parts:
    """The parts that heads have defined so far, and the linear identities that are proved."""

    program: Program
    facts: Facts
    masks: dict[str, tuple[Mask, ...]] = field(default_factory=dict)
    sources: dict[str, int | None] = field(default_factory=dict)
    listed: dict[Var, Array] = field(default_factory=dict)
    identities: list[Identity] = field(default_factory=list)
    done: set[tuple[int, tuple[str, ...]]] = field(default_factory=set)
    wholes: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number, sop in self.program.sops.items():
            if sop.kind == "linear":
                merged: dict[Var, float] = {}
                for term, factor in sop.op["terms"]:
                    merged[term] = merged.get(term, 0.0) + float(factor)
                if len(merged) > 1 and all(merged.values()):
                    self.identities.append(Identity(number, list(merged.items()), float(sop.op["constant"])))

    def add(self, name: str, masks: tuple[Mask, ...], source: int | None) -> None:
        """A head defines a part: a count "c...", a sum "s..." or a copy "p..." of an s-op."""
        need(self.sources.setdefault(name, source) == source, f"{name} has two meanings")
        if name in self.masks:
            return
        longest = self.program.lengths[1]
        listed = np.arange(longest + 1.0)
        if name[0] != "c":
            assert source is not None
            sop = self.program.sops[source]
            nothing = np.full(len(sop.values) + 1, np.nan)  # no part of a copy counts as a number
            listed = np.array(sums_of(sop, longest)) if name[0] == "s" else nothing
        self.masks[name], self.listed[name], self.program.sizes[name] = masks, listed, len(listed)

    def numbers(self, name: Var) -> Array:
        """The number of each value of a variable; NaN for values that are not numbers."""
        return self.listed[name] if name in self.listed else self.program.numbers(name)

    def whole_of(self, name: str) -> SOp:
        """The s-op that a copy is part of."""
        every = ((int(text), names) for text, ways in self.wholes.items() for names in ways)
        number = next((whole for whole, names in every if name in names), None)
        if number not in self.program.sops or self.program.sops[number].kind != "aggregation":
            reject(f"{name} is part of no aggregate")
        return self.program.sops[number]

    def prove(self) -> None:
        """Prove the identities all of whose parts are defined; a whole may be made up in several ways."""
        need(sum(map(len, self.wholes.values())) <= MOST_WHOLES, "too many variables are made up of parts")
        for text, ways in self.wholes.items():
            need(len(ways) <= MOST_PARTS, f"{len(ways)} ways to make up one variable")
            for names in ways:
                key = int(text), tuple(names)
                if key not in self.done and all(name in self.masks for name in names):
                    self.prove_whole(self.program.sops[key[0]], names)
                    self.done.add(key)

    def all_proved(self) -> None:
        """Every part that is called a copy is one: its mask is within the selector of its whole."""
        for name in self.masks:
            if name[0] == "p":
                whole = self.whole_of(name).number
                need(any(key[0] == whole and name in key[1] for key in self.done), f"{name} is not proved to be a copy")

    def prove_whole(self, sop: SOp, names: Sequence[str]) -> None:
        """Parts of one kind make up a variable."""
        need(0 < len(names) <= MOST_PARTS and len(set(names)) == len(names), f"{len(names)} parts")
        kind = {"width": "c", "units": "c", "sum": "s", "aggregation": "p"}.get(sop.kind)
        need(all(name[0] == kind for name in names), "other parts")
        (self.prove_copy if kind == "p" else self.prove_sum)(sop, names)

    def prove_sum(self, sop: SOp, names: Sequence[str]) -> None:
        """Counts (or sums) of parts, times factors, add up to a width (or a sum).

        Let x(k) be what a selected key counts: 1, or for `units` its number in units. If sum of f_i M_i(q, k) = x(k)
        selector(q, k) for every pair, then the sum of f_i times the counts is the width, or the sum of the selected x;
        and for x = 1 the sum of f_i times the sums of any number is its sum over the selected keys. The factors are a
        guess, rounded to whole numbers. A mask that selects no key does not matter.
        """
        if sop.kind == "sum":
            need(all(self.sources[name] == sop.op["of"] for name in names), "parts sum other values")
        value = sop.op["of"] if sop.kind == "units" else None
        heads = [self.masks[name] for name in names]
        wanted, defined, masks, codes = patterns(self.program, sop.op["selector"], heads, value)
        units = np.ones(1) if value is None else units_of(self.program.sops[value], sop.op)
        selected = np.where(wanted, units[codes], 0.0)[defined]
        matrix = np.stack(masks, axis=1)[defined].astype(np.float64)
        factors = np.rint(np.linalg.lstsq(matrix, selected, rcond=None)[0])
        need(
            np.abs(factors).max() < MOST_SUMS and (matrix @ factors == selected).all(),
            f"the heads {', '.join(names)} do not add up to {sop.label}",
        )
        used = zip(names, (factors * matrix.any(0)).tolist(), strict=True)
        terms: list[tuple[Var, float]] = [(name, factor) for name, factor in used if factor]
        found = weighted_sum(sop, [(self.numbers(name), factor) for name, factor in terms], 0.0)

        def function(rows: int, *codes: Codes) -> Codes:
            return np.maximum(found(rows, *codes), ERROR)  # a sum that is not listed is undefined

        self.identities.append(Identity(sop.number, terms, 0.0))
        self.program.ways[sop.number].append(Way(tuple(name for name, _ in terms), function))

    def prove_copy(self, sop: SOp, names: Sequence[str]) -> None:
        """The masks cover the selector, which selects one value."""
        need(all(self.sources[name] == sop.op["value"] for name in names), "parts copy other values")
        wanted, defined, masks, _ = patterns(self.program, sop.op["selector"], [self.masks[name] for name in names])
        covered = (np.logical_or.reduce(masks) == wanted)[defined].all()
        need(covered, f"the heads {', '.join(names)} do not cover {sop.label}")
        source, selector = self.program.sops[sop.op["value"]], sop.op["selector"]
        need(source.listed, "a copy of an interval in parts")
        alone = self.facts.at_most_one(selector) or sop.op["assumed"] or not np.isfinite(source.numbers).any()
        need(alone or self.facts.equal_values(selector, source.number), f"{sop.label} selects several values")
        nothing, results = len(source.values), np.append(moved_codes(source, sop), default_code(sop))

        def function(rows: int, *codes: Codes) -> Codes:
            held = np.stack(codes)  # the value, or the largest code: nothing
            first, last = held.min(0), np.where(held == nothing, -1, held).max(0)
            return np.where(last > first, ERROR, results[first])  # two values: undefined

        self.program.ways[sop.number].append(Way(tuple(names), function))

    # Reading wholes

    def improve(self, reads: dict[Var, Read]) -> dict[Var, Read]:
        """Columns that read the terms of an identity in its proportions read the whole instead.

        Let z = k + sum of f_t t. A column reads alpha f_t x_t + r_t of each term, r_t in a range: then it reads
        alpha (z - k) plus the sum of the r_t. `alpha` is a guess; the ranges of r_t are computed. The positive products
        add up to what is read and what the negative ones add up to: a second bound, and a better one if these are few.
        If no f_t t is negative and r_t is between a_t + b f_t t and c_t + d f_t t, the r_t add up to something between
        the sums of these: sum of a_t + b (z - k), and sum of c_t + d (z - k) (`_share`). So errors in proportion to
        counts add up to one in proportion to the whole.
        If all r_t are 0 and the numbers are whole, what is read is alpha (z - k) exactly. The products stay the same,
        so they keep their grids. Columns that are only nearly proportional are left as they are, if what they read of
        each term is known and the terms have few joint values.
        """
        found = dict(reads)
        for one in self.identities:
            if len(one.terms) > 1 and all(t in found and np.isfinite(self.numbers(t)).all() for t, _ in one.terms):
                found = self.improved(found, one)
        return found

    def improved(
        self, reads: dict[Var, Read], identity: Identity, without: frozenset[int] = frozenset()
    ) -> dict[Var, Read]:
        """The reads with the columns in these proportions, `without` some, in terms of the whole."""
        whole, terms, constant = identity.whole, identity.terms, identity.constant
        z, alpha = self.numbers(whole), self.proportions(reads, terms)
        columns = np.setdiff1d(np.flatnonzero(np.isfinite(alpha)), list(without))
        if not len(columns) or not np.isfinite(z).all():
            return reads
        alpha = alpha[columns]
        lo, hi, up, down, count = (np.zeros((1, len(columns))) for _ in range(5))
        shares, reach = [(lo, lo), (lo, lo)], 0.0  # of `lo` and `hi` (see `_share`)
        grid, exact = np.full((1, len(columns)), INF), np.full(len(columns), True)
        found = dict(reads)
        known = np.full(len(columns), math.prod(self.program.sizes[term] for term, _ in terms) <= FINE)
        for term, factor in terms:
            read, x, radius = reads[term].at(slice(None), columns), self.numbers(term), self.program.radius(term)
            line, precise = _line(alpha, factor * x, bits_of(x) + bits_of(np.array(factor)))
            same = ((read.lo == line) & (read.hi == line)).all(0) & precise & (not radius.any())
            own = (len(terms) + 4) * 2.0**-52 * (np.abs(line) + read.size)  # of this computation, to the end
            slack = np.where(same, 0.0, own + np.abs(alpha * factor) * radius[:, None])
            rest = read.lo - line - slack, line - read.hi - slack
            lo, hi = lo + rest[0].min(0, keepdims=True), hi - rest[1].min(0, keepdims=True)
            shares = [_share(known, factor * x, one) for known, one in zip(shares, rest, strict=True)]
            reach += abs(factor) * float(radius.max())
            exact, known = exact & same, known & (read.hi - read.lo <= own).all(0)
            up, down, count = (
                total + part.max(0, keepdims=True)
                for total, part in zip((up, down, count), (read.up, read.down, read.count), strict=True)
            )
            grid = np.minimum(grid, read.grid.min(0, keepdims=True))
            found[term] = _with_columns(reads[term], columns, NOTHING)
        rough = known & ((hi - lo)[0] > ROUGH * np.abs(alpha) * np.abs(z).max(initial=0.0))
        if rough.any():  # the terms one by one tell more
            return self.improved(reads, identity, without | set(columns[rough].tolist()))
        away = 1.1e-9 * np.maximum(1.0, np.abs(z)) * (len(terms) + 1) + self.program.radius(whole)
        away = (away + 2.0**-50 * (np.abs(z) + abs(constant)))[:, None]  # how far z may be from k + sum of f_t t
        above = np.maximum(z - constant, 0.0)[:, None] + away + reach
        (low, less), (high, more) = shares
        lo, hi = np.maximum(lo, low + less * above), np.minimum(hi, -high - more * above)
        near = np.abs(alpha) * away
        base, precise = _line(alpha, z - constant, bits_of(z - constant))
        near = np.where(exact & precise & self.on_grid(identity)[:, None], 0.0, near)
        lo, hi = base + lo - near, base + hi + near
        least, most = (np.maximum(end, 0.0) * (1 + 2.0**-50) for end in (up - lo, hi + down))
        nothing = Read(*(np.full((len(z), reads[terms[0][0]].lo.shape[1]), one) for one in NOTHING))
        parts = lo, hi, np.minimum(up, most), np.minimum(down, least), count, grid
        new = _with_columns(nothing, columns, parts)
        found[whole] = add_reads(found[whole], new) if whole in found else new
        return found

    def proportions(self, reads: Mapping[Var, Read], terms: Sequence[tuple[Var, float]]) -> Array:
        """For each column the alpha with which it reads the terms of an identity; NaN if it is far from one."""
        slopes = []
        for term, factor in terms:
            x, middle = self.numbers(term), (reads[term].lo + reads[term].hi) / 2
            first, last = int(np.argmin(x)), int(np.argmax(x))
            if x[first] == x[last]:
                return np.full(middle.shape[1], np.nan)
            slopes.append((middle[last] - middle[first]) / (x[last] - x[first]) / factor)
        alpha, scale = np.mean(slopes, axis=0), np.abs(slopes).max(0)
        near = (scale > 0) & (np.abs(np.array(slopes) - alpha).max(0) <= 0.05 * scale)
        return np.where(near, alpha, np.nan)

    def on_grid(self, identity: Identity) -> NDArray[np.bool_]:
        """The values of a whole whose number is exactly k + sum of f_t t, not only within 1e-9.

        All terms are whole numbers, and the number is one, too: then the two differ by 0 or by at least 1. A value is
        within 1e-9 of the sum, relative above 1, and this is less than 1 only for numbers that are not large.
        """
        terms, factors = zip(*identity.terms, strict=True)
        numbers = [np.array([identity.constant, *factors]), *map(self.numbers, terms)]
        fine = all((one == np.rint(one)).all() and np.abs(one).max(initial=0.0) < 2.0**20 for one in numbers)
        sharp = not any(self.program.radius(name).any() for name in (identity.whole, *terms))
        z = self.numbers(identity.whole)
        return np.asarray((z == np.rint(z)) & (np.abs(z) < 2.0**28) & fine & sharp)


def _share(known: tuple[Array, Array], numbers: Array, rest: Array) -> tuple[Array, Array]:
    """Adds a term to a lower bound a + b s of a sum of rests (by number and column), s the sum of the numbers.

    At each number m >= 0 the rest is at least a0 + b m, if a0 is the least rest at 0 and b is small enough for all m
    and all terms before. No b is if a number is negative.
    """
    a, b = known
    none, some = numbers == 0, numbers > 0
    least = np.minimum(rest[none].min(0, keepdims=True, initial=INF), 0.0) if none.any() else 0.0 * a
    slope = ((rest[some] - least) / numbers[some, None]).min(0, keepdims=True, initial=0.0) * (1 + 2.0**-40)
    return a + least, np.where((numbers < 0).any(), -INF, np.minimum(b, slope))


def _line(alpha: Array, x: Array, bits: NDArray[Any]) -> tuple[Array, NDArray[np.bool_]]:
    """alpha x for each number and column; the columns in which all these products are computed exactly."""
    return alpha * x[:, None], (bits_of(alpha) + int(bits.max(initial=0)) <= 52)


def _with_columns(read: Read, columns: NDArray[np.int64], new: Sequence[Array | float]) -> Read:
    """The read with other parts in some columns."""
    parts = [part.copy() for part in read.parts]
    for part, own in zip(parts, new, strict=True):
        part[:, columns] = own
    return Read(*parts)
