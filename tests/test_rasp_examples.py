"""The programs of the RASP paper in examples/rasp: right against plain Python, formatted, compiled and verified."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import tracr
from tests.agreement import compile_quietly
from tracr.ir.options import LEVELS
from tracr.text.layout import format_text

FOLDER = Path(__file__).parents[1] / "examples" / "rasp"
Answer = Callable[[list[str]], list[Any]]


def histogram(xs: list[str]) -> list[int]:
    return [xs.count(x) for x in xs]


def double_histogram(xs: list[str]) -> list[int]:
    return [sum(xs.count(t) == xs.count(x) for t in set(xs)) for x in xs]


def most_frequent(xs: list[str]) -> list[str]:
    counts = Counter(xs)
    ordered = sorted(counts, key=lambda token: (-counts[token], xs.index(token)))
    return ordered + ["-"] * (len(xs) - len(ordered))


def dyck(*pairs: str) -> Answer:
    closing = {pair[0]: pair[1] for pair in pairs}

    def answer(xs: list[str]) -> list[str]:
        found, expected, broken = [], [], False
        for x in xs:
            if x in closing:
                expected.append(closing[x])
            else:
                broken = broken or not expected or expected.pop() != x
            found.append("F" if broken else "P" if expected else "T")
        return found

    return answer


def addition(xs: list[str]) -> list[int]:
    first, second = "".join(xs).split("+")
    return [int(digit) for digit in str(int(first) + int(second)).zfill(len(xs))]


PROGRAMS: dict[str, tuple[Answer, str, int]] = {
    "histogram": (histogram, "abc", 5),
    "double_histogram": (double_histogram, "abc", 5),
    "sort": (sorted, "abcd", 4),
    "most_frequent": (most_frequent, "abc", 5),
    "dyck1": (dyck("()"), "()", 7),
    "dyck2": (dyck("()", "{}"), "(){}", 5),
    "addition": (addition, "0123456789+", 5),
}


def inputs(name: str, vocab: str, longest: int) -> Sequence[list[str]]:
    """All inputs; for the addition, sums."""
    if name == "addition":
        rng = random.Random(0)
        sums = [f"{rng.randrange(100)}+{rng.randrange(10, 100)}" for _ in range(150)] + ["9+9", "99+1", "0+0"]
        return [list(text) for text in sums]
    return [list(xs) for n in range(1, longest + 1) for xs in itertools.product(vocab, repeat=n)]


def test_every_program_is_tested() -> None:
    """A new file needs a line in PROGRAMS."""
    assert {path.stem for path in FOLDER.glob("*.rasp")} == set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_computes_what_it_says(name: str) -> None:
    """The interpreter against Python; the transformers of all levels against the interpreter."""
    answer, vocab, longest = PROGRAMS[name]
    program = list(tracr.parse_file(FOLDER / f"{name}.rasp").programs.values())[-1]
    given = inputs(name, vocab, longest)
    for xs in given[:: max(1, len(given) // 300)]:
        assert program(xs) == answer(xs), xs
    for level in LEVELS:
        model = compile_quietly(program, vocab, longest, level=level)
        assert model.verify(2_000)
        assert model(given[-1]) == answer(given[-1])


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_laid_out_as_fmt_does(name: str) -> None:
    """And begins with what it computes."""
    text = (FOLDER / f"{name}.rasp").read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert format_text(text) == text
