"""The vectorised interpreter: runs the tabulated program on a batch, with integer codes and lookup tables.

It knows nothing of weights, so it is what models are checked against; the reference interpreter in turn checks it.
Meeting a cell that infer took for unreachable, or a mean outside its domain, is a bug in infer and raises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.domains import Codes, Domain, Finite
from tracr.compiler.typed import (
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
    SOpNode,
    TokensOp,
    Typed,
    Width,
)
from tracr.errors import InputError, TracrError
from tracr.rasp.values import Value, is_number
from tracr.threads import blas_threads

__all__ = ["Batch", "Evaluation", "evaluate_batch"]

CELLS = 8_000_000  # selector cells held at once
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Batch:
    """Inputs as codes into the vocabulary, right-padded with ERROR."""

    codes: Codes
    lengths: Codes

    @staticmethod
    def of(inputs: Sequence[Sequence[Value]], vocab: Sequence[Value]) -> Batch:
        """Encode inputs of any lengths."""
        index = {token: code for code, token in enumerate(vocab)}
        lengths = np.array([len(tokens) for tokens in inputs], dtype=np.int32)
        batch = Batch(np.full((len(inputs), int(lengths.max(initial=0))), ERROR, dtype=np.int32), lengths)
        try:
            batch.codes[batch.valid] = [index[token] for tokens in inputs for token in tokens]
        except KeyError as error:
            raise InputError(f"token {error.args[0]!r} is not in the vocabulary {list(vocab)!r}") from None
        return batch

    @cached_property
    def valid(self) -> NDArray[np.bool_]:
        """Which positions hold a token."""
        return np.arange(self.codes.shape[1]) < self.lengths[:, None]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Codes (numbers for intervals, NaN for `None`) of every s-op, and the inputs on which the program raises."""

    typed: Typed
    batch: Batch
    codes: dict[int, NDArray[Any]]
    errors: NDArray[np.bool_]

    def values(self, number: int) -> list[list[Value]]:
        """The values of one s-op, input by input."""
        domain = self.typed.sops[number].domain
        codes = np.broadcast_to(self.codes[number], self.batch.codes.shape)
        if isinstance(domain, Finite):
            values = np.empty(len(domain) + 1, dtype=object)  # the last stands for ERROR and UNREACHED
            for code, value in enumerate(domain.values):
                values[code] = value
            rows = values[np.maximum(codes, -1)].tolist()
        else:
            rows = [[None if np.isnan(x) else x for x in row] for row in codes.tolist()]
        return [row[:length] for row, length in zip(rows, self.batch.lengths.tolist(), strict=True)]

    def outputs(self) -> dict[str, list[list[Value]]]:
        """The program's outputs, input by input; meaningless where `errors`."""
        return {name: self.values(output) for name, output in self.typed.outputs}


def evaluate_batch(
    typed: Typed, inputs: Sequence[Sequence[Value]] | Batch, replaced: Mapping[int, Codes] | None = None
) -> Evaluation:
    """Run the tabulated program on many inputs at once.

    S-ops in `replaced` are given, as codes [input, position], not computed. That may lead where no input does (values
    that never meet, several keys where there is always one): such inputs count as errors.
    """
    batch = inputs if isinstance(inputs, Batch) else Batch.of(inputs, typed.options.vocab)
    if replaced:
        with blas_threads(1):
            return _Run(typed, batch, replaced).evaluate()
    size, longest = batch.codes.shape
    rows = max(1, CELLS // max(1, longest * longest))
    with blas_threads(1):
        if size <= rows:
            return _Run(typed, batch).evaluate()
        parts = [
            _Run(typed, Batch(batch.codes[start : start + rows], batch.lengths[start : start + rows])).evaluate()
            for start in range(0, size, rows)
        ]
    codes = {
        number: np.concatenate([np.broadcast_to(part.codes[number], part.batch.codes.shape) for part in parts])
        for number in typed.sops
    }
    return Evaluation(typed, batch, codes, np.concatenate([part.errors for part in parts]))


class _Run:
    """One pass over the program. Arrays are [batch or 1, position]: what no token influences is computed once."""

    def __init__(self, typed: Typed, batch: Batch, replaced: Mapping[int, Codes] | None = None) -> None:
        self.replaced = replaced or {}
        self.typed = typed
        self.batch = batch
        self.codes: dict[int, NDArray[Any]] = {}
        self.errors = np.zeros(len(batch.codes), dtype=bool)
        self.matrices: dict[int, Floats] = {}
        self.widths: dict[int, Floats] = {}

    def evaluate(self) -> Evaluation:
        shortest, longest = self.typed.lengths
        for length in self.batch.lengths[(self.batch.lengths < shortest) | (self.batch.lengths > longest)]:
            if length:
                raise InputError(f"an input of length {length}; the program takes lengths {shortest} to {longest}")
        for node in self.typed.sops.values():
            self.codes[node.id] = codes = self.replaced[node.id] if node.id in self.replaced else self.run(node)
            if isinstance(node.domain, Finite):
                self.flag((codes == ERROR) | ((codes == UNREACHED) & bool(self.replaced)))
                if (self.batch.valid & (codes == UNREACHED) & ~self.errors[:, None]).any():
                    raise TracrError(f"{node.label} met a combination of values that was inferred to be impossible")
        return Evaluation(self.typed, self.batch, self.codes, self.errors)

    def flag(self, wrong: NDArray[np.bool_]) -> None:
        """Mark the inputs with a wrong value at a position that holds a token."""
        self.errors |= (wrong & self.batch.valid).any(axis=1)

    def run(self, node: SOpNode) -> NDArray[Any]:
        """The codes (or numbers) of one s-op."""
        longest = self.batch.codes.shape[1]
        match node.op:
            case TokensOp():
                return self.batch.codes
            case IndicesOp():
                return np.arange(longest, dtype=np.int32)[None, :]
            case LengthOp():
                return np.broadcast_to(self.batch.lengths[:, None] - self.typed.lengths[0], self.batch.codes.shape)
            case Constant():
                return np.zeros((1, longest), dtype=np.int32)
            case Positions(table=table):
                return table[None, :longest]
            case Lookup(inner=inner, table=table):
                codes = self.codes[inner]
                return np.where(codes < 0, ERROR, table[np.maximum(codes, 0)])
            case PairLookup(fst=fst, snd=snd, table=table):
                first, second = self.codes[fst], self.codes[snd]
                cells = table[np.maximum(first, 0), np.maximum(second, 0)]
                return np.where((first < 0) | (second < 0), ERROR, cells)
            case Linear():
                return self.linear(node, node.op)
            case Width(selector=selector):
                return self.snap(node.domain, self.counts(selector))
            case Aggregation():
                return self.aggregate(node, node.op)

    def numbers(self, number: int) -> Floats:
        """An s-op as numbers, NaN for `None`."""
        domain = self.typed.sops[number].domain
        codes = self.codes[number]
        if not isinstance(domain, Finite):
            return codes.astype(np.float64)
        table = domain.numbers.copy()
        if domain.maybe_none:
            table[domain.index[None]] = np.nan
        return np.asarray(table[np.maximum(codes, 0)])

    def linear(self, node: SOpNode, op: Linear) -> NDArray[Any]:
        total: Floats = np.full((1, 1), op.constant)
        bad = np.zeros((1, 1), dtype=bool)
        for number, factor in op.terms:
            total = total + factor * self.numbers(number)
            if isinstance(self.typed.sops[number].domain, Finite):
                bad = bad | (self.codes[number] < 0)
        return np.where(bad, ERROR, self.snap(node.domain, total)) if isinstance(node.domain, Finite) else total

    def snap(self, domain: Domain, numbers: Floats) -> NDArray[Any]:
        """Numbers to the codes of the nearest values of the domain (NaN is `None`), or as they are for an interval."""
        if not isinstance(domain, Finite):
            return numbers
        ordered, middles = domain.ascending
        place = np.searchsorted(middles, numbers)  # NaN sorts last
        codes = np.append(ordered, ERROR)[np.minimum(place, max(len(ordered) - 1, 0))].astype(np.int32)
        wrong = np.abs(domain.numbers[codes] - numbers) > 1e-9 * np.maximum(1, np.abs(numbers))
        if wrong.any():
            codes = np.where(wrong, UNREACHED, codes)
        missing = np.isnan(numbers)
        return np.where(missing, domain.index.get(None, ERROR), codes) if missing.any() else codes

    def total(self, selector: int, weights: Floats) -> Floats:
        """The sum of the weights of the selected keys, for every query: [batch or 1, query].

        Without a causal mask a query sees keys only by their codes: sum the weights by key code, multiply by the
        selector's table, look the query's code up.
        """
        node = self.typed.selectors[selector]
        keys, queries = self.codes[node.keys], self.codes[node.queries]
        weights = np.where(self.batch.valid & (keys >= 0), weights, 0.0)
        if self.typed.options.causal:
            return (self.causal_matrix(selector) @ weights[:, :, None])[:, :, 0]
        if len(keys) == len(queries) == 1:  # no token influences the pattern
            chosen = node.table[np.maximum(queries[0], 0)[:, None], np.maximum(keys, 0)] == 1
            return np.asarray(weights @ chosen.astype(np.float64).T)
        by_code = self.by_code(np.maximum(keys, 0), weights, node.table.shape[1])
        by_query = by_code @ (node.table == 1).astype(np.float64).T
        return np.take_along_axis(by_query, np.broadcast_to(np.maximum(queries, 0), weights.shape), axis=1)

    def by_code(self, codes: Codes, weights: Floats, size: int) -> Floats:
        """The weights summed by code, [batch, code]."""
        rows = np.arange(len(weights))[:, None] * size
        sums = np.bincount((rows + codes).ravel(), weights.ravel(), len(weights) * size)
        return sums.astype(np.float64).reshape(-1, size)

    def present(self, number: int, size: int) -> Floats:
        """How often each code of an s-op occurs, [batch, code]."""
        codes = self.codes[number]
        return self.by_code(np.maximum(codes, 0), (self.batch.valid & (codes >= 0)).astype(np.float64), size)

    def causal_matrix(self, selector: int) -> Floats:
        """The selected keys of every query, [batch or 1, query, key], masked to key <= query."""
        if selector not in self.matrices:
            node = self.typed.selectors[selector]
            keys, queries = np.maximum(self.codes[node.keys], 0), np.maximum(self.codes[node.queries], 0)
            chosen = node.table[queries[:, :, None], keys[:, None, :]] == 1
            self.matrices[selector] = np.tril(chosen).astype(np.float64)
        return self.matrices[selector]

    def counts(self, selector: int) -> Floats:
        """How many keys every query selects; inputs on which the predicate raises are flagged on the way."""
        if selector not in self.widths:
            node = self.typed.selectors[selector]
            self.widths[selector] = self.total(selector, np.ones_like(self.batch.codes, dtype=np.float64))
            if self.replaced:  # what was proved of the widths holds for what the program computes, not for this
                self.flag(~np.isin(self.widths[selector], node.counts))
            failing = node.table == ERROR
            if failing.any():
                queries, keys = self.present(node.queries, len(failing)), self.present(node.keys, failing.shape[1])
                self.errors |= ((queries @ failing) * keys > 0).any(axis=1)
        return self.widths[selector]

    def aggregate(self, node: SOpNode, op: Aggregation) -> NDArray[Any]:
        source, count = self.typed.sops[op.value], self.counts(op.selector)
        if isinstance(source.domain, Finite) and not source.domain.numeric:
            assert isinstance(node.domain, Finite)
            target, held = node.domain.index, np.maximum(self.codes[op.value], 0)
            moved = np.array([target[value] for value in source.domain.values], dtype=np.float64)
            chosen = self.total(op.selector, moved[held]).astype(np.int32)
            several = np.full_like(chosen, ERROR)
            numbers = np.array([is_number(value) for value in source.domain.values])
            if numbers.any():  # several numbers among other values: equal ones, or infer would have refused
                means = self.total(op.selector, source.domain.numbers[held]) / np.maximum(count, 1)
                others = self.total(op.selector, (~numbers[held]).astype(np.float64))
                several = np.where(others > 0, ERROR, self.snap(node.domain, means))
            codes = np.where(count == 1, chosen, several)
            return np.where(count == 0, target.get(op.default, ERROR), codes)
        numbers = self.numbers(op.value)
        missing = np.isnan(numbers)
        sums = self.total(op.selector, np.where(missing, 0.0, numbers))
        nones = self.total(op.selector, missing.astype(np.float64)) if missing.any() else np.zeros_like(sums)
        self.flag((nones > 0) & (count > 1))
        if op.copies and self.replaced:  # equal values were proved for what the program computes, not for this
            squares = self.total(op.selector, np.where(missing, 0.0, numbers) ** 2)
            self.flag(np.abs(count * squares - sums**2) > 1e-9 * np.maximum(1, squares))
        means = np.where(nones > 0, np.nan, sums / np.maximum(count, 1))
        if isinstance(node.domain, Finite) and op.default is not None and not is_number(op.default):
            codes = self.snap(node.domain, np.where(count == 0, np.nan, means))
            return np.where(count == 0, node.domain.index.get(op.default, ERROR), codes)
        default = float(op.default) if is_number(op.default) else np.nan
        return self.snap(node.domain, np.where(count == 0, default, means))
