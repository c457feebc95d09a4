"""Conditions on vocabularies and inputs under which a program of the library does what its description says."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tracr.values import Value, is_number

__all__ = ["ANY", "BITS", "COUNTABLE", "DIFFERENT", "NUMBERS", "ORDERED", "OWN_START", "Condition"]


@dataclass(frozen=True)
class Condition:
    """A condition on tokens: its text, its check, and a hint for tokens that do not satisfy it."""

    text: str
    holds: Callable[[Sequence[Value]], bool]
    hint: str = ""


def _finite(token: Value) -> bool:
    return is_number(token) and math.isfinite(token)


def _countable(token: Value) -> bool:
    return isinstance(token, int) and not isinstance(token, bool) and token >= 0


def _ordered(tokens: Sequence[Value]) -> bool:
    return all(map(_finite, tokens)) or all(isinstance(token, str) for token in tokens)


# Conditions on a vocabulary
ANY = Condition("", lambda tokens: True)
NUMBERS = Condition("numbers", lambda tokens: all(map(_finite, tokens)), "sort_composite sorts strings too")
ORDERED = Condition("only numbers or only strings", _ordered, "leave out the tokens of the other kind")
BITS = Condition("0 and 1", lambda tokens: {*tokens} <= {0, 1}, "write --vocab 0,1, or vocab=(0, 1)")
COUNTABLE = Condition("whole numbers from 0 on", lambda tokens: all(map(_countable, tokens)))

# Conditions on an input
DIFFERENT = Condition(
    "no token twice", lambda tokens: len({*tokens}) == len(tokens), "sort and sort_composite sort equal tokens too"
)
OWN_START = Condition(
    "a first token that does not come again",
    lambda tokens: tokens[0] not in tokens[1:] if tokens else True,
    "begin with such a token, such as ^",
)
