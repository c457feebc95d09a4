"""Building expressions: what they are made of, what their operators mean, and what is refused."""

import copy
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracr.errors import ExpressionError
from tracr.rasp import rasp
from tracr.rasp.rasp import Aggregate, Comparison, Encoding, Full, Map, Select, SelectorWidth, SequenceMap, SOp

EYE: Any = np.eye(3)
SELECT = Select(rasp.indices, rasp.indices, Comparison.LEQ)
ALL = [
    *[rasp.tokens, rasp.indices, rasp.length, Full(3), rasp.ConstantSOp([1, 2, 3])],
    *[Map(len, rasp.tokens), SequenceMap(operator.add, rasp.indices, rasp.indices)],
    *[rasp.LinearSequenceMap(rasp.indices, rasp.indices, 1, 2), Aggregate(SELECT, rasp.indices), SelectorWidth(SELECT)],
    *[SELECT, rasp.ConstantSelector(EYE), SELECT & SELECT, SELECT | SELECT, ~SELECT],
]
each_expression = pytest.mark.parametrize("expr", ALL, ids=lambda expr: type(expr).__name__)


# Identity


@each_expression
def test_expressions_are_immutable(expr: rasp.RASPExpr) -> None:
    """No attribute of an expression can be set, added or deleted."""
    for name in ["children", "name", "annotations", "f", "anything"]:
        with pytest.raises(AttributeError):
            setattr(expr, name, 1)
    with pytest.raises(AttributeError):
        del expr.children
    assert isinstance(expr.children, tuple)


@each_expression
def test_expressions_hash_by_identity(expr: rasp.RASPExpr) -> None:
    """Expressions are dict keys and set members, each only itself."""
    twin = expr.copy()
    assert len({expr, twin, expr}) == 2
    assert {expr: "first", twin: "second"}[expr] == "first"


def test_equality_builds_an_expression() -> None:
    """`==` on s-ops is part of the program, and does not disturb their use as keys."""
    assert isinstance(rasp.tokens == rasp.tokens, SequenceMap)
    assert isinstance(rasp.tokens == "a", Map)
    assert len({rasp.tokens == "a", rasp.tokens == "a"}) == 2


@each_expression
def test_expressions_have_no_truth_value(expr: rasp.RASPExpr) -> None:
    """bool(expr) raises, so `and`, `or`, `not`, `if` cannot silently lie."""
    with pytest.raises(ExpressionError, match="no truth value"):
        bool(expr)
    with pytest.raises(ExpressionError, match="no truth value"):
        _ = expr and expr


def test_chained_comparison_and_membership_raise() -> None:
    """`0 < x < 5` and `x in [...]` would drop half of what they say: they raise, with the way to write it."""
    with pytest.raises(ExpressionError, match=r"\(0 < x\) & \(x < 5\)"):
        _ = 0 < rasp.indices < 5
    with pytest.raises(ExpressionError, match=r"instead of and/or/not/in"):
        _ = rasp.tokens in ["a", "b"]


@each_expression
def test_copying_with_the_standard_library_keeps_the_expression(expr: rasp.RASPExpr) -> None:
    """An immutable object is its own copy and deep copy."""
    assert copy.copy(expr) is expr
    assert copy.deepcopy([expr])[0] is expr


# Names and annotations


@each_expression
def test_copies_share_the_children_and_the_meaning(expr: rasp.RASPExpr) -> None:
    """`copy` gives another object of the same type, children and value."""
    twin = expr.copy()
    assert twin is not expr
    assert type(twin) is type(expr)
    assert len(twin.children) == len(expr.children)
    assert all(a is b for a, b in zip(twin.children, expr.children, strict=True))
    assert dict(twin.annotations) == dict(expr.annotations)


@each_expression
def test_naming_makes_a_named_copy(expr: rasp.RASPExpr) -> None:
    """`named` returns a copy with the name; the original keeps its own."""
    before = expr.name
    named = expr.named("lovely")
    assert (named.name, named.annotations["name"]) == ("lovely", "lovely")
    assert expr.name == before != "lovely"
    assert "lovely" in repr(named)


def test_default_names_tell_the_kind() -> None:
    """Without a name, an expression is called after its kind."""
    names = [expr.name for expr in ALL[:5]]
    assert names == ["tokens", "indices", "length", "full", "constant_sop"]
    assert (Map(len, rasp.tokens).name, SELECT.name, (~SELECT).name) == ("map", "select", "selector_not")


def test_annotations_accumulate() -> None:
    """Later annotations add to earlier ones or replace them, in copies only."""
    first = rasp.tokens.annotated(colour="red").named("t")
    second = rasp.annotate(first, colour="blue", size=3)
    assert dict(first.annotations) == {"colour": "red", "name": "t"}
    assert dict(second.annotations) == {"colour": "blue", "size": 3, "name": "t"}
    assert dict(rasp.tokens.annotations) == {}


def test_annotations_cannot_be_changed_in_place() -> None:
    """What `annotations` returns is a read-only view with defaults for name and encoding."""
    annotations = rasp.tokens.annotations
    with pytest.raises(TypeError):
        annotations["name"] = "x"  # type: ignore[index]
    annotations.explicit["name"] = "x"
    assert rasp.tokens.name == "tokens"
    assert "encoding" in annotations
    assert annotations["encoding"] is Encoding.CATEGORICAL
    assert "colour" not in annotations
    with pytest.raises(KeyError):
        annotations["colour"]


def test_encodings() -> None:
    """S-ops are categorical unless `numerical` says otherwise; `categorical` takes it back."""
    number = rasp.numerical(rasp.tokens)
    assert rasp.get_encoding(rasp.tokens) is rasp.default_encoding(rasp.tokens) is Encoding.CATEGORICAL
    assert rasp.is_categorical(rasp.tokens)
    assert not rasp.is_numerical(rasp.tokens)
    assert rasp.get_encoding(number) is Encoding.NUMERICAL
    assert rasp.is_numerical(number)
    assert rasp.is_numerical(number.named("n"))
    assert rasp.is_categorical(rasp.categorical(number))
    assert number([1, 2]) == [1, 2]
    assert set(rasp.DEFAULT_ANNOTATORS) == {"name", "encoding"}


def test_an_encoding_must_be_an_encoding() -> None:
    """A misspelt encoding is refused where it is written."""
    with pytest.raises(ExpressionError, match=r"encoding must be .* not 'numerical'"):
        rasp.tokens.annotated(encoding="numerical")


# Operators

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
}
LOGIC: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "&": (operator.and_, lambda x, y: x and y),
    "|": (operator.or_, lambda x, y: x or y),
}
numbers = st.integers(1, 9) | st.sampled_from([0.5, 2.5])


@pytest.mark.parametrize("symbol", OPERATORS)
@given(xs=st.lists(numbers, min_size=1, max_size=4), constant=numbers)
def test_every_operator_on_either_side(symbol: str, xs: list[float], constant: float) -> None:
    """s-op with s-op, s-op with constant, constant with s-op: Python's operator at each position."""
    op = OPERATORS[symbol]
    shifted = rasp.tokens + 1
    assert op(rasp.tokens, shifted)(xs) == [op(x, x + 1) for x in xs]
    assert op(rasp.tokens, constant)(xs) == [op(x, constant) for x in xs]
    assert op(constant, rasp.tokens)(xs) == [op(constant, x) for x in xs]


@pytest.mark.parametrize("symbol", LOGIC)
@given(xs=st.lists(st.sampled_from([0, 1, 2, True, False]), max_size=4), constant=st.sampled_from([0, 3, True, False]))
def test_and_or_follow_python_s_words(symbol: str, xs: list[int], constant: int) -> None:
    """& and | are `and` and `or` elementwise, not bitwise, on either side."""
    op, word = LOGIC[symbol]
    assert op(rasp.tokens, rasp.indices)(xs) == [word(x, i) for i, x in enumerate(xs)]
    assert op(rasp.tokens, constant)(xs) == [word(x, constant) for x in xs]
    assert op(constant, rasp.tokens)(xs) == [word(constant, x) for x in xs]


def test_not_and_minus() -> None:
    """~ is `not`, - is negation."""
    assert (~rasp.tokens)([0, 1, "", "a", True]) == [True, False, True, False, False]
    assert (-rasp.tokens)([1, -2.5]) == [-1, 2.5]


def test_strings_concatenate_in_the_order_written() -> None:
    """Reflected `+` keeps the sides: what is written left stays left."""
    assert ("<" + rasp.tokens + ">")("ab") == ["<a>", "<b>"]


@pytest.mark.parametrize("symbol", OPERATORS)
def test_numpy_scalars_work_on_either_side(symbol: str) -> None:
    """A numpy scalar is a constant like any other, also on the left where numpy would like to loop."""
    op = OPERATORS[symbol]
    for two in (np.int64(2), np.float32(2)):
        assert op(two, rasp.tokens)([1, 2, 3]) == [op(2, x) for x in [1, 2, 3]]
        assert op(rasp.tokens, two)([1, 2, 3]) == [op(x, 2) for x in [1, 2, 3]]
        assert all(type(value) in (bool, int, float) for value in op(two, rasp.tokens)([1, 2, 3]))


@pytest.mark.parametrize("bad", [[1], float("nan"), float("inf"), np.array([1, 2]), {"a"}])
def test_operators_refuse_what_is_no_value(bad: object) -> None:
    """A list, an array, NaN or an infinity cannot stand in an expression, on either side."""
    with pytest.raises(ExpressionError, match="constant in an expression"):
        rasp.tokens + bad
    with pytest.raises(ExpressionError, match="constant in an expression"):
        bad == rasp.tokens  # noqa: B015


def test_operators_refuse_selectors() -> None:
    """An s-op and a selector have no operator between them."""
    with pytest.raises(ExpressionError, match="between the s-op tokens and the selector"):
        rasp.tokens + SELECT
    with pytest.raises(ExpressionError, match="between the s-op"):
        rasp.tokens == SELECT  # noqa: B015


# Maps


def test_a_map_of_a_map_fuses() -> None:
    """Two Maps become one over the first's input, applied inner first."""
    fused = Map(lambda x: x + 1, Map(lambda x: x * 10, rasp.tokens))
    assert fused.inner is rasp.tokens
    assert fused.children == (rasp.tokens,)
    assert fused([1, 2]) == [11, 21]


def test_simplify_false_keeps_both_maps() -> None:
    """`simplify=False` keeps the inner Map as a node of its own."""
    inner = Map(lambda x: x * 10, rasp.tokens)
    kept = Map(lambda x: x + 1, inner, simplify=False)
    assert kept.inner is inner
    assert kept([1, 2]) == [11, 21]


@pytest.mark.parametrize("simplify", [True, False])
def test_none_stops_a_composition(simplify: bool) -> None:
    """Where the inner function gives `None` the outer one is not called, fused or not."""
    inner = Map(lambda x: None if x == "a" else x, rasp.tokens)
    assert Map(lambda x: x + "!", inner, simplify=simplify)("ab") == [None, "b!"]


@pytest.mark.parametrize("simplify", [True, False])
def test_fusing_hides_no_bad_value(simplify: bool) -> None:
    """What the inner Map may not return, it may not return inside a fused Map either."""
    inner = Map(lambda x: [x], rasp.tokens)
    with pytest.raises(ValueError, match="not hashable"):
        Map(len, inner, simplify=simplify)("a")


def test_linear_sequence_map() -> None:
    """fst_fac * fst + snd_fac * snd, the factors kept for the compiler."""
    linear = rasp.LinearSequenceMap(rasp.tokens, rasp.indices, np.float64(0.5), -2)
    assert linear([4, 6]) == [2.0, 1.0]
    assert (linear.fst_fac, linear.snd_fac) == (0.5, -2)
    assert linear.copy().fst_fac == 0.5
    assert isinstance(linear, SequenceMap)


# Foreign objects

BAD_BUILDS: dict[str, tuple[Callable[[], object], str]] = {
    "Map of a number": (lambda: Map(len, 3), r"(?s)input of Map must be an s-op, not 3.*Full"),  # type: ignore[arg-type]
    "Map of a selector": (lambda: Map(len, SELECT), r"(?s)must be an s-op.*SelectorWidth"),  # type: ignore[arg-type]
    "Map with swapped arguments": (lambda: Map(rasp.tokens, len), "must be an s-op"),  # type: ignore[arg-type]
    "Map without a function": (lambda: Map(3, rasp.tokens), "must be callable, not 3"),  # type: ignore[arg-type]
    "SequenceMap of a string": (
        lambda: SequenceMap(max, rasp.tokens, "a"),  # type: ignore[arg-type]
        "second input of SequenceMap must be an s-op",
    ),
    "LinearSequenceMap with a text factor": (
        lambda: rasp.LinearSequenceMap(rasp.tokens, rasp.tokens, "1", 1),  # type: ignore[arg-type]
        "factors of LinearSequenceMap must be numbers",
    ),
    "LinearSequenceMap with NaN": (
        lambda: rasp.LinearSequenceMap(rasp.tokens, rasp.tokens, float("nan"), 1),
        "factor of LinearSequenceMap is nan",
    ),
    "Select with a list": (
        lambda: Select([1], rasp.tokens, Comparison.EQ),  # type: ignore[arg-type]
        r"keys of Select must be an s-op, not \[1\]",
    ),
    "Select with a selector": (lambda: Select(rasp.tokens, SELECT, Comparison.EQ), "queries of Select must be an s-op"),
    "Select without a predicate": (lambda: Select(rasp.tokens, rasp.tokens, True), "must be callable, not True"),  # type: ignore[arg-type]
    "Aggregate of an s-op": (lambda: Aggregate(rasp.tokens, rasp.tokens), "selector of Aggregate must be a selector"),  # type: ignore[arg-type]
    "Aggregate of a list": (lambda: Aggregate(SELECT, [1]), r"s-op of Aggregate must be an s-op, not \[1\]"),  # type: ignore[arg-type]
    "Aggregate with a NaN default": (
        lambda: Aggregate(SELECT, rasp.tokens, float("nan")),
        "default of Aggregate is nan",
    ),
    "SelectorWidth of an s-op": (lambda: SelectorWidth(rasp.tokens), "selector of SelectorWidth must be a selector"),  # type: ignore[arg-type]
    "SelectorNot of an s-op": (lambda: rasp.SelectorNot(rasp.tokens), "must be a selector"),  # type: ignore[arg-type]
    "Full of a list": (lambda: Full([1]), "fill of Full is .* not hashable"),  # type: ignore[arg-type]
    "Full of an expression": (lambda: Full(rasp.tokens), "fill of Full is the expression tokens"),
    "ConstantSOp of lists": (lambda: rasp.ConstantSOp([[1]]), "value of ConstantSOp"),  # type: ignore[list-item]
    "ragged ConstantSelector": (lambda: rasp.ConstantSelector([[True], [True]]), "square matrix"),
}


@pytest.mark.parametrize("what", BAD_BUILDS)
def test_foreign_objects_are_refused_where_they_are_written(what: str) -> None:
    """A part of an expression must be an expression; the message names the part and the object."""
    build, message = BAD_BUILDS[what]
    with pytest.raises(ExpressionError, match=message):
        build()
    with pytest.raises(TypeError):
        build()


def test_constants_stand_for_full_in_select() -> None:
    """A plain key or query means the same value everywhere."""
    for constant in ["a", 1, 2.5, None, True, (1, 2)]:
        select = Select(constant, constant, lambda key, query: key == query)
        assert isinstance(select.keys, Full)
        assert select.keys.fill == constant
        assert select("ab") == [[True, True], [True, True]]


# Printing


def test_repr_shows_the_kind_function_and_inputs() -> None:
    """An expression prints on one line, its inputs by name."""
    assert repr(rasp.tokens) == "tokens"
    assert repr(3 - rasp.indices) == "Map(3 - x, indices)"
    assert repr(rasp.tokens.named("t") == rasp.indices) == "SequenceMap(x == y, t, indices)"
    assert repr((rasp.tokens == "x").named("is_x")) == "Map(x == 'x', tokens).named('is_x')"
    assert repr(SELECT) == "Select(Comparison.LEQ, indices, indices)"
    assert repr(Aggregate(SELECT, rasp.tokens, default=0)) == "Aggregate(default=0, select, tokens)"
    assert repr(-rasp.indices + 1 + 2 + 3) == "Map(-x then x + 1 then x + 2 then 1 more, indices)"


def test_every_s_op_kind_is_an_s_op_and_every_selector_a_selector() -> None:
    """The base classes split the language in two."""
    assert all(isinstance(expr, SOp) for expr in ALL[:10])
    assert all(isinstance(expr, rasp.Selector) for expr in ALL[10:])
