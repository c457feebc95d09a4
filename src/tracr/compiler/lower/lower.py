"""The pass `lower`: turns every s-op, independently, into heads and groups of neurons.

Elementwise operations become MLPs, aggregates and widths become heads (a width is a head and the MLP that decodes it).
If a reader needs a one-hot code and the s-op is a number, a conversion MLP is inserted, once for each way to tell its
values apart.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

from tracr.compiler.lower.attention import write_aggregate, write_width
from tracr.compiler.lower.backups import add_backup
from tracr.compiler.lower.circuit_builder import CircuitBuilder
from tracr.compiler.lower.numbers import write_function
from tracr.compiler.lower.pairs import write_pairs
from tracr.craft.arithmetic import carry
from tracr.craft.formats import Format
from tracr.craft.linear import NumberRead, linear_combination, read_code, read_number, read_through
from tracr.craft.lookups import look_up, look_up_bits
from tracr.craft.numerics import EXACT, GAP, OUTPUT_TOLERANCE, Noise, dyadic_grid
from tracr.craft.variables import Array, Variable
from tracr.errors import CompileError
from tracr.ir.circuit import Circuit
from tracr.ir.domains import Finite
from tracr.ir.ops import (
    Aggregation,
    Constant,
    IndicesOp,
    LengthOp,
    Linear,
    Lookup,
    Op,
    PairLookup,
    Positions,
    SumLookup,
    TokensOp,
    Width,
)
from tracr.ir.program import Program, SOpNode, describe
from tracr.ir.switches import OptionName, PassName
from tracr.values import Value, is_number

__all__ = ["lower"]


def lower(program: Program) -> Circuit:
    """The circuit that computes the program."""
    builder = CircuitBuilder(program)
    for node in program.sops.values():
        constant = isinstance(node.domain, Finite) and len(node.domain) == 1
        op = Constant() if constant and builder.on(OptionName.CONSTANTS) else node.op
        op = builder.sums.get(node.id, op)
        _lower(op, builder, node)
        if node.id in program.stored.backups:
            add_backup(builder, node, functools.partial(_lower, op, builder))
    if program.options.level == 0:
        builder.embed_inputs()
    for _, output in program.outputs:
        check_precision(builder, program.sops[output])
    return builder.circuit()


def check_precision(builder: CircuitBuilder, node: SOpNode) -> None:
    """Refuse an output that float32 cannot hold: large numbers that cancel leave only their rounding errors.

    Means of numbers with the same sign cannot cancel: the error that a mean adds is relative.
    """
    variable = builder.variable(node.id)
    if not variable.numerical:
        return
    error = variable.noise.error
    if builder.format.short:
        _check_short(node, variable, builder.format)
        return
    if isinstance(node.op, Aggregation) and builder.program.options.gap >= GAP and not builder.leaks:
        read = builder.number(node.op.value)
        if read.low >= 0 or read.high <= 0:
            error = read.noise.error
    if error > OUTPUT_TOLERANCE:
        raise CompileError(
            f"its numbers, up to {max(abs(variable.low), abs(variable.high)):g}, may be off by {error:.2g} in float32",
            expression=node,
            hint="use numbers of more equal size, smaller factors, or a larger gap",
        )


def _check_short(node: SOpNode, variable: Variable, to: Format) -> None:
    """Refuse an output whose numbers are too close for their error in a short format."""
    error, largest = variable.noise.error, max(abs(variable.low), abs(variable.high))
    values = f"its numbers, up to {largest:g},"
    hint = "use float32, or coarser numbers; a comparison or a rounded number may be held where the number is not"
    if not isinstance(node.domain, Finite):
        raise CompileError(f"{values} are not listed, and {to.name} rounds them", expression=node, hint=hint)
    if error and 2.02 * error >= node.domain.closest:
        what = f"{values} differ by {node.domain.closest:.2g}, but may be off by {error:.2g} in {to.name}"
        raise CompileError(what, expression=node, hint=hint)


@functools.singledispatch
def _lower(op: Op, builder: CircuitBuilder, node: SOpNode) -> None:
    what = f"the compiler cannot lower the operation {type(op).__name__}"
    raise CompileError(what, expression=node, hint="use the classes of tracr.rasp")


@_lower.register
def _(op: TokensOp, builder: CircuitBuilder, node: SOpNode) -> None:
    builder.embed(node, np.arange(len(builder.program.options.vocab)), by_token=True)


@_lower.register
def _(op: IndicesOp, builder: CircuitBuilder, node: SOpNode) -> None:
    builder.embed(node, np.arange(builder.program.options.max_seq_len))


@_lower.register
def _(op: Constant, builder: CircuitBuilder, node: SOpNode) -> None:
    builder.embed(node, np.zeros(builder.program.options.max_seq_len, dtype=np.int32))


@_lower.register
def _(op: Positions, builder: CircuitBuilder, node: SOpNode) -> None:
    builder.embed(node, op.table)


@_lower.register
def _(op: LengthOp, builder: CircuitBuilder, node: SOpNode) -> None:
    write_width(builder, node, None)


@_lower.register
def _(op: Width, builder: CircuitBuilder, node: SOpNode) -> None:
    write_width(builder, node, op.selector)


@_lower.register
def _(op: Lookup, builder: CircuitBuilder, node: SOpNode) -> None:
    source, domain = builder.variable(op.inner), builder.program.sops[op.inner].domain
    values = node.domain
    assert isinstance(domain, Finite) and isinstance(values, Finite)
    if source.numerical:
        write_function(builder, node, read_number(source, builder.format), domain, op.table)
        return
    space = builder.space(node, exact=source.noise == EXACT)
    if source.compact and builder.on(PassName.FACTOR) and builder.embed_table(node, op.inner, op.table):
        return
    table = builder.rows(node, space, op.table)
    if source.codebook is not None:
        units = look_up_bits(read_code(source), source.codebook, table, builder.format)
    else:
        merge = builder.on(OptionName.KINKS)
        classes = min(len(op.table), len(values) + 1) if merge else len(op.table)
        what = f"is a table of {len(op.table):,} values, of {classes:,} kinds"
        builder.need(len(op.table), classes, what, node, times=3)
        soft = builder.slope(space.label) > 0
        read = functools.partial(read_through, source)
        units = look_up(read, table, source.noise, merge=merge, soft=soft, to=builder.format)
    builder.holds(node, builder.write_mlp(space, units, describe(builder.program, node)))


@_lower.register
def _(op: Linear, builder: CircuitBuilder, node: SOpNode) -> None:
    reads = [builder.number(number) for number, _ in op.terms]
    terms = [(read, factor) for read, (_, factor) in zip(reads, op.terms, strict=True)]
    total = linear_combination(terms, op.constant, builder.format)
    space = builder.space(node)
    if not space.numerical:
        assert isinstance(node.domain, Finite)
        shifted = Finite(tuple(_minus(value, op.constant) for value in node.domain.values))
        write_function(builder, node, total, shifted, shifted.codes)
        return
    others: dict[Value, Array] = {None: space.code(None)} if space.maybe_none else {}
    units = carry(total, op.constant, others, space.size, builder.format)
    if builder.format.short:
        units = replace(units, noise=_carried(total, op.constant, units.noise, builder.format))
    elif total.noise.grid and float(op.constant).is_integer():
        units = replace(units, noise=Noise())
    builder.holds(node, builder.write_mlp(space, units, describe(builder.program, node)))


def _carried(total: NumberRead, constant: float, noise: Noise, to: Format) -> Noise:
    """The noise of a sum in a short format: on its grid, with the constant, if the format holds the multiples of that.

    What the builder knows of an exact result is better.
    """
    grid = min(total.noise.grid, dyadic_grid([constant], to))
    if not grid or total.largest + abs(constant) > to.steps * grid:
        return noise
    return Noise(total.noise.error, 0.0, grid if total.noise.error else 0.0)


@_lower.register
def _(op: SumLookup, builder: CircuitBuilder, node: SOpNode) -> None:
    terms = [(builder.rough_number(number), factor) for number, factor in op.terms]
    write_function(builder, node, linear_combination(terms, to=builder.format), op.points, op.table)


def _minus(value: Value, constant: float) -> Value:
    return value - constant if is_number(value) else value


@_lower.register
def _(op: PairLookup, builder: CircuitBuilder, node: SOpNode) -> None:
    write_pairs(builder, node, op)


@_lower.register
def _(op: Aggregation, builder: CircuitBuilder, node: SOpNode) -> None:
    write_aggregate(builder, node, op)
