"""The programs of the library, their models, and every attention mask they compile for."""

from __future__ import annotations

from functools import cache

import tracr
from tracr.rasp import rasp
from tracr.rasp.programs import EXAMPLES
from tracr.rasp.traversal import topological


def uses_length(program: rasp.SOp) -> bool:
    """Whether `length` is part of the program: a causal model does not see it."""
    return any(expr is rasp.length for expr in topological([program]))


LENGTH = {name for name, example in EXAMPLES.items() if uses_length(example.program)}


def masks(name: str) -> tuple[bool, ...]:
    """The values of `causal` that a program compiles for."""
    return (False,) if name in LENGTH else (False, True)


LIBRARY = [(name, causal) for name in EXAMPLES for causal in masks(name)]


@cache
def compiled(name: str, level: int = 1, causal: bool = False) -> tracr.CompiledModel:
    """A program of the library, for its own vocabulary and length; compiled once."""
    example = EXAMPLES[name]
    return tracr.compile(example.program, example.vocab, example.max_seq_len, level=level, causal=causal)
