"""Composition of tables: an s-op as one table over the inputs of its operands.

This module is not a pass: `fuse_tables.py` and `functions_of_sums.py` decide where a composed table is useful.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tracr.craft.grouping import group_rows
from tracr.ir.domains import Codes
from tracr.ir.ops import Lookup, Op, PairLookup, formula
from tracr.ir.program import Program
from tracr.rasp.function_text import ARGUMENTS, UNKNOWN, applied

__all__ = ["Composed", "Tabulated", "compose", "pairs_of_classes", "tabulated"]

Tabulated = Lookup | PairLookup


@dataclass(frozen=True, eq=False)
class Composed:
    """`table[code of each source]`; `function` is the text of the composed functions."""

    sources: tuple[int, ...]
    table: Codes
    function: str

    def op(self) -> Tabulated | None:
        """The operation, if it has one or two sources."""
        match self.sources:
            case (inner,):
                return Lookup(inner, self.table, self.function)
            case (fst, snd):
                return PairLookup(fst, snd, self.table, self.function)
            case _:
                return None


def tabulated(op: Op) -> Composed | None:
    """The table of an operation, uncomposed; `None` if the operation has no table."""
    match op:
        case Lookup(inner=inner, table=table, function=function):
            return Composed((inner,), table, function)
        case PairLookup(fst=fst, snd=snd, table=table, function=function):
            if fst == snd:
                return Composed((fst,), table.diagonal(), applied(formula(function), ["x", "x"]))
            return Composed((fst, snd), table, function)
        case _:
            return None


def compose(
    program: Program, outer: Composed, ops: Mapping[int, Op], inline: Collection[int], cells: int
) -> Composed | None:
    """`outer` with the sources in `inline` replaced by their own tables; `None` if it has more than `cells` cells.

    A cell where an inner table has ERROR or UNREACHED has the same mark in the result.
    """
    parts: list[Composed] = []
    for source in outer.sources:
        inner = tabulated(ops[source]) if source in inline else None
        if inner is None:
            codes = np.arange(program.sops[source].domain.size, dtype=np.int32)
            inner = Composed((source,), codes, "x")
        parts.append(inner)
    sources = tuple(dict.fromkeys(source for part in parts for source in part.sources))
    shape = tuple(program.sops[source].domain.size for source in sources)
    if math.prod(shape) > cells:
        return None
    held = [np.broadcast_to(_spread(part, sources), shape) for part in parts]
    table: Codes = outer.table[tuple(np.maximum(codes, 0) for codes in held)]
    for codes in held:
        table = np.where(codes < 0, codes, table)
    return Composed(sources, table.astype(np.int32), _text(outer, parts, sources))


def _text(outer: Composed, parts: Sequence[Composed], sources: tuple[int, ...]) -> str:
    """The composed function, over the arguments that stand for the sources."""
    if sources == outer.sources and all(part.function == "x" for part in parts):
        return outer.function
    if len(sources) > len(ARGUMENTS):
        return UNKNOWN
    names = dict(zip(sources, ARGUMENTS, strict=False))
    inner = [applied(formula(part.function), [names[one] for one in part.sources]) for part in parts]
    return applied(formula(outer.function), inner)


def _spread(part: Composed, sources: tuple[int, ...]) -> Codes:
    """A table with an axis for each of the sources, in their order."""
    axes = sorted(range(len(part.sources)), key=lambda axis: sources.index(part.sources[axis]))
    shape = [1] * len(sources)
    for axis in axes:
        shape[sources.index(part.sources[axis])] = part.table.shape[axis]
    return part.table.transpose(axes).reshape(shape)


def pairs_of_classes(table: Codes) -> int:
    """How many pairs of classes of values a table of two s-ops tells apart; each pair takes a neuron."""
    rows = table[group_rows(table)[0]].T
    return int((rows[group_rows(rows)[0]] >= 0).sum())
