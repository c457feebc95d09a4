"""The meaning of a saved program: its tables, run on one input at a time in exact fractions.

It is written for reading and for trials of the checker, and shares no code with the interpreters. An input has no
meaning if a cell marked as error or as unreached is met, if a sum, mean or width is not one of the listed values or
outside its interval (`None` is only in an interval that says so), or if several values are selected that are not all
numbers (or, where the program assumes that there is one only, several numbers or `None`s).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from numpy.typing import NDArray

from tracr.saving.values_json import decode_value

__all__ = ["Meaning", "number_of"]

NEAR = Fraction(1, 10**9)
Column = list[Any]  # a code for each position; for an interval a number or None


class Undefined(Exception):
    """The program has no value on this input."""


def number_of(value: Any) -> Fraction | None:
    """A number as a fraction; None for anything else."""
    return Fraction(value) if isinstance(value, int | float) else None


def _near(a: Fraction, b: Fraction) -> bool:
    return abs(a - b) <= NEAR * max(Fraction(1), abs(a))


class Meaning:
    """A saved program, from `model.json` (parsed) and the arrays of `tables.safetensors`."""

    def __init__(self, model: Mapping[str, Any], tables: Mapping[str, NDArray[Any]]) -> None:
        program = model["program"]
        self.causal: bool = model["options"]["causal"]
        self.lengths: tuple[int, int] = tuple(program["lengths"])
        self.outputs: list[tuple[str, int]] = [(name, number) for name, number in program["outputs"]]
        self.sops = {sop["id"]: sop for sop in program["sops"]}
        self.selectors = {selector["id"]: selector for selector in program["selectors"]}
        self.tables = {name: array.tolist() for name, array in tables.items()}
        self.values: dict[int, list[Any] | None] = {}
        self.nearest: dict[tuple[int, Fraction], int | None] = {}  # of numbers seen before
        for number, sop in self.sops.items():
            listed = sop["domain"].get("values") if sop["domain"]["kind"] == "finite" else None
            self.values[number] = None if listed is None else [decode_value(value) for value in listed]

    def codes(self, tokens: Sequence[int]) -> dict[int, Column] | None:
        """The codes of every s-op at every position, or None if the input has no meaning."""
        found: dict[int, Column] = {}
        try:
            for number, sop in self.sops.items():
                found[number] = self._column(number, sop["op"], tokens, found)
        except Undefined:
            return None
        return found

    def _column(self, number: int, op: Mapping[str, Any], tokens: Sequence[int], found: dict[int, Column]) -> Column:
        kinds: dict[str, Callable[[int], Any]] = {
            "tokens": lambda i: tokens[i],
            "indices": lambda i: i,
            "length": lambda i: len(tokens) - self.lengths[0],
            "constant": lambda i: 0,
            "positions": lambda i: self._cell(number, [i]),
            "lookup": lambda i: self._cell(number, [found[op["inner"]][i]]),
            "pair_lookup": lambda i: self._cell(number, [found[op["fst"]][i], found[op["snd"]][i]]),
            "linear": partial(self._linear, number, op, found),
            "sum_lookup": partial(self._sum_lookup, number, op, found),
            "width": lambda i: self._snapped(number, Fraction(len(self._chosen(op["selector"], i, tokens, found)))),
            "aggregation": lambda i: self._aggregated(
                number, op, [found[op["value"]][j] for j in self._chosen(op["selector"], i, tokens, found)]
            ),
        }
        return [kinds[op["kind"]](i) for i in range(len(tokens))]

    def _cell(self, number: int, codes: Sequence[int]) -> int:
        cell = self.tables[f"sops.{number}"]
        for code in codes:
            cell = cell[code]
        if cell < 0:
            raise Undefined
        return int(cell)

    def _value(self, number: int, code: Any) -> Any:
        listed = self.values[number]
        return code if listed is None else listed[code]

    def _number(self, number: int, code: Any) -> Fraction | None:
        """The number of a code as a fraction. That of an interval is one; a fraction that is listed is no number."""
        listed = self.values[number]
        return code if listed is None else number_of(listed[code])

    def _linear(self, number: int, op: Mapping[str, Any], found: dict[int, Column], i: int) -> Any:
        total = Fraction(op["constant"])
        for term, factor in op["terms"]:
            if self._value(term, found[term][i]) is None:  # nothing plus a number is nothing
                return self._listed(number, None)
            if (x := self._number(term, found[term][i])) is None:
                raise Undefined
            total += Fraction(factor) * x
        return self._snapped(number, total)

    def _sum_lookup(self, number: int, op: Mapping[str, Any], found: dict[int, Column], i: int) -> int:
        """The cell of the point that a weighted sum is."""
        terms = [(self._number(term, found[term][i]), Fraction(factor)) for term, factor in op["terms"]]
        if any(x is None for x, _ in terms):
            raise Undefined
        total = sum((factor * x for x, factor in terms if x is not None), Fraction(0))
        points = [number_of(decode_value(point)) for point in op["points"]["values"]]
        near = [(abs(x - total), code) for code, x in enumerate(points) if x is not None and _near(total, x)]
        if not near:
            raise Undefined
        return self._cell(number, [min(near)[1]])

    def _snapped(self, number: int, x: Fraction) -> Any:
        """The code of the listed value that a number is, or the number itself for an interval that it lies in."""
        listed = self.values[number]
        if listed is None:
            domain = self.sops[number]["domain"]
            low, high = Fraction(domain["low"]), Fraction(domain["high"])
            if not (low <= x <= high or _near(x, low) or _near(x, high)):
                raise Undefined
            return x
        if (number, x) not in self.nearest:
            numbers = [(number_of(value), code) for code, value in enumerate(listed)]
            near = [(abs(n - x), code) for n, code in numbers if n is not None and _near(x, n)]
            self.nearest[number, x] = min(near)[1] if near else None
        if (code := self.nearest[number, x]) is None:
            raise Undefined
        return code

    def _listed(self, number: int, value: Any) -> Any:
        """The code of a value."""
        if (x := number_of(value)) is not None:
            return self._snapped(number, x)
        listed = self.values[number]
        if listed is None and value is None and self.sops[number]["domain"]["maybe_none"]:
            return None
        if listed is None or value not in listed:
            raise Undefined
        return listed.index(value)

    def _aggregated(self, number: int, op: Mapping[str, Any], codes: Sequence[Any]) -> Any:
        numbers = [self._number(op["value"], code) for code in codes]
        if not numbers:
            return self._listed(number, decode_value(op["default"]))
        if len(numbers) == 1:
            (x,), (code,) = numbers, codes
            return self._listed(number, self._value(op["value"], code)) if x is None else self._snapped(number, x)
        if any(x is None for x in numbers) or (op["assumed"] and self._numeric(op["value"])):
            raise Undefined
        return self._snapped(number, sum((x for x in numbers if x is not None), Fraction(0)) / len(numbers))

    def _numeric(self, number: int) -> bool:
        """Whether all values but `None` are numbers."""
        return all(value is None or number_of(value) is not None for value in self.values[number] or ())

    def _chosen(self, selector: int, i: int, tokens: Sequence[int], found: dict[int, Column]) -> list[int]:
        """The keys that position i selects; every pair of positions is looked at, for cells that have no meaning."""
        last = i if self.causal else len(tokens) - 1
        return [j for j in range(len(tokens)) if self.selects(selector, i, j, found) and j <= last]

    def selects(self, selector: int, i: int, j: int, found: dict[int, Column]) -> bool:
        """Whether position i selects position j, be it hidden or not."""
        node = self.selectors[selector]
        if "keys" in node:
            cell = self.tables[f"selectors.{selector}"][found[node["queries"]][i]][found[node["keys"]][j]]
            if cell < 0:
                raise Undefined
            return bool(cell)
        parts = [self.selects(part, i, j, found) for part in node["parts"]]
        return {"and": all(parts), "or": any(parts), "not": not parts[0]}[node["kind"]]
