"""Several models in one page, and pages that start with patches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import tracr
from tests.natural.twins import untrained
from tests.viz.explorer.test_explorer import data_of
from tracr import CompiledModel, TracrError
from tracr.cli import app
from tracr.errors import InputError
from tracr.rasp.programs import EXAMPLES
from tracr.viz import gallery


@pytest.fixture(scope="module")
def model() -> CompiledModel:
    """The paper's first example."""
    return tracr.compile(EXAMPLES["frac_prevs"].program, "abcx", 5)


def command(*words: str, fails: bool = False) -> str:
    result = CliRunner().invoke(app, ["explore", *words])
    assert (result.exit_code != 0) == fails, result.output
    return result.output + str(result.exception or "")


def pages_of(path: Path) -> list[dict[str, Any]]:
    data = data_of(path.read_text(encoding="utf-8"))
    assert data["format"] == "tracr gallery"
    return list(data["pages"])


def test_models_and_pages_in_one_page(model: CompiledModel) -> None:
    """Each once, with names that differ; galleries are flattened."""
    two = gallery(model, model.explore("xa", name="mine"), tokens="ax")
    assert [(page["name"], page["input"]) for page in two.data["pages"]] == [("frac_prevs", [0, 3]), ("mine", [3, 0])]
    three = gallery(two, model)
    assert [page["name"] for page in three.data["pages"]] == ["frac_prevs", "mine", "frac_prevs (2)"]
    assert "tracr gallery" in three.html
    with pytest.raises(TracrError, match="needs a model"):
        gallery()


def test_levels_are_named() -> None:
    """Models that differ in their level say so."""
    example = EXAMPLES["hist"]
    levels = [tracr.compile(example.program, "abc", 4, level=level) for level in (0, 2)]
    assert gallery(*levels).title == "hist, level 0 and hist, level 2 · Tracr explorer"


def test_a_twin_has_its_own_weights(model: CompiledModel) -> None:
    """And its teacher's program."""
    twin = untrained(model)
    teacher, page = gallery(model, twin, tokens="xa").data["pages"]
    assert page["format"] == "tracr twin"
    assert page["teacher"] == teacher
    assert page["sizes"] == {"layers": 2, "d_model": 24, "parameters": twin.n_parameters}
    assert len(page["weights"]["W_E"]["values"]) == twin.parameters.W_E.size
    assert "not admitted" in page["trained"]
    json.dumps(page, allow_nan=False)


def test_a_page_starts_with_patches(model: CompiledModel) -> None:
    """Where the values given differ from those computed."""
    data = model.explore("xac", set={"is_x": [True, True, False]}).data
    assert data["patches"] == [("is_x", 1, "True")]
    assert "patches" not in model.explore("xac").data


def test_patches_that_the_page_cannot_show_are_refused() -> None:
    """Unknown variables, wrong values, and variables without directions."""
    example = EXAMPLES["shuffle_dyck"]
    model = tracr.compile(example.program, example.vocab, example.max_seq_len, level=2)
    with pytest.raises(InputError, match="bools_open"):
        model.explore("()", set={"bools_open": [False, False]})  # folded: run() can set it, the page cannot
    with pytest.raises(InputError, match="no variable"):
        model.explore("()", set={"bools": [1, 0]})
    with pytest.raises(InputError, match="needs a value for every token"):
        model.explore("()", set={"all_zero": [True]})


# The command


def test_two_programs(tmp_path: Path) -> None:
    """Words that name programs are programs; --input is the input of all of them."""
    page = tmp_path / "page.html"
    command("hist", "sort", "--vocab", "1,2,3", "--max-len", "4", "--input", "3,1,2", "-o", str(page))
    assert [(one["name"], one["input"]) for one in pages_of(page)] == [("hist", [2, 0, 1]), ("sort", [2, 0, 1])]
    command("hist", "reverse", "-o", str(page))
    assert [one["name"] for one in pages_of(page)] == ["hist", "reverse"]


def test_words_that_are_tokens_stay_tokens(tmp_path: Path) -> None:
    """Also if a program has that name; a mixture is refused."""
    page = tmp_path / "page.html"
    command("hist", "sort", "reverse", "--vocab", "sort,reverse,a", "-o", str(page))
    assert data_of(page.read_text(encoding="utf-8"))["input"] == [0, 1]
    assert "--input" in command("hist", "sort", "a", "-o", str(page), fails=True)
    assert "no program 'nothing'" in command("hist", "nothing", "--input", "a", "-o", str(page), fails=True)


def test_levels_and_patches(tmp_path: Path) -> None:
    """One page for each."""
    page = tmp_path / "page.html"
    command("hist", "a", "b", "--levels", "0,2", "-o", str(page))
    assert [(one["name"], one["level"]) for one in pages_of(page)] == [("hist, level 0", 0), ("hist, level 2", 2)]
    command("frac_prevs", "x", "a", "--set", "is_x=True,True", "-o", str(page))
    assert [one.get("patches") for one in pages_of(page)] == [None, [["is_x", 1, "True"]]]
    assert "not one of" in command("hist", "--levels", "0,7", "-o", str(page), fails=True)
    assert "not both" in command("hist", "--levels", "0", "--level", "1", "-o", str(page), fails=True)
    assert "the variables are" in command("hist", "--set", "isx=1", "-o", str(page), fails=True)


def test_a_folder_of_a_twin(model: CompiledModel, tmp_path: Path) -> None:
    """The compiled model and its twin."""
    pytest.importorskip("safetensors")
    untrained(model).save(tmp_path / "twin")
    command(str(tmp_path / "twin"), "--input", "xa", "-o", str(tmp_path / "page.html"))
    first, second = pages_of(tmp_path / "page.html")
    assert (first["name"], second["name"]) == ("frac_prevs", "twin of frac_prevs")
    assert first["input"] == [3, 0]
