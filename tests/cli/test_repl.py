"""The interactive interpreter: its sessions, its pipes, and a real terminal."""

from __future__ import annotations

import io
import os
import re
import select
import subprocess
import sys
import time
from html import unescape
from pathlib import Path

import pytest

import tracr
from tests.cli.calling import run
from tests.hanging import HUNG
from tests.text.cases import of_kind
from tests.text.transcripts import entries
from tracr.cli.repl.session import Session
from tracr.model.compiled import CompiledModel

DOCS = Path(__file__).parents[2] / "docs"


def piped(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[int, str]:
    """The exit status of `tracr repl` with this standard input, and what it prints."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    done = run("repl", *words)
    assert not done.stderr
    return done.returncode, done.stdout


def test_the_reference_s_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it prints, we print; but for its banner and prompts, and the input it shows wrongly."""
    (case,) = of_kind("repl")
    expected = [line.replace(">> ", "") for line in case["stdout"].splitlines()][2:]
    expected = [line.rstrip() for line in expected if line.strip()]
    wrong = expected.index(" \t\tinput:   a b a \t (strings)")
    assert expected[wrong + 1] == " \t\toutput:  1 2 \t (strings)"
    expected[wrong] = " \t\tinput:   1 2 \t (ints)"
    _, answer = piped(case["stdin"], tmp_path, monkeypatch)
    assert [line.rstrip() for line in answer.splitlines()] == expected


def test_a_pipe_with_an_error_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit status is 1 after any error, of a statement, a command or the file; the other statements are run."""
    (tmp_path / "bad.rasp").write_text("y = nope;\n")
    (tmp_path / "good.rasp").write_text("y = indices;\n")
    for text, words, status in (
        ("y = indices + 1;\n:verify y\n", (), 0),
        ("2 ^ 3 ^ 2;\n", (), 0),  # a warning
        ("y;\n", ("good.rasp",), 0),
        ("1;\n", ("bad.rasp",), 1),
        ("y = = 1;\n2;\n", (), 1),
        ("y = tokens + indices;\n2;\n", (), 1),
        (":nope\n2;\n", (), 1),
        ("2;\ny = (\n", (), 1),
        ("nope;\nquit\n", (), 1),
    ):
        assert piped(text, tmp_path, monkeypatch, *words)[0] == status, text
    assert "value: 2" in piped("y = = 1;\n2;\n", tmp_path, monkeypatch)[1]
    command = [sys.executable, "-m", "tracr.cli", "repl"]
    assert subprocess.run(command, input="nope;\n", capture_output=True, text=True, check=False).returncode == 1


def test_a_broken_statement_takes_nothing_along() -> None:
    """Not one that lacks its semicolon, nor a bracket that stays open."""
    session = Session()
    answer = session.feed("y = (2 +\nz = 3;\nz + 1;")
    assert "this ( is not closed" in answer
    assert "value: 4" in answer
    answer = session.feed("a = 1\nb = 5;")
    assert "does not end" in answer
    assert "value: 5" in answer
    assert "value: 8" in session.feed("nope;\nb + 3;")


def test_statements_around_broken_ones_are_run() -> None:
    """Before, between and after them; errors keep their lines; the body of a broken function is not run."""
    session = Session()
    answer = session.feed(
        "a = 1;\nb = = 2;\nc = 3;\ndef f(x) {\n  a = 50;\n  return = 1;\n}\ng = (\nd = 4;\n# {\ne = [1,\n2];\nh = = 1;"
    )
    assert [f"<repl>:{place}: " in answer for place in ("2:5", "6:10", "8:5", "13:5")] == [True] * 4
    assert answer.count("<repl>") == 4
    assert "list: [1, 1, 3, 4, [1, 2]]" in session.feed("[1, a, c, d, e];")
    assert "f is not defined" in session.feed("f;")


def test_a_long_text_with_mistakes_is_answered_soon() -> None:
    """It is not read again and again."""
    answer = Session().feed("x = 1;\n" * 2_000 + "y = = 2;\n" + "z = (\n" * 300)
    assert answer.count("value: 1") == 2_000


def test_a_definition_that_fails_changes_nothing() -> None:
    """The name keeps its old value, or stays unknown."""
    session = Session()
    session.feed("y = 1;")
    assert "strings and numbers" in session.feed("y = tokens + indices;")
    assert "value: 1" in session.feed("y;")
    session.feed("z = 1 / indices;")
    assert "z is not defined" in session.feed("z;")


def test_completeness() -> None:
    """More lines are wanted while a statement is open; a semicolon alone may be left out."""
    assert Session.is_complete("y = 1;")
    assert Session.is_complete("y = = 1;")
    assert not Session.is_complete("def f(x) {")
    assert not Session.is_complete("y = indices +")
    assert Session.lacks_only_semicolon("y = indices")
    assert not Session.lacks_only_semicolon("y = indices +")
    assert not Session.lacks_only_semicolon("def f(x) {")


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile, run, verify, describe, draw and print what was defined."""
    monkeypatch.chdir(tmp_path)
    session = Session()
    session.feed('set example "abca"\nhist = selector_width(select(tokens, tokens, ==));')
    assert "1 layer" in session.feed(":compile hist")
    assert session.feed(':run hist "cab"') == "model        [1]*3 (ints)\ninterpreter  [1]*3 (ints)"
    assert "all agree" in session.feed(":verify hist")
    assert "dimensions" in session.feed(":info hist")
    assert session.feed(":draw hist") == "drawn into hist.svg"
    assert (tmp_path / "hist.svg").read_text().startswith("<svg")
    assert session.feed(":print hist") == 'set example "abca"\nhist = selector_width(select(tokens, tokens, ==));'
    assert session.feed(":vocab abcd 6") == "up to 6 of a b c d"
    assert "for up to 6 of a b c d" in session.feed(":compile hist")
    assert "the commands are" in session.feed(":?")
    assert "did you mean :verify?" in session.feed(":verfy hist")
    assert "not defined" in session.feed(":info nope")
    assert ":verify" in session.feed(":help")
    session.feed(":quit")
    assert session.over


def test_drawings_and_pages_have_the_names_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file comes last; without an input it is drawn on the example."""
    monkeypatch.chdir(tmp_path)
    session = Session()
    session.feed('set example "abca"\nhist = selector_width(select(tokens, tokens, ==));')
    for words, name, shown in (
        ('"cab" a.svg', "a.svg", "cab"),
        ("cab b.svg", "b.svg", "cab"),
        ("c.svg", "c.svg", "abca"),
        ('"cab" "d e.svg"', "d e.svg", "cab"),
    ):
        assert session.feed(f":draw hist {words}") == f"drawn into {name}"
        assert f"hist({shown})" in unescape((tmp_path / name).read_text()).replace('"', "")
    assert "does not end in .svg" in session.feed(":draw hist cab a.png")
    for words, name in (("", "hist.html"), ('"cab"', "hist.html"), ('"cab" page.html', "page.html")):
        assert session.feed(f":explore hist {words}") == f"written to {name}, open it in any browser"
        assert "<html" in (tmp_path / name).read_text()
    assert "name it page.html" in session.feed(":explore hist page.svg")
    assert "not an s-op" in session.feed(":explore 3")


def test_the_level_is_that_of_the_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`:level` shows and sets it; models of another level are not used again."""
    monkeypatch.chdir(tmp_path)
    session = Session()
    session.feed("y = selector_width(select(tokens, tokens, ==)) + 1;")
    assert session.feed(":level") == "compiling at level 1"
    for level in (0, 1, 2, 0):
        assert session.feed(f":level {level}") == f"compiling at level {level}"
        assert f"level {level})" in session.feed(":compile y")
    assert "the levels are 0, 1, 2" in session.feed(":level 3")
    assert session.feed(":save y") == "saved in y; tracr.load('y') reads it"
    model = tracr.load("y")
    assert isinstance(model, CompiledModel)
    assert model.options.level == 0
    assert model("hello") == [2, 2, 3, 3, 2]


def test_saved_sessions_define_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What succeeded is saved: not what failed or was only shown, unless `out` reads it."""
    monkeypatch.chdir(tmp_path)
    session = Session()
    assert "nothing to save" in session.feed(":save empty.rasp")
    session.feed(
        'set example "abca"\ny = indices + 1; # a comment\ny("ab");\nd = {1: 2};\nbad = tokens + 1;\nz = = 3;\n'
        "def f(x) {\n  return x * 2;\n}\nfor i in [1, 2] { y = y + i; }\nw = f(y);\ndraw(w);\n"
    )
    assert session.feed(":save all.rasp") == "saved in all.rasp"
    again = tracr.parse_file(tmp_path / "all.rasp")
    assert list(again) == ["y", "d", "f", "i", "w"]
    assert again["w"]("abc") == [8, 10, 12]
    assert again.example == list("abca")
    session.feed("length;\nv = out + 1;")
    assert session.feed(":save all.rasp") == "saved in all.rasp"
    assert tracr.parse_file(tmp_path / "all.rasp")["v"]("abc") == [4, 4, 4]
    assert session.feed(":save w w.rasp") == "saved in w.rasp"
    assert tracr.parse_file(tmp_path / "w.rasp")["w"]("abc") == [8, 10, 12]
    (tmp_path / "mine.rasp").write_text("y = 1;\n")
    for command in (":save mine.rasp", ":save w mine.rasp"):
        assert "mine.rasp exists already" in session.feed(command)
    assert (tmp_path / "mine.rasp").read_text() == "y = 1;\n"
    begun = Session()
    begun.start_with(tmp_path / "all.rasp")
    begun.feed("u = w + 1;")
    begun.feed(":save more.rasp")
    assert tracr.parse_file(tmp_path / "more.rasp")["u"]("abc") == [9, 11, 13]


def test_puzzles() -> None:
    """They are listed, shown and checked."""
    learn = pytest.importorskip("tracr.learn")
    session, first = Session(), learn.puzzles()[0]
    assert first.title in session.feed(":learn")
    assert first.statement in session.feed(":learn 1")
    assert session.feed(f":learn {first.id}") == session.feed(":learn 1")
    assert session.feed(":learn 1 hint 1") == first.hints[0]
    assert "the hints are 1, 2, 3" in session.feed(":learn 1 hint 4")
    session.feed("wrong = length + 100;")
    verdict = first.check(session.runner.names["wrong"])
    assert session.feed(":learn 1 wrong") == str(verdict)
    session.feed(first.solution)
    name = list(session.runner.names)[-1]
    answer = session.feed(f":learn 1 {name}")
    assert "a worked solution" in answer


def test_without_puzzles(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without them says so."""
    monkeypatch.setitem(sys.modules, "tracr.learn", None)
    assert "this installation has no puzzles" in Session().feed(":learn")


def test_a_file_to_start_with(tmp_path: Path) -> None:
    """Its names are there, and what it loads is beside it."""
    (tmp_path / "a.rasp").write_text('load "b";\ny = f(indices);\n')
    (tmp_path / "b.rasp").write_text("def f(x) { return x + 1; }\n")
    session = Session()
    assert "defines y" in session.start_with(tmp_path / "a.rasp")
    assert "[1, 2, 3, 4, 5]" in session.feed("y;")
    (tmp_path / "b.rasp").write_text("def f(x) { return x + 2; }\n")
    session.feed('load "b";')
    assert "[2, 3, 4, 5, 6]" in session.feed("f(indices);")


def test_the_language_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every transcript of docs/language.md, in one session."""
    monkeypatch.chdir(tmp_path)
    session, count = Session(), 0
    for program, answer in entries((DOCS / "language.md").read_text(encoding="utf-8")):
        text = f"{program};" if session.lacks_only_semicolon(program) else program
        assert session.feed(text).split() == answer.split(), program
        count += 1
    assert count > 60


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
class TestTerminal:
    """`tracr repl` in a pseudo-terminal."""

    def drive(self, folder: Path, *keys: tuple[str, str]) -> str:
        """Type each text and wait for what is expected; everything that was shown."""
        pytest.importorskip("prompt_toolkit")
        import pty

        master, slave = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", "XDG_STATE_HOME": str(folder), "PROMPT_TOOLKIT_NO_CPR": "1"}
        process = subprocess.Popen(
            [sys.executable, "-m", "tracr.cli", "repl"],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            cwd=folder,
            close_fds=True,
        )
        os.close(slave)
        seen = ""
        try:
            for text, expected in (("", ">>"), *keys):
                os.write(master, text.encode())
                ready = (">>", "..") if text.endswith("\r") and text != "quit\r" else ""
                new, deadline = "", time.monotonic() + HUNG
                while expected not in plain(new) or not plain(new).rstrip().endswith(ready):
                    assert time.monotonic() < deadline, f"after {text!r}: {plain(seen + new)}"
                    if select.select([master], [], [], 0.2)[0]:
                        try:
                            new += os.read(master, 65536).decode(errors="replace")
                        except OSError:
                            break
                seen += new
            process.wait(timeout=HUNG)
        finally:
            process.kill()
            process.wait()
            os.close(master)
        assert process.returncode == 0
        return plain(seen)

    def test_definitions_are_shown_on_the_example(self, tmp_path: Path) -> None:
        """Over several lines, with completion, without a semicolon, and after a mistake."""
        shown = self.drive(
            tmp_path,
            ("y = indices + 1;\r", "[1, 2, 3, 4, 5] (ints)"),
            ("z = y * 2\r", "[2, 4, 6, 8, 10] (ints)"),
            ("def f(a) {\r", ".."),
            ("return a + 5;\r", "return a + 5;"),
            ("}\r", "function: f(a)"),
            ("f(y);\r", "[6, 7, 8, 9, 10] (ints)"),
            ("selector_wi\t", "selector_width"),
            ("(select(tokens, tokens, ==));\r", "[1, 1, 2, 2, 1] (ints)"),
            ("w = (2 +\r", ".."),
            ("v = 41 + 1;\r", "value: 42"),
            ("select(indices, 1, ==);\r", "o | · 1 · · ·"),
            (":info y\r", "dimensions"),
            ("quit\r", "quit"),
        )
        assert "this ( is not closed" in shown

    def test_history_is_kept(self, tmp_path: Path) -> None:
        """The arrow brings back what was typed in an earlier session; control-D leaves."""
        self.drive(tmp_path, ("3 * 14;\r", "value: 42"), ("\x04", ""))
        shown = self.drive(tmp_path, ("\x1b[A", "3 * 14;"), ("\r", "value: 42"), ("\x04", ""))
        assert "value: 42" in shown


def plain(text: str) -> str:
    """Terminal output without its escape sequences."""
    return re.sub(r"\x1b(\[[0-9;?]*[ -/]*[@-~]|[()][A-Z0-9]|[=>])", "", text)
