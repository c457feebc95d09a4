"""Notebooks are stored with their outputs, and show the explorer page of a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from docs.generator.notebooks import notebook_page

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_stored(path: Path) -> None:
    """All cells were run once, from top to bottom, and left no complaints and no paths of the machine."""
    text = path.read_text(encoding="utf-8")
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert len(outputs) >= 7
    assert all(output.get("name") != "stderr" and output["output_type"] != "error" for output in outputs)
    assert "site-packages" not in text


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_explorer_is_shown(path: Path) -> None:
    """One cell calls `model.explore()`, and its page is stored."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    (shown,) = [cell for cell in cells if cell["cell_type"] == "code" and ".explore(" in "".join(cell["source"])]
    (output,) = shown["outputs"]
    assert "".join(output["data"]["text/html"]).startswith("<iframe srcdoc=")


def test_a_notebook_becomes_a_page(tmp_path: Path) -> None:
    """Texts, code, and outputs of each kind: printed, a value, a picture, HTML without its empty lines."""
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": ["one\n"]},
        {"output_type": "execute_result", "data": {"text/plain": ["2"]}},
        {"output_type": "display_data", "data": {"image/png": "AAAA\n", "text/plain": ["<Figure>"]}},
        {"output_type": "execute_result", "data": {"text/html": ["<table>\n", "\n", "</table>"], "text/plain": ["T"]}},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "Words."]},
        {"cell_type": "code", "source": ["print(1)"], "outputs": outputs},
    ]
    (tmp_path / "book.ipynb").write_text(json.dumps({"cells": cells}))
    page = notebook_page(tmp_path / "book.ipynb")
    assert page.startswith("# Title\nWords.\n\n*This page is the notebook `examples/book.ipynb`")
    assert "````python\nprint(1)\n````\n\n````text\none\n````\n\n````text\n2\n````" in page
    assert 'src="data:image/png;base64,AAAA"' in page
    assert '<div class="output">\n<table>\n</table>\n</div>' in page
