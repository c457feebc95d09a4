"""`tracr learn`: lists, shows, checks, hints, solutions, progress and grades."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.cli.calling import run
from tracr import learn
from tracr.errors import FormatError
from tracr.learn.progress import PuzzleProgress, progress_file

REVERSE = "answer = aggregate(select(indices, length - 1 - indices, ==), tokens);"


@pytest.fixture(autouse=True)
def data_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of the test's own, which does not exist yet."""
    home = tmp_path / "data"
    monkeypatch.setenv("XDG_DATA_HOME", str(home))
    return home


@pytest.fixture
def solution(tmp_path: Path) -> str:
    path = tmp_path / "reverse.rasp"
    path.write_text(REVERSE)
    return str(path)


@pytest.fixture
def attempt(tmp_path: Path) -> str:
    path = tmp_path / "attempt.rasp"
    path.write_text("same = tokens;\nanswer = same;")
    return str(path)


def test_it_lists_all_puzzles() -> None:
    done = run("learn")
    assert done.returncode == 0
    for puzzle in learn.puzzles():
        (line,) = [
            line for line in done.stdout.splitlines() if line.split()[:1] == [str(puzzle.number)] and "★" in line
        ]
        assert [puzzle.id, puzzle.difficulty, str(puzzle.par)] == [line.split()[1], *line.split()[-2:]]
    assert "0 of 20 solved" in done.stdout
    listed = json.loads(run("learn", "--json").stdout)
    assert [one["id"] for one in listed] == [puzzle.id for puzzle in learn.puzzles()]


def test_it_shows_a_puzzle() -> None:
    shown = run("learn", "3").stdout
    assert shown == run("learn", "reverse").stdout
    assert learn.puzzle(3).statement in shown
    assert "solution" not in shown
    assert json.loads(run("learn", "3", "--json").stdout) == learn.puzzle(3).as_json()
    assert run("learn", "3", "--starter").stdout == learn.puzzle(3).starter


def test_a_wrong_attempt_exits_with_1_and_shows_the_values(attempt: str, tmp_path: Path) -> None:
    done = run("learn", "3", "--check", attempt, "--draw", str(tmp_path / "wrong.svg"))
    assert done.returncode == 1
    assert 'on ["a", "b"] it should give ["b", "a"], but gives ["a", "b"]' in done.stdout
    assert "should be  b  a" in done.stdout
    assert (tmp_path / "wrong.svg").read_text().startswith("<svg")
    assert not progress_file().exists()


def test_a_solution_exits_with_0_and_is_remembered(solution: str) -> None:
    assert run("learn", "3", "--check", solution).returncode == 0
    assert "✓ 2 layers" in run("learn").stdout
    assert json.loads(progress_file().read_text())["solved"] == {"reverse": 2}
    assert json.loads(run("learn", "--json").stdout)[2]["solved"] == 2


def test_the_solution_is_shown_after_solving(solution: str) -> None:
    """Before that with --force only."""
    refused = run("learn", "3", "--solution")
    assert refused.returncode == 1
    assert "not solved yet" in refused.stderr
    assert refused.stdout == ""
    assert run("learn", "3", "--solution", "--force").stdout == learn.puzzle(3).solution
    assert run("learn", "3", "--solution").returncode == 1  # looking is not solving
    run("learn", "3", "--check", solution)
    assert run("learn", "3", "--solution").stdout == learn.puzzle(3).solution


def test_each_call_shows_one_more_hint() -> None:
    hints = learn.puzzle(3).hints
    for shown in (1, 2, 3, 3):
        lines = run("learn", "3", "--hint").stdout.splitlines()
        assert lines == [f"{number}. {hint}" for number, hint in enumerate(hints[:shown], start=1)]
    assert run("learn", "4", "--hint").stdout.startswith(f"1. {learn.puzzle(4).hints[0]}\n")


def test_errors_in_the_program_show_the_place(tmp_path: Path) -> None:
    (tmp_path / "typo.rasp").write_text("answer = lenght;")
    done = run("learn", "3", "--check", str(tmp_path / "typo.rasp"))
    assert done.returncode == 1
    assert "typo.rasp:1:10" in done.stderr
    assert "did you mean length?" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["99"], "there is no puzzle '99'"),
        (["revers"], "did you mean reverse?"),
        (["3", "--check", "nowhere.rasp"], "there is no file nowhere.rasp"),
        (["3", "--check", __file__], "is not a .rasp file"),
        (["--grade", "nowhere"], "there is no folder nowhere"),
    ],
)
def test_mistakes_exit_with_1(words: list[str], message: str) -> None:
    done = run("learn", *words)
    assert done.returncode == 1
    assert message in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--hint"], "which puzzle?"),
        (["3", "--hint", "--solution"], "give one of"),
        (["3", "--grade", "."], "leave out PUZZLE"),
        (["3", "--force"], "--force"),
        (["3", "--draw", "x.svg"], "--draw"),
        (["3", "--csv", "x.csv"], "--csv"),
        (["3", "--name", "x"], "--name"),
    ],
)
def test_wrong_usage_exits_with_2(words: list[str], message: str) -> None:
    done = run("learn", *words)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", '{"format": "tracr-learn-1"}', '{"format": "other", "solved": {}, "hints": {}}',
     '{"format": "tracr-learn-1", "solved": {"reverse": "x"}, "hints": {}}', "\udcff", "[" * 5000],
)  # fmt: skip
def test_damaged_progress_is_an_error(content: str, tmp_path: Path) -> None:
    (tmp_path / "learn.json").write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(FormatError, match="cannot be read as a list of solved puzzles"):
        PuzzleProgress.read(tmp_path / "learn.json")


def test_damaged_progress_is_told_and_left_alone() -> None:
    progress_file().parent.mkdir(parents=True)
    progress_file().write_text("{")
    listed = run("learn")
    assert "cannot be read as a list of solved puzzles" in listed.stderr
    assert "0 of 20 solved" in listed.stdout
    assert run("learn", "3", "--hint").stdout.startswith("1. ")
    assert progress_file().read_text() == "{"


def test_a_data_folder_that_cannot_be_written_is_a_warning(data_home: Path, solution: str) -> None:
    data_home.write_text("a file, not a folder")
    done = run("learn", "3", "--check", solution, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["solved"]
    assert "warning" in done.stderr
    assert run("learn", "3", "--hint").stdout.startswith("1. ")


def test_a_class_is_graded(tmp_path: Path) -> None:
    """Files by student, in folders or by name; the table, the CSV and the JSON agree."""
    folder = tmp_path / "class"
    for name, text in {
        "anna/reverse.rasp": REVERSE,
        "anna/03.rasp": "answer = tokens;",
        "bob-reverse.rasp": "answer = tokens;",
        "=cmd-first.rasp": "answer = tokens[0];",
        "bob-count.rasp": "answer = coutn;",
        "bob-nothing.rasp": "answer = tokens;",
        "bob-first.rasp": 'load "/etc/hosts";\nanswer = tokens;',
        "notes.txt": "not a program",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    out = tmp_path / "grades.csv"
    done = run("learn", "--grade", str(folder), "--csv", str(out))
    assert done.returncode == 0
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    found = {(row["student"], row["file"]): (row["puzzle"], row["result"]) for row in rows}
    assert found == {
        ("anna", "anna/reverse.rasp"): ("reverse", "solved"),
        ("anna", "anna/03.rasp"): ("reverse", "wrong"),
        ("bob", "bob-reverse.rasp"): ("reverse", "wrong"),
        ("'=cmd", "'=cmd-first.rasp"): ("first", "solved"),
        ("bob", "bob-count.rasp"): ("count", "error"),
        ("bob", "bob-nothing.rasp"): ("", "no puzzle"),
        ("bob", "bob-first.rasp"): ("first", "error"),
    }
    graded = learn.grade(folder)
    assert graded.solved == {"=cmd": 1, "anna": 1, "bob": 0}
    assert [one["file"] for one in graded.as_json()] == [one.file for one in graded.files]
    for text in (done.stdout, str(graded), graded._repr_html_()):
        assert all(one.file in text and one.result in text for one in graded.files)
    (wrong,) = [row for row in rows if row["file"] == "bob-reverse.rasp"]
    assert wrong["counterexample"] == '["a", "b"]'
    (error,) = [row for row in rows if row["file"] == "bob-count.rasp"]
    assert "did you mean" in error["message"]


def test_a_fault_of_ours_does_not_end_the_grading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError("no memory left")

    monkeypatch.setattr(learn.Puzzle, "check", fail)
    (tmp_path / "reverse.rasp").write_text(REVERSE)
    (one,) = learn.grade(tmp_path).files
    assert (one.student, one.result, one.message) == (tmp_path.name, "error", "MemoryError: no memory left")


def test_an_empty_class_has_no_results(tmp_path: Path) -> None:
    assert learn.grade(tmp_path).files == ()
    assert run("learn", "--grade", str(tmp_path)).returncode == 0
