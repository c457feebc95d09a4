"""Completion in shells: what `tracr` answers to the scripts of bash, zsh and fish, and bash itself."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.calling import run
from tracr import zoo
from tracr.cli.completion import joined
from tracr.ir.switches import OPTIONS, PASSES
from tracr.rasp.programs import EXAMPLES

ROOT = Path(__file__).parents[2]


def in_bash(*words: str) -> list[str]:
    """The answers to the words as bash splits them, the last one at the cursor."""
    line = "\n".join(["tracr", *words])
    done = run(COMP_WORDS=line, COMP_CWORD=str(len(words)), _TRACR_COMPLETE="complete_bash")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def in_zsh_or_fish(line: str, shell: str) -> str:
    """The text that the script of the shell reads."""
    done = run(
        _TYPER_COMPLETE_ARGS=line,
        _TYPER_COMPLETE_FISH_ACTION="get-args",
        _TRACR_COMPLETE=f"complete_{shell}",
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_programs() -> None:
    """Those of the library and the zoo; bash wants only the part after the colon."""
    assert {*in_bash("run", "")} >= {*EXAMPLES, *(f"zoo:{name}" for name in zoo.ENTRIES)}
    assert in_bash("run", "rev") == ["reverse"]
    assert {*in_bash("explore", "zoo", ":")} == {*zoo.ENTRIES}
    assert in_bash("certify", "zoo", ":", "sort_d") == ["sort_descending"]
    assert in_bash("twin", "sort", "zoo", ":", "sort_d") == ["sort_descending"]
    assert "zoo:sort_descending" in in_zsh_or_fish("tracr run zoo:sort_d", "fish")
    assert r"zoo\\:sort_descending" in in_zsh_or_fish("tracr run zoo:sort_d", "zsh")


def test_files_and_saved_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs in files, their s-ops, and folders of models; a Python file is not executed."""
    monkeypatch.chdir(tmp_path)
    assert run("compile", "reverse", "-o", "revised").returncode == 0
    Path("programs").mkdir()
    for folder in (Path(), Path("programs")):
        (folder / "review.rasp").write_text("far = indices + 1;\nnear, fast = far, 2;\ndef f(x) { return x; }\n")
        (folder / "revue.py").write_text("raise SystemExit('executed')")
        (folder / "rev.txt").write_text("")
    assert in_bash("run", "rev") == ["reverse", "review.rasp", "revised", "revue.py"]
    assert in_bash("run", "programs/re") == ["programs/review.rasp", "programs/revue.py"]
    assert in_bash("run", "review.rasp", ":", "fa") == ["far", "fast"]
    assert in_bash("run", "review.rasp", "--name", "") == ["far", "near", "fast"]
    assert in_bash("run", "revue.py", ":") == []
    Path("review.rasp").write_text("far = = 1;")
    assert in_bash("run", "review.rasp", ":", "fa") == []
    assert in_bash("run", "nowhere/fi") == []


@pytest.mark.parametrize(
    ("words", "answers"),
    [
        (("verif",), ["verify"]),
        (("compile", "sort", "--max-l"), ["--max-len"]),
        (("compile", "sort", "--level", ""), ["0", "1", "2"]),
        (("compile", "sort", "--level", "=", "2"), ["2"]),
        (("compile", "sort", "--with", ""), [*PASSES, *OPTIONS]),
        (("compile", "sort", "--without", "fold"), ["fold"]),
        (("compile", "sort", "--print-after", "fac"), ["factor"]),
        (("compile", "sort", "--show", "l"), ["lower", "layout"]),
        (("compile", "sort", "--dtype", "b"), ["bfloat16"]),
        (("compress", "sort", "--method", "p"), ["pca"]),
        (("sweep", "--studies", "frac_prevs,s"), ["frac_prevs,sort_unique"]),
        (("sweep", "--programs", "sort,rev"), ["sort,reverse"]),
        (("figure", "sort", "--kind", "st"), ["stream"]),
        (("zoo", "sort_d"), ["sort_descending"]),
        (("zoo", "--tag", "cla"), ["classic"]),
        (("certify", "sort", "--probe", "nu"), ["numpy"]),
        (("lab", "cases", "cor"), ["core"]),
        (("lab", "run", "--methods", "eap,acd"), ["eap,acdc"]),
        (("lab", "run", "--granularity", "h"), ["head"]),
    ],
)
def test_values_of_options(words: tuple[str, ...], answers: list[str]) -> None:
    """Commands, options, and the values that an option takes."""
    assert in_bash(*words) == answers


def test_words_are_joined_as_typed() -> None:
    """At every place of the cursor."""
    words = ["tracr", "run", "a.rasp", ":", "y", "--vocab", "=", "ab", "c"]
    whole = ["tracr", "run", "a.rasp:y", "--vocab=ab", "c"]
    assert [joined(words, place) for place in range(10)] == [(whole, at) for at in (0, 1, 2, 2, 2, 3, 3, 3, 4, 9)]


def test_every_shell_has_a_script() -> None:
    """The variable of typer prints it where the shell cannot be recognised."""
    for shell in ("bash", "zsh", "fish"):
        done = run(_TRACR_COMPLETE=f"source_{shell}")
        assert done.returncode == 0
        assert f"complete_{shell}" in done.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_uses_the_answers(tmp_path: Path) -> None:
    """The script in a bash of its own, with the words as bash splits them."""
    (tmp_path / "tracr").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tracr.cli "$@"\n')
    (tmp_path / "tracr").chmod(0o755)
    script = f"""
        PATH={tmp_path}:$PATH
        eval "$(_TRACR_COMPLETE=source_bash tracr)"
        COMP_WORDS=(tracr run zoo : sort_d) COMP_CWORD=4
        _tracr_completion tracr
        printf '%s|' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "sort_descending|", "")
