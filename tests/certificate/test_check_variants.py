"""Rotated models and layer norms: accepted where the rules reach, never where they are wrong."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import tracr
from tests.agreement import load_compiled
from tests.certificate.check_cases import write_saved
from tests.tiers import in_turn, slow
from tracr.certificate.trials.mutants import SavedParts
from tracr.certificate.trials.trial import EveryInput, check_parts, parts_of, trials, wrong_inputs
from tracr.errors import FormatError
from tracr.model.variants.layer_norm import LayerNorm
from tracr.rasp import programs
from tracr.rasp.programs import EXAMPLES
from tracr.saving.models import files_of
from tracr_check import check_folder
from tracr_check.arithmetic import ARITHMETICS
from tracr_check.boxes import Boxes, State
from tracr_check.program_file import read_program
from tracr_check.proving import Weights
from tracr_check.turned import Turned

HIST = tracr.compile(programs.make_hist(), "abc", 4)
NORMS = {"shift_by": 1, "hist": 2, "reverse": 1, "induction": 0, "frac_prevs": 2}


def library(name: str, level: int, length: int | None = None) -> tracr.CompiledModel:
    """A program of the library at its own size, or for shorter inputs."""
    example = EXAMPLES[name] if length is None else EXAMPLES[name].made_for(EXAMPLES[name].vocab, length)
    return tracr.compile(example.program, example.vocab, length or example.max_seq_len, level=level)


# Rotations


@pytest.mark.parametrize(("name", "level"), [("hist", 0), ("reverse", 1), ("detect_pattern", 2)])
def test_rotated_models_are_accepted(name: str, level: int) -> None:
    """At their own size."""
    certificate = library(name, level).rotated(seed=level).certify()
    assert certificate.accepted, certificate.headline
    assert "float32" in certificate.theorem


@pytest.mark.slow
@pytest.mark.parametrize(("name", "level"), in_turn(EXAMPLES, (0, 1, 2)))
def test_the_rotated_library_is_accepted(name: str, level: int) -> None:
    """Every program of the library at its own size."""
    assert library(name, level).rotated(seed=5).certify().accepted


@pytest.mark.parametrize("variant", ["rotated", "with_layer_norm"])
def test_variants_are_saved_with_their_certificates(variant: str, tmp_path: Path) -> None:
    """The folder is checked as it is, and a changed weight is refused."""
    getattr(HIST, variant)().save(tmp_path / "variant", certificate=True)
    loaded = load_compiled(tmp_path / "variant")
    assert check_folder(tmp_path / "variant").accepted
    assert loaded.certificate is not None
    assert loaded.certificate.accepted
    assert loaded.certify().accepted
    weights = {name: array.copy() for name, array in loaded.parameters.named()}
    weights["unembed.W_U"][:, 0] += 3.0
    assert not loaded.with_weights(weights).certify().accepted


def test_the_rotations_are_real() -> None:
    """The models that are accepted have dimensions that hold several labels."""
    rotated = library("sort", 1).rotated(seed=1)
    assert (np.count_nonzero(rotated.directions, axis=0) > 1).sum() > 20
    assert rotated.certify().accepted


def test_a_wrong_rotation_is_rejected(tmp_path: Path) -> None:
    """One that is not orthogonal by name; another orthogonal one because nothing can be proved with it."""
    parts = parts_of(HIST.rotated(seed=1))
    assert check_parts(parts, tmp_path).accepted
    for change, reason in ((_nudged, "not orthogonal"), (_swapped, ".")):
        write = parts.tables["variant.write"].copy()
        change(write)
        verdict = check_parts(replace(parts, tables={**parts.tables, "variant.write": write}), tmp_path)
        assert not verdict.accepted
        assert reason in verdict.reason or reason == "."


def test_large_rotations_are_refused_in_time(tmp_path: Path) -> None:
    """Ten million weights, or many that each mix with many others, took minutes."""
    parts = parts_of(HIST.rotated(seed=1))
    width, many = len(parts.weights["unembed.W_U"]), 10**6
    shapes = {"W_in": (width, many), "b_in": (many,), "W_out": (many, width)}
    large = {f"blocks.0.mlp.{name}": np.ones(shape, np.float32) for name, shape in shapes.items()}
    start = time.process_time()
    parts = replace(parts, weights={**parts.weights, **large})
    assert "too many weights to turn" in check_parts(parts, tmp_path).reason
    assert time.process_time() - start < 20


def test_labels_in_mixed_dimensions_have_no_grid_of_stored_numbers(tmp_path: Path) -> None:
    """The network stores sums of them, so they need not be numbers of the format. The first four labels are mixed."""
    parts = parts_of(library("frac_prevs", 1, 4))
    turn = np.eye(parts.weights["unembed.W_U"].shape[0])
    turn[:4, :4] = np.full((4, 4), 0.5) - np.eye(4)
    weights = Weights(parts.weights, read_program(parts.model, parts.tables), 1, ARITHMETICS["float32"])
    turned = Turned(weights, weights, turn, ARITHMETICS["float32"])
    lo, hi = np.full((1, 6), 1.0), np.array([[1.0, 1.5, 1.5, 1.5, 1.5, 1.0]])
    state = turned._unstored(State(len(turn), {"1": Boxes(np.arange(6), lo, hi, np.full((1, 6), 0.25))}))
    assert state.tables["1"].grid.tolist() == [[0.25, 0.0, 0.0, 0.0, 0.25, 0.25]]


def _nudged(write: np.ndarray) -> None:
    write[0, 0] += 2.0**-10


def _swapped(write: np.ndarray) -> None:
    write[[0, 7]] = write[[7, 0]]


# Layer norms


@pytest.mark.parametrize(("name", "level"), NORMS.items())
def test_layer_norms_are_accepted(name: str, level: int) -> None:
    """The verdict names what is assumed of a layer norm."""
    certificate = library(name, level).with_layer_norm().certify()
    assert certificate.accepted, certificate.headline
    assert any("layer norm" in one for one in certificate.assumptions)


@pytest.mark.parametrize(("epsilon", "reason"), [(2.0**41, "power of 4"), (2.0**20, "variance"), (1e-5, "power of 4")])
def test_a_wrong_epsilon_is_rejected(epsilon: float, reason: str, tmp_path: Path) -> None:
    """A small epsilon lets the norm divide by the size of the stream."""
    parts = parts_of(HIST.with_layer_norm())
    model = {**parts.model, "variant": {**parts.model["variant"], "epsilon": epsilon}}
    verdict = check_parts(replace(parts, model=model), tmp_path)
    assert not verdict.accepted
    assert reason in verdict.reason


def test_layer_norms_that_no_step_names_are_refused(tmp_path: Path) -> None:
    """Weights of the plain model, in its own basis, and a layer norm that changes all answers.

    Of a variant without steps `save` writes nothing, and so the plain model was certified, but not the one that runs.
    """
    files = files_of(HIST)
    tables = safetensors.numpy.load(files["tables.safetensors"])
    tables |= dict.fromkeys(("variant.write", "variant.read"), np.eye(HIST.d_model))
    files["tables.safetensors"] = safetensors.numpy.save(tables)
    variant = {"steps": [], "noise": 0.0, "epsilon": 1e-5}
    files["model.json"] = json.dumps({**json.loads(files["model.json"]), "variant": variant}).encode()
    write_saved(files, tmp_path)
    with pytest.raises(FormatError, match="has no steps"):
        tracr.load(tmp_path)
    normed = HIST.with_layer_norm()
    with pytest.raises(ValueError, match="has a step"):
        replace(normed, changes=replace(normed.variant, steps=()))


def test_norms_without_their_anchor_are_rejected(tmp_path: Path) -> None:
    """Without the balance the mean is large; without the anchor readers see it."""
    parts = parts_of(HIST.with_layer_norm())
    weights = {name: array.copy() for name, array in parts.weights.items()}
    weights["embed.W_E"][:, -2] = 1000.0
    for name in ("W_Q", "W_K"):
        weights[f"blocks.0.attn.{name}"][:, -1] = 0.0
    assert not check_parts(replace(parts, weights=weights), tmp_path).accepted


def test_noise_and_rotated_norms_are_refused() -> None:
    """There are no rules for them, and the verdict says so, or that no proof was found."""
    assert "no rules for noise" in HIST.with_noise(1e-6).certify().reason
    assert not HIST.with_layer_norm().rotated(seed=1).certify().accepted
    assert "no rules for layer norms in bfloat16" in HIST.with_layer_norm().certify("bfloat16").reason


@pytest.mark.parametrize("name", ["hist", "reverse", *slow(["shuffle_dyck"])])
@pytest.mark.parametrize("arithmetic", ["float32", "float64"])
def test_epsilon_is_large_enough(name: str, arithmetic: str) -> None:
    """For sums of 53 bits, and for what the checker knows of PAD; one that is smaller is refused."""
    normed = library(name, 2).with_layer_norm()
    assert normed.certify(arithmetic).accepted
    small = replace(normed, changes=replace(normed.variant, layer_norm=LayerNorm(2.0**20)))
    assert "variance" in small.certify(arithmetic).reason


# Mutants of both


VARIANTS: dict[str, Callable[[tracr.CompiledModel], Any]] = {
    "rotated": lambda model: model.rotated(seed=3),
    "with_layer_norm": lambda model: model.with_layer_norm(),
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", ["hist", pytest.param("reverse", marks=pytest.mark.slow)])
def test_no_harmful_mutant_of_a_variant_is_accepted(variant: str, name: str, tmp_path: Path) -> None:
    """Weights and hints, against runs on every input with the layer norms."""
    parts = parts_of(VARIANTS[variant](library(name, 1, 3)))
    found = [one for kind in ("weight", "weights", "hints") for one in trials(parts, 8, (7,), tmp_path, kind)]
    assert not [(one.mutant.what, one.wrong) for one in found if one.unsound]
    assert any(one.wrong for one in found)
    assert any(one.verdict.accepted for one in found)


def test_wrong_norms_are_seen_by_the_trials() -> None:
    """A norm with a small epsilon changes answers, so the trials above run the norms."""
    parts = parts_of(HIST.with_layer_norm())
    assert not wrong_inputs(parts, EveryInput(parts))
    model = {**parts.model, "variant": {**parts.model["variant"], "epsilon": 2.0**-20}}
    small = SavedParts(parts.weights, parts.tables, model, parts.hints)
    assert wrong_inputs(small, EveryInput(small))
