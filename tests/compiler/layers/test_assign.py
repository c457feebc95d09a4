"""Steps 4 to 6 on small circuits: earliest layers, dropped directions, text forms."""

from __future__ import annotations

import tracr
from tracr.rasp import programs, rasp


def test_components_go_into_the_earliest_sub_layer() -> None:
    """A chain of n aggregates needs n layers, and nothing waits for what it does not read."""
    before = rasp.Select(rasp.indices, rasp.indices - 1, rasp.Comparison.EQ)
    chain: rasp.SOp = rasp.tokens
    for _ in range(4):
        chain = rasp.Aggregate(before, chain, default="-")
    both = rasp.SequenceMap(lambda x, y: x + y, chain, rasp.Aggregate(before, rasp.tokens, default="-").named("early"))
    model = tracr.compile(both, "ab", 5)
    lines = model.show("schedule").splitlines()
    assert model.n_layers == 5  # an MLP first, for the query
    assert lines[2].startswith("attn 1: ")
    assert "early" in tracr.compile(both, "ab", 5, level=0).show("schedule").splitlines()[2]


def test_level_1_drops_what_nothing_reads() -> None:
    """Only the token that matters keeps its direction, and `one` becomes biases."""
    model = tracr.compile(programs.make_count(rasp.tokens, "a"), "abc", 3)
    assert sorted({label.partition(":")[0] for label in model.residual.labels}) == [
        "count_a",
        "count_a_share",
        "tokens",
    ]
    assert "one" in tracr.compile(rasp.tokens == "a", "abc", 3, level=0).residual.labels
