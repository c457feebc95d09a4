"""Other names of programs of the zoo: those of papers and of other benchmarks, for the same task.

`find` also takes `make_hist`, `Sort-Unique`, `sortunique`, `case_3` (of InterpBench) and the like. A name that is only
similar is refused with suggestions, by spelling, or by words that it shares with names and descriptions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

from tracr.spelling import did_you_mean

if TYPE_CHECKING:
    from tracr.zoo.entry import Entry

__all__ = ["ALIASES", "find", "other_names", "suggestion"]

OTHER_NAMES = {
    "add_mod": "modular_addition mod_add addition_mod",
    "agree_with_first_noun": "subject_verb_agreement",
    "associative_recall": "mqar recall",
    "bigram_count": "bigram bigrams count_bigrams",
    "caesar": "caesar_cipher",
    "collapse_runs": "remove_consecutive_duplicates",
    "copy_first": "first_element first_token",
    "copy_last": "last_element last_token",
    "copy_next": "next_token shift_left",
    "count_larger": "count_greater_than",
    "depth": "bracket_depth nesting_depth",
    "distinct": "count_distinct count_unique",
    "distinct_tokens": "deduplicate dedupe unique_tokens remove_duplicates",
    "docstring": "docstring_completion",
    "dyck1": "dyck_1",
    "dyck2": "dyck_2",
    "frac_prevs": "proportion xproportion x_proportion frac_prev",
    "greater_than_first": "greater_than",
    "has_prev": "duplicate_token duplicate_token_head",
    "hist": "histogram token_frequency count_frequency count_occurrences",
    "hist2": "double_histogram double_hist",
    "hist_so_far": "unigram_count unigrams",
    "indirect_object": "ioi indirect_object_identification",
    "induction_head": "induction_heads induction_circuit two_layer_induction",
    "is_palindrome": "palindrome",
    "markov_probability": "markov markov_chain bigram_probability",
    "maximum": "max max_element",
    "mean_so_far": "running_mean cumulative_mean",
    "minimum": "min min_element",
    "most_freq": "most_frequent",
    "parity_so_far": "parity prefix_parity running_parity",
    "reverse": "reverse_string",
    "running_max": "cumulative_max",
    "shift_by": "previous_token previous_token_head prev_token shift_right",
    "shuffle_dyck": "shuffle_dyck1 balanced_parentheses balanced_brackets",
    "shuffle_dyck2": "shuffle_dyck_2",
    "smaller_after": "inversions",
    "sort_freq": "sort_by_frequency sort_by_freq",
    "trigram_count": "trigram trigrams",
    "two_hop_induction": "two_hop",
    "two_sum": "2sum twosum",
}

ALIASES: Mapping[str, str] = {alias: name for name, aliases in OTHER_NAMES.items() for alias in aliases.split()}
"""Each alias with the name of its program."""

SAME_CASES = {2: "reverse", 3: "frac_prevs", 4: "pair_balance", 5: "shuffle_dyck2", 7: "hist", 39: "frac_prevs"}
"""InterpBench's cases that are programs of the zoo, by their numbers; vocabularies and lengths differ."""

SIMILAR_CASES = {
    13: ("trend",),
    18: ("frequency_class",),
    19: ("collapse_runs", "starts_run"),
    21: ("mask_repeats", "distinct_tokens"),
}
"""InterpBench's cases that have relatives in the zoo, with other answers."""

SIMILAR_WORDS = {
    "classifier": "frequency_class",
    "decreasing": "sort_descending",
    "gender": "agree_with_first_noun",
    "grokking": "add_mod",
    "gt": "greater_than_first",
    "increasing": "sorted_so_far",
    "ioi": "indirect_object",
    "n_gram": "bigram_count",
    "pronoun": "agree_with_first_noun",
    "succession": "caesar",
    "successor": "caesar",
}
"""Words that suggest a program which does not have them in its name or description."""

CASE = re.compile(r"(?:interpbench_?)?(?:case_?)?0*(\d{1,4})")
PREFIX = re.compile(r"^(?:make|rasp|tracr|check|compute|get)_")  # of functions in other collections
COMMON = frozenset(
    {"all", "and", "count", "each", "first", "for", "has", "input", "last", "not", "the", "this", "token"}
)
MOST = 3  # suggestions


def other_names(name: str) -> list[str]:
    """The aliases of a program.

    >>> other_names("dyck1")
    ['dyck_1']
    """
    return OTHER_NAMES.get(name, "").split()


def find(name: str, names: Mapping[str, object]) -> str | None:
    """The name in `names` that a name or alias means; `None` if there is none.

    >>> find("make_hist", {"hist": 0}), find("Token-Frequency", {"hist": 0}), find("histo", {"hist": 0})
    ('hist', 'hist', None)
    >>> find("InterpBench case 7", {"hist": 0})
    'hist'
    """
    written = _written(name)
    bare = PREFIX.sub("", PREFIX.sub("", written))  # make_check_palindrome
    case = None if written.isdigit() else CASE.fullmatch(written)  # other benchmarks have numbers too
    squeezed = {one.replace("_", ""): one for one in (*ALIASES, *names)}
    for spelt in (
        name,
        written,
        bare,
        f"is_{bare}" if "check_" in written else bare,
        SAME_CASES.get(int(case[1]), bare) if case else squeezed.get(bare, bare),
    ):
        known = ALIASES.get(spelt, spelt)
        if known in names:
            return known
    return None


def suggestion(name: str, entries: Mapping[str, Entry]) -> str:
    """What to write instead of a name that is not known: programs spelt like it, then programs with its words."""
    written = PREFIX.sub("", _written(name))
    case = CASE.fullmatch(written)
    if case:
        return _of_interpbench(int(case[1]))
    meant = [program for word, program in SIMILAR_WORDS.items() if f"_{word}" in f"_{written}"]
    spelt = [ALIASES.get(known, known) for known in get_close_matches(written, [*entries, *ALIASES], cutoff=0.8)]
    shared = sorted(((_in_common(written, entry), entry.name) for entry in entries.values()), key=lambda one: -one[0])
    found = list(dict.fromkeys([*meant, *spelt, *(known for common, known in shared if common)]))[:MOST]
    if found:
        return f"did you mean {' or '.join(found)}?"
    return did_you_mean(written, entries, "`tracr zoo` and zoo.names() list all")


def _written(name: str) -> str:
    """A name in small letters, its words joined by underscores."""
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def _of_interpbench(number: int) -> str:
    """What to write instead of the number of a case of InterpBench."""
    if number in SAME_CASES:
        return f"InterpBench's case {number} is {SAME_CASES[number]} here"
    if number in SIMILAR_CASES:
        return f"InterpBench's case {number} is not in the zoo; similar: {' and '.join(SIMILAR_CASES[number])}"
    return (
        f"InterpBench's case {number} is not in the zoo: benchmarks/third_party runs its cases from a checkout, "
        "`tracr zoo` lists the programs here"
    )


def _in_common(name: str, entry: Entry) -> int:
    """How many words a name shares with an entry; those of its name count double."""
    words = _words(name) - COMMON
    return 2 * len(words & _words(entry.name)) + len(words & _words(f"{entry.description} {' '.join(entry.tags)}"))


def _words(text: str) -> set[str]:
    """The words of a text, without the endings of plurals and verbs."""
    found = re.findall(r"[a-z]{3,}", text.lower())
    return {re.sub(r"(?:ing|ed|s)$", "", word) if len(word) > 4 else word for word in found}
