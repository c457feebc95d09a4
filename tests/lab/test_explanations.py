"""Explanations: roles and programs that are submitted, their scores, the reference, the nulls, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tracr import lab
from tracr.explaining.roles import ROLES
from tracr.lab.explained.structure import match, structure

TWINS = "docs/natural/twins"
HIST2 = lab.subject("hist2")


def answer(**roles: Any) -> dict[str, Any]:
    """An answer for components of layer 0 ("attn_0") and others ("mlp_1")."""
    return {"components": {name: {"role": role} for name, role in roles.items()}}


@pytest.mark.parametrize("realisation", ["compiled", "rotated", "decoys", "two_programs", "superposed", "backup"])
def test_the_reference_is_right_and_nulls_are_not(realisation: str) -> None:
    """On every realisation the truth scores 1; a random answer scores about the chance level."""
    subject = lab.subject("hist2", realisation)
    assert lab.explanations(subject, lab.true_explanations(subject)).accuracy == 1
    random = [lab.explanations(subject, lab.random_explanations(subject, seed)) for seed in range(200)]
    assert abs(np.mean([one.accuracy for one in random]) - random[0].chance) < 0.05
    assert lab.explanations(subject, lab.constant_explanations(subject)).accuracy < 1


def test_twins() -> None:
    """Heads and MLPs that the teacher does not have do nothing."""
    subject = lab.subject("hist", "twin", seed=0, twins=TWINS)
    found = lab.explanations(subject, lab.true_explanations(subject))
    assert found.accuracy == found.exact == 1
    assert found.by_role["none"].true == len(found.by_component) - 2
    assert lab.explanations(subject, lab.constant_explanations(subject)).accuracy < 1


def test_scores_by_hand() -> None:
    """Three counts and two decodes, one comparison: overlaps, chance, roles."""
    truth = {name: one.roles for name, one in HIST2.case.roles().items() if name.startswith("blocks")}
    assert sorted(truth.values()) == [("compare",), ("count",), ("count",), ("count",), ("decode",), ("decode",)]
    given = {"blocks.0.attn.0": "count", "blocks.0.attn.1": ["count", "copy"], "blocks.1.mlp": "decode"}
    found = lab.explanations(HIST2, {"components": {name: {"role": role} for name, role in given.items()}})
    assert found.accuracy == pytest.approx((1 + 0.5 + 0) / 6)
    assert found.exact == pytest.approx(1 / 6)
    assert found.chance == pytest.approx((3 / 4 + 3 / 6) / 6)
    assert found.answered == 3
    assert vars(found.by_role["count"]) == {"true": 3, "answered": 2, "right": 2}
    assert found.by_role["count"].recall == pytest.approx(2 / 3)
    assert found.by_role["decode"].precision == 0
    assert found.by_role["copy"].recall is None


def test_files_and_texts(tmp_path: Path) -> None:
    """A filled form is an answer; texts do not matter."""
    form = lab.explanation_form(HIST2)
    assert form["roles"] == dict(ROLES)
    assert all(one["role"] is None for one in form["components"].values())
    empty = lab.explanations(HIST2, form)
    assert (empty.accuracy, empty.answered) == (0, 0)
    filled = lab.true_explanations(HIST2)
    filled["components"]["blocks.0.mlp"]["text"] = "__import__('os').system('false')"
    (tmp_path / "roles.json").write_text(json.dumps(filled))
    assert lab.explanations("hist2", tmp_path / "roles.json").accuracy == 1


@pytest.mark.parametrize(
    ("submitted", "message"),
    [
        ({}, "has no components"),
        ({"components": []}, "components is not a JSON object"),
        ({"components": {"blocks.0.atn.0": {"role": "count"}}}, "no component of the subject(?s:.)*did you mean"),
        ({"components": {"embed": {"role": "embed"}}}, "no component of the subject(?s:.)*the components are"),
        ({"components": {"blocks.0.mlp": {"role": "decodes"}}}, "is no role: 'decodes'(?s:.)*did you mean decode"),
        ({"components": {"blocks.0.mlp": {"role": 3}}}, "is no role: 3(?s:.)*the roles are"),
        ({"components": {"blocks.0.mlp": "decode"}}, "has no role(?s:.)*write"),
        ({"components": {}, "case": "hist"}, "is not the case of the subject, 'hist2'"),
        ({"components": {}, "extra": 1}, "has unknown 'extra'"),
        ({"components": {"blocks.0.mlp": {"role": print}}}, "explanations are JSON"),
    ],
)
def test_malformed_roles(submitted: Any, message: str) -> None:
    """Refused with the place and what to write."""
    with pytest.raises(tracr.TracrError, match=message):
        lab.explanations(HIST2, submitted)


def test_files_that_are_not_json(tmp_path: Path) -> None:
    """A text, a missing file, a folder."""
    (tmp_path / "a.json").write_text("{'components': 1}")
    for name in ("a.json", "missing.json", "."):
        with pytest.raises(tracr.TracrError):
            lab.explanations(HIST2, tmp_path / name)


# Programs

RIGHT = """
same = select(tokens, tokens, ==);
hist = selector_width(same);
first = selector_width(same and select(indices, indices, <)) == 0;
answer = selector_width(select(hist, hist, ==) and select(first, True, ==));
"""


def test_the_right_program() -> None:
    """All inputs agree, and the structure is that of the case."""
    found = lab.score_program("hist2", RIGHT)
    assert (found.agreement, found.exhaustive, found.structure) == (1, True, 1)
    assert found.counterexample is None
    assert found.missing == found.extra == ()
    assert found.inputs == sum(4**length for length in range(1, 6))


def test_wrong_programs() -> None:
    """Another program; the right answers by other means; a program that fails."""
    other = lab.score_program("hist", "answer = selector_width(select(tokens, tokens, !=));")
    assert other.agreement < 0.1
    assert other.counterexample is not None
    tokens, wanted, got = other.counterexample
    assert wanted == [tokens.count(token) for token in tokens] != got
    assert (other.missing, other.extra) == (("count: tokens == tokens",), ("count: tokens != tokens",))
    means = lab.score_program("hist", "n = length - selector_width(select(tokens, tokens, !=));")
    assert means.agreement == 1
    assert means.structure == 0
    first = lab.score_program("hist", "a = selector_width(select(tokens, tokens, ==)); b = a + 1;", name="a")
    assert first.agreement == 1
    assert first.structure == 1


def test_a_sample(tmp_path: Path) -> None:
    """With more inputs than the budget, a sample from the seed."""
    (tmp_path / "hist.rasp").write_text("answer = selector_width(select(tokens, tokens, ==));")
    found = lab.score_program("hist", tmp_path / "hist.rasp", budget=50, seed=3)
    assert not found.exhaustive
    assert 40 <= found.inputs <= 60
    assert found.agreement == 1
    assert json.loads(json.dumps(found.as_json()))["structure"] == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("answer = selector_width(", "<submission>"),
        ('load "/etc/passwd"; a = indices;', "loads the file"),
        ('for i in [1] { load "x"; } a = indices;', "loads the file|expected|unexpected"),
        ("a = 3;", "defines no s-op"),
        ("import os; a = indices;", "<submission>"),
        ("a = __import__('os');", "<submission>"),
    ],
)
def test_malformed_programs(text: str, message: str) -> None:
    """Refused with the place; nothing is executed as Python, and no file is read."""
    with pytest.raises(tracr.TracrError, match=message):
        lab.score_program("hist", text)
    with pytest.raises(tracr.TracrError, match="defines no s-op 'b'"):
        lab.score_program("hist", "a = indices;", name="b")


def test_structures() -> None:
    """Every case has the structure of itself; match is symmetric, 1 for equal ones and 0 for disjoint ones."""
    found = [structure(lab.case(name).model.program) for name in ("hist", "hist2", "sort", "induction_head", "dyck1")]
    for one in found:
        assert match(one, one) == 1
        for other in found:
            assert match(one, other) == match(other, one)
    assert match(found[0], found[3]) == 0
    assert 0 < match(found[0], found[1]) < 1
