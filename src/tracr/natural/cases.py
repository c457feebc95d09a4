"""Programs to make twins of, with their vocabularies and lengths: the library's, some with more tokens than it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tracr.rasp import programs
from tracr.rasp.expressions import SOp, tokens
from tracr.values import Value

__all__ = ["CASES", "TwinCase"]


class TwinCase(NamedTuple):
    """A program, and what its teacher is compiled for."""

    program: SOp
    vocab: Sequence[Value]
    max_seq_len: int
    causal: bool = False


CASES: Mapping[str, TwinCase] = {
    **{name: TwinCase(one.program, one.vocab, one.max_seq_len) for name, one in programs.EXAMPLES.items()},
    # larger vocabularies than the library's, so that values are not known from the others'
    "hist": TwinCase(programs.make_hist(), "abcd", 5),
    "hist2": TwinCase(programs.make_hist2(), "abcd", 5),
    "count_less_freq": TwinCase(programs.make_count_less_freq(2), "abcd", 5),
    "sort_unique": TwinCase(programs.make_sort_unique(tokens, tokens), [1, 2, 3, 4, 5, 6], 4),
    "shuffle_dyck": TwinCase(programs.make_shuffle_dyck(["()"]), "()", 6),
    "previous, causal": TwinCase(programs.shift_by(1, tokens), "abcd", 5, causal=True),
    "hist, causal": TwinCase(programs.make_hist(), "abcd", 5, causal=True),
}
"""The programs of `tracr twin --all` and of `benchmarks/twins.py`."""
