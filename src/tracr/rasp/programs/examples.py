"""One ready-made program of each kind, small enough to look at."""

from __future__ import annotations

from dataclasses import dataclass

from tracr.rasp import rasp
from tracr.rasp.programs import brackets, counting, ordering, patterns
from tracr.rasp.rasp import SOp
from tracr.rasp.values import Value

__all__ = ["EXAMPLES", "Example"]


@dataclass(frozen=True)
class Example:
    """A program with the vocabulary and the maximum length (BOS not counted) it is usually compiled for."""

    program: SOp
    vocab: tuple[Value, ...]
    max_seq_len: int
    description: str


def _counting(letters: tuple[Value, ...]) -> dict[str, Example]:
    tokens = rasp.tokens
    is_x = (tokens == "x").named("is_x")
    return {
        "length": Example(counting.make_length(), letters, 5, "the length of the input"),
        "hist": Example(counting.make_hist(), letters, 5, "how often each token occurs"),
        "hist_bos": Example(counting.make_hist_bos(), ("^", *letters), 5, "the same, of inputs that begin with '^'"),
        "hist2": Example(counting.make_hist2(), letters, 5, "how many different tokens occur as often as each"),
        "has_prev": Example(counting.make_has_prev(tokens), letters, 5, "whether the token occurred before"),
        "count": Example(counting.make_count(tokens, "a"), letters, 5, "how many 'a' there are"),
        "count_less_freq": Example(counting.make_count_less_freq(1), letters, 5, "how many tokens occur only once"),
        "frac_prevs": Example(counting.make_frac_prevs(is_x), tuple("abcx"), 5, "the fraction of 'x' so far"),
    }


def _ordering(letters: tuple[Value, ...]) -> dict[str, Example]:
    tokens, numbers = rasp.tokens, (1, 2, 3, 4)
    unique = ordering.make_sort_unique(tokens, tokens)
    duplicates = ordering.make_sort(tokens, tokens, max_seq_len=4, min_key=1)
    composite = ordering.make_sort_composite(tokens, tokens)
    return {
        "reverse": Example(ordering.make_reverse(tokens), letters, 5, "the input backwards"),
        "sort_unique": Example(unique, numbers, 4, "sorts different numbers"),
        "sort": Example(duplicates, numbers, 4, "sorts numbers, equal ones allowed"),
        "sort_composite": Example(composite, letters, 4, "sorts anything with an order, equal ones allowed"),
        "sort_freq": Example(ordering.make_sort_freq(4), letters, 4, "the tokens, most frequent first"),
        "most_freq": Example(ordering.make_most_freq(), letters, 4, "each token once, most frequent first"),
    }


def _brackets() -> dict[str, Example]:
    one, two = tuple("()a"), tuple("(){}")
    balance = brackets.make_pair_balance(rasp.tokens, "(", ")")
    return {
        "pair_balance": Example(balance, one, 5, "fraction of '(' minus that of ')'"),
        "shuffle_dyck": Example(brackets.make_shuffle_dyck(["()"]), one, 5, "whether '(' and ')' are balanced"),
        "shuffle_dyck2": Example(brackets.make_shuffle_dyck2(), two, 4, "whether '()' and '{}' are balanced"),
        "dyck1": Example(brackets.make_dyck1(), one, 5, "T, P, F: '()' are balanced so far, can be, cannot be"),
        "dyck2": Example(brackets.make_dyck2(), two, 6, "T, P, F: '()' and '{}' nest so far, can, cannot"),
        "closer": Example(brackets.make_closer(["()", "{}"]), two, 4, "the bracket that closes the innermost open one"),
    }


def _patterns(letters: tuple[Value, ...]) -> dict[str, Example]:
    tokens = rasp.tokens
    last_three = (tokens, patterns.shift_by(1, tokens), patterns.shift_by(2, tokens))
    majority = patterns.make_nary_sequencemap(lambda x, y, z: int(x + y + z >= 2), *last_three).named("majority")
    return {
        "shift_by": Example(patterns.shift_by(1, tokens), letters, 5, "the token before"),
        "detect_pattern": Example(patterns.detect_pattern(tokens, "ab"), letters, 5, "where 'ab' ends"),
        "induction": Example(patterns.make_induction(), letters, 5, "what followed the same token the last time"),
        "counter": Example(
            patterns.make_counter(6), tuple(range(7)), 5, "the next number, in the steps of the last two"
        ),
        "nary_sequencemap": Example(majority, (0, 1), 5, "the majority of the last three bits"),
    }


_LETTERS = tuple("abc")

EXAMPLES: dict[str, Example] = _counting(_LETTERS) | _ordering(_LETTERS) | _brackets() | _patterns(_LETTERS)
