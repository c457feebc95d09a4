"""Step 3: translate every s-op, independently, into heads and MLPs of Craft.

Elementwise operations become MLPs, aggregates and widths become heads (a width is a head and the MLP that decodes it).
Where a reader needs a one-hot code and the s-op is a number, a conversion MLP is inserted, once for each way its values
are told apart.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

from tracr.compiler.lower.attention import write_aggregate, write_width
from tracr.compiler.lower.circuit_builder import Translation
from tracr.compiler.lower.numbers import write_function
from tracr.compiler.lower.pairs import write_pairs
from tracr.craft.linear import linear_combination, read_code, read_number, read_through
from tracr.craft.mlps import carry, look_up, look_up_bits
from tracr.craft.numerics import EXACT, GAP, OUTPUT_TOLERANCE, Noise
from tracr.craft.variables import Array
from tracr.errors import CompileError
from tracr.ir.circuit import Circuit
from tracr.ir.domains import Finite
from tracr.ir.program import (
    Aggregation,
    Constant,
    IndicesOp,
    LengthOp,
    Linear,
    Lookup,
    Op,
    PairLookup,
    Positions,
    Program,
    SOpNode,
    SumLookup,
    TokensOp,
    Width,
    describe,
)
from tracr.values import Value, is_number

__all__ = ["lower"]


def lower(program: Program) -> Circuit:
    """The circuit that computes the program."""
    translation = Translation(program)
    for node in program.sops.values():
        constant = isinstance(node.domain, Finite) and len(node.domain) == 1
        op = Constant() if constant and translation.on("constants") else node.op
        _translate(translation.sums.get(node.id, op), translation, node)
    if program.options.level == 0:
        translation.embed_inputs()
    outputs = tuple((name, translation.variables[output]) for name, output in program.outputs)
    for _, output in program.outputs:
        check_precision(translation, program.sops[output])
    written = dict.fromkeys(variable for part in translation.components for variable, _ in part.writes)
    components, choices = tuple(translation.components), tuple(translation.choices)
    return Circuit(program, tuple(translation.embedded), tuple(written), components, outputs, choices=choices)


def check_precision(translation: Translation, node: SOpNode) -> None:
    """Refuse an output that float32 cannot hold: large numbers that cancel leave only their rounding errors.

    Means of numbers of one sign cannot cancel: the error a mean adds to that of its inputs is relative.
    """
    variable = translation.variables[node.id]
    if not variable.numerical:
        return
    error = variable.noise.error
    if isinstance(node.op, Aggregation) and translation.program.options.gap >= GAP:
        read = translation.number(node.op.value)
        if read.low >= 0 or read.high <= 0:
            error = read.noise.error
    if error > OUTPUT_TOLERANCE:
        raise CompileError(
            f"its numbers, up to {max(abs(variable.low), abs(variable.high)):g}, may be off by {error:.2g} in float32",
            expression=node,
            hint="use numbers of more equal size, smaller factors, or a larger gap",
        )


@functools.singledispatch
def _translate(op: Op, translation: Translation, node: SOpNode) -> None:
    raise CompileError(f"no translation for {type(op).__name__}", expression=node, hint="use the classes of tracr.rasp")


@_translate.register
def _(op: TokensOp, translation: Translation, node: SOpNode) -> None:
    translation.embed(node, np.arange(len(translation.program.options.vocab)), by_token=True)


@_translate.register
def _(op: IndicesOp, translation: Translation, node: SOpNode) -> None:
    translation.embed(node, np.arange(translation.program.options.max_seq_len))


@_translate.register
def _(op: Constant, translation: Translation, node: SOpNode) -> None:
    translation.embed(node, np.zeros(translation.program.options.max_seq_len, dtype=np.int32))


@_translate.register
def _(op: Positions, translation: Translation, node: SOpNode) -> None:
    translation.embed(node, op.table)


@_translate.register
def _(op: LengthOp, translation: Translation, node: SOpNode) -> None:
    write_width(translation, node, None)


@_translate.register
def _(op: Width, translation: Translation, node: SOpNode) -> None:
    write_width(translation, node, op.selector)


@_translate.register
def _(op: Lookup, translation: Translation, node: SOpNode) -> None:
    source, domain = translation.variables[op.inner], translation.program.sops[op.inner].domain
    values = node.domain
    assert isinstance(domain, Finite) and isinstance(values, Finite)
    if source.numerical:
        write_function(translation, node, read_number(source), domain, op.table)
        return
    space = translation.space(node, exact=source.noise == EXACT)
    if source.compact and op.inner in translation.embedded_codes and translation.on("factor"):
        codes, by_token = translation.embedded_codes[op.inner]
        translation.embed(node, np.where(codes >= 0, op.table[codes], codes), by_token=by_token)
        return
    table = translation.rows(node, space, op.table)
    if source.codebook is not None:
        units = look_up_bits(read_code(source), source.codebook, table)
    else:
        merge = translation.on("kinks")
        classes = min(len(op.table), len(values) + 1) if merge else len(op.table)
        what = f"is a table of {len(op.table):,} values, of {classes:,} kinds"
        translation.need(len(op.table), classes, what, node, times=3)
        units = look_up(functools.partial(read_through, source), table, source.noise, merge=merge)
    translation.variables[node.id] = translation.write_mlp(space, units, describe(translation.program, node))


@_translate.register
def _(op: Linear, translation: Translation, node: SOpNode) -> None:
    reads = [translation.number(number) for number, _ in op.terms]
    total = linear_combination([(read, factor) for read, (_, factor) in zip(reads, op.terms, strict=True)], op.constant)
    space = translation.space(node)
    if not space.numerical:
        assert isinstance(node.domain, Finite)
        shifted = Finite(tuple(_minus(value, op.constant) for value in node.domain.values))
        write_function(translation, node, total, shifted, shifted.codes)
        return
    others: dict[Value, Array] = {None: space.code(None)} if space.maybe_none else {}
    units = carry(total, op.constant, others, space.size)
    if total.noise.grid and float(op.constant).is_integer():
        units = replace(units, noise=Noise())
    translation.variables[node.id] = translation.write_mlp(space, units, describe(translation.program, node))


@_translate.register
def _(op: SumLookup, translation: Translation, node: SOpNode) -> None:
    terms = [(translation.rough_number(number), factor) for number, factor in op.terms]
    write_function(translation, node, linear_combination(terms), op.points, op.table)


def _minus(value: Value, constant: float) -> Value:
    return value - constant if is_number(value) else value


@_translate.register
def _(op: PairLookup, translation: Translation, node: SOpNode) -> None:
    write_pairs(translation, node, op)


@_translate.register
def _(op: Aggregation, translation: Translation, node: SOpNode) -> None:
    write_aggregate(translation, node, op)
