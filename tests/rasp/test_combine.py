"""Boolean combinations of selectors, simplified or not, select the same positions."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracr.errors import ExpressionError
from tracr.rasp import causal_eval, rasp
from tracr.rasp.rasp import Comparison, Select, Selector, SelectorAnd, SelectorNot, SelectorOr

SOPS = [rasp.tokens, rasp.indices, rasp.Full(1), rasp.Full(2), rasp.tokens + rasp.indices]
PREDICATES: list[Callable[[int, int], bool]] = [*Comparison, lambda key, query: (key + 2 * query) % 3 == 0]
selects = st.builds(Select, st.sampled_from(SOPS), st.sampled_from(SOPS), st.sampled_from(PREDICATES))
inputs = st.lists(st.integers(0, 3), max_size=4)


@given(selects, selects, inputs)
def test_simplifying_changes_no_result(fst: Select, snd: Select, xs: list[int]) -> None:
    """and, or, not: the simplified selector, the plain one and the operator agree cell by cell."""
    a, b = fst(xs), snd(xs)
    n = range(len(xs))
    both = [[a[i][j] and b[i][j] for j in n] for i in n]
    either = [[a[i][j] or b[i][j] for j in n] for i in n]
    unselected = [[not a[i][j] for j in n] for i in n]
    for simplify in (True, False):
        assert rasp.selector_and(fst, snd, simplify=simplify)(xs) == both
        assert rasp.selector_or(fst, snd, simplify=simplify)(xs) == either
        assert rasp.selector_not(fst, simplify=simplify)(xs) == unselected
    assert (fst & snd)(xs) == both
    assert (fst | snd)(xs) == either
    assert (~fst)(xs) == unselected


@given(selects, selects, inputs)
def test_simplifying_changes_no_causal_result(fst: Select, snd: Select, xs: list[int]) -> None:
    """Under the causal mask too, negation included, simplified and plain selectors agree."""
    for combine in (rasp.selector_and, rasp.selector_or):
        plain, merged = combine(fst, snd, simplify=False), combine(fst, snd)
        assert causal_eval.evaluate(plain, xs) == causal_eval.evaluate(merged, xs)
    plain, merged = rasp.selector_not(fst, simplify=False), rasp.selector_not(fst)
    assert causal_eval.evaluate(plain, xs) == causal_eval.evaluate(merged, xs)


def test_same_keys_and_queries_give_one_select() -> None:
    """Over the same inputs a combination is one Select."""
    fst = Select(rasp.tokens, rasp.indices, Comparison.LT)
    snd = Select(rasp.tokens, rasp.indices, Comparison.EQ)
    for merged in (rasp.selector_and(fst, snd), rasp.selector_or(fst, snd), rasp.selector_not(fst)):
        assert isinstance(merged, Select)
        assert merged.keys is rasp.tokens
        assert merged.queries is rasp.indices


@pytest.mark.parametrize("flip", [False, True])
def test_a_constant_key_or_query_matches_any(flip: bool) -> None:
    """The paper's example: select(tokens, indices, <=) or select(tokens, "a", ==) is one Select."""
    fst = Select(rasp.tokens, rasp.indices, lambda key, query: key == query)
    snd = Select(rasp.tokens, "a", Comparison.EQ)
    merged = rasp.selector_or(*((snd, fst) if flip else (fst, snd)))
    assert isinstance(merged, Select)
    assert merged.keys is rasp.tokens
    assert merged.queries is rasp.indices
    assert merged([1, "a", 2]) == [[False, True, False], [True, True, False], [False, True, True]]


def test_different_inputs_stay_apart() -> None:
    """Four different inputs cannot be one Select: the combination is kept."""
    fst = Select(rasp.tokens, rasp.tokens, Comparison.EQ)
    snd = Select(rasp.indices, rasp.indices, Comparison.LT)
    assert isinstance(rasp.selector_and(fst, snd), SelectorAnd)
    assert isinstance(rasp.selector_or(fst, snd), SelectorOr)
    assert isinstance(rasp.selector_not(fst & snd), SelectorNot)


def test_simplify_false_keeps_the_structure() -> None:
    """`simplify=False` builds the node that was asked for."""
    select = Select(rasp.tokens, rasp.tokens, Comparison.EQ)
    assert isinstance(rasp.selector_and(select, select, simplify=False), SelectorAnd)
    assert isinstance(rasp.selector_or(select, select, simplify=False), SelectorOr)
    assert isinstance(rasp.selector_not(select, simplify=False), SelectorNot)


def test_the_paper_s_duplicate_safe_selector() -> None:
    """smaller, or equal and earlier: each width is the position in the sorted sequence."""
    smaller = Select(rasp.tokens, rasp.tokens, Comparison.LT)
    equal = Select(rasp.tokens, rasp.tokens, Comparison.EQ)
    earlier = Select(rasp.indices, rasp.indices, Comparison.LT)
    assert rasp.SelectorWidth(smaller | (equal & earlier))([2, 1, 2, 1]) == [2, 0, 3, 1]


@pytest.mark.parametrize("other", [3, None, rasp.tokens, [[True]]])
def test_only_selectors_combine(other: object) -> None:
    """Selectors combine with selectors only, whichever way it is written."""
    select: Selector = Select(rasp.tokens, rasp.tokens, Comparison.EQ)
    with pytest.raises(ExpressionError, match="must be a selector"):
        rasp.selector_and(select, other)  # type: ignore[arg-type]
    with pytest.raises(ExpressionError, match="must be a selector"):
        rasp.selector_or(other, select)  # type: ignore[arg-type]
    with pytest.raises(ExpressionError, match="must be a selector"):
        rasp.selector_not(other)  # type: ignore[arg-type]
    with pytest.raises(ExpressionError, match="must be a selector"):
        select & other  # type: ignore[operator]
    with pytest.raises(ExpressionError, match="has no meaning"):
        rasp.tokens & select
