"""The command line, run as a user would: in its own process, and through typer's runner."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import tracr
from tests.agreement import load_compiled
from tracr.cli import app, read_tokens, read_vocabulary
from tracr.compiler.pipeline import PIPELINE
from tracr.errors import InputError
from tracr.ir.switches import OPTIONS
from tracr.rasp.programs import EXAMPLES

PROGRAMS = '''
from tracr.rasp import rasp
from tracr.rasp.programs import Example, make_count

squares = rasp.Map(lambda x: x * x, rasp.tokens).named("squares")
several = {"squares": squares, "double": 2 * rasp.tokens}
ready = Example(squares, (1, 2), 3, "squares of numbers")
unreached = rasp.SequenceMap(lambda a, b: 1 / (9 - a - b), make_count(rasp.tokens, "a"), make_count(rasp.tokens, "b"))
number = 3


def make():
    """A program made by a function."""
    return squares
'''


def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `tracr` in its own process."""
    environment = {**os.environ, **variables}
    return subprocess.run(
        [sys.executable, "-m", "tracr.cli", *words], capture_output=True, text=True, check=False, env=environment
    )


def invoke(*words: str) -> str:
    """Run `tracr` in this process; it must succeed."""
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return str(result.output)


def invoke_json(*words: str) -> Any:
    return json.loads(invoke(*words, "--json"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of programs."""
    path = tmp_path / "my:programs.py"
    path.write_text(PROGRAMS)
    return path


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A saved model."""
    invoke("compile", "reverse", "-o", str(tmp_path / "reverse"))
    return tmp_path / "reverse"


# The commands


def test_run_shows_the_model_beside_the_interpreter() -> None:
    """The demo's command."""
    done = run("run", "frac_prevs", "x", "a", "c", "x")
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
    assert "one" not in " ".join(rows[mlp:])


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


# Programs in files


def test_files_are_programs(file: Path) -> None:
    """An s-op, several, an Example, a function; the name comes after the last colon."""
    assert invoke_json("run", f"{file}:squares", "-1", "2", "--vocab=-1,2")["model"] == {"squares": [1, 4]}
    several = invoke_json("run", f"{file}:several", "2", "--vocab", "1,2")
    assert several["model"] == several["interpreter"] == {"squares": [4], "double": [4]}
    assert invoke_json("run", f"{file}:ready", "2")["model"] == {"squares": [4]}
    assert invoke_json("run", f"{file}:make", "2", "--vocab", "[2]")["model"] == {"squares": [4]}


def test_the_source_of_a_file_is_saved(file: Path, tmp_path: Path) -> None:
    """With the model."""
    invoke("compile", f"{file}:ready", "-o", str(tmp_path / "model"))
    assert load_compiled(tmp_path / "model").source == PROGRAMS


@pytest.mark.parametrize(
    ("text", "name", "status", "message"),
    [
        (PROGRAMS, "squares", 2, "add --vocab"),
        (PROGRAMS, "nothing", 1, "its programs are squares, several, ready"),
        (PROGRAMS, "number", 1, "is 3, not a program"),
        ("import missing_module", "x", 1, "programs.py:1 failed: ModuleNotFoundError"),
        ("x = (", "x", 1, "programs.py:1 failed: SyntaxError"),
        ("raise SystemExit(0)", "x", 1, "programs.py:1 failed: SystemExit"),
        ("def f(x): return x", "f", 1, "without arguments"),
    ],
)
def test_files_with_mistakes(tmp_path: Path, text: str, name: str, status: int, message: str) -> None:
    """What is wrong, and where."""
    path = tmp_path / "programs.py"
    path.write_text(text)
    done = run("run", f"{path}:{name}", "1")
    assert done.returncode == status
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_without_a_name_lists_its_programs(file: Path) -> None:
    """To choose from."""
    done = run("run", str(file))
    assert done.returncode == 1
    assert f"{file}:squares" in done.stderr


def test_warnings_are_one_line(file: Path) -> None:
    """On standard error, without Python's file and line."""
    done = run("run", f"{file}:unreached", "a", "b", "--vocab", "ab", "--max-len", "5")
    assert done.returncode == 0
    assert done.stderr.startswith("tracr: warning: ")
    assert "warnings.warn" not in done.stderr


# Mistakes


@pytest.mark.parametrize(
    "words",
    [
        ("run", "frac_prevs", "q"),
        ("run", "nothing"),
        ("run", "hist", "abc"),
        ("run", "sort", "1", "2", "3", "4", "1"),
        ("show", "frac_prevs", "q"),
        ("info", "."),
    ],
)
def test_mistakes_get_a_few_lines_and_no_traceback(words: tuple[str, ...]) -> None:
    """Exit status 1, a message with advice."""
    done = run(*words)
    assert done.returncode == 1
    assert done.stderr.startswith("tracr: ")
    assert "hint" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "words",
    [
        ("nothing",),
        ("run",),
        ("run", "sort", "--levl", "0"),
        ("compile", "sort", "--level", "7"),
        ("compile", "sort", "--max-len", "0"),
        ("compile", "sort", "--without", "nothing"),
        ("compile", "sort", "--with", "fold", "--without", "fold"),
        ("compile", "sort", "--show", "nothing"),
        ("compile", "sort", "--vocab", '["a",]'),
    ],
)
def test_wrong_usage_exits_with_2(words: tuple[str, ...]) -> None:
    """And says how to use it."""
    done = run(*words)
    assert done.returncode == 2
    assert "Usage" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("run", "srot", "1"), "did you mean sort?"),
        (("info", "shuffle_dyk2"), "did you mean shuffle_dyck2 or shuffle_dyck?"),
        (("run", "sort", "1", "--levl", "0"), "did you mean --level?"),
        (("compile", "sort", "--levl", "0"), "--level"),
        (("compile", "sort", "--with", "fld"), "did you mean fold?"),
        (("compile", "sort", "--show", "infr"), "did you mean infer?"),
        (("rum", "sort"), "Did you mean 'run'?"),
        (("huggingface", "sort", "--activation", "rlu", "-o", "x"), "did you mean relu?"),
        (("compress", "sort", "--method", "fats"), "did you mean fast?"),
        (("run", "sort", "1", "2", "3", "4", "1"), "add --max-len 5"),
        (("run", "sort", "3 1 2"), "write 3 1 2"),
        (("run", "sort", "312"), "put spaces between tokens: 3 1 2"),
        (("explore", "sort", "-o", "x.png"), "must end in .html"),
        (("draw", "sort", "-o", "x.png"), "must end in .svg; `tracr figure` writes .png"),
    ],
)
def test_mistakes_are_answered_with_what_was_meant(words: tuple[str, ...], meant: str) -> None:
    """Names of programs, options, passes, stages and commands; files of the wrong kind."""
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code != 0
    assert meant in " ".join(f"{result.output} {result.exception}".split())


@pytest.mark.parametrize("words", [("--debug", "run", "frac_prevs", "q"), ("run", "frac_prevs", "q", "--debug")])
def test_debug_shows_where_an_error_comes_from(words: tuple[str, ...]) -> None:
    """Anywhere on the line."""
    assert "Traceback" in run(*words).stderr


def test_help_and_version() -> None:
    """Every command explains its options."""
    assert tracr.__version__ in invoke("--version")
    assert "compile" in invoke("--help")
    for command in ("list", "compile", "run", "show", "info"):
        assert "--json" in invoke(command, "-h")


# Without a terminal, and with one


def test_no_colour_codes_and_no_broken_lines_when_piped() -> None:
    """Whatever the width, unless colour is asked for."""
    for words in (("show", "sort", "3", "1"), ("info", "sort"), ("list",), ("--help",)):
        done = run(*words, COLUMNS="40", TERM="xterm-256color")
        assert "\x1b" not in done.stdout
        assert not any(line.endswith(" ") for line in done.stdout.splitlines() if words[0] != "--help")
    assert "selects 0..1), default None" in run("info", "sort", COLUMNS="40").stdout


def test_terminals_that_know_ascii_only(file: Path) -> None:
    """Tokens they cannot show are spelled out."""
    done = run("show", "length", "é", "--vocab", "é", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr
    assert "\\xe9" in done.stdout


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a pseudo-terminal")
def test_a_terminal_gets_colour_and_lines_that_fit() -> None:
    """Columns that do not fit come in several tables."""
    import fcntl
    import pty
    import struct
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 50, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS")}
    words = [sys.executable, "-m", "tracr.cli", "show", "hist", *"abcabc", "--max-len", "12"]
    process = subprocess.Popen(words, stdout=slave, stderr=slave, env={**environment, "TERM": "xterm-256color"})
    os.close(slave)
    output = b""
    while True:
        try:
            data = os.read(master, 65536)
        except OSError:
            break
        if not data:
            break
        output += data
    os.close(master)
    assert process.wait() == 0
    text = output.decode()
    assert "\x1b[" in text
    lines = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()]
    assert all(len(line) <= 50 for line in lines)
    rows = [line.split()[2:] for line in lines if line.split()[:2] == ["hist", "interpreter"]]
    assert len(rows) > 1
    assert [value for row in rows for value in row] == ["2"] * 6


# Words


def test_tokens_are_read_against_the_vocabulary() -> None:
    """Numbers where the vocabulary has numbers; an error where it is ambiguous."""
    assert read_tokens(["1", "a", "0.5"], [1, "a", 0.5]) == [1, "a", 0.5]
    assert read_tokens(["1"], ["1"]) == ["1"]
    assert read_tokens(["True", "None", "(1, 'a')"], [True, None, (1, "a")]) == [True, None, (1, "a")]
    with pytest.raises(InputError, match="print alike"):
        read_tokens(["1"], [1, "1"])
    with pytest.raises(InputError, match="put spaces between tokens: a b"):
        read_tokens(["ab"], ["a", "b"])
    with pytest.raises(typer.BadParameter, match="neither an option nor a token"):
        read_tokens(["--levle"], ["a"])


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("abc", ["a", "b", "c"]),
        ("()[]", ["(", ")", "[", "]"]),
        ("[]", ["[", "]"]),
        ("[(])", ["[", "(", "]", ")"]),
        ("[()]", ["[", "(", ")", "]"]),
        (",", [","]),
        ("1,2,-0.5,x", [1, 2, -0.5, "x"]),
        ("cat, dog", ["cat", "dog"]),
        ('["a", 1, "1", null, true, ["x", 2]]', ["a", 1, "1", None, True, ("x", 2)]),
    ],
)
def test_vocabularies(text: str, tokens: list[Any]) -> None:
    """Characters, comma separated, or JSON."""
    assert repr(read_vocabulary(text)) == repr(tokens)


@pytest.mark.parametrize("text", ["a,,b", '["a",]', '[{"a": 1}]'])
def test_vocabularies_with_mistakes(text: str) -> None:
    """Refused, not guessed."""
    with pytest.raises(typer.BadParameter):
        read_vocabulary(text)
