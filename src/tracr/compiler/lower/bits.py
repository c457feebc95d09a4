"""Which s-ops are stored in bits: those with very many values, unless a selector needs the values one by one.

With the option `few_bits` (`Stored.few_bits`), also s-ops with fewer values that are copied or are outputs, if all
their readers can use bits without an MLP in between.

Values are numbered, and a value has the same number in every s-op. A copy therefore has the same code, and the codes of
two s-ops are equal exactly if their values are equal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import numpy as np

from tracr.craft.grouping import at_most_one, group_rows
from tracr.craft.variables import Array, bits_of
from tracr.ir.domains import Finite
from tracr.ir.ops import Aggregation, IndicesOp, Lookup, Positions, SumLookup, TokensOp
from tracr.ir.program import Program, SOpNode
from tracr.ir.selectors import SelectorNode
from tracr.ir.switches import OptionName, PassName
from tracr.rasp.annotations import Encoding
from tracr.values import Value

__all__ = ["Codebook", "exact_in_bits", "many_valued"]

IN_BITS_ABOVE = 1024  # a categorical s-op with more values is stored in bits
COPIED_IN_BITS_ABOVE = 4  # or with more values than this, if it is only copied and matched
FEW_CLASSES = 64  # up to this many classes get a direction each, in addition to the bits


def many_valued(program: Program) -> dict[int, Finite]:
    """The domains of the s-ops that are stored in bits if they are exact.

    Selectors that match values (each query selects at most one key value, or the other way round, or the complement of
    that) work on bits. Selectors that tell few classes of values apart work on bits through an MLP. S-ops compared in
    another way, such as with <, stay one-hot.
    """
    above = COPIED_IN_BITS_ABOVE if program.stored.few_bits else IN_BITS_ABOVE
    if not program.options.on(OptionName.BITS):
        return {}
    found = {
        number: node.domain
        for number, node in program.sops.items()
        if node.encoding is Encoding.CATEGORICAL and isinstance(node.domain, Finite) and len(node.domain) > above
    }
    for selector in program.selectors.values():
        if isinstance(selector, SelectorNode) and not found.keys().isdisjoint((selector.keys, selector.queries)):
            for number in _compared_one_by_one(selector, found):
                del found[number]
    if not program.stored.few_bits:
        return found
    moved = _moved(program, found)
    return {number: domain for number, domain in found.items() if number in moved or len(domain) > IN_BITS_ABOVE}


def _compared_one_by_one(selector: SelectorNode, found: Collection[int]) -> Iterator[int]:
    """The s-ops for which a selector tells many classes of values apart without matching values."""
    selected = selector.table == 1
    if any(at_most_one(selected)) or any(at_most_one(~selected)):
        return
    for number, rows in ((selector.keys, selected.T), (selector.queries, selected)):
        if number in found and len(group_rows(rows)[0]) > FEW_CLASSES:
            yield number


def exact_in_bits(program: Program) -> set[int]:
    """The s-ops of `many_valued` that can be exact: inputs and copies. Other aggregates are never exact."""
    nodes = [program.sops[number] for number in many_valued(program)]
    return {node.id for node in nodes if _embedded(node) or _copies(program, node)}


def _moved(program: Program, found: Iterable[int]) -> set[int]:
    """The s-ops that are copied or are outputs, and are read only by copies and matchings."""
    pairs = [
        {node.id, node.op.value}
        for node in program.sops.values()
        if isinstance(node.op, Aggregation) and _copies(program, node)
    ]
    wanted = {output for _, output in program.outputs}.union(*pairs)
    left = {number for number in found if number in wanted and _is_moved_or_embedded(program.sops[number])}
    left -= _read_by_tables(program) | _compared_otherwise(program)
    while apart := [pair for pair in pairs if 0 < len(pair & left) < 2]:
        left = left.difference(*apart)  # a copy and its source are both in bits, or neither is
    return left


def _read_by_tables(program: Program) -> set[int]:
    """The s-ops read by MLPs value by value, or averaged; a table of an embedded s-op can be embedded itself."""
    read: set[int] = set()
    for node in program.sops.values():
        match node.op:
            case Lookup(inner=inner) if program.options.on(PassName.FACTOR) and _embedded(program.sops[inner]):
                pass
            case SumLookup():
                pass  # reads numbers
            case Aggregation() if _copies(program, node):
                pass
            case _:
                read.update(node.inputs, node.op.attended)
    return read


def _compared_otherwise(program: Program) -> set[int]:
    """The keys and queries of selectors that do more than match one value with one, or match numbers."""
    compared: set[int] = set()
    for selector in program.selectors.values():
        if isinstance(selector, SelectorNode):
            sides = {selector.keys, selector.queries}
            numerical = any(program.sops[side].encoding is Encoding.NUMERICAL for side in sides)
            if numerical or not all(at_most_one(selector.table == 1)):
                compared |= sides
    return compared


def _embedded(node: SOpNode) -> bool:
    return isinstance(node.op, TokensOp | IndicesOp | Positions)


def _is_moved_or_embedded(node: SOpNode) -> bool:
    return _embedded(node) or isinstance(node.op, Aggregation)


def _copies(program: Program, node: SOpNode) -> bool:
    op, categorical = node.op, node.encoding is Encoding.CATEGORICAL
    return isinstance(op, Aggregation) and op.copies and categorical and program.selectors[op.selector].at_most_one


class Codebook:
    """The numbers of all values, in bits."""

    def __init__(self, program: Program) -> None:
        self.domains = many_valued(program)
        values = dict.fromkeys(value for domain in self.domains.values() for value in domain.values)
        self.numbers: dict[Value, int] = {value: number for number, value in enumerate(values)}

    def codes(self, domain: Finite) -> Array:
        """The bits of every value of a domain."""
        numbers = np.array([self.numbers[value] for value in domain.values])
        return bits_of(numbers, len(self.numbers).bit_length())
