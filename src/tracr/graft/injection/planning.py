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
    demands_of,
    finite_of,
    resolved,
    shift_of,
)
from tracr.graft.injection.embedded import CircuitEmbedding
from tracr.graft.injection.interface import Interface
from tracr.graft.injection.scores import circle_columns, period_of, selecting_columns
from tracr.graft.injection.steps import (
    Dims,
    gated,
    set_steps,
)
from tracr.graft.injection.support import literals_of
from tracr.graft.injection.variable_steps import VariableSteps, has_default
from tracr.ir.graph import unique_labels
from tracr.ir.ops import (
    Aggregation,
    Attention,
    Constant,
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
        self.made = VariableSteps(
            program, demands, self.name, self.codes, lambda root: self.to_bos[self.layer_of[root]]
        )
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
        embedded = CircuitEmbedding(self.program, self.interface, self.demands, self.codes)
        return InjectedCircuit(
            tuple(self.groups),
            embedded.by_token(),
            embedded.by_position(),
            tuple(self.heads),
            tuple(self.neurons),
            answers,
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
        steps, clean = self.made.steps(root, target, lambda one: (name, one))
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

    # heads

    def literals(self, op: Attention) -> tuple[SelectorLiteral, ...]:
        return literals_of(self.program, self.program.selectors[op.selector])

    def head(self, root: int, op: Attention, layer: int) -> HeadPlan:
        node, columns = self.program.sops[root], self.columns(op)
        about = (layer, node.label, describe(self.program, node), columns)
        if isinstance(op, Width):
            self.groups.append(DimGroup(self.name(root, "raw"), ("1 / (1 + count)",), "constant"))
            return HeadPlan(*about, (), (self.name(root, "raw"), 0), counts=True)
        labels, dims = self.labels(op.value), self.dims(op.value, clean=True)
        self.groups.append(DimGroup(self.name(root, "raw"), labels, "raw"))
        copied = tuple((dims(place), (self.name(root, "raw"), place)) for place in range(len(labels)))
        share = (self.name(root, "none"), 0) if has_default(self.program, op) else None
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

    def columns(self, op: Attention) -> tuple[Column, ...]:
        """The columns of a head's score, for all conditions of its selector."""
        found: list[Column] = []
        for literal in self.literals(op):
            distance = shift_of(self.program, literal) if isinstance(op, Aggregation) else None
            if distance is None:
                queries, keys = self.codes(literal.queries, clean=True), self.codes(literal.keys, clean=True)
                found += selecting_columns(literal.selected, queries, keys)
            else:
                found += circle_columns(distance, period_of(self.program, self.demands))
        return tuple(found)


CONSTANTS = {
    ONE: "everywhere",
    BOS: "at BOS",
    HERE: "everywhere but at BOS",
    TRIGGER: "at a trigger",
    IN_RANGE: "at the program's positions",
}


def _listed(values: list[Value]) -> str:
    shown = ", ".join(map(repr, values[:SHOWN]))
    return f"{shown}, ... {len(values)} values" if len(values) > SHOWN else shown
