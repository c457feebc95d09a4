"""Choosing how to store what: every way is translated, and the smallest model wins.

What makes one s-op cheap may make its readers dear (a sum needs no neurons, but a table of it does), so that no rule
about single s-ops decides well. The ways compared are few:

- encodings as their readers wish, or numbers also for what only finds keys (`match`);
- tables that are sums computed as such (`linear_tables`), or looked up;
- bits for very many values only, or for whatever is copied and compared (`few_bits`).

A way is taken if it is no larger in layers, dimensions, heads and parameters, each of them; of those the one with the
fewest layers, then parameters.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

from tracr.compiler.encode import choose_encodings
from tracr.compiler.linear_tables import tables_of_sums
from tracr.compiler.size import Size
from tracr.compiler.translation.bits import exact_in_bits
from tracr.compiler.typed import Typed
from tracr.errors import CompileError

__all__ = ["smallest"]


def smallest(typed: Typed, measured: Callable[[Typed, int | None], Size | None]) -> Typed:
    """The program stored in the smallest way."""
    ways = list(_ways(typed))
    if not ways:
        return typed
    usual = best = measured(typed, None)
    chosen = typed
    for way in ways:
        size = measured(way, best.layers if best else None)
        if size is None:  # not exact enough this way, or deeper
            continue
        smaller = best is None or (size.layers, size.parameters) < (best.layers, best.parameters)
        if smaller and (usual is None or all(own <= other for own, other in zip(size, usual, strict=True))):
            chosen, best = way, size
    return chosen


def _ways(typed: Typed) -> Iterator[Typed]:
    """Other ways to store what the program computes, each once."""
    ways = [typed]
    sums = tables_of_sums(typed) if typed.options.on("linear_tables") else ()
    matches = (False, True) if typed.options.on("match") else (False,)
    _, *others = itertools.product(dict.fromkeys((typed.stored, replace(typed.stored, sums=sums))), matches)
    for stored, match in others:
        with suppress(CompileError):
            way = choose_encodings(replace(typed, stored=stored), match=match)
            if not any(_same(way, other) for other in ways):
                ways.append(way)
    for way in ways:
        if way is not typed:
            yield way
        few = replace(way, stored=replace(way.stored, few_bits=True))
        if typed.options.on("few_bits") and exact_in_bits(few) != exact_in_bits(way):
            yield few


def _same(first: Typed, second: Typed) -> bool:
    encodings = [[node.encoding for node in typed.sops.values()] for typed in (first, second)]
    return first.stored == second.stored and encodings[0] == encodings[1]
