"""Chooses cases by words: names, tags of the zoo, `core`, `all`, and private cases."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tracr import zoo
from tracr.errors import UnknownName
from tracr.lab.catalogue import case, cases
from tracr.lab.features.feature_case import FEATURES, named_feature_case
from tracr.lab.fresh import private
from tracr.lab.one_case import Case
from tracr.spelling import did_you_mean
from tracr.zoo.aliases import find

__all__ = ["CORE", "named_case", "select_cases"]

NAMES = """
hist_bos hist2 count_less_freq reverse sort sort_composite sort_freq most_freq shuffle_dyck shuffle_dyck2
dyck1 induction copy_last rotate_left rotate_right_two swap_pairs swap_ends mirror_first_half unshuffle
copy_middle swap_halves equals_mirrored palindrome_errors is_palindrome is_doubled induction_first
first_unique_token docstring agree_with_last_noun agree_with_first_noun word_initial bigram_count
trigram_count bigram_seen count_ab ab_so_far distinct_so_far distinct is_most_frequent same_parity all_seen
first_duplicate first_repeated_token first_position repeat_distance xor_ends binary_mod_three
second_difference spread dense_rank sort_descending evens_first median in_sorted_place argmax sorted_so_far
count_records run_number run_length whole_run_length longest_run collapse_runs count_doubles since_last_a
until_next_a word_length period_two is_anbn nested_so_far never_negative count_groups mean_depth equal_counts
is_closed partner_distance distinct_tokens remove_gaps rule_90_twice sort_pairs
"""
CORE = tuple(NAMES.split())
"""Cases whose compiled models are neither tiny nor large: 23 to 110 edges (writer, reader input) at level 1."""

PRIVATE = re.compile(r"private-(\d+)-(\d+)")
DRAW = re.compile(r"private:(\d+)(?::(\d+))?")


DRAWN: dict[int, list[Case]] = {}
"""The private cases that were drawn, by their seed: a case has one object, however many are drawn with it."""


def _drawn(seed: int, count: int) -> list[Case]:
    known = DRAWN.setdefault(seed, [])
    if len(known) < count:
        known += private(seed, count)[len(known) :]
    return known[:count]


def named_case(name: str) -> Case:
    """The case of a name: a program of the zoo at its default size, `private-SEED-NUMBER`, or `features:DIAL=VALUE`.

    >>> named_case("private-7-1").name
    'private-7-1'
    """
    drawn = named_feature_case(name)
    if drawn is not None:
        return drawn
    found = PRIVATE.fullmatch(name)
    if found:
        seed, place = map(int, found.groups())
        return _drawn(seed, place + 1)[place]
    return case(name)


def select_cases(words: Iterable[str]) -> list[Case]:
    """The cases that words choose, each once.

    A word is the name of a case, a tag of the zoo, `core`, `all`, `private:SEED:COUNT` (by default 8 cases), the name
    `private-SEED-NUMBER` of one of them, or `features` with dials (`features:density=0.02`).

    >>> [one.name for one in select_cases(["hist", "automata"])]
    ['hist', 'rule_110', 'rule_90_twice']
    """
    found = {one.name: one for word in words for one in _selected(word)}
    if not found:
        raise UnknownName("no case is chosen", hint="name cases, tags, core or all; `tracr lab cases` lists them")
    return list(found.values())


def _selected(word: str) -> list[Case]:
    drawn = DRAW.fullmatch(word)
    if drawn:
        return _drawn(int(drawn[1]), int(drawn[2] or 8))
    if word == "all":
        return cases()
    if word == "core":
        return [case(name) for name in CORE]
    if word in zoo.ENTRIES or word.partition(":")[0] == FEATURES or PRIVATE.fullmatch(word):
        return [named_case(word)]
    if word in zoo.tags():
        return cases(word)
    meant = find(word, zoo.ENTRIES)  # another name, after tags: parity is one
    if meant is not None:
        return [named_case(meant)]
    known = ["core", "all", *zoo.tags(), *zoo.ENTRIES]
    raise UnknownName(
        f"{word!r} is no case and no tag", hint=did_you_mean(word, known, "`tracr lab cases` lists cases and tags")
    )
