"""The notebooks on patching, the laboratory and replacing run from top to bottom, and show what is stored in them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import tracr

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

EXAMPLES = Path(__file__).parents[1] / "examples"
NOTEBOOKS = {"patching.ipynb": ["transformer_lens"], "laboratory.ipynb": ["safetensors"], "replacing.ipynb": ["torch"]}
"""With the libraries that they need besides matplotlib."""


def texts(notebook: Any) -> list[str]:
    """What each cell prints, and the value it ends with."""
    found = []
    for cell in notebook.cells:
        shown = ""
        for output in cell.get("outputs", ()):
            if output.output_type == "stream" and output.name == "stdout":
                shown += output.text
            elif output.output_type == "execute_result":
                shown += output.data["text/plain"]
        found.append(shown)
    return found


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
    nbclient.NotebookClient(fresh, timeout=300, resources={"metadata": {"path": str(EXAMPLES)}}).execute()
    assert texts(fresh) == texts(stored)
    assert any(texts(stored))
