"""Questions to methods: where is this variable? Labels of inputs, and interchange interventions with their answers.

An interchange takes two inputs, a base and a source, and positions. The variable gets its values on the source at these
positions; everything else stays as on the base. The program says what the answer is (`counterfactual.py`).

One question is the control. Its variable is a random function g of the own token, 0 or 1, which the model does not
use. Its program gives the model's answers as long as g is not replaced, and otherwise the answer that is
g(source) - g(base) further in the list of all answers. The model does not run this program: a map under which it seems
to run it has computed the program itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.errors import TracrError
from tracr.ir.domains import Finite
from tracr.lab.methods.passes import model_of
from tracr.lab.variables.counterfactual import answers_with
from tracr.lab.variables.network import StreamNetwork, stream_network
from tracr.model.designed import DesignedModel
from tracr.model.interventions import locations
from tracr.model.variable_values import VariableValues
from tracr.natural.twin_model import TwinModel
from tracr.runtime.outputs import Output
from tracr.values import Value

__all__ = [
    "CONTROL",
    "Interchanges",
    "VariableData",
    "VariableQuestion",
    "asked_variables",
    "known_design",
    "questions_for",
]

Array = NDArray[Any]
Inputs = list[list[Value]]
CONTROL = "control"
MOST = 3  # variables of a subject
INPUTS = 384  # drawn for a subject; two thirds are for training
TRAINING = 256  # interchanges for training, of each question
DRAWS = 6  # draws for each interchange: half of those kept shall change the answer
LEAST = 8  # interchanges that change the answer


@dataclass(frozen=True, eq=False)
class Interchanges:
    """Interchange interventions; arrays are [pair, position], with BOS at position 0.

    Args:
        base, source: ids.
        swapped: the positions at which the variable gets its value on the source.
        answers: the program's answers, as codes into the domain of the output; -1 at BOS.
        changes: [pair], whether they differ from those on the base.
    """

    base: Array
    source: Array
    swapped: NDArray[np.bool_]
    answers: Array
    changes: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class VariableQuestion:
    """A variable: the numbers of its values on inputs, and interchanges.

    Args:
        name: its name.
        shown: the values that it has on the inputs of the subject.
        ids: inputs [input, position].
        codes: the number of its value in `shown`; -1 at BOS.
        pairs: interchanges.
    """

    name: str
    shown: tuple[Value, ...]
    ids: Array = field(repr=False)
    codes: Array = field(repr=False)
    pairs: Interchanges = field(repr=False)

    @property
    def values(self) -> int:
        """How many values it has."""
        return len(self.shown)


@dataclass(frozen=True, eq=False)
class VariableData:
    """What a method gets: questions, and the model as a network that can be cut at its places."""

    questions: tuple[VariableQuestion, ...]
    network: StreamNetwork
    output: Output


def known_design(model: Any) -> DesignedModel:
    """The compiled model or variant whose program the model has; for a twin, its teacher."""
    return model.teacher if isinstance(model, TwinModel) else model.design


def asked_variables(model: DesignedModel) -> list[str]:
    """The variables that can be asked for: computed by a head or an MLP, settable, with finitely many values."""
    known, nodes = locations(model.program, model.layout), {node.label: node for node in model.program.sops.values()}
    return [
        label
        for label in model.variables.settable
        if label in known
        and known[label].hook != "hook_embed"
        and isinstance(nodes[label].domain, Finite)
        and nodes[label].domain.size > 1
    ]


def questions_for(subject: Any, pairs: int, seed: int) -> tuple[VariableData, VariableData]:
    """The questions for training, and the same questions with other inputs and pairs, for scores.

    Args:
        subject: the subject.
        pairs: the number of interchanges for scores, of each question.
        seed: the seed of inputs and pairs.
    """
    model, output = model_of(subject), subject.outputs[0]
    design = known_design(model)
    if not isinstance(output.domain, Finite):
        raise TracrError(f"{output.name} can be any number, so that answers are not compared", hint="use another case")
    inputs = list({tuple(tokens): None for tokens in subject.case.inputs(INPUTS, seed)})
    if len(inputs) < 6:
        raise TracrError(f"{subject.case.name} has only {len(inputs)} inputs", hint="use another case")
    cut = -(-2 * len(inputs) // 3)
    parts: list[Inputs] = [[list(one) for one in half] for half in (inputs[:cut], inputs[cut:])]
    asker = _Asker(design, output, np.random.default_rng([seed, 1]))
    labels = [label for label in asked_variables(design) if asker.matters(label, parts)]
    if not labels:
        raise TracrError(
            f"no variable of {subject.case.name} changes answers when it is replaced, and is computed by a head or MLP",
            hint="use another case",
        )
    chosen = [labels[place] for place in sorted({*np.linspace(0, len(labels) - 1, MOST).round().astype(int).tolist()})]
    network = stream_network(subject)
    made = [
        (*(asker.question(label, parts, part, count) for label in chosen), asker.control(parts, part, count))
        for part, count in ((0, TRAINING), (1, pairs))
    ]
    return VariableData(made[0], network, output), VariableData(made[1], network, output)


class _Asker:
    """Makes questions about a program."""

    def __init__(self, design: DesignedModel, output: Output, rng: np.random.Generator) -> None:
        self.design, self.output, self.rng = design, output, rng
        self.interpreted: dict[int, VariableValues] = {}
        tokens = rng.permutation(len(design.options.vocab))
        self.random = {design.options.vocab[token]: number % 2 for number, token in enumerate(tokens.tolist())}

    def matters(self, label: str, parts: Sequence[Inputs]) -> bool:
        """Whether enough interchanges change an answer, in training and for scores."""
        for inputs in parts:
            drawn = self._drawn(inputs, LEAST * DRAWS)
            answers, defined = self._replaced(label, inputs, drawn)
            if (defined & self._differ(answers, inputs, drawn[0])).sum() < LEAST:
                return False
        return True

    def question(self, label: str, parts: Sequence[Inputs], part: int, count: int) -> VariableQuestion:
        """The question about a variable, for the inputs of one part."""
        values = [value for inputs in parts for row in self._values(label, inputs) for value in row]
        numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
        inputs = parts[part]
        codes = np.array([[numbers[value] for value in row] for row in self._values(label, inputs)])
        drawn = self._drawn(inputs, count * DRAWS)
        answers, defined = self._replaced(label, inputs, drawn)
        return self._asked(label, tuple(numbers), inputs, codes, drawn, answers, defined, count)

    def control(self, parts: Sequence[Inputs], part: int, count: int) -> VariableQuestion:
        """The question about a variable that the model does not use, of a program that it does not run."""
        inputs = parts[part]
        codes = np.array([[self.random[token] for token in row] for row in inputs])
        drawn = self._drawn(inputs, count * DRAWS)
        base, source, swapped = drawn
        listed = np.unique(np.concatenate([self._answers(part).ravel() for part in parts]))
        usual = np.searchsorted(listed, self._answers(inputs)[base])
        moved = np.where(swapped, codes[source] - codes[base], 0)
        answers = listed[(usual + moved) % len(listed)]
        return self._asked(CONTROL, (0, 1), inputs, codes, drawn, answers, np.ones(len(base), dtype=bool), count)

    def _asked(
        self,
        name: str,
        shown: tuple[Value, ...],
        inputs: Inputs,
        codes: Array,
        drawn: tuple[Array, Array, Array],
        answers: Array,
        defined: NDArray[np.bool_],
        count: int,
    ) -> VariableQuestion:
        """The question with `count` of the drawn pairs, half of which change the answer if there are as many."""
        base, source, swapped = drawn
        changes = self._differ(answers, inputs, base)
        kinds = [np.flatnonzero(defined & changes), np.flatnonzero(defined & ~changes)]
        halves = [kinds[0][: -(-count // 2)], kinds[1][: count // 2]]
        kept = np.resize(np.concatenate(halves), count)
        ids = self.design.encode([list(tokens) for tokens in inputs])
        pairs = Interchanges(
            ids[base[kept]],
            ids[source[kept]],
            _with_bos(swapped[kept], False),
            _with_bos(answers[kept], -1),
            changes[kept],
        )
        return VariableQuestion(name, shown, ids, _with_bos(codes, -1), pairs)

    def _drawn(self, inputs: Inputs, count: int) -> tuple[Array, Array, Array]:
        """Bases, sources, and swapped positions: all, or one, with equal chances."""
        base, source = self.rng.integers(len(inputs), size=(2, count))
        length = len(inputs[0])
        one = np.arange(length) == self.rng.integers(length, size=(count, 1))
        return base, source, np.where(self.rng.random((count, 1)) < 0.5, one, True)

    def _values(self, label: str, inputs: Inputs) -> list[list[Value]]:
        if id(inputs) not in self.interpreted:
            self.interpreted[id(inputs)] = self.design.interpret(inputs)
        return self.interpreted[id(inputs)].rows(label)

    def _answers(self, inputs: Inputs) -> Array:
        assert isinstance(self.output.domain, Finite)
        rows = self._values(self.design.program.sops[self.design.program.outputs[0][1]].label, inputs)
        return np.array([[self.output.domain.index[value] for value in row] for row in rows])

    def _replaced(
        self, label: str, inputs: Inputs, drawn: tuple[Array, Array, Array]
    ) -> tuple[Array, NDArray[np.bool_]]:
        base, source, swapped = drawn
        values = self._values(label, inputs)
        rows = [
            [values[theirs if swap else ours][place] for place, swap in enumerate(row)]
            for ours, theirs, row in zip(base.tolist(), source.tolist(), swapped.tolist(), strict=True)
        ]
        return answers_with(self.design, label, rows, [inputs[place] for place in base.tolist()])

    def _differ(self, answers: Array, inputs: Inputs, base: Array) -> NDArray[np.bool_]:
        return np.asarray((answers != self._answers(inputs)[base]).any(axis=1))


def _with_bos(rows: Array, first: Any) -> Array:
    return np.concatenate([np.full((len(rows), 1), first), rows], axis=1)
