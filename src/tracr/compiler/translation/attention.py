"""Attention: the keys and queries of a selector, aggregates, and selector widths."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tracr.compiler.domains import Finite
from tracr.compiler.translation.classes import runs, separate
from tracr.compiler.translation.numbers import one_hot, write_function
from tracr.compiler.translation.state import Translation
from tracr.compiler.typed import Aggregation, SelectorNode, SOpNode, describe
from tracr.craft.heads import Head, attend, selector_logits
from tracr.craft.linear import BOS, LinearMap, present, read_code, read_number
from tracr.craft.numerics import GAP, Noise, U, dyadic_grid, mean_error, share_error
from tracr.craft.variables import NUMBER, Variable
from tracr.rasp.annotations import Encoding
from tracr.rasp.values import is_number

__all__ = ["write_aggregate", "write_width"]

HeadValue = tuple[LinearMap, Noise]  # what a head reads at the keys, and how exact the result is


def write_aggregate(translation: Translation, node: SOpNode, op: Aggregation) -> None:
    """A head that copies or averages; a mean that is to be one-hot is averaged as a number and then decoded."""
    space = translation.space(node)
    decoded = not op.copies and not space.numerical
    if decoded:
        assert isinstance(node.domain, Finite)
        others = tuple(value for value in node.domain.values if not is_number(value))
        label = translation.fresh_label(f"{node.label}_mean")
        low, high = float(node.domain.numbers.min()), float(node.domain.numbers.max())
        space = Variable(label, Encoding.NUMERICAL, (NUMBER, *others), low=low, high=high, node=node.id, scratch=True)
    selector = translation.typed.selectors[op.selector]
    read = _numbers if space.numerical else _codes
    value, noise = read(translation, op, selector, space)
    default = np.zeros(space.size) if selector.always else space.code(op.default)
    if default.any():
        value = value + LinearMap.of(BOS, default[None, :])
    variable = replace(space, noise=noise, at_bos=tuple(default.tolist()))
    add_head(translation, selector, -GAP / 2, value, variable, describe(translation.typed, node))
    if decoded:
        assert isinstance(node.domain, Finite)
        write_function(translation, node, read_number(variable), node.domain, node.domain.codes)
    else:
        translation.variables[node.id] = variable


def _numbers(translation: Translation, op: Aggregation, selector: SelectorNode, space: Variable) -> HeadValue:
    """The number, and a flag for each value that is none, such as `None`."""
    read = translation.number(op.value)
    value = _place(read.number, space.size, 0)
    for held, flag in read.flags:
        if held in space.index:
            value = value + _place(flag, space.size, space.index[held])
    if selector.at_most_one:
        default = float(op.default) if is_number(op.default) and not selector.always else 0.0
        grid = min(read.noise.grid, dyadic_grid([default])) if read.noise.grid else 0.0
        copied = 0.0 if grid else U * max(read.largest, abs(default))
        return value, Noise(read.noise.error + copied, 0.0, grid)
    return value, Noise(mean_error(translation.typed.options.max_seq_len, read.largest, read.noise.error))


def _codes(translation: Translation, op: Aggregation, selector: SelectorNode, space: Variable) -> HeadValue:
    """The one-hot code, moved to the directions of the result."""
    domain = translation.typed.sops[op.value].domain
    assert isinstance(domain, Finite)
    view, place = one_hot(translation, op.value, separate(domain))
    moved = np.zeros((view.size, space.size))
    for code, held in enumerate(domain.values):
        moved[place[code], space.index[held]] = 1.0
    added = 0.0 if selector.at_most_one else (translation.typed.options.max_seq_len + 8) * U
    return read_code(view).then(moved), Noise(view.noise.error + added, view.noise.cold)


def _place(column: LinearMap, width: int, at: int) -> LinearMap:
    row = np.zeros((1, width))
    row[0, at] = 1.0
    return column.then(row)


def write_width(translation: Translation, node: SOpNode, selector: SelectorNode | None) -> None:
    """A selector width (of everything, without a selector): the head reads BOS's share c/(c+w), the MLP decodes w.

    c is the longest length, which spreads the shares over [1/2, 1] with the smallest gap about 1/(4c). The logit ln c
    is rounded to float32 first and the shares derived from the rounded c.
    """
    assert isinstance(node.domain, Finite)
    longest = translation.typed.options.max_seq_len
    logit = float(np.float32(math.log(longest)))
    weight = math.exp(logit)
    noise = Noise(error=share_error(longest), grid=2.0**-24)
    label = translation.fresh_label(f"{node.label}_share")
    share = Variable(label, Encoding.NUMERICAL, (NUMBER,), noise, (1.0,), low=0.5, high=1.0, node=node.id, scratch=True)
    what = f"c/(c+w) for {node.label}, c = {longest}"
    add_head(translation, selector, logit, LinearMap.of(BOS, np.eye(1)), share, what)
    widths = node.domain.numbers
    shares = Finite(tuple((weight / (weight + widths)).tolist()))
    write_function(translation, node, read_number(share), shares, shares.codes)


def add_head(
    translation: Translation,
    selector: SelectorNode | None,
    bos_logit: float,
    value: LinearMap,
    variable: Variable,
    what: str,
) -> None:
    """Add a head that reads `value` where the selector says, and writes it into `variable`."""
    nothing = LinearMap({}, 0)
    query, key = (nothing, nothing) if selector is None else _query_and_key(translation, selector)
    query, key = attend(query, key, bos_logit)
    name = "everything" if selector is None else selector.label
    writes = ((variable, np.eye(variable.size)),)
    translation.components.append(Head(variable.label, query, key, value, writes, name, what))


def _query_and_key(translation: Translation, selector: SelectorNode) -> tuple[LinearMap, LinearMap]:
    """The query and key maps of a selector, before BOS and PAD terms.

    Cold coordinates of rough codes shift logits. Among several keys they may not shift them at all; where one key has
    to be found, by a sixteenth of the gap.
    """
    chosen = selector.table == 1
    tolerance = 1 / 16 if selector.at_most_one else 0.0
    sides = []
    for number, rows in ((selector.queries, chosen), (selector.keys, chosen.T)):
        domain = translation.typed.sops[number].domain
        assert isinstance(domain, Finite)
        numerical = translation.variables[number].numerical
        classes = runs(domain, rows.astype(np.int8))[0] if numerical else separate(domain)
        variable, place = one_hot(translation, number, classes)
        if variable.noise.cold * variable.size > tolerance:
            variable = translation.cleaned(variable)
        sides.append((variable, place))
    (queries, query_place), (keys, key_place) = sides
    selected = np.zeros((queries.size, keys.size), dtype=bool)
    selected[query_place[:, None], key_place[None, :]] = chosen
    query_map, key_map = selector_logits(selected)
    return _read(translation, queries).then(query_map), _read(translation, keys).then(key_map)


def _read(translation: Translation, variable: Variable) -> LinearMap:
    """The code of keys or queries; from level 1 on a constant needs no direction to be read from."""
    return present() if variable.size == 1 and translation.optimise else read_code(variable)
