"""Compares a model with its program: on all inputs if they are few, else on a stratified sample.

The reference is the vectorised interpreter, which does not use the weights. Every input is run with others of its
length (unpadded) and padded to the longest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracr import arguments
from tracr.extras import need
from tracr.ir.domains import Finite
from tracr.model.input_sets import Codes, chosen_inputs, every_evaluation, every_length, ids_of, is_small
from tracr.model.interventions import locations
from tracr.model.methods import call
from tracr.nearness import ANSWER, margin, nearly_equal, same_value
from tracr.rasp.interpreter import evaluate
from tracr.runtime.table_interpreter import Batch, Evaluation, evaluate_batch
from tracr.values import Value

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel
    from tracr.model.running import RunnableModel

__all__ = ["Counterexample", "Verification", "chosen_inputs", "differs", "ids_of", "verify"]

INTERPRETED = 64  # inputs of a batch that are also interpreted, if the program has assumptions
HALF = 0.25  # the largest error of a coordinate of a one-hot code


@dataclass(frozen=True)
class Counterexample:
    """A short input on which model and program differ, and the first variable that differs.

    `variable` is the first one that differs in the residual stream; "" if none does, and None if the model has no
    directions for its variables (a compressed model).
    """

    tokens: list[Value]
    padded: bool
    output: str
    expected: list[Value]
    got: list[Value]
    variable: str | None
    position: int

    def __str__(self) -> str:
        given = f"{self.tokens!r}{' (padded)' if self.padded else ''}"
        text = f"on {given} {self.output} should be {self.expected!r} but is {self.got!r}"
        if self.variable is None:
            return text
        where = f"{self.variable} at position {self.position}" if self.variable else "only the output itself"
        return f"{text}; the first variable that differs in the residual stream: {where}"


@dataclass(frozen=True)
class Verification:
    """The result of a comparison. True if at least one input was compared and nothing differs.

    Without `own_weights`, the weights are not the compiler's and may be wrong on inputs that were not compared.
    With `assumptions`, the compiled program merges numbers that the interpreter may distinguish. Therefore
    `interpreted` of the inputs were also run by the interpreter; on `apart` of them its output differs from the
    compiled program's.
    """

    inputs: int
    exhaustive: bool
    errors: int
    counterexample: Counterexample | None
    own_weights: bool = True
    assumptions: tuple[str, ...] = ()
    interpreted: int = 0
    apart: int = 0

    def __bool__(self) -> bool:
        return self.counterexample is None and self.inputs > 0

    def __str__(self) -> str:
        scope = "all" if self.exhaustive else "a sample of"
        text = f"{scope} {self.inputs:,} inputs compared, padded and unpadded"
        if self.errors:
            text += f", not counting {self.errors:,} on which the program raises"
        if not self.own_weights:
            text += ", with weights that are not the compiler's own"
        if self.assumptions:
            text += f", under {len(self.assumptions)} assumption{'s' if len(self.assumptions) > 1 else ''}"
            asked = f"differs on {self.apart:,} of {self.interpreted:,} of them"
            text += f" (the interpreter {asked if self.interpreted else 'was not run'})"
        if self.counterexample is not None:
            return f"{text}: MISMATCH {self.counterexample}"
        return f"{text}: {'all agree' if self else 'there is nothing to compare'}"

    def _repr_html_(self) -> str:
        html: str = call("Verification._repr_html_", self)
        return html


def verify(model: RunnableModel, budget: int, seed: int, progress: bool) -> Verification:
    """Compare the model with its program on all inputs, or on about `budget` of them."""
    budget, seed = arguments.whole("budget", budget, 1), arguments.whole("seed", seed)
    if arguments.flag("progress", progress):
        need("tqdm")  # said for small models too
    batches, total = chosen_inputs(model, budget, seed)
    exhaustive = total <= budget
    compared = errors = 0
    assumed = _Assumed(model)
    if is_small(model.program, budget) and not assumed.assumptions:
        raised = _all_right(model)
        if raised is not None:  # else compare length by length, to find the first difference
            return Verification(total - raised, True, raised, None, model.own_weights)
    with _Progress(min(total, budget), progress) as bar:
        for codes in batches:
            found, raised = _compare(model, codes)
            if found is not None:
                done = compared + len(codes) - raised, False, errors + raised, found
                return Verification(*done, model.own_weights, *assumed.result())
            assumed.look_at(codes)
            compared, errors = compared + len(codes) - raised, errors + raised
            bar.advance(len(codes))
    return Verification(compared, exhaustive, errors, None, model.own_weights, *assumed.result())


class _Assumed:
    """Runs the interpreter on some inputs of every batch, to count the outputs that a model's assumptions change."""

    def __init__(self, model: RunnableModel) -> None:
        self.model = model
        self.assumptions = tuple(assumption.sentence for assumption in model.program.assumptions)
        self.interpreted = self.apart = 0

    def result(self) -> tuple[tuple[str, ...], int, int]:
        """The assumptions, the number of interpreted inputs, and the number of them on which the outputs differ."""
        return self.assumptions, self.interpreted, self.apart

    def look_at(self, codes: Codes) -> None:
        """Interpret some of the inputs, if the model has the program's expressions (a saved model has only tables)."""
        expressions = self.model.expressions
        if not self.assumptions or not expressions:
            return
        rows = codes[:: 1 + len(codes) // INTERPRETED]
        evaluation = evaluate_batch(self.model.program, Batch(rows, np.full(len(rows), rows.shape[1], dtype=np.int32)))
        compiled = evaluation.outputs()
        for row, raises in enumerate(evaluation.errors.tolist()):
            tokens = [self.model.options.vocab[code] for code in rows[row].tolist()]
            if not raises:
                self.interpreted += 1
                self.apart += any(
                    not all(
                        map(
                            same_value,
                            evaluate(expressions[n], tokens, causal=self.model.options.causal),
                            compiled[name][row],
                        )
                    )
                    for name, n in self.model.graph.outputs
                )


class _Progress:
    """A progress bar on standard error, if requested and if that is a terminal."""

    def __init__(self, total: int, wanted: bool) -> None:
        self._bar: Any = None
        if wanted:
            self._bar = need("tqdm").tqdm(total=total, unit="input", leave=False, disable=None)

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def advance(self, steps: int) -> None:
        """Advance the bar."""
        if self._bar is not None:
            self._bar.update(steps)


def _compare(model: RunnableModel, codes: Codes) -> tuple[Counterexample | None, int]:
    """The first difference on inputs of one length, unpadded and padded; and on how many the program raises."""
    batch = Batch(codes, np.full(len(codes), codes.shape[1], dtype=np.int32))
    evaluation = evaluate_batch(model.program, batch)
    for padded in (False, True) if codes.shape[1] < model.program.lengths[1] else (False,):
        wrong = _mismatches(model, evaluation, padded) & ~evaluation.errors
        if wrong.any():
            return _explain(model, codes[int(wrong.argmax())], padded), int(evaluation.errors.sum())
    return None, int(evaluation.errors.sum())


def _all_right(model: RunnableModel) -> int | None:
    """On how many inputs the program raises, if the model is right on all others; `None` if it is not.

    The program runs once on the inputs of all lengths, and so does the model on the padded inputs.
    """
    every = every_length(len(model.options.vocab), *model.program.lengths)
    evaluation = every_evaluation(model.program)
    found = [model.codes(ids) for ids in every.runs]
    known = ~evaluation.errors[every.cells // every.batch.codes.shape[1]] if evaluation.errors.any() else slice(None)
    for place, (output, (_, number)) in enumerate(zip(model.outputs, model.program.outputs, strict=True)):
        expected = np.broadcast_to(evaluation.codes[number], every.batch.codes.shape).ravel()[every.cells]
        got = every.of_tokens([codes[place] for codes in found])
        if differs(output.domain, expected[known], got[known]).any():
            return None
    return int(evaluation.errors.sum())


def _mismatches(model: RunnableModel, evaluation: Evaluation, padded: bool) -> NDArray[np.bool_]:
    """Which inputs give a wrong output at some position."""
    codes = evaluation.batch.codes
    wrong = np.zeros(len(codes), dtype=bool)
    found = model.codes(ids_of(model, codes, padded))
    for output, (_, number), got in zip(model.outputs, model.program.outputs, found, strict=True):
        expected = np.broadcast_to(evaluation.codes[number], codes.shape)
        wrong |= differs(output.domain, expected, got[:, 1 : codes.shape[1] + 1]).any(axis=1)
    return wrong


def differs(domain: Any, expected: NDArray[Any], got: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether two arrays of codes (numbers for an interval) encode different values, entry by entry."""
    if not isinstance(domain, Finite):
        off = ~nearly_equal(expected, got, ANSWER)
        return np.asarray(np.where(np.isnan(expected), ~np.isnan(got), off))
    different = expected != got
    if domain.numeric and different.any():
        numbers = domain.numbers
        kind = np.array([value is None for value in domain.values])
        near = nearly_equal(numbers[expected], numbers[got])
        different &= ~(near & (kind[expected] == kind[got]))
    return np.asarray(different)


def _explain(model: RunnableModel, codes: Codes, padded: bool) -> Counterexample:
    """Shrink a counterexample and find the first variable that differs."""

    def fails(candidate: Codes) -> bool:
        evaluation = evaluate_batch(model.program, _single(candidate))
        return not evaluation.errors[0] and bool(_mismatches(model, evaluation, padded)[0])

    codes = _shrink(codes, model.program.lengths[0], fails)
    evaluation = evaluate_batch(model.program, _single(codes))
    found = model.codes(ids_of(model, codes[None, :], padded))
    for output, (_, number), every in zip(model.outputs, model.program.outputs, found, strict=True):
        expected, got = np.broadcast_to(evaluation.codes[number], (1, len(codes))), every[:, 1 : len(codes) + 1]
        if differs(output.domain, expected, got).any():
            variable, position = _where(model, evaluation, padded)
            tokens = [model.options.vocab[code] for code in codes.tolist()]
            values = output.decode(got)[0].tolist()
            return Counterexample(tokens, padded, output.name, evaluation.values(number)[0], values, variable, position)
    raise AssertionError("the model is right on its own counterexample")


def _single(codes: Codes) -> Batch:
    return Batch(codes[None, :], np.array([len(codes)], dtype=np.int32))


def _shrink(codes: Codes, shortest: int, fails: Any) -> Codes:
    """Remove tokens, then replace tokens by the first of the vocabulary, as long as the comparison still fails."""
    changed = True
    while changed:
        changed = False
        for place in range(len(codes)):
            if len(codes) > shortest and len(codes) > 1:
                shorter = np.delete(codes, place)
                if fails(shorter):
                    codes, changed = shorter, True
                    break
            if codes[place] != 0:
                simpler = codes.copy()
                simpler[place] = 0
                if fails(simpler):
                    codes, changed = simpler, True
                    break
    return codes


def _where(model: RunnableModel, evaluation: Evaluation, padded: bool) -> tuple[str | None, int]:
    """The first variable that differs, if the model has directions for its variables."""
    from tracr.model.designed import DesignedModel  # it imports this module

    return _first_difference(model, evaluation, padded) if isinstance(model, DesignedModel) else (None, 0)


def _first_difference(model: DesignedModel, evaluation: Evaluation, padded: bool) -> tuple[str, int]:
    """The first variable, in order of computation, whose code in the residual stream is not that of its value."""
    codes = evaluation.batch.codes
    seen: dict[str, NDArray[Any]] = {}
    model.logits(ids_of(model, codes, padded), hook=seen.__setitem__)
    for location in locations(model.program, model.layout).values():
        variable, live = location.variable, location.slots >= 0
        assert variable.node is not None
        stream = seen["hook_embed"] + seen["hook_pos_embed"] if location.hook == "hook_embed" else seen[location.hook]
        for position, value in enumerate(evaluation.values(variable.node)[0]):
            held = model.basis.get(stream[0, position + 1], location.slots[live])
            wanted = variable.code(value)[live]
            usual = margin(wanted, ANSWER) if variable.numerical else HALF
            allowed = np.maximum(usual, variable.noise.error)
            if (np.abs(held - wanted) > allowed).any():
                return variable.label, position
    return "", 0
