"""The smallest change that does harm: weights are moved in a direction until the first input is wrong, and no further.

Random mutants are mostly far too wrong or not wrong at all; these are as close to right as a wrong model can be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tracr
from tests.tiers import slow, usual
from tracr.certificate.trials.execution import ORDERS
from tracr.certificate.trials.mutants import SavedParts
from tracr.certificate.trials.trial import EveryInput, check_parts, parts_of, wrong_inputs

Direction = Mapping[str, NDArray[np.float64]]
FAR = 1e4


def direction(weights: Mapping[str, NDArray[Any]], rng: np.random.Generator) -> Direction:
    """One number; a row, an array or all weights, relative to their sizes; or a row of an embedding."""
    names = sorted(name for name, array in weights.items() if array.size)
    name = names[int(rng.integers(len(names)))]
    array = weights[name].astype(np.float64)
    found = np.zeros_like(array)
    kind = int(rng.integers(5))
    if kind == 0:
        found.reshape(-1)[rng.integers(array.size)] = rng.choice([-1, 1])
    elif kind == 1:
        axis = int(rng.integers(array.ndim))
        place = int(rng.integers(array.shape[axis]))
        np.moveaxis(found, axis, 0)[place] = np.moveaxis(array, axis, 0)[place] * rng.choice([-1, 1])
    elif kind == 2:
        found = array * rng.choice([-1, 1])
    elif kind == 3:
        return {one: weights[one] * rng.choice([-1, 1], weights[one].shape) for one in names}
    else:
        name = ("embed.W_E", "pos_embed.W_pos")[int(rng.integers(2))]
        found = np.zeros_like(weights[name], dtype=np.float64)
        found[rng.integers(len(found))] = rng.normal(size=found.shape[-1])
    return {name: found}


def moved(parts: SavedParts, way: Direction, far: float) -> SavedParts:
    """The model with its weights so far in a direction."""
    changed = {name: (parts.weights[name] + far * step).astype(np.float32) for name, step in way.items()}
    return replace(parts, weights={**parts.weights, **changed})


def smallest_harm(parts: SavedParts, inputs: EveryInput, way: Direction) -> tuple[float, float] | None:
    """How far is right and how far is wrong, within a few percent; `None` if nothing does harm, or the least does."""

    def wrong(far: float) -> bool:
        return wrong_inputs(moved(parts, way, far), inputs, ("blas",)) > 0

    right, harm = FAR, FAR
    if not wrong(harm):
        return None
    while wrong(right):
        right, harm = right / 10, right
        if right < 1e-9:
            return None
    for _ in range(6):
        middle = (right * harm) ** 0.5
        right, harm = (right, middle) if wrong(middle) else (middle, harm)
    return right, harm


@pytest.mark.parametrize("number", [0, 1, *slow(range(2, 12))])
def test_the_smallest_harm_is_rejected(number: int, tmp_path: Path) -> None:
    """Random programs, plain, rotated or with layer norms. Some of what is less is accepted, and right."""
    causal = number % 4 == 3
    program = tracr.random_program([77, number], max_seq_len=3, max_ops=5, causal=causal)
    model: Any = tracr.compile(program, "abc", 3, level=number % 3, causal=causal)
    parts = parts_of((model, model.rotated(seed=number), model, model.with_layer_norm())[number % 4])
    inputs, rng = EveryInput(parts), np.random.default_rng([78, number])
    assert check_parts(parts, tmp_path).accepted
    harmful = accepted = 0
    for _ in range(usual(24, long=200)):
        way = direction(parts.weights, rng)
        ends = smallest_harm(parts, inputs, way)
        if ends is None:
            continue
        right, harm = ends
        harmful += 1
        assert not check_parts(moved(parts, way, harm), tmp_path).accepted, (way, harm)
        for share in (0.97, 0.5):
            near = moved(parts, way, share * right)
            if check_parts(near, tmp_path).accepted:
                accepted += 1
                assert wrong_inputs(near, inputs, tuple(ORDERS)) == 0, (way, share * right)
    assert harmful >= 3
    assert accepted >= 1
