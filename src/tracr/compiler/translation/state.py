"""The circuit under construction: variables, one-hot views of them, functions of numbers, heads."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.circuit import Component, Embedded
from tracr.compiler.domains import Finite, Interval
from tracr.compiler.translation.classes import Classes, runs, separate
from tracr.compiler.typed import (
    SelectorNode,
    SOpNode,
    Typed,
    describe,
)
from tracr.craft.heads import Head, attend, selector_logits
from tracr.craft.linear import BOS, LinearMap, NumberRead, present, read_code, read_number
from tracr.craft.mlps import MLP, Gap, Units, interpolate, look_up, staircase
from tracr.craft.numerics import CLEAN, NUMBER_TOLERANCE, Noise, U, share_error
from tracr.craft.variables import NUMBER, Array, Number, Variable
from tracr.errors import CompileError
from tracr.rasp.annotations import Encoding
from tracr.rasp.values import Value, is_number

__all__ = ["Translation"]


class Translation:
    """The circuit so far."""

    def __init__(self, typed: Typed) -> None:
        self.typed = typed
        self.merge = typed.options.level >= 1
        self.embedded: list[Embedded] = []
        self.components: list[Component] = []
        self.variables: dict[int, Variable] = {}
        self._views: dict[tuple[int, bytes], tuple[Variable, Classes]] = {}
        self._clean: dict[Variable, Variable] = {}
        self._labels = {node.label for node in typed.sops.values()} | {"one", "tokens", "indices"}

    # variables -------------------------------------------------------------------------------------------------

    def fresh_label(self, label: str) -> str:
        """A label nothing else has."""
        unique, number = label, 2
        while unique in self._labels:
            unique, number = f"{label}_{number}", number + 1
        self._labels.add(unique)
        return unique

    def space(self, node: SOpNode) -> Variable:
        """The directions an s-op owns, before it is known how exactly they are filled."""
        domain = node.domain
        values: tuple[Value | Number, ...]
        if node.encoding is Encoding.NUMERICAL:
            values = (NUMBER, None) if domain.maybe_none else (NUMBER,)
        else:
            assert isinstance(domain, Finite)
            values = domain.values
        low, high = 0.0, 1.0
        if isinstance(domain, Interval):
            low, high = domain.low, domain.high
        elif domain.numeric:
            low, high = float(domain.numbers.min()), float(domain.numbers.max())
        return Variable(node.label, node.encoding, values, low=low, high=high, node=node.id)

    def rows(self, node: SOpNode, space: Variable, codes: NDArray[np.integer]) -> Array:
        """The coordinates of each value code; error and unreached cells are zero."""
        assert isinstance(node.domain, Finite)
        table = np.array([space.code(value) for value in node.domain.values])
        return np.where((codes >= 0)[..., None], table[codes], 0.0)

    def embed(self, node: SOpNode, *, by_token: Array | None = None, by_position: Array | None = None) -> None:
        """Let the embedding write the s-op."""
        space = self.space(node)
        table = by_token if by_token is not None else by_position
        assert table is not None
        inexact = bool((table.astype(np.float32) != table).any())
        noise = Noise(error=U * float(np.abs(table).max())) if inexact else Noise(grid=self.grid(node))
        variable = _with_noise(space, noise)
        self.variables[node.id] = variable
        self.embedded.append(Embedded(variable, by_token, by_position))

    def grid(self, node: SOpNode) -> float:
        """The grid of a number stored exactly."""
        exact = Variable("", Encoding.CATEGORICAL, node.domain.values if isinstance(node.domain, Finite) else ())
        return read_number(exact).noise.grid if node.encoding is Encoding.NUMERICAL and exact.size else 0.0

    def write_mlp(self, space: Variable, units: Units, what: str) -> Variable:
        """Add an MLP that writes `space`; the result knows its noise."""
        noise = units.noise
        if noise.error == 0.0 and space.numerical and space.node is not None:
            noise = Noise(grid=self.grid(self.typed.sops[space.node]))
        variable = _with_noise(space, noise)
        self.components.append(MLP(variable.label, units.read, ((variable, units.write),), what))
        return variable

    def number(self, number: int) -> NumberRead:
        """An s-op as a number; a rough one-hot code is cleaned first."""
        variable = self.variables[number]
        if not variable.numerical and max(variable.noise.error, variable.noise.cold) > CLEAN:
            variable = self.cleaned(variable)
        return read_number(variable)

    # one-hot views of s-ops ----------------------------------------------------------------------------------------

    def one_hot(self, number: int, classes_of: Callable[[Finite], Classes]) -> tuple[Variable, Classes]:
        """A variable with a direction for each class of values of an s-op, and the direction of each code.

        The s-op's own directions if it is categorical (every value is a class then); a conversion MLP if it is a
        number.
        """
        node, variable = self.typed.sops[number], self.variables[number]
        assert isinstance(node.domain, Finite)
        if not variable.numerical:
            return variable, separate(node.domain)
        classes = classes_of(node.domain)
        key = (number, classes.tobytes())
        if key not in self._views:
            self._views[key] = self._convert(node, node.domain, classes)
        return self._views[key]

    def _convert(self, node: SOpNode, domain: Finite, classes: Classes) -> tuple[Variable, Classes]:
        members: list[list[Value]] = [[] for _ in range(int(classes.max()) + 1)]
        for code, group in enumerate(classes.tolist()):
            members[group].append(domain.values[code])
        names = tuple(group[0] if len(group) == 1 else f"{_least(group)}..{_most(group)}" for group in members)
        space = Variable(self.fresh_label(f"{node.label}_onehot"), Encoding.CATEGORICAL, names, node=node.id)
        table = np.eye(len(members))[classes]
        units = self.function_of_number(node, domain, self.number(node.id), table)
        return self.write_mlp(space, units, f"one-hot code of {node.label}"), classes

    def cleaned(self, variable: Variable) -> Variable:
        """The same one-hot code with its cold coordinates exactly zero, as attention over several keys needs it."""
        if variable.noise.cold == 0.0 and variable.noise.error <= CLEAN:
            return variable
        if variable not in self._clean:
            label = self.fresh_label(f"{variable.label}_clean")
            space = Variable(label, Encoding.CATEGORICAL, variable.values, node=variable.node)
            units = look_up(read_code(variable), np.eye(variable.size), variable.noise, merge=False)
            self._clean[variable] = self.write_mlp(space, units, f"{variable.label}, rounded to 0 and 1")
        return self._clean[variable]

    # functions of numbers ------------------------------------------------------------------------------------------

    def function_of_number(self, node: SOpNode, domain: Finite, read: NumberRead, table: Array) -> Units:
        """A staircase from the values of a numerical s-op to rows of `table` (one per code)."""
        order, others = _split(domain, table)
        try:
            return staircase(read, domain.numbers[order], table[order], others)
        except Gap as gap:
            raise CompileError(
                f"must tell {gap.below!r} from {gap.above!r}, but {node.label} = {node.source} is only known "
                f"to {gap.error:.1g} in float32",
                expression=node.label,
                hint="use fewer or coarser values (a shorter max_seq_len, rounding), or a comparison that does not "
                "separate neighbouring values",
            ) from None

    def write_function(self, node: SOpNode, read: NumberRead, domain: Finite, codes: NDArray[np.integer]) -> None:
        """An s-op that is a function (`codes`, one per value of `domain`) of a number.

        Numbers to one-hot codes: a staircase. Numbers to numbers: an interpolation, or a staircase, whichever is
        precise enough with fewer neurons; else through a one-hot code of the runs of equal results. Values that no
        input leads to, or on which the function raises, have no say.
        """
        if (codes < 0).any():
            domain = Finite(tuple(value for value, code in zip(domain.values, codes, strict=True) if code >= 0))
            codes = codes[codes >= 0]
        space = self.space(node)
        what = describe(self.typed, node)
        table = self.rows(node, space, codes)
        if not space.numerical:
            units = self.function_of_number(node, domain, read, table)
            if units.noise.error < 0.2 and units.noise.cold < 0.2:
                self.variables[node.id] = self.write_mlp(space, units, what)
                return
        else:
            good = [units for units in self._direct(node, domain, read, table, space) if _precise(units, table)]
            if good:
                best = min(good, key=lambda units: units.count)
                self.variables[node.id] = self.write_mlp(space, best, what)
                return
        self._through_runs(node, read, domain, codes, space, table)

    def _direct(self, node: SOpNode, domain: Finite, read: NumberRead, table: Array, space: Variable) -> list[Units]:
        """The one-layer constructions for a numerical result."""
        candidates = []
        order, others = _split(domain, table)
        if not space.maybe_none or not table[order, space.index[None]].any():
            points, numbers = _spread_out(domain.numbers[order], table[order, 0])
            if points is not None:
                candidates.append(interpolate(read, points, numbers, others, space.size))
        try:
            candidates.append(self.function_of_number(node, domain, read, table))
        except CompileError:
            if not candidates:
                raise
        return candidates

    def _through_runs(
        self,
        node: SOpNode,
        read: NumberRead,
        domain: Finite,
        codes: NDArray[np.integer],
        space: Variable,
        table: Array,
    ) -> None:
        """First a one-hot code of the runs of equal results, then their values: two MLPs, no large cancellation."""
        classes, _ = runs(domain, codes[:, None])
        first = np.array([int(np.flatnonzero(classes == group)[0]) for group in range(int(classes.max()) + 1)])
        label = self.fresh_label(f"{node.label}_runs")
        coarse = Variable(label, Encoding.CATEGORICAL, tuple(range(len(first))), node=None, scratch=True)
        units = self.function_of_number(node, domain, read, np.eye(len(first))[classes])
        if max(units.noise.error, units.noise.cold) >= 0.2:
            raise CompileError(
                f"needs {units.count:,} neurons whose float32 error, {units.noise.error:.2g}, is too large",
                expression=node.source,
                hint="use fewer or coarser values: a shorter max_seq_len, or rounding before this operation",
            )
        stage = self.write_mlp(coarse, units, f"which of the {len(first)} runs of {node.label}")
        values = look_up(read_code(stage), table[first], stage.noise, merge=self.merge)
        self.variables[node.id] = self.write_mlp(space, values, describe(self.typed, node))

    # heads -----------------------------------------------------------------------------------------------------------

    def keys_and_queries(self, selector: SelectorNode) -> tuple[LinearMap, LinearMap]:
        """The query and key maps of a selector, before BOS and PAD terms."""
        chosen = selector.table == 1
        keys, key_class = self.one_hot(selector.keys, lambda domain: runs(domain, chosen.T.astype(np.int8))[0])
        queries, query_class = self.one_hot(selector.queries, lambda domain: runs(domain, chosen.astype(np.int8))[0])
        tolerance = 1 / 16 if selector.at_most_one else 0.0
        keys, queries = self._quiet(keys, tolerance), self._quiet(queries, tolerance)
        selected = np.zeros((queries.size, keys.size), dtype=bool)
        selected[query_class[:, None], key_class[None, :]] = chosen
        query_map, key_map = selector_logits(selected)
        return self._read_selected(queries).then(query_map), self._read_selected(keys).then(key_map)

    def _read_selected(self, variable: Variable) -> LinearMap:
        """The code of keys or queries; from level 1 on a constant needs no direction to be read from."""
        return present() if variable.size == 1 and self.merge else read_code(variable)

    def _quiet(self, variable: Variable, tolerance: float) -> Variable:
        """Cold coordinates of keys and queries shift logits: not at all among several keys, by GAP/16 before one."""
        return variable if variable.noise.cold * variable.size <= tolerance else self.cleaned(variable)

    def head(
        self, selector: SelectorNode | None, bos_logit: float, value: LinearMap, space: Variable, what: str
    ) -> None:
        """Add a head that reads `value` where the selector says, and writes it into `space`."""
        nothing = LinearMap({}, 0)
        query, key = (nothing, nothing) if selector is None else self.keys_and_queries(selector)
        query, key = attend(query, key, bos_logit)
        name = "everything" if selector is None else selector.label
        writes = ((space, np.eye(space.size)),)
        self.components.append(Head(space.label, query, key, value, writes, name, what))

    def write_width(self, node: SOpNode, selector: SelectorNode | None) -> None:
        """A selector width: the head reads BOS's share c/(c+w), the MLP decodes w.

        c is the longest length, which spreads the shares over [1/2, 1] with the smallest gap about 1/(4c). The logit
        ln c is rounded to float32 first and the shares derived from the rounded c.
        """
        assert isinstance(node.domain, Finite)
        longest = self.typed.options.max_seq_len
        logit = float(np.float32(math.log(longest)))
        weight = math.exp(logit)
        noise = Noise(error=share_error(longest), grid=2.0**-24)
        label = self.fresh_label(f"{node.label}_share")
        share = Variable(
            label, Encoding.NUMERICAL, (NUMBER,), noise, (1.0,), low=0.5, high=1.0, node=node.id, scratch=True
        )
        self.head(selector, logit, LinearMap.of(BOS, np.eye(1)), share, f"c/(c+w) for {node.label}, c = {longest}")
        widths = node.domain.numbers
        shares = Finite(tuple((weight / (weight + widths)).tolist()))
        self.write_function(node, read_number(share), shares, np.arange(len(widths)))


def _with_noise(space: Variable, noise: Noise) -> Variable:
    return Variable(
        space.label,
        space.encoding,
        space.values,
        noise,
        space.at_bos,
        space.low,
        space.high,
        space.node,
        space.scratch,
    )


def _split(domain: Finite, table: Array) -> tuple[list[int], dict[Value, Array]]:
    """The codes of the numbers in ascending order, and the rows of the other values."""
    order = domain.ascending[0].tolist()
    others = {value: table[code] for code, value in enumerate(domain.values) if not is_number(value)}
    return order, others


def _least(group: list[Value]) -> Value:
    return min(value for value in group if is_number(value))


def _most(group: list[Value]) -> Value:
    return max(value for value in group if is_number(value))


def _precise(units: Units, table: Array) -> bool:
    """Whether a number comes out within tolerance, relative to the smallest number it has to be right for."""
    smallest = float(np.abs(table[:, 0]).min(initial=np.inf))
    return units.noise.error <= NUMBER_TOLERANCE * max(1.0, smallest if math.isfinite(smallest) else 1.0)


def _spread_out(points: Array, numbers: Array) -> tuple[Array, Array] | tuple[None, Array]:
    """Points without near-duplicates (1/3 and 1 - 2/3), or None where such a pair has different results."""
    if len(points) < 2:
        return points, numbers
    close = np.diff(points) < 1e-9 * np.maximum(1.0, np.abs(points[1:]))
    jumps = np.abs(np.diff(numbers)) > 1e-9 * np.maximum(1.0, np.abs(numbers[1:]))
    if (close & jumps).any():
        return None, numbers
    kept = np.concatenate([[True], ~close])
    return points[kept], numbers[kept]
