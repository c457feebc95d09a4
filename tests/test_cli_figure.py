"""`tracr figure`, as a user types it."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import tracr
from tracr.cli import app
from tracr.cli.drawing import read_input
from tracr.rasp import rasp

pytest.importorskip("matplotlib")

BEGINNINGS = {".pdf": b"%PDF", ".svg": b"<?xml", ".png": b"\x89PNG"}


def invoke(*words: object) -> str:
    result = CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return str(result.output)


@pytest.mark.parametrize("suffix", BEGINNINGS)
def test_the_suffix_decides_the_format(tmp_path: Path, suffix: str) -> None:
    """One file is written, nothing beside it, and the same the next time."""
    target = tmp_path / f"fig{suffix}"
    said = invoke("figure", "frac_prevs", "--input", "x,a,c,x", "--level", 0, "-o", target)
    assert said == f"{target}: stream of frac_prevs, 9.2 by 3.5 inches\n"
    first = target.read_bytes()
    assert first.startswith(BEGINNINGS[suffix])
    invoke("figure", "frac_prevs", "--input", "xacx", "--level", 0, "-o", target)
    assert target.read_bytes() == first
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("kind", ["graph", "weights", "layers"])
def test_figures_that_need_no_input(tmp_path: Path, kind: str) -> None:
    assert f"{kind} of sort" in invoke("figure", "sort", "--kind", kind, "-o", tmp_path / "fig.svg")


def test_parts_can_be_chosen(tmp_path: Path) -> None:
    """--only, --rows and --width reach the figure."""
    target = tmp_path / "fig.svg"
    whole = invoke("figure", "sort", "--input", "3,1,2", "-o", target)
    part = invoke("figure", "sort", "--input", "3,1,2", "--only", "embed", "--only", "mlp 1", "-o", target)
    used = invoke("figure", "sort", "--input", "3,1,2", "--rows", "used", "-o", target)
    narrow = invoke("figure", "sort", "--input", "3,1,2", "--width", "6", "-o", target)
    assert len({whole, part, used, narrow}) == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--kind", "stream"), "'stream' needs an input"),
        (("--kind", "graph", "--input", "x"), "'graph' takes no input"),
        (("--kind", "graph", "--rows", "all"), "'graph' has no option 'rows'"),
        (("--input", "x,q"), "token 'q' at position 1 is not in the vocabulary"),
    ],
)
def test_mistakes_are_explained(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    """And leave no file behind."""
    result = CliRunner().invoke(app, ["figure", "frac_prevs", *words, "-o", str(tmp_path / "fig.pdf")])
    assert isinstance(result.exception, tracr.TracrError)
    assert message in str(result.exception)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "message"), [("fig.xyz", ".pdf"), ("fig", ".svg"), ("no/fig.pdf", "there is no folder")]
)
def test_a_file_that_cannot_be_written_is_refused_first(tmp_path: Path, name: str, message: str) -> None:
    result = CliRunner().invoke(app, ["figure", "frac_prevs", "--kind", "graph", "-o", str(tmp_path / name)])
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_inputs_are_read_against_the_vocabulary() -> None:
    """Commas, characters, a single token or JSON."""
    model = tracr.compile(rasp.tokens, [",", "ab", "a", "b", 3], 4)
    assert read_input("a,b,3", model) == ["a", "b", 3]
    assert read_input("ab", model) == ["ab"]
    assert read_input("ba", model) == ["b", "a"]
    assert read_input(",", model) == [","]
    assert read_input('["a", ",", 3]', model) == ["a", ",", 3]
