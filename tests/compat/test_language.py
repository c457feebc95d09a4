"""Annotations, labels, simplification and evaluators behave as existing programs expect."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import tracr
from tracr.compiler.compiling import compile_rasp_to_model
from tracr.rasp import causal_eval, rasp
from tracr.rasp.rasp import Comparison, Encoding

EVERY = rasp.Select(rasp.indices, rasp.indices, Comparison.TRUE)


# Annotations


def test_annotating_makes_a_copy_and_keeps_what_was_there() -> None:
    """Names, encodings and a user's own keys add up; the original is untouched."""
    plain = rasp.Map(str, rasp.indices)
    noted = rasp.annotate(rasp.numerical(plain.named("n")), note=3)
    assert (noted.name, rasp.get_encoding(noted), noted.annotations["note"]) == ("n", Encoding.NUMERICAL, 3)
    assert (plain.name, rasp.get_encoding(plain)) == ("map", Encoding.CATEGORICAL)
    assert "note" not in plain.annotations
    assert type(noted) is rasp.Map
    assert noted("ab") == plain("ab")


def test_named_is_annotated_name() -> None:
    """Three ways to name."""
    for named in (
        rasp.tokens.named("x"),
        rasp.tokens.annotated(name="x"),
        rasp.annotate(rasp.tokens, name="x"),
    ):
        assert named.name == named.annotations["name"] == "x"


def test_defaults_come_from_the_annotators() -> None:
    """A name for the kind of expression, and categorical."""
    assert set(rasp.DEFAULT_ANNOTATORS) == {"name", "encoding"}
    sop = rasp.Map(str, rasp.tokens)
    for key, annotator in rasp.DEFAULT_ANNOTATORS.items():
        assert key in sop.annotations
        assert sop.annotations[key] == annotator(sop)


def test_an_annotator_of_ones_own_applies_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adding to DEFAULT_ANNOTATORS gives every expression a further default."""
    monkeypatch.setitem(rasp.DEFAULT_ANNOTATORS, "children", lambda expr: len(expr.children))
    assert (rasp.tokens == "a").annotations["children"] == 1


def test_unknown_annotations_are_key_errors_that_say_what_there_is() -> None:
    """Not a silent None."""
    with pytest.raises(KeyError, match=r"no annotation 'colour'.*encoding, name"):
        _ = rasp.tokens.annotations["colour"]
    with pytest.raises(TypeError):
        rasp.tokens.annotations["colour"] = "red"  # type: ignore[index]


def test_only_s_ops_have_encodings() -> None:
    """A selector is neither numerical nor categorical, and asking which is a TypeError."""
    assert not rasp.is_numerical(EVERY)
    assert not rasp.is_categorical(EVERY)
    asked: tuple[Any, ...] = (rasp.numerical, rasp.categorical, rasp.get_encoding, rasp.default_encoding)
    for ask in asked:
        with pytest.raises(TypeError, match="only an s-op has an encoding"):
            ask(EVERY)
    with pytest.raises(tracr.ExpressionError, match="encoding must be"):
        rasp.annotate(rasp.tokens, encoding="numerical")


def test_encodings_can_be_overruled() -> None:
    """The last wish counts."""
    sop = rasp.categorical(rasp.numerical(rasp.indices))
    assert rasp.is_categorical(sop)
    assert not rasp.is_numerical(sop)


# Labels


@pytest.mark.parametrize(
    ("expr", "name"),
    [
        (rasp.tokens, "tokens"),
        (rasp.indices, "indices"),
        (rasp.length, "length"),
        (rasp.Full(1), "full"),
        (rasp.tokens == "a", "map"),
        (rasp.tokens == rasp.indices, "sequence_map"),
        (rasp.LinearSequenceMap(rasp.indices, rasp.indices, 1, 1), "linear_sequence_map"),
        (rasp.Aggregate(EVERY, rasp.indices), "aggregate"),
        (rasp.SelectorWidth(EVERY), "selector_width"),
        (EVERY, "select"),
        (rasp.SelectorAnd(EVERY, EVERY), "selector_and"),
        (rasp.SelectorOr(EVERY, EVERY), "selector_or"),
        (rasp.SelectorNot(EVERY), "selector_not"),
        (rasp.ConstantSelector([[True]]), "constant_selector"),
    ],
)
def test_an_unnamed_expression_is_called_after_its_kind(expr: rasp.RASPExpr, name: str) -> None:
    """In lower case with underscores."""
    assert expr.name == name


def test_children_are_what_an_expression_is_built_from() -> None:
    """In the order of the arguments; `copy` is another expression over the same children."""
    aggregate = rasp.Aggregate(EVERY, rasp.tokens)
    assert list(aggregate.children) == [EVERY, rasp.tokens]
    assert not list(rasp.tokens.children)
    twin = aggregate.copy()
    assert twin is not aggregate
    assert twin.children == aggregate.children


def test_a_copy_has_another_unique_id() -> None:
    """And keeps the children, so theirs; the id stays what it was, and is part of the label."""
    for expr in (rasp.tokens, EVERY, rasp.Aggregate(EVERY, rasp.tokens), rasp.tokens == "a", rasp.Full(1)):
        copies = [expr, expr.copy(), expr.named("x"), rasp.numerical(expr) if isinstance(expr, rasp.SOp) else ~expr]
        assert len({one.unique_id for one in copies}) == len(copies)
        assert [child.unique_id for child in expr.copy().children] == [child.unique_id for child in expr.children]
        assert expr.unique_id == expr.unique_id
    named = (rasp.tokens == "a").named("x")
    assert named.label == f"x_{named.unique_id}"
    assert [sop.copy().label for sop in (rasp.tokens, rasp.indices, rasp.length)] == ["tokens", "indices", "length"]


def test_a_sequence_map_of_one_s_op_twice_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Where a user writes it; not for operators, and not for two s-ops."""
    for quiet in (lambda: rasp.indices * rasp.indices, lambda: rasp.SequenceMap(max, rasp.indices, rasp.length)):
        quiet()
        assert not caplog.records
    for build in (
        lambda: rasp.SequenceMap(max, rasp.indices, rasp.indices),
        lambda: rasp.LinearSequenceMap(rasp.indices, rasp.indices, 1, 2),
    ):
        caplog.clear()
        build()
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert "reads indices twice" in caplog.text


def test_constants_of_unchecked_length() -> None:
    """The interpreter takes inputs of any length, a model those the constant has values for; they agree."""
    program = rasp.ConstantSOp([5, 6, 7], check_length=False)
    assert program("longer") == [5, 6, 7, None, None, None]
    model = compile_rasp_to_model(program, "a", 5)
    for length in (1, 2, 3):
        assert model.apply(["compiler_bos", *"a" * length]).decoded[1:] == program("a" * length)
    with pytest.raises(tracr.InputError, match="at most 3"):
        model.apply(["compiler_bos", *"aaaa"])


def test_residual_labels_are_names_numbered_where_they_repeat() -> None:
    """The output's first; name, name_2, ...: "name" for a number, else "name:value"; BOS and PAD as they were given."""
    first = rasp.numerical(rasp.tokens == "a").named("same")
    second = rasp.numerical(rasp.tokens == "b").named("same")
    model = compile_rasp_to_model(
        (rasp.LinearSequenceMap(first, second, 1, 2)).named("sum"), "ab", 2, compiler_bos="<s>", compiler_pad="<p>"
    )
    assert model.residual_labels == [
        "sum",
        *("tokens:a", "tokens:b", "tokens:<s>", "tokens:<p>", "indices:0", "indices:1", "one"),
        *("same", "same_2"),
    ]
    assert model.output_label == "sum"


def test_labels_do_not_depend_on_what_was_built_before() -> None:
    """No global counters: the same program, the same labels."""

    def labels() -> list[str]:
        return compile_rasp_to_model(rasp.Map(str.upper, rasp.tokens), "ab", 2).residual_labels

    assert labels() == labels()
    assert "map:A" in labels()


# Simplification


def test_a_map_of_a_map_fuses() -> None:
    """One Map over the innermost s-op, whatever the inner one is called; unless simplify=False."""
    inner = rasp.Map(lambda x: x + 1, rasp.indices).named("inner")
    fused = rasp.Map(lambda x: 10 * x, inner)
    assert fused.inner is rasp.indices
    assert rasp.Map(lambda x: 10 * x, inner, simplify=False).inner is inner
    assert fused("abc") == rasp.Map(lambda x: 10 * x, inner, simplify=False)("abc") == [10, 20, 30]


def test_a_fused_map_still_stops_at_none() -> None:
    """None in the middle is None at the end."""
    halves = rasp.Map(lambda x: None if x % 2 else x // 2, rasp.indices)
    assert rasp.Map(str, halves)("abc") == ["0", None, "1"]


def table(selector: rasp.Selector) -> Any:
    return selector([2, 0, 1])


COMBINATIONS = {
    "same inputs": (
        rasp.Select(rasp.tokens, rasp.indices, Comparison.LEQ),
        rasp.Select(rasp.tokens, rasp.indices, Comparison.GEQ),
    ),
    "Full queries": (
        rasp.Select(rasp.tokens, rasp.Full(1), Comparison.EQ),
        rasp.Select(rasp.tokens, rasp.indices, Comparison.LT),
    ),
    "Full keys": (
        rasp.Select(rasp.Full(1), rasp.indices, Comparison.LT),
        rasp.Select(rasp.tokens, rasp.indices, Comparison.LT),
    ),
    "Full against Full": (
        rasp.Select(rasp.Full(1), rasp.indices, Comparison.EQ),
        rasp.Select(rasp.Full(2), rasp.indices, Comparison.EQ),
    ),
    "Full on different sides": (
        rasp.Select(rasp.tokens, rasp.Full(0), Comparison.EQ),
        rasp.Select(rasp.Full(0), rasp.indices, Comparison.EQ),
    ),
}


@pytest.mark.parametrize("case", COMBINATIONS)
@pytest.mark.parametrize("combine", [rasp.selector_and, rasp.selector_or], ids=["and", "or"])
def test_selectors_over_common_inputs_become_one_select(case: str, combine: Any) -> None:
    """A constant (Full) goes with anything; the selection is that of the two."""
    for fst, snd in itertools.permutations(COMBINATIONS[case]):
        simple, plain = combine(fst, snd), combine(fst, snd, simplify=False)
        assert isinstance(simple, rasp.Select)
        assert isinstance(plain, rasp.SelectorAnd | rasp.SelectorOr)
        assert table(simple) == table(plain)


@pytest.mark.parametrize("combine", [rasp.selector_and, rasp.selector_or], ids=["and", "or"])
def test_selectors_over_different_inputs_stay_two(combine: Any) -> None:
    """There is no one predicate for them."""
    fst = rasp.Select(rasp.tokens, rasp.indices, Comparison.LT)
    snd = rasp.Select(rasp.indices, rasp.tokens, Comparison.LT)
    assert not isinstance(combine(fst, snd), rasp.Select)


def test_not_of_a_select_is_a_select() -> None:
    """`Not` of a `Select` becomes a `Select`, unless simplify=False or its argument is another selector."""
    select = rasp.Select(rasp.tokens, rasp.indices, Comparison.LT)
    assert isinstance(rasp.selector_not(select), rasp.Select)
    assert isinstance(rasp.selector_not(select, simplify=False), rasp.SelectorNot)
    assert isinstance(rasp.selector_not(rasp.ConstantSelector([[True]])), rasp.SelectorNot)
    assert table(rasp.selector_not(select)) == table(~select)


def test_operators_on_selectors_select_the_same() -> None:
    """`& | ~` and the functions agree."""
    fst, snd = COMBINATIONS["Full queries"]
    assert table(fst & snd) == table(rasp.selector_and(fst, snd))
    assert table(fst | snd) == table(rasp.selector_or(fst, snd))
    assert table(~fst) == table(rasp.selector_not(fst))


# Evaluators


def test_evaluators_are_classes_with_evaluate() -> None:
    """One bidirectional, one causal, which is a kind of the first."""
    prefix = rasp.SelectorWidth(EVERY)
    assert rasp.DefaultRASPEvaluator().evaluate(prefix, "abc") == rasp.evaluate(prefix, "abc") == prefix("abc")
    assert prefix("abc") == [3, 3, 3]
    assert issubclass(causal_eval.CausalEvaluator, rasp.DefaultRASPEvaluator)
    assert causal_eval.CausalEvaluator().evaluate(prefix, "abc") == [1, 2, 3]
    assert causal_eval.evaluate(prefix, "abc") == rasp.causal_eval.evaluate(prefix, "abc") == [1, 2, 3]


def test_causal_evaluation_masks_negated_selectors_too() -> None:
    """The mask comes last."""
    nothing = rasp.Select(rasp.indices, rasp.indices, Comparison.FALSE)
    for negated in (~nothing, rasp.selector_not(nothing)):
        assert causal_eval.evaluate(negated, "ab") == [[True, False], [True, True]]


def test_predicates_take_key_then_query_and_rows_are_queries() -> None:
    """selector[query][key] = predicate(key, query)."""
    assert rasp.Select(rasp.tokens, rasp.indices, lambda key, query: (key, query) == ("b", 0))("ab") == [
        [False, True],
        [False, False],
    ]


def test_comparisons_refuse_none_with_a_value_error() -> None:
    """Also those that do not look."""
    for comparison in Comparison:
        for pair in ((None, 1), (1, None)):
            with pytest.raises(ValueError, match="None"):
                comparison(*pair)


def test_aggregates() -> None:
    """Nothing: the default. One: itself. Several numbers: the mean. Several others: an error."""
    nothing = rasp.Select(rasp.indices, rasp.indices, Comparison.FALSE)
    one = rasp.Select(rasp.indices, rasp.indices, Comparison.EQ)
    assert rasp.Aggregate(nothing, rasp.tokens)("ab") == [None, None]
    assert rasp.Aggregate(nothing, rasp.tokens, default="z")("ab") == ["z", "z"]
    assert rasp.Aggregate(one, rasp.tokens)("ab") == ["a", "b"]
    assert rasp.Aggregate(EVERY, rasp.tokens)([True, 2, 3.0]) == [2.0, 2.0, 2.0]
    with pytest.raises(ValueError, match="no mean"):
        rasp.Aggregate(EVERY, rasp.tokens)("ab")


def test_operators_work_reflected_and_between_s_ops() -> None:
    """A value or an s-op on either side."""
    assert (2 - rasp.indices)("abc") == [2, 1, 0]
    assert (2 > rasp.indices)("abc") == [True, True, False]  # noqa: SIM300
    assert (6 / (rasp.indices + 1))("abc") == [6, 3, 2]
    assert (rasp.length - rasp.indices)("abc") == [3, 2, 1]
    assert rasp.sop_not(rasp.tokens == "a")("ab") == (~(rasp.tokens == "a"))("ab") == [False, True]


def test_what_existing_code_caught_as_value_error_still_is() -> None:
    """Wrong lengths, wrong values; wrong constructions are both TypeError and ValueError."""
    with pytest.raises(ValueError, match="length 2"):
        rasp.ConstantSOp([1, 2])("abc")
    for kind in (TypeError, ValueError):
        with pytest.raises(kind, match="must be an s-op"):
            rasp.Map(len, 3)  # type: ignore[arg-type]


def test_the_one_difference() -> None:
    """An s-op has no truth value."""
    with pytest.raises(tracr.ExpressionError, match="no truth value"):
        bool(rasp.tokens == "a")
