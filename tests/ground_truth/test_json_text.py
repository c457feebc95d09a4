"""The ground truth as one line of JSON, written without the dicts of `to_dict`."""

from __future__ import annotations

import json

import pytest

import tracr
from tests.library import compiled
from tracr.datasets import Controls
from tracr.ground_truth.json_text import truth_text
from tracr.rasp import rasp


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("name", ["hist2", "shuffle_dyck", "shift_by", "sort"])
def test_the_text_is_that_of_the_dict(name: str, level: int) -> None:
    truth = compiled(name, level).ground_truth
    assert truth_text(truth) == json.dumps(truth.to_dict())


@pytest.mark.parametrize("seed", range(12))
def test_the_text_of_random_programs(seed: int) -> None:
    controls = Controls(causal=seed % 3 == 0, composite=seed % 2 == 0, max_ops=8)
    model = tracr.compile(controls.program(seed), controls.vocab, controls.max_seq_len, controls.causal, seed % 3)
    assert truth_text(model.ground_truth) == json.dumps(model.ground_truth.to_dict())


def test_a_variant_and_names_that_json_must_escape() -> None:
    """Directions of a rotated model, and quotation marks, line ends and other letters in names and values."""
    program = rasp.Map(lambda x: x + '"', rasp.tokens).named('é "\n\\')
    model = tracr.compile(program, ["ä", "\u2028", '"'], 3)
    for truth in (model.ground_truth, model.rotated(0).ground_truth):
        assert truth_text(truth) == json.dumps(truth.to_dict())
        assert json.loads(truth_text(truth))["granularities"]
