"""Limits act before memory is spent: what needs more than `max_memory` is refused, with the estimate."""

from __future__ import annotations

import functools
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

import tracr
from tests.tiers import in_turn
from tracr.ir.budget import BASE, ValueSizes, as_bytes
from tracr.ir.options import as_vocabulary
from tracr.rasp import rasp
from tracr.rasp.rasp import Aggregate, Comparison, Map, Select, SelectorWidth, SequenceMap, indices, tokens

MB = 1024**2
SMALL = 64 * MB

MEASURE = """
import json, resource, sys, warnings
sys.path.insert(0, sys.argv[1])
from test_memory import HOSTILE, outcome
warnings.simplefilter("ignore")
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
before, found = peak(), {}
for name in sys.argv[4:]:
    found[name] = outcome(name, int(sys.argv[2]), int(sys.argv[3]))
print(json.dumps([peak() - before, found]))
"""


def before(sop: rasp.SOp) -> rasp.SOp:
    """The value one position to the left."""
    return Aggregate(Select(indices, indices, lambda key, query: key == query - 1), sop)


def means() -> rasp.SOp:
    """Means of many positions."""
    return Aggregate(Select(tokens, tokens, Comparison.EQ), indices)


def order_of_means() -> rasp.SOp:
    """How many means are at most as large: thousands of values compared with each other."""
    mean = Aggregate(Select(indices, indices, Comparison.LEQ), tokens)
    return SelectorWidth(Select(mean, mean, Comparison.LEQ))


def added(sops: list[rasp.SOp]) -> rasp.SOp:
    """Their sum."""
    return functools.reduce(lambda x, y: x + y, sops)


Hostile = tuple[Callable[[], rasp.SOp], int, int]  # a program, how many tokens, the longest input
HOSTILE: dict[str, Hostile] = {
    "function of a mean": (lambda: Map(lambda x: x * x, means()), 2, 40),
    "mean of means": (lambda: Map(lambda x: x * x, Aggregate(Select(tokens, tokens, Comparison.EQ), means())), 2, 8),
    "irrational means": (
        lambda: Map(lambda x: x * x, Aggregate(Select(tokens, tokens, Comparison.LEQ), Map(lambda t: t**0.5, tokens))),
        6,
        12,
    ),
    "numbers of pairs": (lambda: SequenceMap(lambda x, y: x * y, tokens, before(tokens)), 850, 5),
    "texts of pairs": (lambda: SequenceMap(lambda x, y: f"{x} {y}", tokens, before(tokens)), 850, 5),
    "pairs": (lambda: SequenceMap(lambda x, y: (x, y), tokens, indices), 1700, 1500),
    "one s-op twice": (lambda: SequenceMap(lambda x, y: x * y, tokens, tokens), 300_000, 5),
    "order": (lambda: SelectorWidth(Select(tokens, tokens, Comparison.LT)), 11_000, 5),
    "two selectors": (
        lambda: SelectorWidth(Select(tokens, tokens, Comparison.LT) & Select(indices, indices, Comparison.LT)),
        11_000,
        50,
    ),
    "positions": (lambda: SequenceMap(lambda x, y: x - y, indices, rasp.length), 2, 100_000),
    "conjunction": (lambda: functools.reduce(lambda x, y: x & y, [tokens != k for k in range(400)]), 400, 5),
    "chain": (lambda: added([SelectorWidth(Select(tokens, k, Comparison.EQ)) for k in range(400)]), 400, 5),
    "large vocabulary": (lambda: before(tokens), 1_000_000, 5),
    "long input": (lambda: indices + 0, 2, 2_000_000),
    "large texts": (lambda: Map(lambda x: "z" * 90_000 + str(x), tokens), 60_000, 3),
    "large tuples": (lambda: Map(lambda x: tuple(range(x, x + 5_000)), tokens), 15_000, 3),
    "large texts of pairs": (lambda: SequenceMap(lambda x, y: "z" * 9_000 + f"{x} {y}", tokens, indices), 600, 100),
    "sets in tuples": (lambda: Map(lambda x: (x, frozenset(range(x, x + 900))), tokens), 9_000, 3),
    "order of means": (lambda: order_of_means(), 24, 24),
}
SLOW = {"mean of means", "conjunction", "chain", "order of means"}


def outcome(name: str, level: int, max_memory: int) -> str:
    """What compiling a hostile program ends in: "compiled", or the error."""
    make, size, longest = HOSTILE[name]
    try:
        tracr.compile(make(), range(size), longest, level=level, max_memory=max_memory)
    except tracr.CompileError as error:
        return f"{type(error).__name__}: {error}"
    return "compiled"


def measured(names: list[str], level: int, max_memory: int) -> tuple[int, dict[str, str]]:
    """The memory that compiling took at its highest, in a process of its own, and what came out."""
    here = __file__.rpartition("/")[0]
    words = [sys.executable, "-c", MEASURE, here, str(level), str(max_memory), *names]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    peak, found = json.loads(ran.stdout)
    return peak, found


@pytest.mark.parametrize("level", [0, 1, 2])
def test_hostile_programs_stay_within_a_small_memory(level: int) -> None:
    """With 64 MB every one is refused with an estimate, and the peak stays below 64 MB and the stated base."""
    peak, found = measured([name for name in HOSTILE if name not in SLOW], level, SMALL)
    assert peak < SMALL + BASE
    for name, text in found.items():
        assert text.startswith("LimitError"), (name, text)
        assert "max_memory (now 64.0 MB)" in text or "max_cells" in text or "max_parameters" in text, (name, text)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "level"), in_turn(HOSTILE, (0, 1, 2)))
def test_hostile_programs_stay_within_the_default_memory(name: str, level: int) -> None:
    """Each compiles or is refused, with no more than 2 GB and the stated base."""
    peak, found = measured([name], level, 2 * 1024 * MB)
    assert peak < 2 * 1024 * MB + BASE
    assert found[name].startswith(("compiled", "LimitError")), found


@pytest.mark.parametrize("longest", [99_999_999, 10**30])
def test_a_huge_length_is_refused_at_once(longest: int) -> None:
    """Before anything is listed."""
    start = time.process_time()
    with pytest.raises(tracr.LimitError, match=r"positions.*about .* GB.* of memory[\s\S]*max_memory \(now 2.0 GB\)"):
        tracr.compile(tokens, "ab", longest)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("vocab", [range(10**8), range(10**30), itertools.count()])
def test_a_huge_vocabulary_is_refused(vocab: range) -> None:
    """Whether or not its length is known, or it ends."""
    with pytest.raises(tracr.LimitError, match=r"a vocabulary of .*tokens.*about .* of memory"):
        as_vocabulary(vocab, 8 * MB)


@pytest.mark.parametrize("make", [lambda k: "z" * 90_000 + str(k), lambda k: tuple(range(k, k + 5_000))])
def test_large_tokens_are_refused(make: Callable[[int], object]) -> None:
    """Tokens count by their size, before all are made."""
    made = 0

    def vocab() -> Iterator[object]:
        nonlocal made
        for made in range(60_000):
            yield make(made)

    with pytest.raises(tracr.LimitError, match=r"large tokens.*about .* MB of memory[\s\S]*max_memory \(now 64.0 MB\)"):
        tracr.compile(tokens, vocab(), 3, max_memory=SMALL)
    assert made < 2_000


def test_a_large_value_that_many_share_is_counted_once() -> None:
    """One text for 60,000 tokens is one text; values of an ordinary size count as before."""
    text = "z" * 90_000
    shared = Map(lambda x: text, tokens)
    assert tracr.compile(shared, range(60_000), 3, max_memory="64MB")([5]) == [text]
    sizes = ValueSizes()
    assert sizes.beyond([1, "a", None, 2.5, (1, "a")]) == 0
    assert sizes.beyond([(text, 1), (text, 2)]) < 2 * len(text)
    assert sizes.beyond([text]) == 0
    assert ValueSizes().beyond([2**4000, 1]) > 300


def test_the_message_has_the_estimate_and_what_to_do() -> None:
    """The expression, how many pairs, how much memory, which option."""
    program = SequenceMap(lambda x, y: x * y, tokens, before(tokens))
    with pytest.raises(tracr.LimitError) as refusal:
        tracr.compile(program, range(850), 5)
    assert str(refusal.value).startswith("SequenceMap(<lambda>, tokens, aggregate)")
    assert "723,350 pairs of values" in str(refusal.value)
    assert "18.3 GB of memory" in str(refusal.value)
    assert "raise max_memory (now 2.0 GB)" in str(refusal.value)


def test_more_memory_allows_more() -> None:
    """The same program is refused with little memory and compiled with more, to the same weights as by default."""
    program = SequenceMap(lambda x, y: (x * y) % 7, tokens, before(tokens))
    with pytest.raises(tracr.LimitError, match="max_memory"):
        tracr.compile(program, range(60), 5, max_memory="1MB")
    assert tracr.compile(program, range(60), 5, max_memory="64MB")([1, 2, 3]) == program([1, 2, 3])


@pytest.mark.parametrize("size", [0, -1, 1.5, "much", "2 pounds", None, True])
def test_max_memory_is_a_number_of_bytes(size: object) -> None:
    """Or a text with a unit; anything else is refused."""
    with pytest.raises(tracr.CompileError, match="max_memory must be"):
        tracr.compile(tokens, "ab", 3, max_memory=size)  # type: ignore[arg-type]
    assert as_bytes("2GB") == as_bytes("2 gib") == as_bytes(2 * 1024**3)


@pytest.mark.slow
def test_sums_of_many_terms_take_time_in_proportion() -> None:
    """Level 2: four times the terms take less than eight times as long."""

    def times(factor: int, token: int) -> int:
        return (token * factor) % 5

    def seconds(terms: int) -> float:
        program = added([Map(partial(times, k), tokens) for k in range(terms)])
        start = time.process_time()
        tracr.compile(program, range(5), 5, level=2)
        return time.process_time() - start

    few, many = seconds(100), seconds(400)
    assert many < 8 * few
