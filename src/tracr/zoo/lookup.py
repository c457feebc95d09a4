"""Looking things up in the context: induction heads, names, definitions, agreement."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tracr.rasp import rasp
from tracr.rasp.programs.conditions import Condition
from tracr.rasp.rasp import SOp
from tracr.zoo.entry import at_each, prefixes, task
from tracr.zoo.pieces import MISSING, before, count, fetch, first_where, is_one_of, token_at

tokens, indices = rasp.tokens, rasp.indices

TWICE = Condition("no token more than twice", lambda xs: all(xs.count(x) <= 2 for x in xs), "leave out the third")
KEYS_TWICE = Condition(
    "no letter more than twice",
    lambda xs: all(xs.count(x) <= 2 for x in xs if x in ("a", "b", "c")),
    "leave out the third",
)


def _last_follower(xs: list[Any]) -> Any:
    """The token after the last earlier occurrence of the last token."""
    for i in range(len(xs) - 2, -1, -1):
        if xs[i] == xs[-1]:
            return xs[i + 1]
    return MISSING


@task(
    "abcd",
    6,
    shown="abcab",
    tags="lookup classic",
    says="an induction head: the token that followed the earlier occurrence of this token",
    answers=prefixes(_last_follower),
    causal=True,
    inputs=TWICE,
)
def induction_head() -> SOp:
    """The two heads as language models learn them: copy the token before, then look for it."""
    previous = before(tokens).named("previous_token")
    return fetch(previous, tokens, tokens).named("induction_head")


def _first_follower(xs: list[Any]) -> Any:
    first = xs.index(xs[-1])
    return xs[first + 1] if first + 1 < len(xs) else MISSING


@task(
    "abc",
    6,
    shown="abcaba",
    tags="lookup classic",
    says="the token that followed the first occurrence of this token",
    answers=prefixes(_first_follower),
    causal=True,
)
def induction_first() -> SOp:
    """Only the first occurrence of each token is a key."""
    occurrence = count(tokens, tokens).named("occurrence")
    key = rasp.SequenceMap(lambda token, n: token if n == 1 else "", tokens, occurrence).named("first_time")
    return fetch(before(key, 1, ""), tokens, tokens).named("induction_first")


def _two_hops(xs: list[Any]) -> Any:
    """The token after the first occurrence of the token after the first occurrence of the last token."""
    token = xs[-1]
    for _ in range(2):
        followers = [after for one, after in pairwise(xs) if one == token]
        token = followers[0] if followers else MISSING
    return token


@task(
    "abc",
    6,
    shown="abcab",
    tags="lookup classic",
    says="two-hop induction: the first follower of the first follower of this token, so far",
    answers=prefixes(_two_hops),
    causal=True,
)
def two_hop_induction() -> SOp:
    """`induction_first`, and the same look-up again from its answer."""
    occurrence = count(tokens, tokens).named("occurrence")
    key = rasp.SequenceMap(lambda token, n: token if n == 1 else "", tokens, occurrence).named("first_time")
    follows = before(key, 1, "").named("follows")
    first_hop = fetch(follows, tokens, tokens).named("first_hop")
    return fetch(follows, first_hop, tokens).named("two_hop_induction")


@task(
    "abc01",
    6,
    shown="a1b0a",
    tags="lookup classic",
    says="associative recall: at a letter, the token after the earlier occurrence of that letter",
    answers=at_each(lambda xs, i: _last_follower(xs[: i + 1]) if xs[i] in "abc" else MISSING),
    causal=True,
    inputs=KEYS_TWICE,
)
def associative_recall() -> SOp:
    """An induction head whose keys are letters."""
    key = rasp.Map(lambda token: token if token in "abc" else "", tokens).named("key")
    query = rasp.Map(lambda token: token if token in "abc" else "none", tokens).named("query")
    return fetch(before(key, 1, ""), query, tokens).named("associative_recall")


def _other_name(xs: list[Any]) -> Any:
    names = xs[:2]
    if len(names) < 2:
        return MISSING
    return names[1] if xs[-1] == names[0] else names[0]


@task(
    "abc",
    6,
    shown="abcb",
    tags="lookup classic",
    says="indirect object: the one of the first two tokens that this token is not",
    answers=prefixes(_other_name),
    causal=True,
)
def indirect_object() -> SOp:
    """Two heads fetch the names, and the MLP drops the one that is repeated."""
    first, second = token_at(0).named("first_name"), token_at(1).named("second_name")
    answer = rasp.SequenceMap(lambda name, token: name == token, first, tokens).named("is_first_name")
    chosen = rasp.SequenceMap(lambda x, y: (x, y), first, second).named("names")
    return rasp.SequenceMap(
        lambda names, repeated: MISSING if MISSING in names else names[1] if repeated else names[0], chosen, answer
    ).named("indirect_object")


@task(
    "abc",
    5,
    shown="abcab",
    tags="lookup repeats",
    says="the first token of the input that occurs only once",
    answers=lambda xs: [next((x for x in xs if xs.count(x) == 1), MISSING)] * len(xs),
)
def first_unique_token() -> SOp:
    """Numbers the tokens that occur once, and copies the first."""
    single = (count(tokens, tokens).named("hist") == 1).named("single")
    return fetch(first_where(single), True, tokens).named("first_unique_token")


@task(
    "abc|",
    6,
    shown="abc|a",
    tags="lookup classic",
    says="docstring: from the first bar on, the tokens before it once more, in their order",
    answers=at_each(
        lambda xs, i: (
            MISSING if "|" not in xs[: i + 1] or i >= 2 * xs.index("|") else xs[: xs.index("|")][i - xs.index("|")]
        )
    ),
    causal=True,
)
def docstring() -> SOp:
    """Counts the tokens since the bar, and fetches the token with that number if it is before the bar."""
    bars = count(tokens, "|").named("bars")
    in_body = (bars > 0).named("in_body")
    since = count(in_body, True).named("since_bar")
    number = rasp.SequenceMap(lambda n, i: n - 1 if 0 < n <= (i + 1) // 2 else -1, since, indices).named("number")
    return token_at(number).named("docstring")


@task(
    "spx",
    6,
    shown="sxpx",
    tags="lookup language",
    says="agreement: the number (s or p) of the last noun so far",
    answers=prefixes(lambda xs: next((x for x in reversed(xs) if x in "sp"), MISSING)),
    causal=True,
)
def agree_with_last_noun() -> SOp:
    """Numbers the nouns; each position fetches the noun with its own count."""
    noun = is_one_of("sp").named("is_noun")
    nouns = count(noun, True).named("nouns_so_far")
    key = rasp.SequenceMap(lambda one, n: n if one else 0, noun, nouns).named("noun_number")
    wanted = rasp.Map(lambda n: n if n else -1, nouns).named("wanted")
    return fetch(key, wanted, tokens).named("agree_with_last_noun")


@task(
    "spx",
    6,
    shown="xspx",
    tags="lookup language",
    says="agreement: the number (s or p) of the first noun so far, whatever attractors come after it",
    answers=prefixes(lambda xs: next((x for x in xs if x in "sp"), MISSING)),
    causal=True,
)
def agree_with_first_noun() -> SOp:
    """The noun before which there is none."""
    noun = is_one_of("sp").named("is_noun")
    nouns = count(noun, True).named("nouns_so_far")
    is_first = rasp.SequenceMap(lambda one, n: one and n == 1, noun, nouns).named("is_first_noun")
    return fetch(is_first, True, tokens).named("agree_with_first_noun")


@task(
    "abc_",
    6,
    shown="ab_cb",
    tags="lookup language",
    says="the first letter of the current word; words end at an underscore",
    answers=prefixes(lambda xs: "".join(xs).split("_")[-1][:1] or MISSING),
    causal=True,
)
def word_initial() -> SOp:
    """Positions of one word have the same number of underscores before them."""
    word = count(tokens, "_").named("word")
    starts = rasp.SequenceMap(lambda now, last: now != "_" and last == "_", tokens, before(tokens, 1, "_"))
    key = rasp.SequenceMap(lambda start, n: n if start else -1, starts.named("starts"), word).named("initial_of")
    return fetch(key, word, tokens).named("word_initial")
