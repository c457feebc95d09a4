"""Counts and means in a short format, which cannot hold a sum read by one head, or a mean.

**Counts.** Each head reads BOS's share c/(c+w), and an MLP decodes w, to a one-hot code. Counts of several heads are
added up by the MLP after that. The share is rounded once, when the softmax is stored: what follows copies one number.
It lies between 1/2 and 1, where a format of p bits holds the multiples of 2**-p, and `cell_staircase` decodes it.
Neighbouring shares differ by at least 1/(4n) for n keys, and must differ by 2**(1-p): a head counts up to 2**(p-3)
keys. Longer inputs are cut into blocks of positions, with a head for each.

**Means.** Let the values be a + u/s, where u is one of few integers. A head for each u > 0 counts the selected keys
with this value; another head counts all w selected keys. With k, the sum of the u, the mean is a + k/(s w). The last
MLP has a staircase over k for each w, of neurons relu(k - m - B x), where x is 1 if the count is not w, and B > 2k. All
its numbers are integers, and it writes a one-hot code. If the result is a number, a table of that code writes it: the
exact mean, rounded once.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.lower.circuit_builder import CircuitBuilder
from tracr.compiler.lower.heads import add_head
from tracr.compiler.lower.numbers import steps
from tracr.compiler.selectors.conjunctions import Conjunction, SelectorLiteral
from tracr.compiler.selectors.head_plans import Plan
from tracr.craft.heads import bos_logit
from tracr.craft.linear import BOS, ONE, LinearMap, NumberRead, linear_combination, read_code, read_number, read_through
from tracr.craft.lookups import look_up
from tracr.craft.mlps import Units
from tracr.craft.numerics import EXACT, Noise, power_of_two_above, share_error
from tracr.craft.variables import NUMBER, Array, Variable
from tracr.errors import CompileError
from tracr.ir.domains import Codes, Finite
from tracr.ir.ops import Aggregation
from tracr.ir.program import SOpNode, describe
from tracr.ir.selectors import Selector
from tracr.rasp.annotations import Encoding
from tracr.rational import fraction_of
from tracr.runtime.prepared_tables import snap

__all__ = ["count_decoded", "mean_of_counts", "one_share", "share_of_bos"]

MOST_VALUES = 64  # a mean of more different numbers would take too many heads


def one_share(builder: CircuitBuilder) -> bool:
    """Whether one head can count the keys of the longest input."""
    return builder.program.options.max_seq_len <= _block(builder)


def _block(builder: CircuitBuilder) -> int:
    """How many keys a head can count."""
    return int(builder.format.steps) // 8


def share_of_bos(
    builder: CircuitBuilder, label: str, node: SOpNode, selector: Selector | None, conjunction: Conjunction
) -> tuple[NumberRead, float]:
    """Add a head that reads c/(c+w) of a conjunction; what it reads, and c, which is at least the number of keys."""
    longest, to = min(builder.program.options.max_seq_len, _block(builder)), builder.format
    logit = bos_logit(longest, to)
    noise = Noise(error=share_error(longest), grid=to.roundoff)
    share = Variable(label, Encoding.NUMERICAL, (NUMBER,), noise, (1.0,), low=0.5, high=1.0, node=node.id, scratch=True)
    what = f"c/(c+w) for {node.label}, c = {math.exp(logit):.4g}"
    add_head(builder, selector, conjunction, logit, LinearMap.of(BOS, np.eye(1)), ((share, np.eye(1)),), what)
    return read_number(share, to), math.exp(logit)


def count_decoded(
    builder: CircuitBuilder, node: SOpNode, selector: Selector | None, plan: Plan, name: str = "count"
) -> NumberRead:
    """The number of selected keys (of all, without a selector), a sum of integers that heads count; exact."""
    heads = [(sign, part) for sign, conjunction in plan.heads for part in _in_blocks(builder, conjunction)]
    parts = [
        (_counted(builder, node, selector, conjunction, f"{name}{number}"), float(sign))
        for number, (sign, conjunction) in enumerate(heads, start=1)
    ]
    counts = (builder.program.options.max_seq_len,) if selector is None else selector.counts
    low, high = 0.0 if selector is None else float(min(counts, default=0)), float(max(counts, default=0))
    return replace(linear_combination(parts, to=builder.format), low=low, high=high)


def _in_blocks(builder: CircuitBuilder, conjunction: Conjunction) -> list[Conjunction]:
    """The parts of a conjunction with the keys of one block of positions."""
    longest, block = builder.program.options.max_seq_len, _block(builder)
    if longest <= block:
        return [conjunction]
    number = builder.positions()
    block_of = np.arange(longest) // block
    return [
        Conjunction((*conjunction.literals, SelectorLiteral(number, number, _of_keys(block_of == one))))
        for one in range(int(block_of.max()) + 1)
    ]


def _of_keys(wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The table [query, key] of a condition on keys alone."""
    return np.broadcast_to(wanted, (len(wanted), len(wanted)))


def _counted(
    builder: CircuitBuilder, node: SOpNode, selector: Selector | None, conjunction: Conjunction, name: str
) -> NumberRead:
    """The number of keys of a conjunction, read from its one-hot code."""
    longest = min(builder.program.options.max_seq_len, _block(builder))
    label = builder.fresh_label(f"{node.label}_{name}")
    share, weight = share_of_bos(builder, builder.fresh_label(f"{label}_share"), node, selector, conjunction)
    widths = np.arange(longest + 1.0)
    points = Finite(tuple((weight / (weight + widths)).tolist()))
    units = steps(builder, label, node, share, points, np.eye(longest + 1))
    space = Variable(label, Encoding.CATEGORICAL, tuple(range(longest + 1)), node=node.id, scratch=True)
    return read_number(builder.write_mlp(space, units, f"number of keys of {label}"), builder.format)


def mean_of_counts(builder: CircuitBuilder, node: SOpNode, op: Aggregation, plan: Plan, space: Variable) -> Variable:
    """Add the heads and MLPs of a mean, which write `space`."""
    selector = builder.program.selectors[op.selector]
    units, back = _units(builder, node, op)
    total = _sum_of_units(builder, node, op, selector, plan, units)
    counted = count_decoded(builder, node, selector, plan)
    widths = Finite(selector.counts)
    label = builder.fresh_label(f"{node.label}_count")
    code = Variable(label, Encoding.CATEGORICAL, widths.values, node=node.id, scratch=True)
    decoded = steps(builder, label, node, counted, widths, np.eye(len(widths)))
    code = builder.write_mlp(code, decoded, f"number of keys of {node.label}")
    assert isinstance(node.domain, Finite)
    target, rows = _target(builder, node, node.domain, space)
    table = _means(node.domain, op, widths, int(units.max()), back)
    neurons = _staircases(total, code, table, rows)
    made = builder.write_mlp(target, neurons, describe(builder.program, node))
    if target is space:
        return made
    written = space.codes(node.domain.values)
    values = look_up(lambda matrix: read_through(made, matrix), written, EXACT, merge=True, to=builder.format)
    return builder.write_mlp(space, values, f"{node.label} as a number")


Back = tuple[Fraction, int]  # a and s


def _units(builder: CircuitBuilder, node: SOpNode, op: Aggregation) -> tuple[NDArray[np.int64], Back]:
    """u of each value, and a and s."""
    source = builder.program.sops[op.value].domain
    if not isinstance(source, Finite) or not source.numeric or source.maybe_none or not isinstance(node.domain, Finite):
        raise _refusal(builder, node, "of values that are not all numbers")
    fractions = [fraction_of(number) for number in source.numbers.tolist()]
    lowest = min(fractions)
    scale = math.lcm(*((one - lowest).denominator for one in fractions))
    units = np.array([int((one - lowest) * scale) for one in fractions], dtype=object)
    reach = int(units.max()) * builder.program.options.max_seq_len
    if reach > builder.format.steps:
        raise _refusal(builder, node, f"of numbers whose sum has {reach:,} steps")
    if len(set(units.tolist())) > MOST_VALUES:
        raise _refusal(builder, node, f"of {len(set(units.tolist()))} different numbers")
    return units.astype(np.int64), (lowest, scale)


def _refusal(builder: CircuitBuilder, node: SOpNode, what: str) -> CompileError:
    return CompileError(
        f"is a mean {what}, which {builder.format.name} cannot hold",
        expression=node,
        hint="use float32, or a mean of few small integers",
    )


def _sum_of_units(
    builder: CircuitBuilder,
    node: SOpNode,
    op: Aggregation,
    selector: Selector,
    plan: Plan,
    units: NDArray[np.int64],
) -> NumberRead:
    """k: for every u > 0, the number of keys with this u, times u."""
    terms = []
    for unit in sorted(set(units.tolist()) - {0}):
        literal = SelectorLiteral(op.value, op.value, _of_keys(units == unit))
        heads = tuple((sign, Conjunction((*part.literals, literal))) for sign, part in plan.heads)
        counted = count_decoded(builder, node, selector, replace(plan, heads=heads), f"count_{unit}_")
        terms.append((replace(counted, low=0.0), float(unit)))
    total = linear_combination(terms, to=builder.format)
    return replace(total, low=0.0, high=float(units.max()) * builder.program.options.max_seq_len)


def _target(builder: CircuitBuilder, node: SOpNode, domain: Finite, space: Variable) -> tuple[Variable, Array]:
    """The variable that the staircases write, and its rows: a one-hot code, also if the result is a number."""
    if not space.numerical:
        return space, builder.rows(node, space, domain.codes)
    label = builder.fresh_label(f"{node.label}_onehot")
    return Variable(label, Encoding.CATEGORICAL, domain.values, node=node.id, scratch=True), np.eye(len(domain))


def _means(domain: Finite, op: Aggregation, widths: Finite, largest: int, back: Back) -> list[Codes]:
    """For each count w, the code of the mean for each k; that of the k before where no mean has this k."""
    found = []
    lowest, scale = back
    for count in map(int, widths.numbers.tolist()):
        if count == 0:
            found.append(np.array([domain.index[op.default]], dtype=np.int32))
            continue
        sums = range(largest * count + 1)
        codes = snap(domain, np.array([float(lowest + Fraction(one, scale * count)) for one in sums]))
        known = np.maximum.accumulate(np.where(codes >= 0, np.arange(len(codes)), -1))
        first = codes[codes >= 0][:1]
        found.append(np.where(known >= 0, codes[known], first if len(first) else 0))
    return found


def _staircases(total: NumberRead, counts: Variable, table: list[Codes], rows: Array) -> Units:
    """A staircase over the number for each count, and a neuron for each count that writes its first row."""
    code = read_code(counts)
    far = power_of_two_above(2.0 * total.high + 2)
    read, written = code.then(np.eye(counts.size)), [rows[codes[0]] for codes in table]
    gates, places = [], []
    for number, codes in enumerate(table):
        for step in np.flatnonzero(codes[1:] != codes[:-1]).tolist():
            rise = rows[codes[step + 1]] - rows[codes[step]]
            gates += [number, number]
            places += [step, step + 1]
            written += [rise, -rise]
    if gates:
        others = np.where(np.arange(counts.size)[:, None] == np.array(gates), 0.0, -far)
        neurons = code.then(others) + total.number.then(np.ones((1, len(gates))))
        bias = -np.array(places, dtype=np.float64)
        neurons = neurons + LinearMap({ONE: bias[None, :], BOS: np.full((1, len(gates)), -far)}, len(gates))
        read = read.beside(neurons)
    return Units(read, np.array(written), Noise())
