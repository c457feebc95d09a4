"""A library of RASP programs: those of the paper and of the RASP paper, and small tools to build others from.

Every function returns an expression; `EXAMPLES` holds one ready-made program of each kind, with the vocabulary and
the length it is usually compiled for. The s-ops and selectors have the names of the papers, to be
recognised in a compiled model. "The paper" is Tracr's (Lindner et al., 2023), "the RASP paper" is Weiss et al., 2021.
"""

from tracr.rasp.programs.brackets import (
    make_closer,
    make_dyck,
    make_dyck1,
    make_dyck2,
    make_pair_balance,
    make_shuffle_dyck,
    make_shuffle_dyck2,
)
from tracr.rasp.programs.counting import (
    make_count,
    make_count_less_freq,
    make_frac_prevs,
    make_has_prev,
    make_hist,
    make_hist2,
    make_hist_bos,
    make_length,
)
from tracr.rasp.programs.examples import EXAMPLES, Example
from tracr.rasp.programs.ordering import (
    make_most_freq,
    make_reverse,
    make_sort,
    make_sort_composite,
    make_sort_freq,
    make_sort_unique,
)
from tracr.rasp.programs.patterns import detect_pattern, make_counter, make_induction, make_nary_sequencemap, shift_by

__all__ = [
    "EXAMPLES",
    "Example",
    "detect_pattern",
    "make_closer",
    "make_count",
    "make_count_less_freq",
    "make_counter",
    "make_dyck",
    "make_dyck1",
    "make_dyck2",
    "make_frac_prevs",
    "make_has_prev",
    "make_hist",
    "make_hist2",
    "make_hist_bos",
    "make_induction",
    "make_length",
    "make_most_freq",
    "make_nary_sequencemap",
    "make_pair_balance",
    "make_reverse",
    "make_shuffle_dyck",
    "make_shuffle_dyck2",
    "make_sort",
    "make_sort_composite",
    "make_sort_freq",
    "make_sort_unique",
    "shift_by",
]
