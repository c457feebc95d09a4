"""Notebooks run from top to bottom and show what is stored in them; test_tutorial_notebook.py has the quick one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tracr
from tests.hanging import HUNG
from tests.notebooks import texts

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

EXAMPLES = Path(__file__).parents[1] / "examples"
NOTEBOOKS: dict[str, list[str]] = {
    "lesson.ipynb": [],
    "patching.ipynb": ["transformer_lens"],
    "laboratory.ipynb": ["safetensors"],
    "replacing.ipynb": ["torch"],
}
"""With the libraries that they need besides matplotlib."""


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_shows_what_it_stores(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a kernel of its own, as Jupyter does, the texts are the stored ones."""
    for module in ("ipykernel", "matplotlib", *NOTEBOOKS[name]):
        pytest.importorskip(module)
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    source = str(Path(tracr.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")])))
    stored = nbformat.read(EXAMPLES / name, as_version=4)
    fresh = nbformat.read(EXAMPLES / name, as_version=4)
    nbclient.NotebookClient(fresh, timeout=HUNG, resources={"metadata": {"path": str(EXAMPLES)}}).execute()
    assert texts(fresh.cells) == texts(stored.cells)
    assert any(texts(stored.cells))
