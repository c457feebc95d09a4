"""The steps that compute variables: of copies, of tables of pairs, and of functions of a count or a sum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.graft.injection.circuit import BOS, ONE, Dim, NeuronStep
from tracr.graft.injection.demands import Demands, Target, composed, copied_codes, finite_of, pair_line
from tracr.graft.injection.steps import SLACK, Dims, StepLine, line_of, line_steps, pair_steps, writes_clean
from tracr.ir.ops import Aggregation, Linear, PairLookup, SumLookup, Width
from tracr.ir.program import Tables

__all__ = ["VariableSteps", "has_default"]

Array = NDArray[Any]


def has_default(program: Tables, op: Aggregation) -> bool:
    """Whether some query selects no key."""
    return not program.selectors[op.selector].always


@dataclass(frozen=True, eq=False)
class VariableSteps:
    """A program with its stored variables.

    `name` gives the group of a form of an s-op, `codes` the dimension that is on for each code of a stored one, and
    `unit` the dimension that the share of an s-op's count is compared with.
    """

    program: Tables
    demands: Demands
    name: Callable[[int, str], str]
    codes: Callable[[int], Dims]
    unit: Callable[[int], Dim]

    def steps(self, root: int, target: Target, writes: Dims) -> tuple[list[NeuronStep], bool]:
        """The steps of a target, and whether they write exact zeros."""
        op = self.program.sops[root].op
        if isinstance(op, Aggregation):
            return self.copy_steps(root, op, target, writes), True
        if isinstance(op, PairLookup):
            table = composed(op.table, target.classes)
            if pair_line(self.program, op, table) is None:
                return pair_steps(self.codes(op.fst), self.codes(op.snd), table, writes), True
        line = self.line(root, target)
        return line_steps(line, writes), writes_clean(line)

    def line(self, root: int, target: Target) -> StepLine:
        """The linear function that a count, a sum or a pair is a function of."""
        node = self.program.sops[root]
        if isinstance(node.op, Width):
            points = -1 / (1 + finite_of(node).numbers)
            counted = line_of({(self.name(root, "raw"), 0): -1.0}, points, target.classes)
            assert counted is not None
            return replace(counted, at_bos=-1.0, unit=self.unit(root))
        elif isinstance(node.op, PairLookup):
            table = composed(node.op.table, target.classes)
            sign = pair_line(self.program, node.op, table)
            assert sign is not None
            found = self.sum_line(((node.op.fst, 1.0), (node.op.snd, sign)), table.ravel(), None)
        elif isinstance(node.op, SumLookup):
            classes = composed(node.op.table, target.classes)
            found = self.sum_line(node.op.terms, classes, node.op.points.numbers)
        else:
            assert isinstance(node.op, Linear)
            points = finite_of(node).numbers - node.op.constant
            found = self.sum_line(node.op.terms, target.classes, points)
        assert found is not None
        return found

    def sum_line(self, terms: tuple[tuple[int, float], ...], classes: Array, points: Array | None) -> StepLine | None:
        """The line of a weighted sum; without points, of all sums in the order of the pairs."""
        reads: dict[Dim, float] = {}
        columns = []
        for number, factor in terms:
            dims, numbers = self.codes(number), factor * finite_of(self.program.sops[number]).numbers
            for code, weight in enumerate(numbers):
                reads[dims(code)] = reads.get(dims(code), 0.0) + float(weight)
            columns.append(numbers)
        if points is None:
            points = np.add.outer(*columns).ravel()
        return line_of(reads, points, classes)

    def copy_steps(self, root: int, op: Aggregation, target: Target, writes: Dims) -> list[NeuronStep]:
        """Each class of the target: on if a copied class of that kind, or the default, was attended."""
        raw, copied = self.name(root, "raw"), composed(copied_codes(self.program, root), target.classes)
        stored, found = self.demands.stored[op.value], []
        default = (
            int(target.classes[finite_of(self.program.sops[root]).index[op.default]])
            if has_default(self.program, op)
            else -1
        )
        for one in sorted({int(one) for one in (*copied, default) if one >= 0}):
            reads: dict[Dim, float] = {(raw, int(place)): 1.0 for place in np.unique(stored[copied == one])}
            reads |= {(self.name(root, "none"), 0): 1.0} if default == one else {}
            found.append(NeuronStep(reads | {ONE: -0.5, BOS: -1.0}, 0.5 * SLACK, 0.5, {writes(one): 1.0}))
        return found
