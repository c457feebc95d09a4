"""Variants keep their variables: each is read off the stream at every place where it lives, by code of its own.

Here a stream is read with the pseudo-inverse of `directions`, and a variable is decoded from what `residual.at` says.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracr
from tests.agreement import compile_quietly, same
from tests.strategies import Case, cases
from tests.tally import compile_case, inputs_for, mostly_compared
from tests.tiers import usual
from tracr.craft.variables import Variable
from tracr.ir.options import LEVELS
from tracr.model.residual import Dimension, time_of
from tracr.model.variants.readback import first_problem
from tracr.rasp import programs, rasp
from tracr.rasp.generate import random_program
from tracr.rasp.programs import EXAMPLES
from tracr.runtime.table_interpreter import evaluate_batch
from tracr.values import Value

Make = Callable[[tracr.CompiledModel], tracr.VariantModel]
VARIANTS: dict[str, Make] = {
    "rotated": lambda model: model.rotated(1),
    "rotated twice": lambda model: model.rotated(1).rotated(2),
    "layer_norm": lambda model: model.with_layer_norm(),
    "rotated, layer_norm": lambda model: model.rotated(2).with_layer_norm(),
    "layer_norm, rotated": lambda model: model.with_layer_norm().rotated(3),
    "noise": lambda model: model.with_noise(seed=4),
    "rotated, noise": lambda model: model.rotated(5).with_noise(seed=5),
    "layer_norm, noise": lambda model: model.with_layer_norm().with_noise(seed=6),
    "rotated, layer_norm, noise": lambda model: model.rotated(7).with_layer_norm().with_noise(seed=7),
}


def wrong_readings(model: tracr.DesignedModel, inputs: list[list[Value]]) -> list[str]:
    """Where a variable read off a ragged batch is not what the program computes."""
    evaluation = evaluate_batch(model.program, inputs)
    truth = {node.label: evaluation.values(node.id) for node in model.program.sops.values()}
    run = model.run(inputs)
    read = np.linalg.pinv(model.directions)
    codes = {one.label: one for one in model.layout.slots if one.compact}
    found = []
    for number in range(model.n_layers):
        for part in ("pre", "mid", "post"):
            hook = f"blocks.{number}.hook_resid_{part}"
            coordinates = run[hook].astype(np.float64) @ read
            variables: dict[str, list[Dimension]] = {}
            for dimension in model.residual.at(hook):
                if dimension is not None and dimension.variable in truth:
                    variables.setdefault(dimension.variable, []).append(dimension)
            for label, dimensions in variables.items():
                for row, values in enumerate(truth[label]):
                    for position, value in enumerate(values):
                        held = coordinates[row, position + 1]
                        if evaluation.errors[row]:
                            continue
                        right = (
                            shows_code(held, model, codes[label], value, time_of(hook))
                            if label in codes
                            else shows(held, dimensions, value)
                        )
                        if not right:
                            found.append(f"{label} at {hook}: {inputs[row]}, {position}: {value!r}")
    return found


def shows_code(held: np.ndarray, model: tracr.DesignedModel, variable: Variable, value: Value, time: int) -> bool:
    """Whether coordinates show the bits or other features of a value."""
    own = [one for one in model.layout.directions if one.variable is variable and one.held(time)]
    wanted = variable.code(value)[[one.place for one in own]]
    return bool(np.abs(held[[one.slot for one in own]] - wanted).max(initial=0.0) < 0.5)


def shows(held: np.ndarray, dimensions: list[Dimension], value: Value) -> bool:
    """Whether coordinates show a value: a number its size, a code 1 (rounded) at its own label, 0 elsewhere."""
    for dimension in dimensions:
        here = float(held[dimension.index])
        if dimension.is_number:
            if not same(here, 0.0 if value is None or isinstance(value, str) else float(value), 1e-3):  # type: ignore[arg-type]
                return False
        elif abs(here - (type(dimension.value) is type(value) and dimension.value == value)) > 0.5:
            return False
    return True


def check(case: Case, level: int, variant: str) -> None:
    """Outputs are verified, padded and not, and every variable is read back at every place."""
    model = compile_case(case, level=level)
    other = VARIANTS[variant](model)
    inputs = inputs_for(model, case, 8)
    assert other.verify(100).counterexample is None
    assert wrong_readings(other, inputs) == []


@pytest.mark.slow
@mostly_compared(0.9)
@settings(max_examples=usual(150, long=750), deadline=None)
@given(case=cases(composite=True), level=st.sampled_from(LEVELS), variant=st.sampled_from(list(VARIANTS)))
def test_random_variants_compute_and_hold_the_program(case: Case, level: int, variant: str) -> None:
    """Any program at any level, in any variant."""
    check(case, level, variant)


@pytest.mark.parametrize("variant", ["noise", "rotated, noise", "rotated, layer_norm, noise"])
def test_noise_leaves_variables(variant: str) -> None:
    """What is tried keeps outputs and variables; ten thousand times as much does not, though outputs may survive."""
    example = EXAMPLES["hist2"]
    model = tracr.compile(example.program, example.vocab, example.max_seq_len)
    noisy = VARIANTS[variant](model)
    assert wrong_readings(noisy, [list("abcab"), list("ab"), list("c")]) == []
    assert first_problem(noisy) == ""
    assert first_problem(model.with_noise(1e4 * noisy.variant.noise, seed=4)) != ""


def test_noise_that_only_variables_notice() -> None:
    """An output that no variable reaches says nothing about them: noise is as weak as they need."""
    shown = rasp.Map(lambda _: True, programs.make_hist2()).named("shown")
    model = tracr.compile(shown, "abc", 5, level=0)
    noisy = model.with_noise()
    assert model.with_noise(2 * noisy.variant.noise).verify(2_000)
    assert first_problem(model.with_noise(2 * noisy.variant.noise)).count("cannot be read back") == 1


def test_a_stream_that_cannot_be_read_is_named() -> None:
    """The variable, the place and the input."""
    model = tracr.compile(programs.make_hist(), "ab", 3)
    problem = first_problem(model.with_noise(0.3, seed=1))
    assert wrong_readings(model.with_noise(0.3, seed=1), [list("aba"), list("b")])
    assert problem
    with pytest.raises(tracr.TracrError, match="would make the model wrong"):
        model.with_noise(0.3, seed=1).rotated(0)


# BOS


def test_constants_cancel_at_bos() -> None:
    """A folded sum of 1/10, 9/10 and -1 is 0 at BOS, which a head that adds up weighs a million times."""
    vocab = (0, "a")
    program = random_program(5555, max_ops=8, vocab=vocab, max_seq_len=5, causal=True)
    model = compile_quietly(program, vocab, 5, level=2, causal=True)
    inputs = [["a", "a", 0, "a", 0], ["a"], [0, "a"]]
    for each in (model, model.with_layer_norm(), model.rotated(0).with_layer_norm()):
        for got in (each(inputs), each.run(inputs).decoded):
            assert [round(number, 4) for number in got[0]] == [-0.9, -0.9, -0.7333, -1.025, -1.0667]
            assert same(got[1][0], -0.9, 1e-4)


@mostly_compared()
@settings(max_examples=60, deadline=None)
@given(case=cases(composite=True), level=st.sampled_from(LEVELS))
def test_values_that_are_0_at_bos_are_0(case: Case, level: int) -> None:
    """In float32 as in float64: no value at BOS is a rounding error."""
    model = compile_case(case, level=level)
    ids = model.vocabulary.encode(inputs_for(model, case, 6)[:1])[0]
    exact: dict[str, np.ndarray] = {}
    rounded: dict[str, np.ndarray] = {}
    model.logits(ids, np.float64, hook=exact.__setitem__)
    model.logits(ids, np.float32, hook=rounded.__setitem__)
    for hook, values in exact.items():
        if hook.endswith("hook_v"):
            zero = np.abs(values[:, 0]) < 1e-6
            assert not rounded[hook][:, 0][zero].any(), hook
