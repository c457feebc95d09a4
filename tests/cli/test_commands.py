"""The commands list, passes, compile, run, show, info and verify."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tracr
from tests.agreement import load_compiled
from tests.cli.calling import invoke, invoke_json, run, run_apart
from tracr.cli import app
from tracr.compiler.pipeline import PIPELINE
from tracr.ir.switches import OPTIONS
from tracr.rasp.programs import EXAMPLES


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A saved model."""
    invoke("compile", "reverse", "-o", str(tmp_path / "reverse"))
    return tmp_path / "reverse"


def test_run_shows_the_model_beside_the_interpreter() -> None:
    """The demo's command."""
    done = run_apart("run", "frac_prevs", "x", "a", "c", "x")
    assert done.returncode == 0
    assert "model        1     0.5  0.333333  0.5" in done.stdout
    assert done.stderr == ""


def test_verify_compares_and_says_so() -> None:
    """All inputs of a small program, status 0; as JSON too."""
    done = run("verify", "frac_prevs")
    assert done.returncode == 0
    assert "all 1,364 inputs compared, padded and unpadded: all agree" in done.stdout
    data = invoke_json("verify", "hist")
    assert data["agrees"]
    assert data["exhaustive"]


def test_list_names_the_programs() -> None:
    """All of the library, in columns and as JSON."""
    assert "shuffle_dyck2" in run("list").stdout
    assert [entry["name"] for entry in invoke_json("list")] == list(EXAMPLES)


@pytest.mark.parametrize("stage", ["trace", "infer", "translate", "schedule", "construct", "assemble"])
def test_compile_shows_stages(stage: str) -> None:
    """The text of the stage and nothing else."""
    example = EXAMPLES["reverse"]
    model = tracr.compile(example.program, example.vocab, 3, level=0)
    assert invoke("compile", "reverse", "--max-len", "3", "--level", "0", "--show", stage) == model.show(stage) + "\n"


def test_compile_takes_the_options_of_a_compilation() -> None:
    """Vocabulary, length, level and masking reach the compiler."""
    got = invoke_json("compile", "hist", "--vocab", "xyz", "--max-len", "3", "--level", "0", "--causal")
    assert (got["vocab"], got["lengths"], got["level"], got["causal"]) == (["x", "y", "z"], [1, 3], 0, True)


def test_passes_are_listed_and_switched() -> None:
    """--with and --without, which may be repeated, reach the compiler."""
    listed = {one["name"]: one["level"] for one in invoke_json("passes")}
    assert list(listed) == [*(one.name for one in PIPELINE), *OPTIONS]
    levels = [*((str(one.name), one.level) for one in PIPELINE), *((name, one.level) for name, one in OPTIONS.items())]
    assert listed == dict(levels)
    assert set(listed.values()) == {0, 1, 2, None}
    assert re.search(r"^solve +--with solve +finds the best assignment", invoke("passes"), re.MULTILINE)
    assert "removes linear functions" in invoke("passes")
    words = ("--without", "sums", "--without", "fuse", "--with", "bits")
    got = invoke("compile", "dyck1", "--level", "2", *words, "--show", "translate")
    example = EXAMPLES["dyck1"]
    passes = {"sums": False, "fuse": False, "bits": True}
    model = tracr.compile(example.program, example.vocab, example.max_seq_len, level=2, passes=passes)
    assert got == model.show("translate") + "\n"


def test_a_saved_model_is_a_program(saved: Path) -> None:
    """It runs, shows itself and tells about itself as before; options to compile it are refused."""
    assert invoke_json("run", str(saved), "a", "b")["model"] == {"reverse": ["b", "a"]}
    assert invoke_json("run", str(saved), "a", "b")["agree"]
    assert invoke("compile", str(saved), "--show", "trace") == invoke("compile", "reverse", "--show", "trace")
    assert invoke("show", str(saved), "a", "b") == invoke("show", "reverse", "a", "b")
    assert {**invoke_json("info", str(saved)), "name": ""} == {**invoke_json("info", "reverse"), "name": ""}
    done = run("run", str(saved), "a", "--level", "0")
    assert done.returncode == 2
    assert "compiled already; leave out --level" in done.stderr
    done = run("run", str(saved), "a", "--without", "share")
    assert "compiled already; leave out --without" in done.stderr


def test_compile_leaves_other_folders_alone(tmp_path: Path) -> None:
    """Without --overwrite."""
    (tmp_path / "notes").write_text("mine")
    done = run("compile", "reverse", "-o", str(tmp_path))
    assert done.returncode == 1
    assert "--overwrite" in done.stderr
    invoke("compile", "reverse", "-o", str(tmp_path), "--overwrite")
    assert load_compiled(tmp_path)("ab") == ["b", "a"]


def test_info_has_the_numbers_of_the_model() -> None:
    """As text and as JSON."""
    example = EXAMPLES["sort"]
    model = tracr.compile(example.program, example.vocab, example.max_seq_len)
    got = invoke_json("info", "sort")
    layers = model.parameters.layers
    assert (got["layers"], got["d_model"], got["parameters"]) == (model.n_layers, model.d_model, model.n_parameters)
    assert got["heads"] == max(len(layer.W_Q) for layer in layers)
    assert got["d_head"] == max(layer.W_Q.shape[2] for layer in layers)
    assert got["d_mlp"] == max(layer.W_in.shape[1] for layer in layers)
    assert got["nonzero"] == sum(int((array != 0).sum()) for _, array in model.parameters.named())
    assert [len(block) for block in got["blocks"]] == [3] * model.n_layers
    assert [entry["label"] for entry in got["residual"]] == model.residual.labels
    assert {part["kind"] for part in got["components"]} == {"head", "mlp"}
    text = invoke("info", "sort")
    assert f"{model.n_parameters:,}" in text
    assert "target_pos" in text


def test_show_marks_what_each_sublayer_changes() -> None:
    """Rows grouped by variable, the interpreter's values first."""
    lines = invoke("show", "frac_prevs", "x", "a", "c", "x", "--level", "0").splitlines()
    rows = [" ".join(line.split()) for line in lines]
    assert "attn 0 no-op" in rows
    mlp = rows.index("mlp 0")
    assert rows[mlp + 1 : mlp + 7][-2:] == ["is_x interpreter True False False True", "number . *1 . . *1"]
    attention = rows.index("attn 1")
    assert "frac_prevs interpreter 1 0.5 0.333333 0.5" in rows[attention:]
    assert "number . *1 *0.5 *0.333 *0.5" in rows[attention:]
    assert not any(row.startswith("one ") for row in rows[mlp:])


def test_show_all_repeats_the_whole_stream() -> None:
    """Every variable after every sub-layer."""
    rows = invoke("show", "frac_prevs", "x", "a", "--level", "0", "--all").splitlines()
    assert sum(row.strip().startswith("frac_prevs") for row in rows) == 5
    got = invoke_json("show", "frac_prevs", "x", "a", "--level", "0")
    assert [step["name"] for step in got["sublayers"]] == ["embed", "attn 0", "mlp 0", "attn 1", "mlp 1"]
    assert len(got["sublayers"][0]["stream"]) == 3
    assert got["interpreter"]["frac_prevs"] == [1, 0.5]
    assert len(got["residual"]) == len(got["sublayers"][0]["stream"][0])


REUSING = ("--with", "fold", "--with", "reuse")


def test_show_says_what_is_cleared() -> None:
    """Where dimensions are used again: variables come and go, and JSON has a label for every column."""
    text = invoke("show", "reverse", "a", "b", *REUSING, "--all")
    last = text[text.index("attn 2") :]
    assert re.search(r"^ +length +cleared$", last, re.MULTILINE)
    assert re.search(r"^ +length +not written yet$", text, re.MULTILINE)
    assert re.search(r"^ +length +cleared( +\*){2}$", text, re.MULTILINE)
    got = invoke_json("show", "reverse", "a", "b", *REUSING)
    assert {len(row) for step in got["sublayers"] for row in step["stream"]} == {len(got["residual"])}
    assert "length:1" in got["residual"]


def test_info_says_what_is_folded() -> None:
    """And that there are more directions than dimensions; JSON says when each is there."""
    text = invoke("info", "reverse", *REUSING)
    assert re.search(r"^folded +opposite, read from sequence_map$", text, re.MULTILINE)
    assert re.search(r"^d_model +18, for 24 directions$", text, re.MULTILINE)
    held = {one["label"]: one for one in invoke_json("info", "reverse", *REUSING)["residual"]}
    assert (held["length:1"]["since"], held["length:1"]["until"]) == (1, 3)
    assert held["tokens:a"]["until"] is None


@pytest.mark.parametrize("command", ["run", "show"])
def test_the_empty_input_is_an_input(command: str) -> None:
    """Nothing in, nothing out; it is typed, lest a forgotten input looks like one."""
    assert invoke(command, "sort", "")
    assert invoke(command, "shift_by", "")


@pytest.mark.parametrize(
    ("command", "program", "example"),
    [("run", "sort", "3 1 2 1"), ("show", "hist", "a b a c a"), ("run", "dyck2", "'(' '{' '}' ')' '}'")],
)
def test_without_tokens_the_command_says_what_to_type(command: str, program: str, example: str) -> None:
    """And what it says can be typed."""
    result = CliRunner().invoke(app, [command, program])
    assert result.exit_code == 2
    message = " ".join(result.output.split())
    assert f"such as `tracr {command} {program} {example}`" in message
    assert invoke(command, program, *shlex.split(example))
