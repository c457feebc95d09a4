"""The library of programs (the path existing code imports); the programs are in `tracr.rasp.programs`."""

from tracr.rasp.programs import (
    detect_pattern,
    make_count,
    make_count_less_freq,
    make_frac_prevs,
    make_hist,
    make_length,
    make_nary_sequencemap,
    make_pair_balance,
    make_reverse,
    make_shuffle_dyck,
    make_shuffle_dyck2,
    make_sort,
    make_sort_freq,
    make_sort_unique,
    shift_by,
)

__all__ = [
    "detect_pattern",
    "make_count",
    "make_count_less_freq",
    "make_frac_prevs",
    "make_hist",
    "make_length",
    "make_nary_sequencemap",
    "make_pair_balance",
    "make_reverse",
    "make_shuffle_dyck",
    "make_shuffle_dyck2",
    "make_sort",
    "make_sort_freq",
    "make_sort_unique",
    "shift_by",
]
