"""Which s-ops are stored in bits: those with very many values, unless a selector needs them one by one.

With fewer values (`Stored.few_bits`) those that are copied or put out, if all that is done with them can be done in
bits, without an MLP in between.

Values are numbered, and a value has the same number in every s-op that may hold it: so a code is copied as it is, and
codes of two s-ops agree exactly where the values do.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tracr.craft.grouping import at_most_one, group_rows
from tracr.craft.variables import Array, bits_of
from tracr.ir.domains import Finite
from tracr.ir.program import (
    Aggregation,
    IndicesOp,
    Linear,
    Lookup,
    PairLookup,
    Positions,
    Program,
    SelectorNode,
    SOpNode,
    TokensOp,
)
from tracr.rasp.annotations import Encoding
from tracr.values import Value

__all__ = ["Codebook", "exact_in_bits", "many_valued"]

MANY = 1024  # a categorical s-op with more values is stored in bits
MORE_THAN_FEW = 4  # or with more than this, where it is only copied and matched
FEW = 64  # classes that are worth a direction each, beside the bits


def many_valued(program: Program) -> dict[int, Finite]:
    """The domains of the s-ops that are stored in bits where they are exact.

    Selectors that match values (each query at most one key value or the other way round, or what that leaves out) work
    on bits, and so do those that tell few classes of values apart, through an MLP. What others compare, such as with <,
    stays one-hot.
    """
    above = MORE_THAN_FEW if program.stored.few_bits else MANY
    if not program.options.on("bits"):
        return {}
    found = {
        number: node.domain
        for number, node in program.sops.items()
        if node.encoding is Encoding.CATEGORICAL and isinstance(node.domain, Finite) and len(node.domain) > above
    }
    for selector in program.selectors.values():
        if isinstance(selector, SelectorNode) and not found.keys().isdisjoint((selector.keys, selector.queries)):
            selected = selector.table == 1
            if any(at_most_one(selected)) or any(at_most_one(~selected)):
                continue
            for number, rows in ((selector.keys, selected.T), (selector.queries, selected)):
                if number in found and len(group_rows(rows)[0]) > FEW:
                    del found[number]
    if not program.stored.few_bits:
        return found
    moved = _moved(program, found)
    return {number: domain for number, domain in found.items() if number in moved or len(domain) > MANY}


def exact_in_bits(program: Program) -> set[int]:
    """Those of `many_valued` that few values in bits are for: inputs and copies. Other aggregates are never exact."""
    nodes = [program.sops[number] for number in many_valued(program)]
    return {node.id for node in nodes if _embedded(node) or _copies(program, node)}


def _moved(program: Program, found: Iterable[int]) -> set[int]:
    """Those that are copied or put out, and that nothing reads in another way than copying and matching."""
    copies = [node for node in program.sops.values() if _copies(program, node)]
    outputs = {output for _, output in program.outputs}
    written = {node.id for node in program.sops.values() if _embedded(node)}
    moved = {node.id for node in copies} | {node.op.value for node in copies if isinstance(node.op, Aggregation)}
    left = {
        number
        for number in found
        if number in moved | outputs and (number in written or isinstance(program.sops[number].op, Aggregation))
    }
    for node in program.sops.values():
        match node.op:
            case Lookup(inner=inner):
                left -= set() if inner in written and program.options.on("factor") else {inner}
            case PairLookup() | Linear():
                left -= set(node.inputs)
            case Aggregation(value=value) if node not in copies:
                left -= {value}
    for selector in program.selectors.values():
        if isinstance(selector, SelectorNode):
            sides = {selector.keys, selector.queries}
            numerical = any(program.sops[side].encoding is Encoding.NUMERICAL for side in sides)
            left -= set() if all(at_most_one(selector.table == 1)) and not numerical else sides
    changed = True
    while changed:  # what is copied and the copy are both in bits, or neither
        apart = [{node.id, node.op.value} for node in copies if isinstance(node.op, Aggregation)]
        apart = [pair for pair in apart if 0 < len(pair & left) < 2]
        changed = bool(apart)
        left = left.difference(*apart)
    return left


def _embedded(node: SOpNode) -> bool:
    return isinstance(node.op, TokensOp | IndicesOp | Positions)


def _copies(program: Program, node: SOpNode) -> bool:
    op, categorical = node.op, node.encoding is Encoding.CATEGORICAL
    return isinstance(op, Aggregation) and op.copies and categorical and program.selectors[op.selector].at_most_one


class Codebook:
    """The numbers of values, in bits."""

    def __init__(self, program: Program) -> None:
        self.domains = many_valued(program)
        values = dict.fromkeys(value for domain in self.domains.values() for value in domain.values)
        self.numbers: dict[Value, int] = {value: number for number, value in enumerate(values)}

    def codes(self, domain: Finite) -> Array:
        """The bits of every value of a domain."""
        numbers = np.array([self.numbers[value] for value in domain.values])
        return bits_of(numbers, len(self.numbers).bit_length())
