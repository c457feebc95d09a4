"""Many projections measured together; on accelerators, products are computed with all digits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tracr
from tracr.compress.paper import study
from tracr.compress.projection import ProjectionSites, sites_of
from tracr.compress.task import Task, task_of

jax = pytest.importorskip("jax")
pytest.importorskip("optax")

from tracr.compress.measuring import Measuring  # noqa: E402
from tracr.compress.objective import Objective  # noqa: E402
from tracr.compress.polish import Polish  # noqa: E402
from tracr.compress.sgd import Recipe, RecipeTrainer, padded_starts  # noqa: E402

pytestmark = pytest.mark.slow


def products(jaxpr: Any) -> Iterator[Any]:
    """Every matrix product of a program, also in its inner programs."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            yield equation
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else [value]:
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    yield from products(inner)


def assert_precise(function: Any, *given: Any) -> None:
    """Every product of the traced function, and of its derivatives, asks for the highest precision."""
    found = list(products(jax.make_jaxpr(function)(*given).jaxpr))
    assert len(found) > 5
    highest = jax.lax.Precision.HIGHEST
    assert {equation.params["precision"] for equation in found} <= {highest, (highest, highest)}


def prepared(name: str) -> tuple[Task, ProjectionSites]:
    """A case study of the paper with a few inputs."""
    model, inputs = study(name)
    task = task_of(model, inputs[:12])
    return task, sites_of(task.network, "one")


@pytest.mark.parametrize("name", ["frac_prevs", "sort_unique"])
def test_training_and_measuring_use_all_digits(name: str) -> None:
    """A step of the recipe with its gradient, and the measurement of the runs."""
    objective = Objective(*prepared(name))
    trainer = RecipeTrainer(objective, Recipe(steps=2, chunk=2, batch=4))
    params = padded_starts(objective, [(6, 0), (4, 1)])
    assert_precise(lambda params: trainer._run(params, trainer._update.init(params), 0, 2), params)
    measuring = Measuring(study(name)[0], *prepared(name))
    with jax.enable_x64(True):
        assert_precise(measuring._measure, {"W": np.asarray(params["W"], dtype=np.float64)})


def test_second_order_steps_use_all_digits() -> None:
    """Levenberg-Marquardt steps and what they differentiate, also with softened attention."""
    objective = Objective(*prepared("frac_prevs"))
    params = jax.tree.map(lambda array: array[0], padded_starts(objective, [(6, 0)]))
    polish = Polish(objective, params)
    rows = polish.rows(jax.tree.map(lambda a: a[None], params))
    assert_precise(polish._iterate, rows, jax.numpy.ones(1), 0.0)
    assert_precise(polish._iterate_soft, rows, jax.numpy.ones(1), 0.0, jax.numpy.full(1, 0.5))


def test_the_check_finds_a_product_of_few_digits() -> None:
    """An ordinary product fails the check."""
    square = jax.numpy.eye(3)
    with pytest.raises(AssertionError):
        assert_precise(lambda a: a @ a @ a @ a @ a @ a @ a, square)


def test_many_projections_are_measured_like_one() -> None:
    """Losses, accuracy, cosines and causal slopes of several projections are those of their reports."""
    model, inputs = study("sort_unique")
    exact = tracr.compress(model, method="exact", inputs=inputs)
    some = [tracr.compress(model, exact.d_model, "pca", inputs=inputs), exact]
    task = task_of(model, inputs)
    measuring = Measuring(model, task, sites_of(task.network, "one"))
    matrices = np.stack([small.W[None] for small in some])
    slopes = measuring.slopes({"W": matrices})
    assert set(slopes) == {"tokens", "target_pos", "sort"}
    for number, (small, found) in enumerate(zip(some, measuring({"W": matrices}), strict=True)):
        report = small.report(inputs)
        assert found.output_loss == pytest.approx(report.output_loss)
        assert found.layer_loss == pytest.approx(report.layer_loss, abs=1e-12)
        assert found.accuracy == report.accuracy
        assert found.cosine == pytest.approx(report.mean_cosine)
        for swap in report.swaps:
            if swap.variable in slopes:
                assert slopes[swap.variable][number] == pytest.approx(swap.slope, abs=1e-6)
    assert [slopes[name][1] for name in slopes] == pytest.approx([1.0] * 3)
    assert min(slopes[name][0] for name in slopes) < 0.9
