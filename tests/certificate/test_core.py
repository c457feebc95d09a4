"""The checker's core against a slow one in exact fractions, and its states against streams that occur."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracr
from tests.certificate.slow_core import exact_mixture, exact_read, exact_relus, exact_streams, grid
from tests.library import LENGTH
from tests.tiers import in_turn
from tracr.certificate.trials.execution import ORDERS, execute
from tracr.certificate.trials.meaning import Meaning
from tracr.certificate.trials.mutants import SavedParts, mutant
from tracr.certificate.trials.trial import check_parts, parts_of
from tracr.ir.options import LEVELS
from tracr.rasp.programs import EXAMPLES
from tracr_check import ARITHMETICS, proving
from tracr_check.aggregate import Reading, counted
from tracr_check.boxes import Boxes, State, exactly, grid_of, natural, read_boxes, rounded
from tracr_check.head import States
from tracr_check.piecewise import Relus
from tracr_check.selection import Selection

FLOAT32 = ARITHMETICS["float32"]
NUMBERS = st.one_of(
    st.just(0.0), st.integers(-64, 64).map(lambda n: n / 8), st.floats(-100, 100, width=32, allow_subnormal=False)
)


def floats(count: int) -> st.SearchStrategy[list[float]]:
    """So many numbers of float32."""
    return st.lists(NUMBERS, min_size=count, max_size=count)


def fractions(numbers: Any) -> list[Fraction]:
    """Floats as fractions."""
    return [Fraction(number) for number in numbers]


@settings(max_examples=60)
@given(number=NUMBERS.filter(bool))
def test_grids(number: float) -> None:
    """The grid of a number divides it, and no larger power of two does."""
    assert Fraction(float(grid_of(number))) == grid(Fraction(number))


@settings(max_examples=60)
@given(ends=floats(2), steps=st.floats(0, 1))
def test_natural_grids(ends: list[float], steps: float) -> None:
    """Every float32 of an interval is a multiple of its natural grid."""
    lo, hi = sorted(ends)
    found = float(natural(np.array([lo]), np.array([hi]), 24)[0])
    inside = float(np.float32(lo + (hi - lo) * steps))
    if lo <= inside <= hi and inside and 0 < found < np.inf:
        assert Fraction(inside) % Fraction(found) == 0


@settings(max_examples=60)
@given(data=st.data(), width=st.integers(1, 6))
def test_reading_contains_the_exact_range(data: st.DataObject, width: int) -> None:
    """Range, partial sums, number of terms; and every product is a multiple of the grid."""
    first, second, column = (np.array(data.draw(floats(width))) for _ in range(3))
    lo, hi = np.minimum(first, second), np.maximum(first, second)
    boxes = Boxes(np.arange(width), lo[None], hi[None], natural(lo, hi, 24)[None])
    found = read_boxes(boxes, column[:, None])
    low, high, up, down, terms = exact_read(fractions(lo), fractions(hi), fractions(column))
    assert Fraction(float(found.lo[0, 0])) <= low <= high <= Fraction(float(found.hi[0, 0]))
    assert Fraction(float(found.up[0, 0])) >= up
    assert Fraction(float(found.down[0, 0])) >= down
    assert found.count[0, 0] >= terms
    step = float(found.grid[0, 0])
    for low_end, high_end, weight in zip(lo, hi, column, strict=True):
        if low_end == high_end != 0 and weight and 0 < step < np.inf:
            assert Fraction(low_end) * Fraction(weight) % Fraction(step) == 0


@settings(max_examples=60)
@given(data=st.data(), width=st.integers(1, 9), seed=st.integers(0, 2**32 - 1))
def test_rounding_covers_every_order(data: st.DataObject, width: int, seed: int) -> None:
    """A float32 sum of products in a random tree is within the bound of the exact one."""
    x, w = (np.array(data.draw(floats(width)), np.float32) for _ in range(2))
    found = read_boxes(exactly(x[None].astype(float)), w[:, None].astype(float))
    bound = Fraction(float(rounded(found, FLOAT32)[0, 0]))
    exact = sum((Fraction(float(a)) * Fraction(float(b)) for a, b in zip(x, w, strict=True)), Fraction(0))
    rng = np.random.default_rng(seed)
    terms = [a * b for a, b in zip(x, w, strict=True)]
    while len(terms) > 1:
        i, j = sorted(rng.choice(len(terms), 2, replace=False).tolist())
        terms[i] = np.float32(terms[i] + terms.pop(j))
    assert abs(Fraction(float(terms[0])) - exact) <= bound


@settings(max_examples=80)
@given(data=st.data(), count=st.integers(1, 6))
def test_relus_contain_the_exact_range(data: st.DataObject, count: int) -> None:
    """Sums of relus of one number, over intervals and points, with kinks at their ends."""
    w, b, c = (np.array(data.draw(floats(count))) for _ in range(3))
    ends = [*data.draw(floats(2)), *(-b[w != 0] / w[w != 0]).tolist()]
    lo, hi = sorted((data.draw(st.sampled_from(ends)), data.draw(st.sampled_from(ends))))
    low, high = Relus(w, b, c).range(np.array([lo]), np.array([hi]))
    exact = exact_relus(fractions(w), fractions(b), fractions(c), Fraction(lo), Fraction(hi))
    assert Fraction(float(low[0])) <= exact[0]
    assert exact[1] <= Fraction(float(high[0]))
    size = float(np.abs(c) @ (np.abs(w) * max(abs(lo), abs(hi)) + np.abs(b)))
    assert float(high[0]) - float(low[0]) <= float(exact[1] - exact[0]) + 1e-9 * (1 + size)


@settings(max_examples=40)
@given(
    key=floats(2),
    bos=floats(2),
    log=st.lists(st.floats(-5, 5, width=32), min_size=2, max_size=2),
    keys=st.integers(1, 9),
)
def test_counting_contains_the_exact_mixture(key: list[float], bos: list[float], log: list[float], keys: int) -> None:
    """(w o + C b) / (w + C), for every number w of selected keys."""
    (o_lo, o_hi), (b_lo, b_hi), (c_lo, c_hi) = sorted(key), sorted(bos), sorted(log)
    size, bos_size = max(abs(o_lo), abs(o_hi)), max(abs(b_lo), abs(b_hi))
    reading = Reading(
        np.array([o_lo]), np.array([o_hi]), np.array([size]), (b_lo, b_hi), bos_size, 0.0, 1.0, 0.0, keys, 1, FLOAT32
    )
    counts = np.arange(keys + 1.0)
    lo, hi, *_ = counted(reading, Selection(0.0, (c_lo, c_hi), False, False), counts, "")
    for count in range(1, keys + 1):
        sums = [count * Fraction(o_lo), count * Fraction(o_hi)]
        exact = exact_mixture(sums, fractions([b_lo, b_hi]), fractions([c_lo, c_hi]), count)
        assert Fraction(float(lo[count])) <= exact[0] + Fraction(1, 10**30)
        assert exact[1] <= Fraction(float(hi[count])) + Fraction(1, 10**30)
    assert (lo[0], hi[0]) == (b_lo, b_hi)


# States against streams


class Recorded:
    """The checker's states after the embedding and after each sub-layer, recorded during a check."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.states: list[States] = []
        for name in ("_embedded", "after_attention", "_after_mlp"):
            monkeypatch.setattr(proving, name, self.recording(getattr(proving, name)))

    def recording(self, function: Any) -> Any:
        """The function, with its result kept."""

        def called(*given: Any) -> Any:
            self.states.append(function(*given))
            return self.states[-1]

        return called


def bounds(state: State, codes: dict[Any, int], width: int) -> tuple[Any, Any]:
    """The bounds of every dimension for the values of the variables that are known, which are alive; the hull for
    others."""
    low, high = np.zeros(width), np.zeros(width)
    for name, boxes in state.tables.items():
        rows = [codes[name]] if name in codes else slice(None)
        low[boxes.dims] += boxes.lo[rows].min(0)
        high[boxes.dims] += boxes.hi[rows].max(0)
    for name, dead in state.dead.items():
        assert name not in codes or not dead[codes[name]], name
    return low, high


def positions(parts: SavedParts, ids: list[int], length: int) -> Iterator[tuple[int, str, dict[Any, int]]]:
    """For each position of an input with a meaning: which state holds it, and the codes of its variables."""
    meaning = Meaning(parts.model, parts.tables)
    codes = meaning.codes(ids[1 : length + 1])
    if codes is None:
        return
    yield 0, "bos", {"B": 0}
    for place in range(length):
        own = {number: column[place] for number, column in codes.items() if meaning.values[number] is not None}
        shared = {"T": ids[place + 1], "I": place, "L": length - meaning.lengths[0], "1": 0}
        yield place + 1, "tokens", {**own, **shared}
    for place in range(length, len(ids) - 1):
        yield place + 1, "pad", {"P": place}


def inputs(parts: SavedParts, most: int) -> Iterator[tuple[list[int], int]]:
    """Some inputs of every length, unpadded and padded, as ids with BOS."""
    tokens, (shortest, longest) = len(parts.model["options"]["vocab"]), parts.model["program"]["lengths"]
    for length in range(shortest, longest + 1):
        every = list(itertools.product(range(tokens), repeat=length))
        for row in every[:: 1 + len(every) // most]:
            for width in {length, longest}:
                yield [tokens, *row, *[tokens + 1] * (width - length)], length


def cast(parts: SavedParts) -> dict[str, Any]:
    """The weights in float32."""
    return {name: array.astype(np.float32) for name, array in parts.weights.items()}


SMALL = [("hist", 2), ("frac_prevs", 2), ("length", 2)]
FIRST = ("hist_bos", 1)


def tiers(quick: list[tuple[str, int]], others: Iterable[tuple[str, int]]) -> list[Any]:
    """Programs at levels; all but the quick ones are slow."""
    return [*quick, *(pytest.param(*one, marks=pytest.mark.slow) for one in others if one not in quick)]


@pytest.mark.parametrize(("name", "level"), tiers(SMALL, in_turn(EXAMPLES, LEVELS)))
def test_states_contain_exact_streams(name: str, level: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After every sub-layer, at tokens, BOS and PAD: what exact arithmetic gives lies in the checker's boxes."""
    example = EXAMPLES[name].made_for(EXAMPLES[name].vocab, 3)
    parts = parts_of(tracr.compile(example.program, example.vocab, 3, level=level))
    recorded = Recorded(monkeypatch)
    assert check_parts(parts, tmp_path).accepted
    weights = cast(parts)
    compared = 0
    for ids, length in inputs(parts, 4):
        streams = exact_streams(weights, ids, False).after
        assert len(streams) == len(recorded.states)
        for (place, kind, codes), (states, stream) in itertools.product(
            positions(parts, ids, length), zip(recorded.states, streams, strict=True)
        ):
            compared += _contained(getattr(states, kind), codes, stream[place])
    assert compared > 100


def _contained(state: State, codes: dict[Any, int], row: list[Fraction]) -> int:
    """Check every dimension of a position; the number of dimensions."""
    slack = Fraction(1, 10**30)
    for dim, (low, high, x) in enumerate(zip(*bounds(state, codes, len(row)), row, strict=True)):
        assert Fraction(float(low)) - slack <= x <= Fraction(float(high)) + slack, (dim, codes)
    return len(row)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("name", "level"), tiers(SMALL, in_turn(EXAMPLES, LEVELS, 1)))
def test_states_contain_the_streams_of_every_order(
    name: str, level: int, causal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same for runs in float32, sums in any order: bounds of rounding included."""
    example = EXAMPLES[name].made_for(EXAMPLES[name].vocab, 3)
    if causal and name in LENGTH:
        pytest.skip("a causal model does not see the length")
    parts = parts_of(tracr.compile(example.program, example.vocab, 3, level=level, causal=causal))
    recorded = Recorded(monkeypatch)
    if not check_parts(parts, tmp_path).accepted:
        pytest.skip("the checker has no proof")
    assert_contained(parts, recorded.states, list(ORDERS), 6)


def assert_contained(parts: SavedParts, found: list[States], orders: list[str], most: int) -> None:
    """Run some inputs in float32, in some orders, and find every stream in the states."""
    weights, causal = cast(parts), parts.model["options"]["causal"]
    for ids, length in inputs(parts, most):
        streams: list[list[Any]] = [[] for _ in orders]
        for order, kept in zip(orders, streams, strict=True):
            execute(weights, np.array([ids]), causal, ORDERS[order], kept)
        for place, kind, codes in positions(parts, ids, length):
            for states, *stream in zip(found, *streams, strict=True):
                if (state := getattr(states, kind)) is not None:
                    _assert_rows(state, codes, np.array([one[0, place] for one in stream]))


def _assert_rows(state: State, codes: dict[Any, int], rows: Any) -> None:
    """The streams of a position, one for each order."""
    low, high = bounds(state, codes, rows.shape[1])
    outside = (rows < low) | (rows > high) | np.isnan(rows)
    assert not outside.any(), (np.argwhere(outside), codes)


@pytest.mark.parametrize(("name", "level"), tiers([FIRST], in_turn(EXAMPLES, LEVELS, 1)))
def test_states_of_accepted_mutants_contain_their_streams(
    name: str, level: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounds are right for weights that the compiler would not make, too."""
    example = EXAMPLES[name].made_for(EXAMPLES[name].vocab, 3)
    parts = parts_of(tracr.compile(example.program, example.vocab, 3, level=level))
    recorded, rng = Recorded(monkeypatch), np.random.default_rng(level)
    accepted = 0
    for _ in range(12):
        one = mutant(parts, rng, "weight").parts
        recorded.states.clear()
        if check_parts(one, tmp_path).accepted:
            accepted += 1
            assert_contained(one, recorded.states, ["blas"], 3)
    assert accepted
