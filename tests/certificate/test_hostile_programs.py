"""Programs and hints written by hand so that a lemma about the program is used where it is not true.

An attacker may send any tables with any weights. In each of these folders the weights are wrong on some input on which
the program is defined; an earlier checker accepted it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tracr.certificate.trials.mutants import SavedParts
from tracr.certificate.trials.trial import EveryInput, check_parts, parts_of, wrong_inputs
from tracr.rasp import rasp
from tracr.rasp.programs import EXAMPLES
from tracr_check import cells as intervals
from tracr_check.program_file import _far_apart, read_value
from tracr_check.verdict import Rejected


def compiled(program: Any, vocab: Any = "ab") -> SavedParts:
    """The parts of a small model, which are the test's own."""
    return copy.deepcopy(parts_of(tracr.compile(program, vocab=vocab, max_seq_len=3)))


def named(parts: SavedParts) -> dict[str, Any]:
    """The s-ops of a program by their labels."""
    return {sop["label"]: sop for sop in parts.model["program"]["sops"]}


def _at(distance: int) -> Callable[[int, int], bool]:
    """Selects the key at a distance from the query."""
    return lambda key, query: key == query + distance


def negated(parts: SavedParts, output: str, value: Any) -> SavedParts:
    """The same network, but the logit of a value has the other sign."""
    start = next(first for name, first, _ in parts.model["outputs"] if name == output)
    column = start + named(parts)[output]["domain"]["values"].index(value)
    unembed = parts.weights["unembed.W_U"].copy()
    unembed[:, column] *= -1
    return replace(parts, weights={**parts.weights, "unembed.W_U": unembed})


def other_selector(number: Any) -> SavedParts:
    """A network that counts all keys for a program that counts equal ones; its selector has another kind of number."""

    def counted(comparison: rasp.Comparison) -> SavedParts:
        return compiled(rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, comparison)).named("hist"))

    right, wrong = counted(rasp.Comparison.EQ), counted(rasp.Comparison.TRUE)
    named(right)["hist"]["op"]["selector"] = right.model["program"]["selectors"][0]["id"] = number
    tables = {f"selectors.{number}" if name.startswith("selectors") else name: t for name, t in right.tables.items()}
    return replace(wrong, tables=tables, model={**wrong.model, "program": right.model["program"]})


def summed_codes() -> SavedParts:
    """A network that adds half of each term; the terms are named by numbers that are no `int`."""

    def moved(by: int, name: str) -> Any:
        copied = rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, _at(by)), rasp.tokens, default="a").named(
            f"moved_{name}"
        )
        return rasp.numerical(rasp.Map(lambda token: {"a": 0, "b": 2}[token], copied).named(name))

    parts = compiled(rasp.numerical(rasp.LinearSequenceMap(moved(-1, "x"), moved(1, "y"), 1, 1).named("z")))
    written = [int(dim) for dim in parts.hints["layers"][0]["mlp"]]
    halved = {name: parts.weights[name].copy() for name in ("blocks.0.mlp.W_out", "blocks.0.mlp.b_out")}
    for array in halved.values():
        array[..., written] /= 2
    op = named(parts)["z"]["op"]
    op["terms"] = [[float(term), factor] for term, factor in op["terms"]]
    return replace(parts, weights={**parts.weights, **halved})


def rough_units() -> SavedParts:
    """Hints with units so large that the mean 0 cannot be computed back from them; the network is wrong there."""
    value = rasp.Map(lambda token: {"a": 0, "b": 100}[token], rasp.tokens).named("value")
    every = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.TRUE)
    mean = rasp.Aggregate(every, rasp.numerical(value), default=0).named("mean")
    parts = negated(compiled(rasp.categorical(mean)), "mean", 0)
    op = named(parts)["mean"]["op"]
    units = {"kind": "units", "of": op["value"], "above": -10_000.0, "times": 0.01 * (1 + 9e-13)}
    parts.hints["aux"]["100007"] = {**units, "selector": op["selector"]}
    parts.hints["aux"]["100008"] = {"kind": "width", "selector": op["selector"]}
    return parts


def width_of_almost_nothing() -> SavedParts:
    """A width lists 1e-10 for 0; the network is wrong where a mean over its selector is the default."""
    some = rasp.Select(rasp.tokens, rasp.tokens, lambda k, q: "b" in (k, q))
    value = rasp.numerical(rasp.Map(lambda token: {"a": 1, "b": 3}[token], rasp.tokens).named("value"))
    mean = rasp.categorical(rasp.Aggregate(some, value, default=7).named("mean"))
    parts = compiled({"mean": mean, "width": rasp.categorical(rasp.SelectorWidth(some).named("width"))})
    parts = negated(parts, "mean", 7)
    listed, op = named(parts)["width"]["domain"]["values"], named(parts)["mean"]["op"]
    listed[listed.index(0)] = 1e-10
    parts.hints["aux"]["100007"] = {"kind": "sum", "selector": op["selector"], "of": op["value"]}
    return parts


def sum_of_more() -> SavedParts:
    """A sum with a field of units, which moved the quotient of sum and width: no mean seemed to be listed."""
    some = rasp.Select(rasp.tokens, rasp.tokens, lambda k, q: "b" in (k, q))
    value = rasp.numerical(rasp.Map(lambda token: {"a": 1, "b": 3}[token], rasp.tokens).named("value"))
    mean = rasp.categorical(rasp.Aggregate(some, value, default=7).named("mean"))
    parts = compiled({"mean": mean, "width": rasp.categorical(rasp.SelectorWidth(some).named("width"))})
    parts = negated(parts, "mean", 3)
    op = named(parts)["mean"]["op"]
    parts.hints["aux"]["100007"] = {"kind": "sum", "selector": op["selector"], "of": op["value"], "above": 1e6}
    return parts


def bias_of_no_heads() -> SavedParts:
    """The numbers of the embedding are too small by 1, which is the bias of a layer without heads: none is run."""
    parts = compiled(rasp.categorical(rasp.Map(lambda token: {"a": "x", "b": "y"}[token], rasp.tokens).named("out")))
    assert len(parts.weights["blocks.0.attn.W_Q"]) == 0
    moved = {"embed.W_E": -1.0, "blocks.0.attn.b_O": 1.0}
    return replace(parts, weights={name: array + moved.get(name, 0.0) for name, array in parts.weights.items()})


def unused_selector() -> SavedParts:
    """A hint owns what an MLP writes by the width of a selector that no s-op uses, and that is undefined for "b"."""
    program = rasp.categorical(rasp.Map(lambda token: {"a": "x", "b": "y"}[token], rasp.tokens).named("out"))
    parts = negated(compiled(program), "out", "y")
    token = named(parts)["tokens"]["id"]
    parts.model["program"]["selectors"].append({"id": 50, "label": "unused", "keys": token, "queries": token})
    parts.hints["aux"]["100000"] = {"kind": "width", "selector": 50}
    parts.hints["layers"][0]["mlp"] = dict.fromkeys(parts.hints["layers"][0]["mlp"], 100_000)
    return replace(parts, tables={**parts.tables, "selectors.50": np.array([[1, 1], [-1, -1]], np.int8)})


def copies_of_two_values() -> SavedParts:
    """Copies of the token before and of the next one are said to make up an aggregate of both, which is their mean."""
    before, after = (rasp.Select(rasp.indices, rasp.indices, _at(by)) for by in (-1, 1))
    first = rasp.categorical(rasp.Aggregate(before, rasp.tokens, default=9).named("first"))
    second = rasp.categorical(rasp.Aggregate(after, rasp.tokens, default=9).named("second"))

    def either(x: int, y: int) -> int:
        """1 without neighbours; the only neighbour, or the value of both; 0 where the mean is 1."""
        values = {x, y} - {9}
        return 1 if not values else min(values)

    parts = compiled(rasp.categorical(rasp.SequenceMap(either, first, second).named("both")), (0, 2))
    sops = named(parts)
    one, two, both, token = (sops[label] for label in ("first", "second", "both", "tokens"))
    selectors = [sop["op"]["selector"] for sop in (one, two)]
    parts.model["program"]["selectors"].append({"id": 90, "label": "both", "kind": "or", "parts": selectors})
    both["op"] = {"kind": "aggregation", "selector": 90, "value": token["id"], "default": 1, "assumed": False}
    both["op"]["copies"] = False
    names = {}
    for place, head in enumerate(parts.hints["layers"][0]["heads"]):
        for dim, owner in head.items():
            head[dim] = names[owner] = f"p0.{place}.{token['id']}"
    sums = {str(owner): [[name]] for owner, name in names.items()}
    sums[str(both["id"])] = [[names[one["id"]], names[two["id"]]]]
    hints = {**parts.hints, "parts": dict.fromkeys(names.values(), token["id"]), "sums": sums}
    tables = {name: table for name, table in parts.tables.items() if name != f"sops.{both['id']}"}
    return replace(parts, tables=tables, hints=hints)


def wrong_at_c() -> SavedParts:
    """A network that gives "y" for "b" and, wrongly, for "c"."""
    right, wrong = (
        compiled(rasp.categorical(rasp.Map(dict(zip("abc", outs, strict=True)).get, rasp.tokens).named("out")), "abc")
        for outs in ("xyx", "xyy")
    )
    return replace(right, weights=wrong.weights, hints=wrong.hints)


def wrong_at_start(length: int = 2, **more: Any) -> SavedParts:
    """A network that is wrong for "a" at position 0 of two (or of another length); and other outputs."""
    shape = rasp.SequenceMap(lambda place, length: (place, length), rasp.indices, rasp.length)

    def made(first: str) -> SavedParts:
        cells = {("a", (0, length)): first, ("a", (1, 3)): "y"}
        own = rasp.SequenceMap(lambda token, at: cells.get((token, at), "x"), rasp.tokens, shape)
        return compiled({"own": rasp.categorical(own.named("own")), **more})

    right, wrong = made("x"), made("y")
    return replace(right, weights=wrong.weights, hints=wrong.hints)


def beside(parts: SavedParts, *added: tuple[Any, list[Any], list[int] | None]) -> SavedParts:
    """With more s-ops, 100, 101, ..., that no output reads: an operation, its values, its table."""
    tables = dict(parts.tables)
    for number, (op, values, cells) in enumerate(added, 100):
        domain = {"kind": "finite", "values": values, "twins": []}
        one = {"id": number, "label": f"s{number}", "op": op, "domain": domain, "encoding": "categorical"}
        parts.model["program"]["sops"].append(one)
        if cells is not None:
            tables[f"sops.{number}"] = np.array(cells, np.int32)
    return replace(parts, tables=tables)


def sum_at_c(first: Any, second: Any, factor: float, constant: float = 0) -> SavedParts:
    """A difference of two numbers, which the checker takes for undefined at "c" if it does not compute it closely."""
    parts = wrong_at_c()
    token = {"kind": "lookup", "inner": named(parts)["tokens"]["id"]}
    op = {"kind": "linear", "terms": [[100, factor], [101, -factor]], "constant": constant}
    every = [0, round(first - second)] if factor == 1 else [0]
    return beside(parts, (token, [0, first], [0, 0, 1]), (token, [0, second], [0, 0, 1]), (op, every, None))


def rounded_numbers() -> SavedParts:
    """2^53 + 1 is no float64: its difference from 2^53 is 1, the only value of "c", and not 0."""
    parts = sum_at_c(2**53 + 1, 2**53, 1)
    sops = named(parts)
    sops["s101"]["domain"]["values"][0] = -(2**53)
    sops["s102"]["domain"]["values"] = [1, 2**53]
    return parts


def equal_tuples() -> SavedParts:
    """The default is (1,), listed as the equal value (True,); the network is wrong where it occurs."""
    before = rasp.Select(rasp.indices, rasp.indices, _at(-1))
    value = rasp.Map(lambda place: (2,) if place else (True,), rasp.indices)
    return wrong_at_start(copied=rasp.categorical(rasp.Aggregate(before, value, default=(1,)).named("copied")))


def assumed_of_several_kinds() -> SavedParts:
    """Numbers and a text are said to be selected alone; that is about numbers and `None` only, and two are selected."""
    parts = wrong_at_start()
    place = named(parts)["indices"]["id"]
    parts.model["program"]["selectors"].append({"id": 50, "label": "first", "keys": place, "queries": place})
    mean = {"kind": "aggregation", "selector": 50, "value": 100, "default": "t", "assumed": True}
    parts = beside(parts, ({"kind": "positions"}, [1, "t"], [0, 0, 1]), (mean, [1, "t"], None))
    return replace(parts, tables={**parts.tables, "selectors.50": np.array([[1, 1, 0]] * 3, np.int8)})


def mean_between_cells() -> SavedParts:
    """The mean of three equal numbers is rounded to another cell of its interval than the number itself.

    The program is defined there. An earlier checker took the two ways to compute the cell for a contradiction, and left
    out the inputs of length 3, on which this network is wrong.
    """
    parts = wrong_at_start(3)
    middles, _ = intervals.cells(0.0, 2.0)
    borders = middles[1:] / 2 + middles[:-1] / 2
    number = float(next(x for x in borders if (x + x + x) / 3 > x))
    place = named(parts)["indices"]["id"]
    parts.model["program"]["selectors"].append({"id": 50, "label": "all", "keys": place, "queries": place})
    mean = {"kind": "aggregation", "selector": 50, "value": 100, "default": 0, "assumed": False}
    parts = beside(parts, ({"kind": "constant"}, [number], None), (mean, [0], None))
    interval = {"kind": "interval", "low": 0.0, "high": 2.0, "maybe_none": False}
    named(parts)["s101"].update(domain=interval, encoding="numerical")
    return replace(parts, tables={**parts.tables, "selectors.50": np.ones((3, 3), np.int8)})


HOSTILE: dict[str, tuple[Callable[[], SavedParts], str]] = {
    "a selector named by a text": (lambda: other_selector("own2"), "no whole number"),
    "a selector without a name": (lambda: other_selector(None), "no whole number"),
    "terms that are no whole numbers": (summed_codes, "no whole number"),
    "rough units": (rough_units, "no such units"),
    "a width of almost nothing": (width_of_almost_nothing, "7 is not surely the largest logit"),
    "a sum with a field of units": (sum_of_more, "'sum' is no definition, or a malformed one"),
    "a bias of no heads": (bias_of_no_heads, "belongs to no heads or neurons"),
    "an unused selector": (unused_selector, "no s-op has this selector"),
    "a sum that overflows": (lambda: sum_at_c(2.0**1000, 2.0**1000, 2.0**1000), "too large to be told apart"),
    "numbers that are rounded": (rounded_numbers, "too large to be told apart"),
    "equal tuples": (equal_tuples, "'x' is not surely the largest logit"),
    "assumed of several kinds": (assumed_of_several_kinds, "'x' is not surely the largest logit"),
    "a mean where two cells meet": (mean_between_cells, "'x' is not surely the largest logit"),
    "copies of two values": (copies_of_two_values, "both selects several values"),
}


def sum_off_by_100() -> SavedParts:
    """A sum x + y of 2^38 and 0 is listed as 2^38 + 100, within 1e-9 of it; a neuron is on from 2^38 + 50."""

    def moved(by: int, name: str, large: int) -> Any:
        copied = rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, _at(by)), rasp.tokens, default="a")
        return rasp.numerical(
            rasp.Map(lambda token: {"a": 0, "b": large}[token], copied.named(f"to_{name}")).named(name)
        )

    z = rasp.numerical(rasp.LinearSequenceMap(moved(-1, "x", 4), moved(1, "y", 1), 4, 1).named("z"))
    model = tracr.compile(rasp.categorical(rasp.Map(lambda z: "pq"[z >= 16], z).named("out")), "ab", 3, level=1)
    parts, place = copy.deepcopy(parts_of(model)), model.residual.labels.index
    weights = {name: array.copy() for name, array in parts.weights.items()}
    made: dict[int, list[tuple[str | None, float, str, float]]] = {
        0: [("to_x:b", -0.25, "x", 2.0**20), ("to_x:b", -0.75, "x", -(2.0**20))],
        1: [("x", -(2.0**38) - 50, "z", 1.0)],
        2: [("z", 0.0, "out:q", 1.0), (None, 20.0, "out:p", 1.0)],
    }
    made[0] += [("to_y:b", -0.25, "y", 2000.0), ("to_y:b", -0.75, "y", -2000.0)]
    for layer, neurons in made.items():
        name, width = f"blocks.{layer}.mlp.", len(model.residual.labels)
        weights |= {f"{name}W_in": np.zeros((width, len(neurons))), f"{name}W_out": np.zeros((len(neurons), width))}
        weights |= {f"{name}b_in": np.array([bias for _, bias, _, _ in neurons]), f"{name}b_out": np.zeros(width)}
        for neuron, (reads, _, writes, factor) in enumerate(neurons):
            weights[f"{name}W_out"][neuron, place(writes)] = factor
            if reads:
                weights[f"{name}W_in"][place(reads), neuron] = 1.0
    weights["blocks.1.mlp.W_in"][[place("x"), place("y")], 0] = 2.0**19, 1.0
    sops = named(parts)
    sops["x"]["domain"]["values"], sops["y"]["domain"]["values"] = [0, 2**19], [0, 1000]
    sops["z"]["domain"]["values"] = [0, 1000, 2**38 + 100, 2**38 + 1100]
    sops["z"]["op"]["terms"][0][1] = 2**19
    return replace(parts, weights=weights)


def test_a_whole_number_that_is_listed_for_another_one_is_not_exact(tmp_path: Path) -> None:
    """Large whole numbers that differ by 100 are one value, and a network in float64 tells them apart."""
    parts = sum_off_by_100()
    assert wrong_inputs(parts, EveryInput(parts), dtype=np.float64) > 0
    assert "is not surely the largest logit" in check_parts(parts, tmp_path, "float64").reason


@pytest.mark.parametrize("name", HOSTILE)
def test_a_wrong_model_with_a_hostile_program_or_hint_is_rejected(name: str, tmp_path: Path) -> None:
    """It is wrong on some input, and the reason says why it is rejected."""
    make, reason = HOSTILE[name]
    parts = make()
    assert wrong_inputs(parts, EveryInput(parts)) > 0
    assert reason in check_parts(parts, tmp_path).reason


def test_cells_of_a_selector_that_are_marked_as_unreached_are_an_assumption(tmp_path: Path) -> None:
    """The theorem leaves out inputs with "a" and "b"; the verdict says so."""
    parts = compiled(rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)).named("hist"))
    (name,) = (name for name in parts.tables if name.startswith("selectors"))
    for cell, count in ((0, 0), (-2, 1)):
        table = np.array([[1, cell], [0, 1]], np.int8)
        verdict = check_parts(replace(parts, tables={**parts.tables, name: table}), tmp_path)
        assert verdict.accepted
        assert sum("cells marked as unreached" in one for one in verdict.assumptions) == count


def test_a_number_that_is_moved_alone_and_not_listed_is_an_assumption(tmp_path: Path) -> None:
    """The value before: 1, at position 2, is listed or not; the verdict says that no input has it."""
    before = rasp.Select(rasp.indices, rasp.indices, _at(-1))
    parts = compiled(rasp.Aggregate(before, rasp.indices, default=-1).named("before"))
    values = named(parts)["before"]["domain"]["values"]
    for value, count in ((1, 0), (7, 1)):
        values[values.index(1)] = value
        verdict = check_parts(parts, tmp_path)
        assert verdict.accepted, verdict.reason
        assert sum("before has no value for" in one for one in verdict.assumptions) == count


@pytest.mark.parametrize("values", [[1, True, 2, 3], [1, 1.0000000001, 2, 3]])
def test_values_that_are_one_are_not_listed_twice(values: list[Any], tmp_path: Path) -> None:
    """Equal values, or numbers of a width that are nearly equal: a table could tell them apart."""
    parts = compiled(rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)).named("hist"))
    named(parts)["hist"]["domain"]["values"] = values
    assert check_parts(parts, tmp_path).reason in (
        "hist has a value twice",
        "values of hist are too near to be told apart",
    )


COLLIDING = [{"int": hex(place * (2**61 - 1))} for place in range(100_000)]


@pytest.mark.parametrize("values", [COLLIDING, ["a", {"frozenset": COLLIDING}]])
def test_values_with_one_hash_are_rejected_in_time(values: list[Any], tmp_path: Path) -> None:
    """Multiples of 2^61 - 1 have the hash 0: a dictionary of 100,000 of them takes minutes, of a million hours."""
    parts = compiled(rasp.Map(lambda token: token * 2, rasp.tokens).named("twice"))
    named(parts)["twice"]["domain"]["values"] = values
    assert check_parts(parts, tmp_path).reason == "too many values with one hash"


@pytest.mark.parametrize("place", ["heads", "mlp", "aux", "sums"])
def test_large_numbers_in_hints_are_rejected_in_time(place: str, tmp_path: Path) -> None:
    """100,000 dimensions with one hash took minutes."""
    parts = compiled(rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)).named("hist"))
    colliding: dict[str, Any] = {
        str(number * (2**61 - 1)): [] if place == "sums" else {} for number in range(5, 100_000)
    }
    owners = dict.fromkeys(colliding, 0)
    first, *others = parts.hints["layers"]
    changes: dict[str, dict[str, Any]] = {
        "heads": {"layers": [{**first, "heads": [owners]}, *others]},
        "mlp": {"layers": [{**first, "mlp": owners}, *others]},
        "aux": {"aux": colliding},
        "sums": {"sums": colliding},
    }
    assert (
        check_parts(replace(parts, hints={**parts.hints, **changes[place]}), tmp_path).reason
        == "a number in the hints is too large"
    )


def test_a_number_with_many_zeros_before_it_is_not_0(tmp_path: Path) -> None:
    """The value at "a" is 5, written with 1,999 zeros: only the first 2,000 characters were read. The model gives 0."""
    parts = compiled(rasp.numerical(rasp.Map(lambda token: {"a": 0, "b": 1}[token], rasp.tokens).named("x")))
    five = {"int": "0x" + "0" * 1999 + "5"}
    values = named(parts)["x"]["domain"]["values"]
    values[values.index(0)] = five
    assert wrong_inputs(parts, EveryInput(parts))
    assert check_parts(parts, tmp_path).reason == "'int' of 2,002 characters"


@pytest.mark.parametrize(
    "value",
    [{"fraction": ["1e9999999999"]}, {"fraction": [1]}, {"complex": ["1", 0]}, {"decimal": "0" * 2001}],
)
def test_numbers_that_nobody_writes_are_refused(value: Any) -> None:
    """The first one would take hours."""
    with pytest.raises(Rejected, match=r"malformed number|characters"):
        read_value(value)


def test_very_many_fractions_are_not_compared() -> None:
    """Exact numbers take much longer than floats."""
    with pytest.raises(Rejected, match="too many fractions"):
        _far_apart([Fraction(place) for place in range(100_001)])


def references(parts: SavedParts) -> Iterator[tuple[Any, Any]]:
    """Every place that names an s-op or a selector by its number, in the program and in the hints."""
    program, hints = parts.model["program"], parts.hints
    for sop in program["sops"]:
        yield sop, "id"
        yield from ((sop["op"], name) for name in ("inner", "fst", "snd", "value", "selector") if name in sop["op"])
        yield from ((term, 0) for term in sop["op"].get("terms", ()))
    for selector in program["selectors"]:
        yield from ((selector, name) for name in ("id", "keys", "queries") if name in selector)
        yield from ((selector["parts"], place) for place in range(len(selector.get("parts", ()))))
    yield from ((output, 1) for output in program["outputs"])
    for layer in hints["layers"]:
        for owners in (*layer["heads"], layer["mlp"]):
            yield from ((owners, dim) for dim, owner in owners.items() if isinstance(owner, int))
    for given in hints["aux"].values():
        yield from ((given, name) for name in ("of", "selector") if isinstance(given.get(name), int))
        if isinstance(given.get("of"), list):
            yield from ((given["of"], place) for place in range(len(given["of"])))
    yield from ((hints["parts"], name) for name, source in hints["parts"].items() if source is not None)


@pytest.mark.parametrize("name", ["shuffle_dyck", "sort_composite", "frac_prevs"])
def test_numbers_of_variables_are_whole_numbers(name: str, tmp_path: Path) -> None:
    """A number that is equal to the name of an s-op or selector, or a text of it, is no name."""
    example = short_example(name)
    count = len(list(references(example)))
    assert count > 10
    for place in range(count):
        for kind in (float, str, lambda number: None):
            parts = copy.deepcopy(example)
            owner, key = list(references(parts))[place]
            owner[key] = kind(owner[key])
            assert not check_parts(parts, tmp_path).accepted, (owner, key)


def short_example(name: str) -> SavedParts:
    """A program of the library for short inputs."""
    example = EXAMPLES[name]
    made = example.made_for(example.vocab, 3)
    return parts_of(tracr.compile(made.program, made.vocab, 3))
