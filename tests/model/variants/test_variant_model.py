"""A variant has a compiled model; it is not one."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tests.model.variants.making import VARIANTS
from tracr import natural
from tracr.model.variants.variant_model import VariantModel
from tracr.rasp import programs

MODEL = tracr.compile(programs.make_hist(), "abc", 4)
CHANGED = {
    **VARIANTS,
    "other weights": lambda model: model.with_weights({name: array * 1.5 for name, array in model.parameters.named()}),
    "labelled": lambda model: model.rotated(1).labelled,
    "copied": lambda model: copy.deepcopy(model.rotated(1)),
}
"""Everything that makes a model with other weights."""


@pytest.mark.parametrize("kind", CHANGED)
def test_a_variant_has_a_compiled_model(kind: str, tmp_path: Path) -> None:
    """Its program, labels and ground truth are the compiled model's; its weights are its own."""
    before = MODEL.parameters.map(np.copy)
    variant: Any = CHANGED[kind](MODEL)
    assert isinstance(variant, VariantModel)
    assert not isinstance(variant, tracr.CompiledModel)
    assert variant.plain is MODEL
    assert variant.program is MODEL.program
    assert variant.residual.labels == MODEL.residual.labels
    assert variant.parameters is not MODEL.parameters
    assert repr(variant).startswith("VariantModel(")
    for (name, array), (_, same) in zip(MODEL.parameters.named(), before.named(), strict=True):
        assert np.array_equal(array, same), name
    variant.save(tmp_path / "saved")
    kept = variant.variant.steps or not variant.own_weights  # otherwise it is a compiled model again
    for again in (tracr.load(tmp_path / "saved"), pickle.loads(pickle.dumps(variant))):
        assert isinstance(again, VariantModel if kept else tracr.CompiledModel)
        assert isinstance(again.plain, tracr.CompiledModel)
        assert again.own_weights == variant.own_weights
        assert again.variant.steps == variant.variant.steps


@pytest.mark.parametrize("kind", CHANGED)
def test_a_variant_offers_what_a_compiled_model_offers(kind: str) -> None:
    """The same names; code that takes a model takes both."""
    variant = CHANGED[kind](MODEL)
    names = {name for name in dir(MODEL) if not name.startswith("_")}
    assert names <= set(dir(variant))
    assert isinstance(variant, tracr.DesignedModel)
    assert isinstance(MODEL, tracr.DesignedModel)


@pytest.mark.parametrize("kind", CHANGED)
@pytest.mark.parametrize(
    "asked",
    [
        lambda model: natural.soften(model),
        lambda model: natural.backup(model, "hist"),
        lambda model: natural.decoys(model, programs.make_length()),
        lambda model: natural.read_back(model, dict(model.parameters.named())),
    ],
)
def test_what_is_compiled_anew_is_refused(kind: str, asked: Any) -> None:
    """With the model to use instead."""
    with pytest.raises(tracr.TracrError, match=r"model\.plain"):
        asked(CHANGED[kind](MODEL))


def test_no_code_asks_whether_a_model_is_a_variant_by_a_missing_record() -> None:
    """Every model has a record of its changes; the compiled model's has no steps."""
    assert MODEL.variant.steps == ()
    asks = re.compile(r"\.variant is (not )?None|if \S*\.variant\b(?!\.)")
    sources = Path(tracr.__file__).parent.rglob("*.py")
    assert [path.name for path in sources if asks.search(path.read_text(encoding="utf-8"))] == []
