"""What must be stored: which variables the circuit needs, and which of their values its readers tell apart.

The program is read from its output backwards. Functions of one s-op are not stored on the way: a *target* is computed
directly from its *root*, the first s-op below it that is not such a function. Functions of a token or a position are
embedded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.selectors.conjunctions import SelectorLiteral
from tracr.graft.injection.interface import Interface
from tracr.graft.injection.steps import line_of
from tracr.graft.injection.support import literals_of
from tracr.ir.domains import Finite
from tracr.ir.ops import (
    UNREACHED,
    Aggregation,
    Attention,
    Constant,
    IndicesOp,
    Linear,
    Lookup,
    PairLookup,
    Positions,
    SumLookup,
    TokensOp,
)
from tracr.ir.program import InferredNode, Tables

__all__ = [
    *("EMBEDDED", "Demands", "Target", "composed", "copied_codes", "demands_of", "finite_of", "pair_line", "resolved"),
    "shift_of",
]

Array = NDArray[Any]
Classes = NDArray[np.int64]
EMBEDDED = (TokensOp, IndicesOp, Positions, Constant)


@dataclass(frozen=True, eq=False)
class Target:
    """A variable to compute from a root: the class for each of the root's codes.

    `of` is the s-op that is stored, or `None` for the answer.
    """

    of: int | None
    classes: Classes


@dataclass(frozen=True, eq=False)
class Demands:
    """The stored s-ops with the class of each code, those that heads read, and the targets of each root."""

    stored: dict[int, Classes] = field(default_factory=dict)
    attended: set[int] = field(default_factory=set)
    targets: dict[int, list[Target]] = field(default_factory=dict)
    answer_from: int | None = None
    """The stored s-op from which the answer is read, if it is not a target itself."""
    shifts: set[int] = field(default_factory=set)
    """The distances by which heads look back."""


def finite_of(node: InferredNode) -> Finite:
    """The domain of a supported s-op."""
    assert isinstance(node.domain, Finite)
    return node.domain


def demands_of(program: Tables, interface: Interface) -> Demands:
    """The demands of a supported program."""
    return _Backwards(program, interface).found()


class _Backwards:
    """The walk from the output to the inputs. `wants` has, for each s-op, what each reader makes of its codes."""

    def __init__(self, program: Tables, interface: Interface) -> None:
        self.program = program
        self.interface = interface
        self.wants: dict[int, list[Classes]] = {}
        self.demands = Demands()

    def found(self) -> Demands:
        answer_from = self.ask_for_answer()
        for number in reversed(list(self.program.sops)):
            if number in self.wants:
                self.store(number)
            if number in self.demands.targets:
                self.ask_for_inputs(number)
        found = self.demands
        return Demands(found.stored, found.attended, found.targets, answer_from, found.shifts)

    def ask_for_answer(self) -> int | None:
        """Make the answer a target; where its root is embedded or copied, it is read from the stored output instead."""
        output = self.program.outputs[0][1]
        values = finite_of(self.program.sops[output]).values
        places = {value: place for place, value in enumerate(self.interface.answers)}
        classes = np.array([places.get(value, -1) for value in values])
        root, table = resolved(self.program, output)
        if isinstance(self.program.sops[root].op, (*EMBEDDED, Aggregation)):
            self.want(output, classes)
            return output
        self.demands.targets.setdefault(root, []).append(Target(None, composed(table, classes)))
        return None

    def want(self, number: int, classes: Classes) -> None:
        self.wants.setdefault(number, []).append(np.asarray(classes, dtype=np.int64))

    def store(self, number: int) -> None:
        """Fix the classes of a stored s-op, and make it a target of its root unless it is embedded."""
        _, classes = np.unique(np.stack(self.wants[number]), axis=1, return_inverse=True)
        classes = classes.ravel().astype(np.int64)
        self.demands.stored[number] = classes
        root, table = resolved(self.program, number)
        if not isinstance(self.program.sops[root].op, EMBEDDED):
            self.demands.targets.setdefault(root, []).append(Target(number, composed(table, classes)))

    def ask_for_inputs(self, root: int) -> None:
        """Ask for the variables that a root is computed from."""
        op, targets = self.program.sops[root].op, self.demands.targets[root]
        if isinstance(op, Attention):
            self.ask_for_attention(root, op, targets)
        elif isinstance(op, PairLookup):
            for target in targets:
                self.ask_for_pair(op, target)
        else:
            assert isinstance(op, Linear | SumLookup)
            for number, _ in op.terms:
                self.want(number, np.arange(len(finite_of(self.program.sops[number]))))

    def ask_for_pair(self, op: PairLookup, target: Target) -> None:
        table = composed(op.table, target.classes)
        summed = pair_line(self.program, op, table) is not None
        for number, rows in ((op.fst, table), (op.snd, table.T)):
            alike = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
            self.want(number, np.arange(len(rows)) if summed else alike)

    def ask_for_attention(self, root: int, op: Attention, targets: list[Target]) -> None:
        for literal in literals_of(self.program, self.program.selectors[op.selector]):
            distance = shift_of(self.program, literal) if isinstance(op, Aggregation) else None
            if distance is not None:
                self.demands.shifts.add(distance)
                continue
            for number, table in ((literal.queries, literal.selected), (literal.keys, literal.selected.T)):
                self.want(number, np.unique(table, axis=0, return_inverse=True)[1].ravel())
                self.demands.attended.add(number)
        if isinstance(op, Aggregation):
            codes = copied_codes(self.program, root)
            for target in targets:
                self.want(op.value, composed(codes, target.classes))
            self.demands.attended.add(op.value)


def resolved(program: Tables, number: int) -> tuple[int, Classes]:
    """The root of an s-op, and the s-op's code for each code of the root."""
    table: Classes = np.arange(len(finite_of(program.sops[number])))
    while isinstance(op := program.sops[number].op, Lookup):
        table, number = composed(op.table, table), op.inner
    return number, table


def composed(inner: Array, outer: Array) -> Classes:
    """The table of outer(inner(x)); cells that no input reaches stay so."""
    return np.where(inner >= 0, outer[np.maximum(inner, 0)], UNREACHED).astype(np.int64)


def copied_codes(program: Tables, root: int) -> Classes:
    """For each code of the attended s-op, the code of the aggregate that copies it."""
    node = program.sops[root]
    assert isinstance(node.op, Aggregation)
    index = finite_of(node).index
    return np.array([index.get(value, UNREACHED) for value in finite_of(program.sops[node.op.value]).values])


def shift_of(program: Tables, literal: SelectorLiteral) -> int | None:
    """The distance d if the condition is "d positions back", for keys that are not after their query."""
    if not all(isinstance(program.sops[one].op, IndicesOp) for one in (literal.keys, literal.queries)):
        return None
    chosen = literal.selected & np.tri(*literal.selected.shape, dtype=np.bool_)
    distances = {int(query - key) for query, key in np.argwhere(chosen)}
    if len(distances) != 1:
        return None
    (distance,) = distances
    return distance if np.array_equal(chosen, np.eye(len(chosen), k=-distance, dtype=bool)) else None


def pair_line(program: Tables, op: PairLookup, table: Classes) -> float | None:
    """The sign s if the table is best computed as a function of x + s y; `None` if boxes need fewer steps."""
    domains = [finite_of(program.sops[number]) for number in (op.fst, op.snd)]
    if any(not domain.numeric or domain.maybe_none for domain in domains):
        return None
    costs = {}
    for sign in (1.0, -1.0):
        sums = np.add.outer(domains[0].numbers, sign * domains[1].numbers)
        line = line_of({}, sums.ravel(), table.ravel())
        if line is not None:
            costs[sign] = len(line.borders) + 1
    best = min(costs, key=costs.__getitem__, default=None)
    return best if best is not None and costs[best] < min(_box_count(table), _box_count(table.T)) else None


def _box_count(table: Classes) -> int:
    return sum(len({one for one in row if one >= 0}) for row in np.unique(table, axis=0).tolist())
