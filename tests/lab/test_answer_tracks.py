"""The tracks "explanations" and "predictions" in a run: rows, the references and nulls, and the reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.calling import invoke
from tracr import lab
from tracr.errors import InputError
from tracr.lab.explained.attention_roles import head_role
from tracr.lab.reporting import AnswersReport
from tracr.lab.track import EXPLANATIONS, PREDICTIONS

METHODS = {
    EXPLANATIONS.name: ["attention-roles", "constant-roles", "random-roles", "true-roles"],
    PREDICTIONS.name: ["circuit", "no-change", "program"],
}


def rows_of(track: str, folder: Path, **given: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """The rows of a small run by case and method, all of which are done."""
    pytest.importorskip("pyarrow")
    conditions = lab.Conditions(pairs=24, track=track)
    lab.run(
        given.pop("methods", METHODS[track]), ["hist", "sort_unique"], folder=folder, conditions=conditions, **given
    )
    rows = lab.read_results(folder)
    assert {row["status"] for row in rows} == {"done"}, [row["error"] for row in rows]
    return {(row["case"], row["method"]): row for row in rows}


def test_explanations_are_scored_in_a_run(tmp_path: Path) -> None:
    """The scores of the rows are those of `lab.explanations`; the truth has 1, and a null less."""
    rows = rows_of(EXPLANATIONS.name, tmp_path)
    subject = lab.subject("sort_unique")
    alone = lab.explanations(subject, lab.constant_explanations(subject))
    assert rows["sort_unique", "constant-roles"]["accuracy"] == alone.accuracy < 1
    assert rows["sort_unique", "true-roles"]["accuracy"] == 1
    row = rows["sort_unique", "attention-roles"]
    assert np.mean(row["by_component"]) == pytest.approx(row["accuracy"])
    assert row["above_chance"] == row["accuracy"] - row["chance"]


def test_predictions_are_scored_in_a_run(tmp_path: Path) -> None:
    """The program is right, no change is wrong where it matters, and a circuit knows edges but no variables."""
    rows = rows_of(PREDICTIONS.name, tmp_path)
    for case in ("hist", "sort_unique"):
        assert rows[case, "program"]["overall"] == 1
        assert rows[case, "no-change"]["where_it_matters"] == 0
        assert rows[case, "circuit"]["patch"] > 0.9
    assert rows["sort_unique", "circuit"]["set"] == 0


def test_a_method_of_a_user_is_scored(tmp_path: Path) -> None:
    """A file with a function for each track; what is no answer is a row with its error."""
    file = tmp_path / "mine.py"
    file.write_text(
        "def roles(subject, form):\n"
        "    return {'components': {name: {'role': one['possible'][0]} for name, one in form['components'].items()}}\n"
        "def answers(subject, asked):\n"
        "    return {one.number: one.unchanged for one in asked.questions}\n"
        "def nothing(subject, asked):\n"
        "    return {'first': 1}\n"
    )
    own = rows_of(EXPLANATIONS.name, tmp_path / "roles", methods=[f"{file}:roles"])
    assert own["hist", "mine.py:roles"]["accuracy"] == 1  # it counts and decodes, the first role of each kind
    same = rows_of(PREDICTIONS.name, tmp_path / "answers", methods=[f"{file}:answers"])
    assert same["hist", "mine.py:answers"]["where_it_matters"] == 0
    with pytest.raises(AssertionError, match="by the number of their question"):
        rows_of(PREDICTIONS.name, tmp_path / "nothing", methods=[f"{file}:nothing"])


@pytest.mark.parametrize("track", METHODS)
def test_the_report_has_intervals_and_what_was_left_out(track: str, tmp_path: Path) -> None:
    """Tables, plots and the page, also by the command line."""
    rows_of(track, tmp_path)
    report = lab.report(tmp_path)
    assert isinstance(report, AnswersReport)
    assert report.track.name == track
    best = {EXPLANATIONS.name: "true-roles", PREDICTIONS.name: "program"}[track]
    scores = {one.method: one.scores[report.track.scores[0]] for one in report.leaderboard()}
    first = {name: 0.0 if one is None else one.mean for name, one in scores.items()}
    assert first[best] == max(first.values()) == 1
    assert ("roles" in report.tables) == (track == EXPLANATIONS.name)
    assert report.html.count("<svg") == 3
    invoke("lab", "report", tmp_path, "-o", tmp_path / "page.html")
    assert best in (tmp_path / "page.html").read_text()


def test_counts_of_roles_are_those_of_the_components(tmp_path: Path) -> None:
    """Precision and recall in the report: over all cases, recomputed from the answers."""
    rows_of(EXPLANATIONS.name, tmp_path, methods=["constant-roles"])
    found = {row[2]: row[3:] for row in lab.report(tmp_path).tables["roles"].rows}
    true = [one["role"] for case in ("hist", "sort_unique")
            for one in lab.true_explanations(lab.subject(case))["components"].values()]  # fmt: skip
    decoders = sum("decode" in roles for roles in true)
    answered = sum(".mlp" in name for case in ("hist", "sort_unique")
                   for name in lab.explanation_form(lab.subject(case))["components"])  # fmt: skip
    assert found["decode"] == (decoders, answered, decoders / answered, 1.0)


def test_a_method_of_another_track_is_refused(tmp_path: Path) -> None:
    """The message names the track of the method."""
    with pytest.raises(InputError, match="answers the track edges"):
        lab.run(["eap"], ["hist"], folder=tmp_path, conditions=lab.Conditions(track=PREDICTIONS.name))


def test_roles_of_patterns() -> None:
    """Weights on BOS that vary count; sharp rows whose key varies copy."""
    rng = np.random.default_rng(0)
    counting = np.full((6, 4, 5), 0.1)
    counting[..., 0] = rng.uniform(0.2, 0.6, size=(6, 4))
    assert head_role(counting) == "count"
    assert head_role(np.eye(5)[rng.integers(1, 5, size=(6, 4))]) == "copy"
