"""Maps in closed form, controls, and the division of inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tracr import zoo

pytest.importorskip("torch")

from tracr import graft
from tracr.graft.controls import told_by
from tracr.graft.data import exchanged_inputs
from tracr.graft.fitting import fit_linear, fit_read, gram_of
from tracr.graft.observed import coded

TWINS = Path(__file__).parents[2] / "docs" / "natural" / "twins"


def test_the_two_sides_of_a_split_share_no_input() -> None:
    """Equal inputs are on one side; no input is lost."""
    model = zoo.load("hist", vocab="abc", max_seq_len=4)
    inputs = graft.inputs_of(model, 60)
    data = graft.data_of_program(model, [*inputs, *inputs[:20]])
    fit, test = data.split(0.5, 1)
    assert not set(fit.inputs) & set(test.inputs)
    assert sorted([*fit.inputs, *test.inputs]) == sorted(data.inputs)
    for one in (fit, test):
        for row in range(len(one)):
            assert (
                one.ids[row].tolist()[: len(one.inputs[row]) + 1] == model.encode([list(one.inputs[row])])[0].tolist()
            )
    order = exchanged_inputs(test, np.random.default_rng(0))
    assert sorted(order.tolist()) == list(range(len(test)))
    assert all(len(test.inputs[a]) == len(test.inputs[b]) for a, b in enumerate(order))


def test_reading_in_closed_form_finds_ordered_values() -> None:
    """Values in a row along one direction are read, which a regression on one-hot codes cannot do."""
    rng = np.random.default_rng(0)
    classes = rng.integers(6, size=400)
    rows = rng.normal(size=(400, 8)) * 0.02
    rows[:, 0] += classes
    gram, halves = gram_of(rows), (gram_of(rows[:200]), gram_of(rows[200:]))
    found, halved = fit_read(gram, halves, classes, np.eye(6))
    assert halved > 0.99
    assert (found.classes(rows) == classes).mean() > 0.99
    noise = rng.normal(size=(400, 8))
    _, chance = fit_read(gram_of(noise), (gram_of(noise[:200]), gram_of(noise[200:])), classes, np.eye(6))
    assert chance < 0.4


def test_a_linear_control_has_its_rank() -> None:
    """Reduced-rank regression is the nearest map of its rank: at full rank it is exact."""
    rng = np.random.default_rng(1)
    rows, weight = rng.normal(size=(300, 5)), rng.normal(size=(5, 4))
    for rank in (1, 2, 4):
        into, out, bias = fit_linear(rows, rows @ weight + 3.0, rank)
        assert np.linalg.matrix_rank(into @ out) == rank
        error = np.abs(rows @ into @ out + bias - rows @ weight - 3.0).max()
        assert (error < 1e-3) == (rank == 4)


def test_a_linear_control_leaves_out_directions_without_variance() -> None:
    """Asked for more than the rank of the data it reads no rounding errors."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 6))
    into, out, bias = fit_linear(rows, rows + 1.0, 5)
    assert into.shape[1] == len(out) == 2
    np.testing.assert_allclose((rows @ into).std(axis=0), 1.0)
    np.testing.assert_allclose(rows @ into @ out + bias, rows + 1.0, atol=1e-3)


def test_refining_does_not_weaken_the_linear_control() -> None:
    """A head that averages is linear: the refined affine map loses less than that in closed form, which stays."""
    twin: Any = tracr.load(TWINS / "mean_so_far")
    inputs = graft.inputs_of(twin.teacher, 300)
    part = graft.Part(twin.teacher, "blocks.0.attn.0")
    report = graft.replace(twin.to_torch(), "blocks.0.attn.0", part, inputs, refine=60).report()
    closed, refined = (one for one in report.controls if one.kind == "linear")
    assert refined.name == f"{closed.name}, refined"
    assert refined.loss < closed.loss


def test_told_by() -> None:
    """A finer variable tells a coarser one; the coarser one guesses."""
    real = np.ones((1, 4), dtype=bool)
    fine, coarse = (coded(np.array([values], dtype=float)[..., None], real) for values in ([0, 1, 2, 3], [0, 0, 1, 1]))
    assert told_by(fine, coarse) == 1.0
    assert told_by(coarse, fine) == 0.5
