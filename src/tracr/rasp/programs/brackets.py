"""Brackets: whether they balance, with and without nesting.

The `shuffle_dyck` programs give one answer for the whole input; each pair must balance on its own. The `dyck`
programs give one answer for each prefix, and different pairs must nest: "T" where the tokens so far are balanced,
"P" where more tokens could balance them, "F" where nothing can. All ignore other tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from tracr.errors import ExpressionError
from tracr.rasp import rasp
from tracr.rasp.base import checked, items
from tracr.rasp.programs.counting import make_frac_prevs
from tracr.rasp.rasp import Comparison, SOp
from tracr.values import Value

__all__ = [
    "make_closer",
    "make_dyck",
    "make_dyck1",
    "make_dyck2",
    "make_pair_balance",
    "make_shuffle_dyck",
    "make_shuffle_dyck2",
]


def make_pair_balance(sop: SOp, open_token: Value, close_token: Value) -> SOp:
    """The fraction of `open_token` minus that of `close_token`, over the positions up to this one.

    Negative where more were closed than opened, and exactly 0 where they balance.

    >>> make_pair_balance(rasp.tokens, "(", ")")("())(")
    [1, 0.0, -0.3333333333333333, 0.0]
    """
    sop = checked(sop, SOp, "the s-op", "make_pair_balance")
    opens = make_frac_prevs((sop == open_token).named("bools_open")).named("opens")
    closes = make_frac_prevs((sop == close_token).named("bools_close")).named("closes")
    return rasp.numerical(rasp.LinearSequenceMap(opens, closes, 1, -1)).named("pair_balance")


def make_shuffle_dyck(pairs: Iterable[Sequence[Value]]) -> SOp:
    """Whether each of the `pairs` of tokens is balanced, the others ignored; the same answer everywhere.

    This is the program the paper calls dyck-n. Different pairs need not nest: `([)]` is balanced (see `make_dyck`).

    >>> make_shuffle_dyck(["()"])("(())"), make_shuffle_dyck(["()"])("())(")
    ([True, True, True, True], [False, False, False, False])
    """
    checked = _pairs(pairs, "make_shuffle_dyck")
    balances = [make_pair_balance(rasp.tokens, *pair).named(f"balance_{pair[0]}{pair[1]}") for pair in checked]

    any_negative = rasp.numerical(reduce(SOp.__or__, [balance < 0 for balance in balances])).named("any_negative")
    select_all = rasp.Select(1, 1, Comparison.EQ).named("select_all")
    has_neg = rasp.numerical(rasp.Aggregate(select_all, any_negative, default=0)).named("has_neg")

    all_zero = reduce(SOp.__and__, [balance == 0 for balance in balances]).named("all_zero")
    select_last = rasp.Select(rasp.indices, rasp.length - 1, Comparison.EQ).named("select_last")
    last_zero = rasp.Aggregate(select_last, all_zero).named("last_zero")

    return (last_zero & ~has_neg).named("shuffle_dyck")


def make_shuffle_dyck2() -> SOp:
    """`make_shuffle_dyck` for the paper's two pairs, `()` and `{}`: its dyck-2.

    >>> make_shuffle_dyck2()("({)}")
    [True, True, True, True]
    """
    return make_shuffle_dyck(["()", "{}"]).named("shuffle_dyck2")


def make_dyck1(pair: Sequence[Value] = "()") -> SOp:
    """For each prefix, whether one pair of tokens is balanced ("T"), can still be ("P") or cannot ("F").

    The RASP paper's Dyck-1-PTF.

    >>> make_dyck1()("(()))(")
    ['P', 'P', 'P', 'T', 'F', 'F']
    """
    ((open_token, close_token),) = _pairs([pair], "make_dyck1")
    balance = make_pair_balance(rasp.tokens, open_token, close_token).named("balance")
    return _verdict((balance < 0).named("negative"), balance).named("dyck1")


def make_dyck(pairs: Iterable[Sequence[Value]]) -> SOp:
    """For each prefix, whether it is balanced ("T"), can still be ("P") or cannot ("F"); different pairs must nest.

    The RASP paper's Dyck-k-PTF. A bracket's level is the depth it opens or closes. The brackets of one level, in
    their order, open and close in turn, so the one before a closing bracket must be its opening one.

    >>> make_dyck(["()", "[]"])("([)]")
    ['P', 'P', 'F', 'F']
    >>> make_dyck(["()", "[]"])("([])")
    ['P', 'P', 'P', 'T']
    """
    nesting = _Nesting(_pairs(pairs, "make_dyck"), "make_dyck")
    return nesting.verdict().named("dyck")


def make_dyck2() -> SOp:
    """`make_dyck` for the pairs `()` and `{}`: Dyck-2.

    >>> make_dyck2()("({})}")
    ['P', 'P', 'P', 'T', 'F']
    """
    return make_dyck(["()", "{}"]).named("dyck2")


def make_closer(pairs: Iterable[Sequence[Value]]) -> SOp:
    """The bracket that closes the innermost open one; `None` where nothing is open, or the brackets do not nest.

    Meant for generation: token by token, the model closes the open brackets.

    >>> make_closer(["()", "[]"])("([])")
    [')', ']', ')', None]
    >>> make_closer(["()", "[]"])("([)")
    [')', ']', None]
    """
    checked = _pairs(pairs, "make_closer")
    nesting = _Nesting(checked, "make_closer")
    # The brackets of the level that is open now: the last of them opened it.
    at_depth = rasp.Select(nesting.level, nesting.depth, Comparison.EQ).named("at_depth")
    count = rasp.SelectorWidth((at_depth & nesting.prevs).named("at_depth_so_far")).named("count")
    last = rasp.Select(nesting.place, count, Comparison.EQ).named("last")
    innermost = rasp.Aggregate((at_depth & last).named("last_at_depth"), nesting.kind, default=0).named("innermost")
    closing = {number: pair[1] for number, pair in enumerate(checked, 1)}
    return rasp.SequenceMap(
        lambda verdict, opened: closing.get(opened) if verdict == "P" else None, nesting.verdict(), innermost
    ).named("closer")


class _Nesting:
    """The nesting of brackets. A bracket's level is the depth it opens or closes; its place counts within the level."""

    def __init__(self, pairs: list[tuple[Value, Value]], maker: str) -> None:
        kinds = {token: kind for n, pair in enumerate(pairs, 1) for token, kind in zip(pair, (n, -n), strict=True)}
        if len(kinds) < 2 * len(pairs):
            what = f"{maker} needs each token in one place of one pair, got {pairs!r}"
            raise ExpressionError(what, hint='write ["()", "{}"]')
        # The number of the pair, negative for closing brackets, 0 for other tokens.
        self.kind = rasp.Map(lambda token: kinds.get(token, 0), rasp.tokens).named("kind")
        step = rasp.Map(lambda n: (n > 0) - (n < 0), self.kind).named("step")
        mean_step = make_frac_prevs(step).named("mean_step")
        depth = rasp.SequenceMap(lambda mean, i: round(mean * (i + 1)), mean_step, rasp.indices).named("depth")
        self.depth = depth
        # Other tokens get a number between two levels, which no bracket has.
        self.level = rasp.SequenceMap(lambda d, n: d if n > 0 else d + 1 if n < 0 else d + 0.5, depth, self.kind).named(
            "level"
        )
        self.same_level = rasp.Select(self.level, self.level, Comparison.EQ).named("same_level")
        self.prevs = rasp.Select(rasp.indices, rasp.indices, Comparison.LEQ).named("prevs")
        self.place = rasp.SelectorWidth((self.same_level & self.prevs).named("same_level_so_far")).named("place")

    def verdict(self) -> SOp:
        """Whether each prefix nests: the bracket before a closing one, on its level, must have opened it."""
        place_before = rasp.Select(self.place, self.place, lambda key, query: key == query - 1).named("place_before")
        last_of_level = (self.same_level & place_before).named("last_of_level")
        partner = rasp.Aggregate(last_of_level, self.kind, default=0).named("partner")
        mismatch = rasp.SequenceMap(lambda opened, n: n < 0 and opened != -n, partner, self.kind).named("mismatch")
        return _verdict(mismatch, self.depth)


def _verdict(wrong: SOp, depth: SOp) -> SOp:
    """Three answers: "F" from the first position that is `wrong` on, before it "T" where the `depth` is 0, else "P"."""
    failed = (make_frac_prevs(wrong).named("frac_wrong") > 0).named("failed")
    balanced = (depth == 0).named("balanced")
    return rasp.SequenceMap(lambda fails, fits: "F" if fails else "T" if fits else "P", failed, balanced)


def _pairs(pairs: Iterable[Sequence[Value]], maker: str) -> list[tuple[Value, Value]]:
    """The pairs, checked: at least one, and two tokens each."""
    found = [tuple(items(pair, maker)) for pair in items(pairs, maker)]
    if not found or any(len(pair) != 2 for pair in found):
        raise ExpressionError(f"{maker} needs at least one pair of tokens, got {found!r}", hint='write ["()", "{}"]')
    return [(pair[0], pair[1]) for pair in found]
