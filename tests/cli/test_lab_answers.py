"""`tracr lab explanations` and `tracr lab predictions`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.calling import invoke, invoke_json, run
from tracr import lab


def test_explanations(tmp_path: Path) -> None:
    """The form, a filled form, a program, and errors that teach."""
    form, program = tmp_path / "roles.json", tmp_path / "hist.rasp"
    assert f"wrote {form}" in invoke("lab", "explanations", "--subject", "hist", "-o", form)
    assert json.loads(form.read_text())["case"] == "hist"
    form.write_text(json.dumps(lab.true_explanations(lab.subject("hist"))))
    assert "accuracy 1.000 (chance 0.208)" in invoke("lab", "explanations", form, "--subject", "hist")
    assert invoke_json("lab", "explanations", form, "--subject", "hist")["by_role"]["count"]["recall"] == 1
    program.write_text("answer = selector_width(select(tokens, tokens, <=));")
    shown = invoke("lab", "explanations", program, "--subject", "hist")
    assert "on all 1,364 inputs" in shown
    assert "missing: count: tokens == tokens" in shown
    form.write_text('{"components": {"blocks.0.mlp": {"role": "decod"}}}')
    done = run("lab", "explanations", str(form), "--subject", "hist")
    assert done.returncode == 1
    assert "did you mean decode?" in done.stderr
    assert run("lab", "explanations", str(form)).returncode == 2


def test_predictions(tmp_path: Path) -> None:
    """Questions, answers of a baseline, and their scores next to the baselines."""
    questions, answers = tmp_path / "questions.json", tmp_path / "answers.json"
    options = ("--subject", "hist2", "--count", "8", "--realisation", "compiled:level=2")
    invoke("lab", "predictions", *options, "-o", questions)
    invoke("lab", "predictions", *options, "--baseline", "no_change", "-o", answers)
    assert json.loads(questions.read_text())["about"]["dials"] == {"level": 2}
    found = invoke_json("lab", "predictions", answers)
    assert found["answers"]["where_it_matters"] == 0
    assert found["program"]["overall"] == 1
    assert "where it matters" in invoke("lab", "predictions", answers)
    assert len(json.loads(invoke("lab", "predictions", *options))["questions"]) == 8
    done = run("lab", "predictions", str(tmp_path / "missing.json"))
    assert done.returncode == 1
    assert run("lab", "predictions", *options, "--baseline", "best").returncode == 2
