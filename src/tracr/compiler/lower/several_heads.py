"""Selectors that take several heads: the values each head reads, and the MLPs that combine them.

The conjunctions of the heads are disjoint (`conjunctions.py`): at most one of them selects a key. Each head writes its
own directions; the MLP after them reads their sum.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tracr.compiler.lower.circuit_builder import CircuitBuilder
from tracr.compiler.lower.heads import add_head, astray, astray_in_sums, read_codes, read_numbers
from tracr.compiler.lower.numbers import check_steps, steps
from tracr.compiler.selectors.conjunctions import Conjunction
from tracr.compiler.selectors.head_plans import Plan
from tracr.craft.arithmetic import carry, divide
from tracr.craft.heads import bos_logit
from tracr.craft.linear import LinearMap, NumberRead, linear_combination, present, read_code, read_number
from tracr.craft.lookups import look_up
from tracr.craft.mlps import Units, join
from tracr.craft.numerics import CLEAN, TOO_ROUGH, Noise, U, power_of_two_above, sum_error
from tracr.craft.variables import NUMBER, Array, Variable
from tracr.errors import CompileError
from tracr.ir.domains import of_values
from tracr.ir.ops import Aggregation
from tracr.ir.program import SOpNode, describe
from tracr.ir.selectors import Selector
from tracr.rasp.annotations import Encoding
from tracr.values import Value

__all__ = ["add_codes", "add_numbers", "count_keys", "divide_sums"]


def add_codes(builder: CircuitBuilder, node: SOpNode, op: Aggregation, plan: Plan, space: Variable) -> Variable:
    """Copies of one-hot codes: each head reads the code or zero (BOS has none), the MLP rounds their sum.

    All selected values are equal, so a coordinate of the sum is 0, or between 1 and the number of heads that select
    something; relu(2x - 1/2) - relu(2x - 3/2) is then 0 or 1. If the sum over all coordinates is 0, nothing is
    selected, and 1 minus this sum, rounded in the same way, writes the default.
    """
    selector = builder.program.selectors[op.selector]
    total = LinearMap({}, space.size)
    noise = Noise()
    for number, (_, conjunction) in enumerate(plan.heads, start=1):
        value, noise = read_codes(builder, op, selector, space)
        part = replace(_part(builder, node, space, number), noise=noise)
        what = f"part {number} of {len(plan.heads)} of {node.label}"
        writes = ((part, np.eye(part.size)),)
        add_head(builder, selector, conjunction, builder.default_logit, value, writes, what, copies=True)
        total = total + read_code(part)
    table = np.eye(space.size)
    if not selector.always:
        nothing = present() + total.then(np.full((space.size, 1), -1.0))
        total, table = total.beside(nothing), np.vstack([table, space.code(op.default)])
    rough = Noise(max(noise.error, 2 * CLEAN) * len(plan.heads), noise.cold * len(plan.heads))
    if builder.leaks and max(rough.error, rough.cold) > TOO_ROUGH:
        raise CompileError(f"the sum of {len(plan.heads)} heads is too rough", expression=node, hint="use a larger gap")
    soft = builder.slope(space.label) > 0
    units = look_up(total.then, table, rough, merge=False, soft=soft, to=builder.format)
    return builder.write_mlp(space, units, describe(builder.program, node))


def _part(builder: CircuitBuilder, node: SOpNode, space: Variable, number: int) -> Variable:
    label = builder.fresh_label(f"{node.label}_part{number}")
    return replace(space, label=label, at_bos=(), node=node.id, scratch=True)


def add_numbers(builder: CircuitBuilder, node: SOpNode, op: Aggregation, plan: Plan, space: Variable) -> Variable:
    """Copies of at most one number: each head reads the number and a 1, or zeros; the MLP adds them up.

    1 minus the sum of the ones is 1 if nothing is selected, and writes the default.
    """
    selector = builder.program.selectors[op.selector]
    found = LinearMap({}, 1)
    reads: list[NumberRead] = []
    for number, (_, conjunction) in enumerate(plan.heads, start=1):
        value, noise = read_numbers(builder, op, selector, space)
        part = replace(_part(builder, node, space, number), noise=noise)
        ones = replace(_count(builder, node, number), noise=Noise(grid=1.0))
        what = f"part {number} of {len(plan.heads)} of {node.label}"
        logit = builder.default_logit
        _add_both(builder, selector, conjunction, logit, value, (part, ones), 1.0, what)
        found = found + read_code(ones)
        reads.append(read_number(part))
    others: dict[Value, Array] = {None: space.code(None)} if space.maybe_none else {}
    total = linear_combination([(read, 1.0) for read in reads], to=builder.format)
    total = replace(total, low=space.low, high=space.high)
    units = carry(total, 0.0, others, space.size, builder.format)
    if not selector.always:
        nothing = present() + found.then(np.array([[-1.0]]))
        default = space.code(op.default)
        error = builder.format.roundoff + (len(plan.heads) * astray(builder, surely=False) if builder.leaks else 0.0)
        units = join(units, Units(nothing, default[None, :], Noise(error * float(np.abs(default).max()))))
    return builder.write_mlp(space, units, describe(builder.program, node))


def _count(builder: CircuitBuilder, node: SOpNode, number: int) -> Variable:
    label = builder.fresh_label(f"{node.label}_count{number}")
    longest = builder.program.options.max_seq_len
    noise = Noise(longest * (sum_error(longest, 1.0, 0.0, count_weight(longest)) + astray_in_sums(builder)))
    return Variable(label, Encoding.NUMERICAL, (NUMBER,), noise, low=0.0, high=longest, node=node.id, scratch=True)


def _add_both(
    builder: CircuitBuilder,
    selector: Selector,
    conjunction: Conjunction,
    logit: float,
    value: LinearMap,
    targets: tuple[Variable, Variable],
    scale: float,
    what: str,
) -> None:
    """Add a head that reads a value and a 1 at every key, each into its own variable."""
    first, second = targets
    both = np.eye(first.size + 1) * scale
    writes = ((first, both[:, : first.size]), (second, both[:, first.size :]))
    add_head(builder, selector, conjunction, logit, value.beside(present()), writes, what)


def count_weight(longest: int) -> float:
    """BOS's weight C for counts: w keys are read as w - w²/C, an error of at most 1/32."""
    return power_of_two_above(32.0 * longest**2)


def mean_weight(longest: int) -> float:
    """BOS's weight C for means: sums are off by up to longest/C, about as much as float32's rounding of long sums."""
    return power_of_two_above(longest * 2.0**18)


def count_keys(builder: CircuitBuilder, node: SOpNode, selector: Selector, plan: Plan) -> NumberRead:
    """The number of selected keys as a sum over heads, up to rounding errors far below 1/4."""
    counts = []
    logit = bos_logit(count_weight(builder.program.options.max_seq_len))
    for number, (sign, conjunction) in enumerate(plan.heads, start=1):
        count = _count(builder, node, number)
        writes = ((count, np.eye(1) * math.exp(logit)),)
        what = f"number of keys of part {number} of {len(plan.heads)} of {node.label}"
        add_head(builder, selector, conjunction, logit, present(), writes, what)
        counts.append((read_number(count), float(sign)))
    return _total(builder, counts, selector)


def _total(builder: CircuitBuilder, counts: list[tuple[NumberRead, float]], selector: Selector) -> NumberRead:
    """The sum of the counts of disjoint heads.

    No key is counted twice with one sign, so the errors per key (`sum_error`) add up over the keys, not the heads; each
    head's count is rounded once more when it is written, and once when it is added.
    """
    longest = builder.program.options.max_seq_len
    signs = len({sign for _, sign in counts})
    per_key = sum_error(longest, 1.0, 0.0, count_weight(longest)) + astray_in_sums(builder)
    noise = Noise(signs * longest * (per_key + 2 * U) + len(counts) * longest * U)
    low, high = float(min(selector.counts, default=0)), float(max(selector.counts, default=0))
    return replace(linear_combination(counts), noise=noise, low=low, high=high)


def divide_sums(builder: CircuitBuilder, node: SOpNode, op: Aggregation, plan: Plan, space: Variable) -> Variable:
    """Add a mean: the heads read sums of the values and of ones; one MLP decodes the count, the next divides by it."""
    selector = builder.program.selectors[op.selector]
    read = builder.number(op.value)
    longest = builder.program.options.max_seq_len
    logit = bos_logit(mean_weight(longest))
    error = sum_error(longest, read.largest, read.noise.error, mean_weight(longest))
    sums: list[tuple[NumberRead, float]] = []
    counts: list[tuple[NumberRead, float]] = []
    for number, (_, conjunction) in enumerate(plan.heads, start=1):
        value, _ = read_numbers(builder, op, selector, space)
        part = _part(builder, node, space, number)
        low, high = min(0.0, longest * read.low), max(0.0, longest * read.high)
        noise = Noise(longest * (error + U * read.largest))
        part, ones = replace(part, low=low, high=high, noise=noise), _count(builder, node, number)
        what = f"sum of part {number} of {len(plan.heads)} of {node.label}"
        _add_both(builder, selector, conjunction, logit, value, (part, ones), math.exp(logit), what)
        sums.append((read_number(part), 1.0))
        counts.append((read_number(ones), 1.0))
    widths = of_values(selector.counts)
    total = _total(builder, counts, selector)
    label = builder.fresh_label(f"{node.label}_count")
    code = Variable(label, Encoding.CATEGORICAL, widths.values, node=node.id, scratch=True)
    check_steps(builder, node, len(widths), len(widths))
    decoded = steps(builder, label, node, total, widths, np.eye(len(widths)))
    code = builder.write_mlp(code, decoded, f"number of keys of {node.label}")
    default = None if selector.always else space.code(op.default)
    flags = [(space.index[held], _flag(sums, held)) for held, _ in read.flags if held in space.index]
    number_sum = linear_combination(sums).number
    error += longest * astray_in_sums(builder) * read.largest
    units = divide(number_sum, flags, code, longest * read.largest, error, default, space.size)
    return builder.write_mlp(space, units, describe(builder.program, node))


def _flag(sums: list[tuple[NumberRead, float]], held: Value) -> LinearMap:
    """How many selected keys hold a value that is not a number."""
    total = LinearMap({}, 1)
    for read, _ in sums:
        for value, flag in read.flags:
            if value == held and (value is None) == (held is None):
                total = total + flag
    return total
