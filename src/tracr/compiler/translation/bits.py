"""Which s-ops are stored in bits: those with very many values, unless a selector needs them one by one.

Values are numbered, and a value has the same number in every s-op that may hold it: so a code is copied as it is, and
codes of two s-ops agree exactly where the values do.
"""

from __future__ import annotations

import numpy as np

from tracr.compiler.domains import Finite
from tracr.compiler.typed import SelectorNode, Typed
from tracr.craft.grouping import at_most_one, group_rows
from tracr.craft.variables import Array, bits_of
from tracr.rasp.annotations import Encoding
from tracr.rasp.values import Value

__all__ = ["Codebook", "many_valued"]

MANY = 1024  # a categorical s-op with more values is stored in bits
FEW = 64  # classes that are worth a direction each, beside the bits


def many_valued(typed: Typed) -> dict[int, Finite]:
    """The domains of the s-ops that are stored in bits where they are exact.

    Selectors that match values (each query at most one key value or the other way round, or what that leaves out) work
    on bits, and so do those that tell few classes of values apart, through an MLP. What others compare, such as with <,
    stays one-hot.
    """
    if not typed.options.on("bits"):
        return {}
    found = {
        number: node.domain
        for number, node in typed.sops.items()
        if node.encoding is Encoding.CATEGORICAL and isinstance(node.domain, Finite) and len(node.domain) > MANY
    }
    for selector in typed.selectors.values():
        if isinstance(selector, SelectorNode) and not found.keys().isdisjoint((selector.keys, selector.queries)):
            selected = selector.table == 1
            if any(at_most_one(selected)) or any(at_most_one(~selected)):
                continue
            for number, rows in ((selector.keys, selected.T), (selector.queries, selected)):
                if number in found and len(group_rows(rows)[0]) > FEW:
                    del found[number]
    return found


class Codebook:
    """The numbers of values, in bits."""

    def __init__(self, typed: Typed) -> None:
        self.domains = many_valued(typed)
        values = dict.fromkeys(value for domain in self.domains.values() for value in domain.values)
        self.numbers: dict[Value, int] = {value: number for number, value in enumerate(values)}

    def codes(self, domain: Finite) -> Array:
        """The bits of every value of a domain."""
        numbers = np.array([self.numbers[value] for value in domain.values])
        return bits_of(numbers, len(self.numbers).bit_length())
