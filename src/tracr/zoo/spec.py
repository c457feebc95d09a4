"""Models of the zoo in one word: `zoo:reverse@level2`."""

from __future__ import annotations

from typing import NamedTuple

from tracr.errors import UnknownName
from tracr.ir.options import LEVELS
from tracr.zoo.registry import get

__all__ = ["Spec", "read_spec"]

ZOO = "zoo:"
AT = "@level"


class Spec(NamedTuple):
    """A program of the zoo, and a level if one was written."""

    name: str
    level: int | None


def read_spec(text: str) -> Spec:
    """The program and the level of `zoo:NAME` or `zoo:NAME@levelN`; an error that says what to write.

    >>> read_spec("zoo:reverse@level2"), read_spec("zoo:ioi")
    (Spec(name='reverse', level=2), Spec(name='indirect_object', level=None))
    """
    name, at, level = text.removeprefix(ZOO).partition("@")
    if not name:
        raise UnknownName(f"{text!r} names no program", hint=f"write {ZOO}NAME, such as {ZOO}reverse{AT}2")
    known = get(name).name
    if not at:
        return Spec(known, None)
    levels = {f"{AT}{number}": number for number in LEVELS}
    if at + level not in levels:
        written = " or ".join(f"{ZOO}{known}{one}" for one in levels)
        raise UnknownName(f"{at + level!r} is not a level of the zoo's models", hint=f"write {written}")
    return Spec(known, levels[at + level])
