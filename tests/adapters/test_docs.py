"""docs/integrations.md is true."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


def test_the_page_on_other_frameworks() -> None:
    """Its examples run, where all the frameworks are."""
    for module in ("torch", "nnsight", "transformer_lens", "jax", "onnx", "onnxruntime"):
        pytest.importorskip(module)
    page = Path(__file__).parents[2] / "docs" / "integrations.md"
    failed, attempted = doctest.testfile(
        str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS, encoding="utf-8"
    )
    assert attempted > 30
    assert not failed
