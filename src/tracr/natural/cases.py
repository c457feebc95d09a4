"""The vocabularies and lengths at which twins of programs of the zoo are trained, where they are not the zoo's own.

The cases of `tracr.lab` have these sizes too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tracr import zoo
from tracr.values import Value

__all__ = ["SIZES", "case_of"]

SIZES: Mapping[str, tuple[Iterable[Value], int]] = {
    # larger than the zoo's: there, some changes of the answer have too few pairs of inputs, or none
    "hist": ("abcd", 5),
    "hist2": ("abcd", 5),
    "count_less_freq": ("abcd", 5),
    "sort_unique": (range(1, 7), 4),
    "sort_composite": ("abcd", 5),
    "sort_freq": ("abcd", 5),
    "most_freq": ("abcd", 5),
    "nary_sequencemap": ([0, 1], 7),
    "shuffle_dyck": ("()a", 6),
    # smaller than the zoo's: twins of many layers train faster on fewer inputs
    "token_of_longest_run": ("abc", 5),
}


def case_of(name: str, vocab: Iterable[Value] | None = None, max_seq_len: int | None = None) -> zoo.Entry:
    """A program of the zoo at the size of its twins, unless another vocabulary or length is given."""
    entry = zoo.get(name)
    usual, length = SIZES.get(entry.name, (None, None))
    return entry.made_for(usual if vocab is None else vocab, max_seq_len or length)
