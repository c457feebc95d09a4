"""Tables that are weighted sums: `length - 1 - indices`, written as a function of two values, needs no table.

Whether a table is better computed as a sum depends on its readers (`search/choices.py` tries): a sum is a number, and
needs no neurons at all where they can read it as one.
"""

from __future__ import annotations

import numpy as np

from tracr.craft.numerics import dyadic_grid
from tracr.ir.domains import Finite
from tracr.ir.ops import ERROR, Linear, Lookup, PairLookup
from tracr.ir.program import Program, SOpNode
from tracr.rasp.annotations import Encoding

__all__ = ["chosen_sums", "sum_of", "tables_of_sums"]

FINEST = 2.0**-10  # factors are multiples of it
LARGEST = 2.0**20  # and stay below, as do the numbers: everything is exact


def tables_of_sums(program: Program) -> tuple[int, ...]:
    """The s-ops whose tables are weighted sums, and which nobody wants one-hot."""
    return tuple(
        number
        for number, node in program.sops.items()
        if node.wish is not Encoding.CATEGORICAL and sum_of(program, node) is not None
    )


def chosen_sums(program: Program) -> dict[int, Linear]:
    """The sums that s-ops are computed as (`Stored.sums`)."""
    found = {number: sum_of(program, program.sops[number]) for number in program.stored.sums if number in program.sops}
    return {number: op for number, op in found.items() if op is not None}


def sum_of(program: Program, node: SOpNode) -> Linear | None:
    """The weighted sum that a table is, exactly, in all cells an input leads to; the user's function never raises."""
    if not isinstance(node.op, Lookup | PairLookup):
        return None
    domains = [program.sops[number].domain for number in node.inputs]
    listed = [domain for domain in (node.domain, *domains) if isinstance(domain, Finite)]
    if len(listed) <= len(domains) or not all(domain.numeric and not domain.maybe_none for domain in listed):
        return None
    result, *inputs = listed
    reached = np.nonzero(node.op.table >= 0)
    if len(reached[0]) < 2 or (node.op.table == ERROR).any():
        return None
    if any(not dyadic_grid(domain.numbers.tolist()) for domain in listed):
        return None
    columns = [domain.numbers[codes] for domain, codes in zip(inputs, reached, strict=True)]
    wanted = result.numbers[node.op.table[reached]]
    terms = np.stack([*columns, np.ones(len(wanted))], axis=1)
    factors = np.round(np.linalg.lstsq(terms, wanted, rcond=None)[0] / FINEST) * FINEST
    small = np.abs(factors).max() < LARGEST and np.abs(terms * factors).max() < LARGEST
    if not small or (terms @ factors != wanted).any() or not factors[:-1].any():
        return None
    pairs = zip(node.inputs, factors[:-1].tolist(), strict=True)
    return Linear(tuple((number, factor) for number, factor in pairs if factor), float(factors[-1]))
