"""A saved model, and copies of it to spoil."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.agreement import compile_quietly
from tracr.rasp import programs, rasp


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model with lookups, pair lookups, a selector, an aggregate, a width and a weighted sum."""
    folder = tmp_path_factory.mktemp("saved") / "model"
    balance = programs.make_pair_balance(rasp.tokens, "(", ")")
    count = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)).named("count")
    compile_quietly({"balance": balance, "table": count * rasp.indices}, "()", 4, level=0).save(folder)
    return folder


@pytest.fixture
def folder(pristine: Path, tmp_path: Path) -> Path:
    """A copy to spoil."""
    shutil.copytree(pristine, tmp_path / "model")
    return tmp_path / "model"
