"""What expressions mean: the reference interpreter, bidirectional and causal."""

import operator
import time
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracr.errors import EvaluationError, ExpressionError, InputError
from tracr.rasp import causal_eval, rasp
from tracr.rasp.interpreter import CausalEvaluator
from tracr.rasp.rasp import (
    Aggregate,
    Comparison,
    ConstantSelector,
    ConstantSOp,
    Full,
    Map,
    Select,
    SelectorWidth,
    SequenceMap,
    SOp,
)
from tracr.rasp.traversal import topological
from tracr.rational import fraction_of

EVERYTHING = Select(1, 1, Comparison.EQ)
NOTHING = ~EVERYTHING
ITSELF = Select(rasp.indices, rasp.indices, Comparison.EQ)
numbers = st.integers(-1000, 1000) | st.floats(-1e6, 1e6) | st.booleans()


# Inputs


def test_the_primitives() -> None:
    """tokens, indices, length and Full at every position."""
    assert rasp.tokens("abc") == ["a", "b", "c"]
    assert rasp.indices("abc") == [0, 1, 2]
    assert rasp.length("abc") == [3, 3, 3]
    assert Full("z")("abc") == ["z", "z", "z"]


def test_the_empty_input() -> None:
    """On the empty input an s-op is [] and a selector has no rows."""
    for expr in [rasp.tokens, rasp.length, Full(1), rasp.tokens + 1, Aggregate(EVERYTHING, rasp.tokens), EVERYTHING]:
        assert expr([]) == []
        assert expr("") == []


def test_any_sequence_is_an_input() -> None:
    """Strings, lists and tuples of values, mixed and `None` too; numpy scalars come out as Python's."""
    assert rasp.tokens(("a", 1, None, (2, 3))) == ["a", 1, None, (2, 3)]
    array: Any = np.array([1, 2])
    assert [type(value) for value in rasp.tokens(array)] == [int, int]


@pytest.mark.parametrize("bad", [[[1]], [float("nan")], [rasp.tokens]])
def test_input_tokens_must_be_values(bad: list[object]) -> None:
    """A token that is no value is refused."""
    with pytest.raises(ExpressionError, match="an input token is"):
        rasp.tokens(bad)


def test_an_input_must_be_a_sequence() -> None:
    """A number is not an input."""
    with pytest.raises(InputError, match="sequence of tokens, not 5"):
        rasp.tokens(5)  # type: ignore[arg-type]


def test_only_expressions_evaluate() -> None:
    """Evaluating something else is an error that shows it."""
    with pytest.raises(ExpressionError, match="only a RASP expression can be evaluated, not 3"):
        rasp.evaluate(3, "abc")  # type: ignore[arg-type]


def test_three_ways_to_evaluate_agree() -> None:
    """Calling the expression, `evaluate` and the evaluator class are the same."""
    program = rasp.indices * 2
    assert program("abc") == rasp.evaluate(program, "abc") == rasp.DefaultRASPEvaluator().evaluate(program, "abc")


# Elementwise


def test_none_in_none_out() -> None:
    """Map and SequenceMap never see `None`: it passes through."""
    xs = [1, None, 3]
    assert Map(lambda x: x + 1, rasp.tokens)(xs) == [2, None, 4]
    assert SequenceMap(operator.add, rasp.tokens, rasp.indices)(xs) == [1, None, 5]
    assert SequenceMap(operator.add, rasp.indices, rasp.tokens)(xs) == [1, None, 5]
    assert (rasp.tokens == None)(xs) == [False, None, False]  # noqa: E711
    assert rasp.LinearSequenceMap(rasp.tokens, rasp.indices, 1, 1)(xs) == [1, None, 5]


def test_functions_may_return_none() -> None:
    """A function may itself say that there is no value."""
    assert Map(lambda x: None if x == "b" else x, rasp.tokens)("abc") == ["a", None, "c"]


def test_the_arguments_of_a_sequence_map_keep_their_order() -> None:
    """f(first, second)."""
    assert SequenceMap(lambda x, y: (x, y), rasp.tokens, rasp.indices)("ab") == [("a", 0), ("b", 1)]


def test_results_are_normalised() -> None:
    """A function's numpy result becomes the Python value."""
    results = Map(lambda x: np.float32(x) / 2, rasp.tokens)([1, 2])
    assert results == [0.5, 1.0]
    assert [type(value) for value in results] == [float, float]


# Selection


def test_predicates_get_key_then_query() -> None:
    """predicate(key, query), row = query, column = key."""
    select = Select(rasp.tokens, rasp.indices, lambda key, query: (key, query) == ("a", 2))
    assert select("abc") == [[False, False, False], [False, False, False], [True, False, False]]


def test_the_paper_s_selector_and_aggregate() -> None:
    """select(indices, [1, 0, 2], <) and its aggregate of [10, 20, 30]."""
    select = Select(rasp.indices, ConstantSOp([1, 0, 2]), Comparison.LT)
    assert select("abc") == [[True, False, False], [False, False, False], [True, True, False]]
    assert Aggregate(select, ConstantSOp([10, 20, 30]), default=0)("abc") == [10, 0, 15]


@pytest.mark.parametrize("comparison", Comparison)
def test_comparisons(comparison: Comparison) -> None:
    """Each Comparison is Python's operator between key and query; TRUE and FALSE look at neither."""
    names = {"EQ": "eq", "NEQ": "ne", "LT": "lt", "LEQ": "le", "GT": "gt", "GEQ": "ge"}
    for key, query in [(1, 2), (2, 2), (3, 2), ("a", "b")]:
        name = names.get(comparison.name)
        wanted = getattr(operator, name)(key, query) if name else comparison is Comparison.TRUE
        assert comparison(key, query) is wanted


@pytest.mark.parametrize("comparison", Comparison)
def test_comparisons_refuse_none(comparison: Comparison) -> None:
    """A Comparison raises on a `None` key or query, in a selector with the place and the values."""
    for key, query in [(None, 1), (1, None), (None, None)]:
        with pytest.raises(ValueError, match="got None"):
            comparison(key, query)
    with pytest.raises(EvaluationError, match=r"Comparison\.\w+ failed at position 0 on None, 'a'.*use a lambda"):
        Select(rasp.tokens, "a", comparison)([None, "a"])


def test_lambdas_may_take_none() -> None:
    """A predicate of one's own may select or pass over `None` keys and queries."""
    select = Select(rasp.tokens, rasp.tokens, lambda key, query: key is None and query is not None)
    assert select([None, 1]) == [[False, False], [True, False]]


def test_predicate_results_count_by_their_truth() -> None:
    """Any truthy value selects."""
    assert Select(rasp.tokens, rasp.tokens, lambda key, query: key)([0, 2]) == [[False, True], [False, True]]


# Aggregation


def test_nothing_selected_gives_the_default() -> None:
    """The default is `None` unless given, and may be any value."""
    assert Aggregate(NOTHING, rasp.tokens)("ab") == [None, None]
    assert Aggregate(NOTHING, rasp.tokens, default="?")("ab") == ["?", "?"]
    assert Aggregate(NOTHING, rasp.tokens, default=0)([7]) == [0]


def test_one_selected_gives_that_very_value() -> None:
    """A single value of any type, `None` included, comes out as it is, not as a mean."""
    xs = ["a", True, 3, None, (1,)]
    result = Aggregate(ITSELF, rasp.tokens, default="unused")(xs)
    assert result == xs
    assert [type(value) for value in result] == [type(x) for x in xs]


@given(st.lists(numbers, min_size=2, max_size=9))
def test_several_numbers_give_their_exact_mean(xs: list[float]) -> None:
    """ints, floats and bools average to the correctly rounded exact mean, a float."""
    mean = float(sum(map(fraction_of, xs), Fraction(0)) / len(xs))
    result = Aggregate(EVERYTHING, rasp.tokens)(xs)
    assert result == [mean] * len(xs)
    assert all(isinstance(value, float) for value in result)


def test_one_third_is_one_third() -> None:
    """The mean of 0.1, 0.1, 0.1 is 0.1; of True, False, False the float nearest 1/3."""
    assert Aggregate(EVERYTHING, rasp.tokens)([0.1, 0.1, 0.1])[0] == 0.1
    assert Aggregate(EVERYTHING, rasp.tokens)([True, False, False])[0] == 1 / 3


@pytest.mark.parametrize("xs", [["a", "b"], ["a", "a"], [1, None], [None, None], [1, "a"], [(1,), (2,)]])
def test_several_of_which_one_is_no_number_is_an_error(xs: list[object]) -> None:
    """Several values average only if all are numbers; equal strings and `None` do not."""
    with pytest.raises(EvaluationError, match="position 0 selects several values, not all numbers") as caught:
        Aggregate(EVERYTHING, rasp.tokens)(xs)
    assert repr(xs[0]) in str(caught.value)
    assert "hint: select at most one position per query" in str(caught.value)


def test_a_mean_too_large_for_a_float_is_an_error() -> None:
    """No OverflowError escapes without its place."""
    with pytest.raises(EvaluationError, match="too large for a float"):
        Aggregate(EVERYTHING, rasp.tokens)([10**400, 1])


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=4, max_size=4))
def test_selector_width_counts_each_row(matrix: list[list[bool]]) -> None:
    """The width is how many keys a query selects, 0 included."""
    assert SelectorWidth(ConstantSelector(matrix))("abcd") == [sum(row) for row in matrix]


# Constants of one length

EYE: Any = np.eye(3)


def test_constants_refuse_other_lengths() -> None:
    """ConstantSOp and ConstantSelector are for inputs of their own length."""
    sop, selector = ConstantSOp("xyz"), ConstantSelector(EYE)
    assert sop("abc") == ["x", "y", "z"]
    assert selector("abc") == [[i == j for j in range(3)] for i in range(3)]
    for constant in (sop, selector):
        for xs in ("", "ab", "abcd"):
            with pytest.raises(InputError, match=f"values for length 3, not for an input of length {len(xs)}"):
                constant(xs)


def test_unchecked_constants_take_inputs_of_any_length() -> None:
    """With check_length=False a shorter input sees the beginning; behind the end there is nothing."""
    sop, selector = (
        ConstantSOp([5, 6, 7], check_length=False),
        ConstantSelector(EYE, check_length=False),
    )
    assert sop("ab") == [5, 6]
    assert selector("ab") == [[True, False], [False, True]]
    assert sop("abcde") == [5, 6, 7, None, None]
    assert selector("abcd") == [[i == j < 3 for j in range(4)] for i in range(4)]
    assert causal_eval.evaluate(~selector, "abcd")[3] == [True] * 4


# Causal evaluation


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=4, max_size=4))
def test_causal_evaluation_masks_every_selector(matrix: list[list[bool]]) -> None:
    """No query selects a later key: constants, combinations and negations are all masked."""
    selector, full = ConstantSelector(matrix), Select(rasp.indices, rasp.indices, Comparison.TRUE)
    n = range(4)
    masked = [[matrix[i][j] and j <= i for j in n] for i in n]
    assert causal_eval.evaluate(selector, "abcd") == masked
    assert causal_eval.evaluate(~selector, "abcd") == [[not matrix[i][j] and j <= i for j in n] for i in n]
    assert causal_eval.evaluate(~~selector, "abcd") == masked
    assert causal_eval.evaluate(selector & full, "abcd") == masked
    assert causal_eval.evaluate(selector | full, "abcd") == [[j <= i for j in n] for i in n]


def test_causal_means_are_running_means() -> None:
    """Aggregates and widths follow the mask."""
    assert causal_eval.evaluate(Aggregate(EVERYTHING, rasp.tokens), [2, 4, 6]) == [2, 3.0, 4.0]
    assert causal_eval.evaluate(SelectorWidth(EVERYTHING), "abc") == [1, 2, 3]
    assert causal_eval.evaluate(rasp.tokens, "abc") == rasp.evaluate(rasp.tokens, "abc", causal=True)


def test_causal_evaluation_ignores_the_future() -> None:
    """The values at a position depend on the input up to it only."""
    program = Aggregate(Select(rasp.tokens, rasp.tokens, Comparison.LEQ), rasp.tokens) + SelectorWidth(EVERYTHING)
    xs = [3, 1, 4, 1, 5]
    for n in range(len(xs)):
        assert causal_eval.evaluate(program, xs[:n]) == causal_eval.evaluate(program, xs)[:n]


def test_length_is_refused_causally() -> None:
    """The length of the input is in the future; the hint gives what can be known."""
    with pytest.raises(EvaluationError, match=r"(?s)depends on the future.*indices \+ 1"):
        causal_eval.evaluate(rasp.indices + rasp.length, "abc")


# Size


def test_sixty_doublings_take_no_time() -> None:
    """A shared sub-expression is evaluated once, not once per path to it."""
    sop: SOp = rasp.tokens
    for _ in range(60):
        sop = sop + sop
    start = time.process_time()
    assert sop([1, 3]) == [2**60, 3 * 2**60]
    assert time.process_time() - start < 5


@pytest.mark.parametrize("kind", ["fused maps", "maps", "sequence maps", "aggregates", "selectors"])
def test_ten_thousand_ops_in_a_chain(kind: str) -> None:
    """Building, evaluating, printing and dropping a deep chain never recurses."""
    depth = 10_000
    sop: SOp = rasp.tokens
    selector: rasp.Selector = ITSELF
    for _ in range(depth):
        match kind:
            case "fused maps":
                sop = sop + 1
            case "maps":
                sop = Map(lambda x: x + 1, sop, simplify=False)
            case "sequence maps":
                sop = SequenceMap(operator.add, sop, Full(1))
            case "aggregates":
                sop = Aggregate(ITSELF, sop)
            case _:
                selector = ~selector
    if kind == "selectors":
        sop = SelectorWidth(selector)
    expected = {"aggregates": [1, 2], "selectors": [1, 1]}.get(kind, [1 + depth, 2 + depth])
    assert sop([1, 2]) == expected
    assert len(repr(sop)) < 200
    assert repr(sop.named("deep").copy())


def test_every_sub_expression_is_visited_once_children_first() -> None:
    """The order of evaluation: each expression once, after what it is built from."""
    a = rasp.tokens + 1
    b = a * rasp.tokens
    order = topological([b, a])
    assert [id(expr) for expr in order] == [id(rasp.tokens), id(a), id(b)]


def test_functions_are_called_once_per_position() -> None:
    """A shared Map calls its function once per position however many read it."""
    calls: list[str] = []
    shared = Map(lambda x: calls.append(x) or x, rasp.tokens)  # type: ignore[func-returns-value]
    SequenceMap(lambda x, y: x + y, shared, shared)("abc")
    assert calls == ["a", "b", "c"]


# Errors


def test_a_failing_function_is_named_with_its_place_and_values() -> None:
    """The error names the expression, the function, the position, the values and the cause."""
    with pytest.raises(EvaluationError) as caught:
        (1 / rasp.tokens).named("inverse")([1, 0])
    text = str(caught.value)
    for part in ["Map(1 / x, tokens).named('inverse')", "position 1", "on 0", "ZeroDivisionError: division by zero"]:
        assert part in text
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_failing_sequence_map_and_predicate_are_placed() -> None:
    """Two-argument functions show both values; a predicate the query's position."""
    with pytest.raises(
        EvaluationError, match=r"SequenceMap\(x \+ y, tokens, indices\) \(test_.*:\d+\): .*position 0 on 'a', 0"
    ):
        (rasp.tokens + rasp.indices)("ab")
    with pytest.raises(EvaluationError, match=r"Select\(Comparison.LT, .*position 1 on 'b', 1"):
        Select(rasp.tokens, ConstantSOp(["a", 1]), Comparison.LT)(["b", "c"])


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), [1], rasp.tokens, np.array([1])])
def test_functions_may_not_return_what_is_no_value(bad: object) -> None:
    """NaN, infinities, unhashable objects and expressions are refused as results, with the place."""
    with pytest.raises(
        EvaluationError, match=r"Map\(<lambda>, tokens\) .*: <lambda> failed at position 0 on 'a': .*its result is"
    ):
        Map(lambda x: bad, rasp.tokens)("a")
    with pytest.raises(EvaluationError, match=r"failed at position 0 on 'a', 'a'"):
        Select(rasp.tokens, rasp.tokens, lambda key, query: bad)("a")


def test_an_interpreter_can_be_given_results() -> None:
    """`evaluate_all` returns every sub-expression's value and lets some be replaced, for interventions."""
    a = rasp.tokens + 1
    b = Map(lambda x: x * 10, a, simplify=False)
    results = rasp.DefaultRASPEvaluator().evaluate_all([b], [1, 2], replaced={a: [5, 6]})
    assert results[b] == [50, 60]
    assert results[rasp.tokens] == [1, 2]
    assert CausalEvaluator().evaluate(b, [1, 2]) == [20, 30]
