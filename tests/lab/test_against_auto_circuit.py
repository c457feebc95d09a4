"""EAP, ACDC and passes with masks against auto-circuit, score by score, in an environment of its own.

`make slow` builds the environment. Its TransformerLens gets the weights of the subjects: a compiled model and a twin.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.compat.test_auto_circuit import PYTHON
from tests.natural.twins import untrained
from tracr import lab
from tracr.ground_truth.scores import EdgeKey
from tracr.lab.methods import MethodData, eap
from tracr.lab.methods.acdc import removal_thresholds
from tracr.lab.methods.passes import both_passes
from tracr.natural.twin_model import TwinModel

pytestmark = pytest.mark.slow
MACHINE = Path(__file__).with_name("auto_circuit_machine.py")
EXPONENTS, BASES = [-4, -3, -2, -1], [1, 3]


def in_transformer_lens(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Configuration and state dict."""
    if isinstance(model, TwinModel):
        pytest.importorskip("torch", exc_type=ImportError)
        pytest.importorskip("transformer_lens", exc_type=ImportError)
        from tracr.natural.in_transformer_lens import scaled, sizes

        return sizes(model), scaled(model)
    from tracr.adapters.lens_weights import lens_config, lens_weights

    return lens_config(model), lens_weights(model)


def their_scores(model: Any, data: MethodData, answers: Any, folder: Path) -> dict[str, Any]:
    """What auto-circuit says."""
    if not PYTHON.exists():
        pytest.skip("no environment with auto-circuit: `make slow` builds one")
    config, weights = in_transformer_lens(model)
    clean, corrupted, _ = data.ids(model.vocabulary)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "thresholds.json").write_text(json.dumps({"exponents": EXPONENTS, "bases": BASES}), encoding="utf-8")
    tensors: dict[str, Any] = {f"weight:{name}": np.asarray(array) for name, array in weights.items()}
    assert data.weights is not None
    np.savez(folder / "tensors.npz", clean=clean, corrupted=corrupted, metric=data.weights, answers=answers, **tensors)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [PYTHON, MACHINE, folder], capture_output=True, encoding="utf-8", cwd=folder, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def keyed(scores: dict[str, float]) -> dict[EdgeKey, float]:
    pairs = {name: name.split("->") for name in scores}
    return {(pairs[name][0], pairs[name][1]): score for name, score in scores.items()}


@pytest.mark.parametrize("kind", ["compiled", "twin"])
def test_scores_are_those_of_auto_circuit(kind: str, tmp_path: Path) -> None:
    """EAP; ACDC with its order and distance; the gradients of masks at 1/2, which subnetwork probing descends."""
    jax = pytest.importorskip("jax", exc_type=ImportError)
    from tracr.lab.methods.edge_network import in_jax, masked_logits

    case = lab.case("sort_freq" if kind == "compiled" else "hist")
    model = case.model if kind == "compiled" else untrained(case.model)
    pairs = case.pairs(8, changing=1)
    rng = np.random.default_rng(2)
    data = MethodData.of(pairs, rng.normal(size=(8, case.length + 1, model.parameters.W_U.shape[1])))
    both = both_passes(model, data)
    assert data.weights is not None
    answers = both.clean.logits + rng.normal(size=both.clean.logits.shape)
    told = their_scores(model, data, answers, tmp_path)
    scale = float(np.abs(both.clean.logits).max())
    assert np.abs(both.clean.logits - np.array(told["logits"])).max() < 1e-4 * scale
    candidates = both.patching.candidates

    theirs = {key: abs(score) for key, score in keyed(told["eap"]).items() if key in candidates}
    assert eap(model, data) == pytest.approx(theirs, rel=2e-3, abs=1e-4)
    assert max(theirs.values()) > 0.01

    def distance(logits: Any) -> Any:
        return ((logits - both.clean.logits).astype(np.float64) ** 2).mean(axis=(-1, -2, -3))

    order = [key for key in keyed(dict.fromkeys(told["order"], 0.0)) if key in candidates]
    thresholds = [base * 10.0**exponent for base in BASES for exponent in EXPONENTS]
    ours = removal_thresholds(both, order, distance, thresholds)
    removed = keyed(told["acdc"])
    never = 2 * max(thresholds)
    assert ours == pytest.approx({key: removed.get(key, never) for key in candidates}, rel=1e-5)
    assert len(set(ours.values())) >= 2

    own = in_jax(model, data)
    half = np.full((len(pairs), len(own.writers), len(own.readers)), 0.5)

    def loss(ablated: Any) -> Any:
        logits = masked_logits(own.network, own.weights, own.written[0], own.instead, ablated)
        return ((logits - answers) ** 2).mean()

    found = own.by_edge(jax.jit(jax.grad(loss))(half).sum(axis=0))
    masks = {key: score for key, score in keyed(told["masks"]).items() if key in candidates}
    assert found == pytest.approx(masks, rel=5e-3, abs=1e-4)
