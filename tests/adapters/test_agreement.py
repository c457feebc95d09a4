"""A compiled model gives the same answer in every framework."""

from __future__ import annotations

import numpy as np
import pytest

from tests.adapters.table import ADAPTERS, TOLERANCE, compiled, inputs
from tests.agreement import same
from tests.library import LIBRARY
from tests.tiers import in_turn

# The frameworks warn of things that are not ours.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


@pytest.mark.parametrize(
    ("adapter", "program", "dtype"),
    [
        (adapter, program, dtype)
        for start, adapter in enumerate(ADAPTERS)
        for program, dtype in in_turn(LIBRARY, tuple(TOLERANCE), start)
    ],
)
def test_adapters_agree_with_numpy(adapter: str, program: tuple[str, bool], dtype: str) -> None:
    """Logits are numpy's within the tolerance, decoded outputs identical, padded and not."""
    name, causal = program
    model = compiled(name, causal)
    run = ADAPTERS[adapter](model, dtype)
    rows = inputs(name, causal)
    length = len(rows[len(rows) // 2])
    for padded, batch in ((True, rows), (False, [xs for xs in rows if len(xs) == length])):
        ids = model.encode(batch)
        expected, logits = model.logits(ids, dtype), run(ids)
        assert logits.dtype == dtype
        assert logits.shape == expected.shape
        for row, xs in enumerate(batch):
            apart = np.abs(logits[row, : len(xs) + 1] - expected[row, : len(xs) + 1])
            assert apart.max() <= TOLERANCE[dtype], (xs, padded)
        for got, wanted in zip(model.values(logits, ids), model(batch), strict=True):
            assert len(got) == len(wanted)
            assert all(map(same, got, wanted)), (got, wanted)
