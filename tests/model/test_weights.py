"""Weights that were edited or trained elsewhere come back under the same labels, and are marked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tests.agreement import compile_quietly, load_compiled
from tracr.adapters.lens_weights import lens_weights
from tracr.rasp import programs, rasp
from tracr.runtime.uniform import uniform

MODEL = tracr.compile(programs.make_hist(), vocab="abc", max_seq_len=4)


def weights(dtype: Any = np.float64) -> dict[str, Any]:
    return {name: array.copy() for name, array in MODEL.cast(dtype).named()}


def edited() -> tracr.DesignedModel:
    """A model whose unembedding confuses 1 and 2."""
    changed = weights()
    changed["unembed.W_U"][:, [0, 1]] = changed["unembed.W_U"][:, [1, 0]]
    return MODEL.with_weights(changed)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_compilers_own_weights_stay_its_own(dtype: Any) -> None:
    """As they are, or rounded to float32: the float64 weights are kept."""
    same = MODEL.with_weights(weights(dtype))
    assert same.own_weights
    assert all((a == b).all() for (_, a), (_, b) in zip(same.parameters.named(), MODEL.parameters.named(), strict=True))


@pytest.mark.parametrize("name", programs.EXAMPLES)
def test_filled_up_layers_are_cut_to_size(name: str) -> None:
    """Weights in TransformerLens's format are recognised as the compiler's own, scaled or not."""
    example = programs.EXAMPLES[name]
    model = compile_quietly(example.program, example.vocab, example.max_seq_len)
    d_head = uniform(model.parameters).layers[0].b_Q.shape[1] if model.n_layers else 1
    assert model.with_weights(dict(uniform(model.parameters).named())).own_weights
    assert model.with_weights(lens_weights(model), attn_scale=d_head**0.5).own_weights


def test_edited_weights_run_and_are_marked() -> None:
    """The model computes what the weights say, and every report says that they are not the compiler's."""
    model = edited()
    assert not model.own_weights
    assert model("aab") == [1, 1, 2]
    assert repr(model).endswith("level 1, changed weights)")
    found = model.verify()
    assert not found
    assert not found.own_weights
    assert "not the compiler's own" in str(found)
    assert "not the compiler's own" not in str(MODEL.verify())


def test_edited_weights_keep_their_labels() -> None:
    """Labels and ground truth are what the compiler designed, also where every weight is touched."""
    noisy = {name: array + 1e-6 for name, array in weights().items()}
    model = MODEL.with_weights(noisy)
    assert model.residual.labels == MODEL.residual.labels
    assert model.ground_truth.to_json() == MODEL.ground_truth.to_json()
    assert model.ground_truth.model is model
    assert model.verify()
    assert str(model.verify()).endswith("with weights that are not the compiler's own: all agree")
    with pytest.raises(tracr.TracrError, match="not the compiler's own"):
        model.ground_truth.minimal(data=["ab", "ba"])


def test_edited_weights_are_saved_as_such(tmp_path: Path) -> None:
    """Saved and loaded they are still edited; `recompile` gives the compiler's own."""
    edited().save(tmp_path / "model")
    loaded = load_compiled(tmp_path / "model")
    assert not loaded.own_weights
    assert loaded("aab") == [1, 1, 2]
    assert loaded.residual.labels == MODEL.residual.labels
    again = load_compiled(tmp_path / "model", recompile=True)
    assert again.own_weights
    assert again("aab") == [2, 2, 1]


def test_further_heads_and_neurons_are_kept(tmp_path: Path) -> None:
    """A layer filled up and then trained there too keeps all it has, also on disk."""
    model = tracr.compile(programs.make_frac_prevs(rasp.tokens == "a"), vocab="abc", max_seq_len=4)
    filled = {name: array.copy() for name, array in uniform(model.parameters).named()}
    assert filled["blocks.0.attn.W_V"].shape != model.parameters.layers[0].W_V.shape
    filled["blocks.0.attn.W_V"][0, 0, 0] = 1e-3
    grown = model.with_weights(filled)
    assert grown.parameters.layers[0].W_V.shape == filled["blocks.0.attn.W_V"].shape
    grown.save(tmp_path / "grown")
    assert load_compiled(tmp_path / "grown").parameters.layers[0].W_V[0, 0, 0] == 1e-3


def test_what_is_no_state_dict_of_the_model_is_refused() -> None:
    """Other names, shapes that do not fit, and weights that are not finite."""
    with pytest.raises(tracr.FormatError, match=r"lack or should not have embed\.W_E"):
        MODEL.with_weights({name: array for name, array in weights().items() if name != "embed.W_E"})
    with pytest.raises(tracr.FormatError, match=r"unembed\.b_U"):
        MODEL.with_weights({**weights(), "unembed.b_U": np.ones(4)})
    with pytest.raises(tracr.FormatError, match="another model"):
        MODEL.with_weights({**weights(), "embed.W_E": np.zeros((3, 3))})
    with pytest.raises(tracr.FormatError, match="b_in of block 0 has the shape"):
        MODEL.with_weights({**weights(), "blocks.0.mlp.b_in": np.zeros(1)})
    with pytest.raises(tracr.FormatError, match="not finite"):
        MODEL.with_weights({**weights(), "embed.W_E": np.full_like(weights()["embed.W_E"], np.nan)})


def test_ids_and_values() -> None:
    """`encode` adds BOS and PAD, `values` leaves them out."""
    ids = MODEL.encode([list("aab"), list("ab")])
    assert ids.tolist() == [[3, 0, 0, 1], [3, 0, 1, 4]]
    assert MODEL.values(MODEL.logits(ids), ids) == [[2, 2, 1], [1, 1]]
    assert MODEL.encode("ab").shape == (1, 3)
