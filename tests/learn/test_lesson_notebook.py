"""The notebook of the lesson: its cells run, and show what the text around them says."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path
from typing import Any

import pytest

import tracr
from tests.hanging import HUNG
from tracr import learn

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("matplotlib")

NOTEBOOK = Path(__file__).parents[2] / "examples" / "lesson.ipynb"


def cells(kind: str) -> list[Any]:
    return [cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == kind]


@pytest.fixture(scope="module")
def values() -> dict[str, Any]:
    """What each cell ends with, by its last line."""
    names: dict[str, Any] = {}
    found = {}
    for cell in cells("code"):
        *body, last = ast.parse(cell.source).body
        exec(compile(ast.Module(body, []), NOTEBOOK.name, "exec"), names)
        if isinstance(last, ast.Expr):
            found[cell.source.splitlines()[-1]] = eval(
                compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), names
            )
        else:
            exec(compile(ast.Module([last], []), NOTEBOOK.name, "exec"), names)
    return found


def test_cells_show_what_the_lesson_says(values: dict[str, Any]) -> None:
    assert values['show("answer = length - 1 - indices;")'] == [4, 3, 2, 1, 0]
    assert values["learn.puzzle(1)"] is learn.puzzle(1)
    assert values['model("abca")'] == [2, 1, 1, 2]
    assert values["model.verify()"]
    wrong = values['learn.puzzle(1).check("answer = aggregate(select(indices, indices - 1, ==), tokens);")']
    assert wrong.counterexample.input == ("a",)


def test_exercises_are_left_to_the_students(values: dict[str, Any]) -> None:
    """No cell solves a puzzle, and each unsolved one shows a counterexample."""
    verdicts = [value for value in values.values() if isinstance(value, learn.Verdict)]
    assert len(verdicts) == 5
    assert all(not verdict.solved and verdict.counterexample is not None for verdict in verdicts)


def test_pars_in_the_text_are_right() -> None:
    text = "\n".join(cell.source for cell in cells("markdown"))
    assert "Par of 20 is five layers" in text
    assert learn.puzzle(20).par == 5
    assert (learn.puzzle(3).par, learn.puzzle(1).par) == (2, 1)


def test_its_links_exist() -> None:
    links = [link for cell in cells("markdown") for link in re.findall(r"\]\(([^)]+)\)", cell.source)]
    assert links
    assert all((NOTEBOOK.parent / link).is_file() for link in links)


@pytest.mark.slow
def test_it_runs_in_a_kernel_of_its_own(tmp_path: Path) -> None:
    """As Jupyter runs it: every cell shows something, verdicts and puzzles as HTML."""
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    path = os.pathsep.join(filter(None, [str(Path(tracr.__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    client = nbclient.NotebookClient(notebook, timeout=HUNG, resources={"metadata": {"path": tmp_path}})
    client.execute(env={**os.environ, "PYTHONPATH": path})
    for cell in notebook.cells:
        if cell.cell_type == "code":
            (output,) = cell.outputs
            assert output.get("name") != "stderr", cell.source
            if "check(" in cell.source.splitlines()[-1]:
                assert "<svg" in output.data["text/html"]
