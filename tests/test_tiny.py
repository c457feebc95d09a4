"""A smoke test of a few lines: a program goes in, a transformer that computes it comes out."""

from __future__ import annotations

import tracr
from tracr.ir.options import LEVELS
from tracr.rasp import rasp


def test_a_program_goes_in_and_a_transformer_comes_out() -> None:
    """The paper's running example, at every level."""
    prevs = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LEQ)
    program = rasp.Aggregate(prevs, rasp.tokens == "x").named("frac_prevs")
    for level in LEVELS:
        model = tracr.compile(program, vocab="abcx", max_seq_len=5, level=level)
        assert model("xacx") == program("xacx") == [1, 1 / 2, 1 / 3, 1 / 2]
        assert model([["x", "a"], ["c"]]) == [[1, 0.5], [0]]
