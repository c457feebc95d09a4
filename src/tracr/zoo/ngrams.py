"""N-grams: counting them, Markov chains, skip-bigrams."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tracr.rasp import rasp
from tracr.rasp.rasp import Comparison, SOp
from tracr.zoo.entry import prefixes, task
from tracr.zoo.pieces import MISSING, before, count, everything, share

tokens, indices = rasp.tokens, rasp.indices


@task(
    "abc",
    6,
    shown="abcab",
    tags="ngrams classic",
    says="how often the last two tokens came in this order so far",
    answers=prefixes(lambda xs: sum(xs[i : i + 2] == xs[-2:] for i in range(len(xs) - 1)) if len(xs) > 1 else 1),
    causal=True,
)
def bigram_count() -> SOp:
    """Counts the positions with the same token and the same token before."""
    bigram = rasp.SequenceMap(lambda x, y: (x, y), before(tokens), tokens).named("bigram")
    return count(bigram, bigram).named("bigram_count")


@task(
    "ab",
    7,
    shown="abbabb",
    tags="ngrams classic",
    says="how often the last three tokens came in this order so far, 0 before there are three",
    answers=prefixes(lambda xs: sum(xs[i : i + 3] == xs[-3:] for i in range(len(xs) - 2))),
    causal=True,
)
def trigram_count() -> SOp:
    """Counts equal trigrams; the first two positions have none."""
    bigram = rasp.SequenceMap(lambda x, y: (x, y), before(tokens, 2), before(tokens)).named("two_before")
    trigram = rasp.SequenceMap(lambda xy, z: (*xy, z) if MISSING not in xy else MISSING, bigram, tokens)
    trigram = trigram.named("trigram")
    wanted = rasp.Map(lambda xyz: xyz if xyz != MISSING else "none", trigram).named("wanted")
    return count(trigram, wanted).named("trigram_count")


@task(
    "abc",
    6,
    shown="abcab",
    tags="ngrams",
    says="whether the last two tokens came in this order before",
    answers=prefixes(lambda xs: any(xs[i : i + 2] == xs[-2:] for i in range(len(xs) - 2))),
    causal=True,
)
def bigram_seen() -> SOp:
    """Whether the bigram was counted more than once."""
    bigram = rasp.SequenceMap(lambda x, y: (x, y), before(tokens), tokens).named("bigram")
    return (count(bigram, bigram).named("bigram_count") > 1).named("bigram_seen")


def _after(xs: list[Any], token: Any) -> list[Any]:
    return [y for x, y in pairwise(xs) if x == token]


@task(
    "ab",
    6,
    shown="aabab",
    tags="ngrams numerical classic",
    says="Markov chain: the fraction of 'a' among the tokens that followed this token so far",
    answers=prefixes(lambda xs: _after(xs, xs[-1]).count("a") / max(1, len(_after(xs, xs[-1])))),
    causal=True,
)
def markov_probability() -> SOp:
    """The mean of "is a" over the positions whose previous token is this token."""
    is_a = rasp.numerical(tokens == "a").named("is_a")
    follows = rasp.Select(before(tokens), tokens, Comparison.EQ).named("follows")
    return share(follows, is_a).named("markov_probability")


@task(
    "abc",
    6,
    shown="cabb",
    tags="ngrams classic",
    says="skip-bigram: whether this is a 'b' with an 'a' somewhere before it",
    answers=prefixes(lambda xs: xs[-1] == "b" and "a" in xs),
    causal=True,
)
def skip_bigram() -> SOp:
    """A head looks for 'a'; the MLP adds the condition on this token."""
    found = (share(everything(), tokens == "a") > 0).named("a_so_far")
    return rasp.SequenceMap(lambda a, token: a and token == "b", found, tokens).named("skip_bigram")


@task(
    "abc",
    6,
    shown="abcab",
    tags="ngrams",
    says="the number of times 'ab' occurs in the input",
    answers=lambda xs: ["".join(xs).count("ab")] * len(xs),
)
def count_ab() -> SOp:
    """Marks the ends of 'ab', and counts them."""
    ends = rasp.SequenceMap(lambda x, y: x == "a" and y == "b", before(tokens), tokens).named("ends_ab")
    return count(ends, True).named("count_ab")


@task(
    "abc",
    6,
    shown="acabc",
    tags="ngrams",
    says="whether 'ab' has occurred so far",
    answers=prefixes(lambda xs: "ab" in "".join(xs)),
    causal=True,
)
def ab_so_far() -> SOp:
    """The share of the ends of 'ab', compared with 0."""
    is_a, is_b = (tokens == "a").named("is_a"), (tokens == "b").named("is_b")
    ends = (before(is_a, 1, False) & is_b).named("ends_ab")
    return (share(everything(), ends) > 0).named("ab_so_far")
