"""The passes `embed_functions` and `factor`: embed the features that are read, instead of one-hot codes.

The embedding writes a one-hot code x, and readers read x @ C for the columns C of their matrices. The embedding can
write x @ C itself. Columns are used unchanged, so there are no new roundings (`feature_basis.py` decides which columns
share a direction). If this gives fewer directions than values, the variable is stored that way; the code of a value is
then its row of the columns (`Variable.codebook`).

A function of tokens alone, or of positions alone, that `fold.py` multiplied into its readers is embedded as a variable
of its own, if that takes no more directions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tracr.caching import cached_property
from tracr.compiler.circuit.feature_basis import ColumnRead, Columns, FeatureBasis
from tracr.craft.formats import Format
from tracr.craft.grouping import group_rows
from tracr.craft.linear import BOS, ONE, PAD, LinearMap
from tracr.craft.mlps import MLP
from tracr.craft.variables import Array, Variable
from tracr.ir.circuit import Circuit, Component, Embedded
from tracr.nearness import nearly_equal

__all__ = ["embed_functions", "factor", "factored_kinds"]

Kind = Literal["token", "position"]


def embed_functions(circuit: Circuit, kinds: Set[Kind]) -> Circuit:
    """The circuit in which linear functions of one embedded variable are embedded too."""
    sources = {source.variable: source for source in circuit.embedded if not source.variable.compact}
    kept: list[Component] = []
    embedded = list(circuit.embedded)
    for component in circuit.components:
        source = _function(component, sources)
        if source is not None and source.variable.node in circuit.listed and _kind(source) in kinds:
            sources[source.variable] = source
            embedded.append(source)
        else:
            kept.append(component)
    gone = {source.variable for source in embedded}
    variables = tuple(variable for variable in circuit.variables if variable not in gone)
    return replace(circuit, components=tuple(kept), embedded=tuple(embedded), variables=variables)


def factored_kinds(before: Circuit, after: Circuit) -> list[set[Kind]]:
    """The sets of kinds whose functions might be embedded at no cost: kinds with functions and factored variables."""
    left = {source.variable for source in after.embedded}
    factored = {_kind(source) for source in before.embedded if source.variable not in left}
    functions = embed_functions(before, factored).embedded[len(before.embedded) :] if factored else ()
    kinds = {_kind(source) for source in functions}
    return [kinds, *([{kind} for kind in sorted(kinds)] if len(kinds) > 1 else [])] if kinds else []


def _kind(source: Embedded) -> Kind:
    return "token" if source.by_token is not None else "position"


def _function(component: Component, sources: dict[Variable, Embedded]) -> Embedded | None:
    """The embedded variable that replaces an MLP, if the MLP is a function of one embedded variable."""
    match component:
        case MLP(linear=LinearMap(blocks=blocks), writes=((variable, _),)) if len(blocks) == 1:
            ((read, block),) = blocks.items()
            if read in sources:
                tables = (sources[read].by_token, sources[read].by_position)
                by_token, by_position = (None if table is None else table @ block for table in tables)
                return Embedded(variable, by_token, by_position)
    return None


@np.errstate(over="ignore", invalid="ignore")
def factor(circuit: Circuit) -> Circuit:
    """The circuit with embedded variables stored as they are read, if that takes fewer directions.

    A quotient of columns that is too large for a float is infinite. Multiplied again it does not give the column, and
    is therefore never used.
    """
    outputs = {variable for _, variable in circuit.outputs}
    for source in circuit.embedded:
        variable = source.variable
        if not (variable.numerical or variable.compact or variable in outputs):
            circuit = _factored(circuit, source)
    return circuit


def _factored(circuit: Circuit, source: Embedded) -> Circuit:
    """The circuit with an embedded variable stored as it is read, if that takes fewer directions."""
    maps = tuple(dict.fromkeys(one for one in _maps(circuit) if source.variable in one[0].blocks))
    stored = _Readers(source, maps).stored_as_read(circuit.read, circuit.options.format) if maps else None
    return circuit if stored is None else _rewritten(circuit, stored)


class _Readers:
    """The readers of an embedded variable: (map, whether it can have a bias), and the different columns of each map."""

    def __init__(self, source: Embedded, maps: tuple[tuple[LinearMap, bool], ...]) -> None:
        self.source, self.old, self.maps = source, source.variable, maps
        self.groups = {linear: group_rows(linear.blocks[self.old].T) for linear, _ in maps}
        self.columns = Columns(
            np.concatenate([linear.blocks[self.old].T[self.groups[linear][0]] for linear, _ in maps])
        )

    def stored_as_read(self, read: Collection[Variable], to: Format) -> _Stored | None:
        """The variable with a direction for each feature that is read, if these are fewer than the values read.

        A constant is also read from the directions of BOS and PAD: they count if nothing `read` them before. A short
        format must hold the features and their factors; it has no room for a constant beside BOS's logit.
        """
        used = int(np.count_nonzero(self.columns.rows.any(axis=0)))
        present = _presence(self.source)
        unread = [one for one in (BOS, PAD) if one in present and one not in read]
        may_shift = self._may_shift(to)
        never = [False] * len(may_shift)
        for shifts in (may_shift, never) if any(may_shift) else (never,):
            basis = FeatureBasis(self.old, self.columns, shifts)
            if len(basis.classes) > used:
                return None
            if basis.size < used:
                reads, new, table = basis.finish()
                if not _held(reads, table, to):
                    return None
                if new.size + (len(unread) if any(read.shift for read in reads) else 0) < used:
                    return self._stored(reads, new, table)
        return None

    def _may_shift(self, to: Format) -> list[bool]:
        """For each column, whether a constant may be split off: all exact, a bias possible, a value always present."""
        codes = self.source.by_token if self.source.by_token is not None else self.source.by_position
        assert codes is not None
        always = not to.short and bool((codes.sum(axis=1) == 1).all())  # every token, or position, has a value
        return [always and biased and _is_exact(linear) for linear, biased in self.maps for _ in self.groups[linear][0]]

    def _stored(self, reads: list[ColumnRead], new: Variable, table: Array) -> _Stored:
        places = iter(reads)
        found = {linear: [next(places) for _ in self.groups[linear][0]] for linear, _ in self.maps}
        class_of = {linear: classes for linear, (_, classes) in self.groups.items()}
        return _Stored(self.source, new, table, found, class_of)


def _held(reads: Sequence[ColumnRead], table: Array, to: Format) -> bool:
    """Whether a format holds features and the factors they are read with; the factors of float32 are exact."""
    return not to.short or (to.holds(table) and to.holds([factor for one in reads for _, factor in one.terms]))


@dataclass(frozen=True, eq=False)
class _Stored:
    """An embedded variable stored as it is read: the new variable, its table [value, direction], and its readers.

    `reads` has the different columns of each map that read the old one, `class_of` which of them each column is.
    """

    source: Embedded
    new: Variable
    table: Array
    reads: Mapping[LinearMap, list[ColumnRead]]
    class_of: Mapping[LinearMap, NDArray[np.intp]]

    @cached_property
    def embedded(self) -> tuple[Embedded, ...]:
        """The embedded variables that replace it; none if only constants are read."""
        tables = (self.source.by_token, self.source.by_position)
        by_token, by_position = (None if rows is None else rows @ self.table for rows in tables)
        return (Embedded(self.new, by_token, by_position),) if self.new.size else ()

    def through(self, linear: LinearMap) -> LinearMap:
        """The map, reading the new variable instead of the old one."""
        if linear not in self.reads:
            return linear
        reads, class_of = self.reads[linear], self.class_of[linear]
        block, shifts = np.zeros((self.new.size, len(reads))), np.zeros((1, len(reads)))
        for column, read in enumerate(reads):
            shifts[0, column] = read.shift
            for place, factor in read.terms:
                block[place, column] = factor
        block, shifts = block[:, class_of], shifts[:, class_of]
        blocks = {variable: own for variable, own in linear.blocks.items() if variable is not self.source.variable}
        if block.any():
            blocks[self.new] = block
        bias = {one: sign * shifts for one, sign in _presence(self.source).items()} if shifts.any() else {}
        return LinearMap(blocks, linear.width) + LinearMap(bias, linear.width)

    def explained(self, linear: LinearMap) -> LinearMap:
        """The map of a folded variable over the new variable: as its readers read it, or as far as it is determined."""
        if linear in self.reads:
            return self.through(linear)
        return _in_terms_of(linear, self.source.variable, self.new, self.table, _presence(self.source))


def _presence(source: Embedded) -> dict[Variable, float]:
    """The indicator of positions where the variable has a code: positions have one at PAD, tokens do not."""
    present = {ONE: 1.0, BOS: -1.0}
    return present if source.by_token is None else {**present, PAD: -1.0}


def _rewritten(circuit: Circuit, stored: _Stored) -> Circuit:
    """The circuit with all readers of the old variable reading the new one."""
    embedded = tuple(
        one for other in circuit.embedded for one in (stored.embedded if other is stored.source else (other,))
    )
    through: dict[LinearMap, LinearMap] = {}

    def noted(old: LinearMap, new: LinearMap) -> LinearMap:
        if old in circuit.through:
            through[new] = circuit.through[old]
        return new

    components = tuple(
        part.with_maps([noted(linear, stored.through(linear)) for linear in part.maps]) for part in circuit.components
    )
    folded = {variable: noted(linear, stored.explained(linear)) for variable, linear in circuit.folded.items()}
    read = {variable: rows for variable, rows in circuit.read.items() if variable is not stored.source.variable}
    read[stored.new] = np.ones(stored.new.size, dtype=bool)
    for special in (BOS, PAD):
        if any(special in part.reads for part in components):
            read[special] = np.ones(1, dtype=bool)
    return replace(circuit, embedded=embedded, components=components, folded=folded, read=read, through=through)


def _is_exact(linear: LinearMap) -> bool:
    return all(read.noise.error == read.noise.cold == 0.0 for read in linear.blocks)


def _in_terms_of(
    linear: LinearMap, old: Variable, new: Variable, table: Array, present: Mapping[Variable, float]
) -> LinearMap:
    """The map of a folded variable over the new variable, as far as that determines it."""
    if old not in linear.blocks:
        return linear
    wanted = linear.blocks[old]
    terms = np.hstack([table, np.ones((old.size, 1))])
    factors: Array = np.asarray(np.linalg.lstsq(terms, wanted, rcond=None)[0], dtype=np.float64)
    known = nearly_equal(wanted, terms @ factors, scale=1.0).all(axis=0)
    blocks = {variable: block for variable, block in linear.blocks.items() if variable is not old}
    rest = {} if known.all() else {old: np.where(known, 0.0, wanted)}
    left = LinearMap({**blocks, **rest}, linear.width)
    factors = np.where(known, factors, 0.0)
    constant = {one: sign * factors[-1:] for one, sign in present.items()}
    return left + LinearMap({**({new: factors[:-1]} if new.size else {}), **constant}, linear.width)


def _maps(circuit: Circuit) -> Iterator[tuple[LinearMap, bool]]:
    """Every map that reads variables, and whether it can have a bias (the unembedding cannot)."""
    for component in circuit.components:
        for linear in component.maps:
            yield linear, True
    for _, variable in circuit.outputs:
        if variable in circuit.folded:
            yield circuit.folded[variable], False
