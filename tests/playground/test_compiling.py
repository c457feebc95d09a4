"""The work of a worker: the page's data of a program, or an error with its place."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracr
from tests.strategies import programs
from tracr.errors import TracrError
from tracr.playground.compiling import answer
from tracr.playground.gallery import gallery
from tracr.playground.limits import ServerLimits
from tracr.playground.replies import Reply
from tracr.rasp.interpreter import evaluate
from tracr.rasp.rasp import SOp

LIMITS = ServerLimits()
SORT = """smaller = select(tokens, tokens, <) or (select(tokens, tokens, ==) and select(indices, indices, <));
place = selector_width(smaller);
sorted = aggregate(select(place, indices, ==), tokens);
"""


def ask(task: str, **fields: Any) -> Reply:
    """The answer of a worker."""
    return answer(json.dumps({"task": task, **fields}).encode(), LIMITS)


def compiled(source: str = SORT, **fields: Any) -> Any:
    """What the page shows of a program."""
    reply = ask("compile", **{"source": source, "vocab": ["a", "b", "c"], "max_len": 4, **fields})
    assert reply.status == 200, reply.body
    return json.loads(reply.body)


def error(source: str, **fields: Any) -> Any:
    """The error of a program."""
    reply = ask("compile", **{"source": source, "vocab": ["a", "b"], "max_len": 3, **fields})
    assert reply.status == 422, reply.body
    return json.loads(reply.body)["error"]


def test_a_program_is_shown() -> None:
    """Outputs of program and model, names, drawing, explorer, sizes, passes."""
    found = compiled(input=["c", "a", "b"])
    assert found["outputs"] == {"program": ["a", "b", "c"], "model": ["a", "b", "c"]}
    assert found["input"] == ["c", "a", "b"]
    assert (found["name"], found["names"]) == ("sorted", ["place", "sorted"])
    assert found["drawing"].startswith("<svg")
    assert found["explorer"]["format"] == "tracr explorer"
    assert found["explorer"]["source"] == SORT
    model = tracr.parse(SORT, vocab="abc", max_seq_len=4).compile("sorted", "abc", 4)
    assert found["summary"]["layers"] == model.n_layers
    assert found["summary"]["dimensions"] == model.d_model
    assert found["summary"]["parameters"] == model.n_parameters
    assert [one["name"] for one in found["passes"]][:2] == ["trace", "infer"]
    assert all(one["text"] and one["does"] for one in found["passes"])


def test_a_name_chooses() -> None:
    """One of several s-ops."""
    assert compiled(name="place", input=["c", "a", "b"])["outputs"]["program"] == [2, 0, 1]


def test_without_an_input_one_is_chosen() -> None:
    """The text's own example if it fits, else one of the explorer's."""
    assert compiled(f'set example "cab"\n{SORT}')["input"] == ["c", "a", "b"]
    assert set(compiled(f'set example "xyz"\n{SORT}')["input"]) <= set("abc")
    found = compiled(SORT)
    assert found["outputs"]["model"] == sorted(found["input"])


def test_without_a_vocabulary_it_is_that_of_the_example() -> None:
    """And without either the error says what to give."""
    assert compiled(f'set example "cab"\n{SORT}', vocab=None, max_len=None)["outputs"]["model"] == ["a", "b", "c"]
    assert "which tokens" in error(SORT, vocab=None)["message"]


def test_causal_programs_are_drawn_causally() -> None:
    """The drawing shows the values of the outputs, not those without the mask."""
    source, tokens = "y = selector_width(select(tokens, tokens, ==));", ["a", "a", "a"]
    found = compiled(source, causal=True, input=tokens)
    assert found["outputs"]["model"] == [1, 2, 3]
    assert found["drawing"] != compiled(source, input=tokens)["drawing"]


def test_tokens_may_be_called_bos_and_pad() -> None:
    """The model's own tokens then have other names."""
    assert compiled("y = tokens;", vocab=["bos", "pad"], input=["pad", "bos"])["outputs"]["model"] == ["pad", "bos"]


@pytest.mark.parametrize(
    ("source", "line", "column", "message"),
    [
        ("y = indicez;", 1, 5, "not defined"),
        ("x = 1;\n  y = (indices;", 2, 15, "not allowed"),
        ("y = tokens + 1;", 1, 5, "failed"),
        ('load "/etc/passwd"; y = indices;', 1, 1, "no file"),
        ('load "examples/rasp/sort"; y = indices;', 1, 1, "no file"),
        ("def f(x) { return f(x); }\ny = f(indices);", 1, 19, "too deeply"),
        ("y = " + "(" * 500 + "indices" + ")" * 500 + ";", 1, None, "nested"),
        ("x = 3;", None, None, "no s-op"),
        ("", None, None, "no s-op"),
    ],
)
def test_errors_have_places(source: str, line: int | None, column: int | None, message: str) -> None:
    """Line and column, from 1."""
    found = error(source)
    assert message in found["message"]
    assert found["line"] == line
    assert column is None or found["column"] == column
    if column is not None:
        assert (found["end_line"], found["end_column"]) > (line, column)


def test_errors_of_the_compiler_have_places_too() -> None:
    """Not only those of the parser."""
    found = error("x = indices;\ny = aggregate(select(tokens, tokens, !=), tokens);", vocab=["a", "b", "c"])
    assert found["line"] == 2


def test_wrong_names_and_inputs_are_refused() -> None:
    """With a hint."""
    assert error("first = indices;", name="frist")["hint"] == "did you mean first?"
    assert "is not an s-op" in error("x = 3; y = indices;", name="x")["message"]
    assert "vocabulary" in error("y = indices;", input=["z"])["message"]
    assert "longest" in error("y = indices;", input=["a"] * 4)["message"]


def test_warnings_are_told() -> None:
    """Precedence that is easily misread."""
    found = compiled("y = not indices == 1;")["warnings"]
    assert [set(one) >= {"message", "line", "column", "hint"} for one in found] == [True] * len(found)


def test_sizes_are_limited_with_a_fitting_hint() -> None:
    """The hint names no option that the page does not have."""
    source = "y = " + " + ".join(f"aggregate(select(indices, indices - {n}, ==), tokens_int)" for n in range(6)) + ";"
    found = error(source + " z = y * y == 7;", vocab=[str(n * n) for n in range(200)], max_len=40)
    assert "smaller vocabulary" in found["hint"]


def test_levels() -> None:
    """All three, each with its explorer."""
    reply = ask("levels", source=SORT, vocab=["a", "b"], max_len=3)
    levels = json.loads(reply.body)["levels"]
    assert [one["level"] for one in levels] == [one["explorer"]["level"] for one in levels] == [0, 1, 2]
    assert levels[0]["summary"]["parameters"] > levels[2]["summary"]["parameters"]


def test_formatting() -> None:
    """As `tracr fmt`; a text that cannot be read keeps its place."""
    assert json.loads(ask("format", source="y=1+indices;").body) == {"source": "y = 1 + indices;\n"}
    reply = ask("format", source="y = ;")
    assert (reply.status, json.loads(reply.body)["error"]["line"]) == (422, 1)


def download(kind: str, **fields: Any) -> Reply:
    reply = ask("download", kind=kind, source=SORT, vocab=["a", "b", "c"], max_len=4, input=["c", "a"], **fields)
    assert reply.status == 200, reply.body
    return reply


def test_a_downloaded_page_has_a_certificate() -> None:
    """Unlike the live explorer."""
    reply = download("page")
    assert reply.filename == "sorted.html"
    assert b'"certificate":{"accepted":true' in reply.body


def test_a_downloaded_drawing() -> None:
    """The same as in the answer to compile."""
    reply = download("svg")
    assert (reply.filename, reply.kind) == ("sorted.svg", "image/svg+xml")
    assert reply.body.decode() == compiled(input=["c", "a"])["drawing"]


def test_a_downloaded_checkpoint() -> None:
    """A zip file of the folder, without folders above it."""
    reply = download("gpt2")
    names = zipfile.ZipFile(io.BytesIO(reply.body)).namelist()
    assert {"config.json", "model.safetensors", "tracr/manifest.json"} <= set(names)


@pytest.mark.parametrize("source", [SORT, 'x = "\\"; sorted = tokens;', "sorted = tokens; # '''\"\"\""])
def test_a_downloaded_script_runs(
    source: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It prints the outputs, whatever characters the source has."""
    reply = ask("download", kind="python", source=source, vocab=["a", "b", "c"], max_len=4, input=["c", "a"])
    monkeypatch.chdir(tmp_path)
    exec(compile(reply.body, "script", "exec"), {})
    assert capsys.readouterr().out in ("['a', 'c']\n", "['c', 'a']\n")
    assert (tmp_path / "sorted.html").is_file()


@pytest.mark.parametrize("example", gallery(), ids=lambda one: one["name"])
def test_every_example_compiles(example: dict[str, Any]) -> None:
    """With its own vocabulary, length and input."""
    fields = {name: example[name] for name in ("vocab", "max_len", "input")}
    found = compiled(example["source"], **fields)
    assert found["input"] == example["input"]
    assert example["title"]


def test_examples_of_the_gallery_do_what_they_say() -> None:
    """On their own inputs."""
    written = {one["name"]: one for one in gallery()}
    expected = {
        "shift": ["-", *"abca"],
        "palindrome": [True] * 5,
        "majority": [True, False, False, False, True],
        "sort": list("aaabnn"),
        "induction": ["-", "-", "-", "b", "c"],
    }
    for name, output in expected.items():
        one = written[name]
        found = compiled(one["source"], vocab=one["vocab"], max_len=one["max_len"], input=one["input"])
        assert found["outputs"]["program"] == output


@settings(max_examples=10, deadline=None)
@given(programs(max_ops=4), st.sampled_from([0, 1, 2]), st.text("abc", min_size=1, max_size=5))
def test_random_programs_give_what_the_interpreter_gives(program: SOp, level: int, tokens: str) -> None:
    """All that can be written as text."""
    try:
        source = tracr.to_rasp(program, vocab="abc", max_seq_len=5)
    except TracrError:
        return
    reply = ask("compile", source=source, vocab=list("abc"), max_len=5, level=level, input=list(tokens))
    assert reply.status in (200, 422), reply.body
    if reply.status == 200:
        expected = evaluate(program, tokens)
        assert json.loads(reply.body)["outputs"]["program"] == pytest.approx(expected) or any(
            isinstance(value, str) for value in expected
        )


def test_puzzles_and_checks() -> None:
    """Every puzzle is there, without its solution; a solved one tells it."""
    found = json.loads(ask("puzzles").body)
    assert len(found) >= 15
    assert all(
        set(one) >= {"id", "number", "title", "statement", "vocab", "max_len", "examples", "hints", "par", "starter"}
        for one in found
    )
    assert not any("solution" in one for one in found)
    right = 'y = aggregate(select(indices, indices - 1, ==), tokens, "-");'
    verdict = json.loads(ask("check", puzzle=found[0]["id"], source=right).body)
    assert verdict["solved"]
    assert verdict["solution"]
    wrong = json.loads(ask("check", puzzle=1, source="y = tokens;").body)
    assert (wrong["solved"], wrong["solution"]) == (False, None)
    assert wrong["counterexample"]["drawing"].startswith("<svg")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"puzzle": "nope", "source": "y = tokens;"}, "no puzzle"),
        ({"puzzle": 1, "source": "y = tokenz;"}, "not defined"),
        ({"puzzle": 1, "source": 'load "examples/rasp/sort"; y = tokens;'}, "no file"),
    ],
)
def test_checks_that_fail(fields: dict[str, Any], message: str) -> None:
    """An error as for compile."""
    reply = ask("check", **fields)
    assert reply.status == 422
    assert message in json.loads(reply.body)["error"]["message"]


def test_a_bug_is_an_answer_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The worker goes on; the traceback is in the server's log, not in the answer."""
    monkeypatch.setattr("tracr.playground.compiling.explore", lambda *_, **__: 1 / 0)
    reply = ask("compile", source=SORT, vocab=["a"], max_len=2)
    assert reply.status == 500
    assert b"ZeroDivisionError" not in reply.body
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_model_that_disagrees_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be a bug of the compiler: an error, not a wrong answer."""
    monkeypatch.setattr("tracr.playground.compiling.evaluate", lambda *_, **__: ["x", "x"])
    reply = ask("compile", source="y = tokens;", vocab=["a"], max_len=2, input=["a", "a"])
    assert (reply.status, b"disagree" in reply.body) == (500, True)


def test_memory_and_recursion_are_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the limits of the process raise."""
    for raised, message in ((MemoryError, b"memory"), (RecursionError, b"nested")):

        def fail(*_: Any, kind: type[BaseException] = raised, **__: Any) -> None:
            raise kind

        monkeypatch.setattr("tracr.playground.compiling.read_program", fail)
        reply = ask("compile", source=SORT)
        assert (reply.status, message in reply.body) == (422, True)
