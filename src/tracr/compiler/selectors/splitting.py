"""Which selectors could be read by several narrow heads instead of one wide head.

An order comparison of many values is a sum of matchings, one for each bit; "not equal" is everything minus "equal"
(`head_plans.py`). These heads are narrower. But every head takes a direction, all heads of a layer are as wide as the
widest, and counts computed as sums are not exact: some of their readers need them cleaned, which may take a layer. This
module therefore only proposes selectors, and the search compares the models.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tracr.compiler.selectors.head_plans import Reader, choose_plan
from tracr.craft.heads import LEGIBLE
from tracr.ir.budget import COMPARED, Budget
from tracr.ir.ops import Attention, Width
from tracr.ir.program import Program
from tracr.ir.selectors import CompositeNode

__all__ = ["WORTH", "splittable"]

WORTH = 0.96  # each additional head must reduce the parameters at least to this part
PART = 2 / 3  # a split is tried if it reduces the heads' own cost at least to this part


def splittable(program: Program) -> tuple[int, ...]:
    """The selectors that might make the model smaller if they were split over several narrow heads."""
    return tuple(dict.fromkeys(_narrower(program)))


def _narrower(program: Program) -> Iterator[int]:
    """The selectors that cost less with more heads, judged without the rest of the program."""
    for selector, reader in dict.fromkeys(_large(program)):
        whole = choose_plan(program.selectors, selector, reader, program.options.max_seq_len, 1)
        if whole is None or whole.cost <= LEGIBLE:  # two heads cannot cost much less
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
    """The selectors that compare many values and are not matchings, with their readers."""
    for node in program.sops.values():
        if not isinstance(node.op, Attention):
            continue
        selector = node.op.selector
        if not isinstance(node.op, Width) and not isinstance(program.selectors[selector], CompositeNode):
            continue  # one head copies or averages
        tables = [literal.table for literal in program.literals(selector)]
        if any(min(table.shape) > LEGIBLE and np.count_nonzero(table) > max(table.shape) for table in tables):
            yield selector, "width" if isinstance(node.op, Width) else "copy" if node.op.copies else "mean"
