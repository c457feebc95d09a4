"""The notebook on patching runs from top to bottom, and shows what is stored in it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import tracr

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

NOTEBOOK = Path(__file__).parents[1] / "examples" / "patching.ipynb"


def texts(notebook: Any) -> list[str]:
    """What the cells print, and the values they end with."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if output.output_type == "stream" and output.name == "stdout":
                found.append(output.text)
            elif output.output_type == "execute_result":
                found.append(output.data["text/plain"])
    return found


def test_notebook_shows_what_it_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a kernel of its own, as Jupyter does, the texts are the stored ones."""
    for module in ("ipykernel", "matplotlib", "transformer_lens"):
        pytest.importorskip(module)
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    source = str(Path(tracr.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")])))
    stored = nbformat.read(NOTEBOOK, as_version=4)
    fresh = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(fresh, timeout=300, resources={"metadata": {"path": str(NOTEBOOK.parent)}}).execute()
    assert texts(fresh) == texts(stored)
    assert texts(stored)
