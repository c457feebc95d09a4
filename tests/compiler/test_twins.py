"""Numbers that differ by rounding only: exact where operators and means make them, else one class, by assumption."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Hashable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracr
from tests.agreement import compile_quietly, load_compiled
from tests.tally import Tally, compiling
from tracr.compiler.frontend.rules.exact_sums import exact_sums
from tracr.ir.domains import Finite, of_values
from tracr.rasp import rasp
from tracr.rasp.generate import random_program
from tracr.rasp.rasp import Aggregate, Comparison, Map, Select, SelectorWidth, SequenceMap, indices, tokens
from tracr.rational import weighted_sum

DECIMALS = (0.1, 0.2, 0.3, 1)
EVERYWHERE = Select(1, 1, Comparison.EQ)
TENTHS = Map(lambda x: x * 0.1, tokens)  # a function, so 0.30000000000000004
BEFORE = Aggregate(Select(indices, indices, lambda key, query: key == query - 1), TENTHS, default=0)
BY_FUNCTIONS = Aggregate(EVERYWHERE, SequenceMap(lambda x, y: x + y, TENTHS, BEFORE))
TELLING = {
    "function": Map(lambda x: x == 0.3, BY_FUNCTIONS),
    "selector": SelectorWidth(Select(BY_FUNCTIONS, TENTHS, Comparison.EQ)),
}


def inputs(vocab: tuple[float, ...], longest: int) -> list[tuple[float, ...]]:
    """All inputs."""
    return [xs for n in range(1, longest + 1) for xs in itertools.product(vocab, repeat=n)]


def frac(token: str) -> rasp.SOp:
    """How much of the input so far is a token."""
    so_far = Select(indices, indices, Comparison.LEQ)
    return Aggregate(so_far, rasp.numerical(Map(lambda x: int(x == token), tokens)))


MEANS = Aggregate(Select(tokens, tokens, Comparison.LEQ), tokens)
EXACT = {
    "mean of decimals": SelectorWidth(Select(MEANS, tokens, Comparison.EQ)),
    "decimals": (tokens + 0.2) == 0.3,
    "remainder": Map(lambda x: x == 0.1, tokens % 0.2),
    "difference of means": (Aggregate(EVERYWHERE, tokens) - tokens) == 0.1,
    "weighted sum": rasp.LinearSequenceMap(Aggregate(EVERYWHERE, tokens), tokens, -2, 2) == 0.4,
}


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("name", list(EXACT))
def test_exact_programs_compile_without_assumption(name: str, level: int) -> None:
    """What operators and means compute is exact: the model gives the interpreter's answer on every input."""
    model = compile_quietly(EXACT[name], DECIMALS, 4, level=level, strict=True)
    assert not model.assumptions
    for xs in inputs(DECIMALS, 4):
        assert model(list(xs)) == EXACT[name](list(xs))


def test_fractions_that_are_equal_are_equal() -> None:
    """1/5 and 3/5 - 2/5, the issue's kind of twins."""
    fifth = (frac("a") - frac("b")) == 0.2
    model = compile_quietly(fifth, "ab", 5, strict=True)
    for xs in itertools.product("ab", repeat=5):
        assert model(list(xs)) == fifth(list(xs))
    assert fifth("aabba")[-1] is True


@pytest.mark.parametrize("seed", [14, 28, 51, 80, 101, 110])
def test_random_programs_that_were_refused_compile(seed: int) -> None:
    """Each of them had to tell numbers apart that its own arithmetic made by accident."""
    for vocab, longest in (((0, 1, 2, 3), 6), (("a", "b", "c"), 5), (DECIMALS, 5)):
        program = random_program(seed, vocab=vocab, max_seq_len=longest, max_ops=10, min_ops=5)
        model = compile_quietly(program, vocab, longest)
        assert model.verify(2000)
        assert not model.assumptions


@pytest.mark.slow
def test_few_random_programs_must_tell_numbers_apart() -> None:
    """Of 300 programs few are refused, and none because of numbers that differ by rounding only."""
    with Tally(least=0.95) as tally:
        for seed in range(100):
            for vocab, longest in (((0, 1, 2, 3), 6), (("a", "b", "c"), 5), (DECIMALS, 5)):
                program = random_program(seed, vocab=vocab, max_seq_len=longest, max_ops=10, min_ops=5)
                with tally.draw(), compiling():
                    compile_quietly(program, vocab, longest)
    for refusal in tally.reasons:
        found = re.search(r"must tell (\S+) from (\S+),", refusal)
        assert found is None or float(found[2]) - float(found[1]) > 1e-9, refusal


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("name", list(TELLING))
def test_what_functions_make_is_one_class_by_assumption(name: str, level: int) -> None:
    """With a warning, a record on the model and in `show`, and `verify` counting where the interpreter differs."""
    with pytest.warns(tracr.TracrWarning, match="differ only by rounding"):
        model = tracr.compile(TELLING[name], range(4), 4, level=level)
    (assumption,) = model.assumptions
    assert re.search(r"treats 0\.\d+ as 0\.\d+ \(and \d+ more such pairs\)", assumption)
    assert assumption in model.show("infer")
    found = model.verify()
    assert found
    assert 0 < found.apart < found.interpreted
    assert f"under 1 assumption (the interpreter differs on {found.apart}" in str(found)


@pytest.mark.parametrize("name", list(TELLING))
def test_without_twins_the_answer_is_the_interpreters(name: str) -> None:
    """Inputs on which the interpreter's own numbers are the simple ones."""
    model = compile_quietly(TELLING[name], range(4), 4)
    for xs in ([0, 0, 0, 0], [1, 1], [2, 0], [0, 1]):
        assert model(xs) == TELLING[name](xs)


def test_strict_refuses_what_would_be_assumed() -> None:
    """And names the two numbers."""
    with pytest.raises(tracr.CompileError, match=r"must tell 0\.3 from 0\.30000000000000004"):
        tracr.compile(TELLING["function"], range(4), 4, strict=True)


def test_what_compiles_without_an_assumption_has_none() -> None:
    """Tokens an ulp apart are different tokens, and told apart by their codes."""
    vocab = [1.0, float(np.nextafter(1.0, 2.0))]
    program = Map(lambda x: x == 1.0, tokens)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = tracr.compile(program, vocab, 3)
    assert not model.assumptions
    assert model(vocab) == [True, False]


def test_assumptions_are_saved(tmp_path: Path) -> None:
    """A loaded model has them too."""
    model = compile_quietly(TELLING["function"], range(4), 4)
    model.save(tmp_path / "model")
    loaded = load_compiled(tmp_path / "model")
    assert loaded.assumptions == model.assumptions
    assert "the interpreter was not run" in str(loaded.verify())


def test_copies_of_texts_are_an_assumption_too() -> None:
    """Where several strings might be selected."""
    program = Aggregate(Select(tokens, tokens, Comparison.EQ), tokens)
    assert compile_quietly(program, "ab", 3).assumptions == (
        "Aggregate(select, tokens): is assumed to select values that are all equal",
    )


fractions = st.builds(lambda p, q: p / q, st.integers(-99, 99), st.integers(1, 60))
numbers = fractions | st.floats(-1e3, 1e3) | st.integers(-50, 50).map(float)


@given(
    first=st.lists(numbers, min_size=1, max_size=4, unique=True),
    second=st.lists(numbers, min_size=1, max_size=4, unique=True),
    factors=st.tuples(st.sampled_from([1, -1, 2, 0.5, 0.1, 1 / 3]), st.sampled_from([1, -1, 3, 0.7])),
)
def test_sums_at_once_are_the_interpreters(
    first: list[float], second: list[float], factors: tuple[float, float]
) -> None:
    """To the last bit."""
    rows, columns = (codes.ravel().astype(np.int32) for codes in np.indices((len(first), len(second))))
    found = exact_sums(Finite(tuple(first)), Finite(tuple(second)), (rows, columns), factors)
    expected = [weighted_sum(factors[0], first[i], factors[1], second[j]) for i, j in zip(rows, columns, strict=True)]
    assert found.tolist() == expected


@pytest.mark.parametrize("level", [0, 1, 2])
def test_close_values_are_not_taken_for_rounding(level: int) -> None:
    """0.999999999 and 1 are different values of a table, and come out as what they are."""
    for program, vocab in ((1 - tokens, (1e-9, 1.0, 0.0)), (indices + tokens, (1e-9, 1.0))):
        model = tracr.compile(program, vocab, 4, level=level, strict=True)
        assert model.verify()
        for xs in inputs(vocab, 3):
            assert model(list(xs)) == program(list(xs))


@pytest.mark.parametrize("level", [0, 1])  # level 2 makes one function of it
def test_twins_in_the_vocabulary_are_refused(level: int) -> None:
    """They are two tokens whatever is assumed, so what has to tell sums of them apart is refused."""
    before = Aggregate(Select(indices, indices - 1, Comparison.EQ), tokens, default=0)
    program = Map(lambda x: x == 0.3, SequenceMap(lambda x, y: x + y, tokens, before), simplify=False)
    with pytest.raises(tracr.CompileError, match=r"must tell 0\.3 from 0\.30000000000000004"):
        tracr.compile(program, (0.1, 0.2, 0.3, 0.30000000000000004), 3, level=level)


@pytest.mark.parametrize("level", [0, 1])
def test_an_assumption_leaves_other_values_alone(level: int) -> None:
    """Twins in one output do not make 1e-8 and 2e-8 one value in another, though 1e6 is there as well."""
    small = Map(lambda x: {0.1: 1e-8, 0.2: 2e-8}.get(x, 1e6), tokens)
    names = Map(lambda x: {1e-8: "one", 2e-8: "two"}.get(x, "big"), small, simplify=False)
    before = Aggregate(Select(indices, indices - 1, Comparison.EQ), tokens, default=0)
    telling = Map(lambda x: x == 0.3, SequenceMap(lambda x, y: x + y, tokens, before), simplify=False)
    model = compile_quietly({"telling": telling, "names": names}, (0.1, 0.2, 0.3), 3, level=level)
    assert model.assumptions
    assert model([0.1, 0.2, 0.3])["names"] == ["one", "two", "big"]


@pytest.mark.parametrize("others", [(True, 2), (1.0, 2), (0, 1, 2), (1, 2, None)])
def test_kept_domains_are_not_those_of_equal_values(others: tuple[Hashable, ...]) -> None:
    """A domain is kept by its values and their types."""
    assert of_values((1, 2)) is of_values((1, 2))
    assert [*map(type, of_values(others).values)] == [*map(type, others)]
    assert of_values(others) is not of_values((1, 2))


def test_kept_domains_tell_zeros_apart() -> None:
    """0.0 and -0.0 are equal, of one type, and shown differently; values in tuples are not looked into."""
    assert repr(of_values((0.0, 1.0)).values) == "(0.0, 1.0)"
    assert repr(of_values((-0.0, 1.0)).values) == "(-0.0, 1.0)"
    assert repr([of_values((value,)).values for value in ((1,), (True,))]) == "[((1,),), ((True,),)]"
