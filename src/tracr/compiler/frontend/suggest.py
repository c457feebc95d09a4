"""Suggests a smaller vocabulary, if a function of the program raises on some of the tokens."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tracr.compiler.frontend.infer import accepted_lengths, infer
from tracr.compiler.frontend.trace import TracedGraph
from tracr.errors import CompileError, FunctionError, TracrWarning
from tracr.ir.options import Options
from tracr.values import Value

__all__ = ["suggest_vocabulary"]

MOST_TOKENS = 100  # each token is tried alone, and all are shown


def suggest_vocabulary(error: FunctionError, traced: TracedGraph, options: Options) -> None:
    """Add to the hint of the error the tokens to leave out, if no function raises without them.

    Each token is tried alone, on the shortest input. If the remaining tokens raise together, as strings and numbers
    may, they are added one by one, the most common type first.
    """
    if not 1 < len(options.vocab) <= MOST_TOKENS:
        return
    shortest, longest = accepted_lengths(traced, options.max_seq_len)
    kept = [token for token in options.vocab if not _raises(traced, options, [token], shortest)]
    if _raises(traced, options, kept, longest):
        kept = _together(traced, options, kept, min(longest, max(2, shortest)))
    rest = [token for token in options.vocab if token in kept]
    left_out = [token for token in options.vocab if token not in kept]
    if not left_out or _raises(traced, options, rest, longest):
        return
    one = "token" if len(left_out) == 1 else "tokens"
    listed = ", ".join(map(repr, left_out))
    error.hint_at(f"{error.diagnostic.hint}, or leave out the {one} {listed}: vocab={rest!r}")


def _together(traced: TracedGraph, options: Options, tokens: Sequence[Value], longest: int) -> list[Value]:
    """A subset of the tokens on which no function raises."""
    common = Counter(map(type, tokens))
    kept: list[Value] = []
    for token in sorted(tokens, key=lambda token: -common[type(token)]):
        if not _raises(traced, options, [*kept, token], longest):
            kept.append(token)
    return kept


def _raises(traced: TracedGraph, options: Options, vocab: Sequence[Value], longest: int) -> bool:
    """Whether `infer` refuses the program with this vocabulary and length."""
    if not vocab:
        return True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TracrWarning)
        try:
            infer(traced, replace(options, vocab=tuple(vocab), max_seq_len=longest))
        except CompileError:
            return True
    return False
