"""Attention patterns from selectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

import tracr
from tracr.craft.heads import LEGIBLE, SQUARES, matching_logits, number_logits, own_numbers, selector_logits
from tracr.craft.numerics import GAP
from tracr.craft.variables import Array
from tracr.rasp import programs, rasp


@given(hnp.arrays(bool, st.tuples(st.integers(1, 6), st.integers(1, 6))))
def test_logits_are_zero_or_minus_the_gap(selected: NDArray[np.bool_]) -> None:
    """The factors multiply to exactly 0 where selected and -GAP elsewhere, with no more columns than needed."""
    queries, keys = selector_logits(selected)
    assert np.array_equal(queries @ keys.T, np.where(selected, 0.0, -GAP))
    assert queries.shape[1] <= min(len(np.unique(selected, axis=0)), len(np.unique(selected, axis=1).T))


def test_patterns_are_exactly_uniform_over_the_selected_keys() -> None:
    """Weight 1/w on selected keys, exactly 0 elsewhere; BOS only where nothing is selected; PAD never."""
    same_earlier = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LT)
    model = tracr.compile(rasp.Aggregate(same_earlier, rasp.indices), "ab", 4)
    (pattern,) = model.run(["a", "b", "a", "pad"])["blocks.0.attn.hook_pattern"][0]
    expected = [[1, 0, 0, 0, 0], [1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0.5, 0.5, 0, 0]]
    assert pattern[:4].tolist() == expected


@pytest.mark.parametrize("classes", [LEGIBLE + 1, 100, SQUARES, SQUARES + 1, 3000])
def test_a_matching_is_exact_in_float32(classes: int) -> None:
    """0 for a match, -GAP or less otherwise, in whatever order float32 adds up, also about the limit of squares."""
    rng = np.random.default_rng(0)
    selected = np.zeros((classes, classes), dtype=bool)
    selected[np.arange(classes), rng.permutation(classes)] = True
    selected[0] = selected[:, 1] = False  # a query and a key without a match
    queries, keys = (side.astype(np.float32) for side in matching_logits(selected))
    numbers = int(selected.sum()) + 2
    assert queries.shape[1] == (3 if numbers <= SQUARES else numbers.bit_length() + 1)
    for order in (slice(None), slice(None, None, -1)):
        logits = queries[:, order] @ keys[:, order].T
        assert (logits[selected] == 0).all()
        assert (logits[~selected] <= -GAP).all()


def test_bits_hold_in_bfloat16() -> None:
    """Cut to 8 bits of mantissa, neither the factors nor their partial sums change."""
    queries, keys = matching_logits(np.eye(5000, dtype=bool))
    for array in (queries, keys, np.cumsum(queries[7] * keys[9])):
        assert (array == (array.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)).all()


@pytest.mark.parametrize("name", programs.EXAMPLES)
def test_the_width_of_a_head_is_its_rank(name: str) -> None:
    """The matrices of queries and keys, and of values and outputs, have no smaller factors."""
    example = programs.EXAMPLES[name]
    model = tracr.compile(example.program, example.vocab, example.max_seq_len)
    for layer, weights in zip(model.schedule.layers, model.parameters.layers, strict=True):
        for place, head in enumerate(layer.heads):
            q, k, v = (
                np.vstack([getattr(weights, f"W_{side}")[place], getattr(weights, f"b_{side}")[place]])
                for side in "QKV"
            )
            assert np.linalg.matrix_rank(q @ k.T) == head.query.width
            assert np.linalg.matrix_rank(v @ weights.W_O[place]) == head.value.width


def float32_logits(queries: Array, keys: Array, squares: Array) -> Array:
    """q * k + s for all pairs, in float32."""
    q, k, s = (np.asarray(x, dtype=np.float32) for x in (queries, keys, squares))
    return np.asarray(q[:, None] * k[None, :] + s[None, :], dtype=np.float64)


@pytest.mark.parametrize(
    ("most", "error"), [(5, 0.125), (50, 0.125), (500, 0.12), (800, 0.02), (830, 0.003), (2048, 0.0)]
)
def test_keys_found_by_number(most: int, error: float) -> None:
    """Up to the limits, all other keys, and BOS, are so far below the right key that float32's exponential is 0."""
    keys = np.arange(-most, most + 1.0)
    logits = number_logits(keys, most + error, error)
    assert logits is not None
    for off in (-error, 0.0, error):
        found = float32_logits(keys + off, *logits)
        right = found.diagonal().copy()
        np.fill_diagonal(found, -np.inf)
        assert (right - found.max(axis=1)).min() > 104
        assert right.min() - -GAP / 2 > 104
        assert right.min() - (0 - 2 * GAP) > 104  # PAD without a code
        assert (found.max(axis=1) - 2 * GAP - right).max() < -104  # and with one


@pytest.mark.parametrize(("most", "error"), [(5, 0.2), (840, 0.01), (600, 0.125), (2049, 0.0)])
def test_what_is_too_rough_to_be_found_by_number(most: int, error: float) -> None:
    """Beyond them there is no promise."""
    assert number_logits(np.arange(most + 1.0), most, error) is None


def test_own_numbers_of_a_matching() -> None:
    """Keys keep their numbers; queries get those of the keys they select, and beyond."""
    numbers = np.arange(5.0)
    found = own_numbers(np.eye(5, dtype=bool)[::-1], numbers, numbers)
    assert found is not None
    assert found[0].tolist() == [4, 3, 2, 1, 0]
    assert own_numbers(np.eye(5, dtype=bool)[[1, 0, 2, 3, 4]], numbers, numbers) is None
    assert own_numbers(np.eye(5, dtype=bool), numbers / 2, numbers / 2) is None
    assert own_numbers(np.tri(5, dtype=bool), numbers, numbers) is None
    assert own_numbers(np.eye(5, dtype=bool), numbers, 3000 + numbers) is None
    assert own_numbers(np.tile(np.eye(5, dtype=bool)[2], (5, 1)), numbers, numbers) is None
