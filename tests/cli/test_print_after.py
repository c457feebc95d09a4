"""`tracr compile` between passes: --print-after, --print-changed, --check-each, --search."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import tracr
from tracr.cli import app
from tracr.compiler import pipeline
from tracr.compiler.pipeline import stages
from tracr.ir.circuit import Circuit
from tracr.ir.options import Options
from tracr.ir.switches import PassName
from tracr.rasp.programs import EXAMPLES

EXAMPLE = EXAMPLES["reverse"]


def invoke(*words: str, status: int = 0) -> str:
    """What a command prints."""
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == status, result.output
    return result.output


@pytest.mark.parametrize("name", PassName)
def test_the_program_after_every_pass(name: PassName) -> None:
    """Every pass, with the text that Python gives; one that is off shows what there was before it."""
    options = Options(tuple(EXAMPLE.vocab), EXAMPLE.max_seq_len, level=2)
    texts = {str(one.name): value for one, value in stages({"reverse": EXAMPLE.program}, options)}
    printed = invoke("compile", "reverse", "--level", "2", "--print-after", name)
    title, *lines = printed.splitlines()
    assert lines[-1].startswith("reverse: ")
    if name is PassName.SOLVE:
        assert title == "== PlacedCircuit after schedule (solve did not run)"
    else:
        assert title == f"== {type(texts[name]).__name__} after {name}"
    shown = texts[name] if name in texts else texts["schedule"]
    if name is not PassName.FUSE_EXPRESSIONS:
        assert "\n".join(lines[:-2]) == shown.show()


def test_several_are_printed_in_the_order_they_run() -> None:
    """However they are asked for."""
    printed = invoke("compile", "reverse", "--print-after", "lower", "--print-after", "trace")
    titles = [line for line in printed.splitlines() if line.startswith("==")]
    assert titles == ["== TracedGraph after trace", "== Circuit after lower"]


def test_only_changes_are_printed() -> None:
    """A pass that changed nothing is left out; one that changed something is a diff; another type is printed whole."""
    printed = invoke("compile", "frac_prevs", "--level", "2", "--print-changed")
    titles = [line.removeprefix("== changed by ") for line in printed.splitlines() if line.startswith("==")]
    assert "share" not in titles
    assert titles[:3] == ["fuse_expressions", "trace", "infer"]
    fold = printed.partition("== changed by fold\n")[2].partition("\n\n")[0].splitlines()
    assert all(line[0] in "+-" for line in fold)
    assert "+folded is_x: read from tokens by frac_prevs" in fold


def test_json_has_the_texts_too() -> None:
    """And what was tried."""
    found = json.loads(
        invoke("compile", "reverse", "--level", "2", "--print-after", "encode", "--search", "--check-each", "--json")
    )
    (only,) = found["passes"]
    assert only["title"] == "Program after encode"
    assert any(trial["pass"] == "store" and trial["kept"] for trial in found["search"])


def test_the_search_is_shown() -> None:
    """As a table."""
    model = tracr.compile(EXAMPLE.program, EXAMPLE.vocab, EXAMPLE.max_seq_len, level=2)
    assert model.search is not None
    assert model.search.show() in invoke("compile", "reverse", "--level", "2", "--search")


def test_checking_says_so_and_stops_at_a_broken_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what was to be printed up to there."""
    assert "checked after every pass" in invoke("compile", "reverse", "--check-each")
    passes = [replace(one, run=_without_components) if one.name == "prune" else one for one in pipeline.PIPELINE]
    monkeypatch.setattr(pipeline, "PIPELINE", tuple(passes))
    printed = CliRunner().invoke(app, ["compile", "reverse", "--check-each", "--print-after", "lower"])
    assert printed.exit_code == 1
    assert "== Circuit after lower" in printed.output
    assert "after the pass prune" in str(printed.exception)


def _without_components(circuit: Circuit, search: object) -> Circuit:
    return replace(circuit, components=())


def test_a_misspelt_pass_is_refused() -> None:
    """With what was meant."""
    assert "did you mean fold?" in invoke("compile", "reverse", "--print-after", "fodl", status=2)
    assert "the pass trace has no switch" in " ".join(invoke("compile", "reverse", "--with", "trace", status=2).split())


def test_a_saved_model_has_no_passes(tmp_path: object) -> None:
    """It is compiled already."""
    folder = f"{tmp_path}/model"
    invoke("compile", "reverse", "-o", folder)
    assert "compiled already" in invoke("compile", folder, "--print-after", "lower", status=2)
