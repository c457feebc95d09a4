"""Subjects: every realisation computes the program and has a truth; the cache; what is refused."""

from __future__ import annotations

import importlib
import inspect
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tests.ground_truth.pairs import by_hand
from tests.natural.learned_models import unlearned
from tests.natural.twins import untrained
from tracr import lab
from tracr.cli.sources import GivenOptions
from tracr.cli.twinning import _teacher
from tracr.ground_truth.edge_keys import coarsened, key_of_edge
from tracr.lab.faithfulness import faithfulness
from tracr.lab.methods import MethodData, exact_patching
from tracr.lab.methods.data import answers_differ
from tracr.lab.methods.passes import both_passes
from tracr.lab.output_truth import OutputTruth
from tracr.lab.realising import REALISATIONS
from tracr.lab.selecting import CORE
from tracr.lab.twin_folder import require_teacher
from tracr.model.verification import differs
from tracr.natural.admission import Rate
from tracr.natural.backing_up import redundancies

MADE = [name for name in REALISATIONS if name not in ("twin", "learned")]
CASES = ("hist", "parity_so_far", "frac_prevs")


@pytest.mark.parametrize("realisation", MADE)
@pytest.mark.parametrize("name", CASES)
def test_a_realisation_computes_the_program_and_is_kept(name: str, realisation: str, tmp_path: Path) -> None:
    """The answers are the program's; the truth covers all candidates; the kept subject is the same one."""
    case = lab.case(name)
    if (name, realisation) == ("frac_prevs", "backup"):
        with pytest.raises(tracr.TracrError, match=r"no variable of frac_prevs can have a backup: [^$]* hint: use"):
            lab.subject(case, realisation)
        return
    made = lab.subject(case, realisation, seed=1, cache=tmp_path)
    pairs = case.pairs(12, seed=2)
    for pair in pairs:
        assert made.answer(pair.clean) == pytest.approx(list(pair.clean_answer), abs=1e-4)
    truth = made.minimal(pairs)
    assert truth.alone
    assert sorted([*truth.alone, *truth.jointly, *truth.inert]) == sorted(truth.candidates())
    kept = lab.subject(case, realisation, seed=1, cache=tmp_path)
    assert (kept.digest, kept.minimal(pairs).alone, kept.minimal(pairs).inert) == (
        made.digest,
        truth.alone,
        truth.inert,
    )
    assert lab.subject(case, realisation, seed=1).digest == made.digest
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} <= {".json", ".safetensors"}
    assert len(list(tmp_path.iterdir())) == (realisation != "compiled")


def test_the_cache_tells_recipes_apart(tmp_path: Path) -> None:
    """Another seed, dial, level or case is another subject; a default that is written out is not."""
    base = lab.subject("hist", "noise", cache=tmp_path)
    lab.subject("hist", "noise", cache=tmp_path, scale=None)
    assert len(list(tmp_path.iterdir())) == 1
    others = [
        lab.subject("hist", "noise", seed=1, cache=tmp_path),
        lab.subject("hist", "noise", cache=tmp_path, scale=2.0**-24),
        lab.subject("hist", "noise", cache=tmp_path, level=0),
        lab.subject("count", "noise", cache=tmp_path),
    ]
    assert len(list(tmp_path.iterdir())) == 1 + len(others)
    assert len({one.digest for one in (base, *others)}) == 1 + len(others)
    same_weights = [lab.subject(lab.case("hist", vocab=vocab), "rotated", cache=tmp_path) for vocab in ("abc", "xyz")]
    assert [one.model(list(one.case.vocab)) for one in same_weights] == [[1, 1, 1]] * 2
    lab.subject("hist", "layer_norm", seed=1, cache=tmp_path)
    count = len(list(tmp_path.iterdir()))
    lab.subject("hist", "layer_norm", seed=2, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == count


def test_the_cache_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TRACR_CACHE is the folder if none is given."""
    monkeypatch.setenv("TRACR_CACHE", str(tmp_path))
    lab.subject("hist", "rotated")
    assert len(list(tmp_path.iterdir())) == 1


def test_a_damaged_subject_is_refused(tmp_path: Path) -> None:
    """Weights of another subject under a key, or a lost file, are an error that says what to delete."""
    for seed in (0, 1):
        lab.subject("hist", "rotated", seed=seed, cache=tmp_path)
    first, second = sorted(tmp_path.iterdir())
    (first / "subject.json").write_bytes((second / "subject.json").read_bytes())
    with pytest.raises(tracr.FormatError, match=r"is damaged\n  hint: delete this folder"):
        [lab.subject("hist", "rotated", seed=seed, cache=tmp_path) for seed in (0, 1)]


def test_what_is_refused() -> None:
    """Unknown realisations, dials and cases; dials out of range; noise that changes the mechanism."""
    refused: list[tuple[str, str, dict[str, object], str]] = [
        ("hist", "rotatd", {}, r"there is no realisation 'rotatd'\n  hint: .*rotated"),
        ("hist", "rotated", {"ratio": 2}, '"rotated" has no dial ratio\n  hint: there are level, gap'),
        ("hist", "superposed", {"ratio": 3.0}, "no projection to .* is without loss"),
        ("hist", "superposed", {"ratio": 0}, "ratio"),
        ("hist", "decoys", {"count": 500}, "does not have 500 programs that can be decoys in hist"),
        ("hist", "compiled", {"level": 7}, "level"),
        ("histt", "compiled", {}, "no program 'histt'"),
    ]
    for name, realisation, dials, message in refused:
        with pytest.raises(tracr.TracrError, match=message):
            lab.subject(name, realisation, **dials)  # type: ignore[arg-type]
    loud = lab.subject("hist", "noise", scale=3.0)
    with pytest.raises(tracr.TracrError, match=r"the noise model of hist does not compute its program\n  hint:"):
        _ = loud.truth


@pytest.mark.parametrize("realisation", ["noise", "superposed"])
def test_a_model_in_which_other_edges_matter_is_refused(realisation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though its answers are right."""
    subjects = importlib.import_module("tracr.lab.subjects")
    made = lab.subject("hist", realisation)
    edge = ("embed", "unembed")
    measure = subjects.exact_patching

    def patched(model: object, data: object) -> object:
        return measure(model, data) | ({edge: 0.5} if model is made.model else {})

    assert edge in made.truth.inert
    monkeypatch.setattr(subjects, "exact_patching", patched)
    with pytest.raises(tracr.TracrError, match=r"patching embed->unembed has another effect .* truth is not known"):
        made.minimal(made.case.pairs(8))


def test_superposition_is_known_under_resampling_only() -> None:
    """Zeros and means are not what the check of a superposed model patches."""
    pairs = lab.case("hist").pairs(8)
    assert lab.subject("hist", "rotated").minimal(pairs, "zero").alone
    with pytest.raises(tracr.TracrError, match="not known under the ablation 'zero'"):
        lab.subject("hist", "superposed").minimal(pairs, "zero")


def test_decoys_are_inert() -> None:
    """Decoys add candidates, and none of them is needed."""
    plain, more = lab.subject("hist"), lab.subject("hist", "decoys", seed=3, count=2)
    assert len(more.truth.candidates()) > len(plain.truth.candidates())
    decoys = {edge.variable for edge in more.model.ground_truth.edges()} - {
        edge.variable for edge in plain.model.ground_truth.edges()
    }
    assert decoys
    assert len(more.truth.alone) == len(plain.truth.alone)


def test_two_programs_are_told_apart() -> None:
    """The truth is that of the case's output: edges that lead only to the other output are inert."""
    made = lab.subject("hist", "two_programs", other="reverse")
    assert [output.name for output in made.model.outputs] == ["hist", "reverse"]
    assert set(made.model("abca")) == {"hist", "reverse"}
    pairs = made.case.pairs(32)
    truth = made.minimal(pairs)
    whole = made.model.ground_truth.minimal(pairs=pairs)
    ours, others = (set(one) for one in OutputTruth(made.model.ground_truth, made.outputs[0]).split("qkv"))
    assert set(truth.alone) < set(whole.alone)
    assert set(truth.alone) <= ours
    assert set(whole.alone) - set(truth.alone) <= {*others, *truth.inert}
    assert len(truth.alone) == len(lab.subject("hist").minimal(pairs).alone)
    for granularity in ("head", "component", "qkv"):
        assert truth.at(granularity).alone == made.minimal(pairs, granularity=granularity).alone
    answers = MethodData.of(pairs)  # changed answers of the other output do not count
    assert {key for key, share in exact_patching(made, answers).items() if share > 0} == set(truth.alone)
    assert faithfulness(made, answers, truth.alone).metrics[1] == 1
    with pytest.raises(tracr.TracrError, match="no program 'sortt'"):
        lab.subject("hist", "two_programs", other="sortt")


def test_a_backup_has_several_circuits() -> None:
    """Under zeros two sets of edges are enough, under resampling one: patches of all other edges change no answer."""
    made = lab.subject("hist", "backup", variable="hist")
    pairs = made.case.pairs(32)
    (redundancy,) = redundancies(made.model)
    second = {coarsened(key_of_edge(edge), "qkv") for edge in redundancy.second_edges}
    truth, zeros = made.minimal(pairs), made.minimal(pairs, "zero")
    assert not second & {*truth.alone}
    assert second & {*zeros.jointly}
    both = both_passes(made, MethodData.of(pairs))
    nothing = {name: np.zeros_like(output) for name, output in both.clean.written.items()}
    for ablation, instead, count in (("resample", both.corrupted.written, 1), ("zero", nothing, 2)):
        circuits = made.acceptable(pairs, ablation)  # type: ignore[arg-type]
        assert len(set(circuits)) == len(circuits) == count
        outside = [[key for key in both.patching.candidates if key not in circuit] for circuit in circuits]
        logits = both.patching.run(both.clean, instead, [*outside, both.patching.candidates], lambda found: found)
        changed = (answers_differ(made.outputs, both.clean.logits, logits) & both.token).any(axis=(1, 2))
        assert changed.tolist() == [False] * count + [True]
    first, other = made.acceptable(pairs, "zero")
    assert first & second == frozenset() != other & second


@pytest.mark.slow
def test_learned_parts_are_subjects(tmp_path: Path) -> None:
    """Trained, kept on disk, with the truth of the model itself; all methods that need no library score it."""
    pytest.importorskip("jax")
    pytest.importorskip("optax")
    made = lab.subject("hist", "learned", cache=tmp_path)
    assert lab.subject("hist", "learned", cache=tmp_path).digest == made.digest
    pairs = made.case.pairs(32)
    assert all(made.answer(pair.clean) == list(pair.clean_answer) for pair in pairs)
    truth = made.minimal(pairs)
    assert truth.alone == lab.subject("hist").minimal(pairs).alone
    assert truth.score(exact_patching(made, MethodData.of(pairs))).auroc == 1
    with pytest.raises(tracr.TracrError, match="did not train"):
        lab.subject("hist_bos", "learned", steps=50)


def test_the_truth_of_a_learned_model_is_its_own() -> None:
    """Edges are patched in the learned model, also between groups of neurons: compared with a transformer by hand."""
    learned = unlearned(lab.case("hist2").model, seed=1)
    learned = replace(learned, weights=learned.weights.map(lambda array: 2 * array))
    pairs = lab.case("hist2").pairs(12)
    other, (output,) = by_hand(learned), learned.outputs
    clean, corrupted, token = MethodData.of(pairs).ids(learned.vocabulary)
    truth = learned.ground_truth.minimal(pairs=pairs)
    wired, rest = learned.ground_truth.split("qkv")
    assert {*rest} <= {*truth.inert}
    plain = output.codes(np.stack([other.run(ids)[1] for ids in clean]).astype(np.float32))
    for key in wired:
        runs = np.stack([other.patched(*both, [key]) for both in zip(clean, corrupted, strict=True)])
        changed = differs(output.domain, plain, output.codes(runs.astype(np.float32))) & token
        assert changed.any() == (key in truth.alone), key
    assert truth.alone
    finest = learned.ground_truth.minimal(pairs=pairs, granularity="neuron_group")
    assert {coarsened(key, "qkv") for key in finest.alone} <= {*truth.alone, *truth.jointly}
    with pytest.raises(tracr.TracrError, match="minimal takes data= or pairs="):
        learned.ground_truth.minimal(pairs=pairs, data=["abc"])  # type: ignore[call-overload]


def test_twins_are_kept_and_say_whether_they_are_admitted(tmp_path: Path) -> None:
    """A trained twin can be put into a cache; one that is not admitted says so; one of another case is refused."""
    twin = untrained(lab.case("hist").model, seed=4)
    with pytest.raises(tracr.TracrError, match=r"no cache to keep the twin in\n  hint: pass cache=FOLDER"):
        lab.keep_twin("hist", twin)
    with pytest.raises(tracr.TracrError, match="not one of the case count: its teacher"):
        lab.keep_twin("count", twin, cache=tmp_path)
    kept = lab.keep_twin("hist", twin, cache=tmp_path)
    dials: dict[str, Any] = {"width": 24, "d_head": 8, "d_mlp": 20}
    found = lab.subject("hist", "twin", seed=4, cache=tmp_path, **dials)
    assert found.digest == kept.digest
    assert dict(found.dials) == dict(kept.dials) == dials
    assert not found.admitted
    assert lab.subject("hist").admitted
    with pytest.raises(tracr.errors.NotAdmitted, match=r"twin of hist with seed 4 was not admitted: [^$]*hint: use"):
        _ = found.truth


COMMITTED = Path(__file__).parents[2] / "docs" / "natural" / "twins"


@pytest.mark.parametrize("place", ["hist-0", "hist/seed0", "hist"])
def test_trained_twins_of_a_folder(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All layouts are read; the twin has the case's truth; nothing is trained; other seeds and shapes are refused."""
    shutil.copytree(COMMITTED / "hist", tmp_path / place)
    found = lab.subject("hist", "twin", twins=tmp_path)
    assert found.admitted
    assert found.digest == lab.subject("hist", "twin", twins=COMMITTED, width=64).digest
    assert {*found.truth.alone} == {*lab.subject("hist").truth.alone}
    assert len(found.truth.candidates()) > len(lab.subject("hist").truth.candidates())
    for pair in found.case.pairs(16):
        assert found.model(list(pair.clean)) == list(pair.clean_answer)
    with pytest.raises(tracr.TracrError, match=r"no twin of hist with seed 1 in [^$]*hint: train it: tracr twin"):
        lab.subject("hist", "twin", seed=1, twins=tmp_path)
    with pytest.raises(tracr.TracrError, match="with seed 0 has width=64, not 32"):
        lab.subject("hist", "twin", twins=tmp_path, width=32)
    with pytest.raises(tracr.TracrError, match="is not one of the case hist: its teacher is not"):
        lab.subject(lab.case("hist", vocab="abc"), "twin", twins=tmp_path)
    monkeypatch.setenv("TRACR_TWINS", str(tmp_path))
    assert lab.subject("hist", "twin").digest == found.digest
    monkeypatch.setenv("TRACR_TWINS", str(tmp_path / "missing"))
    with pytest.raises(tracr.TracrError, match="there is no folder"):
        lab.subject("hist", "twin")


@pytest.mark.parametrize("program", ["zoo:hist2", "hist2", "zoo:frac_prevs"])
def test_the_command_line_trains_twins_for_the_laboratory(program: str) -> None:
    """`tracr twin zoo:NAME` has the case's compiled model as its teacher."""
    name, teacher = _teacher(program, None, GivenOptions(None, None))
    assert name == program.removeprefix("zoo:")
    require_teacher(untrained(teacher), lab.case(name).model, name, "the twin")


def test_edges_without_a_true_answer_are_undecided() -> None:
    """Edges that the teacher needs, but only where the program has no answer, are not scored on a twin."""
    teacher, pairs = lab.case("hist").model, lab.case("hist").pairs(32)
    twin = untrained(teacher)
    needed = teacher.ground_truth.minimal(pairs=pairs).alone
    sites = [
        replace(site, agreement=Rate(5, 5)) if site.site in map("->".join, needed[1:]) else site
        for site in twin.admission.sites
    ]
    twin = replace(twin, admission=replace(twin.admission, sites=tuple(sites)))
    truth = twin.ground_truth.minimal(pairs=pairs)
    assert (truth.alone, truth.undecided) == (needed[1:], needed[:1])
    assert "1 undecided" in repr(truth)
    every = [*truth.alone, *truth.jointly, *truth.inert, *truth.undecided]
    assert sorted(every) == sorted(truth.candidates())
    assert truth.score(dict.fromkeys(truth.alone, 1.0)).exact
    assert truth.score({**dict.fromkeys(truth.alone, 1.0), needed[0]: 2.0}).exact
    coarse = twin.ground_truth.minimal(pairs=pairs, granularity="component")
    assert not coarse.undecided  # the queries alone are undecided, not the head
    with pytest.raises(tracr.TracrError, match="are enough is not known"):
        lab.Subject(lab.case("hist"), "twin", 0, {}, twin).acceptable(pairs)


def test_the_dials_of_twins_are_the_settings_of_training() -> None:
    """With the same defaults, so that keys in caches mean what is trained."""
    pytest.importorskip("jax")
    pytest.importorskip("optax")
    from tracr.natural import twins

    defaults = {name: one.default for name, one in inspect.signature(twins).parameters.items()}
    assert REALISATIONS["twin"].dials.items() <= defaults.items()
    rest = {"model", "seeds", "data", "checkpoint", "progress", "seconds"}
    assert defaults.keys() - REALISATIONS["twin"].dials.keys() == rest


def test_the_core_cases() -> None:
    """They have 23 to 110 candidates; words choose cases, each once."""
    assert len(CORE) == len(set(CORE)) >= 60
    for name in np.random.default_rng(0).choice(CORE, 12, replace=False).tolist():
        assert 23 <= len(lab.case(name).model.ground_truth.candidates()) <= 110
    assert [one.name for one in lab.select_cases(["core"])] == [*CORE]
    assert len(lab.select_cases(["all", "hist", "core"])) == len(lab.cases())
    drawn = lab.select_cases(["private:7:2", "private-7-1"])
    assert [one.name for one in drawn] == ["private-7-0", "private-7-1"]
    assert lab.select_cases(["private-7-0"])[0] is drawn[0] is lab.select_cases(["private:7:3"])[0]
    with pytest.raises(tracr.TracrError, match=r"'ngram' is no case and no tag\n  hint: .*ngrams"):
        lab.select_cases(["ngram"])
