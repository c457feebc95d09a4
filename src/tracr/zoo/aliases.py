"""Other names of programs of the zoo: those of papers and of other benchmarks, for the same task.

`find` also takes `make_hist`, `Sort-Unique` and the like. A name that is only similar is refused with suggestions, by
spelling, or by words that it shares with names and descriptions.
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
    "frequency_class": "token_frequency_class frequency_classifier",
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
    "trend": "token_trend trend_analysis",
    "trigram_count": "trigram trigrams",
    "two_hop_induction": "two_hop",
    "two_sum": "2sum twosum",
}

ALIASES: Mapping[str, str] = {alias: name for name, aliases in OTHER_NAMES.items() for alias in aliases.split()}
"""Each alias with the name of its program."""

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
    """
    written = re.sub(r"[\s-]+", "_", name.strip().lower())
    bare = PREFIX.sub("", PREFIX.sub("", written))  # make_check_palindrome
    for spelt in (name, written, bare, f"is_{bare}" if "check_" in written else bare):
        known = ALIASES.get(spelt, spelt)
        if known in names:
            return known
    return None


def suggestion(name: str, entries: Mapping[str, Entry]) -> str:
    """What to write instead of a name that is not known: programs spelt like it, then programs with its words."""
    written = PREFIX.sub("", name.lower())
    if re.fullmatch(r"(?:case[\s_-]?)?\d+", written):
        return "InterpBench numbers its cases, the zoo names its programs: `tracr zoo` lists them (docs/zoo.md)"
    spelt = [ALIASES.get(known, known) for known in get_close_matches(written, [*entries, *ALIASES], cutoff=0.8)]
    shared = sorted(((_in_common(written, entry), entry.name) for entry in entries.values()), key=lambda one: -one[0])
    found = list(dict.fromkeys([*spelt, *(known for common, known in shared if common)]))[:MOST]
    if found:
        return f"did you mean {' or '.join(found)}?"
    return did_you_mean(written, entries, "`tracr zoo` and zoo.names() list all")


def _in_common(name: str, entry: Entry) -> int:
    """How many words a name shares with an entry; those of its name count double."""
    words = _words(name) - COMMON
    return 2 * len(words & _words(entry.name)) + len(words & _words(f"{entry.description} {' '.join(entry.tags)}"))


def _words(text: str) -> set[str]:
    """The words of a text, without the endings of plurals and verbs."""
    found = re.findall(r"[a-z]{3,}", text.lower())
    return {re.sub(r"(?:ing|ed|s)$", "", word) if len(word) > 4 else word for word in found}
