"""One attention head: the keys and queries of a conjunction, and the values read at the keys."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.lower.circuit_builder import CircuitBuilder
from tracr.compiler.lower.classes import Classes, runs, separate
from tracr.compiler.lower.numbers import one_hot
from tracr.compiler.program.matching import numbered_keys
from tracr.compiler.selectors.conjunctions import Conjunction, SelectorLiteral
from tracr.craft.grouping import at_most_one, group_rows
from tracr.craft.heads import (
    SQUARE_RANK,
    SQUARES,
    Head,
    attend,
    number_logits,
    own_numbers,
    selector_logits,
    square_logits,
)
from tracr.craft.linear import ONE, LinearMap, present, read_code, read_through
from tracr.craft.lookups import look_up_bits
from tracr.craft.mlps import MLP
from tracr.craft.numerics import EXACT, GAP, Noise, U, dyadic_grid, leak, mean_error, power_of_two_above
from tracr.craft.variables import Array, Variable
from tracr.errors import CompileError
from tracr.ir.domains import Finite
from tracr.ir.ops import Aggregation
from tracr.ir.options import MOST_ASTRAY
from tracr.ir.selectors import Selector
from tracr.ir.softness import default_logit, leaked
from tracr.ir.switches import OptionName
from tracr.values import is_number

__all__ = ["add_head", "astray", "astray_in_sums", "read_codes", "read_numbers"]

HeadValue = tuple[LinearMap, Noise]  # the map of the values of a head, and the noise of the result
Writes = tuple[tuple[Variable, Array], ...]
NOTHING = LinearMap({}, 0)


def add_head(
    builder: CircuitBuilder,
    selector: Selector | None,
    conjunction: Conjunction,
    bos_logit: float,
    value: LinearMap,
    writes: Writes,
    what: str,
    *,
    surely: bool = False,
    copies: bool = False,
) -> None:
    """Add a head that reads `value` at the keys of a conjunction of the selector.

    `surely`: every query has such a key. `copies`: all values at these keys are equal.
    """
    one_to_find = selector is not None and (selector.at_most_one or copies) and bos_logit < 0
    same = conjunction, bos_logit, one_to_find, surely  # the pattern is shared with heads that read other values there
    label = writes[0][0].label
    query, key = builder.attention(same, lambda: _softened(builder, label, *same), what)
    name = "everything" if selector is None else selector.label
    builder.add(Head(label, query, key, value, writes, name, what), value)


def _softened(
    builder: CircuitBuilder, label: str, conjunction: Conjunction, bos_logit: float, one_to_find: bool, surely: bool
) -> tuple[LinearMap, LinearMap]:
    """The queries and keys of a head, with the gap of the head.

    PAD keeps its distance, and so does the BOS query from other keys. BOS keeps its weight if it takes part in a sum or
    a width. As a default it is where its share is smallest (`default_logit`), and if every query selects a key it has
    the logit of PAD: no attention.
    """
    query, key, always = _attention(builder, conjunction, one_to_find, surely)
    options = builder.program.options
    if options.soft is None:
        return attend(query, key, always, bos_logit, options.gap, options.format)
    gap = options.soft.gap_of(label)
    if bos_logit < 0:
        bos_logit = -2 * GAP if surely else default_logit(gap, options.max_seq_len)
    scale = gap / options.gap
    return attend(query, key.then(scale * np.eye(key.width)), always.then(np.array([[scale]])), bos_logit)


def _attention(
    builder: CircuitBuilder, conjunction: Conjunction, one_to_find: bool, surely: bool
) -> tuple[LinearMap, LinearMap, LinearMap]:
    """The queries and keys of a head, and a term of the keys that is the same for every query."""
    query, key, always = NOTHING, NOTHING, LinearMap({}, 1)
    tolerance = 1 / 16 if one_to_find and not builder.leaks else 0.0
    for literal in conjunction.literals:
        queries, keys, for_all = (
            (_find_number(builder, literal) if surely else None)
            or _match_bits(builder, literal)
            or _match_classes(builder, literal, tolerance)
        )
        query, key = (queries, keys) if query is NOTHING else (query.beside(queries), key.beside(keys))
        always = always + for_all
    return query, key, always


Sides = tuple[LinearMap, LinearMap, LinearMap]  # queries, keys, and a term of the keys that is the same for every query


def _find_number(builder: CircuitBuilder, literal: SelectorLiteral) -> Sides | None:
    """A matching with queries that are numbers; if they are many, keys are counted from the middle."""
    keys, queries = builder.variable(literal.keys), builder.variable(literal.queries)
    if not (_may_match(builder) and _is_exact_code(builder, keys) and _is_readable_number(queries)):
        return None
    domains = [builder.program.sops[number].domain for number in (literal.queries, literal.keys)]
    assert isinstance(domains[0], Finite) and isinstance(domains[1], Finite)
    found = numbered_keys(literal.selected, domains[0], domains[1])
    if found is None:
        return None
    numbers, unit = found
    read = builder.number(literal.queries)
    for centre in (0.0, unit * round(float(numbers.min() + numbers.max()) / (2 * unit))):
        moved, error = (numbers - centre) / unit, read.noise.error
        largest = max(abs(read.low - centre), abs(read.high - centre)) + error
        error += U * (read.largest + abs(centre)) if error and centre else 0.0
        logits = number_logits(moved, largest / unit, error / unit)
        if logits is not None:
            query = read.number.then(np.array([[1 / unit]]))
            query = query + present().then(np.array([[-centre / unit]])) if centre else query
            by_query, always = (read_through(keys, column[:, None]) for column in logits)
            return query, by_query, always
    return None


def _may_match(builder: CircuitBuilder) -> bool:
    """Whether keys may be found by their numbers: these logits need the usual gap, and more than 16 bits."""
    return builder.on(OptionName.MATCH) and builder.program.options.gap == GAP and not builder.format.short


def _is_exact_code(builder: CircuitBuilder, keys: Variable) -> bool:
    """Whether keys hold an exact one-hot code, or zero, at PAD too."""
    return not (keys.numerical or keys.compact) and keys.noise == EXACT and _clean_at_pad(builder, keys)


def _is_readable_number(queries: Variable) -> bool:
    """Whether queries can be read as a number without an MLP in between."""
    return queries.numerical or (not queries.compact and queries.noise == EXACT)


def _clean_at_pad(builder: CircuitBuilder, variable: Variable) -> bool:
    """Whether the code at PAD is that of a value, or zero: true for embedded variables and tables of them."""
    if builder.is_embedded(variable):
        return True
    writer = builder.writer(variable)
    linear = writer.linear if isinstance(writer, MLP) else None
    if linear is None or any(read.numerical for read in linear.blocks):  # ONE and BOS are numbers
        return False
    return all(_clean_at_pad(builder, read) for read in linear.blocks)


def _match_bits(builder: CircuitBuilder, literal: SelectorLiteral) -> Sides | None:
    """A matching with codes in bits, if each query selects at most one key value, or the other way round.

    Let the keys be in bits. The query holds the bits b of the key it selects, or zeros if there is none. With the bits
    c of the key, the logit g/2 (b . c - B) is 0 if all B bits agree, and -g or less otherwise. g is the gap or the next
    power of two, so nothing is rounded. The term -g/2 B, the same for every query, has its own coordinate and is 0 at
    BOS.
    """
    if not any(builder.variable(number).compact for number in (literal.keys, literal.queries)):
        return None
    gap = power_of_two_above(builder.program.options.gap)
    one = at_most_one(literal.selected)
    every, nothing = LinearMap.of(ONE, np.eye(1)), LinearMap({}, 1)
    for swapped in (False, True):
        number, other = (literal.queries, literal.keys) if swapped else (literal.keys, literal.queries)
        own, selected = builder.variable(number), literal.selected.T if swapped else literal.selected
        if own.codebook is None or not one[swapped]:
            continue
        bits, off = read_through(own, gap / 2 * np.eye(own.size)), present().then(np.array([[-gap / 2 * own.size]]))
        wanted = np.where(selected.any(axis=1, keepdims=True), own.codebook[selected.argmax(axis=1)], 0.0)
        if len(wanted) == 1 and not swapped:  # every query is the same
            return every, bits.then(wanted.T) + off, nothing
        found = _bits(builder, other, selected, wanted, own)
        if found is not None:
            query, key = (bits, found) if swapped else (found, bits)
            return query.beside(every), key.beside(off), nothing
    return None


def _bits(
    builder: CircuitBuilder, number: int, selected: NDArray[np.bool_], wanted: Array, target: Variable
) -> LinearMap | None:
    """The wanted bits of each value of an s-op; `None` if they would not be exact.

    An s-op in bits already holds them if it selects equal values; else an MLP looks them up.
    """
    variable, domain = builder.variable(number), builder.program.sops[number].domain
    assert isinstance(domain, Finite)
    if variable.codebook is not None:
        some: NDArray[np.bool_] = np.any(wanted, axis=1)
        strangers = all(value not in target.index for value, one in zip(domain.values, some, strict=True) if not one)
        if strangers and (variable.codebook[some] == wanted[some]).all():
            return read_code(variable)
        return read_code(_recoded(builder, number, variable, wanted))
    classes = runs(domain, selected.astype(np.int8))[0] if variable.numerical else separate(domain)
    view, place = one_hot(builder, number, classes)
    if view.noise != EXACT:
        return None
    table = np.zeros((view.size, target.size))
    table[place] = wanted
    return _read(builder, view, table)


def _recoded(builder: CircuitBuilder, number: int, variable: Variable, wanted: Array) -> Variable:
    """The variable with the bits of the value that each value selects."""

    def make() -> Variable:
        assert variable.codebook is not None
        space = replace(variable, label=builder.fresh_label(f"{variable.label}_match"), at_bos=(), codebook=wanted)
        units = look_up_bits(read_code(variable), variable.codebook, wanted, builder.format)
        return builder.write_mlp(space, units, f"the value that {variable.label} selects, in bits")

    return builder.view(number, wanted, make)


def _match_classes(builder: CircuitBuilder, literal: SelectorLiteral, tolerance: float) -> Sides:
    """Any literal, from one-hot codes of classes of keys and queries.

    Cold coordinates of rough codes shift logits. If several keys are averaged, or compared with BOS's weight, no shift
    is allowed. If one key is to be found, or several with the same value, a shift of `tolerance`, a sixteenth of the
    gap, is allowed. Compact codes multiply errors, so they are used for exact one-hot codes only.
    """
    sides = []
    for number, rows in ((literal.queries, literal.selected), (literal.keys, literal.selected.T)):
        domain = builder.program.sops[number].domain
        assert isinstance(domain, Finite)
        variable, place = builder.variable(number), None
        if variable.numerical:
            variable, place = one_hot(builder, number, runs(domain, rows.astype(np.int8))[0])
        elif variable.compact:
            variable, place = one_hot(builder, number, group_rows(rows)[1])
        if variable.noise.cold * variable.size > tolerance:
            variable = builder.cleaned(variable)
        sides.append((variable, place))
    (queries, query_place), (keys, key_place) = sides
    sizes, node = sorted((queries.size, keys.size)), builder.program.sops[literal.queries]
    builder.need(sum(sizes), sizes[0], f"is compared, {sizes[1]:,} by {sizes[0]:,} values", node, times=3)
    selected = literal.selected
    if query_place is not None or key_place is not None:
        selected = _at_places(_at_places(selected, query_place, queries.size).T, key_place, keys.size).T
    exact = queries.noise == keys.noise == EXACT
    numbers = _own_numbers(builder, literal, (queries, keys)) if exact else None
    compact = builder.on(OptionName.RANK) and exact
    if numbers is None:
        gap, classes = builder.program.options.gap, literal.classes if selected is literal.selected else None
        squares = 0 if builder.format.short else SQUARES
        query_map, key_map = selector_logits(
            selected, gap, compact=compact, legible=literal.legible, squares=squares, classes=classes
        )
    else:
        query_map, key_map = square_logits(*numbers)
    same = (query_map == query_map[0]).all(axis=0) & _may_share(builder, keys, key_map)
    always = LinearMap({}, 1)
    if same.any():
        always = _read(builder, keys, key_map[:, same] @ query_map[0, same][:, None])
        query_map, key_map = query_map[:, ~same], key_map[:, ~same]
    return _read(builder, queries, query_map), _read(builder, keys, key_map), always


def _at_places(rows: NDArray[np.bool_], place: Classes | None, size: int) -> NDArray[np.bool_]:
    """The rows of values, moved to the places of their classes, if there are classes."""
    if place is None:
        return rows
    found = np.zeros((size, rows.shape[1]), dtype=bool)
    found[place] = rows
    return found


def _own_numbers(
    builder: CircuitBuilder, literal: SelectorLiteral, sides: tuple[Variable, Variable]
) -> tuple[Array, Array] | None:
    """Numbers for a matching, if they take fewer coordinates than values and the codes are the s-ops' own."""
    if not _may_match(builder):
        return None
    domains = [builder.program.sops[number].domain for number in (literal.queries, literal.keys)]
    held = [builder.variable(number) for number in (literal.queries, literal.keys)]
    if any(variable is not side for variable, side in zip(held, sides, strict=True)):
        return None
    numbers = [d.numbers for d in domains if isinstance(d, Finite) and d.numeric and not d.maybe_none]
    if len(numbers) < 2 or min(literal.selected.shape) <= SQUARE_RANK:
        return None
    return own_numbers(literal.selected, numbers[0], numbers[1])


def _may_share(builder: CircuitBuilder, keys: Variable, key_map: Array) -> bool:
    """Whether the term that is the same for every query may share the coordinate of BOS's logit.

    Keys that are not zero at BOS are cancelled there; the cancelled terms must not be so large that they round the
    logit (`bos_logit`).
    """
    small = float(np.abs(key_map).max(initial=0.0)) <= builder.program.options.gap
    return builder.on(OptionName.RANK) and (small or builder.is_embedded(keys))


def _read(builder: CircuitBuilder, variable: Variable, matrix: Array) -> LinearMap:
    """The map from the code of keys or queries through a matrix; a constant is read from no direction."""
    if variable.size == 1 and builder.on(OptionName.CONSTANTS):
        return present().then(matrix)
    return read_through(variable, matrix)


def read_numbers(
    builder: CircuitBuilder, op: Aggregation, selector: Selector, space: Variable, *, surely: bool = False
) -> HeadValue:
    """The map of the number, with a flag for each value that is not a number, such as `None`.

    `surely`: every query has a key in this head.
    """
    read = builder.number(op.value)
    value = _place(read.number, space.size, 0)
    for held, flag in read.flags:
        if held in space.index:
            value = value + _place(flag, space.size, space.index[held])
    default = float(op.default) if is_number(op.default) and not selector.always else 0.0
    lost = 2 * astray(builder, surely=surely) * max(read.largest, abs(default))
    if selector.at_most_one:
        grid = min(read.noise.grid, dyadic_grid([default])) if read.noise.grid and not lost else 0.0
        if builder.format.short and max(read.largest, abs(default)) > builder.format.steps * grid:
            grid = 0.0
        copied = 0.0 if grid else builder.format.roundoff * max(read.largest, abs(default))
        return value, Noise(read.noise.error + copied + lost, 0.0, grid)
    if builder.format.short:  # equal numbers: their weights, what is read and what is written are rounded
        return value, Noise(read.noise.error + 4 * builder.format.roundoff * read.largest)
    return value, Noise(mean_error(builder.program.options.max_seq_len, read.largest, read.noise.error) + lost)


def read_codes(
    builder: CircuitBuilder, op: Aggregation, selector: Selector, space: Variable, *, surely: bool = False
) -> HeadValue:
    """The map of the code, moved to the directions of the result; `surely`: every query has a key in this head."""
    source = builder.variable(op.value)
    if source.compact and space.compact:  # a value has the same bits everywhere
        return read_code(source), EXACT
    domain = builder.program.sops[op.value].domain
    assert isinstance(domain, Finite)
    view, place = one_hot(builder, op.value, separate(domain))
    what = f"copies {view.size:,} values to {space.size:,} directions"
    builder.need(view.size, space.size, what, builder.program.sops[op.value], times=3)
    moved = np.zeros((view.size, space.size))
    moved[place] = space.codes(domain.values)
    added = 0.0 if selector.at_most_one else (builder.program.options.max_seq_len + 8) * U
    if added and builder.format.short:
        added = 4 * builder.format.roundoff
    lost = astray(builder, surely=surely)
    return read_through(view, moved), Noise(view.noise.error + added + lost, view.noise.cold + lost)


def astray(builder: CircuitBuilder, *, surely: bool) -> float:
    """The most attention that leaks to unselected keys with the chosen gap; `surely`: every query selects a key."""
    options = builder.program.options
    if options.soft is None or not options.soft.bounded:
        return leak(options.gap, options.max_seq_len)
    found = leaked(options.soft.gap, options.max_seq_len, surely=surely)
    if found > MOST_ASTRAY:
        raise CompileError(
            f"with a gap of {options.soft.gap:g} up to {found:.0%} of the attention leaks to other keys",
            hint="use a larger gap",
        )
    return found


def astray_in_sums(builder: CircuitBuilder) -> float:
    """How much a key that is not selected adds to a sum, relative to a selected key."""
    options = builder.program.options
    if options.soft is None or not options.soft.bounded:
        return leak(options.gap, options.max_seq_len)
    return 1.01 * math.exp(-options.soft.gap)


def _place(column: LinearMap, width: int, at: int) -> LinearMap:
    row = np.zeros((1, width))
    row[0, at] = 1.0
    return column.then(row)
