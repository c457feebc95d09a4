"""Banks of lessons: interventions on a teacher with its answers, grouped by site.

For every site, pairs of inputs of one length and the positions to patch (all, one, or some) are drawn, until there are
enough lessons where the teacher's answer changes and enough where it does not, or until enough were tried. Where
changes are rare, lessons that change the answer are recombined: their inputs and positions often do so in other pairs.
Interventions under which the program is undefined are left out and counted. No lesson is in a bank twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from tracr.natural.network import Patch
from tracr.natural.sites import Sites
from tracr.natural.teacher import Inputs, Lesson, Teacher

__all__ = ["CLEAR", "Bank", "InterventionDraws", "draw_bank"]

Array = NDArray[Any]
DRAWN = {"cpu": 4096}  # interventions drawn in one batch, by device
MOST_DRAWN = 32_768
CLEAR = 2.0  # tolerances: a number that moves by less has neither changed nor stayed
BARE = 0.5  # the share of short inputs without padding
EVERYWHERE, SOMEWHERE = 0.4, 0.2  # the shares of lessons that patch all positions, and any set of them; the rest, one
RARE = 0.05  # changes are rare at a site where a smaller share of the draws was kept as such
RECOMBINED = 0.5  # the share of draws that recombine lessons where changes are rare
REMEMBERED = 4_000  # no more lessons of a site are kept for recombination when it has this many
CHANGING, STAYING = 0, 1


@dataclass(frozen=True, eq=False)
class Bank:
    """Lessons in the order of their sites; those of a site where the answer changes come first.

    For each site, `start` is the number of its first lesson, `changing` and `staying` count the lessons of each kind,
    `tried` counts the drawn interventions, and `undefined` those of them that had no true answer.
    """

    lessons: Lesson
    start: Array
    changing: Array
    staying: Array
    tried: Array
    undefined: Array

    def __len__(self) -> int:
        return len(self.lessons.base)

    def changes(self, rows: Array) -> Array:
        """Whether the answer changes in each of these lessons."""
        site = np.searchsorted(self.start, rows, side="right") - 1
        found: Array = rows - self.start[site] < self.changing[site]
        return found


def draw_bank(
    teacher: Teacher,
    inputs: Inputs,
    sites: Sites,
    *,
    each: int,
    idle: int,
    tries: int,
    seed: int,
    futile: int | None = None,
    held_out: bool = False,
) -> Bank:
    """Up to `each` lessons of each kind for every site of the teacher, from at most `tries` draws.

    A site where no draw changed the answer gets at most `futile` draws, if that is given. Sites that the teacher does
    not have never change its answer; they get up to `idle` lessons. Half of all interventions, chosen by their digests,
    are only in banks that are `held_out`, the others only in those that are not.
    """
    wanted = np.where(teacher.wired, [[each], [each]], [[0], [idle]]).T.reshape(-1)  # of each kind of each site
    draws = InterventionDraws(inputs, np.random.default_rng(seed))
    kept = _Kept(wanted)
    tried, undefined = np.zeros((2, len(sites.all)), dtype=np.int64)
    most = np.full(len(sites.all), tries)
    while len(chosen := np.flatnonzero(kept.missing.reshape(-1, 2).any(axis=1) & (tried < most))):
        drawn = draws.draw(chosen, rare=kept.count[::2] < RARE * tried)
        writer, reader = sites.coded[drawn.site].T
        patch = Patch(writer, reader, drawn.where, drawn.bare)
        lesson, effect = teacher.teach(inputs.ids[drawn.base], inputs.ids[drawn.source], patch)
        moved, defined = np.asarray(effect.moved), np.asarray(effect.defined)
        tried += np.bincount(drawn.site, minlength=len(tried))
        undefined += np.bincount(drawn.site[~defined], minlength=len(tried))
        kind = np.select([moved >= CLEAR, moved == 0], [CHANGING, STAYING], -1)
        digests = drawn.digests
        fine = np.flatnonzero(defined & (kind >= 0) & (digests % 2 == held_out))
        rows = kept.add(lesson, 2 * drawn.site + kind, digests, fine)
        draws.remember(drawn.rows(rows[kind[rows] == CHANGING]))
        most = np.where(kept.count[::2] > 0, tries, tries if futile is None else futile)
    return kept.bank(tried, undefined)


class _Drawn(NamedTuple):
    """Interventions: sites, the numbers of base and source inputs, the patched positions, and if PAD is hidden."""

    site: Array
    base: Array
    source: Array
    where: Array
    bare: Array

    def rows(self, rows: Array) -> _Drawn:
        """Some of the interventions."""
        return _Drawn(*(array[rows] for array in self))

    @property
    def digests(self) -> Array:
        """A number for each intervention, the same for equal ones; different ones share it with probability 2⁻⁶⁴."""
        columns = np.column_stack(self).astype(np.uint64)
        weights = np.random.default_rng(0).integers(1, 2**63, columns.shape[1], dtype=np.uint64) * 2 + 1
        mixed = columns @ weights
        return mixed ^ (mixed >> np.uint64(31))


class InterventionDraws:
    """Draws interventions: pairs of inputs of one length, and positions."""

    def __init__(self, inputs: Inputs, rng: np.random.Generator) -> None:
        self.lengths, self.rng = inputs.lengths, rng
        self.size = DRAWN.get(jax.default_backend(), MOST_DRAWN)
        self.places = np.arange(inputs.ids.shape[1])
        self.order = np.argsort(inputs.lengths, kind="stable")
        sorted_lengths = inputs.lengths[self.order]
        self.first = np.searchsorted(sorted_lengths, inputs.lengths, side="left")
        self.last = np.searchsorted(sorted_lengths, inputs.lengths, side="right")
        longest = inputs.lengths == inputs.lengths.max()
        every = 1.0 / np.bincount(inputs.lengths)[inputs.lengths]
        self.shares = np.cumsum(0.5 * longest / longest.sum() + 0.5 * every / every.sum())
        nothing = np.empty(0, dtype=np.intp)
        self.known = _Drawn(nothing, nothing, nothing, np.empty((0, len(self.places)), bool), nothing.astype(bool))

    def pairs(self, count: int) -> tuple[Array, Array]:
        """The numbers of two inputs of one length, for each pair."""
        base = np.searchsorted(self.shares, self.rng.random(count) * self.shares[-1])
        base = np.minimum(base, len(self.lengths) - 1)
        return base, self._partner(base)

    def draw(self, sites: Array, rare: Array) -> _Drawn:
        """Interventions on these sites, all equally often; at rare ones half of them recombine known lessons."""
        site = np.sort(np.resize(self.rng.permutation(sites), self.size))
        base, source = self.pairs(self.size)
        where = self._where(base)
        first, last = (np.searchsorted(self.known.site, site, side) for side in ("left", "right"))
        again = np.flatnonzero((first < last) & rare[site] & (self.rng.random(self.size) < RECOMBINED))
        if len(again):
            known = self.known.rows(self.rng.integers(first[again], last[again]))
            by_base, same = self.rng.random((2, len(again))) < 0.5
            base[again] = np.where(by_base, known.base, self._partner(known.source))
            source[again] = np.where(by_base, self._partner(known.base), known.source)
            where[again] = np.where(same[:, None], known.where, self._where(known.base))
        short = self.lengths[base] < self.lengths.max()
        return _Drawn(site, base, source, where, short & (self.rng.random(self.size) < BARE))

    def remember(self, changing: _Drawn) -> None:
        """Keep interventions that change the answer, for recombination."""
        first, last = (np.searchsorted(self.known.site, changing.site, side) for side in ("left", "right"))
        changing = changing.rows(last - first < REMEMBERED)
        both = _Drawn(*(np.concatenate(arrays) for arrays in zip(self.known, changing, strict=True)))
        self.known = both.rows(np.argsort(both.site, kind="stable"))

    def _partner(self, inputs: Array) -> Array:
        """For each input one of the same length."""
        found: Array = self.order[self.rng.integers(self.first[inputs], self.last[inputs])]
        return found

    def _where(self, inputs: Array) -> Array:
        """For each input the positions to patch."""
        lengths = self.lengths[inputs][:, None]
        one = self.places == self.rng.integers(1, lengths + 1)
        some = (self.rng.random(one.shape) < 0.5) & (self.places > 0) & (self.places <= lengths)
        kind = self.rng.random((len(inputs), 1))
        found: Array = (kind < EVERYWHERE) | one | (some & (kind < EVERYWHERE + SOMEWHERE))
        return found


class _Kept:
    """The lessons kept so far. The key of a lesson is 2 * its site if the answer changes, else 2 * its site + 1."""

    def __init__(self, wanted: Array) -> None:
        self.wanted, self.seen = wanted, set[int]()
        self.count = np.zeros_like(wanted)
        self.parts: list[tuple[Array, Lesson]] = []

    @property
    def missing(self) -> Array:
        """For each key, whether more lessons are wanted."""
        return self.count < self.wanted

    def add(self, lesson: Lesson, keys: Array, digests: Array, rows: Array) -> Array:
        """Keep those of these rows that are wanted and new; their numbers."""
        rows = rows[np.unique(digests[rows], return_index=True)[1]]
        rows = rows[[digest not in self.seen for digest in digests[rows].tolist()]]
        rows = rows[np.argsort(keys[rows], kind="stable")]
        rank = np.arange(len(rows)) - np.searchsorted(keys[rows], keys[rows])
        rows = rows[rank < (self.wanted - self.count)[keys[rows]]]
        self.seen.update(digests[rows].tolist())
        self.count += np.bincount(keys[rows], minlength=len(self.count))
        self.parts.append((keys[rows], jax.tree.map(lambda array: np.asarray(array)[rows], lesson)))
        return rows

    def bank(self, tried: Array, undefined: Array) -> Bank:
        """The bank of all lessons."""
        keys, lessons = jax.tree.map(lambda *arrays: np.concatenate(arrays), *self.parts)
        order = np.argsort(keys, kind="stable")
        changing, staying = self.count.reshape(-1, 2).T
        start = np.concatenate([[0], np.cumsum(changing + staying)[:-1]])
        lessons = jax.tree.map(lambda array: array[order], lessons)
        return Bank(lessons, start, changing, staying, tried, undefined)
