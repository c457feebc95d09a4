"""The replacement track: claims about components, scored by putting the claimed parts in their places."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.calling import invoke, invoke_json
from tracr import lab
from tracr.errors import FormatError

pytest.importorskip("torch")

from tracr import graft

TWINS = "docs/natural/twins"


def claim(**parts: Any) -> dict[str, Any]:
    """A submission for layer 0: attn_0="hist blocks.0.attn.0"."""
    return {"components": {f"blocks.0.{name.replace('_', '.')}": {"part": part} for name, part in parts.items()}}


def test_right_and_wrong_claims(tmp_path: Path) -> None:
    """On a compiled model: a right claim recovers everything and is the same function; a wrong one is not."""
    right = claim(attn_0="hist2 blocks.0.attn.0", mlp="hist blocks.0.mlp")
    file = tmp_path / "claims.json"
    file.write_text(json.dumps(right))
    found = lab.replacements("hist", file, inputs=400)
    assert found.same == 1.0
    assert found.recovered > 0.95
    assert set(found.by_component) == {"blocks.0.attn.0", "blocks.0.mlp"}
    assert found.as_json()["by_component"]["blocks.0.mlp"]["claimed"] == "hist blocks.0.mlp"
    wrong = lab.replacements("hist", claim(attn_0="shift_by blocks.0.attn.0", mlp=None), inputs=400)
    assert wrong.same == wrong.counts == 0.0
    assert wrong.recovered < 0.5
    assert wrong.by_component["blocks.0.mlp"].claimed is None


def test_parts_of_own_programs_are_claims() -> None:
    """A dict of parts is a submission too."""
    model = lab.case("hist").model
    found = lab.replacements("hist", {"blocks.0.attn.0": graft.Part(model, "blocks.0.attn.0")}, inputs=300)
    assert found.by_component["blocks.0.attn.0"].same
    assert not found.by_component["blocks.0.mlp"].same


@pytest.mark.parametrize(
    ("submitted", "wrong"),
    [
        ({"components": {"blocks.7.mlp": {"part": "hist blocks.0.mlp"}}}, "no component"),
        (claim(attn_0="hist blocks.9.attn.0"), "names no part"),
        (claim(attn_0="sort blocks.0.attn.0"), "names no part"),
        ({"claims": {}}, "lacks 'components'"),
        (claim(attn_0=3), "not a string"),
        (claim(attn_0="hist blocks.0.mlp"), "of another kind"),
        ({"case": "sort", **claim(attn_0=None)}, "not the case of the subject"),
    ],
)
def test_what_is_not_a_claim_is_refused(submitted: dict[str, Any], wrong: str) -> None:
    """The message names the place."""
    with pytest.raises(FormatError, match=wrong):
        lab.replacements("hist", submitted, inputs=50)


def test_the_form_is_a_submission_without_claims() -> None:
    """It names the components that can be claimed; unfilled, it scores 0."""
    subject = lab.subject("hist")
    form = lab.replacement_form(subject)
    assert list(form["components"]) == ["blocks.0.attn.0", "blocks.0.mlp"]
    assert lab.replacements(subject, form, inputs=200).recovered == 0.0


def test_the_track_runs_on_the_command_line(tmp_path: Path) -> None:
    """A form, its scores, and a run with the truth and the null; the truth recovers more, and the report says so."""
    file = tmp_path / "claims.json"
    assert f"wrote {file}" in invoke("lab", "replacements", "--subject", "hist", "-o", file)
    form = json.loads(file.read_text())
    form["components"]["blocks.0.attn.0"]["part"] = "hist blocks.0.attn.0"
    file.write_text(json.dumps(form))
    options = ("--subject", "hist", "--inputs", "200")
    assert invoke_json("lab", "replacements", file, *options)["by_component"]["blocks.0.attn.0"]["same"]
    assert "over 2 components" in invoke("lab", "replacements", file, *options)
    pytest.importorskip("pyarrow")
    invoke(
        *f"lab run --track replacements --methods true-parts,random-parts --cases hist -o {tmp_path / 'run'}".split()
    )
    rows = {row["method"]: row for row in lab.read_results(tmp_path / "run")}
    assert rows["true-parts"]["same"] == 1.0
    assert rows["random-parts"]["recovered"] < rows["true-parts"]["recovered"]
    assert rows["true-parts"]["components"] == ["blocks.0.attn.0", "blocks.0.mlp"]
    assert "replaced by compiled parts" in lab.report(tmp_path / "run").html


@pytest.mark.slow
def test_the_ranking_as_a_method(tmp_path: Path) -> None:
    """It claims the true functions of a twin, of the library alone."""
    pytest.importorskip("pyarrow")
    conditions = lab.Conditions(track="replacements")
    lab.run(["part-ranking"], ["hist"], ["twin"], folder=tmp_path, conditions=conditions, twins=TWINS)
    (row,) = lab.read_results(tmp_path)
    assert row["same"] == 1.0
    assert row["recovered"] > 0.99


@pytest.mark.slow
def test_twins() -> None:
    """The claims of `explain` on a twin."""
    subject = lab.subject("hist", "twin", seed=0, twins=TWINS)
    found = lab.replacements(subject, claim(attn_0="hist blocks.0.attn.0", mlp="hist blocks.0.mlp"))
    assert found.same == found.counts == 1.0
    assert found.recovered > 0.99
