"""Frameworks are optional: importing tracr loads none, and asking for one that is not there says how to get it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import tracr
from tracr.adapters import NEEDS
from tracr.rasp import rasp

MODEL = tracr.compile(rasp.tokens, vocab="ab", max_seq_len=2)


@pytest.mark.parametrize("adapter", NEEDS)
def test_a_missing_framework_is_named_with_its_extra(
    adapter: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The error is a MissingExtra, and its hint the command that installs the extra."""
    module, extra = NEEDS[adapter]
    monkeypatch.setitem(sys.modules, module, None)
    arguments = [tmp_path / "model.onnx"] if adapter == "onnx" else []
    with pytest.raises(tracr.MissingExtra, match=rf"needs {module}\n.*pip install 'tracr\[{extra}\]'"):
        getattr(MODEL, f"to_{adapter}")(*arguments)


def test_every_extra_is_declared() -> None:
    """What the hints tell to install is in pyproject.toml."""
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    for _, extra in NEEDS.values():
        assert f"\n{extra} = [" in text
