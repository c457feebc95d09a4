"""Aggregates and selector widths: one head if the selector is a conjunction, else several heads and an MLP."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tracr.compiler.lower.circuit_builder import CircuitBuilder
from tracr.compiler.lower.heads import add_head, astray, read_codes, read_numbers
from tracr.compiler.lower.numbers import write_function
from tracr.compiler.lower.several_heads import add_codes, add_numbers, count_keys, divide_sums
from tracr.compiler.lower.short_formats import count_decoded, mean_of_counts, one_share, share_of_bos
from tracr.compiler.selectors.conjunctions import Conjunction
from tracr.compiler.selectors.head_plans import EVERYTHING
from tracr.craft.heads import bos_logit
from tracr.craft.linear import BOS, LinearMap, read_number
from tracr.craft.numerics import EXACT, Noise, share_error
from tracr.craft.variables import NUMBER, Variable
from tracr.ir.domains import Finite, of_values
from tracr.ir.ops import Aggregation
from tracr.ir.program import SOpNode, describe
from tracr.ir.selectors import Selector
from tracr.rasp.annotations import Encoding
from tracr.values import is_number

__all__ = ["write_aggregate", "write_width"]


def write_aggregate(builder: CircuitBuilder, node: SOpNode, op: Aggregation) -> None:
    """Add heads that copy or average; a mean stored one-hot is averaged as a number and then decoded."""
    selector = builder.program.selectors[op.selector]
    exact = op.copies and selector.at_most_one and not astray(builder, surely=selector.always)
    space = builder.space(node, exact=exact and builder.variable(op.value).noise == EXACT)
    if builder.format.short and not (op.copies and (selector.at_most_one or not space.numerical)):
        plan = builder.plan(node, op.selector, "width", 1)
        builder.holds(node, mean_of_counts(builder, node, op, plan, space))
        return
    if op.copies or space.numerical:
        builder.holds(node, _aggregated(builder, node, op, space))
        return
    assert isinstance(node.domain, Finite)
    mean = _aggregated(builder, node, op, _mean_space(builder, node, node.domain))
    write_function(builder, node, read_number(mean), node.domain, node.domain.codes)


def _mean_space(builder: CircuitBuilder, node: SOpNode, domain: Finite) -> Variable:
    """A variable with a number for the mean, and a flag for each value that is not a number."""
    others = tuple(value for value in domain.values if not is_number(value))
    label = builder.fresh_label(f"{node.label}_mean")
    low, high = float(domain.numbers.min()), float(domain.numbers.max())
    return Variable(label, Encoding.NUMERICAL, (NUMBER, *others), low=low, high=high, node=node.id, scratch=True)


def _aggregated(builder: CircuitBuilder, node: SOpNode, op: Aggregation, space: Variable) -> Variable:
    """Add the heads that write a space and, if there are several, the MLP after them."""
    copied = not space.numerical or (op.copies and builder.program.selectors[op.selector].at_most_one)
    plan = builder.plan(node, op.selector, "copy" if copied else "mean", space.size)
    if plan.kind == "one head":
        return _write_one_head(builder, node, op, plan.heads[0][1], space)
    if not space.numerical:
        return add_codes(builder, node, op, plan, builder.space(node))
    return (add_numbers if copied else divide_sums)(builder, node, op, plan, space)


def _write_one_head(
    builder: CircuitBuilder, node: SOpNode, op: Aggregation, conjunction: Conjunction, space: Variable
) -> Variable:
    selector = builder.program.selectors[op.selector]
    read = read_numbers if space.numerical else read_codes
    value, noise = read(builder, op, selector, space, surely=selector.always)
    default = np.zeros(space.size) if selector.always else space.code(op.default)
    if default.any():
        value = value + LinearMap.of(BOS, default[None, :])
    variable = replace(space, noise=noise, at_bos=tuple(default.tolist()))
    writes = ((variable, np.eye(variable.size)),)
    logit, what = builder.default_logit, describe(builder.program, node)
    add_head(builder, selector, conjunction, logit, value, writes, what, surely=selector.always, copies=op.copies)
    return variable


def write_width(builder: CircuitBuilder, node: SOpNode, number: int | None) -> None:
    """Add a selector width (of all keys, if there is no selector): BOS's share of one head, or a sum of counts.

    An MLP decodes it.
    """
    assert isinstance(node.domain, Finite)
    plan = EVERYTHING if number is None else builder.plan(node, number, "width", 1)
    selector = None if number is None else builder.program.selectors[number]
    if plan.kind == "one head" and (not builder.format.short or one_share(builder)):
        _write_share(builder, node, selector, plan.heads[0][1])
        return
    if builder.format.short:
        counts = count_decoded(builder, node, selector, plan)
    else:
        assert selector is not None
        counts = count_keys(builder, node, selector, plan)
    write_function(builder, node, counts, node.domain, node.domain.codes)


def _write_share(builder: CircuitBuilder, node: SOpNode, selector: Selector | None, conjunction: Conjunction) -> None:
    """Add a head that reads BOS's share c/(c+w), and an MLP that decodes w.

    c is the longest length: the shares are then spread over [1/2, 1], and the smallest gap is about 1/(4c). The logit
    of BOS is rounded first, and the shares are computed from the rounded c. In a softened model the other keys have a
    weight e: with up to n keys the share is between c/(c+w+(n-w)e) and c/(c+w), and the MLP decodes the middle.
    """
    assert isinstance(node.domain, Finite)
    options = builder.program.options
    if builder.format.short:
        read, weight = share_of_bos(builder, builder.fresh_label(f"{node.label}_share"), node, selector, conjunction)
        shares = Finite(tuple((weight / (weight + node.domain.numbers)).tolist()))
        write_function(builder, node, read, shares, shares.codes)
        return
    longest = options.max_seq_len
    logit = bos_logit(longest)
    weight, widths = math.exp(logit), node.domain.numbers
    label = builder.fresh_label(f"{node.label}_share")
    most = weight / (weight + widths)
    soft = options.soft if conjunction.literals else None
    least = most if soft is None else weight / (weight + widths + (longest - widths) * math.exp(-soft.gap_of(label)))
    reach = float((most - least).max()) / 2
    lost = reach if builder.leaks else astray(builder, surely=False)
    noise = Noise(error=share_error(longest) + lost, grid=2.0**-24)
    share = Variable(label, Encoding.NUMERICAL, (NUMBER,), noise, (1.0,), low=0.5, high=1.0, node=node.id, scratch=True)
    what = f"c/(c+w) for {node.label}, c = {longest}"
    add_head(builder, selector, conjunction, logit, LinearMap.of(BOS, np.eye(1)), ((share, np.eye(1)),), what)
    shares = of_values(tuple(((most + least) / 2).tolist()))
    read = replace(read_number(share), reach=reach)
    write_function(builder, node, read, shares, shares.codes, zero=node.id in builder.program.stored.backups)
