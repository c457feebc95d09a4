"""Checks the result of every pass of the compiler: its invariants, and its outputs on a sample of inputs.

The reference is the interpreter on the expressions themselves. The table interpreter runs the tabulated program. A
circuit, a schedule or a layout becomes a model by the necessary passes only, and this model is compared with the
tabulated program. The error names the first wrong pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tracr.compiler.frontend.trace import TracedGraph
from tracr.compiler.layers.assign import assign_to_layers, stack
from tracr.compiler.lower.lower import lower
from tracr.compiler.lower.numbers import RoundingTwins
from tracr.compiler.pipeline import verify
from tracr.compiler.program.encodings import choose_encodings
from tracr.compiler.program.share import drop_unused
from tracr.compiler.residual.assemble import assemble
from tracr.compiler.residual.lay_out import lay_out
from tracr.errors import InternalError, LimitError, TracrError
from tracr.ir.circuit import Circuit
from tracr.ir.compilation import Compilation
from tracr.ir.inferred import Inferred
from tracr.ir.layout import Layout
from tracr.ir.options import Options
from tracr.ir.parameters import Parameters
from tracr.ir.passes import Pass
from tracr.ir.program import Program
from tracr.ir.rewriting import Rewritten
from tracr.ir.schedule import PlacedCircuit, Schedule
from tracr.model.compiled import CompiledModel
from tracr.nearness import same_value
from tracr.rasp.expressions import SOp
from tracr.rasp.interpreter import evaluate
from tracr.runtime.table_interpreter import evaluate_batch
from tracr.values import Value

__all__ = ["PassChecker"]

SAMPLE = 60  # inputs
Rows = Mapping[str, list[Value]]


class PassChecker:
    """Called after every pass (`watch` of `compile_program`); raises an `InternalError` after the first wrong one."""

    def __init__(self, outputs: Mapping[str, SOp], options: Options) -> None:
        self.options = options
        self.expected = [(xs, rows) for xs in _sample(options) if (rows := self._interpreted(outputs, xs)) is not None]
        self.traced: TracedGraph | None = None
        self.program: Program | None = None  # the last one that was not rewritten
        self.circuit: Circuit | None = None
        self.layout: Layout | None = None
        self.assumed = False

    def __call__(self, one: Pass, value: Any) -> None:
        """Check the result of a pass."""
        try:
            if not isinstance(value, one.gives):
                raise InternalError(f"it gives a {type(value).__name__}, not a {one.gives.__name__}")
            verify(value)
            self._check(value)
        except TracrError as error:
            raise InternalError(f"after the pass {one.name}: {error.diagnostic.sentence}") from error

    def _check(self, value: Any) -> None:
        match value:
            case TracedGraph():
                self.traced = value
                self._compare({name: value.nodes[node].expr for name, node in value.outputs})
            case Inferred() | Program():
                self.program = (
                    value if isinstance(value, Program) and not isinstance(value, Rewritten) else self.program
                )
                if not _has_twins(value):
                    self._compare_tables(value)
            case Circuit() | PlacedCircuit() | Schedule() | Layout() | Parameters():
                self._compare_model(value)
            case _:
                self._compare(value)

    def _interpreted(self, outputs: Mapping[str, Any], xs: list[Value]) -> Rows | None:
        """The outputs of the interpreter; `None` if it raises."""
        try:
            return {name: evaluate(sop, xs, causal=self.options.causal) for name, sop in outputs.items()}
        except TracrError:
            return None

    def _compare(self, outputs: Mapping[str, Any]) -> None:
        for xs, rows in self.expected:
            self._same(xs, rows, self._interpreted(outputs, xs))

    def _compare_tables(self, program: Inferred | Program) -> None:
        shortest, longest = program.lengths
        self.expected = [(xs, rows) for xs, rows in self.expected if shortest <= len(xs) <= longest]
        inputs = [xs for xs, _ in self.expected]
        evaluation = evaluate_batch(program, inputs)
        tables = evaluation.outputs()
        found = [{name: tables[name][row] for name in tables} for row in range(len(inputs))]
        if program.assumptions and not self.assumed:  # the tables merge numbers that the interpreter distinguishes
            self.expected, self.assumed = list(zip(inputs, found, strict=True)), True
        for (xs, rows), own, raises in zip(self.expected, found, evaluation.errors.tolist(), strict=True):
            self._same(xs, rows, None if raises else own)

    def _same(self, xs: list[Value], expected: Rows, found: Rows | None) -> None:
        for name, row in expected.items():
            if found is None or not all(map(same_value, row, found[name])):
                got = "an error" if found is None else repr(found[name])
                raise InternalError(f"on {xs!r} {name} should be {row!r} but is {got}")

    def _compare_model(self, value: Circuit | PlacedCircuit | Schedule | Layout | Parameters) -> None:
        try:
            model = self._model(value)
        except LimitError:  # too large without the later passes
            return
        report = model.verify(SAMPLE)
        if report.counterexample is not None:
            raise InternalError(str(report.counterexample))

    def _model(self, value: Circuit | PlacedCircuit | Schedule | Layout | Parameters) -> CompiledModel:
        """The model made from the value by the necessary passes only."""
        weights = value if isinstance(value, Parameters) else None
        if isinstance(value, Circuit):
            self.circuit = value
            value = assign_to_layers(value)
        if isinstance(value, PlacedCircuit):
            value = stack(value)
        if isinstance(value, Schedule):
            value = lay_out(value, value.options)
        if isinstance(value, Layout):
            self.layout = value
        layout, traced, program, circuit = self.layout, self.traced, self.program, self.circuit
        assert layout is not None
        assert traced is not None
        assert program is not None
        assert circuit is not None
        parameters = weights or assemble(layout, self.options)
        made = (traced.graph, traced.expressions, program, circuit, layout.schedule, layout, parameters)
        return CompiledModel(Compilation(self.options, *made))


def _has_twins(program: Inferred | Program) -> bool:
    """Whether the program will be refused because numbers differ by rounding only; then its outputs do not matter."""
    try:
        lower(program if isinstance(program, Program) else choose_encodings(drop_unused(program)))
    except RoundingTwins:
        return True
    except TracrError:
        pass
    return False


def _sample(options: Options) -> Iterator[list[Value]]:
    """Random inputs of every length: half of them from all tokens, half from at most two."""
    rng = np.random.default_rng(0)
    for number in range(SAMPLE):
        length = number % (options.max_seq_len + 1)
        few = rng.integers(len(options.vocab), size=2 if number % 2 else len(options.vocab))
        yield [options.vocab[code] for code in rng.choice(few, size=length).tolist()]
