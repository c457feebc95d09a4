"""The twins in docs/natural/twins: they load without JAX and answer like their teachers."""

from __future__ import annotations

from pathlib import Path

import pytest

import tracr
from tests.agreement import all_inputs, same
from tracr.natural.twin_model import TwinModel

FOLDERS = sorted((Path(__file__).parents[2] / "docs" / "natural" / "twins").iterdir())


def test_there_are_five_and_they_are_small() -> None:
    """At most 5 MB in all."""
    assert len(FOLDERS) == 5
    assert sum(file.stat().st_size for folder in FOLDERS for file in folder.rglob("*") if file.is_file()) < 5e6


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_twin_answers_like_its_teacher(folder: Path) -> None:
    """On all inputs that can be listed quickly; it was admitted when it was saved."""
    twin = tracr.load(folder)
    assert isinstance(twin, TwinModel)
    assert twin.admitted
    teacher = twin.teacher
    for tokens in all_inputs(teacher.options.vocab, 3):
        assert all(map(same, twin(tokens), teacher(tokens)))
