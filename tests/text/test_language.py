"""The language beyond the reference's cases: errors that teach, scopes, supersets, files, and limits."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import tracr
from tracr.rasp.elementwise import SOp
from tracr.text.parser import UnfinishedError


def error(source: str, **options: object) -> str:
    """What a text is refused with."""
    with pytest.raises(tracr.SourceError) as caught:
        tracr.parse(source, name="f.rasp", **options)  # type: ignore[arg-type]
    return str(caught.value)


def run(source: str, name: str, given: object) -> object:
    """The value of a name on an input."""
    return tracr.parse(source)[name](given)


# Errors


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("a = 1\nb = 2;", "f.rasp:1:6: the statement on this line does not end\n    a = 1\n         ^"),
        ("y = (2 +\nz = 3;", "f.rasp:1:5: this ( is not closed\n    y = (2 +\n        ^\n  hint: close it with )"),
        ("y = 'a';", "hint: strings are written with double quotes"),
        ("y = tokens & 1;", "hint: the logical operators are and, or, not"),
        ("y = 2 ** 3;", "hint: a power is written ^"),
        ("f = lambda x: x;", "hint: there is no lambda; write def"),
        ("set = 3;", "hint: set is a word of the language"),
        ("a = b = 3;", "hint: = comes after a name"),
        ("def f(x) { y = x; }", "hint: a function ends with return"),
        ("s = select(indices, indices, is);", "hint: the third argument of select is one of"),
        (
            "y = indizes;",
            "f.rasp:1:5: the name indizes is not defined\n    y = indizes;\n        ^^^^^^^\n  hint: did you mean",
        ),
        ("y = aggregat(full_s, indices);", "hint: did you mean aggregate?"),
        ("y = rnage(3);", "hint: did you mean range?"),
        ("y = averge(full_s, indices);", "hint: did you mean average?"),
        ("s = selec(indices, indices, ==);", "hint: did you mean select?"),
        ("y = selector_width(slect(indices, indices, <));", "hint: did you mean select?"),
        ("deff f(x) { return x; }", "hint: did you mean def?"),
        ("def f(x) { retrun x; }", "hint: did you mean return?"),
        ('lod "a";', "hint: did you mean load?"),
        ("y = 1 adn 2;", "hint: did you mean and?"),
        ("sort x;", "hint: if a statement ends before it"),
        ("fro = 1;\nfro x;", "hint: if a statement ends before it"),
        ("y = max(indices);", "max takes 2 arguments, not 1"),
        ("y = 3(4);", "3 cannot be called"),
        ("y = full_s + 1;", "+ has no meaning for selectors"),
        ("y = aggregate(indices, indices);", "aggregate needs a selector first, not the s-op indices"),
        ("y = [1 if 2];", "this if has no else"),
        ("y = tokens + indices;", "strings and numbers do not go together here"),
        ("y = 0 if indices == 0 else 1 / indices;", "if ... else computes both sides at every position"),
        ("y = shift(tokens, 1, 0);", "mixes strings with numbers: 0, 'h', 'e', 'l', 'l'"),
        ('load "nowhere";', "f.rasp:1:1: there is no file nowhere.rasp"),
        ('def f(x) { load "a"; return x; }\ny = f(1);', "this statement is allowed only at the top level of a file"),
        ("def f(x, x) { return x; }", "the name x occurs twice here"),
        ("max = 3;", "max is a function or an s-op of the library"),
        ("y = tokens[1.5];", "an s-op is indexed by an integer"),
        ("y = range(0, 3, 0);", "the step of a range cannot be 0"),
    ],
)
def test_errors_say_where_and_what_to_write(source: str, message: str) -> None:
    """Place, line, caret and hint."""
    assert message in error(source)


def test_an_error_inside_the_library_points_at_the_call() -> None:
    """What a library function does happens where it is called."""
    assert error("a = 1;\ny = sort(tokens, full_s);").startswith("f.rasp:2:5: select takes s-ops and single values")


def test_an_error_inside_a_function_points_into_it() -> None:
    """A function of the program is where the mistake was written."""
    assert error("def f(x) {\n  return x + nope;\n}\ny = f(1);").startswith("f.rasp:2:14: the name nope")


def test_evaluating_and_compiling_point_at_the_text() -> None:
    """Interpreter and compiler show file, line and column too."""
    y = tracr.parse("\ny = 1 / (tokens_int - 1 + indices);\n", vocab="23", name="f.rasp")["y"]
    with pytest.raises(tracr.EvaluationError, match=r"^f.rasp:2:5: .*\n    y = 1 / .*\n        \^+$"):
        y("1")
    with pytest.raises(tracr.CompileError, match=r"^f.rasp:2:\d+: the function raises on values that inputs take"):
        tracr.compile(y, vocab="123", max_seq_len=3)


def test_nothing_is_shown_that_moves_a_terminal_s_cursor() -> None:
    """Escape sequences in a file do not reach the screen."""
    assert "\x1b" not in error('y = "\x1b[2J" + 1;')
    assert "\x1b" not in error("y = 1;\x1b[2J")


def test_an_unfinished_text_is_told_apart() -> None:
    """The interpreter asks for more lines; a file is refused."""
    for source in ("y = (1 +", "def f(x) {", "y = 3", "for i in range(3) { z = i;"):
        with pytest.raises(UnfinishedError):
            tracr.parse(source)


# Precedence


@pytest.mark.parametrize(
    ("source", "meaning"),
    [
        ("y = 2 ^ 3 ^ 2;", "(2 ^ 3) ^ 2"),
        ("y = -2 ^ 2;", "(-2) ^ 2"),
        ("y = 7 % 4 * 2;", "7 % (4 * 2)"),
        ("y = not tokens == 1;", "(not tokens) == 1"),
        ("y = 1 if True else 2 if False else 3;", "(1 if True else 2) if False else 3"),
        ("y = True or 1 in [1];", "(True or 1) in [1]"),
        ('y = not tokens in ["a"];', '(not tokens) in ["a"]'),
        ("y = True or True and False;", "(True or True) and False"),
        ("y = 1 < 2 < 3;", "(1 < 2) < 3"),
        ('y = "a" if indices == 0 else tokens in ["a"];', '("a" if indices == 0 else tokens) in ["a"]'),
    ],
)
def test_surprising_precedence_is_warned_of(source: str, meaning: str) -> None:
    """The warning shows the meaning with parentheses, and a place."""
    with pytest.warns(tracr.TracrWarning) as caught:
        module = tracr.parse(source)
    assert any(f"this means {meaning}" in str(warning.message) for warning in caught)
    assert all(str(found).startswith("<rasp>:1:5: ") for found in module.warnings)


def test_ordinary_precedence_is_not() -> None:
    """Warnings are errors in these tests, so that none is given."""
    source = (
        "y = 1 + 2 * 3 ^ 2 % 4; z = (not True) == False; w = (1 if True else 2) + 1 in [2]; v = not True and False;"
    )
    assert tracr.parse(source).warnings == ()


# Scopes


def test_comprehension_names_do_not_leak() -> None:
    """They are the comprehension's own, and may be called like the library's functions."""
    module = tracr.parse("i = 7; l = [i * 2 for i in range(3)]; m = [max for max in l];")
    assert module["i"] == 7
    assert module["m"] == [0, 2, 4]
    assert "max" not in list(module)


def test_tokens_may_be_set_to_another_s_op() -> None:
    """In the whole file, or in a function."""
    assert run('set example "12"\ndef f(x) { tokens = tokens_int; return tokens + x; } y = f(1) * 2;', "y", "34") == [
        8,
        10,
    ]


def test_an_s_op_can_be_applied_to_another() -> None:
    """It reads that in the place of the tokens."""
    source = 'rev = aggregate(select(indices, length - 1 - indices, ==), tokens); y = rev(shift(tokens, 1, "-"));'
    assert run(source, "y", "abc") == ["b", "a", "-"]


# Modules and files


def test_a_module_is_a_mapping_of_the_names_it_defines(tmp_path: Path) -> None:
    """The library and the inputs can be asked for too."""
    module = tracr.parse("a = 1; y = indices; s = full_s; def f(x) { return x; }")
    assert list(module) == ["a", "y", "s", "f"]
    assert list(module.programs) == ["y"]
    assert module["length"]("ab") == [2, 2]
    assert isinstance(module["tokens"], SOp)
    with pytest.raises(KeyError, match="defines no 'b'; it defines a, y, s, f"):
        module["b"]


def test_files_load_files_beside_them(tmp_path: Path) -> None:
    """A loaded file sees the library and its own names; what it keeps private stays so; its errors stop the load."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "one.rasp").write_text('load "two";\n_k = 2;\ndef f(x) { return g(x) * _k; }\n')
    (tmp_path / "lib" / "two.rasp").write_text("def g(x) { return x + 1; }\n")
    (tmp_path / "main.rasp").write_text('load "lib/one";\ny = f(indices);\n')
    assert tracr.parse_file(tmp_path / "main.rasp")["y"]("ab") == [2, 4]
    (tmp_path / "lib" / "two.rasp").write_text("def g(x) { return x + 1 }\n")
    with pytest.raises(tracr.SourceError, match=r"^two.rasp:1:25: } is not allowed here"):
        tracr.parse_file(tmp_path / "main.rasp")
    (tmp_path / "lib" / "two.rasp").write_text('load "one";\n')
    with pytest.raises(tracr.SourceError, match="one is being loaded already"):
        tracr.parse_file(tmp_path / "main.rasp")


def test_definitions_are_checked_on_the_declared_vocabulary() -> None:
    """Without it on "hello", where this has no meaning."""
    source = "y = tokens_int * 2;"
    assert "invalid literal for int() with base 10: 'h' (on the example \"hello\")" in error(source)
    assert tracr.parse(source, vocab="0123")["y"]("12") == [2, 4]
    assert tracr.parse(f"examples off\n{source}")["y"]("12") == [2, 4]
    assert tracr.parse(f'set example "7"\n{source}').example == ["7"]


def test_a_file_with_a_byte_order_mark_or_windows_line_ends_is_read(tmp_path: Path) -> None:
    """Editors write such files."""
    (tmp_path / "w.rasp").write_bytes('\ufeffset example "ab"\r\ny = indices;\r\n# end\r\n'.encode())
    assert tracr.parse_file(tmp_path / "w.rasp")["y"]("ab") == [0, 1]
    (tmp_path / "latin.rasp").write_bytes(b"y = \xe9;")
    with pytest.raises(tracr.SourceError, match="not a text in UTF-8"):
        tracr.parse_file(tmp_path / "latin.rasp")


# Compilation


def test_what_stands_in_one_expression_is_one_operation() -> None:
    """Only named values become variables; intermediate steps of one expression are one operation."""
    source = 'share = aggregate(select(indices, indices, <=), indicator(tokens == "a"));\n'
    source += "y = round((indices + 1) * share) % 2 == 1;"
    model = tracr.compile(tracr.parse(source)["y"], vocab="ab", max_seq_len=6)
    assert [node.label for node in model.program.sops.values()] == ["indices", "tokens", "map", "share", "y"]
    assert model.verify()


def test_a_sum_in_a_loop_is_one_operation() -> None:
    """Only what a loop leaves behind has a name."""
    module = tracr.parse(
        'score = 0; for c, w in zip(["a", "b"], [1, 10]) { score += w * indicator(tokens == c); } y = -score;'
    )
    model = tracr.compile(module["y"], vocab="ab", max_seq_len=4)
    assert [node.label for node in model.program.sops.values()] == ["tokens", "score", "y"]
    assert model("ab") == [-1, -10]


def test_the_tokens_need_no_conversion_where_they_are_strings() -> None:
    """`tokens` of a text vocabulary is the input itself, at level 0 too."""
    y = tracr.parse("y = selector_width(select(tokens, tokens, ==));")["y"]
    assert len(tracr.compile(y, vocab="ab", max_seq_len=4, level=0).schedule.layers) == 1
    assert tracr.compile(y, vocab=[1, 2], max_seq_len=4)([1, 2, 1]) == [2, 1, 2]


def test_library_functions_are_one_head_each() -> None:
    """The compiler's own operations are used where that makes the model smaller."""
    for text in ('count(tokens, "a")', 'contains(tokens, "a")', 'has_focus(select(tokens, "a", ==))', "length"):
        model = tracr.compile(tracr.parse(f"y = {text};")["y"], vocab="ab", max_seq_len=4)
        assert [len(layer.heads) for layer in model.schedule.layers] == [1], text


def test_a_module_compiles_for_its_example() -> None:
    """Unless vocabulary and length are given; with neither it is refused."""
    module = tracr.parse('set example "abca"\nhist = selector_width(select(tokens, tokens, ==));\ntwice = hist * 2;')
    assert module.compile("hist").options.vocab == ("a", "b", "c")
    assert module.compile()("abca") == [4, 2, 2, 4]
    assert module.compile("hist", vocab="xy", max_seq_len=6, level=0)("xyxx") == [3, 1, 3, 3]
    with pytest.raises(tracr.VocabularyError, match="does not say which tokens its inputs have"):
        tracr.parse("y = indices;").compile()


# Hostile files

HOSTILE = {
    "nesting": "y = " + "(" * 20_000 + "1" + ")" * 20_000 + ";",
    "prefixes": "y = " + "not " * 20_000 + "1;",
    "indices": "y = tokens" + "[0]" * 20_000 + ";",
    "open": "y = " + "[" * 50_000,
    "size": "y = 1;\n" * 100_000,
    "range": "y = range(10 ^ 12);",
    "very long range": "y = range(0, 10 ^ 30);",
    "loops": "for i in range(99999) { for j in range(99999) { x = j; } }",
    "recursion": "def f(x) { return f(x + 1); } y = f(1);",
    "exponential recursion": "def f(n) { return 1 if n == 0 else f(n - 1) + f(n - 1); } y = f(60);",
    "recursion in a loop": "def f(x) { for i in range(3) { z = f(x); } return z; } y = f(1);",
    "power": "y = (((9 ^ 9) ^ 9) ^ 9) ^ 9;",
    "power of an s-op": "y = (indices + 9) ^ (indices * 10 ^ 9);",
    "squares": "x = 3; for i in range(100) { x = x * x; }",
    "squares of an s-op": "x = indices + 2; for i in range(100) { x = x * x; }",
    "text": 'y = "a" * 10 ^ 12;',
    "text of an s-op": "y = tokens * 10 ^ 12;",
    "doubled text": 's = "a"; for i in range(100) { s = s + s; }',
    "format": 'y = "%999999999d" % 3;',
    "format of an s-op": 'y = "%999999999d" % indices;',
    "doubled list": "l = [1]; for i in range(100) { l = l + l; }",
    "multiplied list": "l = [1] * 10 ^ 12;",
    "nested list": "l = [1]; for i in range(100) { l = [l, l]; }",
    "joined lists": "l = range(40000); for i in range(30000) { m = l + l; }",
    "long chain run often": 'x = indices; for i in range(2000) { x = x + 1; }\nfor i in range(20000) { z = x("abc"); }',
    "endless pair of functions": "def f(x) { return g(x); } def g(x) { return f(x); } y = f(1);",
    "comprehensions": "y = [[[[i for i in range(99)] for j in range(99)] for k in range(99)] for l in range(99)];",
    "example": 'set example "' + "a" * 90_000 + '"\ns = select(tokens, tokens, ==);',
    "digits": "y = " + "9" * 5_000 + ";",
    "infinity": "y = 1e308 * 10;",
    "python": 'y = __import__("os");',
    "attribute": "y = tokens.__class__;",
    "another file": 'load "/etc/passwd";',
    "null": "y = 1;\0",
}


@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_is_refused(source: str) -> None:
    """An error, soon; never a crash, a hang or a full memory."""
    with pytest.raises(tracr.SourceError):
        tracr.parse(source)


def test_squares_are_refused_by_the_compiler_too() -> None:
    """Where no example is run the compiler meets them first."""
    y = tracr.parse("examples off\nx = indices + 2; for i in range(60) { x = x * x; } y = x;")["y"]
    with pytest.raises(tracr.CompileError):
        tracr.compile(y, vocab="ab", max_seq_len=3)


def test_long_programs_are_no_problem() -> None:
    """Chains of thousands of operations are read, run, printed and compiled."""
    module = tracr.parse("y = " + " + ".join(["indices"] * 3_000) + ";")
    assert module["y"]("abc") == [0, 3_000, 6_000]
    assert tracr.to_rasp(module["y"]).count("+") == 2_999
    loop = tracr.parse("x = indices; for i in range(3000) { x = x + 1; } y = x;")
    assert loop["y"]("ab") == [3_000, 3_001]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
def test_hostile_texts_need_little_memory() -> None:
    """All of them in a process that may use one gigabyte."""
    script = (
        "import resource, sys, json, warnings, tracr\n"
        "warnings.simplefilter('ignore')\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (2**30, 2**30))\n"
        "for source in json.load(sys.stdin):\n"
        "    try: tracr.parse(source)\n"
        "    except tracr.SourceError: pass\n"
        "    else: raise SystemExit('accepted ' + source[:60])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(list(HOSTILE.values())),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
