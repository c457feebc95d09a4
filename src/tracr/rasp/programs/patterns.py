"""Programs that read neighbours: shifts, patterns, induction, counting on, functions of several s-ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from tracr.errors import ExpressionError
from tracr.rasp import rasp
from tracr.rasp.base import checked, items
from tracr.rasp.rasp import Comparison, SOp
from tracr.values import Value

__all__ = ["detect_pattern", "make_counter", "make_induction", "make_nary_sequencemap", "shift_by"]


def shift_by(offset: int, sop: SOp) -> SOp:
    """The value of `sop` `offset` positions earlier (later if negative), `None` where there is no such position.

    >>> shift_by(1, rasp.tokens)("abc")
    [None, 'a', 'b']
    >>> shift_by(-2, rasp.tokens)("abc")
    ['c', None, None]
    """
    earlier = rasp.Select(rasp.indices, rasp.indices, lambda key, query: key + offset == query).named("earlier")
    return rasp.Aggregate(earlier, sop).named(f"shift_by({offset})")


def detect_pattern(sop: SOp, pattern: Sequence[Value]) -> SOp:
    """Whether an occurrence of `pattern` in `sop` ends here; `None` where it would have to start before the input.

    >>> detect_pattern(rasp.tokens, "ab")("aabab")
    [None, False, True, False, True]
    """
    pattern = items(pattern, "detect_pattern")
    if not pattern:
        raise ExpressionError(
            "detect_pattern needs at least one value to look for, got an empty pattern", hint='write "ab" or [1, 2]'
        )
    sop = checked(sop, SOp, "the s-op", "detect_pattern")
    ahead = len(pattern) - 1
    found = [shift_by(ahead - i, sop == value) if i < ahead else sop == value for i, value in enumerate(pattern)]
    return reduce(SOp.__and__, found).named("detect_pattern")


def make_induction() -> SOp:
    """The token that followed the last earlier occurrence of this position's token; `None` if there is none.

    An induction head, as language models learn it: the first step gives each position the token before it; the second
    looks for a position whose previous token is its own token. The occurrences of each token are numbered, so that
    at most one position matches. The program never looks ahead, so its causal meaning is the same.

    >>> make_induction()("abacab")
    [None, None, 'b', None, 'c', 'a']
    """
    same_token = rasp.Select(rasp.tokens, rasp.tokens, Comparison.EQ).named("same_token")
    prevs = rasp.Select(rasp.indices, rasp.indices, Comparison.LEQ).named("prevs")
    occurrence = rasp.SelectorWidth((same_token & prevs).named("same_token_so_far")).named("occurrence")
    numbered = rasp.SequenceMap(lambda token, n: (token, n), rasp.tokens, occurrence).named("numbered")
    before = shift_by(1, numbered).named("before")
    wanted = rasp.SequenceMap(lambda token, n: (token, n - 1), rasp.tokens, occurrence).named("wanted")
    # `before` is `None` at the start, which `Comparison.EQ` refuses.
    follows = rasp.Select(before, wanted, lambda key, query: key == query).named("follows")
    return rasp.Aggregate(follows, rasp.tokens).named("induction")


def make_counter(highest: int) -> SOp:
    """The next number, counting on in the step between the last two (by 1 at first); `None` outside 0 to `highest`.

    Meant for generation: token by token, the model counts.

    >>> make_counter(9)([2, 4, 6]), make_counter(9)([5, 3, 1])
    ([3, 6, 8], [6, 1, None])
    """

    def following(now: int, before: int | str) -> int | None:
        number = now + 1 if isinstance(before, str) else 2 * now - before
        return number if 0 <= number <= highest else None

    just_before = rasp.Select(rasp.indices, rasp.indices, lambda key, query: key + 1 == query).named("just_before")
    before = rasp.Aggregate(just_before, rasp.tokens, default="start").named("before")
    return rasp.SequenceMap(following, rasp.tokens, before).named("counter")


def make_nary_sequencemap(f: Callable[..., Any], *sops: SOp) -> SOp:
    """`f` of the values of any number of s-ops at the same position; `None` if any of them is.

    The values are gathered into tuples, one s-op at a time, and the last step calls `f`.

    >>> make_nary_sequencemap(lambda x, y, z: x + y * z, rasp.indices, rasp.length, rasp.Full(10))("abc")
    [30, 31, 32]
    """
    if not sops:
        raise ExpressionError("make_nary_sequencemap needs at least one s-op", hint="pass them after the function")
    if len(sops) == 1:
        return rasp.Map(f, sops[0])
    if len(sops) == 2:
        return rasp.SequenceMap(f, sops[0], sops[1])
    gathered: SOp = rasp.SequenceMap(lambda x, y: (x, y), sops[0], sops[1]).named("gathered")
    for sop in sops[2:-1]:
        gathered = rasp.SequenceMap(lambda xs, y: (*xs, y), gathered, sop).named("gathered")
    return rasp.SequenceMap(lambda xs, y: f(*xs, y), gathered, sops[-1])
