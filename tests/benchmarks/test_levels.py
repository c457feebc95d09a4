"""At the sizes that the benchmarks measure, a higher level is never larger."""

from __future__ import annotations

import math
from types import ModuleType

import pytest

import tracr
from tests.agreement import compile_quietly
from tracr.ir.options import LEVELS
from tracr.model.compiled import CompiledModel
from tracr.rasp import programs, rasp

pytestmark = pytest.mark.repository

TOO_LARGE = {("nary_sequencemap", 50): (0,), ("induction", 50): LEVELS}
"""The levels at which a program is refused, because its tables or its model would be too large."""


def size(model: CompiledModel) -> tuple[int, int, int, int]:
    """Layers, parameters, dimensions and heads."""
    heads = sum(len(layer.W_Q) for layer in model.parameters.layers)
    return model.n_layers, model.n_parameters, model.d_model, heads


@pytest.mark.parametrize("most", [10, 20, 50])
@pytest.mark.parametrize("name", programs.EXAMPLES)
def test_no_level_is_larger_than_the_one_below(name: str, most: int, cases: ModuleType) -> None:
    """Level 1 in layers and parameters, level 2 also in dimensions and heads."""
    case = cases.Case(name, most, most)
    sizes: list[tuple[float, ...]] = []
    for level in LEVELS:
        if level in TOO_LARGE.get((name, most), ()):
            with pytest.raises(tracr.LimitError):
                compile_quietly(case.build(programs, rasp), case.vocab, case.length, level=level)
            sizes.append((math.inf,) * 4)
        else:
            sizes.append(size(compile_quietly(case.build(programs, rasp), case.vocab, case.length, level=level)))
    zero, one, two = sizes
    assert all(own <= other for own, other in zip(one[:2], zero[:2], strict=True)), sizes
    assert all(own <= other for own, other in zip(two, one, strict=True)), sizes
