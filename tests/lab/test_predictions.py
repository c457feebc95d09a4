"""Predictions: questions with true answers, baselines, scores, and files that are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tracr
from tracr import lab
from tracr.lab.predicted.setting_questions import settable

TWINS = "docs/natural/twins"
HIST2 = lab.subject("hist2")
ASKED = lab.predictions(HIST2, count=24, seed=2)


def scored(asked: lab.Predictions, answers: Any) -> lab.PredictionScores:
    """The scores of answers, through their JSON."""
    return asked.score(json.loads(json.dumps(asked.answers_json(answers))))


def test_questions() -> None:
    """As many of each kind, half of which matter; the same arguments give the same questions; JSON has no answers."""
    kinds = [one.kind for one in ASKED.questions]
    assert kinds == ["set"] * 12 + ["patch"] * 12
    for kind in ("set", "patch"):
        assert sum(one.matters for one in ASKED.questions if one.kind == kind) >= 6
    assert [one.number for one in ASKED.questions] == list(range(24))
    assert len({**dict.fromkeys(ASKED.questions, 0)}) == 24
    again = lab.predictions("hist2", count=24, seed=2)
    assert again.as_json() == ASKED.as_json() != lab.predictions("hist2", count=24, seed=3).as_json()
    keys = {key for question in ASKED.as_json()["questions"] for key in question}
    assert keys == {"id", "kind", "input", "set", "patch", "unchanged"}


def test_true_answers_of_set_by_hand() -> None:
    """count_less_freq counts the tokens that are there once: with hist changed, the ones in the changed hist."""
    asked = lab.predictions("count_less_freq", count=40, seed=1, kinds=["set"])
    assert {one.variable for one in asked.questions} == {"hist"}
    for one in asked.questions:
        hist = [one.tokens.count(token) for token in one.tokens]
        assert one.unchanged == (hist.count(1),) * len(hist)
        hist[one.position] = one.value  # type: ignore[call-overload]
        assert one.true == (hist.count(1),) * len(hist)


def test_true_answers_of_patches_by_hand() -> None:
    """A head of hist that sees the tokens of another input as queries, or as keys, counts these."""
    asked, checked = lab.predictions("hist", count=200, kinds=["patch"]), 0
    for one in asked.questions:
        match one.edge:
            case ("embed", "blocks.0.attn.0.q"):
                counts = [one.tokens.count(token) for token in one.other]
            case ("embed", "blocks.0.attn.0.k"):
                counts = [one.other.count(token) for token in one.tokens]
            case _:
                continue
        for count, answer in zip(counts, one.true, strict=True):
            if count:  # no input has a count of 0
                assert answer == count
                checked += 1
    assert checked > 50


@pytest.mark.parametrize("name", ["hist2", "dyck1", "induction_head", "most_freq"])
def test_the_program_is_right_and_no_change_is_not(name: str) -> None:
    """The program predicts every `set`; a prediction that nothing changes is right where nothing changes."""
    asked = lab.predictions(name, count=16)
    program, same = scored(asked, asked.baseline("program")), scored(asked, asked.baseline("no_change"))
    assert program.by_kind["set"].overall == program.by_kind["set"].where_it_matters == 1
    assert program.overall == 1  # a compiled model is patched like itself
    assert same.where_it_matters == 0
    assert same.overall == pytest.approx(1 - same.mattering / same.questions)


@pytest.mark.parametrize("realisation", ["rotated", "decoys", "two_programs", "superposed"])
def test_realisations(realisation: str) -> None:
    """The same questions about variables for every realisation; edges are patched in the subject itself."""
    asked = lab.predictions(lab.subject("hist2", realisation), count=24, seed=2)
    assert [one for one in asked.questions if one.kind == "set"] == [
        one for one in ASKED.questions if one.kind == "set"
    ]
    program = scored(asked, asked.baseline("program"))
    assert program.by_kind["set"].overall == 1
    assert program.by_kind["patch"].where_it_matters is not None
    exact = realisation != "superposed"  # patches may leave the values that its directions tell apart
    assert program.by_kind["patch"].where_it_matters == 1 or not exact


def test_circuits() -> None:
    """The true circuit predicts patches, the empty one that nothing changes; one without a needed edge errs."""
    asked = lab.predictions("hist", count=40, kinds=["patch"])
    alone = asked.subject.truth.alone
    assert scored(asked, asked.baseline("circuit", alone)).overall == 1
    assert asked.baseline("circuit") == asked.baseline("no_change")
    lacking = scored(asked, asked.baseline("circuit", alone[1:]))
    assert lacking.where_it_matters is not None
    assert lacking.where_it_matters < 1


def test_twins() -> None:
    """A twin's edges are patched in the twin; its teacher predicts them."""
    subject = lab.subject("hist", "twin", seed=0, twins=TWINS)
    asked = lab.predictions(subject, count=30, kinds=["patch"])
    assert {one.edge for one in asked.questions} <= {*subject.candidates}
    program = scored(asked, asked.baseline("program"))
    assert program.where_it_matters is not None
    assert program.where_it_matters > 0.9


def test_what_is_set() -> None:
    """Computed variables that are not the output; a program without any is refused for `set` alone."""
    assert settable(lab.case("hist2").model) == ["hist", "selector_width", "first"]
    with pytest.raises(tracr.TracrError, match=r'no variable of hist can be set(?s:.)*kinds=\["patch"\]'):
        lab.predictions("hist", kinds=["set"])
    assert {one.kind for one in lab.predictions("hist", count=4).questions} == {"patch"}


def test_files(tmp_path: Path) -> None:
    """Questions and answers as files; a file of answers says which questions it answers."""
    ASKED.write(tmp_path / "questions.json")
    ASKED.write_answers(tmp_path / "answers.json", ASKED.baseline("program"))
    assert json.loads((tmp_path / "questions.json").read_text())["about"]["case"] == "hist2"
    again = lab.read_predictions(tmp_path / "answers.json")
    assert again.as_json() == ASKED.as_json()
    assert again.score(tmp_path / "answers.json").overall == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.json", "questions.json"]


def test_missing_answers_are_wrong() -> None:
    """Half of the answers give half of the score."""
    answers = {number: row for number, row in ASKED.baseline("program").items() if number % 2}
    found = scored(ASKED, answers)
    assert (found.overall, found.answered) == (0.5, 12)


def changed(**parts: Any) -> dict[str, Any]:
    """A file of right answers with some parts changed."""
    return ASKED.answers_json(ASKED.baseline("program")) | parts


ROW = {"id": 0, "answer": [1, 1, 1, 1, 1]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "lacks 'about', 'answers'(?s:.)*answers are"),
        (changed(format="other"), "is not one of tracr answers"),
        (changed(about={"case": "hist"}), "not what these questions are about(?s:.)*copy `about`"),
        (changed(answers={}), "answers is not a JSON list"),
        (changed(answers=[{"id": 99, "answer": []}]), "is no question; there are 24"),
        (changed(answers=[ROW, ROW]), "has two answers: 0"),
        (changed(answers=[{**ROW, "answer": [1]}]), "has 1 values for 5 tokens(?s:.)*every position"),
        (changed(answers=[{**ROW, "answer": "11111"}]), "answer is not a JSON list"),
        (changed(answers=[{"id": 0}]), "lacks 'answer'"),
        (changed(answers=[{**ROW, "id": True}]), "id"),
        (changed(answers=[{**ROW, "answer": [object()]}]), "answers are JSON"),
    ],
)
def test_malformed_answers(content: dict[str, Any], message: str) -> None:
    """Refused with the place and what to write."""
    with pytest.raises(tracr.TracrError, match=message):
        ASKED.score(content)


def test_refusals(tmp_path: Path) -> None:
    """Unknown kinds and baselines, other weights, and a file that would train a twin."""
    with pytest.raises(tracr.TracrError, match="kinds"):
        lab.predictions("hist", kinds=["other"])
    with pytest.raises(tracr.TracrError, match="there are no kinds"):
        lab.predictions("hist", kinds=[])
    with pytest.raises(tracr.TracrError, match="baseline"):
        ASKED.baseline("best")
    for part, message in (
        ({"digest": "0"}, "digest is not that of the subject"),
        ({"realisation": "twin"}, "about a twin, which is not trained"),
        ({"count": 10**9}, "count"),
        ({"dials": {"level": [1]}}, "neither a number nor a string"),
    ):
        (tmp_path / "a.json").write_text(json.dumps(changed(about={**ASKED.about, **part})))
        with pytest.raises(tracr.TracrError, match=message):
            lab.read_predictions(tmp_path / "a.json")
