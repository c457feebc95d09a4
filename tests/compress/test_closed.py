"""Projections in closed form, what a compressed model is, and superposition: nothing here needs JAX."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tracr
from tests.agreement import compile_quietly
from tracr.compress import all_inputs, exact_dim
from tracr.compress.closed import exact_projection, unmet
from tracr.compress.compressing import measured
from tracr.compress.model import Training
from tracr.compress.network import network_of
from tracr.compress.paper import study
from tracr.compress.projection import SHARING, Projection, fold, sites_of
from tracr.compress.readings import readings
from tracr.compress.task import task_of
from tracr.ir.options import LEVELS
from tracr.ir.parameters import Parameters
from tracr.rasp import programs, rasp
from tracr.runtime.forward import forward

SOME = ("frac_prevs", "hist", "sort_unique", "reverse", "length", "count_a")


def compiled(name: str, **options: object) -> tracr.CompiledModel:
    example = programs.EXAMPLES[name]
    return compile_quietly(example.program, example.vocab[:3], 3, **options)


@pytest.mark.parametrize("name", [name for name in SOME if name in programs.EXAMPLES])
@pytest.mark.parametrize("level", LEVELS)
def test_the_exact_projection_loses_nothing(name: str, level: int) -> None:
    """Outputs on all inputs, of all lengths, padded and not, stay right; there are no more dimensions than before."""
    model = compiled(name, level=level)
    small = tracr.compress(model, method="exact")
    assert small.d_model == exact_dim(model) <= model.d_model
    assert small.verify()
    assert small.training.layer_loss < 1e-18
    assert small.parameters.W_E.shape[1] == small.d_model


def test_the_closed_form_is_orthonormal_and_can_be_padded() -> None:
    """Its columns are unit vectors; more dimensions than it needs stay empty."""
    model, inputs = study("frac_prevs")
    W = exact_projection(readings(model, inputs))
    assert W.shape == (14, 9)
    assert np.allclose(W.T @ W, np.eye(9))
    wider = tracr.compress(model, 12, "exact")
    assert wider.d_model == 12
    assert wider.verify()


@pytest.mark.parametrize("name", [name for name in SOME if name in programs.EXAMPLES])
def test_sub_layers_alone_need_fewer_dimensions(name: str) -> None:
    """Without the outputs' reads fewer columns do, and what is added where no sub-layer looks changes none of them."""
    model = compiled(name, level=0)
    task, readers = task_of(model), readings(model)
    W = exact_projection(readers, outputs=False)
    assert W.shape[1] <= exact_projection(readers).shape[1]
    noise = unmet(readers) @ np.random.default_rng(0).normal(size=W.shape)
    sites = sites_of(task.network, "one")
    for matrix in (W, W + noise):
        made = measured(model, task, Projection(matrix[None], sites), Training("none"))
        assert made.training.layer_loss < 1e-18


@pytest.mark.parametrize("sharing", SHARING)
@pytest.mark.parametrize("causal", [False, True])
def test_folding_is_reading_through_the_transpose_and_writing_through_W(sharing: str, causal: bool) -> None:
    """The d-dimensional model computes what the compiled one does with Wᵀ before reads and W after writes."""
    model = compiled("sort_unique", level=0, causal=causal)
    network = network_of(model.parameters, causal)
    sites = sites_of(network, sharing)
    rng = np.random.default_rng(0)
    projection = Projection(rng.normal(size=(sites.count, model.d_model, 7)) / 4, sites)
    ids, _, _ = model.vocabulary.encode(all_inputs(model, lengths=[3]))
    folded = fold(model.parameters, network, projection)
    got = forward(folded, ids, np, causal=causal)

    parts = {part.name: number for number, part in enumerate(network.parts)}
    stream = (model.parameters.W_E[ids] + model.parameters.W_pos[: ids.shape[1]]) @ projection.write(0)
    for number, layer in enumerate(model.parameters.layers):
        for kind, hook in (("attn", "hook_attn_out"), ("mlp", "hook_mlp_out")):
            part = parts.get(f"blocks.{number}.{kind}")
            if part is None:
                continue
            seen: dict[str, np.ndarray] = {}
            read = stream @ projection.read(part).T
            one = Parameters(
                np.zeros_like(model.parameters.W_E),
                np.zeros_like(model.parameters.W_pos),
                (layer,),
                model.parameters.W_U,
            )
            place = "blocks.0.hook_resid_pre" if kind == "attn" else "blocks.0.hook_resid_mid"

            def replace(name: str, tensor: np.ndarray, seen=seen, read=read, place=place):  # type: ignore[no-untyped-def]
                seen[name] = read if name == place else tensor
                return seen[name]

            forward(one, ids, np, causal=causal, hook=replace)
            stream = stream + seen[f"blocks.0.{hook}"] @ projection.write(part + 1)
    wanted = stream @ projection.read(len(network.parts)).T @ model.parameters.W_U
    assert np.allclose(got, wanted, atol=1e-9)


def test_pca_keeps_what_varies_not_what_matters() -> None:
    """The paper's baseline at d = 8 keeps tokens nobody needs and loses the output."""
    model, inputs = study("frac_prevs")
    small = tracr.compress(model, 8, "pca", inputs=inputs)
    assert "frac_prevs" in small.dropped
    assert "tokens:a" in small.kept
    assert small.report().accuracy < 0.6
    assert np.allclose(small.W.T @ small.W, np.eye(8))


def test_features_and_interference() -> None:
    """Every feature has its direction; W Wᵀ and cosines are what they say; kept and dropped are all."""
    model, _ = study("frac_prevs")
    small = tracr.compress(model, method="exact")
    assert list(small.features) == model.residual.labels
    assert np.allclose(small.gram, small.W @ small.W.T)
    assert np.allclose(np.diag(small.interference)[np.linalg.norm(small.W, axis=1) > 1e-9], 1)
    assert sorted(small.kept + small.dropped) == sorted(model.residual.labels)
    assert small.dropped == ["tokens:pad"]
    assert "tokens:a" in tracr.compress(model, 12, "pca").kept
    assert all(a in small.kept and b in small.kept for a, b, _ in small.sharing)


def test_a_compressed_model_runs_like_a_compiled_one() -> None:
    """Single inputs, batches of mixed lengths, padding, activations; what cannot be done is said."""
    model, _ = study("frac_prevs")
    small = tracr.compress(model, method="exact")
    assert isinstance(small, tracr.CompressedModel)
    assert not isinstance(small, tracr.CompiledModel)
    assert small("xacx") == model("xacx")
    assert small([["x", "a"], ["x"]]) == model([["x", "a"], ["x"]])
    assert small(["x", "a", "pad", "pad"]) == model(["x", "a", "pad", "pad"])
    assert small.run("xac")["blocks.0.hook_resid_post"].shape == (1, 4, 9)
    with pytest.raises(tracr.TracrError, match="share dimensions and cannot be set"):
        small.run("xac", set={"is_x": [1, 1, 1]})
    with pytest.raises(tracr.InputError, match="one length"):
        small.run([["x", "a"], ["x"]])


def test_reports_tell_whether_variables_survive() -> None:
    """Nothing lost: every needed variable is read out, and swapping it does what the program says. PCA: not so."""
    model, inputs = study("sort_unique")
    whole = tracr.compress(model, method="exact", inputs=inputs).report(inputs)
    assert whole.accuracy == whole.exact_inputs == 1.0
    assert min(whole.cosine.values()) > 1 - 1e-9
    assert {swap.variable for swap in whole.swaps} >= {"tokens", "indices", "target_pos", "sort"}
    assert all(swap.agreement == 1.0 for swap in whole.swaps)
    assert all(readout.accuracy == 1.0 for readout in whole.readouts if readout.variable == "target_pos")
    poor = tracr.compress(model, 8, "pca", inputs=inputs).report(inputs)
    assert poor.accuracy < 1.0
    assert min(swap.agreement for swap in poor.swaps) < 1.0
    assert "accuracy 100.00% of positions" in str(whole)


def test_saved_and_loaded(tmp_path: Path) -> None:
    """A folder brings back weights, projection and training; one that was changed is refused."""
    model, _ = study("frac_prevs")
    small = tracr.compress(model, method="exact")
    small.save(tmp_path / "small")
    back = tracr.load(tmp_path / "small")
    assert isinstance(back, tracr.CompressedModel)
    assert np.array_equal(back.W, small.W)
    assert back.training == small.training
    for (name, mine), (_, saved) in zip(small.parameters.named(), back.parameters.named(), strict=True):
        assert np.array_equal(mine, saved), name
    back.save(tmp_path / "small")
    for name in ("compression.json", "compressed.safetensors"):
        path = tmp_path / "small" / name
        whole = path.read_bytes()
        path.write_bytes(whole[:-40] + b"x" * 40)
        with pytest.raises(tracr.FormatError):
            tracr.load(tmp_path / "small")
        path.write_bytes(whole)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("keep")
    with pytest.raises(tracr.FormatError, match="something other than"):
        small.save(tmp_path / "other")


@pytest.mark.parametrize("extra", [0, 1, 3])
def test_superposed_models_compute_their_program(extra: int) -> None:
    """In any dimension from the exact one on, with every feature somewhere, and differently for another seed."""
    model, _ = study("frac_prevs")
    dim = exact_dim(model) + extra
    small = tracr.superpose(model, dim, seed=3)
    assert small.d_model == dim
    assert small.verify()
    assert np.array_equal(small.W, tracr.superpose(model, dim, seed=3).W)
    assert not np.allclose(small.W, tracr.superpose(model, dim, seed=4).W)
    if extra:
        assert np.linalg.norm(small.W, axis=1).min() > 0.01


def test_fewer_dimensions_only_without_exactness() -> None:
    """Below the exact dimension: an error, or random directions on request."""
    model, _ = study("frac_prevs")
    with pytest.raises(tracr.TracrError, match="alone need 7"):
        tracr.superpose(model, 5)
    loose = tracr.superpose(model, 5, exact=False)
    assert np.allclose(np.linalg.norm(loose.W, axis=1), 1)
    assert loose.report().accuracy < 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dim": 0}, "from 1 to 14"),
        ({"dim": 15}, "from 1 to 14"),
        ({"dim": 2.5}, "from 1 to 14"),
        ({"dim": None}, "from 1 to 14"),
        ({"method": "magic"}, "methods are fast"),
        ({"sharing": "none"}, "there are one"),
        ({"seed": -1}, "seed"),
        ({"inputs": []}, "no inputs"),
    ],
)
def test_wrong_arguments_are_told(change: dict[str, object], message: str) -> None:
    """Whatever is wrong is said before any work."""
    model, _ = study("frac_prevs")
    with pytest.raises(tracr.TracrError, match=message):
        tracr.compress(model, **{"dim": 8, "method": "pca", **change})  # type: ignore[arg-type]


def test_only_compiled_models_with_outputs() -> None:
    """A compressed model is not compressed again; inputs on which a program raises give nothing to compare."""
    model, _ = study("frac_prevs")
    with pytest.raises(tracr.TracrError, match="only a compiled model"):
        tracr.compress(tracr.compress(model, method="exact"), 4, "pca")  # type: ignore[arg-type]
    hist = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ))
    risky = compile_quietly(rasp.SequenceMap(lambda count, token: 1 // (2 - count), hist, rasp.tokens), "ab", 2)
    with pytest.raises(tracr.InputError, match="no output"):
        tracr.compress(risky, 1, "pca", inputs=[list("aa"), list("bb")])


def test_figures_are_returned() -> None:
    """Every figure is a matplotlib Figure with its labels."""
    pytest.importorskip("matplotlib")
    from tracr.compress import figures

    model, inputs = study("sort_unique")
    small = tracr.compress(model, 12, "pca", inputs=inputs)
    heat = figures.gram_heatmaps({"PCA": small})
    assert [tick.get_text() for tick in heat.axes[0].get_yticklabels()] == model.residual.labels
    maps = figures.layer_output_maps(small, inputs)
    assert [axes.get_title() for axes in maps.axes[:3]] == ["compiled", "compressed", "squared difference"]
    curves = figures.training_curves({"d = 4": ([1, 2], [[0.1, 0.2], [0.05, 0.1]])})
    assert curves.axes[0].get_yscale() == "log"
    assert figures.loss_by_dim({4: [0.1, 0.2], 6: [0.01, 0.0]}, floor=0.001).axes[0].get_xlabel() == "dimensions d"
    assert figures.overview(small).axes
