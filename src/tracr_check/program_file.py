"""Reads the program of a `model.json` and its tables."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr_check.boxes import grid_of
from tracr_check.cells import cells
from tracr_check.program import TABULATED, Program
from tracr_check.variables import Array, Selector, SOp, is_number
from tracr_check.verdict import need

__all__ = ["read_program", "read_value"]

LONGEST = 4096
MOST = 4096  # s-ops, selectors
VALUES, ALL_VALUES = 1_000_000, 4_000_000  # of an s-op, of all: the cells of an interval take no room in a file
SAME, EXACT = 50, 100_000  # values with one hash; fractions that are compared exactly
DIGITS = 2000  # of a number
FIELDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("tokens", "indices", "length", "constant", "positions"), ()),
    "lookup": ("inner",),
    "pair_lookup": ("fst", "snd"),
    "sum_lookup": ("terms", "points"),
    "linear": ("terms", "constant"),
    "aggregation": ("selector", "value", "default", "assumed"),
    "width": ("selector",),
}
"""The operations, and what belongs to each; what is written only for reading (`function`, `copies`) is left out."""


def read_program(model: Any, tables: Mapping[str, NDArray[Any]]) -> Program:
    """The program of a `model.json` and its tables; every table must have the shape and codes that its place needs."""
    options, given = model["options"], model["program"]
    longest, causal, (low, high) = options["max_seq_len"], options["causal"], given["lengths"]
    need(all(type(one) is int for one in (longest, low, high)) and type(causal) is bool, "malformed options")
    need(1 <= low <= high <= longest <= LONGEST, f"lengths {low} to {high} of {longest}")
    need(not causal or not any(s["op"]["kind"] == "length" for s in given["sops"]), "a causal model reads the length")
    need(all(type(one) is int for one in _named(given)), "the number of an s-op or selector is no whole number")
    need(max(len(given["sops"]), len(given["selectors"])) <= MOST, "too many s-ops or selectors")
    vocabulary = tuple(map(read_value, options["vocab"]))
    left = {name: array for name, array in tables.items() if name.startswith(("sops.", "selectors."))}
    inputs = {"tokens": vocabulary, "indices": range(longest), "length": range(low, high + 1)}
    sops: dict[int, SOp] = {}
    selectors: dict[int, Selector] = {}
    values = 0
    for entry in given["sops"]:
        sop = _read_sop(entry, left, sops, longest)
        _check_values(sop, inputs)
        need(sop.number not in sops, f"two s-ops have the number {sop.number}")
        sops[sop.number] = sop
        values += len(sop.values)
        need(values <= ALL_VALUES, "too many values")
    for entry in given["selectors"]:
        selector = _read_selector(entry, left, sops, selectors)
        need(selector.number not in selectors, f"two selectors have the number {selector.number}")
        selectors[selector.number] = selector
    need(not left, "there are tables without an s-op or selector")
    outputs = [(str(name), number) for name, number in given["outputs"]]
    need(outputs and all(number in sops for _, number in outputs), "an output is not an s-op")
    _check_order(sops, selectors)
    added = {term for sop in sops.values() for term, _ in sop.op.get("terms", ())}
    added |= {sop.op["value"] for sop in sops.values() if sop.kind == "aggregation"}
    sizes = {number: _Sizes.of(sops[number]) for number in added}
    for sop in sops.values():
        _check_sums(sop, sizes, longest)
    return Program(sops, selectors, outputs, len(vocabulary), longest, (low, high), causal)


def _named(given: Any) -> Iterator[Any]:
    """All numbers of s-ops and selectors in a program. Only an `int` is one: 1.0 is equal to 1, and yet no s-op."""
    for entry in given["sops"]:
        op = entry["op"]
        yield from (entry["id"], *(op[name] for name in (*TABULATED, "value", "selector") if name in op))
        yield from (term for term, _ in op.get("terms", ()))
    for entry in given["selectors"]:
        yield from (entry["id"], *(entry[name] for name in ("keys", "queries") if name in entry))
        yield from entry.get("parts", ())
    yield from (number for _, number in given["outputs"])


def read_value(data: Any, depth: int = 0) -> Any:
    """A value of the program; one of a type that JSON lacks is an object with one key, its type.

    Values are compared as Python compares them: `True`, 1, 1.0 and the fraction 1/1 are one value.
    """
    need(depth < 100, "a value is nested too deep")
    if not isinstance(data, dict):
        need(data is None or isinstance(data, str | int | float), "malformed value")
        return data
    need(len(data) == 1, "malformed value")
    ((kind, content),) = data.items()
    need(type(content) is (list if kind in OF_PARTS else str), "malformed value")
    if kind in OF_PARTS:
        return OF_PARTS[kind](tuple(read_value(one, depth + 1) for one in content))
    need(kind in OF_TEXT, f"no value is a {kind!r:.40}")
    need(len(content) <= DIGITS or kind not in ("int", "decimal"), f"{kind!r} of {len(content):,} characters")
    return OF_TEXT[kind](content)


def _spread(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same values; few have one hash. Else a dictionary of them takes forever: multiples of 2^61 - 1 have 0."""
    need(max(Counter(map(hash, values)).values(), default=0) <= SAME, "too many values with one hash")
    return values


def _of_types(pair: tuple[Any, ...], *types: type) -> tuple[Any, ...]:
    """The same two values; a text such as "1e1000000000" would be a number, too, that takes hours."""
    need(len(pair) == 2 and all(type(one) in types for one in pair), "malformed number")
    return pair


def _decimal(text: str) -> Decimal:
    number = Decimal(text)
    need(number.is_finite() and abs(number.adjusted()) < DIGITS, "a decimal number is too large or too small")
    return number


OF_PARTS: Mapping[str, Callable[[Any], Any]] = {
    "tuple": tuple,
    "frozenset": lambda values: frozenset(_spread(values)),
    "fraction": lambda pair: Fraction(*_of_types(pair, int)),
    "complex": lambda pair: complex(*_of_types(pair, int, float)),
}
OF_TEXT: Mapping[str, Callable[[str], Any]] = {
    "int": lambda text: int(text, 16),
    "decimal": _decimal,
    "bytes": lambda text: base64.b64decode(text, validate=True),
    "str": lambda text: base64.b64decode(text, validate=True).decode("utf-8", "surrogatepass"),
}


def _read_sop(entry: Any, left: dict[str, NDArray[Any]], sops: Mapping[int, SOp], longest: int) -> SOp:
    op = {name: content for name, content in entry["op"].items() if name not in ("function", "copies")}
    need(set(op) == {"kind", *FIELDS.get(op["kind"], ("",))}, f"{op['kind']!r:.40} is no operation, or a malformed one")
    values, radius = _domain(entry["domain"])
    need(radius is None or op["kind"] in ("linear", "aggregation"), f"{entry['label']} cannot be an interval")
    inputs = [sops[op[name]] for name in TABULATED if name in op]
    need(all(one.listed for one in inputs), "a table of an interval")
    shape = tuple(len(one.values) for one in inputs)
    match op["kind"]:
        case "positions":
            shape = (longest,)
        case "sum_lookup":
            op["points"], none = _domain(op["points"])
            need(none is None and all(map(is_number, op["points"])), "a sum is looked up among numbers")
            shape = (len(op["points"]),)
        case "aggregation":
            op["default"] = read_value(op["default"])
            need(type(op["assumed"]) is bool, "malformed aggregation")
            numeric = all(is_number(value) or value is None for value in sops[op["value"]].values)
            op["assumed"] = op["assumed"] and numeric  # as for all other values, several of them are undefined anyway
    table = None
    if shape:
        codes = left.pop(f"sops.{entry['id']}")
        fits = codes.shape == shape and codes.dtype.kind == "i"
        need(fits, f"the table of {entry['label']} has another shape or type than its inputs")
        table = codes.astype(np.int64)
        need(table.size == 0 or -2 <= table.min() <= table.max() < len(values), f"codes of {entry['label']}")
    need(entry["encoding"] in ("categorical", "numerical"), "malformed encoding")
    need(radius is None or entry["encoding"] == "numerical", "an interval is not one-hot")
    return SOp(entry["id"], str(entry["label"]), op, values, table, entry["encoding"] == "categorical", radius)


def _domain(given: Any) -> tuple[tuple[Any, ...], Array | None]:
    """The values of a domain; of an interval the cells and their radii, and `None` if it may be that."""
    if given["kind"] == "finite":
        need(type(given["values"]) is list and len(given["values"]) <= VALUES, "malformed domain")
        return _spread(tuple(map(read_value, given["values"]))), None
    need(given["kind"] == "interval" and type(given["maybe_none"]) is bool, "malformed domain")
    middles, radii = cells(given["low"], given["high"])
    none = (None,) if given["maybe_none"] else ()
    return (*middles.tolist(), *none), np.append(radii, np.zeros(len(none)))


def _check_values(sop: SOp, inputs: Mapping[str, Iterable[Any]]) -> None:
    """Inputs have the values that they are read as, a constant has one value, and no value is listed twice."""
    expected = tuple(inputs.get(sop.kind, sop.values))
    need(sop.values == expected, f"{sop.label} has other values than the input")
    need(len(sop.values) >= 1, f"{sop.label} has no values")
    need(len(sop.values) == 1 or sop.kind != "constant", f"{sop.label} has several values")
    need(len(sop.index) == len(sop.values) or not sop.listed, f"{sop.label} has a value twice")


@dataclass(frozen=True)
class _Sizes:
    """The numbers among some values: the largest size, what they are all multiples of, and whether floats hold them."""

    largest: float
    grid: float
    exact: bool
    only: bool  # numbers, and perhaps `None`

    @staticmethod
    def of(sop: SOp) -> _Sizes:
        known, values = sop.numbers[np.isfinite(sop.numbers)], sop.values
        exact = all(float(x) == x for x in values if is_number(x))
        only = all(is_number(value) or value is None for value in values)
        return _Sizes(float(np.abs(known).max(initial=0.0)), float(grid_of(known).min(initial=np.inf)), exact, only)


def _check_sums(sop: SOp, sizes: Mapping[int, _Sizes], longest: int) -> None:
    """Sums and means are computed here in float64, closely enough to find the listed value that the program has.

    Let the sizes of k terms add up to s. The sum is exact if all numbers are float64 numbers, all terms are multiples
    of g and s <= 2^52 g; else it is off by at most (k + 4) 2^-53 s, the conversion of numbers included. Different
    listed values are so far apart that this does not change which is nearest. No partial sum overflows.
    """
    op, listed = sop.op, sop.values if sop.listed else ()
    match sop.kind:
        case "linear" | "sum_lookup":
            terms = [(sizes[term], factor) for term, factor in op["terms"]]
            need(all(term.only for term, _ in terms), f"{sop.label} adds up values that are not numbers")
            terms.append((_Sizes(1.0, 1.0, True, True), op.get("constant", 0)))
            few, most = len(terms), 1
            listed = op["points"] if sop.kind == "sum_lookup" else listed
        case "aggregation":
            terms, few, most = [(sizes[op["value"]], 1)], longest, longest
        case "width":
            terms, few, most = [], longest, longest
        case _:
            return
    need(all(is_number(factor) for _, factor in terms), f"{sop.label} has a factor that is not a number")
    size = sum(term.largest * abs(float(factor)) for term, factor in terms)
    grid = min((term.grid * float(grid_of(factor)) for term, factor in terms), default=np.inf)
    whole = all(term.exact and float(factor) == factor for term, factor in terms)
    fine = (whole and size * most <= 2.0**52 * grid) or size * (few + 4) * 2.0**-53 <= 2e-11
    need(fine and size * most < 1e300, f"sums in {sop.label} are too large to be told apart")
    need(_far_apart(listed), f"values of {sop.label} are too near to be told apart")


def _far_apart(values: Iterable[Any]) -> bool:
    """Whether different numbers among some values, fractions too, differ by more than 2.2e-9 (relative above 1)."""
    numbers = [value for value in values if is_number(value)]
    plain = len(numbers)
    numbers += [Fraction(value) for value in values if isinstance(value, Fraction | Decimal)]
    numbers += [Fraction(value.real) for value in values if isinstance(value, complex) and not value.imag]
    need(len(numbers) - plain <= EXACT, "too many fractions to compare")
    return all(float(b - a) > 2.2e-9 * max(1.0, abs(float(b))) for a, b in pairwise(sorted(numbers)))


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
        needed = {op[name] for name in (*TABULATED, "value") if name in op}
        needed |= {term for term, _ in op.get("terms", ())}
        needed |= compared[op["selector"]] if "selector" in op else set()
        need(needed <= before, f"{sop.label} comes before what it depends on")
        before.add(number)
