"""Runs the tabulated program with some s-ops replaced by given values, or says why it has no result.

The tables contain only values that occur on some input. Other facts are also proved for such inputs only: the pairs of
values that occur together, the number of keys that a query selects, the equality of copied values. Given values may
break any of these. Then the tabulated program has no result, although the original expressions may have one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.program.share import drop_unused
from tracr.ir.domains import Finite, Interval
from tracr.ir.ops import ERROR, Aggregation, Attention, Constant, Linear, Lookup, PairLookup
from tracr.ir.program import InferredNode, Program, Tables
from tracr.ir.selectors import CompositeNode
from tracr.rasp.annotations import Encoding
from tracr.runtime.table_interpreter import Batch, Evaluation, evaluate_batch
from tracr.values import Value, is_number, short_repr

__all__ = ["Trouble", "evaluate_replaced", "only_added_up", "trouble_in", "with_intervals"]

Given = Mapping[int, NDArray[Any]]
Some = TypeVar("Some", bound=Tables)


@dataclass(frozen=True)
class Trouble:
    """The first operation without a result: its input, its position, and the reason."""

    node: InferredNode
    row: int
    position: int
    why: str


def only_added_up(program: Program, *others: Tables) -> frozenset[int]:
    """Sums and means that are stored as numbers and that no table or selector reads, in any of the program's forms.

    Weights add and average any numbers; therefore the value of these s-ops need not be in their domains.
    """
    numbers = {node.id for node in program.sops.values() if node.encoding is Encoding.NUMERICAL}
    return frozenset(numbers.difference(*map(_looked_up, (program, *others))))


def _looked_up(program: Tables) -> set[int]:
    """The s-ops that tables or selectors read, and the s-ops that are not sums or means."""
    found = {node.id for node in program.sops.values() if not isinstance(node.op, Linear | Aggregation)}
    for node in program.sops.values():
        if not isinstance(node.op, Linear):
            found.update(node.inputs)
        literals = (part for selector in node.op.selectors for part in program.literals(selector))
        found.update(side for part in literals for side in (part.keys, part.queries))
    return found


def with_intervals(program: Some, numbers: Collection[int]) -> Some:
    """The program with these s-ops as intervals, from the smallest to the largest of their values."""
    sops = dict(program.sops)
    for number in numbers:
        node = sops.get(number)
        if node is not None and isinstance(node.domain, Finite):
            domain = Interval(*node.domain.ends, node.domain.maybe_none, "which are added up")
            sops[number] = replace(node, domain=domain)
    return replace(program, sops=sops)


def evaluate_replaced(program: Tables, inputs: Sequence[Sequence[Value]] | Batch, given: Given) -> Evaluation:
    """Evaluates the s-ops that the outputs need, from the given codes (numbers, if an interval) of some s-ops.

    S-ops that only given s-ops read are not computed: they may have no result.
    """
    leaves = {number: replace(program.sops[number], op=Constant()) for number in given if number in program.sops}
    needed = drop_unused(replace(program, sops={**program.sops, **leaves}))
    return evaluate_batch(needed, inputs, {number: given[number] for number in leaves})


def trouble_in(evaluation: Evaluation, given: Given) -> Trouble | None:
    """The reason why the first input without a result has none; `None` if all have one."""
    rows = np.flatnonzero(evaluation.errors)
    if not len(rows):
        return None
    row = _Row(evaluation, int(rows[0]))
    for node in evaluation.program.sops.values():
        for position in range(row.length) if node.id not in given else ():
            why = row.why(node, position)
            if why:
                return Trouble(node, row.number, position, why)
    last = evaluation.program.sops[evaluation.program.outputs[0][1]]
    return Trouble(last, row.number, 0, "has no value")


class _Row:
    """One input of an evaluation, position by position."""

    def __init__(self, evaluation: Evaluation, number: int) -> None:
        self.program, self.number = evaluation.program, number
        self.length = int(evaluation.batch.lengths[number])
        shape = evaluation.batch.codes.shape
        self.codes = {node: np.broadcast_to(codes, shape)[number] for node, codes in evaluation.codes.items()}

    def value(self, number: int, position: int) -> Value:
        domain, code = self.program.sops[number].domain, self.codes[number][position]
        if isinstance(domain, Finite):
            return domain.values[int(code)]
        return None if np.isnan(code) else float(code)

    def shown(self, number: int, position: int) -> str:
        return f"{self.program.sops[number].label} = {short_repr(self.value(number, position))}"

    def why(self, node: InferredNode, position: int) -> str:
        """Why an s-op has no value at a position; "" if it has one."""
        if isinstance(node.op, Attention):
            return self._attending(node, node.op, position)
        if isinstance(node.op, Lookup | PairLookup):
            cell = node.op.table[tuple(self.codes[number][position] for number in node.inputs)]
            met = " and ".join(dict.fromkeys(self.shown(number, position) for number in node.inputs))
            if cell == ERROR:
                return f"computes {node.op.function}, which raises on {met}"
            return "" if cell >= 0 else f"meets {met}, which no input gives"
        return self._unlisted(node, position)

    def _unlisted(self, node: InferredNode, position: int) -> str:
        code = self.codes[node.id][position]
        known = code >= 0 if isinstance(node.domain, Finite) else node.domain.holds(code)
        return "" if known else f"gets a value that no input gives it (its values are {node.domain})"

    def _attending(self, node: InferredNode, op: Attention, position: int) -> str:
        selector = self.program.selectors[op.selector]
        for literal in self.program.literals(op.selector):
            for key in range(self.length):
                if literal.table[self.codes[literal.queries][position], self.codes[literal.keys][key]] == ERROR:
                    met = f"{self.shown(literal.keys, key)} and {self.shown(literal.queries, position)}"
                    return f"compares {met}, on which its predicate raises"
        keys = np.flatnonzero(self._selected(op.selector, position))
        if len(keys) not in selector.counts:
            usual = f"{selector.counts[0]}" + (f" to {selector.counts[-1]}" if len(selector.counts) > 1 else "")
            return f"selects {len(keys)} keys, where inputs select {usual}"
        if isinstance(op, Aggregation) and len(keys) > 1:
            values = [self.value(op.value, int(key)) for key in keys]
            shown = ", ".join(map(short_repr, values[:8]))
            if not all(map(is_number, values)):
                return f"selects several values that have no mean ({shown})"
            if op.copies and len(set(values)) > 1:
                return f"averages {shown}, where inputs select equal values"
        return self._unlisted(node, position)

    def _selected(self, number: int, position: int) -> NDArray[np.bool_]:
        """The keys that the query at a position selects."""
        found: dict[int, NDArray[np.bool_]] = {}
        for part in self.program.parts(number):
            if isinstance(part, CompositeNode):
                found[part.id] = part.combined([found[inner] for inner in part.parts])
            else:
                keys = self.codes[part.keys][: self.length]
                found[part.id] = part.table[self.codes[part.queries][position], keys] == 1
        seen = np.arange(self.length) <= (position if self.program.options.causal else self.length)
        return found[number] & seen
