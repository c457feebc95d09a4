"""The programs of `tracr.rasp.programs`, with their tasks in plain Python."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from tracr.rasp.programs import EXAMPLES, Example
from tracr.rasp.rasp import SOp
from tracr.values import Value
from tracr.zoo.entry import Entry, at_each, everywhere, prefixes, task

__all__ = ["LIBRARY"]

Xs = list[Any]
PAIRS = {"(": ")", "{": "}"}
CLOSING = {closed: opened for opened, closed in PAIRS.items()}


def _fraction(token: str) -> Callable[[Xs], float]:
    return lambda xs: xs.count(token) / len(xs)


def _by_frequency(xs: Xs) -> Xs:
    """Most frequent first, equally frequent ones as they stand."""
    counts = Counter(xs)
    return sorted(xs, key=lambda x: -counts[x])


def _most_frequent(xs: Xs) -> Xs:
    ordered = list(dict.fromkeys(_by_frequency(xs)))
    return ordered + [None] * (len(xs) - len(ordered))


def _stack(xs: Xs, pairs: str) -> list[str] | None:
    """The brackets that are open at the end, or `None` if they cannot nest any more."""
    stack: list[str] = []
    for x in xs:
        if x in [*pairs]:
            if x in PAIRS:
                stack.append(x)
            elif not stack or stack.pop() != CLOSING[x]:
                return None
    return stack


def _verdict(pairs: str) -> Callable[[Xs], str]:
    def verdict(xs: Xs) -> str:
        stack = _stack(xs, pairs)
        return "F" if stack is None else "P" if stack else "T"

    return verdict


def _closer(xs: Xs) -> str | None:
    stack = _stack(xs, "(){}")
    return PAIRS[stack[-1]] if stack else None


def _followed(xs: Xs) -> Any:
    """The token after the last earlier occurrence of the last one."""
    places = [i for i in range(1, len(xs)) if xs[i - 1] == xs[-1]]
    return xs[places[-1]] if places else None


def _counted_on(xs: Xs, vocab: Sequence[Value]) -> list[int | None]:
    highest = max((token for token in vocab if isinstance(token, int)), default=0)
    steps = [1, *(after - before for before, after in itertools.pairwise(xs))]
    return [x + step if 0 <= x + step <= highest else None for x, step in zip(xs, steps, strict=True)]


TASKS: dict[str, tuple[str, Callable[..., Xs]]] = {
    "length": ("counting", everywhere(len)),
    "hist": ("counting", at_each(lambda xs, i: xs.count(xs[i]))),
    "hist_bos": ("counting", at_each(lambda xs, i: xs.count(xs[i]) if i else 0)),
    "hist2": ("counting", at_each(lambda xs, i: sum(xs.count(y) == xs.count(xs[i]) for y in {*xs}))),
    "has_prev": ("repeats", prefixes(lambda xs: xs[-1] in xs[:-1])),
    "count": ("counting", everywhere(lambda xs: xs.count("a"))),
    "count_less_freq": ("counting", everywhere(lambda xs: sum(xs.count(x) == 1 for x in xs))),
    "frac_prevs": ("averages numerical", prefixes(_fraction("x"))),
    "reverse": ("positions", lambda xs: xs[::-1]),
    "sort_unique": ("ordering", lambda xs: sorted(xs)),
    "sort": ("ordering", lambda xs: sorted(xs)),
    "sort_composite": ("ordering", lambda xs: sorted(xs)),
    "sort_freq": ("ordering", _by_frequency),
    "most_freq": ("ordering", _most_frequent),
    "pair_balance": ("brackets numerical", prefixes(lambda xs: _fraction("(")(xs) - _fraction(")")(xs))),
    "shuffle_dyck": ("brackets", everywhere(lambda xs: _verdict("()")(xs) == "T")),
    "shuffle_dyck2": ("brackets", everywhere(lambda xs: _verdict("()")(xs) == _verdict("{}")(xs) == "T")),
    "dyck1": ("brackets", prefixes(_verdict("()"))),
    "dyck2": ("brackets", prefixes(_verdict("(){}"))),
    "closer": ("brackets", prefixes(_closer)),
    "shift_by": ("positions", lambda xs: [None, *xs[:-1]]),
    "detect_pattern": ("patterns", prefixes(lambda xs: None if len(xs) < 2 else xs[-2:] == ["a", "b"])),
    "induction": ("lookup", prefixes(_followed)),
    "counter": ("patterns", _counted_on),
    "nary_sequencemap": ("patterns", prefixes(lambda xs: None if len(xs) < 3 else int(sum(xs[-3:]) > 1))),
}


def _entry(name: str, example: Example) -> Entry:
    tags, answers = TASKS[name]

    def build(vocab: Sequence[Value], max_seq_len: int) -> SOp:
        return example.made_for(vocab, max_seq_len).program

    build.__name__ = name
    return task(
        example.vocab,
        example.max_seq_len,
        shown=example.shown,
        says=example.description,
        answers=answers,
        tags=f"{tags} library",
        tokens=example.tokens,
        inputs=example.inputs,
    )(build)


LIBRARY = {name: _entry(name, example) for name, example in EXAMPLES.items()}
