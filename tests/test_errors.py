"""Bad input: each a typed error that says what, where and what to write instead."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tests.agreement import every_error
from tracr.rasp import programs, rasp
from tracr.rasp.rasp import Comparison

HIST = programs.make_hist()
MODEL = tracr.compile(HIST, "ab", 3)
SAME = rasp.Select(rasp.tokens, rasp.tokens, Comparison.EQ)


def nan_for_b(x: str) -> float:
    """A function that returns NaN."""
    return float("nan") if x == "b" else 1.0


def broken(key: Any, query: Any) -> bool:
    """A predicate that raises."""
    raise RuntimeError("out of order")


CASES: dict[str, tuple[Callable[[], Any], type[tracr.TracrError], str]] = {
    "unknown token": (lambda: tracr.compile(HIST, "ab", 3)("abz"), tracr.InputError, r"'z' at position 2.*'a', 'b'"),
    "unhashable token": (
        lambda: tracr.compile(HIST, "ab", 3)(["a", ["b"]]),
        tracr.InputError,
        r"\['b'\] at position 1",
    ),
    "too long": (lambda: tracr.compile(HIST, "ab", 3)("abab"), tracr.InputError, r"4 tokens.*at most 3.*max_seq_len"),
    "BOS typed": (lambda: tracr.compile(HIST, "ab", 3)(["bos", "a"]), tracr.InputError, "the model adds it"),
    "PAD inside": (lambda: tracr.compile(HIST, "ab", 3)(["pad", "a"]), tracr.InputError, "to the right"),
    "an array as token": (
        lambda: tracr.compile(HIST, "ab", 3)(["a", np.array([1, 2])]),
        tracr.InputError,
        "position 1",
    ),
    "a program as token": (
        lambda: tracr.compile(HIST, "ab", 3)([rasp.tokens]),
        tracr.InputError,
        "not in the vocabulary",
    ),
    "a set as input": (lambda: tracr.compile(HIST, "ab", 3)({"a"}), tracr.InputError, "sequence of tokens"),
    "a single value as input": (lambda: tracr.compile(HIST, "ab", 3)(np.array("a")), tracr.InputError, "sequence"),
    "unhashable BOS": (lambda: tracr.compile(HIST, "ab", 3, bos=[]), tracr.ExpressionError, "BOS token"),
    "a limit that is no number": (
        lambda: tracr.compile(HIST, "ab", 3, max_cells=None),
        tracr.CompileError,
        "max_cells",
    ),
    "causal is no number": (lambda: tracr.compile(HIST, "ab", 3, causal="yes"), tracr.CompileError, "True or False"),
    "a constant of no values": (lambda: rasp.ConstantSOp(3), tracr.ExpressionError, "list of values"),
    "a predicate of one argument": (
        lambda: tracr.compile(rasp.SelectorWidth(rasp.Select(HIST, HIST, lambda key: key)), "ab", 3),
        tracr.CompileError,
        "positional argument",
    ),
    "not a sequence": (lambda: tracr.compile(HIST, "ab", 3)(7), tracr.InputError, "sequence of tokens"),
    "BOS in the vocabulary": (lambda: tracr.compile(HIST, ["a", "bos"], 3), tracr.VocabularyError, r"BOS.*bos='<bos>'"),
    "PAD in the vocabulary": (lambda: tracr.compile(HIST, ["a", "pad"], 3), tracr.VocabularyError, r"PAD.*pad='<pad>'"),
    "BOS is PAD": (lambda: tracr.compile(HIST, "ab", 3, bos="x", pad="x"), tracr.VocabularyError, "different names"),
    "empty vocabulary": (lambda: tracr.compile(HIST, "", 3), tracr.VocabularyError, "empty"),
    "no vocabulary": (lambda: tracr.compile(HIST, 7, 3), tracr.VocabularyError, "string, a list or a set"),
    "unhashable vocabulary": (lambda: tracr.compile(HIST, [["a"]], 3), tracr.VocabularyError, "not hashable"),
    "no length": (lambda: tracr.compile(HIST, "ab", 0), tracr.CompileError, "positive integer"),
    "no such level": (lambda: tracr.compile(HIST, "ab", 3, level=7), tracr.CompileError, "levels are"),
    "a selector as program": (lambda: tracr.compile(SAME, "ab", 3), tracr.ExpressionError, "SelectorWidth"),
    "a foreign program": (lambda: tracr.compile(print, "ab", 3), tracr.ExpressionError, "tracr.rasp"),
    "no program": (lambda: tracr.compile([], "ab", 3), tracr.ExpressionError, "no program"),
    "a foreign child": (lambda: rasp.Map(len, 3), tracr.ExpressionError, "must be an s-op"),
    "unhashable result": (
        lambda: tracr.compile(rasp.Map(lambda x: [x], rasp.tokens), "ab", 3),
        tracr.CompileError,
        r"on 'a'.*not hashable",
    ),
    "a list as result": (
        lambda: tracr.compile(rasp.Map(lambda x: [x], rasp.tokens), "ab", 3),
        tracr.CompileError,
        "hint: use a tuple instead of a list",
    ),
    "a list as result, sometimes": (
        lambda: tracr.compile(rasp.Map(lambda x: [x] if x == "a" else x, rasp.tokens), "ab", 3),
        tracr.CompileError,
        "hint: use a tuple instead of a list",
    ),
    "an output named by a number": (lambda: tracr.compile({3: HIST}, "ab", 3), tracr.ExpressionError, "string, not 3"),
    "a budget that is no number": (lambda: MODEL.verify(budget="x"), tracr.TracrError, "budget.*not 'x'.*budget=1"),
    "no folder to load": (lambda: tracr.load(None), tracr.FormatError, "folder must be a path, not None"),
    "ids of one dimension": (lambda: MODEL.logits(np.array([2])), tracr.InputError, r"shape \(1,\).*model.encode"),
    "ids that are fractions": (lambda: MODEL.logits(np.array([[2.0]])), tracr.InputError, "integers.*float64"),
    "ids of rows of different lengths": (lambda: MODEL.logits([[2, 0], [2]]), tracr.InputError, "rows of one length"),
    "ids without BOS": (lambda: MODEL.codes([[0, 1]]), tracr.InputError, "begin with BOS, which has id 2"),
    "too many ids": (lambda: MODEL.logits([[2] * 5]), tracr.InputError, "5 positions, the model has 4"),
    "an id that is not there": (lambda: MODEL.logits([[2, 4]]), tracr.InputError, "id 4.*from 0 to 3"),
    "logits of other ids": (lambda: MODEL.values(np.zeros((1, 2, 3)), [[2]]), tracr.InputError, r"shape \(1, 1, 3\)"),
    "a type that is no float": (
        lambda: MODEL("ab", dtype=int),
        tracr.TracrError,
        "not a type.*float32",
    ),
    "a small gap": (
        lambda: tracr.compile(HIST, "ab", 3, gap=1),
        tracr.CompileError,
        "may get all of the attention.*at least 8.8",
    ),
    "a value that is not itself": (
        lambda: tracr.compile(rasp.Full(Decimal("NaN")), "ab", 3),
        tracr.ExpressionError,
        "not equal to itself",
    ),
    "NaN": (lambda: tracr.compile(rasp.Map(nan_for_b, rasp.tokens), "ab", 3), tracr.CompileError, r"nan_for_b on 'b'"),
    "a predicate that raises": (
        lambda: tracr.compile(rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, broken)), "ab", 3),
        tracr.CompileError,
        r"broken on 'a', 'a': RuntimeError",
    ),
    "numerical strings": (
        lambda: tracr.compile(rasp.numerical(rasp.Map(lambda x: x + "!", rasp.tokens)), "ab", 3),
        tracr.CompileError,
        "not numbers.*categorical",
    ),
    "an average of strings and numbers": (
        lambda: tracr.compile(rasp.Aggregate(rasp.Select(1, 1, Comparison.EQ), rasp.tokens), ["a", 1, 2], 3),
        tracr.CompileError,
        "at most one position",
    ),
    "an average of strings, strictly": (
        lambda: tracr.compile(rasp.Aggregate(SAME, rasp.tokens), "ab", 3, strict=True),
        tracr.CompileError,
        "have no mean",
    ),
    "integers beyond float32": (
        lambda: tracr.compile(rasp.numerical(rasp.Map(lambda x: 2**24 + 1, rasp.tokens)), "ab", 3),
        tracr.CompileError,
        "16777217.*scale it down",
    ),
    "length in a causal model": (
        lambda: tracr.compile(rasp.length, "ab", 3, causal=True),
        tracr.CompileError,
        r"indices \+ 1",
    ),
    "no common length": (
        lambda: tracr.compile(rasp.ConstantSOp([1, 2]) + rasp.ConstantSOp([1, 2, 3]), "ab", 5),
        tracr.CompileError,
        "constants",
    ),
    "no such stage": (lambda: tracr.compile(HIST, "ab", 3).show("magic"), tracr.TracrError, "stages are trace"),
    "no such activation": (lambda: tracr.compile(HIST, "ab", 3).run("ab")["hook_magic"], tracr.TracrError, "there are"),
    "no such dimension": (lambda: tracr.compile(HIST, "ab", 3).residual["magic"], tracr.TracrError, "it has tokens:a"),
    "no such variable": (lambda: tracr.compile(HIST, "ab", 3).residual.of("magic"), tracr.TracrError, "it has tokens"),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::tracr.TracrWarning")
def test_bad_input_is_refused_with_advice(name: str) -> None:
    """The error has the right type, names the culprit and says what to do."""
    action, kind, message = CASES[name]
    with pytest.raises(kind) as refusal:
        action()
    import re

    assert re.search(message, str(refusal.value), re.DOTALL), str(refusal.value)
    assert isinstance(refusal.value, tracr.TracrError)


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("gap", [1e-3, 1, 8])
def test_a_small_gap_is_fine_without_attention(level: int, gap: float) -> None:
    """Nothing can go astray; a program that attends to something, if only to count the tokens, is refused."""
    for program in (rasp.tokens, rasp.Map(str.upper, rasp.tokens), rasp.indices * 2, rasp.Full(3)):
        model = tracr.compile(program, "ab", 3, level=level, gap=gap)
        assert model.verify()
        assert not any(layer.heads for layer in model.schedule.layers)
    for program in (HIST, rasp.length, rasp.Aggregate(SAME, rasp.indices)):
        with pytest.raises(tracr.CompileError, match="keys that are not selected may get"):
            tracr.compile(program, "ab", 3, level=level, gap=gap)


class Picky:
    """A value that can only be compared with its own kind."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: Any) -> bool:
        return bool(self.name == other.name)

    def __hash__(self) -> int:
        return hash("a")  # as a token's, so that they are compared


def test_values_that_raise_when_compared_are_told_of() -> None:
    """By the compiler, whatever it was doing with them; what it can do without comparing it does."""
    assert tracr.compile(rasp.Map(lambda x: x.name, rasp.tokens), [Picky("x"), Picky("y")], 3, bos="^")([Picky("y")])
    with pytest.raises(tracr.ExpressionError, match="'str' object has no attribute 'name'") as refusal:
        tracr.compile(rasp.tokens, [Picky("x"), "a"], 3)
    assert "also when compared with other values" in refusal.value.diagnostic.hint
    with pytest.raises(tracr.InputError, match="cannot be looked up: AttributeError"):
        MODEL([Picky("x")])


def test_interpreter_errors_name_expression_position_and_values() -> None:
    """An average of strings, told where it happens."""
    program = rasp.Aggregate(SAME, rasp.tokens).named("copy")
    with pytest.raises(tracr.EvaluationError, match=r"copy.*position 0.*'a', 'a'"):
        program("aa")


def test_numpy_tokens_are_fine() -> None:
    """Numpy scalars and arrays are accepted as input, numpy integers as lengths."""
    model = tracr.compile(HIST, [1, 2], np.int64(4))
    assert model(np.array([1, 2, 1])) == [2, 1, 2]


def test_no_input_no_output() -> None:
    """An empty input gives an empty output."""
    model = tracr.compile(HIST, "ab", 3)
    assert model([]) == []
    assert model("") == []
    assert model([[], ["a"]]) == [[], [1]]


def test_errors_and_warnings_name_the_line_an_expression_was_written_on() -> None:
    """file.py:line of the expression, whatever built it; copies keep it."""
    inverse = rasp.Map(lambda x: 1 / x, rasp.tokens).named("inverse")
    line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
    assert inverse.origin == f"test_errors.py:{line}"
    with pytest.raises(tracr.CompileError, match=rf"inverse'\) \(test_errors.py:{line}\): the function raises"):
        tracr.compile(inverse, [0, 1], 3)
    model = tracr.compile(inverse, [1, 2], 3)
    assert model.program.sops[model.program.outputs[0][1]].origin == f"test_errors.py:{line}"


SOURCES = Path(tracr.__file__).parent
READING = ("saving", "compress/saving.py", "natural/saving.py", "natural/learned/saving.py")  # `load` adds the hint
ERRORS = {kind.__name__ for kind in every_error()} - {"InternalError"}


@pytest.mark.parametrize("folder", sorted(path.name for path in SOURCES.iterdir() if path.suffix in ("", ".py")))
def test_every_error_in_the_sources_has_a_hint(folder: str) -> None:
    """Read off the code, as not every error can be provoked here."""
    paths = [SOURCES / folder] if folder.endswith(".py") else (SOURCES / folder).rglob("*.py")
    for path in paths:
        name = path.relative_to(SOURCES).as_posix()
        if name.startswith(READING):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS:
                assert "hint" in {word.arg for word in node.keywords}, f"{name}:{node.lineno} gives no hint"
