"""The choices of the search: for each pass that proposes rivals, the rule that keeps one.

A change that makes one s-op cheap may make its readers expensive (a weighted sum needs no neurons, but a table of it
does). A rule about single s-ops would therefore choose badly. Rivals are few, and their models are compared by four
sizes: layers, dimensions, heads and parameters (`Size`).

    share            computes equal s-ops once, unless one encoding for all their readers costs layers
    split            splits a large comparison over several heads if the model gets no more layers, and each added head
                     saves enough parameters (`WORTH`). Level 2 starts from the choice of level 1 and never has more
                     heads; it splits less if no size grows
    store            tries the combinations of three options: numbers for variables that only look up keys (`match`);
                     weighted sums for tables that equal one (`linear_tables`); bits for all variables that are only
                     copied and compared (`few_bits`). Of the rivals in which no size grows, it keeps the one with the
                     fewest layers, then parameters
    simplify, fuse,  keep rewrites if the model has fewer layers and no more parameters, or if one size shrinks and no
    sums             size grows. All rewrites are tried together first, then one after the other
    embed_functions  makes functions of tokens that `factor` embeds variables of the program, if no size grows
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from tracr.compiler.circuit.embed_features import embed_functions, factored_kinds
from tracr.compiler.circuit.prune import prune
from tracr.compiler.layers.assign import depth
from tracr.compiler.lower.bits import exact_in_bits
from tracr.compiler.program.encodings import stored_as
from tracr.compiler.program.linear_tables import tables_of_sums
from tracr.compiler.program.rewrite import Rewrites, with_rewrites
from tracr.compiler.program.share import share
from tracr.compiler.search.searcher import Searcher
from tracr.compiler.selectors.splitting import WORTH, splittable
from tracr.errors import CompileError
from tracr.ir.circuit import Circuit
from tracr.ir.inferred import Inferred
from tracr.ir.layout import Layout
from tracr.ir.program import Program, Stored
from tracr.ir.search import Measured
from tracr.ir.size import Size
from tracr.ir.switches import OptionName, PassName, level_of

__all__ = ["choose_embedding", "choose_rewrites", "choose_sharing", "choose_splits", "choose_storage"]

MOST_TRIALS = 32
MOST_TRIED = 2048  # s-ops, summed over all trials
START = "the program without this pass"
LAID_OUT = tuple(PassName)[tuple(PassName).index(PassName.FOLD) : tuple(PassName).index(PassName.ASSEMBLE)]


# Sharing


def choose_sharing(inferred: Inferred, search: Searcher) -> Inferred:
    """The program with equal s-ops merged, unless that costs layers."""
    if all(number == first for number, first in inferred.same.items()):
        return inferred
    shared = share(inferred)
    double = [node.label for number, node in inferred.sops.items() if inferred.same[number] != number]
    if not double:  # only selectors are equal, which changes the readers of no s-op
        return shared
    apart, once = (search.through((PassName.DROP_UNUSED, PassName.ENCODE), one) for one in (inferred, shared))
    what = f"merged with an equal s-op: {_names(double)}"
    if _same_codes(once, apart, inferred.same):
        search.tried(PassName.SHARE, what, Measured(), True, "every s-op keeps its encoding")
        return shared
    return shared if _no_deeper(once, apart, what, search) else inferred


def _same_codes(shared: Program, apart: Program, same: Mapping[int, int]) -> bool:
    """Whether every s-op has the same encoding as without sharing: then its readers need no other conversions."""
    return all(shared.sops[same[number]].encoding is node.encoding for number, node in apart.sops.items())


def _no_deeper(shared: Program, apart: Program, what: str, search: Searcher) -> bool:
    """Whether sharing costs no layers: one encoding for readers with different wishes may need a conversion."""
    try:
        shortest = _depth(apart, search)
    except CompileError as error:
        search.tried(PassName.SHARE, START, Measured(refusal=error.diagnostic.sentence), False, "refused")
        search.tried(PassName.SHARE, what, Measured(), True, "only this can be compiled")
        return True
    layers = _depth(shared, search)
    kept = layers <= shortest
    search.tried(PassName.SHARE, START, Measured(layers=shortest), True, "the start")
    search.tried(PassName.SHARE, what, Measured(layers=layers), kept, "no more layers" if kept else "more layers")
    search.forget(apart if kept else shared)
    return kept


def _depth(program: Program, search: Searcher) -> int:
    return depth(prune(search.through((PassName.LOWER, PassName.FOLD), program)))


# Splitting


def choose_splits(program: Program, search: Searcher) -> Program:
    """The program with its large comparisons split, where that makes the model smaller."""
    found = splittable(program)
    if not found:
        return program
    if program.options.level <= 1:
        return _split(program, found, search)
    chosen = _split(_at_level_1(program), found, search).stored.split
    return _rejoined(program, chosen, search) if chosen else program


def _at_level_1(program: Program) -> Program:
    options = program.options
    passes = [name for name in options.passes or () if level_of(name) == 1]
    return replace(program, options=replace(options, level=1, passes=passes))


def _split(program: Program, found: tuple[int, ...], search: Searcher) -> Program:
    """The program with all of these selectors split, or with one after the other if it saves enough for its heads."""
    start, level = search.measure(program), f"level {program.options.level}"
    search.tried(PassName.SPLIT, f"no selector split, {level}", start, True, "the start")
    best = start.size
    for more in dict.fromkeys((found, *((number,) for number in found))):
        apart = replace(program, stored=Stored(split=program.stored.split + more))
        measured = search.measure(apart, best.layers if best else None)
        size = measured.size
        kept = size is not None and (
            best is None or size.parameters < WORTH ** (size.heads - best.heads) * best.parameters
        )
        why = _why(measured, best, kept, "saves enough for its heads", "saves too little for its heads")
        search.tried(PassName.SPLIT, f"{_split_names(apart)} split, {level}", measured, kept, why)
        if kept:
            program, best = apart, size
            if program.stored.split == found:
                break
    return program


def _rejoined(whole: Program, split: tuple[int, ...], search: Searcher) -> Program:
    """The program with these selectors split; one of them, or all, are joined again if no size grows."""
    program = replace(whole, stored=Stored(split=split))
    measured = search.measure(program)
    search.tried(PassName.SPLIT, f"{_split_names(program)} split", measured, True, "as at level 1")
    size = measured.size
    for fewer in dict.fromkeys(((), *(tuple(other for other in split if other != one) for one in split))):
        less = replace(whole, stored=Stored(split=fewer)) if fewer else whole
        measured = search.measure(less)
        kept = measured.size is not None and (size is None or _no_larger(measured.size, size))
        why = _why(measured, size, kept, "no size grows", "a size grows")
        search.tried(PassName.SPLIT, f"{_split_names(less)} split", measured, kept, why)
        if kept:
            program, size = less, measured.size
    return program


def _split_names(program: Program) -> str:
    return _names(program.selectors[number].label for number in program.stored.split) or "no selector"


# Storage


def choose_storage(program: Program, search: Searcher) -> Program:
    """The program with the storage choices that give the smallest model."""
    ways = list(_ways(program))
    if not ways:
        return program
    start = search.measure(program)
    search.tried(PassName.STORE, START, start, True, "the start")
    usual = best = start.size
    chosen = program
    for way in ways:
        measured = search.measure(way, best.layers if best else None)
        size = measured.size
        smaller = size is not None and (best is None or _order(size) < _order(best))
        kept = smaller and (size is None or usual is None or _no_larger(size, usual))
        otherwise = "a size is larger than at the start" if smaller else "not smaller"
        why = _why(measured, best, kept, "smaller", otherwise)
        search.tried(PassName.STORE, _way_name(way, program), measured, kept, why)
        if kept:
            chosen, best = way, size
    return chosen


def _order(size: Size) -> tuple[int, int]:
    return size.layers, size.parameters


def _ways(program: Program) -> Iterator[Program]:
    """The program with other storage choices, each combination once."""
    ways = [program]
    sums = tables_of_sums(program) if program.options.on(OptionName.LINEAR_TABLES) else ()
    matches = (False, True) if program.options.on(OptionName.MATCH) else (False,)
    _, *others = itertools.product(dict.fromkeys((program.stored, replace(program.stored, sums=sums))), matches)
    for stored, match in others:
        with suppress(CompileError):
            way = stored_as(program, stored, match=match)
            if not any(_same(way, other) for other in ways):
                ways.append(way)
    for way in ways:
        if way is not program:
            yield way
        few = replace(way, stored=replace(way.stored, few_bits=True))
        if program.options.on(OptionName.FEW_BITS) and exact_in_bits(few) != exact_in_bits(way):
            yield few


def _same(first: Program, second: Program) -> bool:
    encodings = [[node.encoding for node in program.sops.values()] for program in (first, second)]
    return first.stored == second.stored and encodings[0] == encodings[1]


def _way_name(way: Program, usual: Program) -> str:
    """The storage choices that differ from the usual ones, as text."""
    sops = usual.sops
    sums = _names(sops[number].label for number in way.stored.sums)
    other = [node for number, node in way.sops.items() if node.encoding is not sops[number].encoding]
    recoded = _names(f"{node.label} {node.encoding.value}" for node in other)
    parts = [f"sums: {sums}"] * bool(sums) + [recoded] * bool(recoded) + ["few_bits"] * way.stored.few_bits
    return "; ".join(parts)


# Rewriting


def choose_rewrites(step: PassName, rule: Callable[[Program], Rewrites]) -> Callable[[Program, Searcher], Program]:
    """A pass that keeps the rewrites proposed by a rule, as far as they make the model smaller."""

    def run(program: Program, search: Searcher) -> Program:
        rewrites = rule(program)
        return _improved(step, program, rewrites, search) if rewrites else program

    return run


def _improved(step: PassName, program: Program, rewrites: Rewrites, search: Searcher) -> Program:
    start = search.measure(program)
    search.tried(step, START, start, True, "the start")
    best, smallest = program, start.size
    kept: Rewrites = {}
    single = [{number: rewrite} for number, rewrite in rewrites.items()] if len(rewrites) > 1 else []
    for trial in [dict(rewrites), *single[: min(MOST_TRIALS, MOST_TRIED // len(program.sops))]]:
        together = {**kept, **trial}
        candidate = with_rewrites(program, together)
        measured = search.measure(candidate, smallest.layers if smallest else None)
        better = _smaller(measured.size, smallest)
        what = f"rewritten or removed: {_names(program.sops[number].label for number in together)}"
        search.tried(step, what, measured, better, _why(measured, smallest, better, "smaller", "not smaller"))
        if better:
            best, smallest, kept = candidate, measured.size, together
            if len(kept) == len(rewrites):
                break
    return best


def _smaller(size: Size | None, before: Size | None) -> bool:
    if size is None or before is None:
        return size is not None
    if size.parameters > before.parameters:
        return False
    return size.layers < before.layers or (_no_larger(size, before) and size != before)


# Embedding


def choose_embedding(circuit: Circuit, search: Searcher) -> Circuit:
    """The circuit with functions of tokens, or of positions, embedded as variables, if no size grows."""
    factored = search.through((PassName.FOLD, PassName.PRUNE, PassName.FACTOR), circuit)
    rivals = factored_kinds(circuit, factored)
    if not rivals:
        return circuit
    size = _laid_out_size(circuit, search)
    search.tried(PassName.EMBED_FUNCTIONS, START, Measured(size), True, "the start")
    for kinds in rivals:
        rival = embed_functions(circuit, kinds)
        own = _laid_out_size(rival, search)
        kept = _no_larger(own, size)
        why = _why(Measured(own), size, kept, "no size grows", "a size grows")
        what = f"functions of one {' or '.join(sorted(kinds))} embedded"
        search.tried(PassName.EMBED_FUNCTIONS, what, Measured(own), kept, why)
        search.forget(circuit if kept else rival)
        if kept:
            return rival
    return circuit


def _laid_out_size(circuit: Circuit, search: Searcher) -> Size:
    layout: Layout = search.through(LAID_OUT, circuit)
    return layout.size


# Comparing


def _no_larger(size: Size, other: Size) -> bool:
    return all(own <= before for own, before in zip(size, other, strict=True))


def _why(measured: Measured, best: Size | None, kept: bool, reason: str, otherwise: str) -> str:
    """Why a rival was kept or not."""
    if measured.refusal:
        return f"refused: {measured.refusal}"
    if measured.size is None:
        return "more layers"
    if best is None:
        return "the first that can be compiled"
    return reason if kept else otherwise


def _names(labels: Iterable[str]) -> str:
    return ", ".join(labels)
