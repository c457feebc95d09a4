"""Other names of programs of the zoo: those of papers and of other benchmarks, for the same task.

`find` also takes `make_hist`, `Sort-Unique`, `sortunique`, `case_3` (of InterpBench) and the like. A name that is only
similar is refused with suggestions, by spelling, or by words that it shares with names and descriptions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracr.zoo.entry import Entry

__all__ = ["ALIASES", "find", "other_names", "suggestion"]

OTHER_NAMES = {
    "absolute": "abs absolute_value",
    "add_mod": "modular_addition mod_add addition_mod mod_addition modular_add modulo_addition",
    "agree_with_first_noun": "subject_verb_agreement sva agreement",
    "all_equal": "check_all_equal",
    "alternating_capitals": "alternate_capitalization alternating_caps alternate_case",
    "associative_recall": "mqar recall assoc_recall",
    "bigram_count": "bigram bigrams count_bigrams",
    "binarize": "binarise",
    "caesar": "caesar_cipher",
    "clip": "clamp clip_to_range",
    "closer": "bracket_completion close_brackets",
    "collapse_runs": "remove_consecutive_duplicates uniq duplicate_remover",
    "copy_first": "first_element first_token first",
    "copy_last": "last_element last_token last",
    "copy_next": "next_token shift_left next_token_head",
    "count": "count_a count_token",
    "count_larger": "count_greater_than",
    "count_smaller": "count_less_than",
    "cube": "cube_each_element cubed",
    "decrement": "minus_one subtract_one decrement_by_one",
    "depth": "bracket_depth nesting_depth paren_depth parenthesis_depth",
    "digit_sum": "sum_digits sum_of_digits",
    "distinct": "count_distinct count_unique",
    "distinct_tokens": "deduplicate dedupe unique_tokens "
    "remove_duplicates dedup unique_extractor extract_unique_tokens",
    "divisible_by_three": "divisible_by_3 multiple_of_three multiple_of_3",
    "docstring": "docstring_completion",
    "double": "double_elements multiply_by_two times_two",
    "dyck1": "dyck_1 dyck1_ptf dyck_1_ptf",
    "dyck2": "dyck_2 dyck2_ptf dyck_2_ptf",
    "fibonacci": "nth_fibonacci",
    "frac_prevs": "proportion xproportion x_proportion frac_prev frac_prevs_long fraction_of_x frac_x fraction_x",
    "greater_than_first": "greater_than gt",
    "has_prev": "duplicate_token duplicate_token_head",
    "hist": "histogram token_frequency count_frequency count_occurrences count_tokens "
    "frequency frequencies token_count token_counts counts hist_nobos",
    "hist2": "double_histogram double_hist hist_2",
    "hist_so_far": "unigram_count unigrams",
    "identity": "copy copy_tokens echo noop no_op",
    "increment_odd_positions": "increment_odd_indices",
    "indirect_object": "ioi indirect_object_identification",
    "induction_head": "induction_heads induction_circuit two_layer_induction two_layer_induction_head",
    "is_anbn": "anbn a_n_b_n",
    "is_fibonacci": "check_fibonacci",
    "is_palindrome": "palindrome",
    "is_power_of_two": "power_of_two power_of_2",
    "is_prime": "prime primes check_prime",
    "is_square": "perfect_square check_square",
    "markov_probability": "markov markov_chain bigram_probability",
    "maximum": "max max_element",
    "mean_so_far": "running_mean cumulative_mean running_average cumulative_average prefix_mean",
    "median": "median_element",
    "minimum": "min min_element",
    "most_freq": "most_frequent",
    "multiple_above": "increment_to_multiple_of_three",
    "multiple_below": "decrement_to_multiple_of_three",
    "negate": "negation",
    "parity_so_far": "parity prefix_parity running_parity",
    "plus_one": "add_one increment_by_one",
    "prime_factors": "count_prime_factors",
    "prime_from": "next_prime",
    "reverse": "reverse_string reversal string_reversal reverse_input",
    "reverse_if_sorted": "invert_if_sorted",
    "reverse_words": "reverse_each_word word_reversal",
    "rule_110": "rule110",
    "running_max": "cumulative_max",
    "shift_by": "previous_token previous_token_head prev_token shift_right prev_token_head prev prev_tok",
    "shuffle_dyck": "shuffle_dyck1 balanced_parentheses balanced_brackets balanced_parens paren_checker "
    "bracket_checker bracket_classifier bracket_balance check_brackets matched_brackets",
    "shuffle_dyck2": "shuffle_dyck_2",
    "smaller_after": "inversions",
    "sort": "sorting sort_tokens sort_numbers sort_with_duplicates sort_ascending sort_asc ascending_sort",
    "sort_descending": "reverse_sort sort_desc",
    "sort_freq": "sort_by_frequency sort_by_freq",
    "square": "square_each_element squared",
    "sum_so_far": "prefix_sum prefix_sums cumulative_sum cumsum running_sum cum_sum",
    "swap_inner_pairs": "swap_odd_index",
    "swap_pairs": "swap_consecutive",
    "times_length": "multiply_by_length",
    "trigram_count": "trigram trigrams",
    "triple": "multiply_by_three times_three",
    "two_hop_induction": "two_hop",
    "two_sum": "2sum twosum",
    "vowel_ratio": "vowel_consonant_ratio vowel_to_consonant_ratio",
    "word_parity": "word_length_parity token_length_parity",
    "zero_below": "apply_threshold",
}

ALIASES: Mapping[str, str] = {alias: name for name, aliases in OTHER_NAMES.items() for alias in aliases.split()}
"""Each alias with the name of its program."""

SAME_CASES = {
    2: "reverse",
    3: "frac_prevs",
    4: "pair_balance",
    5: "shuffle_dyck2",
    7: "hist",
    14: "count",
    15: "twice_minus_position",
    39: "frac_prevs",
    40: "digit_sum",
    41: "absolute",
    43: "fibonacci",
    44: "count_larger",
    45: "double_first_half",
    46: "decrement",
    49: "multiple_below",
    51: "is_fibonacci",
    53: "increment_odd_positions",
    56: "zero_every_third",
    58: "mirror_first_half",
    60: "plus_one",
    62: "factorial",
    63: "count_smaller",
    64: "cube",
    67: "times_length",
    68: "multiple_above",
    69: "sign",
    72: "negate",
    75: "double",
    79: "is_prime",
    82: "halve_second_half",
    83: "triple",
    85: "square",
    87: "binarize",
    91: "zero_below",
    93: "swap_inner_pairs",
    95: "prime_factors",
    101: "is_square",
    103: "swap_pairs",
    105: "prime_from",
    106: "only_second",
    110: "insert_zeros",
    111: "last_to_front",
    113: "reverse_if_sorted",
    122: "divisible_by_three",
    124: "all_equal",
    129: "all_even",
    130: "clip",
}
"""InterpBench's cases with the answers of a program of the zoo, by their numbers. Vocabularies and lengths differ, and
true and false may be 1 and 0 there."""

SIMILAR_CASES = {
    8: ("fill_gaps", "identity"),
    11: ("same_length_words",),
    13: ("trend",),
    18: ("frequency_class",),
    19: ("collapse_runs", "starts_run"),
    20: ("spam_so_far",),
    21: ("mask_repeats", "distinct_tokens"),
    24: ("has_prev", "first_position"),
    26: ("cascade",),
    29: ("abbreviate",),
    33: ("word_parity",),
    34: ("vowel_ratio",),
    35: ("alternating_capitals",),
    36: ("emoticon_mood",),
    37: ("reverse_words",),
    38: ("alternates",),
    86: ("is_power_of_two",),
    126: ("median",),
}
"""InterpBench's cases that have relatives in the zoo; their answers or words may differ."""

SIMILAR_WORDS = {
    "abbrev": "abbreviate",
    "acronym": "abbreviate",
    "addition": "add_mod",
    "alternat": "alternates",
    "bind": "associative_recall",
    "argmin": "argmax",
    "by_length": "same_length_words",
    "carry": "increment",
    "cascad": "cascade",
    "cellular": "rule_110",
    "check_sort": "sorted_so_far",
    "classifier": "frequency_class",
    "color": "associative_recall",
    "decreasing": "sort_descending",
    "emoji": "emoticon_mood",
    "entity": "associative_recall",
    "fact": "associative_recall",
    "gender": "agree_with_first_noun",
    "grokking": "add_mod",
    "gt": "greater_than_first",
    "icl": "induction_head",
    "in_context": "induction_head",
    "increasing": "sorted_so_far",
    "interleave": "unshuffle",
    "ioi": "indirect_object",
    "is_sort": "sorted_so_far",
    "less_than": "smaller_so_far",
    "mcqa": "follow_pointer",
    "mode": "most_freq",
    "modular": "add_mod",
    "most_common": "most_freq",
    "multiplication": "multiply_mod",
    "n_gram": "bigram_count",
    "name_mover": "indirect_object",
    "ngram": "bigram_count",
    "paren": "shuffle_dyck",
    "predecessor": "decrement",
    "pronoun": "agree_with_first_noun",
    "rank": "dense_rank",
    "roll": "rotate_left",
    "s_inhibition": "indirect_object",
    "spam": "spam_so_far",
    "subtract": "difference",
    "succession": "caesar",
    "successor": "caesar",
    "sum": "sum_so_far",
    "symmetric": "is_palindrome",
    "threshold": "binarize",
    "tokens": "identity",
    "top_k": "sort_descending",
    "unique": "is_unique",
}
"""Words that suggest a program which does not have them in its name or description."""

CASE = re.compile(r"(?:interpbench_?)?(?:case_?)?0*(\d{1,4})")
PREFIX = re.compile(r"^(?:make|rasp|tracr|check|compute|calculate|find|get)_")  # of functions in other collections
SUFFIX = re.compile(r"_(?:task|program|circuit|head|sequence|list|algorithm)s?$")  # that say nothing of the task
COMMON = frozenset(
    {"all", "and", "count", "each", "first", "for", "has", "input", "last", "not", "the", "this", "token"}
)
MOST = 3  # suggestions
SHORT = 4  # letters
SIMILAR = 0.75  # the least likeness of a suggested spelling; below it, `spam` is like `spread`


def other_names(name: str) -> list[str]:
    """The aliases of a program.

    >>> other_names("reverse_words")
    ['reverse_each_word', 'word_reversal']
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
    plain = SUFFIX.sub("", bare)  # sort_list
    case = None if written.isdigit() else CASE.fullmatch(written)  # other benchmarks have numbers too
    squeezed = {one.replace("_", ""): one for one in (*ALIASES, *names)}
    for spelt in (
        name,
        written,
        bare,
        f"is_{bare}" if "check_" in written else bare,
        bare.removesuffix("s"),  # palindromes
        plain,
        plain.removesuffix("s"),
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
    meant = [program for word, program in SIMILAR_WORDS.items() if _begins_a_word(word, written)]
    spelt = [ALIASES.get(known, known) for known in get_close_matches(written, [*entries, *ALIASES], cutoff=SIMILAR)]
    shared = sorted(((_in_common(written, entry), entry.name) for entry in entries.values()), key=lambda one: -one[0])
    found = list(dict.fromkeys([*meant, *spelt, *(known for common, known in shared if common)]))[:MOST]
    if found:
        return f"did you mean {' or '.join(found)}?"
    return "`tracr zoo` and zoo.names() list all"


def _written(name: str) -> str:
    """A name in small letters, its words joined by underscores."""
    return re.sub(r"[\s/:.-]+", "_", name.strip().lower())


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


def _begins_a_word(word: str, name: str) -> bool:
    """Whether a word of a name begins so; short words, such as `mode`, must be equal (`model` is another)."""
    end = "_" if len(word) <= SHORT else ""
    return f"_{word}{end}" in f"_{name}_"


def _in_common(name: str, entry: Entry) -> int:
    """How many words a name shares with an entry; those of its name count double."""
    words = _words(name) - COMMON
    return 2 * len(words & _words(entry.name)) + len(words & _words(f"{entry.description} {' '.join(entry.tags)}"))


def _words(text: str) -> set[str]:
    """The words of a text, without the endings of plurals and verbs."""
    found = re.findall(r"[a-z]{3,}|[a-z]{3,}\d+(?=\W|_|$)", text.lower())
    return {re.sub(r"(?:ing|ed|s)$", "", word) if len(word) > 4 else word for word in found}
