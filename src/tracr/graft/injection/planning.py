"""From a program to a circuit: a group of dimensions for every stored variable, and a layer for every head and step.

An attention of the program becomes a head, which writes *raw* dimensions, and steps in the same layer, which read them:

- **Counts** (`SelectorWidth`). Selected keys and BOS have the score 0, so that BOS gets the share 1/(1 + w) of the
  attention for w selected keys. Every layer norm leaves 0 as it is: the share is exact up to rounding, whatever the
  σ. Reading it divides by the σ of BOS. A further head attends to BOS alone and divides by the same σ; steps compare
  the share with multiples of its number.
- **Copies** (`Aggregate` of one value). The copied dimension arrives divided by the σ of its position, and 0
  stays 0. A step with a low threshold makes it 1 again. If no key is selected, BOS is attended: the default is written.

Other operations are tables, which become steps (`steps.py`). A class that is the difference of two steps is not
exactly 0 where it is off. If a head reads such a variable, further steps in the next layer make it clean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.compiler.selectors.conjunctions import SelectorLiteral
from tracr.graft.injection.circuit import (
    ANSWER,
    BOS,
    CIRCLE,
    HERE,
    IN_RANGE,
    ONE,
    RESERVED,
    TRIGGER,
    Column,
    Dim,
    DimGroup,
    GroupKind,
    HeadPlan,
    InjectedCircuit,
    Neurons,
    NeuronStep,
    reach_of,
)
from tracr.graft.injection.demands import (
    EMBEDDED,
    Demands,
    Target,
    composed,
    copied_codes,
    demands_of,
    finite_of,
    pair_line,
    resolved,
    shift_of,
)
from tracr.graft.injection.interface import Interface
from tracr.graft.injection.steps import (
    SLACK,
    Dims,
    StepLine,
    gated,
    line_of,
    line_steps,
    pair_steps,
    set_steps,
    writes_clean,
)
from tracr.graft.injection.support import literals_of
from tracr.ir.graph import unique_labels
from tracr.ir.ops import (
    Aggregation,
    Attention,
    Constant,
    IndicesOp,
    Linear,
    PairLookup,
    Positions,
    SumLookup,
    TokensOp,
    Width,
)
from tracr.ir.program import Tables, describe
from tracr.values import Value

__all__ = ["plan"]

Array = NDArray[Any]
FORMS, TO_BOS = ("", "raw", "none", "clean"), "share in layer"
SHOWN = 6  # values listed in a label


def plan(program: Tables, interface: Interface) -> InjectedCircuit:
    """The circuit of a supported program."""
    return _Planner(program, interface, demands_of(program, interface)).circuit()


class _Planner:
    """The circuit under construction. `ready` has the layer whose MLP writes each variable; -1 for embedded ones."""

    def __init__(self, program: Tables, interface: Interface, demands: Demands) -> None:
        self.program = program
        self.interface = interface
        self.demands = demands
        self.groups = [DimGroup(dim[0], (when,), "constant") for dim, when in CONSTANTS.items()]
        self.ready: dict[int, int] = {}
        self.clean: dict[int, tuple[str, int]] = {}  # for variables that heads read: the group and its layer
        forms = [(number, form) for form in FORMS for number in program.sops]
        labels = [program.sops[number].label + (f" ({form})" if form else "") for number, form in forms]
        self.names = dict(
            zip(
                forms,
                unique_labels(labels, [*RESERVED, *(f"{TO_BOS} {layer}" for layer in range(len(program.sops) + 1))]),
                strict=True,
            )
        )
        self.to_bos: dict[
            int, Dim
        ] = {}  # what a head that attends to BOS alone reads there, for each layer with counts
        self.layer_of: dict[int, int] = {}
        self.heads: list[HeadPlan] = []
        self.neurons: list[Neurons] = []

    def circuit(self) -> InjectedCircuit:
        if self.demands.shifts:
            self.groups.append(DimGroup(CIRCLE, ("cosine", "sine"), "position"))
        self.groups.append(DimGroup(ANSWER, tuple(f"{value!r}" for value in self.interface.answers), "answer"))
        for number in self.program.sops:
            if number in self.demands.stored:
                self.add_group(number)
            if number in self.demands.targets:
                self.compute(number)
        if self.demands.answer_from is not None:
            self.answer_from(self.demands.answer_from)
        answers = {(ANSWER, place): token for place, token in enumerate(self.interface.answers.values())}
        return InjectedCircuit(
            tuple(self.groups), self.by_token(), self.by_position(), tuple(self.heads), tuple(self.neurons), answers
        )

    # dimensions

    def name(self, number: int, form: str = "") -> str:
        """The group of an s-op: its label, or that of a form of it, such as "raw"."""
        return self.names[number, form]

    def add_group(self, number: int) -> None:
        """The dimensions of a stored s-op; for an embedded one also when it is ready."""
        root, _ = resolved(self.program, number)
        op = self.program.sops[root].op
        if isinstance(op, EMBEDDED):
            self.ready[number] = -1
            self.clean[number] = (self.name(number), -1)
        if not isinstance(op, Constant):
            kind: GroupKind = (
                "token" if isinstance(op, TokensOp) else "position" if isinstance(op, EMBEDDED) else "variable"
            )
            self.groups.append(DimGroup(self.name(number), self.labels(number), kind))

    def labels(self, number: int) -> tuple[str, ...]:
        """The values of each class."""
        values, classes = finite_of(self.program.sops[number]).values, self.demands.stored[number]
        return tuple(
            _listed([values[code] for code in np.flatnonzero(classes == one)]) for one in range(classes.max() + 1)
        )

    def dims(self, number: int, *, clean: bool = False) -> Dims:
        """The dimension of each class of a stored s-op. A constant is on everywhere but at BOS."""
        if isinstance(self.program.sops[resolved(self.program, number)[0]].op, Constant):
            return lambda one: HERE
        name = self.clean[number][0] if clean else self.name(number)
        return lambda one: (name, one)

    def codes(self, number: int, *, clean: bool = False) -> Dims:
        """The dimension that is on for each code of a stored s-op."""
        dims, classes = self.dims(number, clean=clean), self.demands.stored[number]
        return lambda code: dims(int(classes[code]))

    # components

    def compute(self, root: int) -> None:
        """The head of a root, if it is an attention, and the steps of its targets."""
        op = self.program.sops[root].op
        if isinstance(op, Attention):
            read = {side for one in self.literals(op) for side in (one.keys, one.queries)}
            read |= {op.value} if isinstance(op, Aggregation) else set()
            layer = 1 + max((self.clean[number][1] for number in read if number in self.clean), default=-1)
            self.layer_of[root] = layer
            if isinstance(op, Width) and layer not in self.to_bos:
                self.attend_bos(layer)
            self.heads.append(self.head(root, op, layer))
        else:
            layer = 1 + max((self.ready[number] for number in op.inputs), default=-1)
        for target in self.demands.targets[root]:
            self.add_target(root, target, layer)

    def add_target(self, root: int, target: Target, layer: int) -> None:
        name = ANSWER if target.of is None else self.name(target.of)
        steps, clean = self.steps(root, target, lambda one: (name, one))
        if target.of is None:
            self.neurons.append(Neurons(layer, ANSWER, "the answer, where it is asked for", self.gated(steps)))
            return
        self.neurons.append(Neurons(layer, name, describe(self.program, self.program.sops[target.of]), tuple(steps)))
        self.ready[target.of], self.clean[target.of] = layer, (name, layer)
        if not clean and target.of in self.demands.attended:
            self.make_clean(target.of, layer + 1)

    def gated(self, steps: list[NeuronStep]) -> tuple[NeuronStep, ...]:
        reach = reach_of(self.neurons)
        return tuple(gated(step, reach) for step in steps)

    def make_clean(self, number: int, layer: int) -> None:
        """A copy of a variable whose dimensions are exactly 0 where they are off."""
        name, labels = self.name(number, "clean"), self.labels(number)
        self.groups.append(DimGroup(name, labels, "variable"))
        steps = set_steps(self.dims(number), range(len(labels)), lambda one: (name, one))
        self.neurons.append(Neurons(layer, name, f"{self.name(number)}, exactly 0 where it is off", tuple(steps)))
        self.clean[number] = (name, layer)

    def answer_from(self, number: int) -> None:
        """The answer, read from the stored output."""
        classes = self.demands.stored[number]
        answers = dict.fromkeys(range(classes.max() + 1), -1)
        places = {value: place for place, value in enumerate(self.interface.answers)}
        for code, value in enumerate(finite_of(self.program.sops[number]).values):
            answers[int(classes[code])] = places.get(value, -1)
        steps = set_steps(self.dims(number), list(answers.values()), lambda one: (ANSWER, one))
        layer, text = self.ready[number] + 1, "the answer, where it is asked for"
        self.neurons.append(Neurons(layer, ANSWER, text, self.gated(steps)))

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
            return replace(counted, at_bos=-1.0, unit=self.to_bos[self.layer_of[root]])
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
            int(target.classes[finite_of(self.program.sops[root]).index[op.default]]) if self.has_default(op) else -1
        )
        for one in sorted({int(one) for one in (*copied, default) if one >= 0}):
            reads: dict[Dim, float] = {(raw, int(place)): 1.0 for place in np.unique(stored[copied == one])}
            reads |= {(self.name(root, "none"), 0): 1.0} if default == one else {}
            found.append(NeuronStep(reads | {ONE: -0.5, BOS: -1.0}, 0.5 * SLACK, 0.5, {writes(one): 1.0}))
        return found

    def has_default(self, op: Aggregation) -> bool:
        return not self.program.selectors[op.selector].always

    # heads

    def literals(self, op: Attention) -> tuple[SelectorLiteral, ...]:
        return literals_of(self.program, self.program.selectors[op.selector])

    def head(self, root: int, op: Attention, layer: int) -> HeadPlan:
        node, columns = self.program.sops[root], [one for lit in self.literals(op) for one in self.columns(op, lit)]
        about = (layer, node.label, describe(self.program, node), tuple(columns))
        if isinstance(op, Width):
            self.groups.append(DimGroup(self.name(root, "raw"), ("1 / (1 + count)",), "constant"))
            return HeadPlan(*about, (), (self.name(root, "raw"), 0), counts=True)
        labels, dims = self.labels(op.value), self.dims(op.value, clean=True)
        self.groups.append(DimGroup(self.name(root, "raw"), labels, "raw"))
        copied = tuple((dims(place), (self.name(root, "raw"), place)) for place in range(len(labels)))
        share = (self.name(root, "none"), 0) if self.has_default(op) else None
        if share:
            self.groups.append(DimGroup(share[0], ("no key is selected",), "constant"))
        return HeadPlan(*about, copied, share, counts=False)

    def attend_bos(self, layer: int) -> None:
        """The head to whose number counts are compared: it divides by the same σ of BOS as they do."""
        name = f"{TO_BOS} {layer}"
        self.groups.append(DimGroup(name, ("everywhere",), "constant"))
        self.to_bos[layer] = (name, 0)
        column = Column({ONE: 1.0}, {BOS: 1.0})
        self.heads.append(
            HeadPlan(layer, name, "the share of BOS if only BOS is attended", (column,), (), (name, 0), True)
        )

    def columns(self, op: Attention, literal: SelectorLiteral) -> list[Column]:
        """The columns that add 0 where the condition holds, and at most -1 where it does not."""
        distance = shift_of(self.program, literal) if isinstance(op, Aggregation) else None
        if distance is not None:
            return self.circle_columns(distance)
        queries, keys = self.codes(literal.queries, clean=True), self.codes(literal.keys, clean=True)
        by_rows = _one_sided(literal.selected, queries, keys)
        by_columns = [Column(one.key, one.query) for one in _one_sided(literal.selected.T, keys, queries)]
        columns = min(by_rows, by_columns, key=len)
        return [Column(one.query, {dim: -weight for dim, weight in one.key.items()}) for one in columns]

    @property
    def period(self) -> int:
        """The number of places on the circle: no two positions, looking back, meet on it by accident."""
        return self.program.options.max_seq_len + max(self.demands.shifts) + 1

    def circle_columns(self, distance: int) -> list[Column]:
        """cos(angle between the key and the place looked for) - 1, scaled so that neighbours get -1."""
        angle, cosine, sine = 2 * math.pi / self.period, (CIRCLE, 0), (CIRCLE, 1)
        turn, scale = angle * distance, 1 / (1 - math.cos(angle))
        back = {cosine: math.cos(turn), sine: math.sin(turn)}  # cos(a - t) = cos a cos t + sin a sin t
        across = {cosine: -math.sin(turn), sine: math.cos(turn)}
        return [Column(back, {cosine: scale}), Column(across, {sine: scale}), Column({HERE: 1.0}, {HERE: -scale})]

    # embeddings

    def by_token(self) -> dict[int, Mapping[Dim, float]]:
        """The dimensions of every token of the host."""
        roots = {number: resolved(self.program, number) for number in self.demands.stored}
        own = [number for number, (root, _) in roots.items() if isinstance(self.program.sops[root].op, TokensOp)]
        index = {value: code for code, value in enumerate(self.program.options.vocab)}
        found: dict[int, Mapping[Dim, float]] = {self.interface.bos: {ONE: 1.0, BOS: 1.0}}
        for word in range(self.interface.words):
            if word != self.interface.bos:
                code = index[self.interface.tokens.get(word, self.interface.other)]
                dims: dict[Dim, float] = {}
                for number in own:
                    dims |= self.on(number, int(roots[number][1][code]))
                found[word] = dims | {ONE: 1.0, HERE: 1.0} | ({TRIGGER: 1.0} if word in self.interface.trigger else {})
        return found

    def on(self, number: int, code: int) -> dict[Dim, float]:
        """The dimension of a code; none if no input reaches it."""
        return {self.codes(number)(code): 1.0} if code >= 0 else {}

    def by_position(self) -> tuple[Mapping[Dim, float], ...]:
        """The dimensions of BOS and of every position of the program."""
        found: list[Mapping[Dim, float]] = [{}]
        for place in range(self.program.options.max_seq_len):
            dims: dict[Dim, float] = {IN_RANGE: 1.0}
            for number in self.demands.stored:
                root, table = resolved(self.program, number)
                op = self.program.sops[root].op
                if isinstance(op, IndicesOp | Positions):
                    code = int(op.table[place]) if isinstance(op, Positions) else place
                    dims |= self.on(number, int(table[code]))
            if self.demands.shifts:
                turn = 2 * math.pi * place / self.period
                dims |= {(CIRCLE, 0): math.cos(turn), (CIRCLE, 1): math.sin(turn)}
            found.append(dims)
        return tuple(found)


CONSTANTS = {
    ONE: "everywhere",
    BOS: "at BOS",
    HERE: "everywhere but at BOS",
    TRIGGER: "at a trigger",
    IN_RANGE: "at the program's positions",
}


def _one_sided(selected: NDArray[np.bool_], rows: Dims, columns: Dims) -> list[Column]:
    """For each kind of row, the product of "is of this kind" and "is a column that it does not select"."""
    patterns, kinds = np.unique(selected, axis=0, return_inverse=True)
    found = []
    for kind, pattern in enumerate(patterns):
        if not pattern.all():
            row = {rows(int(code)): 1.0 for code in np.flatnonzero(kinds.ravel() == kind)}
            found.append(Column(row, {columns(int(code)): 1.0 for code in np.flatnonzero(~pattern)}))
    return found


def _listed(values: list[Value]) -> str:
    shown = ", ".join(map(repr, values[:SHOWN]))
    return f"{shown}, ... {len(values)} values" if len(values) > SHOWN else shown
