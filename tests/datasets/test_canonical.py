"""The canonical order of weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tracr
from tracr.datasets import Controls, canonical
from tracr.datasets.canonical import WeightOrder
from tracr.datasets.realisations import measured
from tracr.ir.parameters import LayerParameters, Parameters
from tracr.model.compiling import compile_model
from tracr.rasp import rasp


def shuffled(parameters: Parameters, rng: np.random.Generator) -> Parameters:
    """The same model with everything permuted that can be."""

    def inside(layer: LayerParameters) -> NDArray[Any]:
        return rng.permuted(np.broadcast_to(np.arange(layer.b_Q.shape[1]), layer.b_Q.shape), axis=1)

    layers = parameters.layers
    return WeightOrder(
        rng.permutation(parameters.W_E.shape[1]),
        tuple(rng.permutation(len(layer.b_Q)) for layer in layers),
        tuple(inside(layer) for layer in layers),
        tuple(inside(layer) for layer in layers),
        tuple(rng.permutation(len(layer.b_in)) for layer in layers),
    ).applied(parameters)


def same(fst: Parameters, snd: Parameters) -> bool:
    return all(
        one.tobytes() == other.tobytes() and one.shape == other.shape
        for (_, one), (_, other) in zip(fst.named(), snd.named(), strict=True)
    )


def check(parameters: Parameters, seed: int) -> Parameters:
    """The canonical order of a model, after three permutations gave the same."""
    rng = np.random.default_rng(seed)
    found, order = canonical(parameters)
    assert same(found, order.applied(parameters.map(lambda array: array.astype(np.float32) + np.float32(0))))
    for _ in range(3):
        assert same(found, canonical(shuffled(parameters, rng))[0])
    return found


@pytest.mark.filterwarnings("ignore")
def test_permutations_are_undone() -> None:
    """Random programs at every level, as compiled and rotated; and the reordered model computes the program."""
    for number in range(36):
        controls = Controls(max_ops=7, composite=True) if number % 2 else Controls(vocab=(1, 2, "a"), max_seq_len=4)
        model = compile_model({"output": controls.program((9, number))}, controls.options(number % 3))
        found = check(model.cast(np.float32), number)
        assert measured(model, found, 200).wrong == 0
        if number % 4 == 0:
            check(model.rotated(number).cast(np.float32), number)


def test_the_order_does_not_depend_on_names() -> None:
    """Renamed variables, and operands in another order, give the same arrays."""
    same_token = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)
    before = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LT)
    hist, count = rasp.SelectorWidth(same_token), rasp.SelectorWidth(before)
    one = tracr.compile([hist, count], "abc", 4)
    other = tracr.compile({"x": count.named("z"), "y": hist.named("a")}, "abc", 4)
    assert one.residual.labels != other.residual.labels
    reordered = other.parameters
    columns = np.r_[one.outputs[0].start : one.outputs[1].stop]
    swapped = np.r_[other.outputs[1].start : other.outputs[1].stop, other.outputs[0].start : other.outputs[0].stop]
    assert len(columns) == len(swapped)
    reordered = Parameters(reordered.W_E, reordered.W_pos, reordered.layers, reordered.W_U[:, swapped])
    assert same(canonical(one.parameters)[0], canonical(reordered)[0])


def twins(copies: int) -> Parameters:
    """A layer whose heads and neurons are equal, on a residual stream whose dimensions are exchangeable in pairs."""
    width = 2 * copies
    ring = np.roll(np.eye(width), 1, axis=1) + np.roll(np.eye(width), -1, axis=1)
    head = np.zeros((copies, width, 2))
    for number in range(copies):
        head[number, 2 * number : 2 * number + 2] = np.eye(2)
    flat, inside = np.zeros(width), np.zeros((copies, 2))
    layer = LayerParameters(
        head, inside, head, inside, head, inside, head.transpose(0, 2, 1), flat, ring, flat, ring, flat
    )
    return Parameters(np.zeros((3, width)), np.zeros((3, width)), (layer,), np.zeros((width, 2)))


@pytest.mark.parametrize("copies", [1, 2, 3, 5])
def test_symmetric_models_have_one_order(copies: int) -> None:
    """Refinement alone tells nothing apart here: every unit looks like every other."""
    check(twins(copies), copies)


def test_different_models_stay_different() -> None:
    """One weight changed, or the logits in another order, is seen."""
    model = tracr.compile(rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)), "abc", 3)
    parameters = model.cast(np.float32)
    found = canonical(parameters)[0]
    W_E = parameters.W_E.copy()
    W_E[0, int(np.flatnonzero(W_E[0])[0])] *= 2
    assert not same(found, canonical(Parameters(W_E, parameters.W_pos, parameters.layers, parameters.W_U))[0])
    logits = Parameters(parameters.W_E, parameters.W_pos, parameters.layers, parameters.W_U[:, ::-1])
    assert not same(found, canonical(logits)[0])


def test_dimensions_come_in_the_order_of_their_writers() -> None:
    """Tokens first, then positions, then what the layers write."""
    model = tracr.compile(rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)), "abc", 3)
    found = canonical(model.parameters)[0]
    by_tokens, by_positions = (found.W_E != 0).any(axis=0), (found.W_pos != 0).any(axis=0)
    first = np.where(by_tokens, 0, np.where(by_positions, 1, 2))
    assert (np.diff(first) >= 0).all()
