"""Every block in every combination of encodings, compared with the interpreter on all short inputs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tracr
from tests.agreement import all_inputs, assert_agrees, compile_quietly, some_inputs
from tracr.ir.options import LEVELS
from tracr.rasp import rasp
from tracr.rasp.rasp import Comparison, SOp, Value

ENCODINGS: dict[str, Callable[[SOp], SOp]] = {
    "inferred": lambda sop: sop,
    "numerical": rasp.numerical,
    "categorical": rasp.categorical,
}


def check(program: SOp, vocab: tuple[Value, ...], longest: int = 4, *, causal: bool = False) -> None:
    """Agreement at every level on all inputs up to length 3 and some longer ones."""
    inputs = [*all_inputs(vocab, min(3, longest)), *some_inputs(vocab, longest, 40)]
    for level in LEVELS:
        model = compile_quietly(program, vocab, longest, level=level, causal=causal)
        assert assert_agrees(model, program, inputs) > 0


NUMBERS = (-2, 0.5, 3)
LETTERS = ("a", "b", "c")


def half_or_none(x: float) -> float | None:
    """A partial function of numbers."""
    return None if x > 2 else x / 2


@pytest.mark.parametrize("into", ENCODINGS)
@pytest.mark.parametrize("out", ENCODINGS)
@pytest.mark.parametrize(
    "f",
    [lambda x: -x, lambda x: x * x, lambda x: 1, half_or_none, lambda x: x > 0],
    ids=["neg", "square", "one", "half", "positive"],
)
def test_map_between_all_encodings(into: str, out: str, f: Callable[[float], Value]) -> None:
    """A Map computes the same whatever the encodings of its input and output, negative numbers and None included."""
    inner = ENCODINGS[into](rasp.Map(lambda x: x + 1, rasp.tokens))
    check(ENCODINGS[out](rasp.Map(f, inner, simplify=False)), NUMBERS)


@pytest.mark.parametrize("into", ENCODINGS)
def test_map_from_numbers_to_strings(into: str) -> None:
    """A number can be mapped to categories."""
    inner = ENCODINGS[into](rasp.Map(lambda x: x * 2, rasp.tokens))
    check(rasp.Map(lambda x: "neg" if x < 0 else str(float(x)), inner, simplify=False), NUMBERS)


@pytest.mark.parametrize("out", ENCODINGS)
def test_map_from_strings_to_numbers(out: str) -> None:
    """Categories can be mapped to numbers."""
    check(ENCODINGS[out](rasp.Map(lambda x: {"a": -1.5, "b": 0, "c": 0.1}[x], rasp.tokens)), LETTERS)


@pytest.mark.parametrize("fst", ENCODINGS)
@pytest.mark.parametrize("snd", ENCODINGS)
@pytest.mark.parametrize("out", ENCODINGS)
def test_sequence_map_of_any_mix(fst: str, snd: str, out: str) -> None:
    """A SequenceMap takes any mix of encodings, None in either argument included."""
    first = ENCODINGS[fst](rasp.Map(half_or_none, rasp.tokens))
    second = ENCODINGS[snd](rasp.indices)
    check(ENCODINGS[out](rasp.SequenceMap(lambda x, y: x * y - y, first, second)), NUMBERS)


def test_sequence_map_of_strings() -> None:
    """Strings combine with strings and numbers."""
    check(rasp.SequenceMap(lambda x, y: x * y, rasp.tokens, rasp.indices), LETTERS)
    check(rasp.tokens + rasp.tokens, LETTERS)


@pytest.mark.parametrize(
    "program", [lambda x: rasp.SequenceMap(lambda a, b: a * b, x, x), lambda x: x - x, lambda x: x == x]
)
def test_one_sop_as_both_arguments(program: Callable[[SOp], SOp]) -> None:
    """Both arguments of an operation may be the same s-op."""
    check(program(rasp.tokens), NUMBERS)
    check(program(rasp.Aggregate(prevs(), rasp.tokens)), NUMBERS)


@pytest.mark.parametrize("fst", ENCODINGS)
@pytest.mark.parametrize("snd", ENCODINGS)
@pytest.mark.parametrize("factors", [(1, 1), (1, -1), (-0.5, 3), (0, 2)])
def test_linear_sequence_map(fst: str, snd: str, factors: tuple[float, float]) -> None:
    """Weighted sums of any encodings, negative and fractional factors, None propagated."""
    first = ENCODINGS[fst](rasp.Map(half_or_none, rasp.tokens))
    check(rasp.LinearSequenceMap(first, ENCODINGS[snd](rasp.indices), *factors), NUMBERS)
    check(rasp.categorical(rasp.LinearSequenceMap(first, rasp.indices, *factors)), NUMBERS)


def test_sums_of_two_nones_are_one_none() -> None:
    """Where both terms are None the sum is None once, so that its readers still see a one-hot code."""
    maybe = rasp.numerical(rasp.Map(half_or_none, rasp.tokens))
    other = rasp.numerical(rasp.Map(lambda x: None if x > 2 else x * 3, rasp.tokens))
    total = rasp.LinearSequenceMap(maybe, other, 1, 1)
    check(rasp.SequenceMap(lambda x, y: (x, y), rasp.categorical(total), rasp.indices), NUMBERS)
    check(rasp.SelectorWidth(rasp.Select(total, total, lambda k, q: k == q)), NUMBERS)
    check(rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, Comparison.EQ), total), NUMBERS)
    check(rasp.categorical(maybe - maybe), NUMBERS)


def prevs(comparison: Comparison = Comparison.LEQ) -> rasp.Selector:
    """Earlier positions."""
    return rasp.Select(rasp.indices, rasp.indices, comparison)


@pytest.mark.parametrize("default", [None, 0, 7, -1.5, "none"])
@pytest.mark.parametrize("comparison", [Comparison.LT, Comparison.LEQ])
@pytest.mark.parametrize("into", ENCODINGS)
@pytest.mark.parametrize("causal", [False, True])
def test_mean_with_any_default(default: Value, comparison: Comparison, into: str, causal: bool) -> None:
    """Means of negative and fractional numbers, with any default for queries that select nothing."""
    values = ENCODINGS[into](rasp.Map(lambda x: x * 3, rasp.tokens))
    check(rasp.Aggregate(prevs(comparison), values, default=default), NUMBERS, causal=causal)


@pytest.mark.parametrize("default", [None, "a", "zzz", 7, ("t", 1)])
def test_copy_of_categories_with_any_default(default: Value) -> None:
    """Categories are copied, from one key or none."""
    before = rasp.Select(rasp.indices, rasp.indices - 1, Comparison.EQ)
    check(rasp.Aggregate(before, rasp.tokens, default=default), LETTERS)


def test_stray_codes_at_bos_are_never_read() -> None:
    """A default written at BOS by one head does not leak into the default of the next, nor into its keys."""
    before = rasp.Select(rasp.indices, rasp.indices - 1, Comparison.EQ)
    shifted = rasp.Aggregate(before, rasp.numerical(rasp.tokens + 0), default=5)
    check(rasp.Aggregate(before, shifted, default=7), NUMBERS)
    named = rasp.Aggregate(before, rasp.tokens, default="start")
    check(rasp.Aggregate(rasp.Select(named, rasp.tokens, Comparison.EQ), rasp.indices, default=-1), LETTERS)
    check(rasp.SelectorWidth(rasp.Select(named, named, Comparison.EQ)), LETTERS)


def test_none_takes_part_in_selection() -> None:
    """A predicate may accept None among keys and queries."""
    maybe = rasp.Map(lambda x: None if x == "a" else x, rasp.tokens)
    for predicate in (lambda k, q: k != "b", lambda k, q: k is None, lambda k, q: k == q, lambda k, q: q is None):
        check(rasp.SelectorWidth(rasp.Select(maybe, maybe, predicate)), LETTERS)
        check(rasp.Aggregate(rasp.Select(maybe, maybe, predicate), rasp.indices), LETTERS)


def test_none_as_a_copied_value() -> None:
    """A single selected None is copied, for strings and for numbers."""
    before = rasp.Select(rasp.indices, rasp.indices - 1, Comparison.EQ)
    check(rasp.Aggregate(before, rasp.Map(lambda x: None if x == "a" else x, rasp.tokens), default="d"), LETTERS)
    check(rasp.Aggregate(before, rasp.numerical(rasp.Map(half_or_none, rasp.tokens)), default=9), NUMBERS)


@pytest.mark.parametrize("comparison", list(Comparison))
@pytest.mark.parametrize("causal", [False, True])
def test_selector_width_of_every_comparison(comparison: Comparison, causal: bool) -> None:
    """Widths from zero to the whole input, numerical or not."""
    width = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, comparison))
    check(width, NUMBERS, causal=causal)
    check(rasp.numerical(width), NUMBERS, causal=causal)


def test_constants_as_keys_queries_and_values() -> None:
    """`Full` and plain constants may stand wherever an s-op may."""
    check(rasp.Aggregate(rasp.Select(rasp.Full(1), 1, Comparison.EQ), rasp.Full(3)), LETTERS)
    check(rasp.Aggregate(rasp.Select(1, 2, Comparison.EQ), rasp.tokens, default="d"), LETTERS)
    check(rasp.SelectorWidth(rasp.Select(rasp.tokens, "a", Comparison.EQ)), LETTERS)
    check(rasp.Aggregate(rasp.Select(0, rasp.indices, Comparison.LT), rasp.indices), LETTERS)
    check(rasp.SequenceMap(lambda x, y: x + y, rasp.Full(1), rasp.indices), LETTERS)


def test_maps_of_constants() -> None:
    """Constants are values like any others."""
    check(rasp.Full(3) + 1, LETTERS)
    check(rasp.Map(lambda x: x * 2, rasp.Full("ab")), LETTERS)
    check(rasp.SequenceMap(lambda x, y: (x, y), rasp.Full(3), rasp.Full(4)), LETTERS)
    check(rasp.Aggregate(rasp.Select(b"k", rasp.tokens, lambda k, q: q == "a"), rasp.Full(2) * 2), LETTERS)


def test_types_are_the_interpreters() -> None:
    """A mean of equal integers is a float, and so is a sum with float factors: functions that look at types see it."""
    same = rasp.Select(rasp.tokens, rasp.tokens, Comparison.EQ)
    everything = rasp.Select(1, 1, Comparison.EQ)
    for program in (
        rasp.Map(str, rasp.Aggregate(same, rasp.tokens)),
        rasp.Map(str, rasp.Aggregate(everything, rasp.Full(1))),
    ):
        with pytest.raises(tracr.CompileError, match="tells equal values apart"):
            compile_quietly(program, (1, 5), 3)
    check(rasp.Map(str, rasp.LinearSequenceMap(rasp.indices, rasp.indices, 1.0, 1.0)), LETTERS)
    check(rasp.Map(str, rasp.LinearSequenceMap(rasp.indices, rasp.indices, 1, 1)), LETTERS)
    check(rasp.categorical(rasp.LinearSequenceMap(rasp.tokens, rasp.tokens, 1, 1)), (2**53 + 1, 5))
    with pytest.raises(tracr.CompileError, match="2\\*\\*24"):
        compile_quietly(rasp.Aggregate(same, rasp.tokens), (2**53 + 1, 5), 3)


def test_a_number_that_is_always_none() -> None:
    """Numbers may be None everywhere, and so may what is computed from them."""
    nothing = rasp.numerical(rasp.Map(lambda x: None, rasp.tokens))
    check(rasp.numerical(rasp.Map(lambda x: x + 1, nothing, simplify=False)), LETTERS)
    check(rasp.LinearSequenceMap(nothing, rasp.indices, 1, 2), LETTERS)


def test_a_string_default_of_a_decoded_mean() -> None:
    """Values that are not numbers keep a class of their own when means are decoded in two steps."""
    later = rasp.Select(rasp.indices, rasp.indices, Comparison.GT)
    check(rasp.Map(lambda x: x, rasp.Aggregate(later, rasp.indices, default="none")), ("a", "b"), 9)


def test_higher_levels_are_not_deeper_for_constants() -> None:
    """A map to one value depends on nothing."""
    width = rasp.SelectorWidth(SAME)
    program = rasp.SequenceMap(lambda a, b: a + b, rasp.Map(lambda x: 0, rasp.numerical(width)), width)
    check(program, LETTERS)
    zero, one, two = (compile_quietly(program, LETTERS, 4, level=level) for level in LEVELS)
    assert two.n_layers <= one.n_layers <= zero.n_layers


@pytest.mark.parametrize(
    "program",
    [
        rasp.tokens,
        rasp.indices,
        rasp.length,
        rasp.Full(3),
        rasp.Full(None),
        rasp.numerical(rasp.indices),
        rasp.length - rasp.indices,
        rasp.numerical(rasp.length),
        rasp.Map(lambda x: None, rasp.tokens),
    ],
    ids=repr,
)
def test_programs_of_almost_nothing(program: SOp) -> None:
    """The sources themselves, constants, and programs without tokens compile."""
    check(program, LETTERS)


def test_numerical_tokens() -> None:
    """An annotation on the input is honoured."""
    program = rasp.numerical(rasp.tokens)
    check(program, NUMBERS)
    assert tracr.compile(program, NUMBERS, 3).residual.labels == ["tokens"]


def test_constants_of_one_length() -> None:
    """ConstantSOp and ConstantSelector compile for their own length, others are refused."""
    flip = rasp.ConstantSelector([[False, False, True], [False, True, False], [True, False, False]])
    program = rasp.SequenceMap(lambda x, y: x + y, rasp.ConstantSOp(["x", "y", "z"]), rasp.Aggregate(flip, rasp.tokens))
    for level in LEVELS:
        model = compile_quietly(program, LETTERS, 5, level=level)
        assert model("abc") == program("abc") == ["xc", "yb", "za"]
        with pytest.raises(tracr.InputError, match="exactly 3"):
            model("ab")


SAME = rasp.Select(rasp.tokens, rasp.tokens, Comparison.EQ)
ANY_A = rasp.Select(rasp.tokens, "a", Comparison.EQ)
EARLIER = rasp.Select(rasp.indices, rasp.indices, Comparison.LT)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "selector",
    [SAME & ANY_A, SAME | ANY_A, ~SAME, SAME & EARLIER, SAME | ~EARLIER, ~(SAME & EARLIER) & ANY_A],
    ids=["same-and", "same-or", "not", "product-and", "product-or", "nested"],
)
def test_boolean_selectors(selector: rasp.Selector, causal: bool) -> None:
    """Over the same inputs they are one table, over different ones a product space."""
    check(rasp.SelectorWidth(selector), LETTERS, causal=causal)
    check(rasp.Aggregate(selector, rasp.indices, default=-1), LETTERS, causal=causal)


def test_a_side_that_may_raise_is_not_lost() -> None:
    """Combined selectors raise where the interpreter does, even on keys that always have the same value."""
    before = rasp.Select(rasp.indices, rasp.indices, Comparison.LT)
    fails_on_pairs = rasp.Map(lambda x: 0, rasp.Aggregate(rasp.Select(1, 1, Comparison.EQ), rasp.tokens))
    program = rasp.SelectorWidth(before & rasp.Select(fails_on_pairs, rasp.indices, lambda k, q: True))
    for level in LEVELS:
        model = compile_quietly(program, ("a", "b"), 3, level=level)
        assert assert_agrees(model, program, all_inputs(("a", "b"), 3)) == 2  # only inputs of one token have an answer


def test_same_inputs_need_no_product_space() -> None:
    """A combination over the same keys and queries becomes one head without an MLP before it."""
    model = tracr.compile(rasp.Aggregate(SAME & ~ANY_A, rasp.indices), LETTERS, 4)
    assert [len(layer.heads) for layer in model.schedule.layers] == [1]


def test_several_outputs_share_work() -> None:
    """A dict or a list of programs compiles into one model whose outputs have names."""
    hist = rasp.SelectorWidth(SAME).named("hist")
    model = tracr.compile({"hist": hist, "rare": hist == 1, "text": rasp.tokens}, LETTERS, 4)
    assert model("aba") == {"hist": [2, 1, 2], "rare": [False, True, False], "text": ["a", "b", "a"]}
    assert model([["a"], ["b", "b"]])[1] == {"hist": [2, 2], "rare": [False, False], "text": ["b", "b"]}
    assert sum(len(layer.heads) for layer in model.schedule.layers) == 1
    again = tracr.compile([hist, hist == 1], LETTERS, 4)
    assert again("ab") == {"hist": [1, 1], "map": [True, True]}


def test_mixed_and_odd_vocabularies() -> None:
    """Tokens may be anything hashable, of several types at once."""
    odd = (None, ("t", 1), 2.5, "b", False)
    check(rasp.tokens, odd)
    check(rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, lambda k, q: k == q)), odd)
    before = rasp.Select(rasp.indices, rasp.indices - 1, Comparison.EQ)
    check(rasp.Aggregate(before, rasp.tokens, default="start"), odd)
