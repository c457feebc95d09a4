"""Boolean selectors: disjoint conjunctions, each construction at its limits, the cost model."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracr
from tests.agreement import all_inputs, assert_agrees, compile_quietly
from tests.tiers import slow
from tracr.compiler.selectors.conjunctions import Conjunction, cover
from tracr.compiler.selectors.head_plans import choose_plan
from tracr.ir.ops import PairLookup
from tracr.ir.options import LEVELS
from tracr.ir.selectors import CompositeNode, Selector, SelectorNode
from tracr.rasp import programs, rasp
from tracr.rasp.rasp import Comparison, SOp

# Formulas

SIZES = ((2, 3), (3, 3), (2, 2))  # queries and keys of three pairs of inputs


@st.composite
def formulas(draw: st.DrawFn) -> dict[int, Selector]:
    """Selectors over up to three pairs of inputs, and combinations of them; the last is the formula."""
    found: dict[int, Selector] = {}
    for number in range(draw(st.integers(1, 5))):
        pair = draw(st.integers(0, 2))
        cells = draw(
            st.lists(st.integers(0, 1), min_size=int(np.prod(SIZES[pair])), max_size=int(np.prod(SIZES[pair])))
        )
        table = np.array(cells, dtype=np.int8).reshape(SIZES[pair])
        found[number] = SelectorNode(number, f"s{number}", "", "", (), 2 * pair, 2 * pair + 1, table)
    for _ in range(draw(st.integers(1, 6))):
        number = len(found)
        kind: Any = draw(st.sampled_from(("and", "or", "not")))
        parts = tuple(draw(st.integers(0, number - 1)) for _ in range(1 if kind == "not" else 2))
        found[number] = CompositeNode(number, f"c{number}", "", "", (), kind, parts)
    return found


def holds(selectors: dict[int, Selector], number: int, at: dict[int, tuple[int, int]]) -> bool:
    """The formula, for one (query, key) of each pair of inputs."""
    selector = selectors[number]
    if isinstance(selector, SelectorNode):
        return bool(selector.table[at[selector.keys // 2]] == 1)
    sides = [holds(selectors, part, at) for part in selector.parts]
    return not sides[0] if selector.kind == "not" else all(sides) if selector.kind == "and" else any(sides)


def selects(conjunction: Conjunction, at: dict[int, tuple[int, int]]) -> bool:
    return all(literal.selected[at[literal.keys // 2]] for literal in conjunction.literals)


@given(formulas())
def test_a_cover_is_disjoint_and_complete(selectors: dict[int, Selector]) -> None:
    """Exactly one conjunction inside holds where the formula does, exactly one outside where it does not."""
    number = max(selectors)
    inside, outside = (cover(selectors, number, holds=side) for side in (True, False))
    assert inside is not None
    assert outside is not None
    cells = [list(itertools.product(range(queries), range(keys))) for queries, keys in SIZES]
    for place in itertools.product(*cells):
        at = dict(enumerate(place))
        expected = holds(selectors, number, at)
        assert sum(selects(conjunction, at) for conjunction in inside) == expected
        assert sum(selects(conjunction, at) for conjunction in outside) == (not expected)


@given(formulas(), st.sampled_from(("width", "copy", "mean")), st.booleans())
def test_every_plan_selects_what_the_formula_says(selectors: dict[int, Selector], reader: str, split: bool) -> None:
    """The signed sum of a plan's heads is 1 where the formula holds and 0 elsewhere."""
    number = max(selectors)
    plan = choose_plan(selectors, number, reader, 3, 2, split=split)  # type: ignore[arg-type]
    assert plan is not None
    cells = [list(itertools.product(range(queries), range(keys))) for queries, keys in SIZES]
    for place in itertools.product(*cells):
        at = dict(enumerate(place))
        assert sum(sign * selects(conjunction, at) for sign, conjunction in plan.heads) == holds(selectors, number, at)


def test_large_conjunctions_and_disjunctions_need_no_truth_table() -> None:
    """Forty inputs: a conjunction is one head, a disjunction one head left out of everything."""
    table = np.array([[0, 1], [1, 1]], dtype=np.int8)
    for kind, inside, outside in (("and", 1, 40), ("or", 40, 1)):
        selectors: dict[int, Selector] = {
            n: SelectorNode(n, f"s{n}", "", "", (), 2 * n, 2 * n + 1, table) for n in range(40)
        }
        last = 0
        for n in range(1, 40):
            selectors[100 + n] = CompositeNode(100 + n, f"c{n}", "", "", (), kind, (last, n))  # type: ignore[arg-type]
            last = 100 + n
        for side, count in ((True, inside), (False, outside)):
            found = cover(selectors, last, holds=side)
            assert found is not None
            assert len(found) == count


# Constructions

tokens, indices = rasp.tokens, rasp.indices
SAME = rasp.Select(tokens, tokens, Comparison.EQ)
BEFORE = rasp.Select(indices, indices, Comparison.LT)
LAST = rasp.Select(indices, rasp.Map(lambda i: i - 1, indices), Comparison.EQ)
NUMBER = rasp.Map(lambda t: {"a": 1.0, "b": -2.5, "c": 7.0}[t], tokens)
MAYBE = rasp.Map(lambda t: None if t == "a" else ord(t), tokens)
IS_A = rasp.Select(tokens, "a", Comparison.EQ)
TWO_BACK = rasp.Select(indices, rasp.Map(lambda i: i - 2, indices), Comparison.EQ)

CASES: dict[str, tuple[SOp, str]] = {
    "conjunction, width": (rasp.SelectorWidth(SAME & BEFORE), "one head"),
    "conjunction, mean": (rasp.Aggregate(SAME & BEFORE, NUMBER, 0.5), "one head"),
    "conjunction, copy": (rasp.Aggregate(LAST & SAME, tokens), "one head"),
    "disjunction, width": (rasp.SelectorWidth(SAME | BEFORE), "sums"),
    "disjunction, mean": (rasp.Aggregate(SAME | BEFORE, NUMBER), "sums"),
    "disjunction, mean of integers": (rasp.Aggregate(SAME | LAST, indices, -3), "sums"),
    "a mean as categories": (rasp.Map(lambda x: str(float(x)), rasp.Aggregate(SAME | BEFORE, indices, 0)), "sums"),
    "a mean over pairs": (rasp.Map(lambda x: str(float(x)), rasp.Aggregate(IS_A | BEFORE, indices, 0)), "product"),
    "disjunction, copy of a category": (
        rasp.Aggregate((LAST & IS_A) | (TWO_BACK & ~rasp.Select(tokens, "b", Comparison.EQ) & ~IS_A), tokens, "b"),
        "",
    ),
    "no key, and a number as default": (rasp.Aggregate((SAME | BEFORE) & ~(SAME | BEFORE), NUMBER, 2.25), ""),
    "exclusive or": (rasp.SelectorWidth((SAME & ~BEFORE) | (BEFORE & ~SAME)), "sums"),
    "None among the values": (rasp.Aggregate(LAST | (IS_A & LAST), MAYBE, None), ""),
    "None among keys and queries": (
        rasp.SelectorWidth(rasp.Select(MAYBE, MAYBE, lambda k, q: k is None or q is None) | BEFORE),
        "sums",
    ),
    "not of both": (rasp.SelectorWidth(~(SAME | BEFORE)), "one head"),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("causal", [False, True])
def test_constructions(name: str, causal: bool) -> None:
    """Each is right at every level, padded and not, and the construction is the one that is meant."""
    program, kind = CASES[name]
    for level in LEVELS:
        model = compile_quietly(program, "abc", 5, level=level, causal=causal)
        assert_agrees(model, program, all_inputs("abc", 4), reference=60)
        if kind and not causal:
            assert any(kind in choice for choice in model.circuit.choices), model.circuit.choices


@pytest.mark.parametrize("level", LEVELS)
def test_copies_from_one_of_several_heads(level: int) -> None:
    """At most one key by exclusive conditions: a head each, added up; numbers, categories, None and defaults."""
    first = rasp.Select(indices, 0, Comparison.EQ) & rasp.Select(0, rasp.Map(lambda i: i % 2, indices), Comparison.EQ)
    back = LAST & rasp.Select(1, rasp.Map(lambda i: i % 2, indices), Comparison.EQ)
    for value, default in ((tokens, None), (tokens, "z"), (MAYBE, 3), (NUMBER, None), (indices, 100)):
        program = rasp.Aggregate(first | back, value, default)
        assert_agrees(compile_quietly(program, "abc", 5, level=level), program, all_inputs("abc", 4))


def test_gated_means_at_length_100() -> None:
    """Sums over several heads, divided by their count, stay within the tolerance of raw numbers."""
    program = rasp.Aggregate(SAME | rasp.Select(indices, indices, lambda k, q: k % 7 == q % 7), NUMBER, 0)
    model = compile_quietly(program, "abc", 100)
    assert any("sums" in choice for choice in model.circuit.choices)
    rng = np.random.default_rng(0)
    inputs = [rng.choice(list("abc"), size).tolist() for size in [*rng.integers(1, 101, 60).tolist(), 100]]
    assert_agrees(model, program, inputs)


@pytest.mark.parametrize("longest", [300, *slow([1000])])
def test_counts_of_several_heads_at_length(longest: int) -> None:
    """Rounding errors of sums stay far below what would change a count."""
    program = rasp.SelectorWidth(SAME | BEFORE)
    model = compile_quietly(program, "abcdefghij", longest, level=1)
    rng = np.random.default_rng(0)
    inputs = [rng.choice(list("abcdefghij"), size).tolist() for size in (1, 2, longest - 1, longest)]
    assert [row == program(xs) for row, xs in zip(model(inputs), inputs, strict=True)] == [True] * 4


@pytest.mark.parametrize("name", ["sort_composite", "most_freq", "hist2"])
def test_the_rasp_papers_programs_need_no_product_space(name: str) -> None:
    """Duplicate-safe sort, most frequent tokens and double histogram compile as they are written."""
    example = programs.EXAMPLES[name]
    for level in LEVELS:
        model = compile_quietly(example.program, example.vocab, example.max_seq_len, level=level)
        assert_agrees(model, example.program, all_inputs(example.vocab, 4)[-300:], reference=60)
        pairs = [
            n
            for n in model.program.sops.values()
            if isinstance(n.op, PairLookup) and n.label.endswith(("_keys", "_queries"))
        ]
        assert not pairs


def test_the_product_space_is_the_last_resort() -> None:
    """Where the values are few it costs less than several heads, and says so."""
    few = rasp.Map(lambda t: t == "a", tokens)
    odd = rasp.Map(lambda i: i % 2, indices)
    small = rasp.Select(few, odd, lambda k, q: hash((k, q)) % 2 == 0)
    other = rasp.Select(odd, few, Comparison.EQ)
    program = rasp.Aggregate((small & ~other) | (other & ~small), NUMBER, 0)
    model = compile_quietly(program, "abc", 40)
    assert any(node.label.endswith("_keys") for node in model.program.sops.values())
    assert any("product space of" in choice for choice in model.circuit.choices)
    tight = compile_quietly(program, "abc", 40, max_cells=15)  # too few for a table of pairs with pairs
    assert any("sums" in choice for choice in tight.circuit.choices)
    assert tight("abcab") == model("abcab")
    rng = np.random.default_rng(0)
    assert_agrees(model, program, [rng.choice(list("abc"), size).tolist() for size in rng.integers(1, 41, 40)])


# Ranks


def ranks(model: tracr.CompiledModel) -> list[int]:
    return [head.query.width for layer in model.schedule.layers for head in layer.heads]


@pytest.mark.parametrize(
    ("program", "most"),
    [
        (lambda: programs.make_reverse(tokens), 4),
        (programs.make_hist, 4),
        (lambda: rasp.Aggregate(rasp.Select(indices, indices, lambda k, q: k == q - 3), tokens), 4),
        (lambda: rasp.SelectorWidth(rasp.Select(indices, indices, Comparison.NEQ)), 4),
    ],
    ids=["reverse", "hist", "shift by 3", "not equal"],
)
def test_equality_of_many_values_has_small_rank(program: Callable[[], SOp], most: int) -> None:
    """At (60, 60) rank 4, with BOS and PAD, is enough for a matching."""
    sop = program()
    model = compile_quietly(sop, list(range(60)), 60)
    assert max(ranks(model)) <= most
    rng = np.random.default_rng(0)
    inputs = [rng.integers(0, 60, size).tolist() for size in (1, 2, 30, 59, 60)]
    assert_agrees(model, sop, inputs)


@pytest.mark.parametrize("default", [0, 17, 39, None])
def test_keys_that_hold_something_at_bos(default: int | None) -> None:
    """What a head's default leaves at BOS is cancelled in keys without harm to BOS's own logit."""
    previous = rasp.Aggregate(LAST, tokens, default)
    same = rasp.Select(previous, tokens, Comparison.EQ)
    rng = np.random.default_rng(0)
    inputs = [rng.integers(0, 40, size).tolist() for size in (1, 2, 10, 20, 20)]
    for program in (
        rasp.SelectorWidth(same),
        rasp.SelectorWidth(same | BEFORE),
        rasp.Aggregate(same, indices, 5),
        rasp.Aggregate(same | rasp.Select(previous, previous, Comparison.EQ), indices, -1),
    ):
        assert_agrees(compile_quietly(program, list(range(40)), 20), program, inputs)


def test_small_equalities_stay_one_hot() -> None:
    """Up to 16 classes a pattern is kept legible, and at level 0 always."""
    hist = programs.make_hist()
    assert ranks(compile_quietly(hist, list(range(16)), 5)) == [18]
    assert ranks(compile_quietly(hist, list(range(17)), 5)) == [4]
    assert ranks(compile_quietly(hist, list(range(17)), 5, level=0)) == [19]


def test_positions_up_to_the_query_are_what_a_causal_mask_selects() -> None:
    """`<=` of positions costs no rank under a causal mask."""
    program = programs.make_frac_prevs(tokens == "a")
    assert ranks(compile_quietly(program, "ab", 20, causal=True)) == [2]
    assert_agrees(compile_quietly(program, "ab", 5, causal=True), program, all_inputs("ab", 5))


# Scale


@pytest.mark.parametrize("name", ["sort", "sort_freq"])
def test_sorting_a_hundred_tokens_takes_two_comparisons(name: str) -> None:
    """Keys made unique by their position are compared part by part, not as ten thousand values."""
    made = {
        "sort": lambda: programs.make_sort(tokens, tokens, max_seq_len=100, min_key=1),
        "sort_freq": lambda: programs.make_sort_freq(100),
    }[name]()
    for level in LEVELS:
        model = compile_quietly(made, list(range(100)), 100, level=level)
        assert model.n_parameters < 3_000_000
        rng = np.random.default_rng(0)
        assert_agrees(model, made, [rng.integers(0, 100, size).tolist() for size in (1, 7, 60, 100)])


def test_widths_of_an_order_of_positions_are_all_different() -> None:
    """So that a duplicate-safe sort of numbers copies, and averages nothing."""
    program = programs.make_sort_composite(tokens, tokens)
    model = compile_quietly(program, list(range(12)), 9)
    (node,) = (node for node in model.program.sops.values() if node.label.startswith("sort"))
    assert (node.op.copies, node.op.assumed) == (True, False)  # type: ignore[union-attr]
    not_transitive = rasp.Select(tokens, tokens, lambda k, q: (q - k) % 3 == 1)
    tied = not_transitive | (rasp.Select(tokens, tokens, Comparison.EQ) & BEFORE)
    width = rasp.SelectorWidth(tied)
    circular = rasp.Aggregate(rasp.Select(width, indices, Comparison.EQ), tokens)
    other = compile_quietly(circular, [0, 1, 2], 4)
    assert not other.program.sops[other.program.outputs[0][1]].op.copies  # type: ignore[union-attr]
    assert_agrees(other, circular, all_inputs([0, 1, 2], 4))
