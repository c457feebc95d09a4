"""The pass `encode`: chooses the annotated encoding, else the one that suits the readers.

A linear map can read a one-hot code as a number, but only an MLP turns a number into a one-hot code. An s-op is
therefore numerical only if it is a number by nature (a mean, a weighted sum), or if every reader wants a number. With
`match`, selectors that find keys by number want numbers, and lengths and widths may be numbers, too.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from tracr.compiler.program.matching import finds_by_number
from tracr.craft.formats import Format
from tracr.craft.numerics import dyadic_grid
from tracr.errors import CompileError, LimitError
from tracr.ir.domains import Domain, Finite, Interval
from tracr.ir.inferred import Inferred
from tracr.ir.ops import Aggregation, Attention, IndicesOp, LengthOp, Linear, TokensOp, Width
from tracr.ir.options import Options
from tracr.ir.program import InferredNode, Program, SOpNode, Stored, Tables
from tracr.nearness import TWINS, nearly_equal
from tracr.rasp.annotations import Encoding

__all__ = ["check_one_hot", "choose_encodings", "stored_as"]

MANY_VALUES = 256  # an s-op with more values is stored as a number, if no reader needs it one-hot
SMALLEST_NUMBER = 2.0**-60  # weights grow as differences shrink; their products must stay far from float32's limits
LARGEST_INTEGER = 2**24  # float32 has no odd integers above this


def choose_encodings(inferred: Inferred) -> Program:
    """The program with an encoding for every s-op, and no storage choices of the optimiser."""
    return Program(
        inferred.options,
        _encoded(inferred),
        inferred.selectors,
        inferred.outputs,
        inferred.lengths,
        Stored(),
        inferred.warnings,
        inferred.assumptions,
        inferred.shared,
        inferred.bypassed,
        inferred.written,
    )


def stored_as(program: Program, stored: Stored, *, match: bool) -> Program:
    """The program with other storage choices, and new encodings for all s-ops."""
    return replace(program, sops=_encoded(program, stored.sums, match=match), stored=stored)


def _encoded(program: Tables, sums: Collection[int] = (), *, match: bool = False) -> dict[int, SOpNode]:
    """Every s-op with its encoding, if the tables in `sums` are computed as weighted sums."""
    encodings = _encodings(program, sums, match=match)
    sops = {}
    for number, node in program.sops.items():
        sops[number] = _with_encoding(node, encodings[number])
        _check(sops[number])
    return sops


def _with_encoding(node: InferredNode, encoding: Encoding) -> SOpNode:
    """The s-op stored in this way; itself if it is."""
    if isinstance(node, SOpNode) and node.encoding is encoding:
        return node
    return SOpNode(node.id, node.label, node.source, node.origin, node.op, node.domain, node.wish, encoding)


def _encodings(program: Tables, sums: Collection[int], *, match: bool) -> dict[int, Encoding]:
    encodings: dict[int, Encoding] = {}
    wants_number: dict[int, list[bool]] = {number: [] for number in program.sops}
    must_list: dict[int, bool] = dict.fromkeys(program.sops, False)
    to, outputs = program.options.format, {output for _, output in program.outputs}
    for output in outputs:
        wants_number[output].append(False)
    for node in reversed(program.sops.values()):
        is_sum = isinstance(node.op, Linear) or node.id in sums
        wishes = wants_number[node.id]
        encoding = _choose(node, wishes, must_list[node.id], is_sum=is_sum, match=match)
        encodings[node.id] = encoding = _held(node, encoding, to, kept=is_sum or node.id in outputs)
        match node.op:
            case _ if is_sum:
                for number in node.inputs:
                    wants_number[number].append(True)
            case Aggregation(value=value):
                wants_number[value].append(encoding is Encoding.NUMERICAL)
                must_list[value] |= encoding is Encoding.CATEGORICAL
            case _:
                for number in node.inputs:
                    wants_number[number].append(False)
        if isinstance(node.op, Attention):
            by_number = match and isinstance(node.op, Aggregation) and finds_by_number(program, node.op.selector) > 0
            for part in program.literals(node.op.selector):
                wants_number[part.keys].append(False)
                wants_number[part.queries].append(by_number)
                must_list[part.keys] = must_list[part.queries] = True
    return encodings


def _choose(node: InferredNode, wants_number: list[bool], must_list: bool, *, is_sum: bool, match: bool) -> Encoding:
    if node.wish is not None:
        return node.wish
    if not node.domain.numeric:
        return Encoding.CATEGORICAL
    if is_sum or _is_number_by_nature(node):
        return Encoding.NUMERICAL
    as_number = bool(wants_number) and all(wants_number)
    if isinstance(node.op, TokensOp | IndicesOp):
        as_number = False
    elif isinstance(node.op, LengthOp | Width):
        as_number &= match
    elif not must_list:
        as_number = as_number or node.domain.size > MANY_VALUES or _have_twins(node.domain)
    return Encoding.NUMERICAL if as_number else Encoding.CATEGORICAL


def _held(node: InferredNode, encoding: Encoding, to: Format, *, kept: bool) -> Encoding:
    """The encoding; unless it is `kept`, one-hot for listed numbers that a short format does not hold."""
    if kept or not to.short or encoding is Encoding.CATEGORICAL or not isinstance(node.domain, Finite):
        return encoding
    return Encoding.NUMERICAL if dyadic_grid(node.domain.numbers.tolist(), to) else Encoding.CATEGORICAL


def _is_number_by_nature(node: InferredNode) -> bool:
    """Whether an s-op is a mean, or has too many values to list."""
    return isinstance(node.domain, Interval) or (isinstance(node.op, Aggregation) and not node.op.copies)


def _have_twins(domain: Domain) -> bool:
    """Whether some values differ only by rounding: a one-hot code cannot separate them."""
    if domain.size < 2 or not isinstance(domain, Finite):
        return False
    numbers = np.sort(domain.numbers)
    below, above = numbers[:-1], numbers[1:]
    close = nearly_equal(below, above, TWINS, scale=max(abs(numbers[0]), abs(numbers[-1])))
    return bool((close & (below < above)).any())


def check_one_hot(node: SOpNode, values: int, options: Options) -> None:
    """Refuse a one-hot code that is too large, before it is made."""
    most = options.max_parameters
    if values**2 > most:
        raise LimitError(
            f"has {values:,} values, each a direction of the model: that alone is more than {values**2:,} parameters",
            expression=node,
            hint=f"use fewer values or a shorter max_seq_len, or raise max_parameters (now {most:,})",
        )


def _check(node: SOpNode) -> None:
    if node.encoding is Encoding.CATEGORICAL:
        if isinstance(node.domain, Interval):
            raise LimitError(
                f"is annotated categorical but its values, {node.domain.reason}, are too many to list",
                expression=node,
                hint="annotate it rasp.numerical, or raise max_values",
            )
        return
    if not node.domain.numeric:
        raise CompileError(
            f"is annotated numerical but takes values that are not numbers: {node.domain}",
            expression=node,
            hint="annotate it rasp.categorical, or map the values to numbers first",
        )
    largest = max(node.domain.ends, key=abs)
    if 0 < abs(largest) < SMALLEST_NUMBER:
        raise CompileError(
            f"holds numbers of at most {largest!r}, which are closer to zero than float32 can represent well",
            expression=node,
            hint="scale it up, or annotate it rasp.categorical",
        )
    if abs(largest) > LARGEST_INTEGER:
        raise CompileError(
            f"holds the number {largest!r}, beyond 2**24, where float32 no longer tells integers apart",
            expression=node,
            hint="scale it down, or annotate it rasp.categorical",
        )
