"""Exports of twins that need no framework: GPT-2 checkpoints, and what is refused."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tests.adapters.gpt2_in_numpy import logits as gpt2_logits
from tests.agreement import all_inputs
from tests.natural.twins import exact, students, untrained
from tests.test_hostile_arguments import HOSTILE, outcome
from tracr.errors import FormatError, TracrError, Unavailable
from tracr.natural.pretrained import twin_head
from tracr.natural.twin_model import TwinModel

STUDENTS = students()
ACTIVATIONS = ("gelu", "gelu_new", "relu")


def checked(twin: TwinModel, folder: Path, output: str | None = None) -> None:
    """Its checkpoint computes the twin's logits; the logits of words that are not values are lower."""
    twin.save_pretrained(folder, output=output)
    chosen = next(one for one in twin.outputs if output in (None, one.name))
    head = twin_head(twin, chosen)
    for ids in batches(twin):
        whole, allowed = exact(twin, ids)
        own = whole[..., chosen.start : chosen.stop]
        found = gpt2_logits(folder, ids, twin.teacher.options.causal)
        column = [len(head.words.words) - 1] if head.kind == "column" else []
        values = [*column, *(number for _, number in head.decoded)]
        np.testing.assert_allclose(found[..., values], own, atol=allowed, rtol=0)
        if head.kind == "one-hot":
            others = np.delete(found, values, axis=-1)
            assert (others.max(axis=-1) < own.min(axis=-1) - 16).all()


def batches(twin: TwinModel) -> list[Any]:
    """The ids of all inputs, padded together, and unpadded for each length."""
    longest = twin.teacher.options.max_seq_len
    inputs = all_inputs(twin.teacher.options.vocab, longest)
    by_length = [[tokens for tokens in inputs if len(tokens) == length] for length in range(1, longest + 1)]
    return [twin.encode(inputs), *(twin.encode(some) for some in by_length)]


@pytest.mark.parametrize("name", STUDENTS)
def test_checkpoints_compute_the_twins_logits(name: str, tmp_path: Path) -> None:
    """All inputs, padded and not, by a GPT-2 that has no code of ours; several outputs give a checkpoint each."""
    for number, activation in enumerate(ACTIVATIONS):
        twin = untrained(STUDENTS[name], activation, seed=number, d_head=(8, 4, 12)[number])
        for output in twin.outputs:
            checked(twin, tmp_path / f"{activation}-{output.name}", output.name)
        assert json.loads((tmp_path / f"{activation}-{twin.outputs[0].name}" / "config.json").read_text())[
            "layer_norm_epsilon"
        ] == pytest.approx(1e-5)


def test_large_negative_logits_still_win(tmp_path: Path) -> None:
    """Words that are not values come last, whatever the size of the twin's logits."""
    twin = untrained(STUDENTS["hist"])
    twin.parameters.W_U[:] *= 50
    checked(twin, tmp_path / "twin")


def test_twins_come_back_from_checkpoints(tmp_path: Path) -> None:
    """`tracr.load` gives the twin; changed weights are refused, and so is a damaged folder."""
    twin = untrained(STUDENTS["hist"])
    folder = tmp_path / "twin"
    twin.save_pretrained(folder)
    twin.save_pretrained(folder)  # replaces its own
    back = tracr.load(folder)
    assert isinstance(back, TwinModel)
    assert back.admission == twin.admission
    np.testing.assert_array_equal(back.logits(twin.encode("abca")), twin.logits(twin.encode("abca")))
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\1")
    with pytest.raises(FormatError, match="were changed"):
        tracr.load(folder)
    with pytest.raises(FormatError, match="something other"):
        twin.save_pretrained(folder)
    with pytest.raises(FormatError, match="something other"):
        STUDENTS["hist"].save_pretrained(folder)
    assert isinstance(tracr.load(folder / "twin"), TwinModel)
    (folder / "tracr.json").unlink()
    with pytest.raises(FormatError):
        tracr.load(folder)
    twin.save_pretrained(folder, overwrite=True)
    assert isinstance(tracr.load(folder), TwinModel)


def test_cards_say_what_is_known(tmp_path: Path) -> None:
    """Not admitted, the mask of bidirectional attention, and how numbers are read."""
    untrained(STUDENTS["hist"]).save_pretrained(tmp_path / "hist")
    card = (tmp_path / "hist" / "README.md").read_text()
    assert "not admitted" in card
    assert "4-D and 0 everywhere" in card
    truth = json.loads((tmp_path / "hist" / "ground_truth.json").read_text())
    assert truth["admitted"] is False
    assert {"site", "verdict", "agreement", "false_changes"} <= set(truth["edges"][0])
    untrained(STUDENTS["number"]).save_pretrained(tmp_path / "number")
    card = (tmp_path / "number" / "README.md").read_text()
    assert "4-D and 0 everywhere" not in card
    assert "nearest of these values" in card


def test_what_twins_cannot_do_is_refused(tmp_path: Path) -> None:
    """With what to do instead; unknown names are plain errors."""
    twin = untrained(STUDENTS["hist"])
    for name in ("explore", "figure", "residual", "variables", "rotated", "own_weights", "source"):
        with pytest.raises(Unavailable, match=f"a twin has no {name}: ") as caught:
            getattr(twin, name)
        assert caught.value.diagnostic.hint
    with pytest.raises(AttributeError, match="object has no attribute 'colour'"):
        twin.colour  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(TracrError, match="GPT-2 has layer norms"):
        untrained(STUDENTS["hist"], layer_norm=False).save_pretrained(tmp_path / "twin")
    with pytest.raises(TracrError, match="2 outputs, GPT-2 has one head"):
        untrained(STUDENTS["several"]).save_pretrained(tmp_path / "twin")
    with pytest.raises(TracrError, match="no output 'x'"):
        untrained(STUDENTS["several"]).save_pretrained(tmp_path / "twin", output="x")
    assert not (tmp_path / "twin").exists()


@pytest.mark.parametrize("parameter", ["folder", "output", "overwrite"])
def test_hostile_arguments(parameter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They work, or a TracrError says what to write."""
    monkeypatch.chdir(tmp_path)
    twin = untrained(STUDENTS["hist"])
    for kind, value in HOSTILE.items():
        given: dict[str, Any] = {"folder": "out", "overwrite": True, parameter: value}
        raised = outcome(partial(twin.save_pretrained, **given))
        assert raised is None or isinstance(raised, TracrError), f"{kind}: {raised!r}"
        assert raised is None or raised.diagnostic.hint, kind
