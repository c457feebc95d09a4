"""Step 3: translate every s-op, independently, into heads and MLPs of Craft.

Elementwise operations become MLPs, aggregates and widths become heads (a width is a head and the MLP that decodes it).
Where a reader needs a one-hot code and the s-op is a number, a conversion MLP is inserted, once for each way its values
are told apart.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.circuit import Circuit
from tracr.compiler.domains import Finite
from tracr.compiler.translation.classes import Classes, runs, separate
from tracr.compiler.translation.state import Translation
from tracr.compiler.typed import (
    UNREACHED,
    Aggregation,
    Constant,
    IndicesOp,
    LengthOp,
    Linear,
    Lookup,
    Op,
    PairLookup,
    Positions,
    SOpNode,
    TokensOp,
    Typed,
    Width,
    describe,
)
from tracr.craft.grouping import group_rows
from tracr.craft.linear import BOS, LinearMap, linear_combination, read_code, read_number
from tracr.craft.mlps import Units, carry, look_up, look_up_pairs
from tracr.craft.numerics import GAP, Noise, U, mean_error
from tracr.craft.variables import NUMBER, Array, Variable
from tracr.errors import CompileError
from tracr.rasp.annotations import Encoding
from tracr.rasp.values import Value, is_number

__all__ = ["translate"]

MANY_PAIRS = 4096  # level 0 keeps the paper's table of all pairs up to here


def translate(typed: Typed) -> Circuit:
    """The circuit that computes the typed program."""
    translation = Translation(typed)
    for node in typed.sops.values():
        _translate(node.op, translation, node)
    outputs = tuple((name, translation.variables[output]) for name, output in typed.outputs)
    written = dict.fromkeys(variable for part in translation.components for variable, _ in part.writes)
    return Circuit(typed, tuple(translation.embedded), tuple(written), tuple(translation.components), outputs)


@functools.singledispatch
def _translate(op: Op, translation: Translation, node: SOpNode) -> None:
    raise CompileError(f"no translation for {type(op).__name__}", expression=node.source)


@_translate.register
def _(op: TokensOp, translation: Translation, node: SOpNode) -> None:
    space = translation.space(node)
    vocab = np.arange(len(translation.typed.options.vocab))
    translation.embed(node, by_token=translation.rows(node, space, vocab))


@_translate.register
def _(op: IndicesOp, translation: Translation, node: SOpNode) -> None:
    space = translation.space(node)
    positions = np.arange(translation.typed.options.max_seq_len)
    translation.embed(node, by_position=translation.rows(node, space, positions))


@_translate.register
def _(op: Constant, translation: Translation, node: SOpNode) -> None:
    space = translation.space(node)
    codes = np.zeros(translation.typed.options.max_seq_len, dtype=np.int32)
    translation.embed(node, by_position=translation.rows(node, space, codes))


@_translate.register
def _(op: Positions, translation: Translation, node: SOpNode) -> None:
    translation.embed(node, by_position=translation.rows(node, translation.space(node), op.table))


@_translate.register
def _(op: LengthOp, translation: Translation, node: SOpNode) -> None:
    translation.write_width(node, None)


@_translate.register
def _(op: Width, translation: Translation, node: SOpNode) -> None:
    translation.write_width(node, translation.typed.selectors[op.selector])


@_translate.register
def _(op: Lookup, translation: Translation, node: SOpNode) -> None:
    source, domain = translation.variables[op.inner], translation.typed.sops[op.inner].domain
    assert isinstance(domain, Finite)
    if source.numerical:
        translation.write_function(node, read_number(source), domain, op.table)
        return
    space = translation.space(node)
    table = translation.rows(node, space, op.table)
    units = look_up(read_code(source), table, source.noise, merge=translation.merge)
    translation.variables[node.id] = translation.write_mlp(space, units, describe(translation.typed, node))


@_translate.register
def _(op: Linear, translation: Translation, node: SOpNode) -> None:
    reads = [translation.number(number) for number, _ in op.terms]
    total = linear_combination([(read, factor) for read, (_, factor) in zip(reads, op.terms, strict=True)], op.constant)
    space = translation.space(node)
    if not space.numerical:
        assert isinstance(node.domain, Finite)
        shifted = Finite(tuple(_minus(value, op.constant) for value in node.domain.values))
        translation.write_function(node, total, shifted, np.arange(len(shifted)))
        return
    others: dict[Value, Array] = {None: space.code(None)} if space.maybe_none else {}
    units = carry(total, op.constant, others, space.size)
    if total.noise.grid and float(op.constant).is_integer():
        units = Units(units.read, units.write, Noise())
    translation.variables[node.id] = translation.write_mlp(space, units, describe(translation.typed, node))


def _minus(value: Value, constant: float) -> Value:
    return value - constant if is_number(value) else value


@_translate.register
def _(op: PairLookup, translation: Translation, node: SOpNode) -> None:
    domains = [translation.typed.sops[number].domain for number in (op.fst, op.snd)]
    first, second = domains
    assert isinstance(first, Finite) and isinstance(second, Finite)
    sides = _pair_classes(translation, op, first, second)
    neurons = int((sides[1][1] >= 0).sum())
    numerical = any(translation.variables[number].numerical for number in (op.fst, op.snd))
    worthwhile = translation.merge or numerical or neurons > MANY_PAIRS
    for sign in (1.0, -1.0) if worthwhile else ():
        form = _sum_form(op, first, second, sign)
        if form is not None and 2 * (len(form[1]) + 1) < neurons:
            read = linear_combination([(translation.number(op.fst), 1.0), (translation.number(op.snd), sign)])
            try:
                translation.write_function(node, read, form[0], form[1])
                return
            except CompileError:
                continue
    _write_pairs(translation, node, op, sides)


Side = tuple[Classes, NDArray[np.integer]]


def _pair_classes(translation: Translation, op: PairLookup, first: Finite, second: Finite) -> tuple[Side, Side]:
    """For each input, the class of every value; the second comes with the merged table, [its classes, the first's]."""

    def side(number: int, domain: Finite, rows: NDArray[np.integer]) -> Side:
        if translation.variables[number].numerical:
            return runs(domain, rows)
        if translation.merge:
            first_of, classes = group_rows(rows)
            return classes, rows[first_of]
        return separate(domain), rows

    fst = side(op.fst, first, op.table)
    return fst, side(op.snd, second, fst[1].T)


def _sum_form(op: PairLookup, first: Finite, second: Finite, sign: float) -> tuple[Finite, NDArray[np.integer]] | None:
    """The table as a function of x + sign*y, if it is one: the values of the sum and a code for each."""
    if not (first.numeric and second.numeric) or first.maybe_none or second.maybe_none:
        return None
    rows, columns = np.nonzero(op.table != UNREACHED)
    sums = first.numbers[rows] + sign * second.numbers[columns]
    codes = op.table[rows, columns]
    order = np.argsort(sums, kind="stable")
    sums, codes = sums[order], codes[order]
    apart = np.concatenate([[True], np.diff(sums) > 1e-9 * np.maximum(1.0, np.abs(sums[1:]))])
    group = np.cumsum(apart) - 1
    if (codes != codes[apart][group]).any():
        return None
    return Finite(tuple(sums[apart].tolist())), codes[apart]


def _write_pairs(translation: Translation, node: SOpNode, op: PairLookup, sides: tuple[Side, Side]) -> None:
    """The lookup over pairs of classes."""
    inputs = []
    for number, (classes, _) in zip((op.fst, op.snd), sides, strict=True):
        view, place = translation.one_hot(number, lambda _, classes=classes: classes)  # type: ignore[misc]
        members = np.zeros((view.size, int(classes.max()) + 1))
        members[place, classes] = 1.0
        inputs.append((view, members))
    merged = sides[1][1].T
    space = translation.space(node)
    cells = np.argwhere(merged >= 0)
    written = translation.rows(node, space, merged[cells[:, 0], cells[:, 1]])
    if translation.merge:
        kept = written.any(axis=1)
        cells, written = cells[kept], written[kept]
    (fst, fst_members), (snd, snd_members) = inputs
    units = look_up_pairs(
        read_code(fst),
        read_code(snd),
        fst_members[:, cells[:, 0]],
        snd_members[:, cells[:, 1]],
        written,
        (fst.noise, snd.noise),
    )
    translation.variables[node.id] = translation.write_mlp(space, units, describe(translation.typed, node))


@_translate.register
def _(op: Aggregation, translation: Translation, node: SOpNode) -> None:
    selector = translation.typed.selectors[op.selector]
    space = translation.space(node)
    decoded = not op.copies and not space.numerical
    if decoded:  # average as a number, then decode
        assert isinstance(node.domain, Finite)
        others = tuple(value for value in node.domain.values if not is_number(value))
        label = translation.fresh_label(f"{node.label}_mean")
        low, high = float(node.domain.numbers.min()), float(node.domain.numbers.max())
        space = Variable(label, Encoding.NUMERICAL, (NUMBER, *others), low=low, high=high, node=node.id, scratch=True)
    longest = translation.typed.options.max_seq_len
    if space.numerical:
        read = translation.number(op.value)
        value = _place(read.number, space.size, 0)
        for held, flag in read.flags:
            if held in space.index:
                value = value + _place(flag, space.size, space.index[held])
        if selector.at_most_one:
            noise = Noise(read.noise.error + (0.0 if read.noise.grid else U * read.largest), 0.0, read.noise.grid)
        else:
            noise = Noise(mean_error(longest, read.largest, read.noise.error))
    else:
        view, place = translation.one_hot(op.value, separate)
        domain = translation.typed.sops[op.value].domain
        assert isinstance(domain, Finite)
        moved = np.zeros((view.size, space.size))
        for code, held in enumerate(domain.values):
            moved[place[code], space.index[held]] = 1.0
        value = read_code(view).then(moved)
        several = 0.0 if selector.at_most_one else (longest + 8) * U
        noise = Noise(view.noise.error + several, view.noise.cold)
    default = np.zeros(space.size) if selector.always else space.code(op.default)
    if default.any():
        value = value + LinearMap.of(BOS, default[None, :])
    low, high = space.low, space.high
    variable = Variable(
        space.label, space.encoding, space.values, noise, tuple(default.tolist()), low, high, node.id, space.scratch
    )
    what = describe(translation.typed, node)
    translation.head(selector, -GAP / 2, value, variable, what)
    if decoded:
        assert isinstance(node.domain, Finite)
        translation.write_function(node, read_number(variable), node.domain, np.arange(len(node.domain)))
    else:
        translation.variables[node.id] = variable


def _place(column: LinearMap, width: int, at: int) -> LinearMap:
    row = np.zeros((1, width))
    row[0, at] = 1.0
    return column.then(row)
