"""Step 2: domains are small enough, complete, and refused only when nothing smaller works."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracr
from tests.agreement import compile_quietly
from tracr.compiler.frontend.rules.means import means_by_count
from tracr.compiler.frontend.trace import trace
from tracr.compiler.pipeline import tabulated
from tracr.ir.domains import Finite, Interval, finite
from tracr.ir.ops import Aggregation, Width
from tracr.ir.options import Options
from tracr.ir.program import Program
from tracr.rasp import programs, rasp
from tracr.rasp.rasp import Comparison, SOp, Value
from tracr.rational import fraction_of


def tabulated_program(program: SOp, vocab: Sequence[Value] = "abx", longest: int = 5, **options: object) -> Program:
    """The program after step 2."""
    return tabulated(trace({"output": program}), Options(tuple(vocab), longest, **options))  # type: ignore[arg-type]


def output_domain(program: SOp, **options: object) -> Finite | Interval:
    """The values the program's output can take."""
    found = tabulated_program(program, **options)  # type: ignore[arg-type]
    return found.sops[found.outputs[0][1]].domain


def values(program: SOp, **options: object) -> set[Any]:
    """The listed values of the program's output."""
    domain = output_domain(program, **options)
    assert isinstance(domain, Finite)
    return set(domain.values)


def frac(token: str) -> SOp:
    """A fraction of previous tokens, with a selector of its own."""
    return programs.make_frac_prevs(rasp.tokens == token)


@given(
    numbers=st.lists(st.integers(-4, 4) | st.sampled_from([0.1, 0.5, -1.25, 1 / 3]), min_size=1, max_size=4),
    count=st.integers(1, 4),
)
def test_means_are_complete_and_correctly_rounded(numbers: list[float], count: int) -> None:
    """All multisets of the given size, and nothing else."""
    sums = {Fraction(0)}
    for _ in range(count):
        sums = {total + fraction_of(number) for total in sums for number in numbers}
    expected = {float(total / count) for total in sums}
    found = means_by_count(numbers, [count], 10_000)
    assert found is not None
    assert set(found[count].tolist()) == expected


def test_equal_values_are_one_value_with_twins() -> None:
    """1, 1.0 and True share a code; the types that occur are remembered."""
    domain = finite([1.0, True, 1, 0])
    assert domain.values == (0, 1)
    assert {type(value) for value in domain.representatives(1)} == {int, float, bool}


def test_functions_of_position_and_length_are_exact() -> None:
    """`length - indices` is never 0 or negative, because no position lies behind the end."""
    assert values(rasp.length - rasp.indices) == {1, 2, 3, 4, 5}
    assert values(rasp.Map(lambda x: 10 / x, rasp.length - rasp.indices)) == {10, 5, 10 / 3, 2.5, 2}


def test_length_by_the_rasp_papers_trick() -> None:
    """1 / mean(indices == 0) never divides by zero: the mean is known for every length."""
    everything = rasp.Select(1, 1, Comparison.EQ)
    first = rasp.Aggregate(everything, rasp.Map(lambda i: 1 if i == 0 else 0, rasp.indices))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert values(rasp.Map(lambda x: round(1 / x), first)) == {1, 2, 3, 4, 5}


def test_dependent_arguments_are_tabulated_where_they_meet() -> None:
    """f(x, g(x)) is called on pairs that occur only."""
    upper = rasp.Map(str.upper, rasp.tokens)
    assert values(rasp.SequenceMap(lambda x, y: x + y, rasp.tokens, upper)) == {"aA", "bB", "xX"}


def test_aggregates_over_one_selector_share_their_count() -> None:
    """The difference of two fractions over equal selectors has one denominator, even if written twice."""
    difference = values(frac("a") - frac("b"), longest=10)
    fractions = {Fraction(d).limit_denominator(1000) for d in difference}
    assert fractions == {Fraction(a - b, n) for n in range(1, 11) for a in range(n + 1) for b in range(n + 1)}


def test_fractions_at_length_50_stay_small() -> None:
    """Independent fractions would have 236,681 differences; sharing one count there are a few thousand."""
    assert len(values(rasp.Map(lambda x: x, frac("a") - frac("b")), longest=50)) < 10_000


def test_widths_know_their_bounds() -> None:
    """Self-selection gives at least one key, distinct keys at most one."""
    same = tabulated_program(rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, Comparison.EQ)))
    assert [selector.counts for selector in same.selectors.values()] == [(1, 2, 3, 4, 5)]
    before = tabulated_program(programs.shift_by(1, rasp.tokens))
    assert [selector.counts for selector in before.selectors.values()] == [(0, 1)]


def test_sort_is_known_to_copy() -> None:
    """Equal target positions imply equal tokens, so sort_unique of numbers copies and stays one-hot."""
    found = tabulated_program(programs.make_sort_unique(rasp.tokens, rasp.tokens), vocab=(1, 2, 3))
    output = found.sops[found.outputs[0][1]]
    assert isinstance(output.op, Aggregation)
    assert output.op.copies
    assert not output.op.assumed


def test_level_1_shares_equal_tables_and_level_0_does_not() -> None:
    """Whatever the lambda's identity, the name or the annotation."""
    twice = rasp.SequenceMap(
        lambda x, y: (x, y),
        rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, lambda k, q: k == q)).named("one"),
        rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, Comparison.EQ)).named("two"),
    )
    for level, widths in ((0, 2), (1, 1)):
        found = tabulated_program(twice, level=level)
        assert sum(isinstance(node.op, Width) for node in found.sops.values()) == widths


def test_an_interval_is_enough_for_linear_readers() -> None:
    """Too many means to list are an interval unless a nonlinear operation reads them."""
    means = rasp.Aggregate(rasp.Select(rasp.tokens, rasp.tokens, Comparison.EQ), rasp.indices)
    domain = output_domain(means * 2 - rasp.Aggregate(rasp.Select(1, 1, Comparison.EQ), rasp.indices), longest=100)
    assert isinstance(domain, Interval)
    with pytest.raises(tracr.LimitError, match=r"max_values") as refusal:
        tabulated_program(rasp.Map(lambda x: x > 3, means), longest=100, max_values=1000)
    assert "1,000" in str(refusal.value)
    assert "Map" in str(refusal.value)


def test_runs_are_merged_before_anything_is_refused() -> None:
    """A threshold over many thousand means needs two neurons, not one per mean."""
    model = tracr.compile(frac("a") > 0.5, "abx", 100)
    assert model.schedule.layers[1].mlps[0].read.width <= 4


def test_a_parameter_budget_is_checked_before_anything_is_allocated() -> None:
    """The refusal estimates the size and names the option."""
    with pytest.raises(tracr.LimitError, match=r"about [0-9,]+ parameters[\s\S]*max_parameters \(now 1,000\)"):
        tracr.compile(programs.make_reverse(rasp.tokens), "abc", 20, max_parameters=1000)


def test_tables_have_a_limit() -> None:
    """A table that is too large is refused with its size."""
    with pytest.raises(tracr.LimitError, match=r"10,000.*\n.*max_cells"):
        tracr.compile(rasp.SequenceMap(lambda x, y: x, rasp.tokens, rasp.indices), range(100), 100, max_cells=5000)


def test_functions_that_tell_equal_values_apart_are_refused() -> None:
    """A mean may be 1 (one key) or 1.0 (several): str of it depends on which."""
    with pytest.raises(tracr.CompileError, match="tells equal values apart"):
        tracr.compile(rasp.Map(str, frac("a")), "ab", 3)


def test_functions_that_raise_where_no_input_leads_are_a_warning() -> None:
    """The cell gets an error code; strict refuses; a reachable one is an error."""
    hist = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, Comparison.EQ))
    other = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, Comparison.NEQ))
    program = rasp.SequenceMap(lambda x, y: 1 / (x + y), hist, other - hist)
    with pytest.warns(tracr.TracrWarning, match="ZeroDivisionError"):
        model = tracr.compile(program, "ab", 3)
    assert model("ab") == program("ab")
    with pytest.raises(tracr.CompileError, match="strict"):
        tracr.compile(program, "ab", 3, strict=True)
    with pytest.raises(tracr.CompileError, match=r"raises on values that inputs take.* on 0"):
        tracr.compile(rasp.Map(lambda x: 1 / x, rasp.tokens), [0, 1], 3)


def test_only_what_some_input_takes_is_called() -> None:
    """Constants of one length leave out the positions behind them, alone and in pairs."""
    program = rasp.Map(lambda i: [1, 2, 3][i], rasp.indices) + rasp.ConstantSOp([1, 2, 3], check_length=False)
    assert tracr.compile(program, "ab", 6)("ab") == [2, 4]
    paired = rasp.SequenceMap(lambda t, i: t + str([1, 2, 3][i]), rasp.tokens, rasp.indices)
    program = rasp.SequenceMap(lambda x, y: (x, y), paired, rasp.ConstantSOp([1, 2, 3]))
    assert tracr.compile(program, "ab", 6)("aba") == program("aba")


def test_impure_functions_are_noticed() -> None:
    """A function that answers differently the second time is a warning."""
    calls = iter(range(10_000))
    with pytest.warns(tracr.TracrWarning, match="same result"):
        tracr.compile(rasp.Map(lambda x: next(calls), rasp.tokens), "ab", 3)


def test_assumptions_are_recorded_and_strict_refuses_them() -> None:
    """Copying strings where several keys might match is assumed not to happen; the interpreter would raise."""
    program = rasp.Aggregate(rasp.Select(rasp.tokens, rasp.tokens, Comparison.EQ), rasp.tokens)
    found = tabulated_program(program)
    assert any(isinstance(node.op, Aggregation) and node.op.assumed for node in found.sops.values())
    with pytest.raises(tracr.CompileError, match="no mean"):
        tracr.compile(program, "ab", 3, strict=True)


def test_neighbours_closer_than_float32_are_refused_by_name() -> None:
    """0.2 and 0.200000001 are different numbers to the interpreter, and one to float32."""
    means = rasp.Aggregate(rasp.Select(1, 1, Comparison.EQ), rasp.tokens)
    with pytest.raises(tracr.CompileError, match=r"must tell 0\.2 from 0\.2000000\d+"):
        compile_quietly(means == 0.2, [0.2, 0.200000001, 1.0], 3)


def test_show_is_the_same_every_time() -> None:
    """Text forms are deterministic and mention every s-op."""
    program = programs.make_shuffle_dyck2()
    first, second = (tabulated_program(program, "(){}", 4).show() for _ in range(2))
    assert first == second
    assert "has_neg = mean of any_negative" in first


SCRIPT = """
import hashlib, tracr
from tracr.rasp import programs
model = tracr.compile(programs.make_sort_freq(4), {"a", "b", frozenset("xyz")}, 4)
data = b"".join(array.tobytes() for _, array in model.parameters.named())
print(hashlib.sha256(data + repr(model.residual.labels).encode()).hexdigest())
"""


def test_same_program_same_bytes() -> None:
    """Compiling in processes with different hash seeds gives identical weights and labels."""
    digests = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1
    assert len(digests.pop()) > 60


def test_deep_chains_compile_without_recursion() -> None:
    """Thousands of maps fuse; hundreds that may not are hundreds of layers; too many are refused with their size."""
    chain: SOp = rasp.indices
    for _ in range(3_000):
        chain = rasp.Map(lambda x: (x + 1) % 3, chain)
    assert tracr.compile(chain, "ab", 3)("abab"[:3]) == chain("aba")
    for count, refused in ((200, False), (10_000, True)):
        chain = rasp.indices
        for _ in range(count):
            chain = rasp.Map(lambda x: (x + 1) % 3, chain, simplify=False)
        if refused:
            with pytest.raises(tracr.LimitError, match="10000 layers"):
                tracr.compile(chain, "ab", 3)
        else:
            assert tracr.compile(chain, "ab", 3)("aba") == chain("aba")


def test_a_mean_times_its_count_is_known_to_be_a_sum() -> None:
    """Where the position says how many keys are selected, it goes with the means of that many."""
    prevs = rasp.Select(rasp.indices, rasp.indices, Comparison.LEQ)
    opened, closed = (rasp.Aggregate(prevs, rasp.tokens == token) for token in "ab")
    products = (rasp.indices + 1) * (opened - closed)
    assert all(abs(value - round(value)) < 1e-9 for value in values(products, longest=8))
    rounded = rasp.Map(round, products)
    for xs in ("aabb", "baab", "abxabx"):
        assert compile_quietly(rounded, "abx", 8)(xs) == rounded(xs)


@pytest.mark.parametrize(
    ("odd", "message"),
    [
        ([0], "not hashable"),
        (float("nan"), "not a number a transformer can hold"),
        (2**5000, "too large"),
        ("x" * 200_000, "too large"),
        ((1, [0]), "not hashable"),
        (rasp.tokens, "a program, not a value"),
    ],
)
@pytest.mark.parametrize("usual", [1, "a", (1, 2), None])
def test_one_result_among_many_that_is_no_value_is_named(odd: object, message: str, usual: object) -> None:
    """With the arguments it comes from, in functions and in predicates."""

    def function(x: object, y: object = 0) -> object:
        return odd if (x, y) == (3, 0) else usual

    programs_of_it = (
        rasp.Map(function, rasp.tokens),
        rasp.SequenceMap(function, rasp.tokens, rasp.indices),
        rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.indices, function)),
    )
    for program in programs_of_it:
        with pytest.raises(tracr.CompileError, match=f"on 3.*{message}"):
            tabulated_program(program, vocab=range(9))


@pytest.mark.parametrize("error", [StopIteration("over"), KeyError("none"), ZeroDivisionError()])
def test_whatever_a_function_raises_is_told_with_its_arguments(error: Exception) -> None:
    """A StopIteration, too, which ends loops elsewhere; and the calls after it are made."""

    def function(x: int) -> int:
        if x in (2, 5):
            raise error
        return x

    with pytest.raises(tracr.CompileError, match=rf"on 2: {type(error).__name__}.*on 5: {type(error).__name__}"):
        tabulated_program(rasp.Map(function, rasp.tokens), vocab=range(9))


def test_numpy_results_are_the_numbers_they_hold() -> None:
    """Also inside a tuple that is equal to one without."""
    pairs = rasp.Map(lambda x: (np.int64(1), x) if x == 2 else (1, 2) if x == 1 else (1, x), rasp.tokens)
    domain = output_domain(pairs, vocab=[1, 2, 3])
    assert isinstance(domain, Finite)
    assert domain.values == ((1, 2), (1, 3))
    assert not domain.twins


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_sum_of_very_many_counts(level: int) -> None:
    """A table has one axis for each s-op it depends on, and numpy allows only so many axes."""
    selectors = [rasp.Select(rasp.tokens, rasp.indices + n, Comparison.EQ) for n in range(70)]
    total: SOp = rasp.SelectorWidth(selectors[0])
    for selector in selectors[1:]:
        total = total + rasp.SelectorWidth(selector)
    model = compile_quietly(total, "ab", 3, level=level)  # letters are no numbers: all counts are 0
    assert model("aba") == [0, 0, 0]
