"""Methods of the track "features" that are trained, in JAX and scikit-learn: they find more than random atoms do."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tracr import lab
from tracr.lab.features import FEATURE_METHODS, Examination
from tracr.lab.features.coder import KINDS
from tracr.lab.methods import run_method

pytestmark = pytest.mark.slow

CASE = "features:features=24:tokens=128:density=0.02"
SIZES = (2_000, 500)
EXAMPLES = Path(__file__).parents[2] / "examples"


def examined(ratio: float = 3.0, case: str = CASE) -> Examination:
    """A small subject in superposition."""
    return Examination(lab.subject(case, "superposed", ratio=ratio), 8, sizes=SIZES)


def found_by(name: str, one: Examination, **settings: Any) -> Any:
    """The scores of a method."""
    return one.score(run_method(FEATURE_METHODS[name].with_settings(**settings), one.subject, one.training).scores)


@pytest.mark.parametrize(("name", "settings"), [("sae-l1", {}), ("sae-topk", {"k": 3}), ("sae-jumprelu", {})])
def test_sparse_autoencoders_find_features(name: str, settings: dict[str, Any]) -> None:
    """Most of them without superposition; with it, more than random atoms; more steps than these would find more."""
    pytest.importorskip("optax")
    one = examined()
    null: Any = one.null(48)
    scores, control = (found_by(name, side, steps=1_500, **settings) for side in (one, one.control()))
    assert control.f1 > 0.5
    assert scores.f1 > null.f1 + 0.2
    assert scores.firing > null.firing + 0.2
    assert scores.causal > null.causal + 0.1
    assert scores.variance > 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_coders_trained_together_are_those_trained_alone(kind: str) -> None:
    """Subjects and sparsities do not see each other; and codes in numpy are those that were trained."""
    pytest.importorskip("optax")
    import jax.numpy as jnp

    from tracr.lab.features.coder_training import CoderRecipe, _encoded, train_coders

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2, 300, 6)) * np.array([1.0, 5.0])[:, None, None]
    recipe = CoderRecipe(kind, 9, steps=40, batch=64)
    sparsities = [1.0, 2.0] if kind == "topk" else [0.1, 0.3]
    together = train_coders(recipe, rows, rows, sparsities, [3, 4])
    for subject, sparsity in ((0, 0), (1, 1)):
        own_rows = rows[subject : subject + 1]
        alone = train_coders(recipe, own_rows, own_rows, [sparsities[sparsity]], [3 + subject])[0][0]
        both = together[subject][sparsity]
        for name, array in alone.weights.items():
            assert np.allclose(array, both.weights[name], atol=1e-3), name
        own = {name: jnp.asarray(array) for name, array in both.weights.items()}
        own["log_threshold"] = jnp.log(own["threshold"])
        x = jnp.asarray(rows[subject], jnp.float32)
        codes, _ = _encoded(kind, 2, own, x, jnp.asarray(both.sparsity))
        assert np.allclose(codes, both.codes(rows[subject]), atol=1e-3)
        assert np.allclose(np.linalg.norm(both.weights["W_dec"], axis=1), 1, atol=1e-4)


@pytest.mark.parametrize("k", [1, 2, 5, 7])
def test_the_kth_largest_code(k: int) -> None:
    """As a sorted row has it; 0 if fewer codes are positive."""
    from tracr.lab.features.coder_training import _kth_largest

    codes = np.maximum(np.random.default_rng(k).normal(size=(50, 9)), 0).astype(np.float32)
    expected = np.sort(codes, axis=1)[:, -k]
    np.testing.assert_array_equal(np.asarray(_kth_largest(codes, np.float32(k), 7))[:, 0], expected)


def test_thresholds_have_the_slope_of_a_wide_step() -> None:
    """As the formulas of the paper say, at points inside and outside of the band."""
    jax = pytest.importorskip("jax")
    from tracr.lab.features.coder_training import BAND, _above, _jump

    z, threshold = np.float32(0.6), np.float32(0.5)
    for point, near in ((z, 1 / BAND), (np.float32(0.9), 0.0)):
        point_, edge = np.array([[point]]), np.array([threshold])
        assert jax.grad(lambda t, x: _above(x, t).sum())(edge, point_)[0] == pytest.approx(-near)
        assert jax.grad(lambda t, x: _jump(x, t).sum())(edge, point_)[0] == pytest.approx(-0.5 * near)
        assert jax.grad(lambda x, t: _jump(x, t).sum())(point_, edge)[0, 0] == 1
        assert jax.grad(lambda x, t: _above(x, t).sum())(point_, edge)[0, 0] == 0


def test_transcoders_find_what_neurons_write() -> None:
    """At the MLP, where they read its input; elsewhere they are refused."""
    pytest.importorskip("optax")
    one = examined(case=f"{CASE}:place=mlp:relation=new")
    scores = found_by("transcoder", one, steps=1_500)
    assert scores.f1 > one.null(24).f1 + 0.2
    with pytest.raises(tracr.TracrError, match="not written by an MLP"):
        found_by("transcoder", examined())


@pytest.mark.parametrize("name", ["ica", "nmf", "dictionary-learning"])
def test_decompositions_of_scikit_learn(name: str) -> None:
    """Dictionary learning finds features in superposition; ICA finds them where they are as many as dimensions."""
    pytest.importorskip("sklearn")
    one = examined()
    scores = found_by(name, one)
    assert scores.atoms > 0
    if name == "dictionary-learning":
        assert scores.f1 > one.null(48).f1 + 0.2
    if name == "ica":
        assert scores.recall <= one.training.activations.shape[1] / 48
        assert found_by(name, one.control()).f1 > 0.5


def test_an_autoencoder_written_by_itself() -> None:
    """That of the example, which shares no code with ours: nearly all features, and random atoms none."""
    mine = runpy.run_path(str(EXAMPLES / "my_sae.py"))["my_sae"]
    one = examined(case="features:features=32:tokens=256:density=0.02", ratio=4)
    scores: Any = one.score(mine(one.subject, one.training))
    assert scores.f1 > 0.6
    assert scores.causal > 0.5
    assert one.null(scores.atoms).f1 < 0.05
