"""The track "features": cases with independent features, superposition, scores, controls, rows and the report."""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracr
from tests.cli.calling import invoke
from tracr import lab
from tracr.lab.features import (
    FEATURE_METHODS,
    Examination,
    FeatureData,
    FeatureTruth,
    FoundDictionary,
    feature_case,
    feature_data,
    feature_truth,
    matched,
    score_dictionary,
)
from tracr.lab.features.causal import drawn_flips
from tracr.lab.features.drawing import BLOCK, drawn_sets
from tracr.lab.features.found import unit_rows
from tracr.lab.features.null_atoms import null_of
from tracr.lab.features.packing import OFF, ON
from tracr.lab.features.relations import RELATIONS
from tracr.lab.features.scoring import best_threshold
from tracr.lab.methods import run_method
from tracr.lab.reporting.features_report import FeaturesReport
from tracr.lab.subjects import Subject
from tracr.lab.variables.counterfactual import answers_with

SMALL: dict[str, Any] = {"features": 12, "tokens": 40, "density": 0.06}
QUICK = "pca,random-atoms,data-atoms,supervised,true-features"
SIZES = (400, 200)


def superposed(ratio: float = 2.0, **dials: Any) -> Subject:
    """A small case in superposition."""
    return lab.subject(feature_case(**{**SMALL, **dials}), "superposed", ratio=ratio)


# Cases


@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_sets_have_the_density_and_the_correlation_that_are_asked_for(correlation: float) -> None:
    """Within blocks the correlation, between blocks none; no feature is a sum of others, however few there are."""
    sets = drawn_sets(20_000, 3 * BLOCK, 0.1, correlation, np.random.default_rng(1))
    found = np.asarray(np.corrcoef(sets.T))
    block = np.arange(3 * BLOCK) // BLOCK
    same = (block[:, None] == block) & ~np.eye(3 * BLOCK, dtype=bool)
    assert np.abs(sets.mean(axis=0) - 0.1).max() < 0.02
    assert np.abs(found[same] - correlation).max() < 0.06
    assert np.abs(found[block[:, None] != block]).max() < 0.04
    sparse = drawn_sets(60, 40, 0.001, correlation, np.random.default_rng(2))
    assert np.linalg.matrix_rank(sparse.astype(float)) == 40


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("place", ["pre", "mid", "post", "mlp"])
def test_activations_are_sums_of_the_directions_of_features_that_fire(relation: str, place: str) -> None:
    """At every place, in the compiled and the superposed model; firing is the plain Python program's."""
    case = feature_case(**SMALL, relation=relation, place=place)
    made, packing = case.packed(case.model, 1.8, 0)
    for model in (case.model, made):
        subject = Subject(case, "any", 0, {}, model)
        data, _ = feature_data(subject, 3, 100, 20)
        truth = feature_truth(subject, data.inputs)
        flags = case.program.flags(data.inputs)
        kinds = {"pre": ["own"], "mid": ["own", "before"], "post": ["own", "before", "hits"]}.get(place, ["hits"])
        plain = np.concatenate([flags[kind] for kind in kinds], axis=-1)
        assert np.array_equal(truth.fires, plain.reshape(len(truth.fires), -1))
        centred = (plain - plain.mean(axis=0)).reshape(len(truth.fires), -1)
        if packing.lossless or model is case.model or place in ("pre", "mid"):
            assert np.allclose(centred @ truth.directions, data.activations, atol=1e-9)


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_worst_errors_are_those_of_all_pairs_of_tokens(relation: str) -> None:
    """Without loss means without: every pair of tokens; and the extremes are those of the model's own neurons."""
    case = feature_case(**SMALL, relation=relation, seed=3)
    made, packing = case.packed(case.model, 2.2, 0)
    tokens = range(case.dials.tokens)
    inputs = [list(pair) for pair in itertools.product(tokens, tokens)]
    answers = [case.program.answers(one) for one in inputs]
    seen: dict[str, Any] = {}
    made.logits(made.encode(inputs), hook=seen.__setitem__)
    z = (seen["blocks.0.mlp.hook_pre"][:, 1:, : case.program.features] + 3.5) / 8
    order = [int(np.argmax(np.abs(case.model.parameters.layers[0].W_out[k]))) for k in range(case.program.features)]
    labels = [case.model.residual.labels[place] for place in order]
    z = z[..., [labels.index(f"{relation}{i}") for i in range(case.program.features)]]
    hits = case.program.flags(inputs)["hits"]
    assert np.allclose(np.where(hits, -np.inf, z).max(axis=(0, 1)), packing.highest)
    there = hits.any(axis=(0, 1))
    assert np.allclose(np.where(hits, z, np.inf).min(axis=(0, 1))[there], packing.lowest[there])
    right = [model == wanted for model, wanted in zip(made(inputs), answers, strict=True)]
    assert all(right) or not packing.lossless
    assert packing.lossless == bool((packing.highest <= OFF).all() and (packing.lowest >= ON).all())
    assert all(model == wanted for model, wanted in zip(case.model(inputs), answers, strict=True))


@pytest.mark.parametrize("features", [40, pytest.param(128, marks=pytest.mark.slow)])
def test_hundreds_of_features_in_an_eighth_of_the_dimensions_without_loss(features: int) -> None:
    """Three times as many labels as features, 384 in 49 dimensions: no answer changes."""
    case = feature_case(features=features, tokens=4 * features, density=0.6 / features, relation="both")
    made, packing = case.packed(case.model, 8, 0)
    assert case.model.d_model >= 3 * features
    assert made.d_model * 8 <= case.model.d_model + 8
    assert packing.lossless
    inputs = case.inputs(300, 5)
    assert made(inputs) == case.model(inputs) == [case.entry.reference(one) for one in inputs]


def test_a_superposed_model_is_saved_and_loaded(tmp_path: Path) -> None:
    """With its steps, which are more neurons than the compiled model has; other shapes are refused."""
    model = superposed().model
    model.save(tmp_path / "model")
    again = tracr.load(tmp_path / "model")
    inputs = feature_case(**SMALL).inputs(20)
    assert again(inputs) == model(inputs)
    assert np.array_equal(again.parameters.layers[0].b_in, model.parameters.layers[0].b_in)


def test_names_choose_the_same_case_again() -> None:
    """A name with dials is a case, and its errors say what to write."""
    case = feature_case(features=9, density=0.25)
    assert lab.select_cases([case.name]) == [case]
    for words, message in {
        "features:depth=3": "no dial depth",
        "features:density=0": "density is 0",
        "features:correlation=2": "correlation is 2",
        "features:relation=or": "or",
    }.items():
        with pytest.raises(tracr.TracrError, match=message):
            lab.select_cases([words])
    with pytest.raises(tracr.TracrError, match="leave none for features"):
        superposed(30)


# Scores, computed again


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_matching_is_the_best_of_all(rows: int, columns: int, seed: int) -> None:
    """The sum of all one-to-one matchings, tried one by one; ties included."""
    gain = np.random.default_rng(seed).integers(0, 6, size=(rows, columns)) / 5
    found = matched(gain)
    used = found[found >= 0]
    assert len(set(used.tolist())) == len(used) == min(rows, columns)
    tall = gain if rows <= columns else gain.T
    best = max(
        sum(tall[i, j] for i, j in enumerate(chosen))
        for chosen in itertools.permutations(range(max(rows, columns)), min(rows, columns))
    )
    assert np.isclose(sum(gain[i, j] for i, j in enumerate(found.tolist()) if j >= 0), best)


def drawn(seed: int, atoms: int = 7) -> tuple[FoundDictionary, list[FeatureData], list[FeatureTruth]]:
    """Four features in five dimensions, a noisy dictionary of them with splits and noise, and data."""
    rng = np.random.default_rng(seed)
    directions = unit_rows(rng.normal(size=(4, 5))) * rng.uniform(0.5, 2, size=(4, 1))
    extra = np.concatenate([directions, directions[:2], rng.normal(size=(atoms - 6, 5))])
    learned = extra * rng.choice([-1.0, 1.0], size=(atoms, 1)) + rng.normal(size=(atoms, 5)) * 0.15
    encoder = rng.normal(size=(5, atoms)) * 0.2 + np.linalg.pinv(learned)
    found = FoundDictionary(learned, lambda x: x @ encoder * (np.abs(x @ encoder) > 0.3), rng.normal(size=5))
    data, truths = [], []
    for _ in range(2):
        fires = rng.random((60, 4)) < 0.3
        rows = fires @ directions + rng.normal(size=(60, 5)) * 0.05
        data.append(FeatureData("blocks.0.hook_resid_mid", rows, 4, []))
        truths.append(FeatureTruth(tuple("abcd"), directions, fires))
    return found, data, truths


@pytest.mark.parametrize("seed", range(12))
def test_scores_computed_again(seed: int) -> None:
    """Cosines, precision, recall, firing, absorption, splitting and variance, by loops that share no code."""
    found, data, truths = drawn(seed)
    scores = score_dictionary(found, data[0], truths[0], data[1], truths[1])
    codes = [found.encode(one.activations) for one in data]  # type: ignore[misc]
    alive = [k for k in range(7) if any(abs(row[k]) > 0 for row in codes[1])]
    true = truths[1].directions
    cosines = [[float(v @ a / np.sqrt(v @ v * (a @ a))) for a in found.atoms] for v in true]
    ways = list(itertools.permutations(alive, 4))
    totals = [sum(abs(cosines[i][k]) for i, k in enumerate(way)) for way in ways]
    way = ways[int(np.argmax(totals))]
    own = [abs(cosines[i][k]) for i, k in enumerate(way)]
    hits = sum(one >= 0.9 for one in own)
    assert scores.atoms == len(alive)
    assert scores.cosine == pytest.approx(max(totals) / 4)
    assert (scores.precision, scores.recall) == pytest.approx((hits / len(alive), hits / 4))
    assert scores.f1 == pytest.approx(2 * hits / (4 + len(alive)))
    f1s, absorbed, total = [], 0, 0
    for i, k in enumerate(way):
        sign = np.sign(cosines[i][k])
        threshold = naive_threshold(sign * codes[0][:, k], truths[0].fires[:, i])
        says, is_so = sign * codes[1][:, k] > threshold, truths[1].fires[:, i]
        f1s.append(2 * sum(says & is_so) / (sum(says) + sum(is_so)))
        for row in np.flatnonzero(is_so) if own[i] >= 0.9 else ():
            total += 1
            shares = [codes[1][row, j] * (found.atoms[j] @ true[i]) / (true[i] @ true[i]) for j in range(7) if j != k]
            absorbed += not says[row] and max(shares) >= 0.5
    assert scores.firing == pytest.approx(np.mean(f1s))
    assert scores.absorption == (pytest.approx(absorbed / total) if total else None)
    nearest = [int(np.argmax([abs(cosines[i][k]) for i in range(4)])) for k in alive]
    parts = [sum(n == i and abs(cosines[i][k]) >= 0.7 for n, k in zip(nearest, alive, strict=True)) for i in range(4)]
    assert scores.splitting == (pytest.approx(np.mean([p for p in parts if p])) if any(parts) else None)
    assert found.offset is not None
    error = data[1].activations - codes[1] @ found.atoms - found.offset
    assert scores.variance == pytest.approx(1 - (error**2).mean() / data[1].activations.var(axis=0).mean())


def naive_threshold(codes: Any, fires: Any) -> float:
    """The best of all thresholds between codes, below all and above all but the largest."""
    values = sorted(set(codes.tolist()), reverse=True)
    tried = [*((a + b) / 2 for a, b in itertools.pairwise(values)), values[-1] - 1]
    f1 = [2 * sum((codes > t) & fires) / (sum(codes > t) + max(1, sum(fires))) for t in tried]
    return tried[int(np.argmax(f1))]


@given(st.integers(0, 2**32 - 1))
def test_the_threshold_is_the_best(seed: int) -> None:
    """Of all, also if many codes are equal, all are 0, or some are negative."""
    rng = np.random.default_rng(seed)
    codes, fires = rng.integers(rng.integers(-3, 1), 4, size=12) / 2, rng.random(12) < 0.4
    assert best_threshold(codes, fires) == pytest.approx(naive_threshold(codes, fires))


@pytest.mark.parametrize("place", ["pre", "mid", "post", "mlp"])
def test_interventions_have_the_answers_of_the_program_under_set(place: str) -> None:
    """Every one, at the tokens that count; and each changes the answer there."""
    case = feature_case(**SMALL, place=place, relation="new")
    subject = Subject(case, "compiled", 0, {}, case.model)
    data, _ = feature_data(subject, 0, 60, 1)
    truth = feature_truth(subject, data.inputs)
    flips = drawn_flips(subject, data, truth, 4, 0)
    assert len(flips.feature) > 20
    assert {*flips.on.tolist()} == {True, False}
    compared = 0
    for number in range(0, len(flips.feature), 5):
        name, tokens, at = truth.names[flips.feature[number]], flips.inputs[number], int(flips.token[number])
        values: list[Any] = list(case.model.interpret([tokens]).rows(name)[0])
        assert values[at] == int(not flips.on[number])
        values[at] = int(flips.on[number])
        answers, defined = answers_with(case.model, name, [values], [tokens])
        counted = flips.counted[number]
        compared += int(defined.all())
        assert np.array_equal(answers[0][counted], flips.answers[number][counted]) or not defined.all()
        usual = case.model.outputs[0].codes(case.model.logits(case.model.encode([tokens])))[0, 1:]
        assert (usual != flips.answers[number])[counted].any()
    assert compared > 5


def test_causal_recovery_computed_again() -> None:
    """By a pass written here, and moves by means of the rows where the program has the feature."""
    one = Examination(superposed(2.5, relation="gone"), 8, sizes=SIZES)
    atoms = unit_rows(one.after.directions + 0.2 * np.random.default_rng(0).normal(size=one.after.directions.shape))
    scores = one.score(FoundDictionary(atoms))
    chosen = dict(enumerate(matched(np.abs(unit_rows(one.after.directions) @ atoms.T)).tolist()))
    assert scores.atoms == len(atoms)
    rows, flags = one.training.activations, one.subject.case.program.flags(one.training.inputs)  # type: ignore[attr-defined]
    fires = np.concatenate([flags["own"], flags["before"]], axis=-1).reshape(len(rows), -1)
    moves = []
    for feature, on in zip(one.flips.feature.tolist(), one.flips.on.tolist(), strict=True):
        there, atom = fires[:, feature], atoms[chosen[feature]]
        here, elsewhere = ([float(row @ atom) for row in rows[chosen_rows]] for chosen_rows in (there, ~there))
        along = sum(here) / len(here) - sum(elsewhere) / len(elsewhere)
        moves.append((along if on else -along) * atom)
    answers = plain_answers(one.subject, one.flips.inputs, np.array(moves), one.flips.token)
    right = [answers[i, at] == one.flips.answers[i, at] for i, at in enumerate(one.flips.token.tolist())]
    assert scores.causal == pytest.approx(np.mean(right))
    assert 0.1 < np.mean(right) < 1


def plain_answers(subject: Any, inputs: Any, moves: Any, token: Any) -> Any:
    """The answers [input, token] of a model of one layer whose stream between head and neurons is moved at a token."""
    own = {name.removeprefix("blocks.0."): np.asarray(array, float) for name, array in subject.model.parameters.named()}
    ids = subject.model.encode(inputs)
    stream = own["embed.W_E"][ids] + own["pos_embed.W_pos"][: ids.shape[1]]
    q, k, v = (
        np.einsum("ipd,hde->ihpe", stream, own[f"attn.W_{name}"]) + own[f"attn.b_{name}"][:, None] for name in "QKV"
    )
    scores = q @ k.swapaxes(-1, -2)
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    scores /= scores.sum(axis=-1, keepdims=True)
    stream = stream + np.einsum("ihpe,hed->ipd", scores @ v, own["attn.W_O"]) + own["attn.b_O"]
    stream[np.arange(len(ids)), token + 1] += moves
    hidden = np.maximum(stream @ own["mlp.W_in"] + own["mlp.b_in"], 0)
    logits = (stream + hidden @ own["mlp.W_out"] + own["mlp.b_out"]) @ own["unembed.W_U"]
    return subject.outputs[0].codes(logits)[:, 1:]


def test_an_examination_like_another_is_the_same() -> None:
    """Firings and interventions of another subject of the case give the same scores; those of another case do not."""
    first = Examination(superposed(2.0), 8, sizes=SIZES)
    alone, like = Examination(superposed(3.0), 8, sizes=SIZES), Examination(superposed(3.0), sizes=SIZES, like=first)
    assert alone.ceiling == like.ceiling
    assert alone.null(24) == like.null(24)
    wrong: list[tuple[Subject, dict[str, Any]]] = [
        (superposed(2.0, seed=1), {}),
        (superposed(3.0), {"seed": 1}),
        (superposed(3.0), {"sizes": (9, 9)}),
    ]
    for other, settings in wrong:
        with pytest.raises(tracr.InputError, match="another case, or with another seed or other sizes"):
            Examination(other, like=first, **{"sizes": SIZES, **settings})


# Controls


@pytest.mark.parametrize("place", ["pre", "mid", "post", "mlp"])
def test_the_truth_has_full_marks_in_the_control(place: str) -> None:
    """Directions, firing and effects; the ceiling nearly so, where features are independent."""
    case = feature_case(**SMALL, place=place, relation="new")
    examination = Examination(Subject(case, "compiled", 0, {}, case.model), 8, sizes=SIZES).control()
    found = run_method(FEATURE_METHODS["true-features"], examination.subject, examination.training).scores
    truth = examination.score(found)
    assert (truth.f1, truth.cosine, truth.precision, truth.recall) == pytest.approx((1, 1, 1, 1))
    assert (truth.firing, truth.causal, truth.absorption, truth.splitting) == pytest.approx((1, 1, 0, 1))
    assert examination.ceiling.f1 > (0.95 if place != "post" else 0.8)
    assert (examination.ceiling.causal or 0) > 0.95


def test_ten_thousand_random_atoms_fail() -> None:
    """Best cosines, without a matching, say that most features were recovered; no score of ours does."""
    subject = superposed(3.4)
    examination = Examination(subject, 8, sizes=(200, 60))
    atoms = null_of(examination.training, 10_000, 0)
    naive = np.abs(unit_rows(examination.after.directions) @ atoms.directions.T).max(axis=1)
    assert (naive > 0.9).mean() > 0.5
    scores = examination.score(atoms)
    assert scores.precision < 0.005
    assert scores.f1 < 0.01
    few = examination.null(len(examination.after.names))
    assert few.f1 < 0.2
    assert examination.ceiling.f1 > 0.8


def test_a_dictionary_that_does_nothing_has_no_effect() -> None:
    """Atoms at right angles to what neurons read: no intervention is answered as the program does."""
    case = feature_case(**SMALL)
    examination = Examination(Subject(case, "compiled", 0, {}, case.model), 8, sizes=SIZES)
    bos = case.model.residual.labels.index("tokens:pad")
    atoms = np.zeros((24, case.model.d_model))
    atoms[:, bos] = 1
    scores = examination.score(FoundDictionary(atoms, lambda x: np.ones((len(x), 24))))
    assert (scores.causal, scores.f1, scores.recall) == (0, 0, 0)


def test_wrong_answers_of_methods_are_refused() -> None:
    """With what to return instead."""
    examination = Examination(superposed(), 2, sizes=(40, 20))
    for wrong, message in (
        (np.ones((3, 3)), "no FoundDictionary"),
        (FoundDictionary(np.ones((3, 3))), "3 dimensions"),
        (FoundDictionary(np.ones((3, examination.training.activations.shape[1])), lambda x: x[:, :2]), "shape"),
    ):
        with pytest.raises(tracr.TracrError, match=message):
            examination.score(wrong)
    with pytest.raises(tracr.TracrError, match="finite numbers"):
        FoundDictionary(np.full((2, 3), np.nan))
    with pytest.raises(tracr.TracrError, match="no case with independent features"):
        feature_data(lab.subject("hist"), 0)
    other = lab.subject(feature_case(**SMALL), "compiled", level=1)
    with pytest.raises(tracr.TracrError, match="directions of features are not known"):
        feature_truth(other, [[0, 1, 2, 3]])


def test_a_rotated_model_has_the_same_features_elsewhere() -> None:
    """Its directions are turned, and activations are still sums of them."""
    subject = lab.subject(feature_case(**SMALL), "rotated", seed=2)
    data, _ = feature_data(subject, 0, 100, 10)
    truth = feature_truth(subject, data.inputs)
    fires = truth.fires.reshape(100, -1, len(truth.names))
    rows = (fires - fires.mean(axis=0)).reshape(-1, len(truth.names)) @ truth.directions
    assert np.allclose(rows, data.activations, atol=1e-5)
    assert not np.allclose(np.abs(truth.directions).max(axis=1), 1)


# Rows and the report


def test_a_run_and_its_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows with control, null and ceiling; a second run does nothing; the page and the tables are written."""
    pytest.importorskip("pyarrow")
    monkeypatch.setattr("tracr.lab.features.feature_rows.Examination", partial(Examination, sizes=SIZES))
    cases = [feature_case(**SMALL, seed=seed).name for seed in (0, 1)]
    conditions = lab.Conditions(pairs=4, track="features")
    for made in (10, 0):
        run = lab.run(QUICK.split(","), cases, ["superposed:ratio=2"], folder=tmp_path, conditions=conditions)
        assert (run.made, run.failed) == (made, 0)
    rows = lab.read_results(tmp_path)
    by_method = {row["method"]: row for row in rows}
    assert by_method["true-features"]["f1"] == 1
    assert by_method["random-atoms"]["f1"] == by_method["random-atoms"]["null_f1"] < 0.3
    assert by_method["supervised"]["f1"] == by_method["pca"]["ceiling_f1"] > 0.5
    assert by_method["true-features"]["control_causal"] == 1
    report = lab.report(tmp_path)
    assert isinstance(report, FeaturesReport)
    page = report.save(tmp_path / "report.html").read_text()
    assert "Control, null and ceiling" in page
    assert {*report.tables} == {"leaderboard", "beside", "dials", "reconstruction", "left_out"}
    lead = next(row for row in report.tables["beside"].rows if row[1:3] == ("true-features", "f1"))
    assert lead[3].mean == 1
    assert lead[-1].mean == pytest.approx(1 - lead[5].mean)
    assert "true-features" in invoke("lab", "report", str(tmp_path))


def test_methods_answer_their_own_track(tmp_path: Path) -> None:
    """A method of another track is refused, and so is a case without features: in a row."""
    pytest.importorskip("pyarrow")
    conditions = lab.Conditions(track="features")
    with pytest.raises(tracr.TracrError, match="answers the track edges"):
        lab.run(["eap"], ["hist"], folder=tmp_path, conditions=conditions)
    run = lab.run(["pca"], ["hist"], folder=tmp_path, conditions=conditions)
    assert run.failed == 1
    assert "no case with independent features" in lab.read_results(tmp_path)[0]["error"]
