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

from tracr.compiler.lower.bits import exact_in_bits
from tracr.compiler.program.encodings import choose_encodings
from tracr.compiler.program.linear_tables import tables_of_sums
from tracr.errors import CompileError
from tracr.ir.program import Program
from tracr.ir.size import Size

__all__ = ["smallest"]


def smallest(program: Program, measured: Callable[[Program, int | None], Size | None]) -> Program:
    """The program stored in the smallest way."""
    ways = list(_ways(program))
    if not ways:
        return program
    usual = best = measured(program, None)
    chosen = program
    for way in ways:
        size = measured(way, best.layers if best else None)
        if size is None:  # not exact enough this way, or deeper
            continue
        smaller = best is None or (size.layers, size.parameters) < (best.layers, best.parameters)
        if smaller and (usual is None or all(own <= other for own, other in zip(size, usual, strict=True))):
            chosen, best = way, size
    return chosen


def _ways(program: Program) -> Iterator[Program]:
    """Other ways to store what the program computes, each once."""
    ways = [program]
    sums = tables_of_sums(program) if program.options.on("linear_tables") else ()
    matches = (False, True) if program.options.on("match") else (False,)
    _, *others = itertools.product(dict.fromkeys((program.stored, replace(program.stored, sums=sums))), matches)
    for stored, match in others:
        with suppress(CompileError):
            way = choose_encodings(replace(program, stored=stored), match=match)
            if not any(_same(way, other) for other in ways):
                ways.append(way)
    for way in ways:
        if way is not program:
            yield way
        few = replace(way, stored=replace(way.stored, few_bits=True))
        if program.options.on("few_bits") and exact_in_bits(few) != exact_in_bits(way):
            yield few


def _same(first: Program, second: Program) -> bool:
    encodings = [[node.encoding for node in program.sops.values()] for program in (first, second)]
    return first.stored == second.stored and encodings[0] == encodings[1]
