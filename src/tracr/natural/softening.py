"""Softens a compiled model: the smallest gaps at which its answers stay right, and slopes in place of plateaus.

The model is compiled again from its tables with other weights (`ir/softness.py`): every head gets a gap of its own, and
every group of neurons with steps a slope. Components, labels and edges stay the same.

If all inputs can be enumerated, the search decides on them. It keeps a set of inputs, at first a few of every length,
and looks for the softest weights that are right on this set. Then it runs all inputs; those that are wrong join the
set, and the search is repeated. Otherwise the compiler's error bounds decide. They include the attention that leaks,
and prove plateaus only; therefore the model has one gap for all heads, and no slopes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.arguments import number, whole
from tracr.compiler.pipeline import compile_tabulated
from tracr.craft.heads import Head
from tracr.craft.numerics import GAP, TOO_ROUGH
from tracr.craft.variables import Variable
from tracr.errors import CompileError, InternalError, TracrError
from tracr.ir.circuit import Component
from tracr.ir.schedule import PlacedCircuit
from tracr.ir.softness import BOUND, ENUMERATED, Softness
from tracr.ir.switches import PassName
from tracr.model.compiled import CompiledModel
from tracr.model.designed import DesignedModel
from tracr.model.variants.variant_model import VariantModel
from tracr.model.verification import chosen_inputs
from tracr.natural.soft_errors import Expected, expected_of, measured_errors, unit_of, wrong_rows

__all__ = ["SoftnessReport", "soften", "softness"]

GAPS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 16.0, 24.0, 48.0, 96.0, GAP)
"""The gaps that are tried first, in this order; then finer ones, below the first that is right."""
LIKELY = 8.0  # a gap at which most slopes are possible
FINENESS = 0.25  # gaps below `COARSE` are found to this precision
COARSE = 16.0
SLOPES = tuple(2.0**-power for power in range(3, 10))
"""The slopes that are tried, the largest first; a slope of s takes 2s of the error, and at most half is for slopes."""
FIRST, ADDED = 32, 256  # inputs of each length in the first set; wrong inputs that join it after a round
SAMPLED = 2000  # inputs that are compared if the bound decides


@dataclass(frozen=True)
class SoftnessReport:
    """How soft a model is, and how far its labels are off; `str` is a table."""

    gaps: dict[str, float]
    """The gap of each head, by the variable that it writes first; without heads that select every key."""
    slopes: dict[str, float]
    """For each group of neurons with slopes: how far its steps reach beyond the values beside them."""
    shown: str
    """How the answers were shown to be right: on "all inputs", or by a "bound"."""
    errors: dict[str, float]
    """For each variable of the program with directions: how far a coordinate of its code is off at most."""
    inputs: int
    """The number of inputs on which `errors` was measured."""
    exhaustive: bool
    """Whether these are all inputs."""

    def __str__(self) -> str:
        scope = "all" if self.exhaustive else "a sample of"
        by = {ENUMERATED: "on all inputs", BOUND: "by a bound on the errors"}[self.shown]
        lines = [f"right {by}; errors of labels measured on {scope} {self.inputs:,} inputs"]
        lines += [f"  head {label}: gap {gap:g}" for label, gap in self.gaps.items()]
        lines += [f"  neurons {label}: slope {slope:g}" for label, slope in self.slopes.items()]
        lines += [f"  variable {label}: off by at most {error:.2g}" for label, error in self.errors.items()]
        return "\n".join(lines)


def soften(model: CompiledModel, *, error: float = 0.25, budget: int = 20_000) -> CompiledModel:
    """The model with soft attention, and with slopes in place of plateaus, so that gradients pass.

    The components, labels, nodes and edges are those of `model`; only weights change. Every head has the smallest gap
    at which the answers stay right, as far as the search finds. BOS gets no attention from a head that always selects a
    key. In other heads it is where its share is smallest. The steps of MLPs become ramps that are wider than the gaps
    between values, as far as `error` allows. `softness(model)` says what was chosen and what was shown.

    Args:
        model: a compiled model, not a variant.
        error: no coordinate of a one-hot code is off by more than this, and no number with listed values by more than
            this times the distance between its two nearest values; at most 0.4.
        budget: if there are more inputs than this, they are not enumerated: a bound decides, all heads have the same
            gap, and there are no slopes.

    >>> import tracr
    >>> from tracr.rasp import programs
    >>> model = tracr.compile(programs.make_hist(), vocab="ab", max_seq_len=4)
    >>> soft = soften(model)
    >>> soft("abab") == model("abab"), soft.ground_truth.edges() == model.ground_truth.edges()
    (True, True)
    >>> softness(soft).shown
    'all inputs'
    """
    _check(model)
    error = number("error", error, above=0)
    if error > 0.4:
        raise TracrError(f"error must be at most 0.4, not {error:g}", hint="at 0.5 a code is no longer that of a value")
    batches, total = chosen_inputs(model, whole("budget", budget, 1), 0)
    if total > budget:
        return _by_bound(model, error)
    return _Softest(model, expected_of(model.program, batches), error).found()


def softness(model: DesignedModel, budget: int = 20_000) -> SoftnessReport:
    """How soft a softened model is, and how far its labels are off: on all inputs, or on a sample of `budget`."""
    soft = model.options.soft if isinstance(model, DesignedModel) else None
    if soft is None:
        raise TracrError("the model is not softened", hint="use tracr.natural.soften(model)")
    batches, total = chosen_inputs(model, whole("budget", budget, 1), 0)
    inputs = expected_of(model.program, batches)
    heads = [part.label for part in model.circuit.components if isinstance(part, Head)]
    return SoftnessReport(
        dict.fromkeys(heads, soft.gap) if soft.bounded else dict(soft.gaps),
        dict(soft.slopes),
        soft.shown,
        measured_errors(model, inputs),
        sum(map(len, inputs)),
        total <= budget,
    )


def _check(model: object) -> None:
    """Refuse a model that cannot be softened."""
    if isinstance(model, VariantModel):
        raise TracrError("a softened model is compiled, and this model has other weights", hint="use model.plain")
    if not isinstance(model, CompiledModel):
        what = f"soften needs a compiled model, not a {type(model).__name__}"
        raise TracrError(what, hint="use tracr.compile(...)")
    if model.options.soft is not None or model.options.gap != GAP:
        what = (
            "the model is softened already" if model.options.soft else f"the model has a gap of {model.options.gap:g}"
        )
        raise TracrError(what, hint="soften a model with the usual gap")
    if not any(isinstance(part, Head) for part in model.circuit.components):
        raise TracrError("the model has no attention, and steps read attention only", hint="there is nothing to soften")


def compiled_with(model: CompiledModel, soft: Softness) -> CompiledModel:
    """The model compiled again from its tables, with this softness."""
    program = replace(model.program, options=replace(model.options, soft=soft))
    placement = model.schedule.placement
    solved = model.options.on(PassName.SOLVE)
    compilation = compile_tabulated(
        model.graph, program, (lambda circuit: PlacedCircuit(circuit, placement)) if solved else None
    )
    return CompiledModel(replace(compilation, expressions=model.expressions), model.source)


def _by_bound(model: CompiledModel, error: float) -> CompiledModel:
    """The smallest gap for which the compiler's error bounds prove the answers."""

    def proved(gap: float) -> CompiledModel | None:
        try:
            made = compiled_with(model, Softness(gap, shown=BOUND, error=error))
        except CompileError:
            return None
        allowed = min(error, TOO_ROUGH)
        return made if all(_bounded(made, variable, allowed) for variable in made.circuit.variables) else None

    made = proved(_smallest(lambda gap: proved(gap) is not None, GAP))
    if made is None:
        raise TracrError("no gap is proved to be right within this error", hint="use a larger error")
    inputs = expected_of(made.program, chosen_inputs(made, SAMPLED, 0)[0])
    if any(wrong_rows(made, one, error).any() for one in inputs):
        raise InternalError("a softened model is wrong although its error bounds hold")
    return made


def _bounded(model: CompiledModel, variable: Variable, error: float) -> bool:
    """Whether the bounds prove that a variable is off by at most `error`; intermediate numbers are proved elsewhere."""
    if variable.numerical and variable.scratch:
        return True
    return max(variable.noise.error, variable.noise.cold) <= error * unit_of(model.program, variable)


def _smallest(right: Callable[[float], bool], most: float) -> float:
    """The first of `GAPS` below `most` that is right, or `most`; then a finer one between it and the gap before it."""
    below, above = 0.0, most
    for gap in GAPS:
        if gap >= most:
            break
        if right(gap):
            above = gap
            break
        below = gap
    while above <= COARSE and above - below > FINENESS:
        middle = round((below + above) / 2 / FINENESS) * FINENESS
        if middle in (below, above):
            break
        below, above = (below, middle) if right(middle) else (middle, above)
    return above


class _Softest:
    """The softest weights that are right on all inputs."""

    def __init__(self, model: CompiledModel, inputs: list[Expected], error: float) -> None:
        if not inputs:
            raise TracrError("the program is defined on no input", hint="soften another program")
        self.model, self.inputs, self.error = model, inputs, error
        self.heads, self.neurons = _heads(model), _neurons(model)
        self.dimensions = _dimensions(model)
        self.slopes = [slope for slope in SLOPES if 4 * slope <= error]
        rng = np.random.default_rng(0)
        chosen = [one.codes[np.sort(rng.permutation(len(one))[:FIRST])] for one in inputs]
        self.tried = expected_of(model.program, chosen)

    def found(self) -> CompiledModel:
        """Search on the set, run all inputs, add the wrong ones to the set, and repeat until none is wrong."""
        while True:
            made = self._made(self._softest())
            wrong = self._wrong(made)
            if not wrong:
                return made
            self.tried += expected_of(self.model.program, wrong)

    def _made(self, soft: Softness) -> CompiledModel:
        return compiled_with(self.model, soft)

    def _wrong(self, made: CompiledModel) -> list[NDArray[Any]]:
        """Some of the inputs on which a model is not right."""
        found = []
        for one in self.inputs:
            rows = wrong_rows(made, one, self.error)
            if rows.any():
                found.append(one.codes[rows][: ADDED // len(self.inputs) + 1])
        return found

    def _right(self, soft: Softness) -> bool:
        """Whether a model is right on the set, and has the same dimensions (level 2 finds them in the weights)."""
        made = self._made(soft)
        return _dimensions(made) == self.dimensions and not any(
            wrong_rows(made, one, self.error).any() for one in reversed(self.tried)
        )

    def _softest(self) -> Softness:
        """One slope and one gap for all parts; then steeper slopes, and smaller gaps, part by part.

        At the end no single gap can be `FINENESS` smaller, also not one that was found before the others.
        """
        soft = self._together(self._that_may_slope())
        for label in self.neurons:
            soft = self._with_slope(soft, label)
        for labels in self.heads:
            soft = self._with_gap(soft, labels)
        return self._lowered(soft)

    def _of(self, gap: float, slope: float, neurons: Sequence[str]) -> Softness:
        gaps = tuple((label, gap) for labels in self.heads for label in labels)
        slopes = tuple((label, slope) for label in neurons) if slope else ()
        return Softness(GAP, gaps, slopes, ENUMERATED, self.error)

    def _that_may_slope(self) -> list[str]:
        """The groups of neurons that may have the smallest slope, if all others have plateaus."""

        def possible(label: str) -> bool:
            likely = sorted(GAPS, key=lambda gap: abs(gap - LIKELY))
            return any(self._right(self._of(gap, self.slopes[-1], [label])) for gap in likely)

        return [label for label in self.neurons if self.slopes and possible(label)]

    def _together(self, neurons: Sequence[str]) -> Softness:
        """The largest slope of these neurons for which there is a gap, and the smallest gap for it."""
        for slope in (*self.slopes, 0.0) if neurons else (0.0,):
            soft = self._least_gap(partial(self._of, slope=slope, neurons=neurons), GAP)
            if self._right(soft):
                return soft
        raise TracrError("the compiled model itself is not right within this error", hint="use a larger error")

    def _with_slope(self, soft: Softness, label: str) -> Softness:
        """The largest slope of one group of neurons."""
        now = soft.slope_of(label)
        for slope in self.slopes:
            if slope <= now:
                break
            steeper = replace(soft, slopes=_put(soft.slopes, [label], slope))
            if self._right(steeper):
                return steeper
        return soft

    def _with_gap(self, soft: Softness, labels: Sequence[str]) -> Softness:
        """The smallest gap of the heads with one pattern."""

        def with_gap(gap: float) -> Softness:
            return replace(soft, gaps=_put(soft.gaps, labels, gap))

        return self._least_gap(with_gap, soft.gap_of(labels[0]))

    def _lowered(self, soft: Softness) -> Softness:
        """Lower gaps by `FINENESS` as long as one can be, the others fixed; only those that are found so precisely."""
        lowered = True
        while lowered:
            lowered = False
            for labels in self.heads:
                while FINENESS < (gap := soft.gap_of(labels[0])) <= COARSE:
                    smaller = replace(soft, gaps=_put(soft.gaps, labels, gap - FINENESS))
                    if not self._right(smaller):
                        break
                    soft, lowered = smaller, True
        return soft

    def _least_gap(self, of: Callable[[float], Softness], most: float) -> Softness:
        """The softness of the smallest gap that is right; of `most` if no smaller one is."""
        return of(_smallest(lambda gap: self._right(of(gap)), most))


def _put(named: tuple[tuple[str, float], ...], labels: Sequence[str], value: float) -> tuple[tuple[str, float], ...]:
    return tuple((dict(named) | dict.fromkeys(labels, value)).items())


def _dimensions(model: CompiledModel) -> list[tuple[Any, ...]]:
    """The directions of all variables, and the shapes of the weights."""
    directions = [(one.label, one.slot, one.since, one.until) for one in model.layout.directions]
    return [*directions, *(array.shape for _, array in model.parameters.named())]


def _neurons(model: CompiledModel) -> list[str]:
    """The groups of neurons whose slope makes a difference, from the output backwards."""
    slopes = tuple((part.label, SLOPES[-1]) for part in model.circuit.components)
    changed = _changed(model, Softness(slopes=slopes))
    return [part.label for part in reversed(changed) if not isinstance(part, Head)]


def _heads(model: CompiledModel) -> list[list[str]]:
    """The heads whose gap makes a difference, from the output backwards; those with one pattern together.

    Heads with one pattern have the gap of the first of them, so the gap of another one changes nothing.
    """
    found = []
    for part in reversed(model.circuit.components):
        if isinstance(part, Head):
            changed = _changed(model, Softness(gaps=((part.label, GAP / 2),)))
            labels = [head.label for head in changed if isinstance(head, Head)]
            found += [labels] if labels else []
    return found


def _changed(model: CompiledModel, soft: Softness) -> list[Component]:
    """The components whose weights a softness changes; default logits, which depend on the gap, do not count."""
    usual = compiled_with(model, Softness()).circuit.components
    pairs = zip(compiled_with(model, soft).circuit.components, usual, strict=True)
    return [part for part, other in pairs if not _same_maps(part, other)]


def _same_maps(part: Component, other: Component) -> bool:
    """Whether the maps of two components have the same weights."""
    pairs = zip(part.maps, other.maps, strict=True)
    return all(
        np.array_equal(mine, theirs)
        for one, two in pairs
        for mine, theirs in zip(one.blocks.values(), two.blocks.values(), strict=True)
    )
