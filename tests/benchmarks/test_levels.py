"""At the sizes that the benchmarks measure, a higher level is never larger."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.agreement import compile_quietly
from tracr.ir.options import LEVELS
from tracr.model.compiled import CompiledModel
from tracr.rasp import programs, rasp

SLOW = {("nary_sequencemap", 50), ("induction", 50)}


def size(model: CompiledModel) -> tuple[int, int, int, int]:
    """Layers, parameters, dimensions and heads."""
    heads = sum(len(layer.W_Q) for layer in model.parameters.layers)
    return model.n_layers, model.n_parameters, model.d_model, heads


@pytest.mark.parametrize(
    ("name", "most"),
    [
        pytest.param(name, most, marks=[pytest.mark.slow] if (name, most) in SLOW else [])
        for name in programs.EXAMPLES
        for most in (10, 20, 50)
    ],
)
def test_no_level_is_larger_than_the_one_below(name: str, most: int, cases: ModuleType) -> None:
    """Level 1 in layers and parameters, level 2 also in dimensions and heads."""
    case = cases.Case(name, most, most)
    zero, one, two = (
        size(compile_quietly(case.build(programs, rasp), case.vocab, case.length, level=level)) for level in LEVELS
    )
    assert all(own <= other for own, other in zip(one[:2], zero[:2], strict=True)), (zero, one)
    assert all(own <= other for own, other in zip(two, one, strict=True)), (one, two)
