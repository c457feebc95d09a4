"""The vectorised interpreter: runs the tabulated program on a batch, with integer codes and lookup tables.

It does not use the weights; therefore models are checked against it, and the reference interpreter checks it in turn.
A table cell that `infer` marked as unreachable, or a mean outside its domain, is a bug in `infer` and raises an error.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from tracr.caching import cached_property
from tracr.errors import InputError, TracrError
from tracr.ir.domains import Codes, Finite, Interval
from tracr.ir.ops import (
    ERROR,
    UNREACHED,
    Aggregation,
    Constant,
    IndicesOp,
    LengthOp,
    Linear,
    Lookup,
    PairLookup,
    Positions,
    SumLookup,
    TokensOp,
    Width,
)
from tracr.ir.program import InferredNode, Tables
from tracr.ir.selectors import CompositeNode
from tracr.runtime.prepared_tables import Floats, prepared, snap
from tracr.threads import blas_threads
from tracr.values import Value, is_number

__all__ = ["Batch", "Evaluation", "evaluate_batch"]

CELLS = 8_000_000  # selector cells of one chunk
MATRIX_CELLS = 8_000_000  # a larger table is not used as a matrix


@dataclass(frozen=True, eq=False)
class Batch:
    """Inputs as codes into the vocabulary, right-padded with ERROR."""

    codes: Codes
    lengths: Codes

    @staticmethod
    def of(inputs: Sequence[Sequence[Value]], vocab: Sequence[Value]) -> Batch:
        """The codes of inputs of any lengths."""
        index = {token: code for code, token in enumerate(vocab)}
        lengths = np.fromiter(map(len, inputs), dtype=np.int32, count=len(inputs))
        batch = Batch(np.full((len(inputs), int(lengths.max(initial=0))), ERROR, dtype=np.int32), lengths)
        try:
            tokens = map(index.__getitem__, itertools.chain.from_iterable(inputs))
            batch.codes[batch.valid] = np.fromiter(tokens, dtype=np.int32, count=int(lengths.sum()))
        except KeyError as error:
            raise InputError(
                f"token {error.args[0]!r} is not in the vocabulary {list(vocab)!r}",
                hint="use only tokens of the vocabulary",
            ) from None
        return batch

    @cached_property
    def valid(self) -> NDArray[np.bool_]:
        """Whether each position holds a token."""
        return np.arange(self.codes.shape[1]) < self.lengths[:, None]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The codes (numbers for intervals, NaN for `None`) of every s-op, and the inputs on which the program raises."""

    program: Tables
    batch: Batch
    codes: dict[int, NDArray[Any]]
    errors: NDArray[np.bool_]

    def values(self, number: int) -> list[list[Value]]:
        """The values of one s-op, input by input."""
        domain = self.program.sops[number].domain
        codes = np.broadcast_to(self.codes[number], self.batch.codes.shape)
        if isinstance(domain, Finite):
            values = np.empty(len(domain) + 1, dtype=object)  # the last is for ERROR and UNREACHED
            for code, value in enumerate(domain.values):
                values[code] = value
            held = np.take(values, codes[self.batch.valid], mode="wrap").tolist()
        else:
            held = [None if x != x else x for x in codes[self.batch.valid].tolist()]
        ends = np.cumsum(self.batch.lengths).tolist()
        return [held[start:end] for start, end in itertools.pairwise([0, *ends])]

    def outputs(self) -> dict[str, list[list[Value]]]:
        """The program's outputs, input by input; meaningless where `errors`."""
        return {name: self.values(output) for name, output in self.program.outputs}


def evaluate_batch(
    program: Tables, inputs: Sequence[Sequence[Value]] | Batch, replaced: Mapping[int, NDArray[Any]] | None = None
) -> Evaluation:
    """Run the tabulated program on a batch of inputs.

    S-ops in `replaced` are not computed but given, as codes (numbers, if an interval) [input, position]. Given values
    may cause states that no input causes (two values together, several selected keys instead of one). Such inputs count
    as errors.
    """
    batch = inputs if isinstance(inputs, Batch) else Batch.of(inputs, program.options.vocab)
    given = replaced or {}
    size, longest = batch.codes.shape
    rows = max(1, CELLS // max(1, longest * longest))
    with blas_threads(1):
        if size <= rows:
            return _Run(program, batch, given).evaluate()
        parts = [
            _Run(
                program,
                Batch(batch.codes[start : start + rows], batch.lengths[start : start + rows]),
                {number: codes[start : start + rows] for number, codes in given.items()},
            ).evaluate()
            for start in range(0, size, rows)
        ]
    codes = {
        number: np.concatenate([np.broadcast_to(part.codes[number], part.batch.codes.shape) for part in parts])
        for number in program.sops
    }
    return Evaluation(program, batch, codes, np.concatenate([part.errors for part in parts]))


class _Run:
    """One pass over the program. Arrays are [batch or 1, position]: s-ops that do not depend on tokens have one row."""

    def __init__(self, program: Tables, batch: Batch, replaced: Mapping[int, NDArray[Any]]) -> None:
        self.replaced = replaced
        self.program = program
        self.batch = batch
        self.prepared = prepared(program)
        self.codes: dict[int, NDArray[Any]] = {}
        self.errors = np.zeros(len(batch.codes), dtype=bool)
        self.places: dict[int, NDArray[np.intp]] = {}
        self.matrices: dict[int, Floats] = {}
        self.widths: dict[int, Floats] = {}

    def evaluate(self) -> Evaluation:
        shortest, longest = self.program.lengths
        for length in self.batch.lengths[(self.batch.lengths < shortest) | (self.batch.lengths > longest)]:
            if length:
                raise InputError(
                    f"an input has length {length}; the program takes lengths {shortest} to {longest}",
                    hint="compile with a larger max_seq_len, or change the length of the input",
                )
        for node in self.program.sops.values():
            given = node.id in self.replaced
            codes = self.replaced[node.id] if given else self.run(node)
            looked_at = isinstance(node.domain, Finite) if self.replaced else node.id in self.prepared.may_fail
            self.codes[node.id] = self.checked(node, codes) if looked_at else codes
            if self.replaced and isinstance(node.domain, Interval):
                self.flag(~node.domain.holds(codes))
        return Evaluation(self.program, self.batch, self.codes, self.errors)

    def checked(self, node: InferredNode, codes: Codes) -> Codes:
        """Note the inputs with an error; a cell inferred to be impossible is a bug, unless `replaced` caused it."""
        if codes.min(initial=0) >= 0:
            return codes
        wrong = (codes < 0) & self.batch.valid
        impossible = wrong & (codes == UNREACHED)
        self.flag(wrong if self.replaced else wrong & ~impossible)
        if not self.replaced and (impossible & ~self.errors[:, None]).any():
            raise TracrError(
                f"{node.label} met a combination of values that was inferred to be impossible",
                hint="this is a bug in tracr: please report it",
            )
        return np.maximum(codes, ERROR)

    def flag(self, wrong: NDArray[np.bool_]) -> None:
        """Mark the inputs with a wrong value at a position that holds a token."""
        self.errors |= (wrong & self.batch.valid).any(axis=1)

    def run(self, node: InferredNode) -> NDArray[Any]:
        """The codes (or numbers) of one s-op."""
        longest = self.batch.codes.shape[1]
        match node.op:
            case TokensOp():
                return self.batch.codes
            case IndicesOp():
                return np.arange(longest, dtype=np.int32)[None, :]
            case LengthOp():
                return np.broadcast_to(self.batch.lengths[:, None] - self.program.lengths[0], self.batch.codes.shape)
            case Constant():
                return np.zeros((1, longest), dtype=np.int32)
            case Positions(table=table):
                return table[None, :longest]
            case Lookup(inner=inner) as op:
                return np.take(self.prepared.table(node, op), np.asarray(self.codes[inner]))
            case PairLookup(fst=fst, snd=snd, table=table) as op:
                cells: Codes = self.codes[fst] * (table.shape[1] + 2) + self.codes[snd]
                return np.take(self.prepared.table(node, op), cells)
            case SumLookup(terms=terms, points=points, table=table):
                total = sum((factor * self.numbers(number) for number, factor in terms), start=np.zeros((1, 1)))
                return self.where_known(np.append(table, [UNREACHED, ERROR])[snap(points, total)], terms)
            case Linear():
                return self.linear(node, node.op)
            case Width(selector=selector):
                return np.take(self.prepared.widths(node), self.counts(selector).astype(np.intp), mode="clip")
            case Aggregation():
                return self.aggregate(node, node.op)
            case _:
                assert_never(node.op)

    def numbers(self, number: int) -> Floats:
        """An s-op as numbers, NaN for `None`."""
        codes = self.codes[number]
        if isinstance(self.program.sops[number].domain, Finite):
            return np.take(self.prepared.numbers(number), codes)
        return codes

    def linear(self, node: InferredNode, op: Linear) -> NDArray[Any]:
        total: Floats = np.full((1, 1), op.constant)
        for number, factor in op.terms:
            total = total + factor * self.numbers(number)
        if not isinstance(node.domain, Finite):
            return total
        return self.where_known(snap(node.domain, total), op.terms)

    def where_known(self, codes: Codes, terms: Sequence[tuple[int, float]]) -> Codes:
        """The codes of a function of a sum; an error where a term is an error or missing."""
        for number, _ in terms:
            if isinstance(self.program.sops[number].domain, Finite) and self.codes[number].min(initial=0) < 0:
                codes = np.where(self.codes[number] < 0, ERROR, codes)
        return codes

    def total(self, selector: int, weights: Floats | None) -> Floats:
        """The sum of the weights of the selected keys (their number, without weights) for every query.

        Weights are [batch or 1, key], the result [batch, query]. Without a causal mask a query sees keys only by
        their codes: sum the weights by key code, multiply by the selector's table, look the query's code up.
        """
        node = self.program.selectors[selector]
        if isinstance(node, CompositeNode) or self.program.options.causal:
            return self.total_by_matrix(selector, weights)
        keys, queries = self.codes[node.keys], self.codes[node.queries]
        size, columns = node.table.shape[1] + 1, node.table.shape[0]
        same_for_all = len(keys) == len(queries) == 1
        fewer_cells = self.batch.codes.shape[1] ** 2 <= size + columns  # than the table by codes
        if same_for_all or fewer_cells or node.table.size > MATRIX_CELLS:
            return self.total_by_matrix(selector, weights)
        matrix = self.prepared.matrix(node)
        if weights is not None:
            weights = np.broadcast_to(weights, self.batch.codes.shape).ravel()
        sums = np.bincount(self.places_of(node.keys, size), weights, len(self.batch.codes) * size)
        by_query = sums.astype(np.float64, copy=False).reshape(-1, size) @ matrix
        rows = np.arange(0, by_query.size, columns)[:, None]
        places: NDArray[np.intp] = rows + queries
        return by_query.ravel()[places]  # the result of a missing query is arbitrary

    def places_of(self, number: int, size: int) -> NDArray[np.intp]:
        """The index at which the weight of each position is added: a row for each input, with a place for each code.

        The first place of a row is for missing values.
        """
        if number not in self.places:
            codes = self.codes[number]
            if number not in self.prepared.silent_at_pad or self.replaced:
                codes = np.where(self.batch.valid, codes, ERROR)
            self.places[number] = (np.arange(1, len(self.batch.codes) * size, size)[:, None] + codes).ravel()
        return self.places[number]

    def total_by_matrix(self, selector: int, weights: Floats | None) -> Floats:
        """`total`, computed from the selection matrix of every input."""
        shown = self.batch.valid.astype(np.float64) if weights is None else np.where(self.batch.valid, weights, 0.0)
        matrix = self.matrix(selector)
        if len(matrix) == 1:
            return np.asarray(shown @ matrix[0].T)
        return np.asarray((matrix @ shown[:, :, None])[:, :, 0])

    def matrix(self, selector: int) -> Floats:
        """The selected keys of every query, [batch or 1, query, key], under the causal mask if there is one."""
        if selector not in self.matrices:
            found: dict[int, NDArray[np.bool_]] = {}
            for part in self.program.parts(selector):
                if isinstance(part, CompositeNode):
                    found[part.id] = part.combined([found[inner] for inner in part.parts])
                else:
                    keys, queries = self.codes[part.keys][:, None, :], self.codes[part.queries][:, :, None]
                    found[part.id] = np.take(self.prepared.chosen(part), queries * (part.table.shape[1] + 1) + keys)
            chosen = found[selector]
            shown = np.tril(chosen) if self.program.options.causal else chosen
            self.matrices[selector] = shown.astype(np.float64)
        return self.matrices[selector]

    def present(self, number: int, size: int) -> Floats:
        """How often each code of an s-op occurs, [batch, code]."""
        counts = np.bincount(self.places_of(number, size + 1), minlength=len(self.batch.codes) * (size + 1))
        return counts.reshape(-1, size + 1)[:, 1:].astype(np.float64)

    def counts(self, selector: int) -> Floats:
        """The number of keys that every query selects; also flags the inputs on which the predicate raises."""
        if selector not in self.widths:
            self.widths[selector] = self.total(selector, None)
            if self.replaced:  # the proved widths do not hold for replaced values
                self.flag(~np.isin(self.widths[selector], self.program.selectors[selector].counts))
            for node in self.program.literals(selector):
                if node.table.min(initial=0) < 0:
                    failing = node.table == ERROR
                    queries, keys = self.present(node.queries, len(failing)), self.present(node.keys, failing.shape[1])
                    self.errors |= ((queries @ failing) * keys > 0).any(axis=1)
        return self.widths[selector]

    def aggregate(self, node: InferredNode, op: Aggregation) -> NDArray[Any]:
        source, count = self.program.sops[op.value], self.counts(op.selector)
        if op.assumed and source.domain.numeric:  # for example booleans of the textual language, which have no mean
            self.flag(count > 1)
        if isinstance(source.domain, Finite) and not source.domain.numeric:
            return self.aggregate_values(node, op, source.domain, count)
        table = self.prepared.means(node, op)
        if table is not None and not self.replaced:
            sums = self.total(op.selector, np.take(table.units, self.codes[op.value]))
            return np.take(table.codes, (count * table.width + sums).astype(np.intp), mode="clip")
        numbers = self.numbers(op.value)
        missing = np.isnan(numbers)
        sums = self.total(op.selector, np.where(missing, 0.0, numbers))
        nones = self.total(op.selector, missing.astype(np.float64)) if missing.any() else np.zeros_like(sums)
        self.flag((nones > 0) & (count > 1))
        if op.copies and self.replaced:
            self.flag(self.differing(op.selector, numbers))
        means = np.where(nones > 0, np.nan, sums / np.maximum(count, 1))
        if not isinstance(node.domain, Finite):
            return np.where(count == 0, float(op.default) if is_number(op.default) else np.nan, means)
        if op.default is not None and not is_number(op.default):
            codes = snap(node.domain, np.where(count == 0, np.nan, means))
            return np.where(count == 0, node.domain.index.get(op.default, ERROR), codes)
        default = float(op.default) if is_number(op.default) else np.nan
        return snap(node.domain, np.where(count == 0, default, means))

    def differing(self, selector: int, numbers: Floats) -> NDArray[np.bool_]:
        """Whether each query selects numbers that are not equal.

        For copied values this is proved impossible, but not with `replaced` values.
        """
        chosen = (self.matrix(selector) > 0) & self.batch.valid[:, None, :]
        known = np.where(np.isnan(numbers), 0.0, numbers)[:, None, :]
        largest = np.where(chosen, known, -np.inf).max(axis=2, initial=-np.inf)
        smallest = np.where(chosen, known, np.inf).min(axis=2, initial=np.inf)
        return np.asarray(largest > smallest)

    def aggregate_values(self, node: InferredNode, op: Aggregation, source: Finite, count: Floats) -> Codes:
        """Aggregates values that are not all numbers: copies one; infer refuses several numbers that are not equal."""
        assert isinstance(node.domain, Finite)
        target, held = node.domain.index, self.codes[op.value]
        moved, numbers = self.prepared.moved(node, op)
        chosen = self.total(op.selector, np.take(moved, held)).astype(np.int32)
        several: Codes | np.int32 = np.int32(ERROR)
        if numbers.any():
            means = self.total(op.selector, np.take(np.append(source.numbers, 0.0), held)) / np.maximum(count, 1)
            others = self.total(op.selector, np.take((~numbers).astype(np.float64), held))
            if self.replaced:
                self.flag(self.differing(op.selector, np.take(np.append(source.numbers, 0.0), held)))
            several = np.where(others > 0, np.int32(ERROR), snap(node.domain, means))
        codes = np.where(count == 1, chosen, several)
        return np.where(count == 0, np.int32(target.get(op.default, ERROR)), codes)
