"""Functions of two s-ops: a neuron for each pair of values, or fewer if only the sum or the difference matters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.lower.circuit_builder import CircuitBuilder
from tracr.compiler.lower.classes import Classes, runs, separate
from tracr.compiler.lower.numbers import FunctionOfNumber, one_hot
from tracr.compiler.program.functions_of_sums import function_of
from tracr.craft.grouping import group_rows
from tracr.craft.linear import LinearMap, linear_combination, read_through
from tracr.craft.lookups import look_up_pairs
from tracr.craft.numerics import EXACT
from tracr.errors import CompileError
from tracr.ir.domains import Codes, Finite
from tracr.ir.ops import UNREACHED, PairLookup
from tracr.ir.program import SOpNode, describe
from tracr.ir.switches import OptionName

__all__ = ["write_pairs"]

PAIR_MARGIN = 0.1  # the errors of two codes together must stay below a quarter
FEWEST_FOR_SUM = 4  # neurons that even a constant function of a sum may take
MANY_PAIRS = 4096  # up to this many pairs, a table of one-hot codes is not replaced by a less exact construction


def write_pairs(builder: CircuitBuilder, node: SOpNode, op: PairLookup) -> None:
    """Add the cheapest construction: a function of x + y or x - y if the table is one, else the table of pairs.

    For one-hot inputs of moderate size, the table is kept unless the sum is decoded exactly in one layer; without the
    option `kinks` the table is always kept.
    """
    first, second = (builder.program.sops[number].domain for number in (op.fst, op.snd))
    assert isinstance(first, Finite) and isinstance(second, Finite)
    op = replace(op, table=builder.told_apart(node, op.table))
    sides = _pair_classes(builder, op, first, second)
    neurons = int((sides[1][1] >= 0).sum())
    numerical = any(builder.variable(number).numerical for number in (op.fst, op.snd))
    may_be_sum = neurons > FEWEST_FOR_SUM and (builder.on(OptionName.KINKS) or numerical or neurons > MANY_PAIRS)
    for sign in (1.0, -1.0) if may_be_sum else ():
        form = _sum_form(op, first, second, sign)
        if form is None or 2 * (len(form[1]) + 1) >= neurons:
            continue
        if _write_sum(builder, node, op, sign, form, must_be_exact=not numerical and neurons <= MANY_PAIRS):
            return
    _write_table(builder, node, op, sides)


Form = tuple[Finite, Codes]


def _write_sum(
    builder: CircuitBuilder, node: SOpNode, op: PairLookup, sign: float, form: Form, *, must_be_exact: bool
) -> bool:
    """Try to write the s-op as a function of the sum or difference; return whether it worked."""
    if must_be_exact and any(builder.variable(n).noise != EXACT for n in (op.fst, op.snd)):
        return False
    read = linear_combination([(builder.number(op.fst), 1.0), (builder.number(op.snd), sign)], to=builder.format)
    try:
        function = FunctionOfNumber(builder, node, read, *form)
        units = function.direct()
        if must_be_exact and (units is None or units.noise != EXACT):
            return False
        function.write(units)
    except CompileError:  # values too close or numbers too rough: the table of pairs is used
        return False
    return True


Side = tuple[Classes, NDArray[np.integer]]


def _pair_classes(builder: CircuitBuilder, op: PairLookup, first: Finite, second: Finite) -> tuple[Side, Side]:
    """For each input, the class of every value; the second with the merged table [its classes, the first's]."""

    def side(number: int, domain: Finite, rows: NDArray[np.integer]) -> Side:
        if builder.variable(number).numerical:
            return runs(domain, rows)
        if builder.on(OptionName.KINKS):
            first_of, classes = group_rows(rows)
            return classes, rows[first_of]
        return separate(domain), rows

    fst = side(op.fst, first, op.table)
    return fst, side(op.snd, second, fst[1].T)


def _sum_form(op: PairLookup, first: Finite, second: Finite, sign: float) -> Form | None:
    """The table as a function of x + sign*y, if it is one: the values of the sum and a code for each.

    The pass `sums` tries more weights, and nested tables. This function is for the tables left by it, and for level 1.
    """
    if not (first.numeric and second.numeric) or first.maybe_none or second.maybe_none:
        return None
    rows, columns = np.nonzero(op.table != UNREACHED)
    function = function_of(first.numbers[rows] + sign * second.numbers[columns], op.table[rows, columns])
    return None if function is None else (Finite(tuple(function[0].tolist())), function[1])


def _check_neurons(builder: CircuitBuilder, node: SOpNode, pairs: int, inputs: Sequence[LinearMap], width: int) -> None:
    """Refuse a table of pairs that is too large, before its neurons are made; rough codes take two for each pair."""
    rows = sum(len(block) for linear in inputs for block in linear.blocks.values())
    what = f"needs a neuron for each of {pairs:,} pairs of values, which reads {rows:,} directions"
    builder.need(pairs, 2 * rows + width, what, node)


def _write_table(builder: CircuitBuilder, node: SOpNode, op: PairLookup, sides: tuple[Side, Side]) -> None:
    """The lookup over pairs of classes."""
    inputs = []
    for number, (classes, _) in zip((op.fst, op.snd), sides, strict=True):
        view, place = one_hot(builder, number, classes)
        if view.noise.error + view.size * view.noise.cold > PAIR_MARGIN:
            view = builder.cleaned(view)
        members = np.zeros((view.size, int(classes.max()) + 1))
        members[place, classes] = 2.0
        inputs.append((view.noise, read_through(view, members)))
    merged = sides[1][1].T
    space = builder.space(node, exact=all(noise == EXACT for noise, _ in inputs))
    cells = np.argwhere(merged >= 0)
    _check_neurons(builder, node, len(cells), [linear for _, linear in inputs], space.size)
    written = builder.rows(node, space, merged[cells[:, 0], cells[:, 1]])
    if builder.on(OptionName.KINKS):
        kept = written.any(axis=1)
        cells, written = cells[kept], written[kept]
    (fst_noise, fst), (snd_noise, snd) = inputs
    soft, noise = builder.slope(space.label) > 0, (fst_noise, snd_noise)
    left, right = fst.take(cells[:, 0]), snd.take(cells[:, 1])
    units = look_up_pairs(left, right, written, noise, soft=soft, to=builder.format)
    builder.holds(node, builder.write_mlp(space, units, describe(builder.program, node)))
