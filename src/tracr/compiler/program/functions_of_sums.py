"""The pass `sums`: computes a function of several numbers as a function of one weighted sum, if it is one.

`a and b and c` is 1 where a + b + c is 3, `x and not y` where x - y is 1, and `x > 0 and y == 0`, for y that is 0 or at
least 1/8, where x - 8y is positive. Such a function takes one layer of a few neurons. Tables of pairs would take a
layer for each pair of inputs and a neuron for each pair of values. (`weighted_sums.py` explains the three questions
about sums.)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.program.composition import Composed, compose, pairs_of_classes, tabulated
from tracr.craft.grouping import ascending, group_rows
from tracr.craft.variables import Array
from tracr.ir.domains import Codes, Finite
from tracr.ir.ops import Lookup, Op, PairLookup, SumLookup
from tracr.ir.program import Program
from tracr.nearness import apart, nearly_equal
from tracr.rasp.annotations import Encoding

__all__ = ["function_of", "sums"]

MOST_CELLS_OF_A_SUM = 4096
MOST_TERMS = 8
MOST_NESTED = 16  # the deepest nesting of tables that is tried
POWERS_TRIED = {2: 12, 3: 2}  # powers of two tried as weights, by the number of terms; with more terms only 1 and -1


def sums(program: Program) -> dict[int, Op | int]:
    """For each table that is a function of a weighted sum and takes fewer neurons that way, the new operation."""
    forms: dict[int, list[SumLookup]] = {}
    for node in program.sops.values():
        if isinstance(node.op, PairLookup) and isinstance(node.domain, Finite) and len(node.domain) > 1:
            weighed = (_weighed(program, view) for view in _views(program, node.op))
            forms[node.id] = [form for form in weighed if form is not None]
    if not any(forms.values()):
        return {}
    neurons = _neurons(program)

    def cost(form: SumLookup) -> int:
        return _steps(form.table) + sum(neurons[source] for source, _ in form.terms)

    cheapest = {number: min(found, key=cost) for number, found in forms.items() if found}
    return {number: form for number, form in cheapest.items() if cost(form) < neurons[number]}


def _neurons(program: Program) -> dict[int, int]:
    """For each s-op, about how many neurons all tables between it and means, widths and inputs take."""
    found = dict.fromkeys(program.sops, 0)

    def decoding(source: int, table: Codes) -> int:
        """The neurons to tell apart the values of a number for which the rows of a table differ."""
        domain = program.sops[source].domain
        if program.sops[source].encoding is Encoding.CATEGORICAL or not isinstance(domain, Finite):
            return 0
        return _steps(group_rows(table[domain.ascending[0]])[1])

    for number, node in program.sops.items():
        match node.op:
            case Lookup(inner=inner, table=table):
                found[number] = found[inner] + decoding(inner, table[:, None])
            case PairLookup(fst=fst, snd=snd, table=table):
                apart = decoding(fst, table) + decoding(snd, table.T)
                found[number] = found[fst] + found[snd] + apart + pairs_of_classes(table)
    return found


def _steps(codes: NDArray[np.integer]) -> int:
    """The neurons of a staircase: two for each change, and a constant."""
    return 2 * int(np.count_nonzero(np.diff(codes[codes >= 0]))) + 1


def _views(program: Program, op: PairLookup) -> Iterator[Composed]:
    """The table over its operands, and over the inputs of their tables, the deepest first."""
    ops: dict[int, Op] = {number: node.op for number, node in program.sops.items()}
    own = tabulated(op)
    nested = [own] if own is not None else []
    while nested and len(nested) <= MOST_NESTED:
        pairs = [source for source in nested[-1].sources if isinstance(ops[source], PairLookup)]
        wider = compose(program, nested[-1], ops, pairs, MOST_CELLS_OF_A_SUM) if pairs else None
        if wider is None or len(wider.sources) > MOST_TERMS:
            break
        nested.append(wider)
    for composed in reversed(nested):
        decoded = [source for source in composed.sources if _decodes(program, ops[source])]
        deeper = compose(program, composed, ops, decoded, MOST_CELLS_OF_A_SUM) if decoded else None
        if deeper is not None:
            yield deeper
        yield composed


def _decodes(program: Program, op: Op) -> bool:
    """Whether an operation is a function of a number, which takes neurons."""
    return isinstance(op, Lookup) and program.sops[op.inner].encoding is Encoding.NUMERICAL


def _weighed(program: Program, composed: Composed) -> SumLookup | None:
    """The table as a function of the weighted sum with the fewest changes, if there is such a sum."""
    domains = [program.sops[source].domain for source in composed.sources]
    numbers = [d.numbers for d in domains if isinstance(d, Finite) and d.numeric and not d.maybe_none]
    if len(numbers) < len(domains) or composed.table.size > MOST_CELLS_OF_A_SUM:
        return None
    cells = np.nonzero(composed.table >= 0)
    codes = composed.table[cells]
    held = np.stack([values[places] for values, places in zip(numbers, cells, strict=True)])
    best = _best_weights(held, codes)
    function = None if best is None else function_of(best @ held, codes)
    if best is None or function is None:
        return None
    terms, (points, results) = tuple(zip(composed.sources, best.tolist(), strict=True)), function
    return SumLookup(terms, Finite(tuple(points.tolist())), results, composed.function)


def _best_weights(held: Array, codes: Codes) -> Array | None:
    """Weights for the numbers [term, cell] such that the codes are a function of the sum, with the fewest changes."""
    fewest = len(ascending(codes)) - 1
    best: tuple[int, Array] | None = None
    for weights in _weights(len(held)):
        changes = _changes(weights @ held, codes)
        least = int(changes.argmin())
        if changes[least] < (best[0] if best else len(codes)):
            best = int(changes[least]), weights[least]
        if best is not None and best[0] == fewest:
            break
    return None if best is None else best[1]


def _weights(count: int) -> Iterator[Array]:
    """Weights to try, small ones first, grouped by size; integers, because they keep sums on the grid of the terms."""
    signs = np.array([(1.0, *signs) for signs in itertools.product((1.0, -1.0), repeat=count - 1)])
    powers = range(POWERS_TRIED.get(count, 0) + 1)
    for sizes in sorted(itertools.product([2.0**power for power in powers], repeat=count), key=sum):
        if min(sizes) == 1.0:
            yield signs * sizes


def _changes(totals: Array, codes: Codes) -> NDArray[np.integer]:
    """For each row of sums in ascending order, how often the code changes; the number of cells if a sum has two."""
    order = np.argsort(totals, axis=1, kind="stable")
    changing = np.diff(codes[order], axis=1) != 0
    ascending_totals = totals[np.arange(len(totals))[:, None], order]
    close = nearly_equal(ascending_totals[:, 1:], ascending_totals[:, :-1])
    return np.where((changing & close).any(axis=1), len(codes), changing.sum(axis=1))


def function_of(numbers: Array, codes: Codes) -> tuple[Array, Codes] | None:
    """The distinct numbers in ascending order and the code of each; `None` if equal ones have different codes."""
    order = np.argsort(numbers, kind="stable")
    numbers, codes = numbers[order], codes[order]
    first = apart(numbers)
    if (codes != codes[first][np.cumsum(first) - 1]).any():
        return None
    return numbers[first], codes[first]
