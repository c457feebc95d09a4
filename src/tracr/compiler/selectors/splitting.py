"""Which selectors more and narrower heads read than need be: those that make the model smaller.

An order of many values is as many matchings as its numbers have bits, and what is not equal is everything less what is
(`plans.py`). That is narrower. But every head takes a direction, all of a layer are as wide as the widest, and counts
that are sums are not exact, so that some of their readers need them cleaned, which may take a layer. So models are
compared: a split takes no more layers, and fewer parameters by as much as its heads are worth.

Level 2 starts from what level 1 has, so that it has no more heads, and splits less if that is no larger in anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tracr.compiler.selectors.head_plans import Reader, choose_plan
from tracr.craft.heads import LEGIBLE
from tracr.ir.budget import COMPARED, Budget
from tracr.ir.ops import Attention, Width
from tracr.ir.program import Program, Stored
from tracr.ir.selectors import CompositeNode
from tracr.ir.size import Measure
from tracr.ir.switches import PASSES

__all__ = ["split"]

WORTH = 0.96  # what each head more may leave of the parameters
PART = 2 / 3  # what a split may leave of its heads' own cost to be tried, as they are a part of the model only


def split(program: Program, measured: Measure) -> Program:
    """The program with its large comparisons split where that pays."""
    found = tuple(dict.fromkeys(_narrower(program)))
    if not found:
        return program
    if program.options.level <= 1:
        return _chosen(program, found, measured)
    chosen = _chosen(_at_level_1(program), found, measured).stored.split
    return _rejoined(program, chosen, measured) if chosen else program


def _narrower(program: Program) -> Iterator[int]:
    """The selectors that cost less with more heads, as far as can be said without the rest of the program."""
    for selector, reader in dict.fromkeys(_large(program)):
        whole = choose_plan(program.selectors, selector, reader, program.options.max_seq_len, 1)
        if whole is None or whole.cost <= LEGIBLE:  # no two heads cost much less
            continue
        if not _fits(program, selector):
            continue
        apart = choose_plan(program.selectors, selector, reader, program.options.max_seq_len, 1, split=True)
        if apart and apart.cost < PART * WORTH ** (len(apart.heads) - len(whole.heads)) * whole.cost:
            yield selector


def _fits(program: Program, selector: int) -> bool:
    """Whether there is memory for the matchings of a comparison, one for each bit, and for choosing among them."""
    tables = [literal.table for literal in program.literals(selector)]
    cells = sum(table.size * (min(table.shape).bit_length() + COMPARED) for table in tables)
    return Budget(program.options.max_memory, program.nbytes).fits(2 * cells)


def _large(program: Program) -> Iterator[tuple[int, Reader]]:
    """The selectors that compare many values and are no matchings, and who reads them."""
    for node in program.sops.values():
        if not isinstance(node.op, Attention):
            continue
        selector = node.op.selector
        if not isinstance(node.op, Width) and not isinstance(program.selectors[selector], CompositeNode):
            continue  # one head copies or averages
        tables = [literal.table for literal in program.literals(selector)]
        if any(min(table.shape) > LEGIBLE and np.count_nonzero(table) > max(table.shape) for table in tables):
            yield selector, "width" if isinstance(node.op, Width) else "copy" if node.op.copies else "mean"


def _chosen(program: Program, found: tuple[int, ...], measured: Measure) -> Program:
    """The program with all of them split, or with those that pay one after the other."""
    best = measured(program, None)
    for more in dict.fromkeys((found, *((number,) for number in found))):
        apart = replace(program, stored=Stored(split=program.stored.split + more))
        size = measured(apart, best.layers if best else None)
        if size and (best is None or size.parameters < WORTH ** (size.heads - best.heads) * best.parameters):
            program, best = apart, size
            if program.stored.split == found:
                break
    return program


def _rejoined(whole: Program, split: tuple[int, ...], measured: Measure) -> Program:
    """The program with these selectors split; without one of them, or all, if that is no larger in anything."""
    program = replace(whole, stored=Stored(split=split))
    size = measured(program, None)
    for fewer in dict.fromkeys(((), *(tuple(other for other in split if other != one) for one in split))):
        less = replace(whole, stored=Stored(split=fewer)) if fewer else whole
        own = measured(less, None)
        if own and (size is None or all(new <= old for new, old in zip(own, size, strict=True))):
            program, size = less, own
    return program


def _at_level_1(program: Program) -> Program:
    options = program.options
    passes = [name for name in options.passes or () if PASSES[name].level == 1]
    return replace(program, options=replace(options, level=1, passes=passes))
