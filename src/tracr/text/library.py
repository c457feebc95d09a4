"""The names that every program starts with: those of the language, and the library."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import resources
from typing import Any

from tracr.rasp.annotations import TYPED
from tracr.rasp.elementwise import Map, Tokens, indices, length, tokens
from tracr.rasp.functions import UnaryOperator
from tracr.text import operators
from tracr.text.evaluator import Evaluator
from tracr.text.parser import read
from tracr.text.places import Source
from tracr.text.scope import Allowance, Native, Scope

__all__ = ["CONSTANTS", "library", "tokens_str"]

tokens_asis = Tokens().annotated(**{TYPED: True})


def _tokens_as(kind: str) -> Map:
    """The converted tokens. The tokens of an input may differ in kind; the converted ones may not."""
    return Map(UnaryOperator(kind), tokens).annotated(name=f"tokens_{kind}", **{TYPED: True})


tokens_str = _tokens_as("str")
CONSTANTS: Mapping[str, Any] = {
    "tokens_asis": tokens_asis,
    "tokens_str": tokens_str,
    "tokens_int": _tokens_as("int"),
    "tokens_float": _tokens_as("float"),
    "tokens_bool": _tokens_as("bool"),
    "indices": indices,
    "True": True,
    "False": False,
    "out": None,  # `Scope` has its value
}
OPERATIONS = {
    "selector_width": Native("selector_width", ("selector",), operators.width),
    "has_focus": Native("has_focus", ("selector",), operators.has_focus),
    "count": Native("count", ("seq", "value"), operators.count),
    "contains": Native("contains", ("seq", "value"), operators.contains),
}


@functools.cache
def library() -> Mapping[str, Any]:
    """The library's names: `tokens`, `length`, the operations of the compiler, and the definitions of library.rasp."""
    text = resources.files("tracr.text").joinpath("library.rasp").read_text(encoding="utf-8")
    source = Source(text, "library", hidden=True)
    scope = Scope({"tokens": tokens_str, "length": length, **OPERATIONS})
    evaluator = Evaluator(source, scope, CONSTANTS, {}, Allowance())
    for statement in read(source):
        evaluator.run(statement)
    return {**scope.own, "full_s": scope.own["full_s"].named("full_s")}
