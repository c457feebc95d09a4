"""Tables that equal a weighted sum: `length - 1 - indices`, written as a function of two values, needs no table.

Whether the sum is better depends on the readers, so `search/choices.py` tries both: a sum is a number, and needs no
neurons if its readers can read a number. (`weighted_sums.py` explains the three questions about sums.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tracr.craft.numerics import dyadic_grid
from tracr.craft.variables import Array
from tracr.ir.domains import Domain, Finite
from tracr.ir.ops import ERROR, Linear, Lookup, PairLookup
from tracr.ir.program import Program, SOpNode
from tracr.rasp.annotations import Encoding

__all__ = ["chosen_sums", "sum_of", "tables_of_sums"]

FINEST = 2.0**-10  # factors are multiples of it
LARGEST_TERM = 2.0**20  # factors and numbers stay below it: all sums are exact


def tables_of_sums(program: Program) -> tuple[int, ...]:
    """The s-ops whose tables are weighted sums, except those annotated categorical."""
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
    """The weighted sum that equals a table in all cells that inputs reach; `None` if the user's function may raise."""
    if not isinstance(node.op, Lookup | PairLookup):
        return None
    reached = np.nonzero(node.op.table >= 0)
    numbers = _numbers([node.domain, *(program.sops[number].domain for number in node.inputs)])
    if numbers is None or len(reached[0]) < 2 or (node.op.table == ERROR).any():
        return None
    result, *inputs = numbers
    columns = [held[codes] for held, codes in zip(inputs, reached, strict=True)]
    factors = _factors(columns, result[node.op.table[reached]])
    if factors is None:
        return None
    pairs = zip(node.inputs, factors[:-1].tolist(), strict=True)
    return Linear(tuple((number, factor) for number, factor in pairs if factor), float(factors[-1]))


def _numbers(domains: Sequence[Domain]) -> list[Array] | None:
    """The values of all these domains, if they are numbers that float32 adds up exactly."""
    listed = [domain for domain in domains if isinstance(domain, Finite)]
    if len(listed) < len(domains) or not all(domain.numeric and not domain.maybe_none for domain in listed):
        return None
    exact = all(dyadic_grid(domain.numbers.tolist()) for domain in listed)
    return [domain.numbers for domain in listed] if exact else None


def _factors(columns: Sequence[Array], wanted: Array) -> Array | None:
    """The factor of each column, and the constant, that give `wanted` without rounding; `None` if there are none."""
    terms = np.stack([*columns, np.ones(len(wanted))], axis=1)
    factors: Array = np.round(np.linalg.lstsq(terms, wanted, rcond=None)[0] / FINEST) * FINEST
    small = np.abs(factors).max() < LARGEST_TERM and np.abs(terms * factors).max() < LARGEST_TERM
    return factors if small and (terms @ factors == wanted).all() and factors[:-1].any() else None
