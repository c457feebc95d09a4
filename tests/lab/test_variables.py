"""The track "variables": questions, scores, methods without frameworks, the control, rows and the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tests.cli.calling import invoke
from tracr import lab
from tracr.lab.choices import Configured
from tracr.lab.finding import method_for
from tracr.lab.methods import run_method
from tracr.lab.reporting.variables_report import VariablesReport
from tracr.lab.variables import (
    CONTROL,
    VARIABLE_METHODS,
    FoundVariable,
    LinearSubspace,
    interchange_accuracy,
    principal_angles,
    questions_for,
    score_found,
)
from tracr.lab.variables.choosing import Labelled
from tracr.lab.variables.found import span_of
from tracr.lab.variables.invertible import InvertibleFeaturiser, _couplings
from tracr.lab.variables.network import stream_network
from tracr.lab.variables.probing import train_classifier
from tracr.lab.variables.scoring import true_subspace
from tracr.rasp import rasp
from tracr.zoo import Entry

TWINS = "docs/natural/twins"
QUICK = ("difference-of-means", "random-subspace", "true-subspace")


def asked(case: str | lab.Case, realisation: str, pairs: int = 64, **dials: Any) -> tuple[Any, Any, Any]:
    """A subject with its questions."""
    subject = lab.subject(case, realisation, seed=0, **dials)
    return (subject, *questions_for(subject, pairs, 0))


def scores_of(method: str, subject: Any, training: Any, examination: Any) -> dict[str, Any]:
    """The scores of a method by the name of the question."""
    found = run_method(VARIABLE_METHODS[method], subject, training).scores
    return {
        question.name: score_found(subject, found[question.name], before, question, examination)
        for before, question in zip(training.questions, examination.questions, strict=True)
    }


@pytest.mark.parametrize(
    ("case", "realisation"),
    [
        ("hist2", "layer_norm"),
        ("sort", "rotated"),
        *(
            pytest.param(case, realisation, marks=pytest.mark.slow)
            for case in ("hist2", "sort", "dyck1")
            for realisation in ("compiled", "noise", "decoys", "two_programs")
        ),
    ],
)
def test_the_true_subspace_has_full_marks(case: str, realisation: str) -> None:
    """The variable's own directions, where the labels have them: every answer is the program's, every value decoded."""
    for name, one in scores_of("true-subspace", *asked(case, realisation)).items():
        assert one.interchange == (0.5 if name == CONTROL else 1.0), name
        if name != CONTROL:
            assert one.decoding > 0.99
            assert one.right_place
            assert one.overlap == pytest.approx(1)
            assert one.angle == pytest.approx(0, abs=1e-4)


def test_interchange_answers_are_what_setting_the_variable_gives() -> None:
    """The answers of the questions against `run(set=...)`, which runs the compiled model."""
    subject, training, _ = asked("hist2", "compiled")
    model, compared = subject.model, 0
    for question in training.questions:
        if question.name == CONTROL:
            continue
        pairs = question.pairs
        for row in range(0, 40):
            base, source = (model.vocabulary.decode(ids[row, 1:].tolist()) for ids in (pairs.base, pairs.source))
            ours, theirs = (model.interpret(tokens)[question.name] for tokens in (base, source))
            mixed = [theirs[p] if pairs.swapped[row, p + 1] else ours[p] for p in range(len(base))]
            got = model.run(base, set={question.name: mixed}).decoded
            assert got == [training.output.domain.values[code] for code in pairs.answers[row, 1:]]
            assert (got != model(base)) == pairs.changes[row]
            compared += 1
    assert compared > 80


def test_a_map_that_does_nothing_has_one_half_and_a_whole_swap_less_than_the_truth() -> None:
    """Half of the score is for interchanges that must not change the answer."""
    _, _, examination = asked("hist2", "compiled")
    network = examination.network
    for question in examination.questions:
        for place in network.places:
            nothing = FoundVariable(place, LinearSubspace(np.zeros((0, network.width))))
            assert interchange_accuracy(nothing, question, network, examination.output) == 0.5
    early = FoundVariable(network.places[0], LinearSubspace(np.eye(network.width)))
    found = interchange_accuracy(early, examination.questions[0], network, examination.output)
    assert found is not None
    assert found < 0.95


def test_the_control_is_another_program_with_the_same_answers() -> None:
    """Its variable is a function of the token with both values; replaced, answers move in the list of all answers."""
    subject, training, examination = asked("hist", "compiled")
    for data in (training, examination):
        question = data.questions[-1]
        assert question.name == CONTROL
        assert {*np.unique(question.codes[:, 1:])} == {0, 1}
        pairs = question.pairs
        by_token = {
            token: {int(code) for code in question.codes[:, 1:][question.ids[:, 1:] == token]}
            for token in np.unique(question.ids[:, 1:])
        }
        assert all(len(codes) == 1 for codes in by_token.values())
        base = np.array([[by_token[token].copy().pop() for token in row] for row in pairs.base[:, 1:]])
        source = np.array([[by_token[token].copy().pop() for token in row] for row in pairs.source[:, 1:]])
        differs = (base != source) & pairs.swapped[:, 1:]
        usual = subject.model.outputs[0].codes(subject.model.logits(pairs.base))[:, 1:]
        assert ((pairs.answers[:, 1:] != usual) == differs).all()
        assert (differs.any(axis=1) == pairs.changes).all()
    assert training.questions[-1].pairs.changes.mean() == 0.5


class Memorised:
    """A map of unlimited capacity: it looks up the answer and g of each stream, and a stream with the answer wanted."""

    def __init__(self, data: Any, question: Any, place: str) -> None:
        streams = data.network.streams(question.ids)[place]
        self.rows = streams[:, 1:].reshape(-1, streams.shape[-1])
        self.g = question.codes[:, 1:].ravel()
        self.answers = data.output.codes(data.network.logits_from(place, streams))[:, 1:].ravel()
        self.listed, first = np.unique(self.answers, return_index=True)
        self.example = self.rows[first]

    def features(self, stream: Any) -> Any:
        """The stream itself."""
        return stream

    def swapped(self, base: Any, source: Any) -> Any:
        """A stream whose answer is as many places further in the list as g of the source is above that of the base."""
        ours, theirs = (((one[..., None, :] - self.rows) ** 2).sum(axis=-1).argmin(axis=-1) for one in (base, source))
        moved = self.g[theirs] - self.g[ours]
        place = (np.searchsorted(self.listed, self.answers[ours]) + moved) % len(self.listed)
        return np.where((moved != 0)[..., None], self.example[place], base)


@pytest.mark.parametrize("case", ["hist", "mean_so_far", "shift_by"])
def test_a_map_of_unlimited_capacity_fails_the_control(case: str) -> None:
    """It makes the model seem to run the program that it does not run; the variable's own subspace does not."""
    subject, training, examination = asked(case, "rotated")
    place = training.network.places[-1]
    before, question = training.questions[-1], examination.questions[-1]
    found = FoundVariable(place, Memorised(training, before, place))
    assert score_found(subject, found, before, question, examination).interchange > 0.95  # type: ignore[operator]
    assert scores_of("true-subspace", subject, training, examination)[CONTROL].interchange <= 0.75


def test_inputs_for_scores_are_not_those_for_training() -> None:
    """No input is in both."""
    _, training, examination = asked("hist", "compiled")
    seen = {tuple(row) for question in training.questions for row in question.ids.tolist()}
    assert not seen & {tuple(row) for question in examination.questions for row in question.ids.tolist()}
    assert not seen & {tuple(row) for question in examination.questions for row in question.pairs.base.tolist()}


def test_a_network_cut_at_any_place_gives_the_models_logits() -> None:
    """Compiled models, layer norms, twins."""
    for subject in (
        lab.subject("hist2", "compiled"),
        lab.subject("hist2", "layer_norm"),
        lab.subject("hist", "twin", twins=TWINS),
    ):
        network = stream_network(subject)
        ids = subject.model.encode(subject.case.inputs(8))
        for place, stream in network.streams(ids).items():
            got = network.logits_from(place, stream)
            np.testing.assert_allclose(got[:, 1:], subject.model.logits(ids)[:, 1:], atol=1e-3, err_msg=place)


def test_difference_of_means_finds_an_orthogonal_variable() -> None:
    """`hist`, compiled and rotated, and in a twin; it passes the control there."""
    for realisation in ("compiled", "rotated", "twin"):
        scores = scores_of("difference-of-means", *asked("hist", realisation, twins=TWINS))
        assert scores["hist"].interchange > 0.95
        assert scores["hist"].decoding > 0.95
        assert scores[CONTROL].interchange < 0.75
        assert (scores["hist"].right_place is None) == (realisation == "twin")


def test_probes_learn_what_they_can() -> None:
    """A linear probe separates by a line, and an MLP also what no line separates; gradients by finite differences."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(400, 3))
    for hidden, codes, right in (
        ((), points[:, 0] > 0, True),
        ((), points[:, 0] * points[:, 1] > 0, False),
        ((32,), points[:, 0] * points[:, 1] > 0, True),
    ):
        labelled = Labelled(points, codes.astype(int), points, codes.astype(int), 2)
        probe = train_classifier(labelled, hidden, steps=300, rate=0.05, seed=1)
        assert ((probe(points) == codes).mean() > 0.93) == right


def test_linear_probe_and_its_selectivity() -> None:
    """A probe decodes the variable, and the random labels of tokens too: selectivity shows it."""
    scores = scores_of("linear-probe", *asked("hist", "compiled"))
    assert scores["hist"].decoding > 0.95
    assert scores[CONTROL].decoding > 0.95


def test_subspaces_and_angles() -> None:
    """Spans, principal angles, and the true subspace of a variable."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(2, 5))
    basis = span_of(np.vstack([rows, rows.sum(axis=0)]))
    assert basis.shape == (2, 5)
    assert principal_angles(basis, span_of(rows)).max() < 1e-4
    subject, training, _ = asked("hist2", "rotated")
    question, model = training.questions[0], subject.model
    last = training.network.places[-1]
    own = true_subspace(model, question, last)
    assert own is not None
    streams, codes = training.network.streams(question.ids)[last][:, 1:], question.codes[:, 1:]
    left = streams - streams @ own.T @ own
    means = np.array([left[codes == value].mean(axis=0) for value in range(question.values)])
    others = [one for one in training.questions if one.name not in (question.name, CONTROL)]
    assert others
    assert len(own) == question.values - 1
    assert np.isfinite(means).all()
    assert true_subspace(model, question, training.network.places[0]) is None


def test_an_invertible_network_is_inverted() -> None:
    """Swapping with itself changes nothing, and features of the result are those of the source."""
    rng = np.random.default_rng(3)
    width = 7
    parameters = {
        "rotation": np.linalg.qr(rng.normal(size=(width, width)))[0],
        "mean": rng.normal(size=width),
        "scale": np.array(2.0),
        "f": tuple(10 * part for part in _couplings(rng, 2, width - width // 2, 16, width // 2)),
        "g": tuple(10 * part for part in _couplings(rng, 2, width // 2, 16, width - width // 2)),
    }
    map_ = InvertibleFeaturiser(parameters)
    base, source = rng.normal(size=(2, 4, 3, width))
    np.testing.assert_allclose(map_.swapped(base, base), base, atol=1e-9)
    np.testing.assert_allclose(map_.features(map_.swapped(base, source)), map_.features(source), atol=1e-9)
    assert not np.allclose(map_.swapped(base, source), source)


def test_cases_without_variables_are_refused() -> None:
    """The tokens are embedded: no head and no MLP computes them."""
    entry = Entry(
        name="same_token",
        build=lambda vocab, length: rasp.tokens,
        vocab=(0, 1, 2),
        max_seq_len=3,
        shown=(0, 1, 2),
        description="The same token.",
        answers=lambda xs, vocab: list(xs),
        tags=("mine",),
    )
    with pytest.raises(tracr.TracrError, match=r"no variable of same_token changes answers|without layers"):
        asked(lab.Case(entry), "compiled")


def test_methods_belong_to_tracks() -> None:
    """A method of another track is refused; names are different in all tracks."""
    with pytest.raises(tracr.InputError, match="das answers the track variables, not edges"):
        method_for(Configured("das"), "edges")
    assert method_for(Configured("difference_of_means"), "variables").name == "difference-of-means"


def test_a_run_its_table_and_its_report(tmp_path: Path) -> None:
    """Rows of the track, one table, and a report that says which methods pass the control."""
    pytest.importorskip("pyarrow.parquet")
    own = tmp_path / "own.py"
    own.write_text(
        "from tracr.lab.variables import FoundVariable, LinearSubspace\n"
        "import numpy as np\n"
        "def everything(subject, data):\n"
        "    place = data.network.places[-1]\n"
        "    whole = FoundVariable(place, LinearSubspace(np.eye(data.network.width)))\n"
        "    return {one.name: whole for one in data.questions}\n"
        "def silent(subject, data):\n"
        "    return {}\n"
    )
    methods = [*QUICK, f"{own}:everything", f"{own}:silent"]
    conditions = lab.Conditions(pairs=32, track="variables")
    given: Any = {"folder": tmp_path / "results", "conditions": conditions}
    made = lab.run(methods, ["hist", "hist_so_far"], ["compiled", "rotated"], [0], **given)
    assert (made.made, made.failed) == (20, 4)
    assert lab.run(methods, ["hist", "hist_so_far"], ["compiled", "rotated"], [0], **given).found == 20
    rows = lab.read_results(tmp_path / "results")
    silent = [row for row in rows if row["method"] == "own.py:silent"]
    assert all("no FoundVariable for" in row["error"] for row in silent)
    assert len(rows) == made.made
    for row in rows:
        if row["status"] == "done":
            assert row["interchange"] == pytest.approx(np.mean(row["interchanges"]))
            if row["control_decoding"] is None:
                assert row["method"] == "true-subspace"
            else:
                assert row["selectivity"] == pytest.approx(np.mean(row["decodings"]) - row["control_decoding"])
    report = lab.report(tmp_path / "results")
    assert isinstance(report, VariablesReport)
    verdicts = {(row[0], row[1]): row[-1] for row in report.tables["control"].rows}
    assert verdicts["rotated", "difference-of-means"] == verdicts["compiled", "true-subspace"] == "passes"
    assert verdicts["compiled", "own.py:silent"] == "undefined"
    assert "difference-of-means: passes on compiled, rotated." in report.html
    assert report.save(tmp_path / "all").exists()
    assert (tmp_path / "all" / "tables" / "control.csv").read_text().startswith("realisation,method,")
    shown = invoke("lab", "report", str(tmp_path / "results"))
    assert "interchange" in shown
    with pytest.raises(tracr.TracrError, match="has results of a sweep with another track"):
        lab.run(["exact"], ["hist"], folder=tmp_path / "results", conditions=lab.Conditions(pairs=32))
