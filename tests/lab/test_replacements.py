"""The replacement track: claims about components, scored by putting the claimed parts in their places."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

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
    ],
)
def test_what_is_not_a_claim_is_refused(submitted: dict[str, Any], wrong: str) -> None:
    """The message names the place."""
    with pytest.raises(FormatError, match=wrong):
        lab.replacements("hist", submitted, inputs=50)


@pytest.mark.slow
def test_twins() -> None:
    """The claims of `explain` on a twin."""
    subject = lab.subject("hist", "twin", seed=0, twins=TWINS)
    found = lab.replacements(subject, claim(attn_0="hist blocks.0.attn.0", mlp="hist blocks.0.mlp"))
    assert found.same == found.counts == 1.0
    assert found.recovered > 0.99
