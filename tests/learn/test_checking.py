"""Checks of programs: the smallest counterexample, errors that teach, and bounds on time and size."""

from __future__ import annotations

import json
import pickle
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import tracr
from tests.hanging import HUNG
from tests.learn.attempts import WRONG
from tests.learn.brute_force import last_sop, smallest, wrong_inputs
from tracr import learn
from tracr.errors import ExpressionError, InputError, SourceError, TracrError
from tracr.learn import checking
from tracr.learn.puzzle import Puzzle
from tracr.learn.time_limit import TimeIsUp, time_limit
from tracr.rasp import rasp
from tracr.rasp.traversal import topological

SHIFT = 'answer = aggregate(select(indices, indices - 1, ==), tokens, "-");'
REVERSE = "answer = aggregate(select(indices, length - 1 - indices, ==), tokens);"


def test_every_puzzle_has_several_wrong_attempts() -> None:
    assert list(WRONG) == [puzzle.id for puzzle in learn.puzzles()]
    assert all(len(attempts) >= 3 for attempts in WRONG.values())


@pytest.mark.parametrize(("which", "mistake"), [(which, one) for which, all_ in WRONG.items() for one in all_])
def test_wrong_attempt_gets_the_smallest_counterexample(which: str, mistake: str) -> None:
    """No input before it, in the order of length and vocabulary, is answered wrongly; and it is drawn."""
    puzzle, text = learn.puzzle(which), WRONG[which][mistake]
    verdict = puzzle.check(text)
    wrong = verdict.counterexample
    assert wrong is not None
    assert not verdict.solved
    assert verdict.solution is None
    assert verdict.layers is None
    wanted = smallest(puzzle, wrong_inputs(puzzle, last_sop(text), len(wrong.input)))
    assert wrong.input == wanted
    assert list(wrong.expected) == puzzle.answer(wanted)
    assert wrong.got is None or wrong.got != wrong.expected
    assert verdict.checked == list(puzzle.inputs()).index(wanted) + 1
    drawing = ElementTree.fromstring(wrong.svg)
    texts = "".join(drawing.itertext())
    assert ("should be" in texts) == (wrong.got is not None)


def test_solved() -> None:
    """The verdict has the layers, par and the solution."""
    verdict = learn.puzzle("reverse").check(REVERSE)
    assert verdict
    assert (verdict.layers, verdict.par, verdict.checked, verdict.counterexample) == (2, 2, 1092, None)
    assert verdict.solution == learn.puzzle("reverse").solution
    assert verdict.message == (
        "Solved: right on all 1,092 inputs, as a program and as a transformer of 2 layers (that is par)."
    )
    html = verdict._repr_html_()
    assert "A worked solution" in html
    assert "Solved" in html


def test_solved_above_par() -> None:
    verdict = learn.puzzle("rotate").check("answer = aggregate(select(indices, (indices + 1) % length, ==), tokens);")
    assert verdict.solved
    assert verdict.layers == 3
    assert "3 layers (par is 1)" in verdict.message


def test_json_of_a_wrong_answer() -> None:
    """What the contract with the playground says."""
    data = json.loads(json.dumps(learn.puzzle(1).check("answer = tokens;").as_json()))
    assert list(data) == ["solved", "message", "checked", "layers", "par", "counterexample", "solution"]
    assert list(data["counterexample"]) == ["input", "expected", "got", "drawing"]
    assert data["counterexample"]["input"] == ["a"]
    assert data["counterexample"]["got"] == ["a"]
    assert data["counterexample"]["drawing"].startswith("<svg")
    assert data["solution"] is None


def test_verdicts_can_be_sent_between_processes() -> None:
    for text in (SHIFT, "answer = tokens;"):
        verdict = learn.puzzle(1).check(text)
        assert pickle.loads(pickle.dumps(verdict)).as_json() == verdict.as_json()


# kinds of programs


def shift_in_python() -> rasp.SOp:
    before = rasp.Select(rasp.indices, rasp.indices - 1, rasp.Comparison.EQ)
    return rasp.Aggregate(before, rasp.tokens, default="-")


def test_programs_may_be_texts_files_expressions_and_functions(tmp_path: Path) -> None:
    file = tmp_path / "mine.rasp"
    file.write_text(SHIFT)
    for program in (SHIFT, file, shift_in_python(), shift_in_python):
        assert learn.puzzle(1).check(program).solved


def test_a_file_may_load_another_and_a_text_may_not(tmp_path: Path) -> None:
    (tmp_path / "mine.rasp").write_text('load "parts";\nanswer = moved(tokens);')
    (tmp_path / "parts.rasp").write_text('def moved(x) { return shift(x, 1, "-"); }')
    assert learn.puzzle(1).check(tmp_path / "mine.rasp").solved
    with pytest.raises(SourceError, match=r"1:1: there is no file .*\n.*\n.*\n.*looked in no folder"):
        learn.puzzle(1).check(f'load "{tmp_path}/parts";\nanswer = moved(tokens);')


@pytest.mark.parametrize(
    ("text", "name", "solved"),
    [
        (f"{SHIFT} other = tokens;", "answer", True),
        (f"{SHIFT} other = tokens;", "", False),
        (f"other = tokens; {SHIFT}", "", True),
        ('shift(tokens, 1, "-");', "", True),
        (f"answer = tokens; other = tokens; {SHIFT}", "", True),  # defined again: the last statement counts
        (f"{SHIFT} n = 3;", "", True),
    ],
)
def test_the_last_s_op_is_checked_or_the_named_one(text: str, name: str, solved: bool) -> None:
    assert learn.puzzle(1).check(text, name).solved == solved


def test_a_name_that_is_not_defined() -> None:
    with pytest.raises(InputError, match="did you mean answer"):
        learn.puzzle(1).check(SHIFT, "anser")


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("answer = lenght;", r"1:10: the name lenght is not defined\n.*\n.*\n.*did you mean length"),
        ("answer = tokens", "<rasp>:1:16"),
        ("\n\nanswer = select(tokens, tokens);", r"<rasp>:3:31: \) is not allowed here"),
        ("", "defines no s-op"),
        ("reverse.rasp", r"name of a file, not a program\n.*Path\(\"reverse.rasp\"\)"),
        ("# nothing", "defines no s-op"),
        ("def f(x) { return x; }", "defines no s-op"),
        ("n = 3;", "the last value is 3, not an s-op"),
        ("s = select(tokens, tokens, ==);", "is a selector"),
        (rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ), "is a selector"),
        (3, "the program is 3, not an s-op"),
        (None, "the program is None, not an s-op"),
        (lambda: 1 / 0, r"<lambda>\(\) failed: ZeroDivisionError: .* \(line \d+ of test_checking.py\)"),
        (lambda x: x, "takes no arguments and returns an s-op"),
        (lambda: "text", "not an s-op"),
        (SHIFT + "x = tokens;" * 10_000, "characters"),
        ("answer = " + "(" * 500 + "tokens" + ")" * 500 + ";", "nested"),
        ("def f(x) { return f(x); } answer = f(tokens);", "too deeply"),
        ("x = indices;" + "x = x + 1;" * 400 + "answer = x;", "operations, and a puzzle takes at most 300"),
    ],
)
def test_programs_that_cannot_be_read_teach(program: Any, message: str) -> None:
    """Errors with the line and the column, or with what to write instead."""
    with pytest.raises(TracrError, match=message):
        learn.puzzle(1).check(program)


def test_an_error_on_an_input_shows_place_and_hint() -> None:
    verdict = learn.puzzle(1).check("both = tokens + indices;\nanswer = both;")
    assert verdict.message.splitlines()[0] == 'Not yet: on ["a"] it should give ["-"], but fails.'
    assert "<rasp>:1:8" in verdict.message
    assert "tokens_int" in verdict.message
    assert verdict.counterexample is not None
    assert verdict.counterexample.got is None
    assert verdict.as_json()["counterexample"]["got"] is None


def test_undefined_values_are_explained() -> None:
    before = rasp.Select(rasp.indices, rasp.indices - 1, rasp.Comparison.EQ)
    verdict = learn.puzzle(1).check(rasp.Aggregate(before, rasp.tokens))
    assert "gives [None]" in verdict.message
    assert "give the aggregate a default" in verdict.message
    assert verdict.as_json()["counterexample"]["got"] == [None]


def test_numbers_for_strings_are_explained() -> None:
    verdict = learn.puzzle("sort").check("answer = sort(tokens_int, tokens_int);")
    assert 'the number 1 is not the string "1"' in verdict.message


def test_precedence_that_is_easily_misread_is_told_not_warned() -> None:
    verdict = learn.puzzle("seen").check("answer = not has_focus(select(tokens, tokens, ==)) == 2;")
    assert len(verdict.warnings) == 1
    assert "this means" in verdict.as_json()["message"]


def test_numbers_are_compared_up_to_rounding() -> None:
    text = 'answer = 1 - aggregate(select(indices, indices, <=), indicator(tokens != "a"));'
    assert learn.puzzle("share").check(text).solved


def test_a_right_program_that_is_too_large_is_no_transformer() -> None:
    """The compiler's refusal is explained, and not counted as solved."""
    text = (
        "p = tokens;\n" + 'p = shift(p, 1, "") + p;\n' * 6 + REVERSE.replace("tokens)", 'tokens if p != "?" else "a")')
    )
    verdict = learn.puzzle("reverse").check(text)
    assert not verdict.solved
    assert verdict.counterexample is None
    assert "not yet a transformer" in verdict.message
    assert "<rasp>:" in verdict.message


def test_a_wrong_transformer_is_no_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler has no such fault that we know, so another program is compiled here."""
    monkeypatch.setattr(
        checking, "compile", lambda sop, vocab, length, **options: tracr.compile(rasp.tokens, vocab, length)
    )
    verdict = learn.puzzle("reverse").check(REVERSE)
    assert not verdict.solved
    assert "but its transformer is not" in verdict.message
    assert verdict.counterexample is not None
    assert verdict.counterexample.input == ("a", "b")
    assert verdict.counterexample.got == ("a", "b")
    assert verdict.checked == 1092


def test_fewer_layers_than_par_are_praised() -> None:
    easier = replace(learn.puzzle("reverse"), par=3)
    assert "par is 3). Fewer than any solution we know!" in easier.check(REVERSE).message


# bounds


@pytest.mark.parametrize("puzzle", learn.puzzles(), ids=lambda puzzle: puzzle.id)
def test_solutions_are_far_below_the_limits(puzzle: Puzzle) -> None:
    """As the message about too many operations says."""
    assert len(topological([tracr.parse(puzzle.solution)["answer"]])) < 50 < checking.MOST_PARTS


def test_long_strings_are_refused() -> None:
    verdict = learn.puzzle(1).check("x = tokens;" + "x = x + x;" * 16 + "answer = x;")
    assert "makes strings of more than 1,000 characters" in verdict.message


def endless() -> rasp.SOp:
    while True:
        pass


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
@pytest.mark.parametrize("program", [endless, rasp.Map(lambda x: endless(), rasp.tokens)])
def test_endless_python_is_stopped(program: Any) -> None:
    start = time.monotonic()
    verdict = learn.puzzle(1).check(program, seconds=0.2)
    assert time.monotonic() - start < 30
    assert not verdict.solved
    assert "the time is up" in verdict.message
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_time_is_bounded_in_other_threads() -> None:
    """Where no signal comes, the clock is looked at between operations."""
    found: list[learn.Verdict] = []

    def slowly(token: object) -> object:
        time.sleep(0.05)
        return token

    slow = rasp.Map(slowly, rasp.tokens)
    thread = threading.Thread(target=lambda: found.append(learn.puzzle(3).check(slow, seconds=0.2)))
    thread.start()
    thread.join(HUNG)
    assert "the time is up" in found[0].message


def test_time_limit_leaves_other_timers_alone() -> None:
    """A process that set an alarm of its own keeps it."""
    if not hasattr(signal, "setitimer"):
        pytest.skip("needs interval timers")
    signal.setitimer(signal.ITIMER_REAL, 1000)
    try:
        with time_limit(0.01):
            assert signal.getitimer(signal.ITIMER_REAL)[0] > 900
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    with pytest.raises(TimeIsUp), time_limit(0.01):
        endless()
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


@pytest.mark.parametrize("seconds", [0, -1, "x", None, float("nan")])
def test_nonsense_limits_are_refused(seconds: Any) -> None:
    with pytest.raises(TracrError, match="seconds"):
        learn.puzzle(1).check(SHIFT, seconds=seconds)


def test_a_wrong_name_is_refused() -> None:
    with pytest.raises(TracrError, match="name must be a string"):
        learn.puzzle(1).check(SHIFT, name=3)  # type: ignore[arg-type]


def test_an_operation_that_reads_nothing_and_fails_has_no_drawing() -> None:
    constant = rasp.ConstantSOp(["-", "a"], check_length=True)
    verdict = learn.puzzle(1).check(constant)
    assert verdict.counterexample is not None
    assert verdict.counterexample.drawing is None
    assert verdict.as_json()["counterexample"]["drawing"] == ""
    assert "<svg" not in verdict._repr_html_()


def test_an_expression_error_is_raised_for_a_model() -> None:
    model = tracr.compile(shift_in_python(), "abc", 3)
    with pytest.raises(ExpressionError):
        learn.puzzle(1).check(model)  # type: ignore[arg-type]
