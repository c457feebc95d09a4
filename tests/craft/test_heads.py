"""Attention patterns from selectors."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

import tracr
from tracr.craft.heads import selector_logits
from tracr.craft.numerics import GAP
from tracr.rasp import rasp


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
