"""The tutorial notebook runs top to bottom, in a kernel of its own, and shows what it promises."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

import tracr
from tests.hanging import HUNG
from tests.notebooks import texts

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")

NOTEBOOK = Path(__file__).parents[1] / "examples" / "tutorial.ipynb"


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The code cells after a run."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    path = os.pathsep.join(filter(None, [str(Path(tracr.__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    folder = tmp_path_factory.mktemp("notebook")
    client = nbclient.NotebookClient(
        notebook, timeout=HUNG, kernel_name="python3", resources={"metadata": {"path": folder}}
    )
    client.execute(env={**os.environ, "PYTHONPATH": path})
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(cells: list[Any], beginning: str) -> dict[str, str]:
    """What the cell whose last line begins like this shows."""
    (cell,) = [cell for cell in cells if cell.source.splitlines()[-1].startswith(beginning)]
    (output,) = cell.outputs
    return dict(output.get("data", {"text/plain": output.get("text", "")}))


def test_every_cell_shows_something(cells: list[Any]) -> None:
    """Each ends in a value, and none complains."""
    assert len(cells) > 10
    for cell in cells:
        assert [output.output_type for output in cell.outputs] in (["execute_result"], ["stream"]), cell.source
        assert all(output.get("name") != "stderr" for output in cell.outputs), cell.source


def test_figures_are_pictures_and_models_tables(cells: list[Any]) -> None:
    for cell in cells:
        if "figure" in cell.source:
            assert cell.outputs[0].data["image/svg+xml"].startswith("<?xml"), cell.source
    for beginning in ("model", "run", "result"):
        data = [shown([cell], beginning) for cell in cells if cell.source.splitlines()[-1] == beginning]
        assert [list(output) for output in data] == [["text/plain", "text/html"]]


def test_what_the_text_says_is_true(cells: list[Any]) -> None:
    """The intervention, the verification and Dyck-2 give what the notebook talks about."""
    assert shown(cells, "changed.decoded")["text/plain"] == "[1.0, 0.5, 0.6666666666666666, 0.75]"
    assert "all agree" in shown(cells, "result")["text/html"]
    assert shown(cells, "dyck(")["text/plain"] == "([True, True, True, True], [False, False, False, False])"


def test_it_shows_what_it_stores(cells: list[Any]) -> None:
    """The stored texts are those of a run (`make notebooks` stores them)."""
    stored = [cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"]
    assert texts(stored) == texts(cells)


def test_it_ends_with_words() -> None:
    """The last answer is explained before it is shown, and what to do next is said after it."""
    *_, explained, answer, end = nbformat.read(NOTEBOOK, as_version=4).cells
    assert [cell.cell_type for cell in (explained, answer, end)] == ["markdown", "code", "markdown"]
    assert "`True` if" in explained.source
    assert end.source.startswith("## Where to go next")
    for target in re.findall(r"\]\(([^)]+)\)", end.source):
        assert (NOTEBOOK.parent / target).is_file(), target
