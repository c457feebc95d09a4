"""Names: a function reads them when it is called, where it was defined; as in the reference, and as in Python."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracr
from tracr.cli.repl.session import Session

GLOBALS, FUNCTIONS = ("a", "b", "c"), ("f", "g", "h")


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("k = 1; def f(x) { return x + k; } k = 100; y = f(1);", 101),
        ("def f(x) { return x + k; } k = 3; y = f(1);", 4),
        ("def f(x) { return g(x) + 1; } def g(x) { return 10 * x; } y = f(2);", 21),
        ("def f(x) { return 1; } def g(x) { return f(x); } def f(x) { return 2; } y = g(0);", 2),
        ("def f(n) { return 1 if n == 0 else f(n - 1); } g = f; def f(n) { return 100; } y = g(3);", 100),
        ("def even(n) { return True if n == 0 else odd(n - 1); }"
         "def odd(n) { return False if n == 0 else even(n - 1); } y = even(10);", True),
        ("k = 1; def f(k) { return k; } y = f(5) + k;", 6),
        ("k = 1; def f(x) { before = k; k = 50; return before + k; } y = f(0) + k;", 52),
        ("k = 1; def f(x) { k += 5; return k; } y = f(0) * 10 + k;", 61),
        ("def mk(n) { def add(v) { return v + n; } n = n * 10; return add; } y = mk(2)(1);", 21),
        ("def mk(n) { def add(v) { return v + n; } return add; } n = 7; p = mk(1); q = mk(2); y = p(0) + q(0);", 3),
        ("def f() { def g() { return i; } i = 5; return g(); } i = 1; y = f();", 5),
        ("i = 7; def f() { return i; } y = [f() for i in range(3)];", [7, 7, 7]),
        ("i = 7; def f() { return i; } y = {i: f() for i in range(2)};", {0: 7, 1: 7}),
        ("def f() { return i; } y = 0; for i in range(3) { y = y * 10 + f(); }", 12),
        ("fs = []; for i in range(3) { def f(x) { return x + i; } fs = fs + [f]; } y = [f(0) for f in fs];", [2, 2, 2]),
        ("def f(length) { def g() { return length; } return g(); } y = f(3);", 3),
        ("3 + 4; y = out * 2;", 14),
        ("def f(x) { x + 1; return out; } y = f(5);", 6),
        ("5; def f() { return out; } y = f();", 5),
        ("for i in range(3) { z = i * 10; } y = out;", 20),
        ("a, b = [1, 2]; y = out;", [1, 2]),
    ],
)  # fmt: skip
def test_names_are_read_when_they_are_needed(source: str, value: object) -> None:
    """Globals, locals, parameters, nested functions, recursion, loops, comprehensions and `out`."""
    assert tracr.parse(source)["y"] == value


def test_the_tokens_are_a_name_like_others() -> None:
    """Functions see that they were set to another s-op; a file that sets them back is obeyed."""
    source = 'set example "12"\ndef f(x) { return tokens + x; } tokens = tokens_int; y = f(1);'
    assert tracr.parse(source)["y"]("34") == [4, 5]


def test_a_loaded_function_reads_its_own_file(tmp_path: Any) -> None:
    """Not the names of the file that loads it; and `tokens` as that file left them."""
    (tmp_path / "m.rasp").write_text("k = 1;\ndef f(x) { return x + k + late; }\nlate = 10;\ntokens = tokens_str;\n")
    source = 'set example "12"\ntokens = tokens_int;\nload "m";\nk = 100; late = 1000;\ny = f(0);\nz = tokens;'
    module = tracr.parse(source, folder=tmp_path)
    assert module["y"] == 11
    assert module["z"]("12") == ["1", "2"]


def test_a_name_that_is_missing_when_a_function_is_called_says_so() -> None:
    """The place is in the function; the hint says where it was called."""
    with pytest.raises(tracr.SourceError) as caught:
        tracr.parse("def f(x) {\n  return x + offset;\n}\ny = f(1);\noffset = 3;")
    text = str(caught.value)
    assert text.startswith("<rasp>:2:14: the name offset is not defined")
    assert "define offset before the call at <rasp>:4:5" in text


def test_the_interpreter_reads_globals_late_too() -> None:
    """Over several entries; a definition that fails leaves `out` and the names as they were."""
    session = Session()
    session.feed("k = 1;\ndef addk(x) { return x + k; }")
    session.feed("k = 100;")
    assert "[100, 101, 102, 103, 104]" in session.feed("addk(indices);")
    session.feed("41 + 1;")
    session.feed("z = tokens + indices;")
    assert "value: 42" in session.feed("out;")


class Writer:
    """A random program in RASP, and the same in Python, whose rules for names are the reference's."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.callable: tuple[str, ...] = FUNCTIONS
        self.rasp, self.python = ["a, b, c = indices, 2, indices * 3;"], ["a, b, c = indices, 2, indices * 3"]
        for name, result in zip(FUNCTIONS, ("x + a", "f(x) * b", "g(x) - c"), strict=True):
            if self.rng.random() < 0.9:
                self.rasp.append(f"def {name}(x) {{ return {result}; }}")
                self.python += [f"def {name}(x): return {result}"]
        for _ in range(self.rng.randrange(4, 10)):
            self.rng.choice([self.assign, self.define, self.define, self.loop, self.comprehend])()
        self.add(f"y = indices + ({self.expression(GLOBALS, 3)})")

    def add(self, statement: str) -> None:
        """A statement that both languages write alike."""
        self.rasp.append(f"{statement};")
        self.python.append(statement)

    def expression(self, names: tuple[str, ...], depth: int) -> str:
        """A sum or product of names, numbers and calls."""
        if depth == 0 or self.rng.random() < 0.3:
            return self.rng.choice([*names, *names, str(self.rng.randrange(5))])
        if self.callable and self.rng.random() < 0.35:
            return f"{self.rng.choice(self.callable)}({self.expression(names, depth - 1)})"
        sides = (self.expression(names, depth - 1) for _ in range(2))
        return f"({self.rng.choice([' + ', ' - ', ' * ']).join(sides)})"

    def assign(self) -> None:
        self.add(f"{self.rng.choice(GLOBALS)} = {self.expression(GLOBALS, 2)}")

    def define(self) -> None:
        name, parameter = self.rng.choice(FUNCTIONS), self.rng.choice(["x", "a"])
        names = tuple(dict.fromkeys((*GLOBALS, parameter)))
        if self.rng.random() < 0.9:  # else a recursion that may not end
            self.callable = FUNCTIONS[: FUNCTIONS.index(name)]
        local, value = self.rng.choice(["t", "b" if parameter != "b" else "t"]), self.rng.choice([parameter, "c", "3"])
        inner, result = self.expression((*names, "v"), 1), self.expression((*names, local), 2)
        self.callable = FUNCTIONS
        nested = self.rng.random() < 0.5
        result = f"{result} + inner({local})" if nested else result
        body = f" def inner(v) {{ return {inner}; }}" if nested else ""
        self.rasp.append(f"def {name}({parameter}) {{{body} {local} = {value}; return {result}; }}")
        self.python += [f"def {name}({parameter}):", *([f"  def inner(v): return {inner}"] if nested else [])]
        self.python += [f"  {local} = {value}", f"  return {result}"]

    def loop(self) -> None:
        name, target = self.rng.sample(GLOBALS, 2)
        value = self.expression(GLOBALS, 2)
        self.rasp.append(f"for {name} in [1, indices] {{ {target} = {value}; }}")
        self.python += [f"for {name} in [1, indices]:", f"  {target} = {value}"]

    def comprehend(self) -> None:
        name, target = self.rng.choice(GLOBALS), self.rng.choice(GLOBALS)
        self.add(f"{target} = [{self.expression(GLOBALS, 2)} for {name} in [4, 5]][1]")


def in_python(writer: Writer, index: int) -> int | None:
    """The value at one position, `None` where a name is missing or a recursion does not end."""
    names: dict[str, Any] = {"indices": index}
    try:
        exec("\n".join(writer.python), names)
    except (NameError, RecursionError, OverflowError, MemoryError):
        return None
    value: int = names["y"]
    return value


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_random_programs_read_names_as_python_does(seed: int) -> None:
    """Functions redefined, globals reassigned, names shadowed; and printed, they compute the same."""
    writer = Writer(seed)
    source = "\n".join(writer.rasp)
    expected = [in_python(writer, index) for index in range(3)]
    if None in expected:
        with pytest.raises(tracr.SourceError):
            tracr.parse(source)
        return
    y = tracr.parse(source)["y"]
    assert y("abc") == expected, source
    again = list(tracr.parse(tracr.to_rasp(y)).values())[-1]
    assert again("abc") == expected, source


def test_random_programs_are_worth_their_time() -> None:
    """Many of them have a value, and some of those call functions."""
    writers = [Writer(seed) for seed in range(200)]
    values = [writer for writer in writers if in_python(writer, 1) is not None]
    assert len(values) > 60
    assert sum("def" in "".join(writer.rasp) and "(" in writer.rasp[-1] for writer in values) > 30
