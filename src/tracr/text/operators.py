"""The operators and built-in operations: plain values are computed, s-ops and selectors give new expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracr.errors import TracrError
from tracr.rasp.attention import Aggregate, Select, Selector, SelectorAnd, SelectorNot, SelectorOr, SelectorWidth
from tracr.rasp.elementwise import Full, Map, SequenceMap, SOp, indices, length
from tracr.rasp.functions import OPERATORS, BinaryOperator, Comparison, ConstantOperator, UnaryOperator
from tracr.text.operations import Choice, ChoiceElse, ChoiceThen, DictionaryLookup, Item, Kept, Member, Otherwise
from tracr.text.values import HEAVIEST, Entries, Items, Misfit, checked, describe, is_atom

__all__ = [
    "BUILTINS",
    "aggregate",
    "binary",
    "contains",
    "count",
    "entries",
    "has_focus",
    "index",
    "select",
    "ternary",
    "unary",
    "width",
]

ELEMENTWISE = {"^": "**", "and": "both", "or": "either"}  # the name of an operator among the functions of s-ops
UNARY = {"-": "neg", "+": "pos"}
OF_DICTIONARIES = ("==", "!=", "and", "or", "not")
NEEDS_SOP = "an s-op is made of tokens, indices, length and operators on them"


def unary(symbol: str, x: Any) -> Any:
    """`symbol x`, where the symbol is `not`, `-`, `+`, `round` or `indicator`."""
    if isinstance(x, SOp):
        return _elementwise(UnaryOperator(UNARY.get(symbol, symbol)), x)
    if isinstance(x, Selector) and symbol == "not":
        return SelectorNot(x)
    if not is_atom(x) and not (symbol == "not" and isinstance(x, list | dict)):
        raise Misfit(f"{symbol} has no meaning for {describe(x)}", "write it before a number, a boolean or an s-op")
    return _computed(OPERATORS[UNARY.get(symbol, symbol)], symbol, x)


def binary(symbol: str, x: Any, y: Any) -> Any:
    """`x symbol y`."""
    if symbol == "in":
        return _contained(x, y)
    if isinstance(x, Selector) or isinstance(y, Selector):
        return _selectors(symbol, x, y)
    if isinstance(x, SOp) or isinstance(y, SOp):
        return _pairwise(ELEMENTWISE.get(symbol, symbol), symbol, x, y)
    for value in (x, y):
        if not (is_atom(value) or isinstance(value, list) or (isinstance(value, dict) and symbol in OF_DICTIONARIES)):
            raise Misfit(f"{symbol} has no meaning for {describe(value)}", "its sides are values, s-ops or selectors")
    if isinstance(x, list) or isinstance(y, list):
        _check_size(symbol, x, y)
    return _computed(OPERATORS["**" if symbol == "^" else symbol], symbol, x, y)


def ternary(then: Any, condition: SOp, otherwise: Any) -> SOp:
    """`then if condition else otherwise`, position by position: both are computed everywhere."""
    for value in (then, otherwise):
        if not (is_atom(value) or isinstance(value, SOp)):
            raise Misfit(
                f"an s-op as condition chooses a value at every position, and {describe(value)} is not such a value",
                "use atoms or s-ops on both sides of if ... else",
            )
    if isinstance(then, SOp) and isinstance(otherwise, SOp):
        return SequenceMap(Otherwise(), SequenceMap(Kept(), condition, then), otherwise)
    if isinstance(then, SOp):
        return SequenceMap(ChoiceThen(otherwise), condition, then)
    if isinstance(otherwise, SOp):
        return SequenceMap(ChoiceElse(then), condition, otherwise)
    return _elementwise(Choice(then, otherwise), condition)


def index(target: Any, place: Any) -> Any:
    """`target[place]`."""
    if isinstance(target, list | str):
        if isinstance(place, SOp):
            return _elementwise(Item(_atoms(target, "a list indexed by an s-op")), place)
        if not isinstance(place, int):
            raise Misfit(f"a list is indexed by an integer or an s-op, not {describe(place)}")
        if not -len(target) <= place < len(target):
            raise Misfit(f"the index {place} is out of range for {describe(target)}")
        return target[place]
    if isinstance(target, dict):
        if isinstance(place, SOp):
            values = _atoms(target.values(), "a dictionary indexed by an s-op")
            return _elementwise(DictionaryLookup(tuple(zip(target, values, strict=True))), place)
        if not is_atom(place) or place not in target:
            raise Misfit(f"the dictionary has no key {describe(place)}", f"its keys are {', '.join(map(repr, target))}")
        return target[place]
    if isinstance(target, SOp):
        if not isinstance(place, int) or isinstance(place, bool):
            raise Misfit(
                f"an s-op is indexed by an integer, not {describe(place)}",
                "load_from_location(s, place) takes the place from an s-op",
            )
        where = place if place >= 0 else length + place
        return Aggregate(select(indices, where, "=="), target, 0)
    raise Misfit(f"{describe(target)} cannot be indexed", "lists, strings, dictionaries and s-ops can")


def select(keys: Any, queries: Any, comparison: str) -> Select:
    """`select(keys, queries, comparison)`; a constant has the same value at every position."""
    return Select(_as_sop(keys, "select"), _as_sop(queries, "select"), Comparison(comparison))


def aggregate(selector: Any, sop: Any, default: Any = 0) -> Aggregate:
    """`aggregate(selector, sop, default)`."""
    if not isinstance(selector, Selector):
        raise Misfit(f"aggregate needs a selector first, not {describe(selector)}", "make one with select(k, q, ==)")
    if not is_atom(default):
        raise Misfit(
            f"the default of aggregate is a number, a string or a boolean, not {describe(default)}",
            "for an s-op x write: aggregate(s, v) if has_focus(s) else x",
        )
    return Aggregate(selector, _as_sop(sop, "aggregate"), default)


def width(selector: Any) -> SelectorWidth:
    """`selector_width(selector)`."""
    return SelectorWidth(_selector(selector, "selector_width"))


def has_focus(selector: Any) -> SOp:
    """`has_focus(selector)`: whether anything is selected."""
    return Aggregate(_selector(selector, "has_focus"), Full(1), 0) == 1


def _equal(seq: Any, value: Any) -> Select:
    """Selects the positions where `seq == value`."""
    if isinstance(value, SOp):
        return select(binary("==", seq, value), True, "==")
    return select(seq, value, "==")


def count(seq: Any, value: Any) -> SOp:
    """`count(seq, value)`: at how many positions seq == value."""
    return width(_equal(seq, value))


def contains(seq: Any, value: Any) -> SOp:
    """`contains(seq, value)`: whether seq == value at any position."""
    return has_focus(_equal(seq, value))


def _selector(selector: Any, owner: str) -> Selector:
    if not isinstance(selector, Selector):
        raise Misfit(f"{owner} needs a selector, not {describe(selector)}", "make one with select(keys, queries, ==)")
    return selector


def _as_sop(value: Any, owner: str) -> SOp:
    if isinstance(value, SOp):
        return value
    if not is_atom(value):
        raise Misfit(f"{owner} takes s-ops and single values, not {describe(value)}", NEEDS_SOP)
    return Full(value)


def _elementwise(function: Callable[..., Any], x: SOp) -> SOp:
    return Map(function, x, simplify=False)


def _pairwise(name: str, symbol: str, x: Any, y: Any) -> SOp:
    for value in (x, y):
        if not (is_atom(value) or isinstance(value, SOp)):
            raise Misfit(f"{symbol} between an s-op and {describe(value)} has no meaning", NEEDS_SOP)
    if not isinstance(y, SOp):
        return _elementwise(ConstantOperator(name, y), x)
    if not isinstance(x, SOp):
        return _elementwise(ConstantOperator(name, x, True), y)
    return SequenceMap(BinaryOperator(name), x, y)


def _selectors(symbol: str, x: Any, y: Any) -> Selector:
    if symbol not in ("and", "or"):
        raise Misfit(f"{symbol} has no meaning for selectors", "selectors are combined with and, or, not")
    if not (isinstance(x, Selector) and isinstance(y, Selector)):
        other = y if isinstance(x, Selector) else x
        raise Misfit(
            f"{symbol} joins two selectors, but {describe(other)} is not a selector", "make one with select(k, q, ==)"
        )
    return SelectorAnd(x, y) if symbol == "and" else SelectorOr(x, y)


def _contained(x: Any, y: Any) -> Any:
    if isinstance(x, SOp):
        if not isinstance(y, list | dict):
            raise Misfit(
                f"an s-op can be in a list of values, not in {describe(y)}",
                "in has the lowest precedence: write parentheses, as in p and (t in L)"
                if isinstance(y, SOp)
                else 'write a list: ["a", "b"]',
            )
        return _elementwise(Member(_atoms(y, "a list after in")), x)
    if not is_atom(x):
        raise Misfit(f"only an s-op or a single value can come before in, not {describe(x)}")
    if isinstance(y, SOp):
        return contains(y, x)
    if isinstance(y, list | dict):
        strange = next((item for item in y if not is_atom(item) and not isinstance(item, list | dict)), None)
        if strange is not None:
            raise Misfit(f"a list after in holds values, not {describe(strange)}")
        return x in y
    raise Misfit(f"in needs a list or an s-op after it, not {describe(y)}", 'write a list: ["a", "b"]')


def _atoms(values: Any, what: str) -> tuple[Any, ...]:
    for value in values:
        if not is_atom(value):
            raise Misfit(f"{what} holds single values only, not {describe(value)}")
    return tuple(values)


def _check_size(symbol: str, x: Any, y: Any) -> None:
    """Refuse a list that is too long before it is built."""
    values, times = (x, y) if isinstance(x, Items) else (y, x)
    if symbol == "*" and isinstance(times, int) and times > 1 and values.weight * times > HEAVIEST:
        raise Misfit(f"a list of more than {HEAVIEST:,} values is too large")
    if symbol == "%" and isinstance(x, str):
        raise Misfit("% formats single values only")


def _computed(function: Callable[..., Any], symbol: str, *values: Any) -> Any:
    """Python's operator on plain values; its errors use the words of the language."""
    try:
        return checked(function(*values))
    except TracrError:
        raise Misfit(f"{symbol} has no meaning for lists that hold s-ops or selectors") from None
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        shown = " and ".join(map(describe, values))
        raise Misfit(f"{symbol} fails on {shown}: {error}") from None


def entries(pairs: list[tuple[Any, Any]]) -> Entries:
    """A dictionary, whose keys must be single values."""
    for key, _ in pairs:
        if not is_atom(key):
            raise Misfit(f"a dictionary's keys are numbers, strings or booleans, not {describe(key)}")
    return Entries(pairs)


def _range(*ends: Any) -> Items:
    for end in ends:
        if not isinstance(end, int) or isinstance(end, bool):
            raise Misfit(f"range takes integers, not {describe(end)}")
    if len(ends) == 3 and ends[2] == 0:
        raise Misfit("the step of a range cannot be 0")
    numbers = range(*ends)
    if next(iter(numbers[HEAVIEST : HEAVIEST + 1]), None) is not None:  # len() of a very long range overflows
        raise Misfit(f"a range of more than {HEAVIEST:,} numbers is too long")
    return Items(numbers)


def _zip(*lists: Any) -> Items:
    for items in lists:
        if not isinstance(items, list):
            raise Misfit(f"zip takes lists, not {describe(items)}")
    lengths = [len(items) for items in lists]
    if len(set(lengths)) > 1:
        raise Misfit(
            f"zip takes lists of one length, not of {' and '.join(map(str, lengths))}",
            "make them equally long; [l[i] for i in range(n)] is the beginning of a list l",
        )
    return Items(map(Items, zip(*lists, strict=True)))


def _len(value: Any) -> int:
    if not isinstance(value, list | dict | str):
        hint = "the number of tokens is the s-op length" if isinstance(value, SOp | Selector) else ""
        raise Misfit(f"len counts a list, a dictionary or a string, not {describe(value)}", hint)
    return len(value)


BUILTINS: dict[str, Callable[..., Any]] = {
    "aggregate": aggregate,
    "range": _range,
    "zip": _zip,
    "len": _len,
}
