"""Learned models without training: edges by construction, directions, files, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import tracr
from tests.natural.learned_models import unlearned
from tests.natural.twins import students
from tests.strategies import SEEDS
from tracr.errors import FormatError, PrecisionError, TracrError, Unavailable
from tracr.natural.learned.directions import EXACT_READ, read_error
from tracr.natural.learned.model import LearnedModel
from tracr.natural.sites import EMBED, UNEMBED
from tracr.rasp import programs, rasp
from tracr.rasp.generate import random_program
from tracr.runtime.forward import FINE, forward

STUDENTS = students()
STUDENTS["several groups"] = tracr.compile(programs.make_shuffle_dyck(["()"]), "()", 3)
STUDENTS["level 0"] = tracr.compile(programs.make_hist2(), "ab", 3, level=0)


def writers(learned: LearnedModel) -> dict[str, Any]:
    """For each writer a matrix whose rows span everything that it can write."""
    weights = learned.weights
    found = {EMBED: np.concatenate([weights.W_E, weights.W_pos])}
    for number, layer in enumerate(weights.layers):
        for head, matrix in enumerate(layer.W_O):
            found[f"blocks.{number}.attn.{head}"] = matrix
        for name, (start, stop) in learned.neurons.items():
            if name.startswith(f"blocks.{number}."):
                found[name] = layer.W_out[start:stop]
    return found


def readers(learned: LearnedModel) -> dict[str, tuple[str, Any, str, Any]]:
    """For each reader the hook of its input with a slice, and the hook of what it computes from it, with a slice."""
    found: dict[str, tuple[str, Any, str, Any]] = {}
    for number, layer in enumerate(learned.weights.layers):
        block = f"blocks.{number}"
        for head in range(len(layer.W_Q)):
            for part in "qkv":
                here = np.s_[:, :, head]
                found[f"{block}.attn.{head}.{part}"] = (
                    f"{block}.hook_{part}_input",
                    here,
                    f"{block}.attn.hook_{part}",
                    here,
                )
        for name, span in learned.neurons.items():
            if name.startswith(f"{block}."):
                found[name] = f"{block}.hook_mlp_in", np.s_[:], f"{block}.mlp.hook_pre", np.s_[:, :, slice(*span)]
    last = f"blocks.{learned.n_layers - 1}.hook_resid_post"
    return found | {UNEMBED: (last, np.s_[:], "logits", np.s_[:])}


def time_of(name: str) -> float:
    """The place of a component in the pass."""
    if name in (EMBED, UNEMBED):
        return -1 if name == EMBED else np.inf
    _, layer, kind, *_ = name.split(".")
    return 2 * int(layer) + (kind == "mlp")


def seen_after(learned: LearnedModel, reader: tuple[str, Any, str, Any], added: Any) -> Any:
    """What a reader computes if a vector is added to its input only."""
    hook, where, result, part = reader
    kept: dict[str, Any] = {}

    def see(name: str, tensor: Any) -> Any:
        if name == result:
            kept[name] = tensor[part]
        if name != hook:
            return None
        tensor = np.array(tensor)
        tensor[where] += added
        return tensor

    ids = learned.encode([list(learned.options.vocab)[:2], list(learned.options.vocab)[:1]])
    with np.errstate(over="ignore"):
        forward(learned.parameters, ids, np, causal=learned.options.causal, hook=see, fine=FINE, activation=np.tanh)
    return kept[result]


def check_edges(learned: LearnedModel, seed: int = 0) -> int:
    """No reader sees a writer without an edge to it; every reader sees its writers. The number of absent pairs."""
    rng = np.random.default_rng(seed)
    wired = set()
    for edge in learned.ground_truth.edges():
        source = EMBED if edge.source in ("embed", "pos_embed") else edge.source
        wired.add((source, edge.target if edge.input == "in" else f"{edge.target}.{edge.input}"))
    absent = 0
    for reader, place in readers(learned).items():
        plain = seen_after(learned, place, 0.0)
        for writer, rows in writers(learned).items():
            if time_of(writer) >= time_of(reader):
                continue
            changed = seen_after(learned, place, (rng.normal(0, 3, len(rows)) @ rows).astype(np.float32))
            assert np.array_equal(plain, changed) == ((writer, reader) not in wired), (writer, reader)
            absent += (writer, reader) not in wired
    return absent


@pytest.mark.parametrize("name", STUDENTS)
def test_edges_hold_by_construction(name: str) -> None:
    """Adding anything that a writer can write changes a reader's result if and only if there is an edge, to the bit."""
    assert check_edges(unlearned(STUDENTS[name])) > 0


@settings(max_examples=15, deadline=None)
@given(seed=SEEDS)
def test_edges_hold_by_construction_for_random_programs(seed: int) -> None:
    """The same for random programs."""
    program = random_program(seed, max_ops=4, vocab=("a", "b"), max_seq_len=3)
    model = tracr.compile(program, "ab", 3)
    if model.n_layers:
        check_edges(unlearned(model), seed)


def check_superposed_edges(learned: LearnedModel, seed: int = 0) -> None:
    """A reader sees what a writer writes if and only if there is an edge, up to the rounding of float32."""
    plain = replace(learned, turned=None, superposed=False)
    rng = np.random.default_rng(seed)
    own, axes = readers(learned), readers(plain)
    for writer, rows in writers(plain).items():
        for reader in own:
            if time_of(writer) < time_of(reader):
                added = (rng.normal(size=len(rows)) @ rows).astype(np.float32)
                added *= 3 / max(1e-9, float(np.linalg.norm(added)))
                before = seen_after(learned, own[reader], 0.0)
                moved = seen_after(learned, own[reader], added @ learned.directions) - before
                rounding = 2 * learned.d_model * 2.0**-24 * float(np.abs(before).max())
                expected = seen_after(plain, axes[reader], added) - seen_after(plain, axes[reader], 0.0)
                np.testing.assert_allclose(moved, expected, atol=1e-3 + rounding, err_msg=f"{writer} {reader}")


@pytest.mark.parametrize("extra", [0, 3])
@pytest.mark.parametrize("name", STUDENTS)
def test_edges_hold_in_superposition(name: str, extra: int) -> None:
    """What each reader sees of anything that each writer can write is the same as with a dimension for each label."""
    least = unlearned(STUDENTS[name], superposed=True).d_model
    learned = unlearned(STUDENTS[name], width=least + extra, superposed=True)
    assert least <= learned.compiled.d_model
    check_superposed_edges(learned)
    plain = replace(learned, turned=None, superposed=False)
    ids = plain.encode([list(learned.options.vocab)[:2], list(learned.options.vocab)[:1]])
    np.testing.assert_allclose(learned.logits(ids), plain.logits(ids), atol=2e-3, rtol=1e-3)
    cosines = learned.directions @ learned.directions.T
    assert np.abs(cosines - np.diag(np.diag(cosines))).max() > 0.05  # they overlap
    assert learned.turned is not None
    assert read_error(learned.weights, learned.turned) <= EXACT_READ


@settings(max_examples=15, deadline=None)
@given(seed=SEEDS)
def test_edges_hold_in_superposition_for_random_programs(seed: int) -> None:
    """The same for random programs, in the fewest dimensions."""
    program = random_program(seed, max_ops=4, vocab=("a", "b"), max_seq_len=3)
    model = tracr.compile(program, "ab", 3)
    if model.n_layers:
        check_superposed_edges(unlearned(model, superposed=True), seed)


def test_superposed_models_have_fewer_dimensions_and_say_what_is_mixed() -> None:
    """Labels that no part tells apart cannot be read one by one; all others are read exactly."""
    model = tracr.compile(programs.make_reverse(rasp.tokens), "ab", 5)
    learned = unlearned(model, superposed=True)
    assert learned.d_model < model.d_model
    assert "superposed" in repr(learned)
    assert learned.mixed
    seen = np.array([label not in learned.mixed for label in learned.labels])
    plain = replace(learned, turned=None, superposed=False)
    last = f"blocks.{model.n_layers - 1}.hook_resid_post"
    got, expected = learned.coordinates(learned.run("abba")[last]), plain.run("abba")[last]
    np.testing.assert_allclose(got[..., seen], expected[..., seen], atol=1e-3)
    assert np.abs(got - expected).max() > 0.1
    assert not plain.mixed
    with pytest.raises(TracrError, match=rf"tell {learned.d_model} directions apart.* into {learned.d_model - 1} dim"):
        unlearned(model, width=learned.d_model - 1, superposed=True)


@pytest.mark.parametrize("name", STUDENTS)
def test_the_ground_truth_is_the_compiled_models(name: str) -> None:
    """Nodes and edges at all granularities; neurons are the learned model's own."""
    learned = unlearned(STUDENTS[name])
    truth, own = learned.compiled.ground_truth, learned.ground_truth
    for granularity in ("component", "head", "qkv", "neuron_group"):
        assert [str(edge) for edge in own.edges(granularity)] == [str(edge) for edge in truth.edges(granularity)]
        assert [node.id for node in own.nodes(granularity)] == [node.id for node in truth.nodes(granularity)]
    for node in own.nodes():
        if node.kind == "neurons":
            first, stop = learned.neurons[node.id]
            assert node.neurons == node.output.neurons == (first, stop)
            assert node.computes.startswith(f"Neurons {first} to {stop - 1} of layer {node.layer} write ")
    for edge in own.edges():
        if edge.target in learned.neurons:
            assert edge.target_place.neurons == learned.neurons[edge.target]
    assert own.show()


@pytest.mark.parametrize("width", [None, 0, 7])
def test_coordinates_are_what_the_parts_write(width: int | None) -> None:
    """Rotated or not, also into more dimensions, labels have orthonormal directions, and the logits are the same."""
    plain = unlearned(STUDENTS["sort"])
    size = None if width is None else plain.d_model + width
    learned = unlearned(STUDENTS["sort"], width=size)
    np.testing.assert_allclose(learned.directions @ learned.directions.T, np.eye(plain.d_model), atol=1e-6)
    assert learned.d_model == (size or plain.d_model)
    ids = plain.encode([[1, 2, 3], [2]])
    np.testing.assert_allclose(learned.logits(ids), plain.logits(ids), atol=1e-3)
    last = f"blocks.{plain.n_layers - 1}.hook_resid_post"
    got, expected = learned.run([1, 3])[last], plain.run([1, 3])[last]
    np.testing.assert_allclose(learned.coordinates(got), expected, atol=1e-3)
    if size is not None:
        assert (np.abs(learned.parameters.layers[0].W_Q) > 0).mean() > 0.99  # nothing lies on axes


@pytest.mark.parametrize(("width", "superposed"), [(None, False), (40, False), (None, True)])
@pytest.mark.parametrize("name", STUDENTS)
def test_learned_models_come_back_from_files(name: str, width: int | None, superposed: bool, tmp_path: Path) -> None:
    """Weights, directions, measurements and verification."""
    learned = unlearned(STUDENTS[name], width=width, superposed=superposed)
    learned.save(tmp_path / "model")
    learned.save(tmp_path / "model")  # replaces its own
    back = tracr.load(tmp_path / "model")
    assert isinstance(back, LearnedModel)
    ids = learned.encode([list(learned.options.vocab)[:1]])
    np.testing.assert_array_equal(back.logits(ids), learned.logits(ids))
    for field in ("parts", "neurons", "verified", "noise", "seed", "code_error", "superposed", "mixed"):
        assert getattr(back, field) == getattr(learned, field), field
    assert repr(back) == repr(learned)


def test_changed_files_are_refused(tmp_path: Path) -> None:
    """Other weights, other sizes, and weights that would be another edge."""
    learned = unlearned(STUDENTS["hist"])
    learned.save(tmp_path / "model")
    info = tmp_path / "model" / "learned.json"
    good = json.loads(info.read_text())
    changes: list[dict[str, Any]] = [
        {"sha256": "0" * 64},
        {"d_head": [9]},
        {"neurons": {}},
        {"parts": []},
        {"version": 2},
    ]
    for change in [*changes, {"width": 1}]:
        info.write_text(json.dumps({**good, **change}))
        with pytest.raises(FormatError):
            tracr.load(tmp_path / "model")
    over = unlearned(STUDENTS["sort"], superposed=True)
    assert over.turned is not None
    replace(over, turned=replace(over.turned, read=over.turned.read * 1.01)).save(tmp_path / "over")
    with pytest.raises(FormatError, match="directions that are not read exactly"):
        tracr.load(tmp_path / "over")
    layer = learned.weights.layers[0]
    stray = replace(layer, W_V=np.ones_like(layer.W_V))
    replace(learned, weights=replace(learned.weights, layers=(stray,))).save(tmp_path / "stray")
    with pytest.raises(FormatError, match=r"blocks.0.attn.0 has weights for dimensions that are not its own"):
        tracr.load(tmp_path / "stray")


def test_what_learned_models_lack_is_refused() -> None:
    """Attributes of compiled models name the compiled model's; short formats and `set=` are refused."""
    learned = unlearned(STUDENTS["hist"])
    with pytest.raises(Unavailable, match=r"use learned\.compiled\.explore"):
        learned.explore()  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        learned.nonsense  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(PrecisionError, match="the learned model was measured in float32"):
        learned.cast("float16")
    with pytest.raises(Unavailable):
        learned.check_format("bfloat16")
    with pytest.raises(TracrError, match="cannot be set by name"):
        learned.run("ab", set={"hist": [1, 1]})


def test_arguments_are_checked_before_training() -> None:
    """Models that cannot be learned, and a stream that is too narrow for orthogonal directions."""
    pytest.importorskip("jax")
    pytest.importorskip("optax")
    learned_parts: Any = tracr.natural.learned_parts
    model = STUDENTS["hist"]
    with pytest.raises(TracrError, match="need a compiled model, not a LearnedModel"):
        learned_parts(unlearned(model))
    with pytest.raises(TracrError, match="other weights"):
        learned_parts(model.rotated(0))
    with pytest.raises(TracrError, match="has no layers"):
        learned_parts(tracr.compile(rasp.tokens, "ab", 2))
    with pytest.raises(TracrError, match="level 2"):
        learned_parts(tracr.compile(programs.make_hist2(), "abc", 4, level=2))
    with pytest.raises(TracrError, match=r"10 dimensions: two of them overlap by at least 0\.\d\d"):
        learned_parts(tracr.compile(programs.make_hist(), "abc", 5), rotated=True, width=10)
    with pytest.raises(TracrError, match="for a rotated or superposed stream"):
        learned_parts(model, width=99)
    with pytest.raises(TracrError, match=r"tell 10 directions apart, which do not fit into 5 dimensions"):
        learned_parts(model, superposed=True, width=5)
    for data in ("abc", [1, 2], 3):
        with pytest.raises(TracrError, match="not a list of inputs"):
            learned_parts(model, data=data)
    for noise in (0, -1, "much", True, 1):
        with pytest.raises(TracrError, match="noise must be"):
            learned_parts(model, noise=noise)
