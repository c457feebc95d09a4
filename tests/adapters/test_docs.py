"""The pages that need other frameworks are true, and no other page needs them."""

from __future__ import annotations

import doctest
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Pages whose examples need frameworks, and which; the normal tier leaves them out (pyproject.toml).
PAGES = {
    "docs/integrations.md": ("torch", "nnsight", "transformer_lens", "jax", "onnx", "onnxruntime"),
    "docs/sixteen-bits.md": ("torch",),
}

# An example that calls an adapter or imports a framework, unless it is not run.
NEEDS_FRAMEWORK = re.compile(
    r"^ *(>>>|\.\.\.) (?!.*doctest: \+SKIP).*"
    r"(\.to_(torch|jax|onnx|transformer_lens)\(|import (torch|jax|onnx|transformer_lens|transformers)\b)",
    re.MULTILINE,
)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("page", PAGES)
def test_pages_on_other_frameworks(page: str) -> None:
    """Their examples run, where the frameworks are."""
    for module in PAGES[page]:
        pytest.importorskip(module)
    failed, attempted = doctest.testfile(
        str(ROOT / page),
        module_relative=False,
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS,
        encoding="utf-8",
    )
    assert attempted > 5
    assert not failed


def test_pages_of_the_normal_tier_need_no_framework() -> None:
    """They are run where only the `dev` extra is installed."""
    pages = [*ROOT.glob("docs/**/*.md"), ROOT / "README.md"]
    found = {str(page.relative_to(ROOT)) for page in pages if NEEDS_FRAMEWORK.search(page.read_text("utf-8"))}
    assert found == set(PAGES)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    options = settings["tool"]["pytest"]["ini_options"]["addopts"]
    assert {one.removeprefix("--ignore=") for one in options if one.startswith("--ignore=")} == set(PAGES)
