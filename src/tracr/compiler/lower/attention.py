"""Aggregates and selector widths: one head where a conjunction is enough, several and an MLP where not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tracr.compiler.lower.circuit_builder import Translation
from tracr.compiler.lower.heads import add_head, astray, read_codes, read_numbers
from tracr.compiler.lower.numbers import write_function
from tracr.compiler.lower.several_heads import add_codes, add_numbers, count_keys, divide_sums
from tracr.compiler.selectors.conjunctions import Conjunction
from tracr.compiler.selectors.head_plans import EVERYTHING
from tracr.craft.heads import bos_logit
from tracr.craft.linear import BOS, LinearMap, read_number
from tracr.craft.numerics import EXACT, Noise, share_error
from tracr.craft.variables import NUMBER, Variable
from tracr.ir.domains import Finite
from tracr.ir.program import Aggregation, Selector, SOpNode, describe
from tracr.rasp.annotations import Encoding
from tracr.values import is_number

__all__ = ["write_aggregate", "write_width"]


def write_aggregate(translation: Translation, node: SOpNode, op: Aggregation) -> None:
    """Heads that copy or average; a mean that is to be one-hot is averaged as a number and then decoded."""
    selector = translation.program.selectors[op.selector]
    exact = op.copies and selector.at_most_one and not astray(translation)
    space = translation.space(node, exact=exact and translation.variables[op.value].noise == EXACT)
    decoded = not op.copies and not space.numerical
    if decoded:
        assert isinstance(node.domain, Finite)
        others = tuple(value for value in node.domain.values if not is_number(value))
        label = translation.fresh_label(f"{node.label}_mean")
        low, high = float(node.domain.numbers.min()), float(node.domain.numbers.max())
        space = Variable(label, Encoding.NUMERICAL, (NUMBER, *others), low=low, high=high, node=node.id, scratch=True)
    copied = not space.numerical or (op.copies and selector.at_most_one)
    plan = translation.plan(node, op.selector, "copy" if copied else "mean", space.size)
    if plan.kind == "one head":
        variable = _write_one_head(translation, node, op, plan.heads[0][1], space)
    elif not space.numerical:
        variable = add_codes(translation, node, op, plan, translation.space(node))
    elif copied:
        variable = add_numbers(translation, node, op, plan, space)
    else:
        variable = divide_sums(translation, node, op, plan, space)
    if decoded:
        assert isinstance(node.domain, Finite)
        write_function(translation, node, read_number(variable), node.domain, node.domain.codes)
    else:
        translation.variables[node.id] = variable


def _write_one_head(
    translation: Translation, node: SOpNode, op: Aggregation, conjunction: Conjunction, space: Variable
) -> Variable:
    selector = translation.program.selectors[op.selector]
    read = read_numbers if space.numerical else read_codes
    value, noise = read(translation, op, selector, space)
    default = np.zeros(space.size) if selector.always else space.code(op.default)
    if default.any():
        value = value + LinearMap.of(BOS, default[None, :])
    variable = replace(space, noise=noise, at_bos=tuple(default.tolist()))
    writes = ((variable, np.eye(variable.size)),)
    logit, what = translation.default_logit, describe(translation.program, node)
    add_head(translation, selector, conjunction, logit, value, writes, what, surely=selector.always, copies=op.copies)
    return variable


def write_width(translation: Translation, node: SOpNode, number: int | None) -> None:
    """A selector width (of everything, without a selector): BOS's share of one head, or a sum of counts, decoded."""
    assert isinstance(node.domain, Finite)
    plan = EVERYTHING if number is None else translation.plan(node, number, "width", 1)
    selector = None if number is None else translation.program.selectors[number]
    if plan.kind == "one head":
        _write_share(translation, node, selector, plan.heads[0][1])
        return
    assert selector is not None
    counts = count_keys(translation, node, selector, plan)
    write_function(translation, node, counts, node.domain, node.domain.codes)


def _write_share(translation: Translation, node: SOpNode, selector: Selector | None, conjunction: Conjunction) -> None:
    """The head reads BOS's share c/(c+w), the MLP decodes w.

    c is the longest length, which spreads the shares over [1/2, 1] with the smallest gap about 1/(4c). Its logit is
    rounded first and the shares derived from the rounded c.
    """
    assert isinstance(node.domain, Finite)
    longest = translation.program.options.max_seq_len
    logit = bos_logit(longest)
    weight = math.exp(logit)
    noise = Noise(error=share_error(longest) + astray(translation), grid=2.0**-24)
    label = translation.fresh_label(f"{node.label}_share")
    share = Variable(label, Encoding.NUMERICAL, (NUMBER,), noise, (1.0,), low=0.5, high=1.0, node=node.id, scratch=True)
    what = f"c/(c+w) for {node.label}, c = {longest}"
    add_head(translation, selector, conjunction, logit, LinearMap.of(BOS, np.eye(1)), ((share, np.eye(1)),), what)
    widths = node.domain.numbers
    shares = Finite(tuple((weight / (weight + widths)).tolist()))
    write_function(translation, node, read_number(share), shares, shares.codes)
