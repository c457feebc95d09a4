"""Every kind of model: each public attribute and method works, or is refused with a sentence; and none tells a lie.

The names are read off the classes, so a new method is tested on every kind of model.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tracr.errors import Unavailable
from tracr.model.compiled import CompiledModel
from tracr.model.designed import DesignedModel
from tracr.model.methods import METHODS
from tracr.model.running import RunnableModel
from tracr.rasp import programs

PLAIN = [tracr.compile(programs.make_hist(), "abc", 4, level=level) for level in (0, 1, 2)]
EXPORTS = ("to_torch", "to_jax", "to_transformer_lens", "to_onnx")


def edited(model: DesignedModel) -> DesignedModel:
    """The model with weights that are not the compiler's."""
    return model.with_weights({name: 1.001 * array for name, array in model.parameters.named()})


def reloaded(make: Callable[[], RunnableModel]) -> Callable[[Path], RunnableModel]:
    """The model, saved and loaded."""

    def load(folder: Path) -> RunnableModel:
        make().save(folder / "model")  # type: ignore[attr-defined]
        return tracr.load(folder / "model")  # type: ignore[return-value]

    return load


MAKERS: dict[str, Callable[[], RunnableModel]] = {
    **{f"level {level}": lambda level=level: PLAIN[level] for level in (0, 1, 2)},  # type: ignore[misc]
    "rotated": lambda: PLAIN[1].rotated(1),
    "noisy": lambda: PLAIN[1].with_noise(1e-6),
    "too noisy": lambda: PLAIN[1].with_noise(1.0),
    "with layer norms": lambda: PLAIN[2].with_layer_norm(),
    "all three": lambda: PLAIN[0].with_layer_norm().rotated(1).with_noise(),
    "with other weights": lambda: edited(PLAIN[1]),
    "rotated, with other weights": lambda: edited(PLAIN[1].rotated(1)),
    "labelled": lambda: PLAIN[1].rotated(1).with_noise(1e-6).labelled,
    "plain": lambda: edited(PLAIN[1].rotated(1)).plain,
    "copied": lambda: copy.deepcopy(PLAIN[1]),
    "compressed": lambda: tracr.compress(PLAIN[0], method="exact"),
    "compressed too much": lambda: tracr.compress(PLAIN[0], 4, "pca"),
    "compressed by layer": lambda: tracr.compress(PLAIN[0], 9, "pca", sharing="layer"),
    "superposed": lambda: tracr.superpose(PLAIN[1], PLAIN[1].d_model - 1, exact=False),
}
KINDS: dict[str, Callable[[Path], RunnableModel]] = {
    **{name: lambda _, make=make: make() for name, make in MAKERS.items()},  # type: ignore[misc]
    **{
        f"{name}, loaded": reloaded(MAKERS[name])
        for name in ("level 2", "all three", "rotated, with other weights", "compressed")
    },
}


@pytest.fixture(params=KINDS)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> RunnableModel:
    return KINDS[request.param](tmp_path)


def arguments(model: RunnableModel, folder: Path) -> dict[str, tuple[Any, ...]]:
    """What a method is called with, if it needs something."""
    ids = model.encode("abca")
    logits = model.logits(ids)
    stream = model.run("abca")["blocks.0.hook_resid_post"]
    return {
        "__call__": ("abca",),
        "cast": ("float64",),
        "check_format": ("bfloat16",),
        "codes": (ids,),
        "coordinates": (stream,),
        "decode": (logits, [4], [4]),
        "decode_unrounded": (logits, [4], [4]),
        "encode": ("abca",),
        "explore": ("abca",),
        "figure": ("stream", "abca"),
        "forward": (model.parameters, ids),
        "logits": (ids,),
        "normalised": (stream,),
        "run": ("abca",),
        "setting": ("abca", {}),
        "interpret": ("abca",),
        "read": (np.zeros(model.d_model), "hist", "blocks.0.hook_resid_post"),
        "save": (folder / "saved",),
        "save_pretrained": (folder / "checkpoint",),
        "to_onnx": (folder / "model.onnx",),
        "values": (logits, ids),
        "with_weights": (dict(model.parameters.named()),),
    }


def public(model: RunnableModel) -> list[str]:
    """The names of a model and of compiled ones, and what notebooks and Python call."""
    names = {*dir(CompiledModel), *dir(type(model)), *(field.name for field in fields(CompiledModel))}
    return sorted(name for name in names if not name.startswith("_") or name in ("__call__", "_repr_html_", *METHODS))


def works(model: RunnableModel, name: str, given: tuple[Any, ...]) -> str:
    """ "works", "absent" or "refused"; anything but a `TracrError` is raised."""
    try:
        found = getattr(model, name)
        if inspect.ismethod(found):
            found(*given)
    except tracr.TracrError:
        return "refused"
    except AttributeError:
        assert name.startswith("_")
        return "absent"
    return "works"


def test_everything_works_or_is_refused_with_a_sentence(model: RunnableModel, tmp_path: Path) -> None:
    """No numpy error, whatever is asked of a model; the compiler's own models can do everything."""
    given = arguments(model, tmp_path)
    found = {name: works(model, name, given.get(name, ())) for name in public(model) if name not in EXPORTS}
    assert all(found[name] == "works" for name in ("__call__", "run", "logits", "verify", "save", "parameters"))
    if isinstance(model, CompiledModel):
        assert set(found.values()) == {"works"}


@pytest.mark.slow
def test_exports_work_or_are_refused_with_a_sentence(model: RunnableModel, tmp_path: Path) -> None:
    """The same for other frameworks; a library that is not installed is a refusal too."""
    given = arguments(model, tmp_path)
    for name in EXPORTS:
        assert works(model, name, given.get(name, ())) != "absent"


def test_own_weights_are_those_of_the_compilation(model: RunnableModel) -> None:
    """Own weights, and no variant: those of the compilation. A compressed model never has them."""
    assert model.verify().own_weights == model.own_weights
    if not isinstance(model, DesignedModel):
        assert not model.own_weights
        return
    if model.own_weights and not model.variant.steps:
        for (name, one), (_, other) in zip(model.parameters.named(), model.plain.parameters.named(), strict=True):
            assert np.allclose(one, other, rtol=0, atol=1e-12), name
    assert isinstance(model.plain, CompiledModel)
    assert model.plain.own_weights
    assert model.plain.variant.steps == ()
    assert model.plain.verify()


def test_directions_are_those_of_the_labels(model: Any) -> None:
    """A direction of the stream per label, and what is read along them is what `coordinates` says."""
    compressed = isinstance(model, tracr.CompressedModel)
    if compressed and model.projection.sites.count > 1 and len(set(model.projection.sites.writes)) > 1:
        with pytest.raises(tracr.TracrError, match="several projections"):
            _ = model.directions
        return
    labels = model.labels if compressed else model.residual.labels
    assert model.directions.shape == (len(labels), model.d_model) == model.read_directions.T.shape
    again = model.directions @ model.read_directions
    assert np.allclose(again, model.gram if compressed else np.eye(len(labels)))
    stream = model.run("abca")["blocks.0.hook_resid_post"]
    assert np.allclose(model.coordinates(stream), stream @ model.read_directions, atol=1e-4)
    with pytest.raises(tracr.InputError, match="residual stream"):
        model.coordinates(stream[..., :-1])


def test_a_compressed_model_has_a_compiled_one_and_is_none() -> None:
    """14 dimensions to 9: what it cannot do is absent for Python, and the error names what to use."""
    model = PLAIN[0]
    small = tracr.compress(model, method="exact")
    assert small.compiled is model
    assert not isinstance(small, CompiledModel)
    assert not small.own_weights
    assert small.directions.shape == (model.d_model, small.d_model)
    for name in ("rotated", "with_noise", "with_layer_norm", "ground_truth", "explore", "figure", "save_pretrained"):
        assert not hasattr(small, name)
        with pytest.raises(Unavailable, match=rf"a compressed model has no {name}(.|\n)*hint: .*model\.(compiled|par)"):
            getattr(small, name)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = small.nonsense  # type: ignore[attr-defined]


def test_a_wrong_compressed_model_says_where_it_is_wrong() -> None:
    """It has no directions for its variables, so the counterexample names none; a run shows no labelled stream."""
    small = tracr.compress(PLAIN[0], 4, "pca")
    found = small.verify()
    assert not found
    assert found.counterexample is not None
    assert found.counterexample.variable is None
    assert "not the compiler's own" in str(found)
    assert "residual stream" not in str(found)
    assert "first wrong variable" not in found._repr_html_()
    assert "activations" in small.run("ab")._repr_html_()


@pytest.mark.parametrize("change", [lambda model: model.rotated(1), lambda model: model.with_layer_norm()])
def test_only_models_with_a_dimension_per_label_are_compressed(
    change: Callable[[CompiledModel], DesignedModel],
) -> None:
    """The labels of a variant are directions: `features` would be named after the wrong dimensions."""
    variant = change(PLAIN[0])
    for compress in (tracr.compress, tracr.superpose):
        with pytest.raises(tracr.TracrError, match=r"dimension per label(.|\n)*model\.labelled"):
            compress(variant, 9)
    with pytest.raises(tracr.TracrError, match="dimension per label"):
        tracr.compress.exact_dim(variant)  # type: ignore[attr-defined]
    assert tracr.compress(variant.labelled, method="exact").verify()


def test_methods_of_the_table_are_known_to_editors() -> None:
    """Signatures and docstrings are those of the class, not of the call through the table."""
    assert str(inspect.signature(PLAIN[0].rotated)) == "(seed: 'int' = 0) -> 'VariantModel'"
    assert "random orthogonal basis" in (inspect.getdoc(PLAIN[0].rotated) or "")
    for name in METHODS:
        if "." not in name and not name.startswith("_"):
            assert inspect.getdoc(inspect.getattr_static(CompiledModel, name))
