"""Reads the program of a `model.json` and its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr_check.boxes import grid_of
from tracr_check.cells import cells
from tracr_check.program import Program
from tracr_check.variables import Array, Selector, SOp
from tracr_check.verdict import need

__all__ = ["read_program", "read_value"]

LONGEST = 4096


def read_program(model: Any, tables: Mapping[str, NDArray[Any]]) -> Program:
    """The program of a `model.json` and its tables; every table must have the shape and codes that its place needs."""
    options, given = model["options"], model["program"]
    longest, causal, (low, high) = options["max_seq_len"], options["causal"], given["lengths"]
    need(all(type(one) is int for one in (longest, low, high)) and type(causal) is bool, "malformed options")
    need(1 <= low <= high <= longest <= LONGEST, f"lengths {low} to {high} of {longest}")
    need(not causal or not any(s["op"]["kind"] == "length" for s in given["sops"]), "a causal model reads the length")
    need(all(type(one) is int for one in _named(given)), "the number of an s-op or selector is no whole number")
    vocabulary = tuple(read_value(token) for token in options["vocab"])
    left = {name: array for name, array in tables.items() if name.startswith(("sops.", "selectors."))}
    sops: dict[int, SOp] = {}
    selectors: dict[int, Selector] = {}
    for entry in given["sops"]:
        sop = _read_sop(entry, left, sops, longest)
        _check_values(sop, vocabulary, longest, (low, high))
        need(sop.number not in sops, f"two s-ops have the number {sop.number}")
        sops[sop.number] = sop
    for entry in given["selectors"]:
        selector = _read_selector(entry, left, sops, selectors)
        need(selector.number not in selectors, f"two selectors have the number {selector.number}")
        selectors[selector.number] = selector
    need(not left, "there are tables without an s-op or selector")
    outputs = [(str(name), number) for name, number in given["outputs"]]
    need(outputs and all(number in sops for _, number in outputs), "an output is not an s-op")
    _check_order(sops, selectors)
    for sop in sops.values():
        _check_sums(sop, sops, longest)
    return Program(sops, selectors, outputs, len(vocabulary), longest, (low, high), causal)


def _named(given: Any) -> Iterator[Any]:
    """All numbers of s-ops and selectors in a program. Only an `int` is one: 1.0 is equal to 1, and yet no s-op."""
    for entry in given["sops"]:
        op = entry["op"]
        yield from (entry["id"], *(op[name] for name in ("inner", "fst", "snd", "value", "selector") if name in op))
        yield from (term for term, _ in op.get("terms", ()))
    for entry in given["selectors"]:
        yield from (entry["id"], *(entry[name] for name in ("keys", "queries") if name in entry))
        yield from entry.get("parts", ())
    yield from (number for _, number in given["outputs"])


@dataclass(frozen=True)
class Other:
    """A value of a type that JSON lacks."""

    kind: str
    text: str


def read_value(data: Any, depth: int = 0) -> Any:
    """A value of the program; values of types that JSON lacks are told apart by their text."""
    if isinstance(data, dict):
        need(len(data) == 1 and depth < 100, "malformed value")
        ((kind, content),) = data.items()
        if kind == "tuple":
            return tuple(read_value(one, depth + 1) for one in content)
        if kind == "int":
            return int(str(content)[:2000], 16)
        return Other(str(kind), repr(content))
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
            op["points"] = [read_value(value) for value in op["points"]["values"]]
            shape = (len(op["points"]),)
        case "aggregation":
            op["default"] = read_value(op["default"])
            need(type(op["assumed"]) is bool, "malformed aggregation")
        case kind:
            need(kind in ("tokens", "indices", "length", "constant", "linear", "width"), f"no operation {kind!r:.40}")
    table = None
    if shape is not None:
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
        return tuple(read_value(value) for value in given["values"]), None
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
    need(len(sop.values) >= 1, f"{sop.label} has no values")


def _check_sums(sop: SOp, sops: Mapping[int, SOp], longest: int) -> None:
    """Sums and means are computed here in float64, closely enough to find the listed value that the program has.

    Sums of k terms whose sizes add up to s are exact if all terms are multiples of g and s <= 2^52 g, and else off by
    at most (k + 2) 2^-53 s. Different listed values are so far apart that this does not change which is nearest.
    """
    match sop.kind:
        case "linear" | "sum_lookup":
            terms = [(np.abs(sops[term].numbers), abs(float(factor))) for term, factor in sop.op["terms"]]
            terms.append((np.ones(1), abs(float(sop.op.get("constant", 0.0)))))
            few = len(terms)
        case "aggregation":
            terms, few = [(np.abs(sops[sop.op["value"]].numbers), 1.0)], longest
        case _:
            return
    size = sum(float(np.nanmax(numbers, initial=0.0)) * factor for numbers, factor in terms)
    grid = min(float((grid_of(numbers[np.isfinite(numbers)])).min(initial=np.inf) * grid_of(f)) for numbers, f in terms)
    exact = size * (longest if sop.kind == "aggregation" else 1) <= 2.0**52 * grid
    need(exact or size * (few + 2) * 2.0**-53 <= 2e-11, f"sums in {sop.label} are too large to be told apart")
    listed = sop.numbers if sop.kind != "sum_lookup" else np.array([float(point) for point in sop.op["points"]])
    ordered = np.unique(listed[np.isfinite(listed)]) if sop.listed else np.zeros(0)
    far = np.diff(ordered) > 2.2e-9 * np.maximum(1.0, np.abs(ordered[1:]))
    need(far.all(), f"values of {sop.label} are too near to be told apart")


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
